#include "engine/verdict/measured.h"

#include "engine/oracle/bias.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/values.h"
#include "engine/trace/conventions.h"
#include "engine/verdict/case.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Slots with a fault that are measured, slots that a declaration is tried on, and the most multiplications that judging
   one of them may take where every choice is tried. */
enum { SLOTS_MEASURED = 64, SLOTS_TRIED = 3, SLOT_WORK_MAX = 1 << 26 };

/* The numbers that all elements allow so far; none looked at: any. */
struct interval {
    double low, high;
    bool any;
};

static void narrow(struct interval *x, double low, double high)
{
    x->low = x->any && x->low >= low ? x->low : low;
    x->high = x->any && x->high <= high ? x->high : high;
    x->any = true;
}

static bool holds(const struct interval *x, float value)
{
    return (double)value >= x->low && (double)value <= x->high;
}

/* The number of fewest digits in it, as text and as the f32 that this is. false: there is none. */
static bool shortest(const struct interval *x, char text[32], float *out)
{
    bool found = x->any && holds(x, 0);
    snprintf(text, 32, "0");
    *out = 0;
    for (int digits = 1; digits <= 9 && x->any && !found; digits++) {
        char plain[32];
        snprintf(text, 32, "%.*g", digits, x->low + (x->high - x->low) / 2);
        *out = strtof(text, NULL);
        found = holds(x, *out);
        snprintf(plain, sizeof plain, "%g", (double)*out);
        if (found && strtof(plain, NULL) == *out) /* 10, not 1e+01 */
            memcpy(text, plain, sizeof plain);
    }
    return found;
}

/* What one stage's captured values say. */
struct measuring {
    enum asc_channel ch;
    enum dtype type;
    double unit; /* of m, in natural units */
    double *m;   /* owned, [br]: the row's latest; NaN: none yet */
    /* Of m: the most it lies below and above the running maximum, in log2 units; whether a row's ever changes. */
    double lag, lead;
    bool moves;
    /* Of m: whether it is the running maximum of all scores, of keys that the row does not see among them, and in how
       many rows that is more. */
    const struct oracle_case *c; /* borrowed, of the slot that is measured */
    bool sees_hidden;
    int n_hidden, n_slots;
    /* Of s: what masked scores hold. Of m and alpha: what m begins at. */
    struct interval constant;
    /* Of p: what it is multiplied by. Of s, alpha and p: the largest relative error. */
    struct interval factor;
    double error;
};

/* One slot tells, where the products of its scores are not too many. */
enum { SLOTS_UNMASKED = 1, UNMASKED_MOST = 1 << 24 };

/* Scores are products of the inputs and nothing else. */
static bool has_plain_scores(const struct oracle_case *c)
{
    return (int64_t)c->br * c->kv_len * c->head_dim <= UNMASKED_MOST && !(c->softcap > 0) && !bias_changes(c) &&
           !c->rope.kind && codes_use(c, asc_q) == CODES_NONE && codes_use(c, asc_k) == CODES_NONE;
}

/* The largest of a row's scores of a tile before the mask; behind kv_len products of zeros. */
static double largest_unmasked(const struct oracle_case *c, int row, int kv)
{
    const int first = kv * c->bc, end = first + c->bc;
    double largest = end > c->kv_len ? 0 : -INFINITY;
    for (int key = first; key < end && key < c->kv_len; key++) {
        double score = 0;
        for (int d = 0; d < c->head_dim; d++)
            score += values_element(&c->in_q, (size_t)(row * c->in_q.row_stride + d)) *
                     values_element(&c->in_k, (size_t)(key * c->in_k.row_stride + d));
        largest = fmax(largest, score * c->scale);
    }
    return largest;
}

static void measure_unmasked(struct measuring *a, const struct tile_detail *d)
{
    for (int r = 0; r < d->rows && a->sees_hidden; r++) {
        if (isnan(d->got[r])) /* a tile that was not visited; a NaN of the kernel's own leaves `lead` no number */
            continue;
        const double largest = largest_unmasked(a->c, r, d->kv) / a->unit, before = a->m[r];
        const double off = d->bound_local[r] + 0x1p-16 * fabs(largest);
        const bool own = fabs(d->got[r] - largest) <= off;
        a->sees_hidden = own || (before >= largest - off && d->got[r] == before);
        a->n_hidden += own && d->got[r] > d->want_local[r] + 4 * off;
    }
}

static void measure_m(struct measuring *a, const struct tile_detail *d)
{
    if (a->n_slots <= SLOTS_UNMASKED)
        measure_unmasked(a, d);
    for (int r = 0; r < d->rows; r++) {
        const double got = d->got[r], above = (got - d->want_local[r]) * a->unit * M_LOG2E;
        a->moves |= !isnan(a->m[r]) && a->m[r] != got;
        if (!class_bad(d->class_local[r]))
            continue;
        if (!(above < 0))
            narrow(&a->constant, got, got);
        a->lead = !(above <= a->lead) ? above : a->lead;
        a->lag = -above > a->lag ? -above : a->lag;
    }
}

/* A captured value stands for all that its type rounds to it. */
static void measure_sizes(struct measuring *a, const struct tile_detail *d)
{
    for (int i = 0; i < d->rows * d->cols; i++) {
        const double got = d->got[i], want = d->want_local[i];
        const double half = a->type == DTYPE_F32 ? 0 : dtype_ulp(a->type, got) / 2;
        if (d->class_local[i] == STATUS_UNJUDGED || !(fabs(want) > 0x1p-60 && isfinite(want)))
            continue;
        const double ratio = got / want, room = (half + d->bound_local[i] * fabs(ratio)) / fabs(want);
        narrow(&a->factor, ratio - room, ratio + room);
        const double error = (fabs(got - want) - half) / fabs(want);
        a->error = !(error <= a->error) ? error : a->error;
    }
}

/* Where -inf is wanted of a masked score, or 0 of alpha since m begins at -inf: what stands there, and what m began at
   instead: alpha = exp(start - m), and what rounds to m + ln alpha. */
static void measure_constant(struct measuring *a, const struct tile_detail *d)
{
    const double nothing = a->ch == asc_s ? -INFINITY : 0;
    for (int i = 0; i < d->rows * d->cols; i++) {
        const double got = d->got[i], start = a->ch == asc_s ? got : a->m[i] + log(got) / a->unit;
        const double off = a->ch == asc_s ? 0 : 0x1p-20 * (fabs(start) + fabs(1 / a->unit));
        if (d->want_local[i] == nothing && class_bad(d->class_local[i]))
            narrow(&a->constant, start - off, start + off);
    }
}

static void measure(void *ctx, const struct tile_detail *d)
{
    struct measuring *a = ctx;
    if (d->channel == (int)a->ch && a->ch == asc_m)
        measure_m(a, d);
    else if (d->channel == (int)a->ch)
        measure_sizes(a, d);
    if (d->channel == (int)a->ch && (a->ch == asc_s || a->ch == asc_alpha))
        measure_constant(a, d);
    for (int r = 0; d->channel == asc_m && r < d->rows; r++)
        a->m[r] = d->got[r];
}

static int measure_slot(const struct trace *t, int slot, struct judge_scratch *scratch, struct measuring *a)
{
    struct slot_case c;
    if (slot_case_make(t, slot, &c) != 0)
        return -1;
    a->unit = values_natural_m(&c.c);
    a->c = &c.c;
    a->n_slots++;
    a->sees_hidden &= has_plain_scores(&c.c);
    for (int r = 0; r < t->plan.br; r++)
        a->m[r] = NAN;
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

/* Measured against what every kernel may be declared as: a maximum that begins at -inf and never lags, masked scores of
   -inf. -1 without memory. */
static int measure_stage(const struct judgement *j, const struct trace *as, enum asc_channel ch,
                         struct judge_scratch *scratch, struct measuring *a)
{
    struct trace t = *as;
    t.conventions.m_policy = ASC_M_RUNNING;
    t.conventions.m_empty = ASC_EMPTY_INFINITE;
    if (t.conventions.s_masked == ASC_MASKED_VALUE)
        t.conventions.s_masked = ASC_MASKED_INFINITE;
    *a = (struct measuring){.ch = ch, .type = (enum dtype)t.layout.channel[ch].dtype};
    a->sees_hidden = true;
    a->m = calloc((size_t)t.plan.br, sizeof *a->m);
    int failed = !a->m;
    for (int slot = 0, looked = 0; slot < j->n_slots && looked < SLOTS_MEASURED && !failed; slot++)
        if (slot_is_bad(j, slot, 1u << ch)) {
            failed = measure_slot(&t, slot, scratch, a);
            looked++;
        }
    free(a->m);
    a->m = NULL;
    a->c = NULL;
    return failed;
}

/* Of each stage of the slots by some declarations: wrong elements, those that may be anything, and a mark of all that
   is said of them, which another expectation changes. */
struct tally {
    uint64_t bad[ASC_CHANNELS], unjudged[ASC_CHANNELS], mark[ASC_CHANNELS];
    bool output_right;
};

struct trying {
    const struct judgement *j; /* borrowed */
    struct judge_scratch *scratch;
    struct tile_verdicts *verdicts; /* [kv_tiles][ASC_CHANNELS] */
    int slot[SLOTS_TRIED], n_slots;
    bool large;          /* what is measured alone is tried, on one slot */
    struct tally so_far; /* as declared so far */
};

static uint64_t mark_of(const struct verdict *v)
{
    const float said[] = {v->mean_error, v->ratio_median, v->worst_ratio};
    uint32_t bits[3];
    memcpy(bits, said, sizeof bits);
    return (uint64_t)bits[0] + bits[1] + bits[2] + verdict_bad(v) + v->unjudged;
}

static int count(struct trying *x, const struct trace *as, struct tally *out)
{
    int failed = 0;
    *out = (struct tally){.output_right = true};
    for (int i = 0; i < x->n_slots && !failed; i++) {
        struct slot_case c = {0};
        failed = slot_case_make(as, x->slot[i], &c) != 0 || judge_case(&c.c, x->scratch, x->verdicts, NULL) != 0;
        for (int k = 0; k < as->layout.kv_tiles * ASC_CHANNELS && !failed; k++) {
            const enum asc_channel ch = (enum asc_channel)(k % ASC_CHANNELS);
            const struct tile_verdicts *v = &x->verdicts[k];
            out->bad[ch] += verdict_bad(&v->local);
            out->unjudged[ch] += v->local.unjudged;
            out->mark[ch] = out->mark[ch] * 31 + mark_of(&v->local);
            out->output_right &= (ch != asc_o && ch != asc_lse) || verdict_bad(&v->global) == 0;
        }
        slot_case_free(&c);
    }
    return failed;
}

/* Whether these declarations leave nothing wrong in the stages of `right`, and in what comes before the last of them no
   more than now. What may be any number then is not right for it. */
static bool fits(const struct trying *x, const struct tally *by, unsigned right)
{
    bool fit = by->output_right;
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        if (right >> ch) /* right, or before one that is to be */
            fit &=
                by->unjudged[ch] <= x->so_far.unjudged[ch] && by->bad[ch] <= (right >> ch & 1 ? 0 : x->so_far.bad[ch]);
    return fit;
}

/* kv tiles that are dealt to states of their own: m, alpha, l and U begin anew, and O and LSE are merged. */
static int try_splits(struct trying *x, const struct trace *t, unsigned culprits, struct declared_otherwise *out)
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
        struct tally by;
        failed = count(x, &as, &by);
        fit = !failed && fits(x, &by, culprits);
        if (!fit)
            continue;
        snprintf(out->fields, sizeof out->fields, "kv_splits = %d, kv_deal = %s", (int)as.plan.kv_splits,
                 plan_deal_names[as.plan.kv_deal]);
        out->line[0] = (struct convention_line){.convention = -1, .plan = "kv_splits"};
        snprintf(out->line[0].value, sizeof out->line[0].value, "%d", (int)as.plan.kv_splits);
        out->line[1] = (struct convention_line){-1, "kv_deal", "ASC_DEAL_ROUND_ROBIN"};
        out->n_lines = as.plan.kv_deal == ASC_DEAL_ROUND_ROBIN ? 2 : 1; /* ranges are the default */
    }
    return failed;
}

/* NAME = CHOICE, as conventions.def spells it. */
static void name_choice(int convention, int value, char *out, size_t bytes)
{
    char choice[32];
    convention_choice(convention, value, choice, sizeof choice);
    snprintf(out, bytes, "%s = %s", conventions[convention].name, choice);
}

/* A declaration that was measured, and what was seen. */
struct candidate {
    struct asc_conventions c;
    char why[120], fields[DECLARATION_BYTES];
    struct convention_line line[CONVENTION_LINES];
    int n_lines;
    bool strays; /* m lies above the running maximum, or alpha errs, for no reason that is known here */
};

static void add_choice(struct candidate *x, int convention, int value)
{
    convention_line_choice(&x->line[x->n_lines++], convention, value);
}

static void add_number(struct candidate *x, int convention, const char *number)
{
    convention_line_number(&x->line[x->n_lines++], convention, number);
}

/* Two fields of which neither says anything alone. */
static bool pair_candidate(const struct measuring *a, int choice, int value, int number, const char *what,
                           struct candidate *x)
{
    char text[32], name[64];
    float found;
    if (!shortest(&a->constant, text, &found))
        return false;
    convention_set(&x->c, choice, value);
    convention_set(&x->c, number, (double)found);
    add_choice(x, choice, value);
    add_number(x, number, text);
    name_choice(choice, value, name, sizeof name);
    snprintf(x->why, sizeof x->why, "%s %s", what, text);
    snprintf(x->fields, sizeof x->fields, "%s, %s = %s", name, conventions[number].name, text);
    return true;
}

/* An error of more than a hundredth is no function's. What is declared has room for what other inputs may show. */
static bool error_candidate(const struct measuring *a, int number, const char *what, struct candidate *x)
{
    char text[32];
    snprintf(text, sizeof text, "%.2g", 1.1 * a->error);
    if (!(a->error <= 0.01) || !((double)strtof(text, NULL) > convention_get(&x->c, number)))
        return false;
    convention_set(&x->c, number, (double)strtof(text, NULL));
    add_number(x, number, text);
    x->strays = a->ch == asc_alpha;
    snprintf(x->why, sizeof x->why, "%s has a relative error of up to %.2g", what, a->error);
    snprintf(x->fields, sizeof x->fields, "%s = %s or more", conventions[number].name, text);
    return true;
}

static bool lag_candidate(const struct measuring *a, struct candidate *x)
{
    const double least = ceil(a->lag * 1000) / 1000;
    char choice[64], text[32];
    if (a->lead > 0 || !(a->lag > 0) || !(least <= conventions[CONVENTION_OF_m_lag].high))
        return false;
    x->c.m_policy = ASC_M_LAGGING;
    x->c.m_lag = (float)least;
    snprintf(text, sizeof text, "%g", least);
    add_choice(x, CONVENTION_OF_m_policy, ASC_M_LAGGING);
    add_number(x, CONVENTION_OF_m_lag, text);
    name_choice(CONVENTION_OF_m_policy, ASC_M_LAGGING, choice, sizeof choice);
    snprintf(x->why, sizeof x->why, "m lags by up to %.4g (log2)", a->lag);
    snprintf(x->fields, sizeof x->fields, "%s, m_lag = %s or more", choice, text);
    return true;
}

/* Rows in which a hidden key has the largest score, by which that is told. */
enum { HIDDEN_LEAST = 8 };

static bool fixed_candidate(const struct measuring *a, struct candidate *x)
{
    x->c.m_policy = ASC_M_FIXED;
    add_choice(x, CONVENTION_OF_m_policy, ASC_M_FIXED);
    name_choice(CONVENTION_OF_m_policy, ASC_M_FIXED, x->fields, sizeof x->fields);
    if (a->lead <= 0)
        snprintf(x->why, sizeof x->why, "m lags by up to %.4g (log2), more than m_lag's %g", a->lag,
                 conventions[CONVENTION_OF_m_lag].high);
    else if (a->sees_hidden && a->n_hidden >= HIDDEN_LEAST)
        snprintf(x->why, sizeof x->why,
                 "m is taken before the mask: keys that a row does not see count, up to %.4g above the others (log2)",
                 a->lead);
    else if (!a->moves)
        snprintf(x->why, sizeof x->why, "m is constant in each row from its first tile on");
    else {
        x->strays = true;
        snprintf(x->why, sizeof x->why, "m lies up to %.4g above the running maximum (log2)", a->lead);
    }
    return isfinite(a->lead) && isfinite(a->lag);
}

/* One factor for all elements: a power of two before any other number. */
static bool factor_candidate(const struct measuring *a, struct candidate *x)
{
    const double declared = x->c.p_factor > 0 ? (double)x->c.p_factor : 1;
    struct interval factor = {a->factor.low * declared, a->factor.high * declared, a->factor.any};
    char text[32];
    if (!(a->factor.low > 0 && a->factor.low <= a->factor.high) || (a->factor.low <= 1 && a->factor.high >= 1))
        return false;
    const double whole = rint(log2(a->factor.low));
    if (exp2(whole) >= a->factor.low && exp2(whole) <= a->factor.high) {
        x->c.p_offset += (int32_t)whole;
        snprintf(text, sizeof text, "%d", (int)x->c.p_offset);
        add_number(x, CONVENTION_OF_p_offset, text);
        snprintf(x->why, sizeof x->why, "P carries 2^%.4g", x->c.p_offset + log2(declared));
        snprintf(x->fields, sizeof x->fields, "p_offset = %s", text);
        return true;
    }
    if (!shortest(&factor, text, &x->c.p_factor))
        return false;
    add_number(x, CONVENTION_OF_p_factor, text);
    snprintf(x->why, sizeof x->why, "P carries 2^%.4g", x->c.p_offset + log2((double)x->c.p_factor));
    snprintf(x->fields, sizeof x->fields, "p_factor = %s", text);
    return true;
}

/* The i-th that a stage's values speak for, in c what is declared; false: they do not. */
static bool make_candidate(const struct measuring *a, int i, struct candidate *x)
{
    switch (a->ch) {
    case asc_s:
        return i == 0 ? pair_candidate(a, CONVENTION_OF_s_masked, ASC_MASKED_VALUE, CONVENTION_OF_s_masked_value,
                                       "masked scores are", x)
                      : i == 1 && error_candidate(a, CONVENTION_OF_tanh_error, "tanh", x);
    case asc_m:
        return i == 0
                   ? pair_candidate(a, CONVENTION_OF_m_empty, ASC_EMPTY_FINITE, CONVENTION_OF_m_start, "m begins at", x)
               : i == 1 ? lag_candidate(a, x)
                        : fixed_candidate(a, x);
    case asc_alpha:
        return i == 0
                   ? pair_candidate(a, CONVENTION_OF_m_empty, ASC_EMPTY_FINITE, CONVENTION_OF_m_start, "m begins at", x)
                   : i == 1 && error_candidate(a, CONVENTION_OF_exp_error, "exp", x);
    default:
        return i == 0 ? factor_candidate(a, x) : i == 1 && error_candidate(a, CONVENTION_OF_exp_error, "exp", x);
    }
}

/* Whether it can be declared, and says other than what is in force. */
static bool may_be_tried(const struct asc_conventions *c, const struct asc_conventions *in_force)
{
    struct err err;
    return !conventions_same(c, in_force) && conventions_check(c, "", &err) == 0;
}

/* What the stage's captured values say, where that makes it right. P of a kernel whose m is another than declared is
   right by that m; a probe that records something else as m is found there. -1 without memory. */
static int try_measured(struct trying *x, struct trace *as, enum asc_channel ch, struct candidate *out)
{
    enum { CANDIDATES = 3 };
    struct measuring a;
    out->fields[0] = '\0';
    if (ch != asc_s && ch != asc_m && ch != asc_alpha && ch != asc_p)
        return 0;
    if (measure_stage(x->j, as, ch, x->scratch, &a) != 0)
        return -1;
    for (int i = 0; i < CANDIDATES; i++) {
        struct candidate candidate = {.c = as->conventions}, of_p = {.fields = ""};
        struct trace other = *as;
        struct tally by;
        if (!make_candidate(&a, i, &candidate) || !may_be_tried(&candidate.c, &as->conventions))
            continue;
        other.conventions = candidate.c;
        if (count(x, &other, &by) != 0)
            return -1;
        if (!fits(x, &by, 1u << ch))
            continue;
        if (ch == asc_m && by.bad[asc_p] > 0 && try_measured(x, &other, asc_p, &of_p) != 0)
            return -1;
        if (ch == asc_m && by.bad[asc_p] > 0 && !of_p.fields[0])
            continue;
        as->conventions = candidate.c;
        *out = candidate;
        return 0;
    }
    return 0;
}

/* What is measured, or has causes that tell the types apart, or changes what is multiplied. */
static bool is_tried(int convention, int value)
{
    switch (convention) {
    case CONVENTION_OF_acc_s:
    case CONVENTION_OF_acc_u:
        return value == ASC_ACC_MMA;
    case CONVENTION_OF_m_policy:
    case CONVENTION_OF_m_empty:
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
        return conventions[convention].kind == CONVENTION_CHOICE;
    }
}

/* One choice of one field. */
struct option {
    int convention, value;
    bool tells; /* alone, it changes what is said of the stage */
};

static void option_set(const struct option *o, struct trace *t)
{
    convention_set(&t->conventions, o->convention, o->value);
    conventions_resolve(&t->conventions, &t->problem);
}

/* Those of options `one` and `two` (the same one: it alone) that make the stage right are added to out; the first of
   all is `found`. */
static int try_options(struct trying *x, const struct trace *as, enum asc_channel ch, struct option *one,
                       const struct option *two, struct candidate *found)
{
    struct trace other = *as;
    char *out = found->fields;
    const size_t used = strlen(out);
    struct tally by;
    char choice[2][64];
    option_set(one, &other);
    option_set(two, &other);
    if (!may_be_tried(&other.conventions, &as->conventions))
        return 0;
    if (count(x, &other, &by) != 0)
        return -1;
    if (one == two)
        one->tells = by.mark[ch] != x->so_far.mark[ch];
    if (!fits(x, &by, 1u << ch))
        return 0;
    if (!used) {
        found->c = other.conventions;
        add_choice(found, one->convention, one->value);
        if (two != one)
            add_choice(found, two->convention, two->value);
    }
    name_choice(one->convention, one->value, choice[0], sizeof choice[0]);
    name_choice(two->convention, two->value, choice[1], sizeof choice[1]);
    char text[DECLARATION_BYTES];
    snprintf(text, sizeof text, one == two ? "%s" : "%s, %s", choice[0], choice[1]);
    if (used + strlen(text) + sizeof " or " <= DECLARATION_BYTES)
        snprintf(out + used, DECLARATION_BYTES - used, "%s%s", used ? " or " : "", text);
    return 0;
}

/* Every choice that makes this stage right, then every pair of which none does alone; the first is in force from here
   on. */
static int try_choices(struct trying *x, struct trace *as, enum asc_channel ch, struct candidate *out)
{
    enum { OPTIONS = 128 };
    struct option option[OPTIONS];
    int n = 0, failed = 0;
    *out = (struct candidate){.c = as->conventions};
    for (int i = 0; i < CONVENTIONS; i++)
        for (int value = 0; value <= conventions[i].high && conventions[i].kind == CONVENTION_CHOICE; value++)
            if (is_tried(i, value) && n < OPTIONS)
                option[n++] = (struct option){i, value, false};
    for (int i = 0; i < n && !failed; i++)
        failed = try_options(x, as, ch, &option[i], &option[i], out);
    for (int i = 0; i < n && !out->fields[0] && !failed; i++)
        for (int k = i + 1; k < n && option[i].tells && !failed; k++)
            if (option[k].tells && option[k].convention != option[i].convention)
                failed = try_options(x, as, ch, &option[i], &option[k], out);
    as->conventions = out->c;
    return failed;
}

/* Stage by stage: what makes one right is in force for those behind. */
static int try_stages(struct trying *x, const struct trace *t, unsigned culprits, struct declared_otherwise *out)
{
    struct trace as = *t;
    uint64_t declared[ASC_CHANNELS];
    struct candidate last = {.fields = ""};
    int failed = 0;
    memcpy(declared, x->so_far.bad, sizeof declared);
    for (int ch = 0; ch < ASC_CHANNELS && !failed; ch++) {
        if (!(culprits >> ch & 1))
            continue;
        failed = count(x, &as, &x->so_far);
        out[ch].follows = declared[ch] > 0 && x->so_far.bad[ch] == 0;
        struct candidate fit = {.fields = ""};
        if (out[ch].follows)
            fit = last;
        else if (x->so_far.bad[ch] > 0 && !failed)
            failed = try_measured(x, &as, (enum asc_channel)ch, &fit);
        out[ch].measured = fit.fields[0] && !out[ch].follows;
        if (x->so_far.bad[ch] > 0 && !fit.fields[0] && !x->large && !failed)
            failed = try_choices(x, &as, (enum asc_channel)ch, &fit);
        snprintf(out[ch].fields, sizeof out[ch].fields, "%s", fit.fields);
        memcpy(out[ch].line, fit.line, sizeof fit.line);
        out[ch].n_lines = fit.n_lines;
        if (out[ch].measured) {
            snprintf(out[ch].why, sizeof out[ch].why, "%s", fit.why);
            out[ch].strays = fit.strays || (ch == asc_m && fit.c.m_policy == ASC_M_LAGGING);
        } else if (out[ch].fields[0]) {
            snprintf(out[ch].why, sizeof out[ch].why, "%s is right under a different declaration",
                     channel_label((enum asc_channel)ch));
        }
        if (failed || !out[ch].fields[0])
            break; /* what is judged by it tells nothing */
        last = fit;
    }
    return failed;
}

/* The first, the last and one between of the slots with a bad tile of a culprit; of large ones the first. */
static void choose_slots(const struct judgement *j, const struct trace *t, unsigned culprits, struct trying *x)
{
    const double work = (double)t->plan.br * t->problem.kv_len * t->problem.head_dim;
    int first = -1, last = -1;
    x->large = work > SLOT_WORK_MAX;
    for (int slot = 0; slot < j->n_slots; slot++)
        if (slot_is_bad(j, slot, culprits)) {
            first = first < 0 ? slot : first;
            last = slot;
        }
    if (first < 0)
        return;
    x->slot[x->n_slots++] = first;
    if (last > first && !x->large)
        x->slot[x->n_slots++] = last;
    for (int slot = first + (last - first) / 2; slot > first && slot < last && !x->large && x->n_slots < SLOTS_TRIED;
         slot++)
        if (slot_is_bad(j, slot, culprits))
            x->slot[x->n_slots++] = slot;
}

int declarations_try(const struct judgement *j, const struct trace *t, const struct summary *summary,
                     struct judge_scratch *scratch, struct declared_otherwise *out)
{
    const unsigned culprits = summary->culprits & ((1u << ASC_CHANNELS) - 1),
                   states = 1u << asc_l | 1u << asc_u | 1u << asc_o | 1u << asc_lse;
    struct trying x = {.j = j, .scratch = scratch};
    struct declared_otherwise splits = {.states = true};
    memset(out, 0, ASC_CHANNELS * sizeof *out);
    choose_slots(j, t, culprits, &x);
    if (x.n_slots == 0)
        return 0;
    x.verdicts = calloc((size_t)t->layout.kv_tiles * ASC_CHANNELS, sizeof *x.verdicts);
    int failed = !x.verdicts || count(&x, t, &x.so_far);
    if (culprits & states && t->plan.kv_splits <= 1 && !x.large && !failed)
        failed = try_splits(&x, t, culprits, &splits);
    for (int ch = 0; ch < ASC_CHANNELS && splits.fields[0]; ch++)
        if (culprits >> ch & 1) {
            out[ch] = splits;
            snprintf(out[ch].why, sizeof out[ch].why, "%s is right as that of kv tiles dealt to states",
                     channel_label((enum asc_channel)ch));
        }
    if (!splits.fields[0] && !failed)
        failed = try_stages(&x, t, culprits, out);
    free(x.verdicts);
    return failed ? -1 : 0;
}
