/* Saving a trace (up to gigabytes) beside the event loop. */
#ifndef TUI_SAVE_H
#define TUI_SAVE_H

#include "engine/session/session.h"
#include <pthread.h>
#include <stdbool.h>

struct saver {
    pthread_t thread;
    bool active;                   /* between saver_start and saver_finish; the session's trace must stay until then */
    int fd;                        /* owned: eventfd, readable when the thread is done; -1 before saver_init */
    const struct session *session; /* borrowed */
    int number;                    /* of the run; 0: the one that is shown */
    char path[512];
    bool failed;
    struct err err;
};

int saver_init(struct saver *v, struct err *err);
void saver_free(struct saver *v); /* waits for a save under way */

/* number: of the run, 0: what is shown. The name that the user gave the run, else the scenario's, else the kernel's;
   NAME.safetensors in the current folder, NAME-2, NAME-3, ... where files of that name exist already. */
int saver_choose_path(const struct session *s, int number, char *path, size_t bytes, struct err *err);
/* path: NULL for that one; a file that exists already is not written over. */
int saver_start(struct saver *v, const struct session *s, int number, const char *path, struct err *err);
int saver_finish(struct saver *v, struct err *err); /* waits; 0 saved to v->path, -1 */

#endif
