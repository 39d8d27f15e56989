#include "engine/oracle/bound.h"

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

const char *bound_formula(enum asc_channel ch)
{
    switch (ch) {
    case asc_q:
    case asc_k:
    case asc_v:
        return "exactly the input, rounded to the recorded type";
    case asc_s:
        return "γ(D+1) c Σ|q k|, γ(n) = n u/(1 - n u), u = 2⁻²⁴";
    case asc_m:
        return "0: a maximum rounds nothing";
    case asc_alpha:
        return "α (2⁻²² + u + 3.25 u |m_prev - m| + 2 u |m|) + 2⁻¹²⁶; in log2 units without 2 u |m|";
    case asc_p:
        return "p (2⁻²² + u + 3.25 u |s - m| + 2 u |m|) + 2⁻¹²⁶; in log2 units without 2 u |m|";
    case asc_l:
        return "γ(Bc+6) (α l_prev + Σp)";
    case asc_u:
        return "γ(Bc+2) (|α u_prev| + Σ|p v|)";
    case asc_o:
        return "4 u |o|, then between both ends rounded to the output's type";
    case asc_lse:
        return "3.6e-7 + 6 u |ln l| + 2 u |m| + u |lse|";
    default:
        return "";
    }
}
