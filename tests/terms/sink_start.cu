// sink_start: m and l begin with the sink.

#define SPLITS 1
#define SINK ASC_SINK_START
#define PAGED 0
#include "attention.h"

ASC_KERNEL(sink_start)
{
    describe(kernel);
}
