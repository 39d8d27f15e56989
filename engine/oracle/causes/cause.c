/* The list of causes, and what their formulas have in common. */
#include "engine/oracle/causes/cause.h"

#include "engine/oracle/product.h"
#include "engine/oracle/tile.h"
#include "engine/trace/conventions.h"
#include <stdio.h>
#include <string.h>

struct cause_facts {
    const char *name, *sentence, *formula;
    enum asc_channel channel;
    enum cause_kind kind;
    const struct cause_parameter *parameter;
    int conventions[2]; /* of a declaration; -1: none */
    int (*fill)(struct candidate *k);
};

const struct cause_parameter parameter_none = {NULL, NULL};

static const struct cause_facts facts[CAUSE_COUNT] = {
    [CAUSE_NONE] = {"none", "no known cause", "", ASC_CHANNELS, MISTAKE, &parameter_none, {-1, -1}, NULL},
#define CAUSE(id, name, channel, kind, parameter, sentence, formula)                                                   \
    [CAUSE_##id] = {name, sentence, formula, channel, kind, &parameter_##parameter, {-1, -1}, cause_##id},
#define RULED(id, name, channel, kind, condition, sentence, formula)                                                   \
    [CAUSE_##id] = {name, sentence, formula, channel, kind, &parameter_none, {-1, -1}, NULL},
#define DECLARED(id, name, channel, one, other, sentence, formula)                                                     \
    [CAUSE_##id] = {name, sentence, formula, channel, DECLARATION, &parameter_declared, {one, other}, cause_declared},
#include "engine/oracle/causes/causes.def"
#undef DECLARED
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

bool cause_is_family(enum cause c)
{
    return facts[c].kind == FAMILY;
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
    facts[cause].parameter->describe(c, cause, plan->parameter[cause], text, bytes);
    const size_t used = strlen(text);
    if (plan->fits[cause] > 1 && used)
        snprintf(text + used, bytes - used, ", one of %d that fit", plan->fits[cause]);
}

const int *cause_conventions(enum cause c)
{
    return facts[c].conventions;
}

const struct cause_parameter *cause_parameter(enum cause c)
{
    return facts[c].parameter;
}

int cause_fill(enum cause c, struct candidate *k)
{
    k->row_padding = k->row_padding_bound = NULL;
    k->hides_none = false;
    k->constant = NAN;
    k->conventions = facts[c].conventions;
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

static double narrow_type_value(const struct walk_tile *tile, enum cause cause, int i)
{
    (void)cause;
    (void)tile;
    return i < 4 ? i : NAN;
}

static void narrow_type_describe(const struct oracle_case *c, enum cause cause, double value, char *text, size_t bytes)
{
    (void)cause;
    (void)c;
    snprintf(text, bytes, "to %s", dtype_name(cause_type(value)));
}

const struct cause_parameter parameter_narrow_type = {narrow_type_value, narrow_type_describe};
