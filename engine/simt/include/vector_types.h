/* float4 and its like, with CUDA's sizes and alignments (CUDA C++ Programming Guide, built-in vector types), and dim3.
 */
#ifndef SIMT_VECTOR_TYPES_H
#define SIMT_VECTOR_TYPES_H

/* SIMT_VECTOR(prefix, element, alignment of the vectors of 2, 3 and 4) */
#define SIMT_VECTOR(prefix, element, align2, align3, align4)                                                           \
    struct prefix##1                                                                                                   \
    {                                                                                                                  \
        element x;                                                                                                     \
    };                                                                                                                 \
    struct alignas(align2) prefix##2                                                                                   \
    {                                                                                                                  \
        element x, y;                                                                                                  \
    };                                                                                                                 \
    struct alignas(align3) prefix##3                                                                                   \
    {                                                                                                                  \
        element x, y, z;                                                                                               \
    };                                                                                                                 \
    struct alignas(align4) prefix##4                                                                                   \
    {                                                                                                                  \
        element x, y, z, w;                                                                                            \
    };
#include "simt_vectors.def"
#undef SIMT_VECTOR

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned vx = 1, unsigned vy = 1, unsigned vz = 1) : x(vx), y(vy), z(vz) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    constexpr operator uint3() const
    {
        return uint3{x, y, z};
    }
};

#endif
