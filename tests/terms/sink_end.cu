// sink_end: the sink is added after the last tile.

#define SPLITS 1
#define SINK ASC_SINK_END
#define PAGED 0
#include "attention.h"

ASC_KERNEL(sink_end)
{
    describe(kernel);
}
