#include "engine/oracle/operand.h"

#include "engine/base/vector.h"
#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/reference.h"
#include "engine/oracle/values.h"
#include <float.h>

VECTOR_UNITS static int all_finite(const double *x, int n)
{
    int64_t unreal = 0;
    for (int i = 0; i < n; i++)
        unreal |= !(fabs(x[i]) <= DBL_MAX);
    return unreal == 0;
}

static int equal(const double *x, const double *y, int n)
{
    for (int i = 0; i < n; i++)
        if (!(x[i] == y[i]))
            return 0;
    return 1;
}

/* What was captured is the input, bit for bit and finite: one array is all there is to it. */
static void take_same(const struct judge_scratch *s, double *input, struct stage *stage)
{
    stage->recorded = 1;
    stage->got = stage->want[LOCAL] = stage->want[GLOBAL] = input;
    stage->bound[LOCAL] = stage->bound[GLOBAL] = (double *)s->room.zero;
}

/* 1 if the bits of the input are those of the operand: neither a scale nor the launch's own rounding comes between. */
static int holds_values_taken(const struct oracle_case *c, enum asc_channel ch)
{
    return codes_use(c, ch) == CODES_NONE || (codes_use(c, ch) == CODES_RAW && !codes_of(c, ch)->quantized);
}

int operand_take(const struct oracle_case *c, struct judge_scratch *s, enum asc_channel ch)
{
    const struct matrix *captured = scratch_captured(s, c, ch), *input = codes_input(c, ch);
    const struct original_input *own = &s->input[ch];
    const double **size = &s->at.size[ch];
    struct operand *use = &s->at.of[ch];
    struct stage *stage = &s->stage[ch];
    const int n = stage->rows * stage->cols, first = ch == asc_q ? 0 : s->at.kv * c->bc;
    const int coded = codes_use(c, ch) != CODES_NONE;
    if (ch != asc_q)
        reference_load(c, s, ch);
    /* What a code becomes is rounded before it is converted: that is no one number in the captured type. */
    const double *loose = coded && own->lossy ? own->loose : s->room.zero;
    s->at.unseen[ch] = own->lossy && !captured->data;
    stage->recorded = 0;
    stage->got = stage->got_room;
    stage->want[LOCAL] = stage->want_room;
    *use = (struct operand){own->value, s->room.zero, 1};
    *size = own->size;
    const double fold = ch == asc_q ? values_fold(c) : 1;
    const double *in = own->value;
    if (fold != 1) {
        /* scale and log2 e make a constant that has been rounded up to twice, the product once. */
        double *folded = s->prepared.folded_q;
        for (int i = 0; i < n; i++) {
            folded[i] = own->value[i] * fold;
            s->prepared.folded_bound[i] = bound_convert(folded[i]) + loose[i] * fabs(fold) + BOUND_TINY;
            own->abs_room[i] = fabs(own->size[i] * fold);
        }
        in = use->value = folded;
        *size = own->abs_room;
        s->at.folds_unseen = !captured->data;
    }
    if (!captured->data)
        return fold == 1 && !own->lossy;
    const int fed = scratch_fed(s, c, ch) != NULL;
    if (fold == 1 && !fed && holds_values_taken(c, ch) && values_same(captured, input, first) &&
        all_finite(own->value, n)) {
        take_same(s, own->value, stage);
        return 1;
    }
    scratch_take(s, c, ch);
    double unit = 0;
    double half_tiny = 0;
    const int narrow = bound_narrow(captured->dtype, &unit, &half_tiny) && captured->dtype != input->dtype && !coded;
    const int same = fed && fold == 1 && equal(use->value, own->value, n) && all_finite(own->value, n);
    for (int i = 0; i < n; i++) {
        /* A NaN or an infinity in the input is where the trouble starts: it never counts as right. */
        stage->want[LOCAL][i] = !isfinite(in[i])      ? NAN
                                : narrow && fold == 1 ? bound_round(captured->dtype, in[i])
                                                      : in[i];
        own->abs_room[i] = fabs(use->value[i]);
    }
    stage->want[GLOBAL] = stage->want[LOCAL];
    stage->bound[LOCAL] = fold == 1 ? (double *)loose : s->prepared.folded_bound;
    stage->bound[GLOBAL] = stage->bound[LOCAL];
    *size = own->abs_room;
    return same;
}
