// split: three splits, and a sink that is added as they are merged.

#define SPLITS 3
#define SINK ASC_SINK_END
#define PAGED 0
#include "attention.h"

ASC_KERNEL(split)
{
    describe(kernel);
}
