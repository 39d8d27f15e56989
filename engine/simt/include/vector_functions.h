/* make_float4 and its like. */
#ifndef SIMT_VECTOR_FUNCTIONS_H
#define SIMT_VECTOR_FUNCTIONS_H

#include "vector_types.h"

#define SIMT_VECTOR(prefix, element, align2, align3, align4)                                                           \
    static inline constexpr prefix##1 make_##prefix##1(element x)                                                      \
    {                                                                                                                  \
        return prefix##1 {x};                                                                                          \
    }                                                                                                                  \
    static inline constexpr prefix##2 make_##prefix##2(element x, element y)                                           \
    {                                                                                                                  \
        return prefix##2 {x, y};                                                                                       \
    }                                                                                                                  \
    static inline constexpr prefix##3 make_##prefix##3(element x, element y, element z)                                \
    {                                                                                                                  \
        return prefix##3 {x, y, z};                                                                                    \
    }                                                                                                                  \
    static inline constexpr prefix##4 make_##prefix##4(element x, element y, element z, element w)                     \
    {                                                                                                                  \
        return prefix##4 {x, y, z, w};                                                                                 \
    }
#include "simt_vectors.def"
#undef SIMT_VECTOR

#endif
