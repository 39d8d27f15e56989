/* Which keys a row may see, and which tiles a kernel may skip. */
#ifndef ORACLE_SCHEDULE_H
#define ORACLE_SCHEDULE_H

#include "engine/oracle/oracle.h"

/* How many keys row r of this q tile may see: keys 0 .. n - 1. 0: the row has no key at all. */
int schedule_keys(const struct oracle_case *c, int r);

/* Columns of kv tile `kv` that exist: keys below kv_len. */
int schedule_cols(const struct oracle_case *c, int kv);

/* How many columns of kv tile `kv` row r may see: columns 0 .. n - 1. */
int schedule_visible(const struct oracle_case *c, int r, int kv);

/* 1 if no row of this q tile sees any key of the tile: a kernel may visit it or skip it. */
int schedule_masked(const struct oracle_case *c, int kv);

#endif
