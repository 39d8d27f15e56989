/* The configuration file: $XDG_CONFIG_HOME/attnscope/config.ini, or ~/.config/attnscope/config.ini. */
#ifndef TUI_CONFIG_H
#define TUI_CONFIG_H

#include "engine/base/err.h"
#include "tui/screen/theme.h"
#include <stdio.h>

enum setting {
#define SETTING(id, key, choices, meaning) id,
#include "tui/config.def"
#undef SETTING
    SETTING_COUNT
};

struct config {
    int choice[SETTING_COUNT]; /* index among the setting's choices; of SETTING_START an enum view_id */
    struct theme theme;        /* colors; its background as chosen, else as the terminal says */
};

/* Reads a file that there need not be; keys are bound (actions.h) as they are read. ERR_INPUT: "FILE:LINE" and what was
   expected. */
int config_read(const char *path, struct config *out, struct err *err);
/* The user's. */
int config_load(struct config *out, struct err *err);
/* attnscope/NAME below the folder of a variable ("XDG_CONFIG_HOME"), else of HOME ("HOME/.config"). -1: neither is
   set, or no room. */
int config_path(const char *variable, const char *below_home, const char *name, char *path, size_t bytes);
/* Writes docs/config.md; 0, or -1 where writing fails. */
int config_write_docs(FILE *out);

#endif
