/* Files that somebody may save. Their folders are watched rather than they, so that an editor may rename the old one
   away and put a new one in its place; a change counts once nothing has happened for a moment. */
#ifndef SESSION_WATCH_H
#define SESSION_WATCH_H

#include "engine/base/err.h"
#include <stdbool.h>

/* An editor writes, renames and sets modes in steps; a change is told this long after the last of them. */
#define WATCH_QUIET_MS 100

struct watch;

/* also_fd: watch_fd() is readable whenever this one is, too; borrowed, -1: none. ERR_SYSTEM. */
int watch_new(int also_fd, struct watch **out, struct err *err);
void watch_free(struct watch *w); /* NULL is legal */
/* The file as it is now is the one that later ones differ from. It need not exist. Known ones are left alone. -1
   without memory. */
int watch_add(struct watch *w, const char *path);
int watch_fd(const struct watch *w); /* readable when watch_take() has something to do */
/* One of the files is another than it was, and exists. Never waits. */
bool watch_take(struct watch *w);
bool watch_was(const struct watch *w,
               const char *path); /* this was one of them at the last watch_take() that was true */

#endif
