/* Memory whose neighborhood nobody may reach. */
#ifndef SIMT_GUARDED_H
#define SIMT_GUARDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct guarded {
    unsigned char *mapping; /* owned; NULL: none */
    size_t bytes, guard;    /* of the mapping, of the zone on either side */
};
/* bytes that end where the zone begins, give or take their alignment: the address; NULL: no memory. */
void *guarded_new(struct guarded *g, size_t bytes, size_t align);
/* Whether what lies between them and the zones is as it was. */
bool guarded_intact(const struct guarded *g, const void *at, size_t bytes);
void guarded_reach(const struct guarded *g, bool reached); /* or every access to it is a fault */
void guarded_free(struct guarded *g);

void array_fill(void *array, size_t bytes, uint16_t pattern);

#endif
