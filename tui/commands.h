/* What is typed behind `:`, from commands.def and actions.def. */
#ifndef TUI_COMMANDS_H
#define TUI_COMMANDS_H

#include "tui/prompt.h"
#include <stdio.h>

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

struct loop;
/* Does what a line says; s->message says what came of it where the screen does not show it. */
void command_line_run(struct loop *l, const char *line);
/* Tab in such a line; ctx is the struct loop. */
void command_line_complete(void *ctx, const char *line, size_t at, struct candidates *out);

/* Writes docs/prompt.md; 0, or -1 where writing fails. */
int commands_write_docs(FILE *out);

#endif
