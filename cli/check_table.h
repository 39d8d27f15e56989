/* The table at the end of `attnscope check`. */
#ifndef CLI_CHECK_TABLE_H
#define CLI_CHECK_TABLE_H

#include "cli/report.h"

/* Fills the parts and the short words of one row; s NULL: it could not be opened. r->status is known. */
void check_table_fill(const struct session *s, struct check_result *r);
void check_table_write(const struct check_result *results, size_t n, FILE *out);

#endif
