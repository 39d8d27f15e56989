/* Q, K and V as they were filled last: a run that is filled alike finds them ready. */
#ifndef RUN_FILLED_H
#define RUN_FILLED_H

#include "engine/scenario/scenario.h"

/* Of more than this together nothing is kept. */
#define FILLED_BYTES ((size_t)256 << 20)

/* Zero-initialize; free with filled_free(). */
struct filled {
    struct filled_tensor {
        void *values; /* owned; NULL: none */
        size_t bytes;
        struct asc_strides stride;
        int batch, heads, rows, cols;
        enum dtype dtype;
        struct fill fill;
    } of[3];
};

/* What fill_tensor() would make of a tensor, the caller's from now on; NULL: it is not here. */
void *filled_take(struct filled *f, const struct asc_problem *p, int tensor, const struct fill *fill);
/* Takes over what fill_tensor() made, unchanged since. */
void filled_keep(struct filled *f, const struct asc_problem *p, int tensor, const struct fill *fill, void *values);
void filled_free(struct filled *f);

#endif
