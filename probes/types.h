/* Which element type the bits of a C++ type are. */
#ifndef ASC_TYPES_H
#define ASC_TYPES_H

#include "probes/abi.h"

/* Types are only declared here, so that a kernel includes the CUDA headers it needs and no others. */
struct __half;
struct __nv_bfloat16;
struct __nv_fp8_e4m3;
struct __nv_fp8_e5m2;

/* enum asc_dtype, or -1 of a type that was not named. */
template <class Element> struct asc_code {
    static constexpr int dtype = -1;
};
template <class Element> struct asc_type : asc_code<Element> {
    static_assert(asc_code<Element>::dtype >= 0,
                  "attnscope cannot record this type; ASC_TYPE(type, ASC_F16) says what its bits are");
};
/* Says it, at namespace scope. */
#define ASC_TYPE(type, code)                                                                                           \
    template <> struct asc_code<type> {                                                                                \
        static constexpr int dtype = code;                                                                             \
        using named = void;                                                                                            \
    }
ASC_TYPE(__half, ASC_F16);
ASC_TYPE(__nv_bfloat16, ASC_BF16);
ASC_TYPE(float, ASC_F32);
ASC_TYPE(double, ASC_F64);
ASC_TYPE(__nv_fp8_e4m3, ASC_E4M3);
ASC_TYPE(__nv_fp8_e5m2, ASC_E5M2);
ASC_TYPE(unsigned char, ASC_U8);
ASC_TYPE(signed char, ASC_S8);
ASC_TYPE(int, ASC_I32);
ASC_TYPE(long, ASC_I64);
ASC_TYPE(long long, ASC_I64);

#endif
