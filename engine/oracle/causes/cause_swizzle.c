/* Tiles that are read under another swizzle than they were stored with: chunk i of row r stands at i ^ f(r). Where both
   are an XOR with some bits of the row, what is read is piece i ^ (r & mask) of the same row, mask being the bits in
   which the two differ; so long as that stays in the row. */
#include "engine/oracle/causes/cause.h"

#include "engine/oracle/values.h"
#include <stdio.h>

/* In which Q, K or V lies in shared memory: as it is recorded, or as it was given. */
static enum dtype type_of(const struct oracle_case *c, enum asc_channel ch)
{
    const struct matrix *input = ch == asc_q ? &c->in_q : ch == asc_k ? &c->in_k : &c->in_v;
    const int recorded = values_type(c, ch);
    return recorded >= 0 ? (enum dtype)recorded : input->dtype;
}

/* How many 16-byte pieces a row has; 0: it is no whole number. */
static int pieces(const struct oracle_case *c, enum asc_channel ch)
{
    const int bytes = c->head_dim * (int)dtype_bytes(type_of(c, ch));
    return bytes % 16 ? 0 : bytes / 16;
}

/* Masks of consecutive bits, of each length from each bit on; each with Q and K, Q or K. */
enum { SWIZZLE_BITS = 5, SWIZZLE_OPERANDS = 3 };

struct swizzle cause_swizzle(double parameter)
{
    const int i = (int)parameter, mask = i / SWIZZLE_OPERANDS, operand = i % SWIZZLE_OPERANDS;
    const unsigned from = (unsigned)(mask / SWIZZLE_BITS), bits = (unsigned)(mask % SWIZZLE_BITS) + 1;
    return (struct swizzle){((1u << bits) - 1) << from, operand != 2, operand != 1};
}

/* A mask stays within the row where the number of pieces is a multiple of the power of two above it. */
static int stays(int pieces, unsigned mask)
{
    unsigned above = 1;
    while (above <= mask)
        above *= 2;
    return pieces > 0 && (unsigned)pieces % above == 0;
}

static double swizzle_value(const struct walk_tile *tile, enum asc_channel ch, int i, int step)
{
    const int n = pieces(tile->c, ch);
    for (int at = 0; at < SWIZZLE_BITS * SWIZZLE_BITS * SWIZZLE_OPERANDS; at += step)
        if (stays(n, cause_swizzle(at).mask) && i-- == 0)
            return at;
    return NAN;
}

static double swizzle_of_s_value(const struct walk_tile *tile, int i)
{
    return swizzle_value(tile, asc_k, i, 1);
}

static void swizzle_of_s_describe(const struct oracle_case *c, double value, char *text, size_t bytes)
{
    const struct swizzle s = cause_swizzle(value);
    (void)c;
    snprintf(text, bytes, "%s, mask %u", s.of_q && s.of_k ? "both" : s.of_q ? "Q" : "K", s.mask);
}

const struct cause_parameter parameter_swizzle_of_s = {swizzle_of_s_value, swizzle_of_s_describe};
void cause_swizzle_operand(const struct candidate *k, enum asc_channel ch, unsigned mask, double *out)
{
    const struct stage *stage = &k->tile->s->stage[ch];
    const size_t piece = 16 / dtype_bytes(type_of(k->tile->c, ch)), D = (size_t)stage->cols;
    for (size_t r = 0; r < (size_t)stage->rows; r++)
        for (size_t d = 0; d < D; d++)
            out[r * D + d] = k->tile->s->at.of[ch].value[r * D + ((d / piece) ^ (r & mask)) * piece + d % piece];
}
