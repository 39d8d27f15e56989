/* What keeps more blocks of a kernel from being on a multiprocessor at a time. */
#ifndef BASE_OCCUPANCY_H
#define BASE_OCCUPANCY_H

#include <stddef.h>

/* Of a multiprocessor; as cudaDeviceGetAttribute says. */
struct occupancy_device {
    int warps, blocks, registers;
    int shared_bytes;
    int reserved_shared_bytes; /* of every block, the system's own */
};

/* Of a block. */
struct occupancy_block {
    int threads;
    int registers;    /* of a thread */
    int shared_bytes; /* static and dynamic */
};

enum occupancy_limit { LIMIT_WARPS, LIMIT_BLOCKS, LIMIT_REGISTERS, LIMIT_SHARED, OCCUPANCY_LIMITS };

/* How many blocks each of them alone allows; compute capability 7.0 and later. */
void occupancy_blocks(const struct occupancy_device *device, const struct occupancy_block *block,
                      int blocks[OCCUPANCY_LIMITS]);

/* The resources that allow no more than `resident` blocks: "registers", "warps, shared memory"; "" where none explains
   the number. */
void occupancy_limited_by(const int blocks[OCCUPANCY_LIMITS], int resident, char *text, size_t size);

#endif
