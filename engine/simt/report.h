/* Telling the host what a kernel did. */
#ifndef SIMT_REPORT_H
#define SIMT_REPORT_H

#include "engine/simt/worker.h"
#include "engine/trace/layout.h"

/* One report: what, where (file NULL: where the thread stands), whose thread (NULL: that which runs), a
   sentence. The same kind at the same line, called from the same line of the kernel's body, is reported once a launch.
   A fatal one also becomes simt_error(). */
void report_raise(enum event_kind kind, bool fatal, const char *file, int line, const struct fiber *who,
                  const char *format, ...) __attribute__((format(printf, 6, 7)));

bool report_same_place(const struct simt_frame *a, const struct simt_frame *b);

/* One that the caller has found to be new. who: whose thread; NULL: block, thread and tile stay as they are. */
void report_send(struct simt_report *report, const struct fiber *who);

void recorders_begin_run(void);
void recorders_take_values(const struct asc_value values[ASC_OWN_CHANNELS]); /* the kernel's own, for their names */
void recorders_begin_launch(void); /* forgets which block recorded what (recorders.c) */
void report_begin_launch(void);    /* forgets what has been reported, and the error */
const char *report_error(void);    /* sentence of the launch's first fatal report, or NULL */
void report_set_error(const char *text);

/* stands.c: where the warps of a worker's block stand is reported from that worker's thread, within a moment. */
void stands_begin(void);
void stands_ask(pthread_t worker);

/* locate.c. locate_init may be called again. */
void locate_init(void);
/* The user's own frames. */
struct locate {
    uintptr_t pc;     /* of the instruction, or behind a call; 0: where the calling thread stands */
    bool exact;       /* of the instruction */
    bool is_running;  /* the calling thread is there: its callers are followed too */
    const char *file; /* as the compiler says the place; NULL: unknown */
    int line;
    const void *const
        *callers; /* return addresses farther out, n_callers of them, where is_running is false; borrowed */
    int n_callers;
    uintptr_t body; /* within the function that is the kernel's body; 0: unknown */
};
void locate_stack(const struct locate *what, struct simt_stack *out);
/* The outermost frame; of n 0 one without a file. */
struct simt_frame locate_call(const struct simt_stack *stack);
/* "copy_async" of "_ZN4copy10copy_asyncILi16EEEvPvPKv" and of "copy_async<16>": without namespaces, template arguments
   and parameters. "": not known. function may be NULL. */
void locate_name(const char *function, char *name, size_t size);

#endif
