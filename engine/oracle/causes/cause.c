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
#include "engine/oracle/causes/causes.def"
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
    return facts[c].fill(k);
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

int cause_permuted(double parameter, int i, int n)
{
    const int by = (int)parameter;
    return by < n ? (i + by) % n : i ^ (by - n);
}

void cause_permute_operand(const struct candidate *k, enum asc_channel ch)
{
    const struct stage *stage = &k->tile->s->stage[ch];
    const int bc = k->tile->c->bc;
    const size_t D = (size_t)k->tile->c->head_dim;
    double *to = k->tile->s->mistake.operand;
    memset(to, 0, (size_t)bc * D * sizeof *to);
    for (int row = 0; row < bc; row++) {
        const int from = cause_permuted(k->parameter, row, bc);
        if (from < stage->rows)
            memcpy(to + (size_t)row * D, k->tile->s->at.of[ch].value + (size_t)from * D, D * sizeof *to);
    }
}

void cause_power_of_alpha(const struct candidate *k, double power, struct operands *s)
{
    const struct operand *alpha = &k->tile->s->at.of[asc_alpha];
    const int rows = k->tile->c->in_q.rows;
    double *to = k->tile->s->mistake.alpha, *loose = to + rows;
    for (int r = 0; r < rows; r++) {
        const double x = alpha->value[r];
        double declared = 0;
        const int first = local_alpha_declared(k->tile->c, s, s->m_prev.value[r], &declared);
        to[r] = first ? x : pow(x, power);
        loose[r] = alpha->loose[r] > 0 ? fabs(power * pow(x, power - 1)) * alpha->loose[r] : 0;
    }
    s->of[asc_alpha].value = to;
    s->of[asc_alpha].loose = loose;
}

enum dtype cause_type(double parameter)
{
    static const enum dtype types[] = {DTYPE_F16, DTYPE_BF16, DTYPE_E4M3, DTYPE_E5M2};
    return types[(int)parameter];
}

const double *cause_sizes(const struct candidate *k, const double *x)
{
    const size_t n = (size_t)k->tile->c->bc * (size_t)k->tile->c->head_dim;
    for (size_t i = 0; i < n; i++)
        k->tile->s->mistake.size[i] = fabs(x[i]);
    return k->tile->s->mistake.size;
}

/* Rows first .. of an input, or of what was captured, in the type the kernel works in; of codes that become values what
   they are before they are rounded to it. */
static int load_rows(const struct candidate *k, enum asc_channel ch, const struct matrix *from,
                     const struct coding *coding, int first, double *out)
{
    const struct oracle_case *c = k->tile->c;
    const struct matrix *captured = scratch_captured(k->tile->s, c, ch);
    const int most = ch == asc_q ? c->in_q.rows : c->bc, left = from->rows - first, rows = left < most ? left : most;
    double unit = 0;
    double half_tiny = 0;
    memset(out, 0, (size_t)most * (size_t)c->head_dim * sizeof *out);
    if (!from->data || rows <= 0)
        return 0;
    codes_load(c, &(struct coded_rows){ch, from, coding, first, rows}, out, NULL);
    if (!coding->scale && captured->data && captured->dtype != from->dtype &&
        bound_narrow(captured->dtype, &unit, &half_tiny))
        for (int i = 0; i < rows * from->cols; i++)
            out[i] = bound_round(captured->dtype, out[i]);
    return 1;
}

int cause_operand_of_tile(const struct candidate *k, enum asc_channel ch, int kv, double *out)
{
    const struct oracle_case *c = k->tile->c;
    if (kv < 0)
        return 0;
    const struct matrix *captured = &c->captured[kv * ASC_CHANNELS + (int)ch];
    const struct matrix *fed = c->fed ? &c->fed[kv * ASC_CHANNELS + (int)ch] : NULL;
    if (captured->data && k->channel != ch) {
        static const struct coding none;
        const int loaded = load_rows(k, ch, captured, &none, 0, out);
        if (loaded && fed && fed->data)
            values_overlay(fed, out, out);
        return loaded;
    }
    return load_rows(k, ch, codes_input(c, ch), codes_of(c, ch), kv * c->bc, out);
}

int cause_operand_of_head(const struct candidate *k, enum asc_channel ch, double parameter, double *out)
{
    const struct oracle_case *c = k->tile->c;
    const struct matrix *heads = ch == asc_k ? c->other_k : c->other_v;
    const struct coding *codes = ch == asc_k ? c->other_k_codes : c->other_v_codes;
    return load_rows(k, ch, &heads[(int)parameter], &codes[(int)parameter], k->tile->s->at.kv * c->bc, out);
}

int cause_other_q(const struct candidate *k, int other, double *out)
{
    const struct oracle_case *c = k->tile->c;
    return load_rows(k, asc_q, &c->other_q[other], &c->other_q_codes[other], 0, out);
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

static int operand_behind(const struct candidate *k, enum asc_channel ch, int end, double *out)
{
    const struct oracle_case *c = k->tile->c;
    if (end != ZEROS)
        return cause_operand_of_tile(k, ch, end == ITSELF ? k->tile->s->at.kv : k->tile->visited[0], out);
    memset(out, 0, (size_t)c->bc * (size_t)c->head_dim * sizeof *out);
    return 1;
}

int cause_with_next(struct candidate *k, enum asc_channel ch,
                    int (*with)(const struct candidate *k, const double *operand))
{
    double *other = k->tile->s->mistake.operand;
    int best = ZEROS;
    uint64_t most = 0;
    if (k->tile->next >= 0)
        return cause_operand_of_tile(k, ch, k->tile->next, other) && with(k, other);
    for (int end = 0; end < ENDS; end++) {
        struct cause_evidence e = {0};
        if (!operand_behind(k, ch, end, other) || !with(k, other))
            continue;
        cause_weigh(k, -1, UINT64_MAX, &e);
        if (e.explained <= most)
            continue;
        most = e.explained;
        best = end;
    }
    k->rival = k->want;
    return operand_behind(k, ch, best, other) && with(k, other);
}

int cause_input_rows(const struct candidate *k, enum asc_channel ch, int head, int first, double *out)
{
    const struct oracle_case *c = k->tile->c;
    const struct matrix *others = ch == asc_k ? c->other_k : c->other_v;
    const struct coding *codes = ch == asc_k ? c->other_k_codes : c->other_v_codes;
    const int is_own = head == OTHER_NONE;
    return load_rows(k, k->channel, is_own ? codes_input(c, ch) : &others[head],
                     is_own ? codes_of(c, ch) : &codes[head], first, out);
}

int cause_transpose_blocks(const struct candidate *k, enum asc_channel ch)
{
    enum { BLOCK = 8 };
    const int n = k->tile->c->head_dim, keys = k->tile->c->bc, rows = k->tile->s->stage[ch].rows;
    const double *from = k->tile->s->at.of[ch].value;
    double *to = k->tile->s->mistake.operand;
    if (n % BLOCK || keys % BLOCK)
        return 0;
    for (int key = 0; key < keys; key++) {
        for (int d = 0; d < n; d++) {
            const int row = key / BLOCK * BLOCK + d % BLOCK, col = d / BLOCK * BLOCK + key % BLOCK;
            to[key * n + d] = row < rows ? from[row * n + col] : 0;
        }
    }
    return 1;
}
