#include "tests/gpu/numerics.h"

#include <ctype.h>
#include <time.h>

static const char *const words[] = {"ok", "FAIL", "SKIP", "info"};

/* A number where one was asked for; 12 places show every share below one. */
static void number(char text[32], double x, const char *format)
{
    if (x < 0)
        snprintf(text, 32, "-");
    else
        snprintf(text, 32, format, x); /* NOLINT(clang-diagnostic-format-nonliteral) */
}

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.03  Tue ...": the first word of digits and points. */
void numerics_driver_version(const char *path, char *out, size_t bytes)
{
    FILE *file = fopen(path, "r");
    char line[256];
    out[0] = '\0';
    if (!file)
        return;
    if (fgets(line, sizeof line, file)) {
        char *rest = NULL;
        for (char *word = strtok_r(line, " \t\n", &rest); word && !out[0]; word = strtok_r(NULL, " \t\n", &rest))
            if (isdigit((unsigned char)word[0]) && word[strspn(word, "0123456789.")] == '\0')
                snprintf(out, bytes, "%s", word);
    }
    fclose(file);
}

void numerics_table_start(struct numerics_table *t, const struct numerics_device *d)
{
    char date[32] = "";
    const time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc))
        strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", &utc);
    FILE *const out[] = {t->tsv, t->text};
    for (int i = 0; i < 2; i++) {
        if (out[i] && d->sm)
            fprintf(
                out[i],
                "# %s, sm_%d, driver %s%sfor CUDA %d.%d, runtime %d.%d, %s; of 2^32 arguments every %u-th (%u-th)\n",
                d->name, d->sm, d->kernel_driver, d->kernel_driver[0] ? " " : "", d->driver / 1000,
                d->driver % 1000 / 10, d->runtime / 1000, d->runtime % 1000 / 10, date, d->function_step,
                d->conversion_step);
        else if (out[i])
            fprintf(out[i], "# %s, %s\n", d->name, date);
    }
    if (t->tsv)
        fprintf(t->tsv,
                "status\tsection\twhat\tsetting\telements\tequal\tequal_share\tlargest_error\tlog2_error\terror_is\t"
                "error_over_bound\tnote\n");
    if (t->text)
        fprintf(t->text, "%-4s %-11s %-40s %-26s %11s %9s %9s %9s  %s\n", "", "section", "what", "setting", "elements",
                "equal %", "log2 err", "err/bound", "note");
}

void numerics_table_row(struct numerics_table *t, const struct numerics_row *row)
{
    const double share = row->equal < 0 || row->n < 1 ? -1 : (double)row->equal / (double)row->n;
    const double log_error = row->error > 0 ? log2(row->error) : 0;
    char text[4][32];
    t->rows++;
    t->failed += row->status == NUMERICS_FAIL;
    t->skipped += row->status == NUMERICS_SKIP;
    t->open += row->status == NUMERICS_INFO;
    if (t->tsv) {
        number(text[0], (double)row->equal, "%.0f");
        number(text[1], share, "%.6f");
        number(text[2], row->error, "%.6g");
        number(text[3], row->ratio, "%.6g");
        fprintf(t->tsv, "%s\t%s\t%s\t%s\t%lld\t%s\t%s\t%s\t", words[row->status], row->section, row->what, row->setting,
                row->n, text[0], text[1], text[2]);
        if (row->error > 0)
            fprintf(t->tsv, "%.3f", log_error);
        else
            fprintf(t->tsv, "-");
        fprintf(t->tsv, "\t%s\t%s\t%s\n", *row->error_unit ? row->error_unit : "-", text[3], row->note);
    }
    if (t->text) {
        number(text[0], share * 100, "%.3f");
        if (row->equal >= 0 && row->equal < row->n && share > 0.99999)
            snprintf(text[0], sizeof text[0], "<100"); /* never shown as all of them */
        number(text[3], row->ratio, "%.4g");
        snprintf(text[2], sizeof text[2], row->error > 0 ? "%.2f" : "-", log_error);
        fprintf(t->text, "%-4s %-11s %-40s %-26s %11lld %9s %9s %9s  %s\n", words[row->status], row->section, row->what,
                row->setting, row->n, text[0], text[2], text[3], row->note);
    }
}

int numerics_table_end(struct numerics_table *t)
{
    FILE *const out[] = {t->tsv, t->text};
    const int bad = t->failed > 0 || t->rows == t->skipped;
    for (int i = 0; i < 2; i++)
        if (out[i])
            fprintf(out[i], "# %d rows: %d do not hold, %d not on this device, %d measured without an assumption: %s\n",
                    t->rows, t->failed, t->skipped, t->open, bad ? "FAIL" : "what the oracle assumes holds");
    return bad;
}
