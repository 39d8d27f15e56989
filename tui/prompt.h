/* One line of text at the bottom of the screen, typed by the user: editing, history, completion. Knows no commands. */
#ifndef TUI_PROMPT_H
#define TUI_PROMPT_H

#include "tui/screen/canvas.h"

enum { PROMPT_BYTES = 256, PROMPT_HISTORY = 64, CANDIDATES_MAX = 128 };

/* What may stand where the cursor is. Texts are cut to their room. */
struct candidates {
    struct {
        char text[96];
        char help[96]; /* "": nothing to say */
    } at[CANDIDATES_MAX];
    int n;
    size_t from; /* byte of the line where the word begins that they would take the place of */
};

/* Adds one where it begins with `word`, as far as there is room. */
void candidates_add(struct candidates *c, const char *word, const char *text, const char *help);

/* Fills in what fits the line up to byte `at`. */
typedef void prompt_complete(void *ctx, const char *line, size_t at, struct candidates *out);

enum prompt_result { PROMPT_OPEN, PROMPT_ENTERED, PROMPT_LEFT };

/* Zero-initialize. */
struct prompt {
    const char *sign; /* ":", "/"; NULL: none is open. Borrowed */
    char line[PROMPT_BYTES];
    size_t at;                 /* byte of the cursor, at the beginning of a character */
    prompt_complete *complete; /* NULL: Tab does nothing */
    void *ctx;                 /* borrowed */
    struct candidates list;    /* n > 0: shown */
    int chosen;                /* of the list; -1: none yet */
    struct prompt_history {
        char line[PROMPT_HISTORY][PROMPT_BYTES]; /* oldest first, [n] */
        int n;
    } history[2]; /* of ":", and of all others */
    int recalled; /* how many entries back the line is; 0: it is the user's own */
    char own[PROMPT_BYTES];
};

void prompt_open(struct prompt *p, const char *sign, const char *line, prompt_complete *complete, void *ctx);
/* A key (actions.h). ENTERED: p->line holds it, and the history remembers it; LEFT: given up. Both close it. */
enum prompt_result prompt_key(struct prompt *p, int key);
/* The line at the bottom of the canvas, the list above it. */
void prompt_draw(const struct prompt *p, struct canvas *c);

/* How many edits (a character more, less or another one, two in each other's place) lead from a to b. */
int word_distance(const char *a, const char *b);

#endif
