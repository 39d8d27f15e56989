/* The list of causes, and what their formulas have in common. */
#include "engine/oracle/causes/cause.h"

#include "engine/oracle/codes.h"
#include "engine/oracle/local.h"
#include "engine/oracle/product.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/tile.h"
#include "engine/oracle/values.h"
#include <stdio.h>
#include <string.h>

struct cause_facts {
    const char *name, *sentence, *formula;
    enum asc_channel channel;
    enum cause_kind kind;
    const struct cause_parameter *parameter;
    int (*fill)(struct candidate *k);
};

static const struct cause_facts facts[CAUSE_COUNT] = {
    [CAUSE_NONE] = {"none", "no known cause", "", ASC_CHANNELS, MISTAKE, &parameter_none, NULL},
#define CAUSE(id, name, channel, kind, parameter, sentence, formula)                                                   \
    [CAUSE_##id] = {name, sentence, formula, channel, kind, &parameter_##parameter, cause_##id},
#define RULED(id, name, channel, kind, condition, sentence, formula)                                                   \
    [CAUSE_##id] = {name, sentence, formula, channel, kind, &parameter_none, NULL},
#include "engine/oracle/causes/causes.def"
#undef RULED
#undef CAUSE
};

const char *cause_name(enum cause c)
{
    return facts[c].name;
}

const char *cause_sentence(enum cause c)
{
    return facts[c].sentence;
}

const char *cause_formula(enum cause c)
{
    return facts[c].formula;
}

enum asc_channel cause_channel(enum cause c)
{
    return facts[c].channel;
}

int cause_is_declaration(enum cause c)
{
    return facts[c].kind == DECLARATION;
}

int cause_is_everywhere(enum cause c)
{
    return facts[c].kind == EVERYWHERE;
}

int cause_is_masking(enum cause c)
{
    return facts[c].kind == MASKING;
}

int cause_is_other_tile(enum cause c)
{
    return c == CAUSE_s_k_previous_tile || c == CAUSE_s_k_next_tile || c == CAUSE_u_v_previous_tile ||
           c == CAUSE_u_v_next_tile;
}

int cause_from_name(const char *name)
{
    for (int c = 0; c < CAUSE_COUNT; c++)
        if (strcmp(facts[c].name, name) == 0)
            return c;
    return -1;
}

void cause_detail(enum cause cause, const struct oracle_case *c, const struct cause_plan *plan, char *text,
                  size_t bytes)
{
    text[0] = '\0';
    if (!facts[cause].parameter->describe || (facts[cause].parameter->value && isnan(plan->parameter[cause])))
        return;
    facts[cause].parameter->describe(c, plan->parameter[cause], text, bytes);
    const size_t used = strlen(text);
    if (plan->fits[cause] > 1 && used)
        snprintf(text + used, bytes - used, ", one of %d that fit", plan->fits[cause]);
}

const struct cause_parameter *cause_parameter(enum cause c)
{
    return facts[c].parameter;
}

int cause_fill(enum cause c, struct candidate *k)
{
    k->row_padding = k->row_padding_bound = NULL;
    k->rival = NULL;
    k->rounds = DTYPE_COUNT;
    k->constant = NAN;
    k->truncates = 0;
    k->unreal = 0;
    k->makes_nan = 0;
    return facts[c].fill && facts[c].fill(k);
}

struct operands cause_altered(const struct candidate *k)
{
    return k->tile->s->at;
}

struct expected cause_out(const struct candidate *k)
{
    return (struct expected){k->want, k->bound};
}

static size_t elements(const struct candidate *k)
{
    const struct stage *stage = &k->tile->s->stage[k->channel];
    return (size_t)stage->rows * (size_t)stage->cols;
}

void cause_right(const struct candidate *k)
{
    const struct stage *stage = &k->tile->s->stage[k->channel];
    memcpy(k->want, stage->want[LOCAL], elements(k) * sizeof(double));
    memcpy(k->bound, stage->bound[LOCAL], elements(k) * sizeof(double));
}

void cause_loosen(const struct candidate *k, int n)
{
    const struct asc_conventions *conventions = &k->tile->c->conventions;
    const double unit = k->channel == asc_s   ? product_rounding(conventions->acc_s)
                        : k->channel == asc_u ? product_rounding(conventions->acc_u)
                                              : BOUND_U;
    for (size_t i = 0; i < elements(k); i++)
        if (isfinite(k->want[i]))
            k->bound[i] += n * unit * BOUND_SLACK * fabs(k->want[i]);
}

double *cause_copy(const struct candidate *k, const double *values, enum asc_channel shape)
{
    const struct stage *stage = &k->tile->s->stage[shape];
    memcpy(k->tile->s->mistake.operand, values, (size_t)stage->rows * (size_t)stage->cols * sizeof(double));
    return k->tile->s->mistake.operand;
}

enum dtype cause_type(double parameter)
{
    static const enum dtype types[] = {DTYPE_F16, DTYPE_BF16, DTYPE_E4M3, DTYPE_E5M2};
    return types[(int)parameter];
}

int cause_declare_pair(const struct candidate *k, struct oracle_case *c, struct operands *s)
{
    const int s_unit = (int)k->parameter / 3, m_unit = (int)k->parameter % 3;
    if ((s_unit == c->conventions.s_unit && m_unit == c->conventions.m_unit) || values_natural_later(c))
        return 0;
    c->conventions.s_unit = s_unit;
    c->conventions.m_unit = m_unit;
    s->s_natural = values_natural_s(c);
    s->s_direct = s_unit == m_unit;
    return 1;
}

/* What may stand behind the last tile. */
enum { ZEROS, ITSELF, ONE_BEFORE, ENDS };
