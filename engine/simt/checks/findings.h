/* What the checks found: each pair of places is told once, with how often it was met. */
#ifndef CHECKS_FINDINGS_H
#define CHECKS_FINDINGS_H

#include "engine/simt/simt.h"
#include "engine/trace/event.h"

#include <stddef.h>
#include <stdint.h>

/* A place in the program: the address behind a call of a hook, or a call that came with its line. 0: none. */
uint32_t site_of_line(const void *call, const char *file, int line);

/* Of one worker: pairs of sites that it has met. Open addressing; what does not fit is not counted. */
#define FINDINGS_MAX 1024u
#define RECORDERS 4u /* an unrolled probe has several sites */
struct findings {
    unsigned n;
    struct finding_count {
        uint32_t site, other;
        uint16_t kind; /* 1 + enum event_kind; 0: free */
        uint16_t number;
        uint16_t held; /* 1 + its place among those; 0: it is not */
        uint32_t times;
        uint32_t recorder[RECORDERS]; /* sites of probes that have recorded the bytes of them; 0: no more */
    } at[FINDINGS_MAX];
};

struct checks;
/* It has to be told: say it with finding_tell(). False: it was only counted. Takes c->recorder, which is 0 then. */
bool finding_count(struct checks *c, enum event_kind kind, uint32_t site, uint32_t other_site);
void finding_tell(struct checks *c, enum event_kind kind, uint32_t site, uint32_t other_site, unsigned thread,
                  const char *format, ...) __attribute__((format(printf, 6, 7)));
/* The same of what is likely to do no harm: said at the launch's end, behind all that does, unless it is told before.
   finding_is_held: so far it waits for that. */
void finding_hold(struct checks *c, enum event_kind kind, uint32_t site, uint32_t other_site, unsigned thread,
                  const char *format, ...) __attribute__((format(printf, 6, 7)));
bool finding_is_held(struct checks *c, enum event_kind kind, uint32_t site, uint32_t other_site);

void findings_begin_launch(void);
void findings_clear(struct findings *f);
/* Adds a worker's counts to those of the launch; then tells those of more than one. */
void findings_add(const struct findings *f);
void findings_end_launch(void);

#endif
