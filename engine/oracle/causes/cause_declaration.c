/* Declarations: a stage is right under another value of one or two conventions. The parameter is the number of that
   value, or of both: the first times how many there are of the second, plus it. */
#include "engine/oracle/causes/cause.h"

#include "engine/oracle/bias.h"
#include "engine/oracle/local.h"
#include "engine/oracle/values.h"
#include "engine/trace/conventions.h"
#include <stdio.h>
#include <stdlib.h>

static int choices(int convention)
{
    return convention < 0 ? 1 : 1 + (int)conventions[convention].high;
}

/* Whether a value says what another one does, or is none of this stage's own. */
static int is_left_out(const struct oracle_case *c, int convention, int value)
{
    if (convention == CONVENTION_OF_s_at)
        return (value == ASC_S_BIASED && !bias_changes(c)) || (value == ASC_S_CAPPED && !(c->softcap > 0));
    return convention == CONVENTION_OF_alpha_first && value == ASC_ALPHA_NONE_FIRST;
}

static double declared_value(const struct walk_tile *tile, enum cause cause, int i)
{
    const int *which = cause_conventions(cause), n = choices(which[0]) * choices(which[1]);
    for (int value = 0; value < n; value++)
        if (!is_left_out(tile->c, which[0], value) && i-- == 0)
            return value;
    return NAN;
}

/* A maximum tells only how its unit differs from that of S. */
static bool looks_same(enum cause cause, const int looks[2])
{
    return cause_channel(cause) == asc_m && looks[0] == looks[1];
}

/* "NAME declared X, looks Y", "NAME, NAME declared X, X, look Y, Y". */
static void declared_describe(const struct oracle_case *c, enum cause cause, double value, char *text, size_t bytes)
{
    enum { CHOICE_BYTES = 32 };
    const int *which = cause_conventions(cause), n = choices(which[1]), looks[] = {(int)value / n, (int)value % n};
    char name[2][2][CHOICE_BYTES];
    for (int i = 0; i < 2 && which[i] >= 0; i++) {
        convention_choice(which[i], (int)convention_get(&c->conventions, which[i]), name[0][i], CHOICE_BYTES);
        convention_choice(which[i], looks[i], name[1][i], CHOICE_BYTES);
    }
    if (which[1] < 0)
        snprintf(text, bytes, "%s declared %s, looks %s", conventions[which[0]].name, name[0][0], name[1][0]);
    else if (looks_same(cause, looks))
        snprintf(text, bytes, "m_unit looks the same as s_unit");
    else
        snprintf(text, bytes, "%s, %s declared %s, %s, look %s, %s", conventions[which[0]].name,
                 conventions[which[1]].name, name[0][0], name[0][1], name[1][0], name[1][1]);
}

const struct cause_parameter parameter_declared = {declared_value, declared_describe};

/* The choice of p_rounded that is this type; -1: there is none. */
static int rounded_to(enum dtype type)
{
    switch (type) {
    case DTYPE_F16:
        return ASC_P_F16;
    case DTYPE_BF16:
        return ASC_P_BF16;
    case DTYPE_E4M3:
        return ASC_P_E4M3;
    case DTYPE_E5M2:
        return ASC_P_E5M2;
    default:
        return -1;
    }
}

int cause_rounded_lines(enum asc_channel ch, const struct asc_conventions *declared, enum dtype type,
                        struct convention_line *out)
{
    const int rounded = rounded_to(type);
    int lines = 0;
    if (rounded < 0)
        return 0;
    if (ch == asc_l)
        convention_line_choice(&out[lines++], CONVENTION_OF_l_from, ASC_L_ROUNDED);
    if (declared->p_rounded != rounded)
        convention_line_choice(&out[lines++], CONVENTION_OF_p_rounded, rounded);
    return lines;
}

/* Those whose convention is not what a row of causes.def names. */
static int lines_of_named(enum cause cause, const struct asc_conventions *declared, double parameter,
                          struct convention_line *out)
{
    char number[32];
    int lines = 0;
    if (cause == CAUSE_s_masked_value && !isnan(parameter)) {
        for (int digits = 1; digits <= 9; digits++) {
            snprintf(number, sizeof number, "%.*g", digits, parameter);
            if (strtof(number, NULL) == (float)parameter)
                break;
        }
        convention_line_choice(&out[lines++], CONVENTION_OF_s_masked, ASC_MASKED_VALUE);
        convention_line_number(&out[lines++], CONVENTION_OF_s_masked_value, number);
    }
    if ((cause == CAUSE_l_from_rounded || cause == CAUSE_u_p_rounded) && !isnan(parameter))
        lines = cause_rounded_lines(cause_channel(cause), declared, cause_type(parameter), out);
    if (cause == CAUSE_l_from_unrounded)
        convention_line_choice(&out[lines++], CONVENTION_OF_l_from, ASC_L_UNROUNDED);
    if (cause == CAUSE_u_p_unrounded)
        convention_line_choice(&out[lines++], CONVENTION_OF_p_rounded, ASC_P_AS_RECORDED);
    return lines;
}

int cause_lines(enum cause cause, const struct asc_conventions *declared, const struct cause_plan *plan,
                struct convention_line *out)
{
    const int *which = cause_conventions(cause), n = choices(which[1]);
    const double parameter = plan->parameter[cause];
    int lines = which[0] < 0 ? lines_of_named(cause, declared, parameter, out) : 0;
    if (which[0] < 0 || isnan(parameter))
        return lines;
    const int value = (int)parameter, looks[] = {value / n, value % n};
    if (which[1] >= 0 && looks_same(cause, looks)) {
        if (plan->culprits >> asc_s & 1) /* which unit that of S is, its own finding says */
            return 0;
        convention_line_choice(&out[0], CONVENTION_OF_m_unit, declared->s_unit);
        return 1;
    }
    for (int i = 0; i < 2 && which[i] >= 0; i++)
        if (convention_get(declared, which[i]) != looks[i])
            convention_line_choice(&out[lines++], which[i], looks[i]);
    return lines;
}

/* Q as it was given, times what would be folded into it. */
static void fold(const struct candidate *k, const struct oracle_case *c)
{
    for (int i = 0; i < c->in_q.rows * c->head_dim; i++) {
        k->want[i] = values_fold(c) * k->tile->s->input[asc_q].value[i];
        k->bound[i] = 0;
    }
}

/* Whether the tile has weights that were captured, and keys that a row does not see, all of these without a weight. */
static bool is_masked_behind(const struct walk_tile *tile)
{
    const struct matrix *p = &tile->c->captured[tile->s->at.kv * ASC_CHANNELS + asc_p];
    int hidden = 0;
    for (int r = 0; p->data && r < p->rows; r++)
        for (int col = 0; col < p->cols; col++) {
            if (cause_sees(tile, r, col))
                continue;
            if (dtype_load(p->dtype, p->data, (size_t)(r * p->row_stride + col)) != 0)
                return false;
            hidden++;
        }
    return hidden > 0;
}

/* S recorded early is read behind mask and cap by what comes next. Where the maximum is that of S as it was captured,
   and could not be that of S behind them, the kernel goes on with it: nothing was recorded early, unless it is masked
   later still. */
static bool goes_on(const struct candidate *k, const struct oracle_case *c)
{
    const struct walk_tile *tile = k->tile;
    const struct matrix *m = &tile->c->captured[tile->s->at.kv * ASC_CHANNELS + asc_m];
    const struct mistake_room *room = &tile->s->mistake;
    struct operands own = cause_altered(k), early = own;
    int own_wrong = 0, early_wrong = 0;
    if (!m->data || !own.of[asc_s].value || !own.m_prev.value || values_mask_later(tile->c))
        return false;
    for (int which = 0; which < 2; which++) {
        local_use_scores(which ? c : tile->c, which ? &early : &own,
                         (struct expected){room->scores, room->scores_loose});
        local_m(which ? c : tile->c, which ? &early : &own, (struct expected){room->operand, room->size});
        for (int r = 0; r < tile->c->in_q.rows; r++) {
            const double got = dtype_load(m->dtype, m->data, (size_t)(r * m->row_stride)), want = room->operand[r];
            const bool right = got == want || fabs(got - want) <= room->size[r];
            *(which ? &early_wrong : &own_wrong) += !right;
        }
    }
    return early_wrong > own_wrong && !is_masked_behind(tile);
}

int cause_declared(struct candidate *k)
{
    const struct oracle_case *own = k->tile->c;
    struct oracle_case c = *own;
    struct operands s = cause_altered(k);
    const struct expected out = cause_out(k);
    const int *which = k->conventions, n = choices(which[1]), value = (int)k->parameter;
    const int first = value / n;
    convention_set(&c.conventions, which[0], first);
    if (which[1] >= 0) {
        convention_set(&c.conventions, which[1], value % n);
        s.s_natural = values_natural_s(&c);
        s.s_direct = c.conventions.s_unit == c.conventions.m_unit;
    }
    if (conventions_same(&c.conventions, &own->conventions) || (which[1] >= 0 && values_natural_later(own)))
        return 0;
    if (which[0] == CONVENTION_OF_s_at && k->channel != asc_s && !cause_reads_at(k, &c, &s))
        return 0;
    switch (k->channel) {
    case asc_q:
        fold(k, &c);
        cause_loosen(k, 3); /* the factor is rounded up to twice, the product once */
        return 1;
    case asc_s:
        if (which[0] == CONVENTION_OF_s_at && goes_on(k, &c))
            return 0;
        local_s(&c, &s, &k->tile->s->room, out);
        if (which[0] == CONVENTION_OF_s_unit)
            cause_loosen(k, 2);
        else if (values_mask_later(&c)) { /* nothing is masked as yet, nor is the tail */
            cause_zero_padding(k);
            k->hides_none = true;
        }
        return 1;
    case asc_m:
        local_m(&c, &s, out);
        cause_loosen(k, which[1] >= 0 ? 3 : 0);
        return 1;
    case asc_alpha:
        local_alpha(&c, &s, out);
        if (which[0] == CONVENTION_OF_alpha_first)
            k->constant = value > 0;
        return 1;
    default:
        local_p(&c, &s, out);
        return 1;
    }
}
