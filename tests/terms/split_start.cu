// split_start: three splits, of which the first begins with the sink; their keys lie in pages.

#define SPLITS 3
#define SINK ASC_SINK_START
#define PAGED 1
#include "attention.h"

ASC_KERNEL(split_start)
{
    describe(kernel);
}
