#include "engine/scenario/normal.h"

#include "engine/base/vector.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

_Static_assert(FLT_EVAL_METHOD == 0, "wider intermediate results would change the bits of every input");

/* x = m 2^e with m in [sqrt(1/2), sqrt(2)); ln x = e ln 2 + 2 atanh(s), s = (m - 1) / (m + 1), |s| < 0.1716.
   atanh(s) = s + s^3/3 + s^5/5 + ...: the first term left out, s^23/23, is below 2^-60 s. ln 2 in two parts, as in
   fdlibm: the high one has 21 zero bits at its end, so that e ln2_high is exact. */
double normal_log(double x)
{
    const double ln2_high = 0x1.62e42fee00000p-1, ln2_low = 0x1.a39ef35793c76p-33;
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int e = (int)(bits >> 52 & 0x7ff) - 1023;
    bits = (bits & UINT64_C(0xfffffffffffff)) | UINT64_C(1023) << 52;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m >= 0x1.6a09e667f3bcdp+0) { /* sqrt(2) */
        m *= 0.5;
        e++;
    }
    const double s = (m - 1.0) / (m + 1.0), z = s * s;
    double sum = 0.0;
    for (int k = 21; k >= 3; k -= 2)
        sum = (sum + 1.0 / k) * z;
    return e * ln2_high + (2.0 * s + (2.0 * s * sum + e * ln2_low));
}

static double polynomial(const double c[8], double x)
{
    double sum = c[7];
    for (int i = 6; i >= 0; i--)
        sum = sum * x + c[i];
    return sum;
}

/* PPND16 of M. J. Wichura, "Algorithm AS 241: The Percentage Points of the Normal Distribution", Applied Statistics 37
   (1988) 477-484: relative error about 1e-16. */
#define CENTRAL 0.425
static const double central_over[8] = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                                       1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                       3.3430575583588128105e+4, 2.5090809287301226727e+3};
static const double central_under[8] = {1.0,
                                        4.2313330701600911252e+1,
                                        6.8718700749205790830e+2,
                                        5.3941960214247511077e+3,
                                        2.1213794301586595867e+4,
                                        3.9307895800092710610e+4,
                                        2.8729085735721942674e+4,
                                        5.2264952788528545610e+3};

double normal_quantile(double p)
{
    static const double c[8] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                                3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                                2.27238449892691845833e-2, 7.74545014278341407640e-4};
    static const double d[8] = {1.0,
                                2.05319162663775882187e0,
                                1.67638483018380384940e0,
                                6.89767334985100004550e-1,
                                1.48103976427480074590e-1,
                                1.51986665636164571966e-2,
                                5.47593808499534494600e-4,
                                1.05075007164441684324e-9};
    static const double e[8] = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                                2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                2.71155556874348757815e-5, 2.01033439929228813265e-7};
    static const double f[8] = {1.0,
                                5.99832206555887937690e-1,
                                1.36929880922735805310e-1,
                                1.48753612908506148525e-2,
                                7.86869131145613259100e-4,
                                1.84631831751005468180e-5,
                                1.42151175831644588870e-7,
                                2.04426310338993978564e-15};
    const double q = p - 0.5;
    if (q >= -CENTRAL && q <= CENTRAL) {
        const double r = 0.180625 - q * q;
        return q * (polynomial(central_over, r) / polynomial(central_under, r));
    }
    const double r = sqrt(-normal_log(q < 0.0 ? p : 1.0 - p));
    const double x =
        r <= 5.0 ? polynomial(c, r - 1.6) / polynomial(d, r - 1.6) : polynomial(e, r - 5.0) / polynomial(f, r - 5.0);
    return q < 0.0 ? -x : x;
}

static inline void polynomials(const double c[8], const lanes_f64 *x, lanes_f64 *out)
{
    *out = (lanes_f64){0} + c[7];
    for (int i = 6; i >= 0; i--)
        *out = *out * *x + c[i];
}

VECTOR_UNITS static void central_quantiles(const double *p, int n, double *x)
{
    for (int i = 0; i + LANES <= n; i += LANES) {
        const lanes_f64 q = LANES_LOAD(p + i) - 0.5, r = 0.180625 - q * q;
        lanes_f64 over, under;
        polynomials(central_over, &r, &over);
        polynomials(central_under, &r, &under);
        over = q * (over / under);
        memcpy(x + i, &over, sizeof over);
    }
}

void normal_quantiles(const double *p, int n, double *x)
{
    const int all = n / LANES * LANES;
    central_quantiles(p, all, x);
    for (int i = 0; i < n; i++)
        if (i >= all || !(fabs(p[i] - 0.5) <= CENTRAL))
            x[i] = normal_quantile(p[i]);
}
