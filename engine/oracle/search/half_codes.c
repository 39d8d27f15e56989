/* Rules of codes of half a byte: RULE_HALF. The codes of Q, K or V are e2m1, two in a byte, and a kernel takes the
   other one of the byte, or reads its four bits as another format. What it gives, and its words. */
#include "engine/oracle/search/rule.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/values.h"
#include "engine/trace/layout.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *words;
    double value[16]; /* of each code; half: the other one of its byte is read */
} readings[HALF_READINGS] = {
    [HALF_EXCHANGED] = {"the two codes of each byte of %s are exchanged", {0}},
    [HALF_LOW] = {"the lower code of each byte of %s is taken for both", {0}},
    [HALF_HIGH] = {"the upper code of each byte of %s is taken for both", {0}},
    [HALF_BY_ROW] = {"which code of a byte of %s is taken goes by the row, not by the column", {0}},
    [HALF_ROWS_EXCHANGED] = {"the two codes of each byte of %s, of rows 2 i and 2 i + 1, are exchanged", {0}},
    [HALF_ROWS_LOW] = {"the lower code of each byte of %s, of row 2 i, is taken for row 2 i + 1 as well", {0}},
    [HALF_ROWS_HIGH] = {"the upper code of each byte of %s, of row 2 i + 1, is taken for row 2 i as well", {0}},
    [HALF_BY_COLUMN] = {"which code of a byte of %s is taken goes by the column, not by the row", {0}},
    [HALF_UNSIGNED] = {"the codes of %s are read without their sign",
                       {0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, 0.5, 1, 1.5, 2, 3, 4, 6}},
    [HALF_NEGATED] = {"the codes of %s are read with the wrong sign",
                      {-0.0, -0.5, -1, -1.5, -2, -3, -4, -6, 0, 0.5, 1, 1.5, 2, 3, 4, 6}},
    [HALF_NO_SUBNORMAL] = {"the codes of %s are read as if e2m1 had no subnormal number: 0.5 as 0.75",
                           {0, 0.75, 1, 1.5, 2, 3, 4, 6, 0, -0.75, -1, -1.5, -2, -3, -4, -6}},
    [HALF_ONE_MORE] = {"the codes of %s are read with an exponent bias of 0, not 1",
                       {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}},
    [HALF_E1M2] = {"the codes of %s are read as e1m2: one bit of exponent, two of significand",
                   {0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 0, -0.25, -0.5, -0.75, -1, -1.25, -1.5, -1.75}},
    [HALF_E3M0] = {"the codes of %s are read as e3m0",
                   {0, 0.25, 0.5, 1, 2, 4, 8, 16, 0, -0.25, -0.5, -1, -2, -4, -8, -16}},
    [HALF_INT4] = {"the codes of %s are read as int4", {0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1}},
    [HALF_UINT4] = {"the codes of %s are read as four bits without a sign",
                    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
    [HALF_OFFSET] = {"the codes of %s are read as four bits less 8",
                     {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7}},
    [HALF_MAGNITUDE] = {"the codes of %s are read as a sign and a whole number of three bits",
                        {0, 1, 2, 3, 4, 5, 6, 7, 0, -1, -2, -3, -4, -5, -6, -7}}};

/* Whose code stands for that of a row and a column. */
static void take_place(enum half_reading reading, int *r, int *col)
{
    const int row = *r, c = *col;
    switch (reading) {
    case HALF_EXCHANGED:
        *col = c ^ 1;
        break;
    case HALF_LOW:
        *col = c & ~1;
        break;
    case HALF_HIGH:
        *col = c | 1;
        break;
    case HALF_BY_ROW:
        *col = (c & ~1) | (row & 1);
        break;
    case HALF_ROWS_EXCHANGED:
        *r = row ^ 1;
        break;
    case HALF_ROWS_LOW:
        *r = row & ~1;
        break;
    case HALF_ROWS_HIGH:
        *r = row | 1;
        break;
    case HALF_BY_COLUMN:
        *r = (row & ~1) | (c & 1);
        break;
    default:
        break;
    }
}

/* What is read as element `at` of a tile of rows from `first` on: codes times scales. NaN: the tile does not have it.
 */
static double read_half(const struct sample_tile *t, const struct rule *rule, int first, int rows, int at,
                        const double *values)
{
    const enum asc_channel of = rule->rows.operand;
    const int cols = oracle_dim(t->c, of), row = first + at / cols, col = at % cols;
    int r = row, from = col;
    take_place(rule->half, &r, &from);
    if (r >= first + rows)
        return NAN;
    const double step = codes_step(t->c, of, row, col), own = codes_step(t->c, of, r, from);
    const double value = values[(ptrdiff_t)(r - first) * cols + from];
    uint8_t code = 0;
    if (rule->half < HALF_OF_PLACES)
        return value / own * step;
    dtype_store(DTYPE_E2M1, &code, 0, value / own);
    /* Of a code of -0 a value may have lost its sign, as 0 times a scale: both are what they were. */
    code &= 0xF;
    return (rule->half == HALF_TABLE ? (double)rule->table[code] : readings[rule->half].value[code]) * step;
}

static void read_all(const struct sample_tile *t, const struct rule *rule, const double *value, int rows, double *out)
{
    const enum asc_channel of = rule->rows.operand;
    const int cols = oracle_dim(t->c, of), first = of == asc_q ? 0 : t->kv * t->c->bc;
    for (int i = 0; i < rows * cols; i++)
        out[i] = read_half(t, rule, first, rows, i, value);
}

int half_table(const struct sample *s, float table[HALF_CODES])
{
    enum { STEPS = 64 }; /* of 1: every number of four bits that people read has them */
    const enum asc_channel of = s->channel;
    bool met[HALF_CODES] = {false};
    int other = 0;
    for (int k = 0; k < s->n; k++) {
        const struct sample_tile *t = &s->tiles[k];
        const int first = of == asc_q ? 0 : t->kv * t->c->bc;
        for (int i = 0; i < t->rows * t->cols; i++) {
            const double step = codes_step(t->c, of, first + i / t->cols, i % t->cols);
            const double read = rint(t->got[i] / step * STEPS) / STEPS;
            uint8_t code = 0;
            if (!isfinite(t->got[i]) || !(step > 0))
                continue;
            dtype_store(DTYPE_E2M1, &code, 0, t->want[i] / step);
            code &= HALF_CODES - 1;
            if (met[code] && (double)table[code] != read)
                return 0;
            met[code] = true;
            table[code] = (float)read;
        }
    }
    for (int code = 0; code < HALF_CODES; code++) {
        const uint8_t bits = (uint8_t)code;
        const float own = (float)dtype_load(DTYPE_E2M1, &bits, 0);
        if (!met[code])
            table[code] = own;
        other += table[code] != own;
    }
    return other;
}

bool half_forward(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                  double *bound)
{
    const enum asc_channel of = rule->rows.operand, stage = search->sample->channel;
    const int cols = oracle_dim(t->c, of), rows = stage == of ? t->rows : of == asc_q ? t->c->in_q.rows : t->x.cols;
    double unit = 0x1p-8, half_tiny = 0; /* of bf16, where nobody knows what the values are used as */
    if (codes_use(t->c, of) != CODES_DESCALED || codes_input(t->c, of)->dtype != DTYPE_E2M1)
        return false;
    const int type = values_type(t->c, of);
    if (type >= 0)
        bound_narrow((enum dtype)type, &unit, &half_tiny);
    if (stage == of) {
        read_all(t, rule, t->want, rows, want);
        for (size_t i = 0; i < sample_cells(t); i++)
            bound[i] = isnan(want[i]) ? INFINITY : t->bound[i] + (unit + 4 * BOUND_U) * fabs(want[i]);
        return true;
    }
    struct operands x = t->x;
    if (!x.of[of].value || (rule->half >= HALF_OF_ROWS && rule->half < HALF_OF_PLACES))
        return false;
    read_all(t, rule, x.of[of].value, rows, search->operand);
    for (int i = 0; i < rows * cols; i++) /* and what rounding it to its type may add, where nobody sees it */
        search->loose[i] = fabs(search->operand[i]) * (x.unseen[of] ? 1 + unit + 4 * BOUND_U : 1) + half_tiny;
    x.of[of].value = search->operand;
    x.size[of] = search->loose;
    if (of == asc_v)
        x.input_v = search->operand;
    search_formula(search, t, &x, want, bound);
    return true;
}

/* "codes of K are read as other numbers: 0 as 0.5, 0.5 as 0.75, -0 as -0.5, -0.5 as -0.75" */
static void say_table(const struct rule *rule, char *out, size_t bytes)
{
    enum { SHOWN = 4 };
    int other = 0;
    snprintf(out, bytes, "codes of %s are read as other numbers:", channel_label(rule->rows.operand));
    for (int i = 0; i < HALF_CODES; i++) {
        const uint8_t code = (uint8_t)i;
        const double own = dtype_load(DTYPE_E2M1, &code, 0), read = (double)rule->table[i];
        const size_t used = strlen(out);
        if (read != own && other++ < SHOWN)
            snprintf(out + used, bytes - used, "%s %g as %g", other > 1 ? "," : "", own, read);
    }
    if (other > SHOWN)
        snprintf(out + strlen(out), bytes - strlen(out), " and %d more", other - SHOWN);
}

void half_say(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    (void)s;
    if (rule->half == HALF_TABLE)
        say_table(rule, out, bytes);
    else
        snprintf(out, bytes, readings[rule->half].words, channel_label(rule->rows.operand));
}
