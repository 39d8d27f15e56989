#include "engine/verdict/measured.h"

#include "engine/oracle/values.h"
#include "engine/trace/conventions.h"
#include "engine/verdict/case.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Most slots with a fault that are looked at. */
enum { SLOTS_LOOKED = 64 };

struct measuring {
    enum asc_channel ch;
    double unit; /* 1 of m in log2 units */
    /* Of m: the most it lies below the running maximum, in log2 units; whether it lies above anywhere, beyond its
       bound; whether a row's is one number from its first tile to its last. */
    double lag;
    bool above, moves, any;
    double *row; /* [br] m of the row so far; NaN: none yet */
    /* Of p: got / want. */
    double low, high;
    bool odd; /* an element that no factor explains */
};

static void measure_m(struct measuring *a, const struct tile_detail *d)
{
    for (int r = 0; r < d->rows; r++) {
        const double got = d->got[r], want = d->want_local[r], bound = d->bound_local[r];
        if (!isfinite(got)) {
            a->odd |= !(got == want);
            continue;
        }
        a->moves |= !isnan(a->row[r]) && a->row[r] != got;
        a->row[r] = got;
        a->any = true;
        a->above |= (got - want) * a->unit > bound * fabs(a->unit);
        if ((want - got) * a->unit > a->lag)
            a->lag = (want - got) * a->unit;
    }
}

/* Weights that underflow to nothing have no ratio. */
static void measure_p(struct measuring *a, const struct tile_detail *d)
{
    for (int i = 0; i < d->rows * d->cols; i++) {
        const double ratio = d->got[i] / d->want_local[i];
        if (!(d->want_local[i] > 0x1p-60) || d->class_local[i] == CLASS_UNJUDGED)
            continue;
        a->odd |= !(ratio > 0 && isfinite(ratio));
        a->low = a->any ? fmin(a->low, ratio) : ratio;
        a->high = a->any ? fmax(a->high, ratio) : ratio;
        a->any = true;
    }
}

static void measure(void *ctx, const struct tile_detail *d)
{
    struct measuring *a = ctx;
    if (d->channel == (int)a->ch)
        (a->ch == asc_m ? measure_m : measure_p)(a, d);
}

static int measure_slot(const struct trace *t, int slot, struct judge_scratch *scratch, struct measuring *a)
{
    const size_t rows = (size_t)(t->plan.br > t->plan.bc ? t->plan.br : t->plan.bc),
                 cols = (size_t)(t->problem.head_dim > t->plan.bc ? t->problem.head_dim : t->plan.bc), n = rows * cols;
    double *numbers = calloc(n * 5, sizeof *numbers);
    uint8_t *classes = calloc(n * 2, sizeof *classes);
    struct tile_verdicts *verdicts = calloc((size_t)t->layout.kv_tiles * ASC_CHANNELS, sizeof *verdicts);
    struct slot_case c = {0};
    int failed = !numbers || !classes || !verdicts || slot_case_make(t, slot, &c) != 0;
    if (!failed) {
        struct tile_detail d = {.each = measure,
                                .ctx = a,
                                .got = numbers,
                                .want_local = numbers + n,
                                .bound_local = numbers + 2 * n,
                                .want_global = numbers + 3 * n,
                                .bound_global = numbers + 4 * n,
                                .class_local = classes,
                                .class_global = classes + n};
        a->unit = values_natural_m(&c.c) * M_LOG2E;
        for (int r = 0; r < t->plan.br; r++)
            a->row[r] = NAN;
        failed = judge_case(&c.c, scratch, verdicts, &d);
    }
    slot_case_free(&c);
    free(numbers);
    free(classes);
    free(verdicts);
    return failed;
}

static bool slot_is_bad(const struct judgement *j, int slot, enum asc_channel ch)
{
    for (int kv = 0; kv < j->kv_tiles; kv++)
        if (judgement_tile_bad(j, (struct place){slot, kv, ch}, 0))
            return true;
    return false;
}

/* NAME = CHOICE, as conventions.def spells it. */
static void name_choice(int convention, int value, char out[64])
{
    char choice[32];
    convention_choice(convention, value, choice, sizeof choice);
    snprintf(out, 64, "%s = %s", conventions[convention].name, choice);
}

static bool words_of_m(const struct trace *t, const struct measuring *a, char *out, size_t bytes)
{
    const double most = conventions[CONVENTION_OF_m_lag].high;
    char choice[64];
    if (a->above && !a->moves && t->conventions.m_policy != ASC_M_FIXED) {
        name_choice(CONVENTION_OF_m_policy, ASC_M_FIXED, choice);
        snprintf(out, bytes, "m is one number of the row from its first tile on: %s", choice);
        return true;
    }
    if (a->above || !(a->lag > 0 && a->lag <= most))
        return false;
    name_choice(CONVENTION_OF_m_policy, ASC_M_LAGGING, choice);
    const double least = ceil(a->lag * 1000) / 1000; /* what is declared has room for it */
    snprintf(out, bytes, "m lags by up to %.4g (log2): %s, m_lag = %g or more", a->lag, choice, least);
    return true;
}

/* A factor is the same for all elements but for the rounding of P; what errs by less than a hundredth either way is an
   exponential of less precision. */
static bool words_of_p(const struct trace *t, const struct measuring *a, char *out, size_t bytes)
{
    const int type = t->layout.channel[asc_p].dtype;
    const double rounding = type == DTYPE_F32 ? 0x1p-16 : type == DTYPE_F16 ? 0x1p-9 : 0x1p-6;
    const double factor = sqrt(a->low * a->high), log_of = log2(factor), whole = rint(log_of);
    const double error = fmax(fabs(a->low - 1), fabs(a->high - 1));
    if (a->high / a->low - 1 <= rounding && fabs(factor - 1) > rounding) {
        const double declared = t->conventions.p_factor > 0 ? (double)t->conventions.p_factor : 1;
        if (fabs(factor / exp2(whole) - 1) <= rounding)
            snprintf(out, bytes, "P carries 2^%g: p_offset = %g", whole, t->conventions.p_offset + whole);
        else
            snprintf(out, bytes, "P carries 2^%.4g: p_factor = %.6g", log_of, declared * factor);
        return true;
    }
    if (type != DTYPE_F32 || error > 0.01)
        return false;
    snprintf(out, bytes, "exp errs by up to %.2g: exp_error = %.2g or more", error, 1.1 * error);
    return true;
}

bool measured_words(const struct judgement *j, const struct trace *t, enum asc_channel ch,
                    struct judge_scratch *scratch, char *out, size_t bytes)
{
    struct measuring a = {.ch = ch};
    int failed = ch != asc_m && ch != asc_p;
    a.row = failed ? NULL : calloc((size_t)t->plan.br, sizeof *a.row);
    failed |= !a.row;
    for (int slot = 0, looked = 0; slot < j->n_slots && looked < SLOTS_LOOKED && !failed; slot++)
        if (slot_is_bad(j, slot, ch)) {
            failed = measure_slot(t, slot, scratch, &a);
            looked++;
        }
    free(a.row);
    return !failed && a.any && !a.odd && (ch == asc_m ? words_of_m : words_of_p)(t, &a, out, bytes);
}
