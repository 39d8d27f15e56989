// dealt: three splits, to which the kv tiles are dealt round robin; the first begins with the sink.

#define SPLITS 3
#define SINK ASC_SINK_START
#define PAGED 0
#define DEAL ASC_DEAL_ROUND_ROBIN
#include "attention.h"

ASC_KERNEL(dealt)
{
    describe(kernel);
}
