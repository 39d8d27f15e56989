/* What must not outlive this program: process groups that it started, and files and folders that it is making. */
#ifndef BASE_LEFTOVERS_H
#define BASE_LEFTOVERS_H

#include <sys/types.h>

/* Lists are of fixed size, so that a signal handler can read them; what does not fit is not taken along. */
void leftovers_add_group(pid_t group);
void leftovers_remove_group(pid_t group);
void leftovers_add_path(const char *path); /* copied; a file, or a folder that holds files alone */
void leftovers_remove_path(const char *path);

/* From here on SIGINT, SIGTERM and SIGHUP kill the groups and what their programs left behind, remove the paths, and
   then end this program as they do by default, SIGINT with the line of text_keep(). A signal that is ignored stays so.
 */
void leftovers_catch_signals(void);

/* A name and value for the environment of a program whose descendants must not outlive it, wherever they hide: a
   process group can be left, an environment is inherited. Distinct for each call. */
#define LEFTOVERS_MARK_BYTES 64
void leftovers_mark(char mark[LEFTOVERS_MARK_BYTES]);
/* Kills every process that has the mark, but for `spared` (0: none). Returns how many. */
int leftovers_kill_marked(const char *mark, pid_t spared);

#endif
