/* The command line's tables, for what is made from them: help, man page, completions. */
#ifndef CLI_TABLES_H
#define CLI_TABLES_H

#include "cli/options.h"

struct command_row {
    const char *name, *arguments, *meaning;
};

struct option_row {
    char letter;                 /* or 0 */
    const char *name, *argument; /* NULL: takes none */
    unsigned commands;           /* set of 1u << enum command */
    const char *meaning;
};

extern const struct command_row command_rows[COMMAND_COUNT];
extern const struct option_row option_rows[OPTION_COUNT];

/* Each returns 0, or -1 where writing fails. */
int write_man(FILE *out);
int write_bash_completion(FILE *out);
int write_zsh_completion(FILE *out);
int write_fish_completion(FILE *out);

#endif
