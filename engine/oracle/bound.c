#include "engine/oracle/bound.h"

#include "engine/oracle/product.h"
#include <stdio.h>
#include <string.h>

int bound_narrow(enum dtype t, double *unit, double *half_tiny)
{
    *unit = 0;
    *half_tiny = 0;
    switch (t) {
    case DTYPE_F16: /* 11 significant bits, smallest subnormal 2^-24 */
        *unit = 0x1p-11;
        *half_tiny = 0x1p-25;
        return 1;
    case DTYPE_BF16: /* 8, 2^-133 */
        *unit = 0x1p-8;
        *half_tiny = 0x1p-134;
        return 1;
    case DTYPE_E4M3: /* 4, 2^-9 */
        *unit = 0x1p-4;
        *half_tiny = 0x1p-10;
        return 1;
    case DTYPE_E5M2: /* 3, 2^-16 */
        *unit = 0x1p-3;
        *half_tiny = 0x1p-17;
        return 1;
    default:
        return 0;
    }
}

double bound_round(enum dtype t, double x)
{
    uint64_t room = 0;
    dtype_store(t, &room, 0, x);
    return dtype_load(t, &room, 0);
}

/* A power of two brings x to where every type has all of its precision, and room. */
double bound_round_unlimited(enum dtype t, double x)
{
    int exponent = 0;
    if (!isfinite(x) || !(fabs(frexp(x, &exponent)) > 0) || exponent < 1)
        return bound_round(t, x);
    return ldexp(bound_round(t, ldexp(x, -exponent)), exponent);
}

/* "γ(65)", or of a tensor core what each chunk of L products may cost: (L+1) terms cut F bits below the largest, the
   sum cut to R bits; and `more` roundings around the product. */
static void product_words(int accumulator, int n, int more, char *out, size_t bytes)
{
    const enum tensor_core model = product_loosest(accumulator, n);
    int products = 0;
    int fraction = 0;
    int result = 0;
    if (model == TENSOR_CORE_F32) {
        snprintf(out, bytes, "γ(%d)", n + more);
        return;
    }
    tensor_core_shape(model, &products, &fraction, &result);
    const int chunks = (n + products - 1) / products;
    snprintf(out, bytes, "(%d (%d 2^-%d + 2^-%d) + %d %s)", chunks, products + 1, fraction, result, more,
             product_rounding(accumulator) > BOUND_U ? "2^-11" : "u");
}

static const char *formula(enum asc_channel ch)
{
    switch (ch) {
    case asc_q:
    case asc_k:
    case asc_v:
        return "exactly the input, rounded to the recorded type";
    case asc_m:
        return "0: a maximum rounds nothing";
    case asc_alpha:
        return "α (2⁻²² + u + 3.25 u |m_prev - m| + 2 u |m|) + 2⁻¹²⁶; in log2 units without 2 u |m|";
    case asc_p:
        return "p (2⁻²² + u + 3.25 u |s - m| + 2 u |m|) + 2⁻¹²⁶; in log2 units without 2 u |m|";
    case asc_l:
        return "γ(Bc+6) (α l_prev + Σp)";
    case asc_o:
        return "4 u |o|, then between both ends rounded to the output's type";
    case asc_lse:
        return "3.6e-7 + 6 u |ln l| + 2 u |m| + u |lse|";
    default:
        return "";
    }
}

void bound_formula(enum asc_channel ch, const struct asc_conventions *declared, int head_dim, int bc, char *out,
                   size_t bytes)
{
    char product[96];
    if (ch == asc_s) {
        product_words(declared->acc_s, head_dim, declared->s_unit == ASC_UNIT_LOG2 ? 3 : 1, product, sizeof product);
        snprintf(out, bytes, "%s c Σ|q k|, γ(n) = n u/(1 - n u), u = 2⁻²⁴", product);
    } else if (ch == asc_u) {
        product_words(declared->acc_u, bc, 2, product, sizeof product);
        snprintf(out, bytes, "%s (|α u_prev| + Σ|p v|)", product);
    } else {
        snprintf(out, bytes, "%s", formula(ch));
    }
    const size_t used = strlen(out);
    const int tile = declared->p_max == ASC_P_MAX_TILE, divides = declared->u_norm == ASC_U_NORM_TILE;
    if (tile && ch == asc_p)
        snprintf(out + used, bytes - used, "; m is this tile's maximum, t");
    else if ((tile && ch == asc_l) || (tile && !divides && ch == asc_u))
        snprintf(out + used, bytes - used, "; p is exp(t - m) p and its error, t being this tile's maximum");
    else if (divides && ch == asc_u)
        snprintf(out + used, bytes - used, "; %sl_prev and 1 / l, with 6 u more", tile ? "p times exp(t - m), " : "");
}
