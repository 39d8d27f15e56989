#include "engine/oracle/operand.h"

#include "engine/base/vector.h"
#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/truth.h"
#include "engine/oracle/values.h"
#include <float.h>

struct operand {
    const struct matrix *input;
    const double *loose;    /* how far the kernel's own may lie from a coded input before it is rounded */
    int lossy;              /* 1: converting the input may have moved it */
    int *unseen;            /* 1: where no probe sees it */
    double *in;             /* the input, from the operand's first row on */
    const double **in_size; /* what of it takes part in sums of magnitudes */
    double *size;           /* room for the magnitude of the captured values */
    const double **use;     /* where local formulas look for the magnitude */
    int first;              /* row of the input that the operand begins with */
};

static struct operand operand_of(const struct oracle_case *c, struct judge_scratch *s, enum asc_channel ch)
{
    const int first = s->kv * c->bc;
    switch (ch) {
    case asc_q:
        return (struct operand){&c->in_q, s->loose_q, s->lossy_q, &s->unseen_q, s->in_q, &s->in_q_size,
                                s->abs_q, &s->use_q,  0};
    case asc_k:
        return (struct operand){&c->in_k,      s->loose_k, s->lossy_k, &s->unseen_k, s->in_k,
                                &s->in_k_size, s->abs_k,   &s->use_k,  first};
    default:
        return (struct operand){&c->in_v,      s->loose_v, s->lossy_v, &s->unseen_v, s->in_v,
                                &s->in_v_size, s->abs_v,   &s->use_v,  first};
    }
}

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
static void take_same(const struct judge_scratch *s, const struct operand *o, struct stage *stage)
{
    stage->recorded = 1;
    stage->got = stage->want[LOCAL] = stage->want[GLOBAL] = o->in;
    stage->bound[LOCAL] = stage->bound[GLOBAL] = s->zero;
}

/* 1 if the bits of the input are those of the operand: neither a scale nor the launch's own rounding comes between. */
static int holds_values_taken(const struct oracle_case *c, enum asc_channel ch)
{
    return codes_use(c, ch) == CODES_NONE || (codes_use(c, ch) == CODES_RAW && !codes_of(c, ch)->quantised);
}

int operand_take(const struct oracle_case *c, struct judge_scratch *s, enum asc_channel ch)
{
    if (ch != asc_q)
        truth_load(c, s, ch);
    const struct operand o = operand_of(c, s, ch);
    const struct matrix *captured = scratch_captured(s, c, ch);
    struct stage *stage = &s->stage[ch];
    const int n = stage->rows * stage->cols;
    const int coded = codes_use(c, ch) != CODES_NONE;
    /* What a code becomes is rounded before it is converted: that is no one number in the captured type. */
    const double *loose = coded && o.lossy ? o.loose : s->zero;
    *o.unseen = o.lossy && !captured->data;
    stage->recorded = 0;
    stage->got = stage->got_room;
    stage->want[LOCAL] = stage->want_room;
    stage->loose = s->zero;
    stage->exact = 1;
    stage->value = o.in;
    *o.use = *o.in_size;
    const double fold = ch == asc_q ? values_fold(c) : 1;
    const double *in = o.in;
    if (fold != 1) {
        /* scale and log2 e make a constant that has been rounded up to twice, the product once. */
        for (int i = 0; i < n; i++) {
            s->folded_q[i] = o.in[i] * fold;
            s->folded_bound[i] = bound_convert(s->folded_q[i]) + loose[i] * fabs(fold) + BOUND_TINY;
            o.size[i] = fabs((*o.in_size)[i] * fold);
        }
        in = stage->value = s->folded_q;
        *o.use = o.size;
        s->folds_unseen = !captured->data;
    }
    if (!captured->data)
        return fold == 1 && !o.lossy;
    const int fed = scratch_fed(s, c, ch) != NULL;
    if (fold == 1 && !fed && holds_values_taken(c, ch) && values_same(captured, o.input, o.first) &&
        all_finite(o.in, n)) {
        take_same(s, &o, stage);
        return 1;
    }
    scratch_take(s, c, ch);
    double unit = 0;
    double half_tiny = 0;
    const int narrow = bound_narrow(captured->dtype, &unit, &half_tiny) && captured->dtype != o.input->dtype && !coded;
    const int same = fed && fold == 1 && equal(stage->value, o.in, n) && all_finite(o.in, n);
    for (int i = 0; i < n; i++) {
        /* A NaN or an infinity in the input is where the trouble starts: it never counts as right. */
        stage->want[LOCAL][i] = !isfinite(in[i])      ? NAN
                                : narrow && fold == 1 ? bound_round(captured->dtype, in[i])
                                                      : in[i];
        o.size[i] = fabs(stage->value[i]);
    }
    stage->want[GLOBAL] = stage->want[LOCAL];
    stage->bound[LOCAL] = fold == 1 ? (double *)loose : s->folded_bound;
    stage->bound[GLOBAL] = stage->bound[LOCAL];
    *o.use = o.size;
    return same;
}
