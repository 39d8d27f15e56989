// mapped: kv tiles are dealt to up to four splits as a function says, to each sequence another number of them, in no
// order; some have none. The first begins with the sink.

#define SPLITS 4
#define SINK ASC_SINK_START
#define PAGED 0
#define DEAL ASC_DEAL_MAP
#define STATE(batch, head, q_tile, kv_tile)                                                                            \
    ((((kv_tile) + 1) * ((kv_tile) + (head)) + (q_tile)) % (3 - (batch)) + (batch))
#include "attention.h"

ASC_KERNEL(mapped)
{
    describe(kernel);
    kernel.state = [](const asc_problem *, const asc_plan *, int32_t batch, int32_t head, int32_t q_tile,
                      int32_t kv_tile) -> int32_t { return STATE(batch, head, q_tile, kv_tile); };
}
