/* Complex numbers. */
#ifndef SIMT_CU_COMPLEX_H
#define SIMT_CU_COMPLEX_H

#include "vector_functions.h"

typedef float2 cuFloatComplex;
typedef cuFloatComplex cuComplex;
typedef double2 cuDoubleComplex;

static inline cuFloatComplex make_cuFloatComplex(float real, float imaginary)
{
    return make_float2(real, imaginary);
}

static inline cuDoubleComplex make_cuDoubleComplex(double real, double imaginary)
{
    return make_double2(real, imaginary);
}

static inline float cuCrealf(cuFloatComplex x)
{
    return x.x;
}

static inline float cuCimagf(cuFloatComplex x)
{
    return x.y;
}

static inline double cuCreal(cuDoubleComplex x)
{
    return x.x;
}

static inline double cuCimag(cuDoubleComplex x)
{
    return x.y;
}

#endif
