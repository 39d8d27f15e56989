/* What keys do: actions.def turned into lookups, help and docs/keys.md. */
#ifndef TUI_ACTIONS_H
#define TUI_ACTIONS_H

#include <stdio.h>

/* A key is a Unicode character (control characters included), or one of these. */
enum key_id {
    KEY_ID_NONE = 0x110000, /* beyond Unicode */
#define KEY(id, name, curses) id,
#include "tui/keys.def"
#undef KEY
};

enum action {
    ACTION_NONE = -1,
#define ACTION(id, keys, name, hint, help) id,
#include "tui/actions.def"
#undef ACTION
    ACTION_COUNT
};

struct action_text {
    const char *keys, *name, *hint, *help;
};

const struct action_text *action_text(enum action a);
/* The action a key stands for, or ACTION_NONE. */
enum action action_of_key(int key);
/* The code of a key's name ("n", "C-l", "S-Tab"), or KEY_ID_NONE. */
int key_from_name(const char *name);
/* Writes docs/keys.md; 0, or -1 where writing fails. */
int actions_write_docs(FILE *out);

#endif
