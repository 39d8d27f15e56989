#include "engine/verdict/measured.h"

#include "engine/oracle/values.h"
#include "engine/trace/conventions.h"
#include "engine/verdict/case.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
        if (!(d->want_local[i] > 0x1p-60) || d->class_local[i] == STATUS_UNJUDGED)
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
    struct slot_case c;
    if (slot_case_make(t, slot, &c) != 0)
        return -1;
    a->unit = values_natural_m(&c.c) * M_LOG2E;
    for (int r = 0; r < t->plan.br; r++)
        a->row[r] = NAN;
    const int failed = judge_each(&c.c, scratch, measure, a);
    slot_case_free(&c);
    return failed;
}

static bool slot_is_bad(const struct judgement *j, int slot, unsigned channels)
{
    for (int i = 0; i < j->kv_tiles * ASC_CHANNELS; i++) {
        const struct place place = {slot, i / ASC_CHANNELS, (enum asc_channel)(i % ASC_CHANNELS)};
        if (channels >> place.channel & 1 && (channel_per_kv(place.channel) || place.kv == 0) &&
            judgement_tile_bad(j, place, 0))
            return true;
    }
    return false;
}

/* NAME = CHOICE, as conventions.def spells it. */
static void name_choice(int convention, int value, char *out, size_t bytes)
{
    char choice[32];
    convention_choice(convention, value, choice, sizeof choice);
    snprintf(out, bytes, "%s = %s", conventions[convention].name, choice);
}

static bool words_of_m(const struct trace *t, const struct measuring *a, struct declared_otherwise *out)
{
    const double most = conventions[CONVENTION_OF_m_lag].high;
    char choice[64];
    if (a->above && !a->moves && t->conventions.m_policy != ASC_M_FIXED) {
        name_choice(CONVENTION_OF_m_policy, ASC_M_FIXED, out->fields, sizeof out->fields);
        snprintf(out->why, sizeof out->why, "m is constant in each row from its first tile on");
        return true;
    }
    if (a->above || !(a->lag > 0 && a->lag <= most))
        return false;
    name_choice(CONVENTION_OF_m_policy, ASC_M_LAGGING, choice, sizeof choice);
    const double least = ceil(a->lag * 1000) / 1000; /* what is declared has room for it */
    snprintf(out->why, sizeof out->why, "m lags by up to %.4g (log2)", a->lag);
    snprintf(out->fields, sizeof out->fields, "%s, m_lag = %g or more", choice, least);
    return true;
}

/* A factor is the same for all elements but for the rounding of P; what errs by less than a hundredth either way is an
   exponential of less precision. */
static bool words_of_p(const struct trace *t, const struct measuring *a, struct declared_otherwise *out)
{
    const int type = t->layout.channel[asc_p].dtype;
    const double rounding = type == DTYPE_F32 ? 0x1p-16 : type == DTYPE_F16 ? 0x1p-9 : 0x1p-6;
    const double factor = sqrt(a->low * a->high), log_of = log2(factor), whole = rint(log_of);
    const double error = fmax(fabs(a->low - 1), fabs(a->high - 1));
    if (a->high / a->low - 1 <= rounding && fabs(factor - 1) > rounding) {
        const double declared = t->conventions.p_factor > 0 ? (double)t->conventions.p_factor : 1;
        const bool power = fabs(factor / exp2(whole) - 1) <= rounding;
        snprintf(out->why, sizeof out->why, "P carries 2^%.4g", power ? whole : log_of);
        if (power)
            snprintf(out->fields, sizeof out->fields, "p_offset = %g", t->conventions.p_offset + whole);
        else
            snprintf(out->fields, sizeof out->fields, "p_factor = %.6g", declared * factor);
        return true;
    }
    if (type != DTYPE_F32 || error > 0.01)
        return false;
    snprintf(out->why, sizeof out->why, "exp has a relative error of up to %.2g", error);
    snprintf(out->fields, sizeof out->fields, "exp_error = %.2g or more", 1.1 * error);
    return true;
}

bool declaration_measured(const struct judgement *j, const struct trace *t, enum asc_channel ch,
                          struct judge_scratch *scratch, struct declared_otherwise *out)
{
    struct measuring a = {.ch = ch};
    int failed = ch != asc_m && ch != asc_p;
    a.row = failed ? NULL : calloc((size_t)t->plan.br, sizeof *a.row);
    failed |= !a.row;
    for (int slot = 0, looked = 0; slot < j->n_slots && looked < SLOTS_LOOKED && !failed; slot++)
        if (slot_is_bad(j, slot, 1u << ch)) {
            failed = measure_slot(t, slot, scratch, &a);
            looked++;
        }
    free(a.row);
    return !failed && a.any && !a.odd && (ch == asc_m ? words_of_m : words_of_p)(t, &a, out);
}

/* Slots that a declaration is tried on, and the most multiplications that judging one of them may take. */
enum { SLOTS_TRIED = 3, SLOT_WORK_MAX = 1 << 26 };

struct trying {
    struct judge_scratch *scratch;
    struct tile_verdicts *verdicts; /* [kv_tiles][ASC_CHANNELS] */
    int slot[SLOTS_TRIED], n_slots;
    /* As declared so far. */
    uint64_t bad[ASC_CHANNELS], unjudged[ASC_CHANNELS];
};

/* Wrong elements of each stage of the slots by these declarations, and those that may be anything. */
static int count(struct trying *x, const struct trace *as, uint64_t bad[ASC_CHANNELS], uint64_t unjudged[ASC_CHANNELS],
                 bool *output_right)
{
    int failed = 0;
    memset(bad, 0, ASC_CHANNELS * sizeof *bad);
    memset(unjudged, 0, ASC_CHANNELS * sizeof *unjudged);
    *output_right = true;
    for (int i = 0; i < x->n_slots && !failed; i++) {
        struct slot_case c = {0};
        failed = slot_case_make(as, x->slot[i], &c) != 0 || judge_case(&c.c, x->scratch, x->verdicts, NULL) != 0;
        for (int k = 0; k < as->layout.kv_tiles * ASC_CHANNELS && !failed; k++) {
            const enum asc_channel ch = (enum asc_channel)(k % ASC_CHANNELS);
            bad[ch] += verdict_bad(&x->verdicts[k].local);
            unjudged[ch] += x->verdicts[k].local.unjudged;
            *output_right &= (ch != asc_o && ch != asc_lse) || verdict_bad(&x->verdicts[k].global) == 0;
        }
        slot_case_free(&c);
    }
    return failed;
}

/* Whether these declarations leave nothing wrong in the stages of `right`, and in what comes before the last of them no
   more than now. What may be any number then is not right for it. */
static int fits(struct trying *x, const struct trace *as, unsigned right, bool *out)
{
    uint64_t bad[ASC_CHANNELS], unjudged[ASC_CHANNELS];
    const int failed = count(x, as, bad, unjudged, out);
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        if (right >> ch) /* right, or before one that is to be */
            *out &= unjudged[ch] <= x->unjudged[ch] && bad[ch] <= (right >> ch & 1 ? 0 : x->bad[ch]);
    return failed;
}

/* kv tiles that are dealt to states of their own: m, alpha, l and U begin anew, and O and LSE are merged. */
static int try_splits(struct trying *x, const struct trace *t, unsigned culprits, char out[DECLARATION_BYTES])
{
    static const int states[] = {2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 24, 32, 48, 64};
    bool fit = false;
    int failed = 0;
    for (size_t i = 0; i < 2 * sizeof states / sizeof states[0] && !fit && !failed; i++) {
        struct trace as = *t;
        as.alpha_found = 0; /* the first tile of which state is another question */
        as.plan.kv_splits = states[i / 2];
        as.plan.kv_deal = i % 2 ? ASC_DEAL_ROUND_ROBIN : ASC_DEAL_RANGES;
        if (as.plan.kv_splits > as.layout.kv_tiles)
            break;
        failed = fits(x, &as, culprits, &fit);
        if (fit && !failed)
            snprintf(out, DECLARATION_BYTES, "kv_splits = %d, kv_deal = %s", (int)as.plan.kv_splits,
                     plan_deal_names[as.plan.kv_deal]);
    }
    return failed;
}

/* What is measured, or has causes that tell the types apart, or changes what is multiplied. */
static bool is_tried(const struct trace *t, int convention, int value)
{
    switch (convention) {
    case CONVENTION_OF_acc_s:
    case CONVENTION_OF_acc_u:
        return value == ASC_ACC_MMA;
    case CONVENTION_OF_m_policy:
    case CONVENTION_OF_p_rounded:
    case CONVENTION_OF_l_from:
    case CONVENTION_OF_kv_head_map:
    case CONVENTION_OF_quantized:
    case CONVENTION_OF_quantized_by:
    case CONVENTION_OF_qk_descale:
    case CONVENTION_OF_v_descale:
    case CONVENTION_OF_no_lse:
        return false;
    default:
        return conventions[convention].kind == CONVENTION_CHOICE &&
               value != convention_get(&t->conventions, convention);
    }
}

/* Every choice that makes this stage right, one after the other; the first of them is in force from here on. */
static int try_choices(struct trying *x, struct trace *as, enum asc_channel ch, char out[DECLARATION_BYTES])
{
    struct asc_conventions found = as->conventions;
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < CONVENTIONS; i++) {
        for (int value = 0; value <= conventions[i].high && conventions[i].kind == CONVENTION_CHOICE; value++) {
            struct trace other = *as;
            bool fit = false;
            struct err err;
            convention_set(&other.conventions, i, value);
            conventions_resolve(&other.conventions, &other.problem);
            if (!is_tried(as, i, value) || conventions_same(&other.conventions, &as->conventions) ||
                conventions_check(&other.conventions, "", &err) != 0)
                continue;
            if (fits(x, &other, 1u << ch, &fit) != 0)
                return -1;
            if (!fit)
                continue;
            char choice[64];
            name_choice(i, value, choice, sizeof choice);
            if (used == 0)
                found = other.conventions;
            if (used + strlen(choice) + sizeof " or " <= DECLARATION_BYTES)
                used += (size_t)snprintf(out + used, DECLARATION_BYTES - used, "%s%s", used ? " or " : "", choice);
        }
    }
    as->conventions = found;
    return 0;
}

/* Stage by stage: what makes one right is in force for those behind. */
static int try_stages(struct trying *x, const struct trace *t, unsigned culprits, struct declared_otherwise *out)
{
    struct trace as = *t;
    uint64_t declared[ASC_CHANNELS];
    const char *last = "";
    int failed = 0;
    memcpy(declared, x->bad, sizeof declared);
    for (int ch = 0; ch < ASC_CHANNELS && !failed; ch++) {
        bool right;
        if (!(culprits >> ch & 1))
            continue;
        failed = count(x, &as, x->bad, x->unjudged, &right);
        out[ch].follows = declared[ch] > 0 && x->bad[ch] == 0;
        if (out[ch].follows)
            snprintf(out[ch].fields, sizeof out[ch].fields, "%s", last);
        else if (x->bad[ch] > 0 && !failed)
            failed = try_choices(x, &as, (enum asc_channel)ch, out[ch].fields);
        if (out[ch].fields[0])
            snprintf(out[ch].why, sizeof out[ch].why, "%s is right under a different declaration",
                     channel_label((enum asc_channel)ch));
        else
            break; /* what is judged by it tells nothing */
        last = out[ch].fields;
    }
    return failed;
}

/* The first, the last and one between of the slots with a bad tile of a culprit, as far as they are not too large. */
static void choose_slots(const struct judgement *j, const struct trace *t, unsigned culprits, struct trying *x)
{
    const double work = (double)t->plan.br * t->problem.kv_len * t->problem.head_dim;
    int first = -1, last = -1;
    for (int slot = 0; slot < j->n_slots && work <= SLOT_WORK_MAX; slot++)
        if (slot_is_bad(j, slot, culprits)) {
            first = first < 0 ? slot : first;
            last = slot;
        }
    if (first < 0)
        return;
    x->slot[x->n_slots++] = first;
    if (last > first)
        x->slot[x->n_slots++] = last;
    for (int slot = first + (last - first) / 2; slot > first && slot < last && x->n_slots < SLOTS_TRIED; slot++)
        if (slot_is_bad(j, slot, culprits))
            x->slot[x->n_slots++] = slot;
}

int declarations_try(const struct judgement *j, const struct trace *t, const struct summary *summary,
                     struct judge_scratch *scratch, struct declared_otherwise *out)
{
    const unsigned culprits = summary->culprits & ((1u << ASC_CHANNELS) - 1),
                   states = 1u << asc_l | 1u << asc_u | 1u << asc_o | 1u << asc_lse;
    struct trying x = {.scratch = scratch};
    char splits[DECLARATION_BYTES] = "";
    bool right;
    memset(out, 0, ASC_CHANNELS * sizeof *out);
    choose_slots(j, t, culprits, &x);
    if (x.n_slots == 0)
        return 0;
    x.verdicts = calloc((size_t)t->layout.kv_tiles * ASC_CHANNELS, sizeof *x.verdicts);
    int failed = !x.verdicts || count(&x, t, x.bad, x.unjudged, &right);
    if (culprits & states && t->plan.kv_splits <= 1 && !failed)
        failed = try_splits(&x, t, culprits, splits);
    for (int ch = 0; ch < ASC_CHANNELS && splits[0]; ch++)
        if (culprits >> ch & 1) {
            snprintf(out[ch].why, sizeof out[ch].why, "%s is right as that of kv tiles dealt to states",
                     channel_label((enum asc_channel)ch));
            out[ch].states = true;
            snprintf(out[ch].fields, sizeof out[ch].fields, "%s", splits);
        }
    if (!splits[0] && !failed)
        failed = try_stages(&x, t, culprits, out);
    free(x.verdicts);
    return failed ? -1 : 0;
}
