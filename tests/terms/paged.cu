// paged: keys in pages: a tile lies anywhere, but its number is its place in the sequence.

#define SPLITS 1
#define SINK ASC_SINK_NONE
#define PAGED 1
#include "attention.h"

ASC_KERNEL(paged)
{
    describe(kernel);
}
