/* cp.async. A copy happens where its group is waited for, as late as a GPU may do it. */
#ifndef SIMT_CUDA_PIPELINE_PRIMITIVES_H
#define SIMT_CUDA_PIPELINE_PRIMITIVES_H

#include "simt_keywords.h"

/* The bytes are read here too, for an address that is none to show at this line. */
static inline void __pipeline_memcpy_async(void *shared, const void *global, size_t bytes, size_t zfill = 0, SIMT_SITE)
{
    if (zfill < bytes)
        (void)*static_cast<const volatile unsigned char *>(global);
    simt_copy_async(shared, global, bytes, zfill, simt_file, simt_line);
}

static inline void __pipeline_commit()
{
    simt_copy_commit();
}

static inline void __pipeline_wait_prior(size_t groups_left)
{
    simt_copy_wait(groups_left);
}

#endif
