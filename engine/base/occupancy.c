#include "engine/base/occupancy.h"

#include <stdio.h>

/* CUDA's own occupancy calculation, cuda_occupancy.h, for compute capabilities 7.0 and later: registers are given to
   warps in units of 256, each warp out of one of four partitions of the register file; shared memory in units of 128
   bytes (256 on 7.x, where the reserved bytes are none and the difference does not show in whole KiB). */
enum { WARP = 32, REGISTER_UNIT = 256, PARTITIONS = 4, SHARED_UNIT = 128 };

static int round_up(int value, int unit)
{
    return (value + unit - 1) / unit * unit;
}

void occupancy_blocks(const struct occupancy_device *device, const struct occupancy_block *block,
                      int blocks[OCCUPANCY_LIMITS])
{
    const int warps = block->threads > WARP ? (block->threads + WARP - 1) / WARP : 1;
    const int warp_registers = round_up(block->registers * WARP, REGISTER_UNIT);
    const int shared = round_up(block->shared_bytes + device->reserved_shared_bytes, SHARED_UNIT);
    blocks[LIMIT_WARPS] = device->warps / warps;
    blocks[LIMIT_BLOCKS] = device->blocks;
    blocks[LIMIT_REGISTERS] = device->blocks;
    if (warp_registers > 0)
        blocks[LIMIT_REGISTERS] = device->registers / PARTITIONS / warp_registers * PARTITIONS / warps;
    blocks[LIMIT_SHARED] = shared > 0 ? device->shared_bytes / shared : device->blocks;
}

void occupancy_limited_by(const int blocks[OCCUPANCY_LIMITS], int resident, char *text, size_t size)
{
    static const char *const names[OCCUPANCY_LIMITS] = {"warps", "blocks", "registers", "shared memory"};
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < OCCUPANCY_LIMITS && used < size; i++)
        if (blocks[i] == resident)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", names[i]);
}
