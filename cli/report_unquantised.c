#include "cli/report.h"

#include <math.h>

void report_write_unquantised(const struct unquantised_error *error, FILE *out)
{
    if (isinf(error->largest))
        fputs("O against unquantised inputs: not measured, O holds what is not a number\n", out);
    else if (!isnan(error->rms))
        fprintf(out, "O against unquantised inputs: max %.3g, rms %.3g\n", error->largest, error->rms);
}

/* JSON has no infinity. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *report_json_unquantised(const struct unquantised_error *error)
{
    return isnan(error->rms)
               ? NULL
               : json_pack("{s:o, s:o}", "largest_error", number(error->largest), "rms_error", number(error->rms));
}
