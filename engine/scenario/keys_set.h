/* The setters of the table of keys, one file for each group of sections. As struct scenario_key says. */
#ifndef SCENARIO_KEYS_SET_H
#define SCENARIO_KEYS_SET_H

#include "engine/scenario/keys.h"

#define KEY(id, section, key, setter, expected, by_default, meaning)                                                   \
    int setter(struct scenario *s, enum scenario_key_id id, const char *value);
#include "engine/scenario/keys.def"
#undef KEY

/* "s,l" as a set; -1: not such a list. */
int key_read_channels(const char *value, unsigned *set);
/* Names separated by commas as a set of 1 << from_name(); -1: one of them has none. */
int key_read_names(const char *value, int (*from_name)(const char *name), unsigned *set);

#endif
