/* Rules of quantization. A launch that makes Q, K and V into codes itself takes their scales from what it reads:
     scale = amax / limit, code = x / scale, rounded   (engine/base/quantize.h)
   and a rule has the amax of other rows, another limit, or codes that are not rounded or not held to their range. What
   it gives, and its words. */
#include "engine/oracle/search/rule.h"

#include "engine/base/quantize.h"
#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/values.h"
#include "engine/trace/layout.h"
#include <stdio.h>
#include <string.h>

/* Puts x in its place among the largest ones so far, each of them once. */
static void note_largest(double *largest, double x)
{
    int i = LARGEST;
    while (i > 0 && largest[i - 1] < x)
        i--;
    if (i == LARGEST || (i > 0 && largest[i - 1] == x))
        return;
    memmove(largest + i + 1, largest + i, (size_t)(LARGEST - 1 - i) * sizeof *largest);
    largest[i] = x;
}

/* The largest magnitudes, and the largest values, of all rows of a head, [2][rows], and the LARGEST largest magnitudes;
   NULL without memory. */
static const double *amax_of(struct search *search, const struct source *source)
{
    const struct matrix *m = &source->rows;
    if (search->amax_of == source)
        return search->amax;
    double *amax = realloc(search->amax, (2 * (size_t)m->rows + LARGEST) * sizeof *amax);
    search->failed |= !amax;
    if (!amax)
        return NULL;
    memset(amax + 2 * (size_t)m->rows, 0, LARGEST * sizeof *amax);
    for (int r = 0; r < m->rows; r++) {
        amax[r] = amax[m->rows + r] = 0;
        for (int d = 0; d < m->cols; d++) {
            const double x = dtype_load(m->dtype, m->data, (size_t)(r * m->row_stride + d));
            amax[r] = fmax(amax[r], fabs(x));
            note_largest(amax + 2 * (size_t)m->rows, fabs(x));
            amax[m->rows + r] = fmax(amax[m->rows + r], x);
        }
    }
    search->amax = amax;
    search->amax_of = source;
    return amax;
}

/* The scale that rows `first` .. `end` - 1 make; of them alone those whose bits are `part`, if there are such bits. */
static double scale_of(const struct rule *rule, const struct source *source, const double *of_rows, int first, int end,
                       int part)
{
    const double *x = of_rows + (rule->is_signed ? source->rows.rows : 0);
    double amax = 0;
    for (int r = first; r < end && r < source->rows.rows; r++)
        if (rule->lanes.n == 0 || lane_bits_of(r, rule->lanes) == part)
            amax = fmax(amax, x[r]);
    return (double)quantizer_of(codes_type(source->coding.quantized), (float)amax, QUANTISE_DIVISION).scale *
           rule->factor;
}

/* u8 and s8 have 256 codes, from -128 to 127 as values. */
static double code_at(const struct rule *rule, enum dtype type, double y)
{
    enum { CODES = 256, LEAST = -128 };
    if (rule->wraps)
        return rint(y) - floor((rint(y) - LEAST) / CODES) * CODES;
    if (rule->down)
        return codes_round(type, floor(y));
    if (!rule->cuts || dtype_is_step_code(type))
        return codes_round(type, rule->cuts ? trunc(y + rule->plus) : y);
    return rounded_to_zero(type, y);
}

/* What is rounded to a code: in arithmetic of a narrow type the quotient, or the product with the reciprocal. */
static double quotient(const struct rule *rule, double x, double scale)
{
    if (rule->narrow_scale != NARROW_NONE)
        scale = bound_round(rule->type, scale);
    if (rule->type == DTYPE_COUNT || rule->wide_quotient)
        return x / scale;
    return bound_round(rule->type, rule->rounds_result ? x * bound_round(rule->type, 1 / scale) : x / scale);
}

/* As codes_load() has it: a quotient so near an edge that its rounding decides may become either code. */
static double code_of(const struct rule *rule, enum dtype type, double y, double *half)
{
    const bool on_edge = rule->type != DTYPE_COUNT && !rule->wide_quotient; /* a narrow number may lie on one itself */
    const double off = on_edge ? 0 : 8 * BOUND_U * fabs(y);
    const double low = code_at(rule, type, y - off), high = code_at(rule, type, y + off);
    *half = fabs(high - low) / 2;
    return (low + high) / 2;
}

/* The scale that one of the largest elements makes: the one that gives most of what the tile's first rows hold. */
static double scale_of_part(const struct rule *rule, const struct sample_tile *t, const struct source *source,
                            enum asc_channel ch, const double *largest)
{
    enum { ROWS = 4 };
    const enum dtype type = codes_type(source->coding.quantized);
    const bool raw = codes_use(t->c, ch) == CODES_RAW;
    double best = NAN;
    int most = 0;
    for (int i = 0; i < LARGEST && largest[i] > 0; i++) {
        const double scale = (double)quantizer_of(type, (float)largest[i], QUANTISE_DIVISION).scale;
        int met = 0;
        for (int k = 0; k < ROWS * t->cols && k < t->rows * t->cols; k++) {
            const int row = row_of_head(t, ch, k / t->cols);
            const double x = dtype_load(source->rows.dtype, source->rows.data,
                                        (size_t)(row * source->rows.row_stride + k % t->cols));
            const double code =
                code_at(rule, type, x / scale) * (raw ? 1 : scale) * (ch == asc_q ? values_fold(t->c) : 1);
            met += fabs(t->got[k] - code) <= 0x1p-10 * fabs(code);
        }
        if (met > most) {
            most = met;
            best = scale;
        }
    }
    return best;
}

/* What the block's first thread has of such rows, where all of a warp's lanes have as many elements: it alone has the
   amax of all. 0: nothing. */
static int of_first_thread(const struct rule *rule, int cols, int row)
{
    enum { LANES = 32 };
    const int rows = 1 << (rule->lanes.first + rule->lanes.n);
    return rule->lanes.down && row % rows == 0 ? (cols << rule->lanes.first) / LANES : 0;
}

bool quantized_forward(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                       double *bound)
{
    const enum asc_channel ch = search->sample->channel;
    const struct source *source = source_of(search, ch, head_of(search, t, ch));
    const bool raw = codes_use(t->c, ch) == CODES_RAW;
    double scale = 1, of_head = 0, of_part[1 << PART_BITS] = {0};
    int group = -1;
    if (!source || !source->rows.data || source->coding.quantized == ASC_QUANTIZED_GIVEN)
        return false;
    const double *amax = amax_of(search, source);
    if (!amax)
        return false;
    for (int i = 0; i < 1 << rule->lanes.n && rule->lanes.n > 0; i++) {
        of_part[i] = scale_of(rule, source, amax, 0, source->rows.rows, i);
        of_head = fmax(of_head, of_part[i]);
    }
    const double *stands_for = rule->lanes.low == STANDS_FOR_HEAD ? &of_head : rule->lanes.low ? of_part : &scale;
    for (int r = 0; r < t->rows; r++) {
        const int row = row_of_head(t, ch, r), part = lane_bits_of(row, rule->lanes);
        if (row >= source->rows.rows)
            return false;
        if (rule->lanes.n > 0)
            scale = of_part[part];
        else if (rule->rows.partly)
            scale = group < 0 ? scale_of_part(rule, t, source, ch, amax + 2 * (size_t)source->rows.rows) : scale;
        else if (group < 0 || (rule->share > 0 && row / rule->share != group))
            scale = rule->share > 0 ? scale_of(rule, source, amax, row / rule->share * rule->share,
                                               (row / rule->share + 1) * rule->share, 0)
                                    : scale_of(rule, source, amax, 0, source->rows.rows, 0);
        group = rule->share > 0 ? row / rule->share : 0;
        const double back = raw                                   ? 1
                            : rule->lanes.n > 0                   ? *stands_for
                            : rule->narrow_scale == NARROW_STANDS ? bound_round(rule->type, scale)
                                                                  : scale;
        for (int d = 0; d < t->cols; d++) {
            const size_t i = (size_t)r * (size_t)t->cols + (size_t)d;
            const double x =
                dtype_load(source->rows.dtype, source->rows.data, (size_t)(row * source->rows.row_stride + d));
            double half = 0;
            const double by = d < of_first_thread(rule, t->cols, row) ? of_head : scale;
            want[i] = code_of(rule, codes_type(source->coding.quantized), quotient(rule, x, by), &half) * back;
            /* As codes_load() has it, and the factor's rounding. */
            bound[i] = half * back + (raw ? 0 : 6 * BOUND_U * fabs(want[i]) * BOUND_SLACK + BOUND_TINY);
            if (ch == asc_q)
                want[i] *= values_fold(t->c);
        }
    }
    return true;
}

static void say_rows(int share, char *out, size_t bytes)
{
    if (share > 0)
        snprintf(out, bytes, "%d row%s", share, share == 1 ? "" : "s");
    else
        snprintf(out, bytes, "a head");
}

void quantized_say(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    const struct oracle_case *c = s->tiles[0].c;
    const struct coding *own = codes_of(c, s->channel);
    const char *stage = channel_label(s->channel);
    const double limit = 1 / (double)quantizer_of(codes_type(own->quantized), 1, QUANTISE_DIVISION).scale;
    char share[24], wanted[24];
    say_rows(rule->share, share, sizeof share);
    say_rows(own->rows, wanted, sizeof wanted);
    char part[32];
    lane_bits_words(rule->lanes, "r", part, sizeof part);
    if (rule->rows.partly)
        snprintf(out, bytes, "scales of %s are made of a part of it alone, without its largest elements%s", stage,
                 rule->wraps ? ", and a code that is too large wraps around" : "");
    else if (rule->lanes.down)
        snprintf(
            out, bytes,
            "codes of %s are made by the amax of rows with the same %s alone, and all stand for the scale of the head; "
            "the first %d elements of every %d rows are made by that, as where one thread alone has it",
            stage, part, of_first_thread(rule, s->tiles[0].cols, 0), 1 << (rule->lanes.first + rule->lanes.n));
    else if (rule->lanes.n > 0)
        snprintf(out, bytes, "codes of %s are made by the amax of rows with the same %s alone%s%s%s", stage, part,
                 rule->lanes.low == STANDS_FOR_HEAD ? ", and all stand for the scale of the head"
                 : rule->lanes.low                  ? ", and all stand for the scale of those with "
                                                    : "",
                 rule->lanes.low == STANDS_FOR_FIRST ? part : "", rule->lanes.low == STANDS_FOR_FIRST ? " = 0" : "");
    else if (rule->is_signed)
        snprintf(out, bytes, "scales of %s are made of its largest value, not of its largest magnitude%s", stage,
                 rule->wraps ? ", and a code that is too small wraps around" : "");
    else if (rule->type != DTYPE_COUNT && rule->wide_quotient)
        snprintf(out, bytes, "codes of %s are made by a scale that is rounded to %s%s", stage, dtype_name(rule->type),
                 rule->narrow_scale == NARROW_STANDS ? ", and stand for it" : ", and stand for it as it was");
    else if (rule->type != DTYPE_COUNT)
        snprintf(out, bytes, "codes of %s are made in %s: %s%s, is rounded to it first%s", stage,
                 dtype_name(rule->type), rule->narrow_scale ? "the scale, and then " : "",
                 rule->rounds_result ? "1 / scale, and what it gives" : "what is divided by the scale",
                 rule->narrow_scale == NARROW_STANDS ? "; they stand for that scale" : "");
    else if (rule->down)
        snprintf(out, bytes, "codes of %s are rounded down, not to the nearest", stage);
    else if (rule->cuts && rule->plus != 0)
        snprintf(out, bytes,
                 "codes of %s are rounded by adding %g and cutting off, as is right of positive ones alone: negative "
                 "ones are one too high",
                 stage, rule->plus);
    else if (rule->cuts)
        snprintf(out, bytes, "codes of %s are cut off, not rounded", stage);
    else if (rule->share != own->rows)
        snprintf(out, bytes, "%s has a scale for %s where it should be for %s", stage, share, wanted);
    else if (fabs(rule->factor - 1) > 1e-6)
        snprintf(out, bytes, "scales of %s are amax / %g where they should be amax / %g%s", stage,
                 rint(2 * limit / rule->factor) / 2, rint(limit),
                 rule->wraps ? ", and a code that is too large wraps around" : "");
    else
        snprintf(out, bytes, "codes of %s that are too large wrap around", stage);
}
