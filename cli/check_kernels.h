/* `check` of kernels rather than of scenarios. */
#ifndef CLI_CHECK_KERNELS_H
#define CLI_CHECK_KERNELS_H

#include "cli/options.h"

/* paths: [n] .cu files. An exit status, or -1 with *err. */
int check_kernels(const struct options *o, char *const *paths, size_t n, struct err *err);

#endif
