/* Telling the host what a kernel did. */
#ifndef CPU_REPORT_H
#define CPU_REPORT_H

#include "engine/runners/cpu/worker.h"

/* One report: a kind of simt.h, where (file may be NULL), whose thread (NULL: that which runs), a sentence. The same
   kind at the same line is reported once a launch. A fatal one also becomes simt_error(). */
void report_raise(const char *kind, int fatal, const char *file, int line, const struct fiber *who, const char *format,
                  ...) __attribute__((format(printf, 6, 7)));

/* One that the caller has found to be new. who: whose thread; NULL: block, thread and tile stay as they are. */
void report_send(struct simt_report *report, const struct fiber *who);

void report_begin_launch(void); /* forgets what has been reported, and the error */
const char *report_error(void); /* sentence of the launch's first fatal report, or NULL */
void report_set_error(const char *text);

/* locate.c. locate_init may be called again. The source line that a signal handler's kernel code was at: of the
   innermost frame of the user's own code, inlined ones included, from pc outwards. 0, or -1: unknown. */
void locate_init(void);
int locate_user_line(uintptr_t pc, const char **file, int *line);
/* Whether a file is part of attnscope or of the system rather than the user's. */
int locate_is_foreign(const char *file);

#endif
