/* What can be copied of the screen, as text. */
#ifndef TUI_COPY_H
#define TUI_COPY_H

#include "tui/views/view.h"

struct copy_source {
    const struct session *session;
    enum view_id view;
    int cols, rows; /* of the screen */
};

#define COPY_BYTES 4096

/* key: one that copy_menu() offers. 0; 1: a command that runs the kernel as it is now, which this run was not
   made with; -1 where there is nothing of the kind, *out then says why. */
int copy_text(const struct copy_source *from, uint32_t key, char *out, size_t bytes);
/* "copy: v value  p place ..." */
void copy_menu(char *out, size_t bytes);
/* What a key copies ("the value"), NULL: nothing. */
const char *copy_name(uint32_t key);

#endif
