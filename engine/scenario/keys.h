/* The keys of a scenario as a table: reader, messages, scenario_set() and docs/scenarios.md all come from keys.def. */
#ifndef SCENARIO_KEYS_H
#define SCENARIO_KEYS_H

#include "engine/scenario/scenario.h"

enum section {
#define SECTION(id, name, about) id,
#include "engine/scenario/sections.def"
#undef SECTION
    SECTION_COUNT
};
extern const char *const section_names[SECTION_COUNT];

enum scenario_key_id {
#define KEY(id, section, key, setter, expected, by_default, meaning) id,
#include "engine/scenario/keys.def"
#undef KEY
    KEY_COUNT
};

struct scenario_key {
    enum section section;
    const char *name, *expected, *by_default, *meaning;
    /* 0, -1: the value is not what the key expects (the scenario is unchanged), -2: no memory. */
    int (*set)(struct scenario *s, enum scenario_key_id id, const char *value);
};

extern const struct scenario_key scenario_keys[KEY_COUNT];

/* enum section, or -1. */
int scenario_section(const char *name);
/* enum scenario_key_id, or -1. */
int scenario_key_find(const char *section, const char *name);
/* Sets one key and marks it as stated. where: "file:line: section.key". */
int scenario_key_set(struct scenario *s, enum scenario_key_id id, const char *value, const char *where,
                     struct err *err);
/* Says that there is no such key, or no such section, and which there are. */
int scenario_unknown(const char *section, const char *name, const char *where, struct err *err);
/* Adds a folder to scenario.include, before those that are there, or a flag to scenario.flags, behind them. */
int scenario_add_word(struct scenario *s, enum scenario_key_id id, const char *word, const char *where,
                      struct err *err);
/* What a key was given, as it would be given again: paths where they were found; NULL: it is not stated. */
const char *scenario_said(const struct scenario *s, enum scenario_key_id id);
/* How a scenario that is written names its files: place() writes the name of the file or folder at `path`, which the
   key says; false: it is left out. */
struct scenario_places {
    bool (*place)(void *ctx, enum scenario_key_id id, const char *path, char *out, size_t bytes);
    void *ctx;
};
/* scenario_write() into a stream; name: of what is written, for messages. places NULL: files by their paths from any
   folder. Whether the stream took it is the caller's. */
int scenario_write_as(const struct scenario *s, FILE *out, const char *name, const struct scenario_places *places,
                      struct err *err);
/* What scenario_settings() says, its files named as places does; a key whose file has no name goes. NULL: nothing was
   said, or no memory. */
char *scenario_settings_as(const char *settings, const struct scenario_places *places);
/* 1/sqrt(head_dim), rounded once to float. */
float scenario_auto_scale(int head_dim);

/* What must be found decides nothing. */
static inline bool scenario_decides(enum scenario_key_id id)
{
    return scenario_keys[id].section != SECTION_EXPECT;
}

static inline bool scenario_stated(const struct scenario *s, enum scenario_key_id id)
{
    return s->stated[id];
}

/* Takes shape and types of the files of inputs, as far as they are not stated. line: as below. */
int scenario_take_inputs(struct scenario *s, const int *line, struct err *err);
/* Lengths of sequences, and what follows from them. */
int scenario_settle_sequences(struct scenario *s, const int *line, struct err *err);
/* The formulas of mask and score; which dimensions the mask has. Behind the lengths. */
int scenario_settle_formulas(struct scenario *s, const int *line, struct err *err);
int scenario_copy_sequences(const struct scenario *from, struct scenario *out); /* -1: no memory */
/* What scenario_check() does then, naming lines: line[KEY_COUNT] of each key in the file, 0 for not stated; NULL: no
 * file.
 */
int scenario_check_lines(const struct scenario *s, const int *line, struct err *err);
#define WHERE_BYTES 768 /* room for a path, a line and a key */
/* "path:line: section.key" of a key, without the parts that are not known. */
void scenario_where(const struct scenario *s, const int *line, enum scenario_key_id id, char *out, size_t n_bytes);

#endif
