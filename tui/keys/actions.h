/* What keys and `:` do, in words: actions.def and commands.def turned into lookups, help and docs. */
#ifndef KEYS_ACTIONS_H
#define KEYS_ACTIONS_H

#include <stdbool.h>
#include <stdio.h>

/* A key is a Unicode character (control characters included), or one of these. */
enum key_id {
    KEY_ID_NONE = 0x110000, /* beyond Unicode */
#define KEY(id, name, curses) id,
#include "tui/keys/keys.def"
#undef KEY
};

enum action {
    ACTION_NONE = -1,
#define ACTION(id, keys, name, hint, help, effect) id,
#include "tui/keys/actions.def"
#undef ACTION
    ACTION_COUNT
};

struct action_text {
    const char *keys, *name, *hint, *help;
};

const struct action_text *action_text(enum action a);
bool action_opens_view(enum action a);  /* it is a key of a view */
int action_from_name(const char *name); /* enum action, or ACTION_NONE */
/* Gives an action other keys than actions.def's, names separated by blanks ("": none); actions that had one of them
   lose it. -1: *wrong is a word that names no key, or a key that has been given to another action already, *holder. */
int action_bind(enum action a, const char *keys, char *wrong, size_t bytes, enum action *holder);
bool action_rebound(enum action a); /* its keys are not actions.def's */
/* The action a key stands for, or ACTION_NONE. */
enum action action_of_key(int key);
/* The code of a key's name ("n", "C-l", "S-Tab"), or KEY_ID_NONE. */
int key_from_name(const char *name);
/* What is typed behind `:`, besides the names of actions. */
enum completion {
    COMPLETE_NOTHING,
    COMPLETE_PLACE,
    COMPLETE_VIEW,
    COMPLETE_STOP,
    COMPLETE_KEY,
    COMPLETE_FILE,
    COMPLETE_WORD
};

struct command_text {
    const char *name, *arguments, *help;
    enum completion completion;
};

/* The i-th command; NULL: there are no more. Help, completion and docs/prompt.md are made from them. */
const struct command_text *command_text(int i);

/* The i-th term of words.def; NULL: there are no more. */
struct word_text {
    const char *term, *meaning;
};
const struct word_text *word_text(int i);
int words_write_docs(FILE *out); /* docs/words.md; 0, or -1 where writing fails */

/* The table of docs/keys.md; 0, or -1 where writing fails. */
int actions_write_docs(FILE *out);

#endif
