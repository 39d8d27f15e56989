#include "engine/trace/conventions.h"

#include "engine/trace/layout.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

const struct convention conventions[CONVENTIONS] = {
#define CONVENTION(name, type, kind, low, high, choices, names, by_default, otherwise)                                 \
    {#name, CONVENTION_##kind, low, high, choices, #names, by_default, otherwise},
#include "probes/conventions.def"
#undef CONVENTION
};

static const size_t offsets[CONVENTIONS] = {
#define CONVENTION(name, type, kind, low, high, choices, names, by_default, otherwise)                                 \
    offsetof(struct asc_conventions, name),
#include "probes/conventions.def"
#undef CONVENTION
};

double convention_get(const struct asc_conventions *c, int i)
{
    const char *at = (const char *)c + offsets[i];
    int32_t number;
    float real;
    memcpy(&number, at, sizeof number);
    memcpy(&real, at, sizeof real);
    return conventions[i].kind == CONVENTION_REAL ? (double)real : number;
}

void convention_set(struct asc_conventions *c, int i, double value)
{
    char *at = (char *)c + offsets[i];
    if (conventions[i].kind == CONVENTION_REAL) {
        const float real = (float)value;
        memcpy(at, &real, sizeof real);
        return;
    }
    const int32_t number = !(value > INT32_MIN) ? INT32_MIN : value >= INT32_MAX ? INT32_MAX : (int32_t)value;
    memcpy(at, &number, sizeof number);
}

/* Where choice `value` begins in the list, and its length in *n; NULL: there is none. */
static const char *find_choice(int i, int value, size_t *n)
{
    const char *at = conventions[i].choices;
    for (; value > 0 && *at; value--) {
        at += strcspn(at, "|");
        at += *at == '|';
    }
    *n = strcspn(at, "|");
    return value == 0 && *n > 0 ? at : NULL;
}

void convention_choice(int i, int value, char *text, size_t n_bytes)
{
    size_t n = 0;
    const char *at = find_choice(i, value, &n);
    snprintf(text, n_bytes, "%.*s", at ? (int)n : 0, at ? at : "");
}

int convention_from_choice(int i, const char *name)
{
    for (int value = 0;; value++) {
        size_t n = 0;
        const char *at = find_choice(i, value, &n);
        if (!at)
            return -1;
        if (strlen(name) == n && strncmp(at, name, n) == 0)
            return value;
    }
}

const char *conventions_formula(const struct asc_conventions *c, enum asc_channel ch)
{
    const int tile = c->p_max == ASC_P_MAX_TILE, divides = c->u_norm == ASC_U_NORM_TILE;
    if (ch == asc_p && tile)
        return "exp(s - t)";
    if (ch == asc_l && tile)
        return "alpha l_prev + exp(t - m) sum_c p[r,c]";
    if (ch == asc_u && divides)
        return tile ? "(alpha l_prev u_prev + exp(t - m) sum_c p[r,c] v[c,d]) / l"
                    : "(alpha l_prev u_prev + sum_c p[r,c] v[c,d]) / l";
    if (ch == asc_u && tile)
        return "alpha u_prev + exp(t - m) sum_c p[r,c] v[c,d]";
    return ch == asc_o && divides ? "the last u" : channel_formula(ch);
}

static int32_t accumulator(int32_t declared, int dtype)
{
    if (declared != ASC_ACC_MMA)
        return declared;
    switch (dtype) {
    case DTYPE_F16:
        return ASC_ACC_MMA_F16;
    case DTYPE_BF16:
        return ASC_ACC_MMA_BF16;
    case DTYPE_E4M3:
        return ASC_ACC_MMA_E4M3;
    default:
        return ASC_ACC_F32;
    }
}

int conventions_operand(const struct asc_conventions *c, const struct asc_problem *p, enum asc_channel ch)
{
    const int given = ch == asc_q ? p->dtype : ch == asc_k ? p->k_dtype : p->v_dtype;
    const int as_values = ch == asc_v ? c->v_descale == ASC_V_OPERANDS : c->qk_descale == ASC_QK_OPERANDS;
    if (dtype_is_code((enum dtype)given))
        return as_values ? DTYPE_F16 : given;
    if (as_values)
        return given;
    switch (c->quantized) {
    case ASC_QUANTIZED_U8:
        return DTYPE_U8;
    case ASC_QUANTIZED_S8:
        return DTYPE_S8;
    case ASC_QUANTIZED_E4M3:
        return DTYPE_E4M3;
    case ASC_QUANTIZED_E5M2:
        return DTYPE_E5M2;
    default:
        return given;
    }
}

int conventions_channel(const struct asc_conventions *c, const struct asc_problem *p, int o, enum asc_channel ch)
{
    enum { TYPE_INPUT, TYPE_OUTPUT, TYPE_F32 };
    static const unsigned char type_of[ASC_CHANNELS] = {
#define CHANNEL(id, label, rows, cols, extent, type, meaning, formula) type,
#include "probes/channels.def"
#undef CHANNEL
    };
    return type_of[ch] == TYPE_INPUT ? conventions_operand(c, p, ch) : type_of[ch] == TYPE_OUTPUT ? o : DTYPE_F32;
}

void conventions_resolve(struct asc_conventions *c, const struct asc_problem *p)
{
    const int v = conventions_operand(c, p, asc_v);
    c->acc_s = accumulator(c->acc_s, conventions_operand(c, p, asc_q));
    c->acc_u = accumulator(c->acc_u, v);
    if (c->p_rounded == ASC_P_INPUT)
        c->p_rounded = v == DTYPE_F16    ? ASC_P_F16
                       : v == DTYPE_BF16 ? ASC_P_BF16
                       : v == DTYPE_E4M3 ? ASC_P_E4M3
                       : v == DTYPE_E5M2 ? ASC_P_E5M2
                                         : ASC_P_AS_RECORDED;
}

int conventions_check(const struct asc_conventions *c, const char *where, struct err *err)
{
    for (int i = 0; i < CONVENTIONS; i++) {
        const struct convention *convention = &conventions[i];
        const double value = convention_get(c, i);
        if (!(value >= convention->low && value <= convention->high))
            return err_set(err, ERR_INPUT, where, "convention %s is %g; it must be %g to %g", convention->name, value,
                           convention->low, convention->high);
    }
    if (c->u_norm == ASC_U_NORM_TILE && c->u_phase == ASC_U_RESCALED)
        return err_set(
            err, ERR_INPUT, where,
            "conventions u_norm per-tile and u_phase after-rescale exclude each other: a U that is divided by "
            "l after every tile is not rescaled by the next one");
    return 0;
}

void convention_c_name(int i, int value, char *text, size_t n_bytes)
{
    const char *at = conventions[i].names + 1;
    const bool named = value >= 0 && value <= conventions[i].high && conventions[i].kind == CONVENTION_CHOICE;
    for (int k = 0; named && k < value; k++) {
        at += strcspn(at, ",");
        at += strspn(at, ", ");
    }
    snprintf(text, n_bytes, "%.*s", named ? (int)strcspn(at, ",)") : 0, at);
}

void convention_line_choice(struct convention_line *line, int convention, int value)
{
    *line = (struct convention_line){.convention = convention};
    convention_c_name(convention, value, line->value, sizeof line->value);
}

void convention_line_number(struct convention_line *line, int convention, const char *number)
{
    *line = (struct convention_line){.convention = convention};
    snprintf(line->value, sizeof line->value, "%s", number);
}

void convention_line_words(const struct convention_line *line, char out[CONVENTION_LINE_BYTES])
{
    const bool plan = line->convention < 0;
    snprintf(out, CONVENTION_LINE_BYTES, "%s%s = %s;", plan ? "plan->" : "kernel.",
             plan ? line->plan : conventions[line->convention].name, line->value);
}

bool conventions_same(const struct asc_conventions *a, const struct asc_conventions *b)
{
    for (int i = 0; i < CONVENTIONS; i++)
        if (convention_get(a, i) != convention_get(b, i))
            return false;
    return true;
}
