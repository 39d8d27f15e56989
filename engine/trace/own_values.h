/* Values of the kernel's own, which ASC_VALUES declares (probes/attnscope.h). */
#ifndef TRACE_OWN_VALUES_H
#define TRACE_OWN_VALUES_H

#include "engine/base/err.h"
#include "probes/abi.h"

/* What its words say, "(raw, bc), (factor, 1, F16)". ERR_INPUT names the word that is wrong and what was expected. */
int own_values_parse(const char *text, const char *where, struct asc_value out[ASC_OWN_CHANNELS], struct err *err);
/* "" where it may be the name of a value, else why not. */
const char *own_value_name_refused(const char *name);

/* "1", "bc", "head_dim", "head_dim_v", NULL: by enum asc_extent_of_cols. */
extern const char *const own_value_cols[];

#endif
