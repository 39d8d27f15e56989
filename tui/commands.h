/* What is typed behind `:`, from commands.def and actions.def. */
#ifndef TUI_COMMANDS_H
#define TUI_COMMANDS_H

#include "tui/keys/actions.h"
#include "tui/prompt.h"
#include <stdio.h>

struct loop;
/* Does what a line says; s->message says what came of it where the screen does not show it. */
void command_line_run(struct loop *l, const char *line);
/* Tab in such a line; ctx is the struct loop. */
void command_line_complete(void *ctx, const char *line, size_t at, struct candidates *out);

/* Writes docs/prompt.md; 0, or -1 where writing fails. */
int commands_write_docs(FILE *out);

#endif
