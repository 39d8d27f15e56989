#include "engine/oracle/search/constant.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* What a known number is made of. The softmax scale goes by head_dim, unless it is given. */
enum made_of { OF_NOTHING, OF_UNITS, OF_DROPOUT, OF_SCALE, OF_OFFSET, OF_TYPE, OF_CAP };

struct known {
    double value;
    enum made_of of;
    char words[CONSTANT_BYTES];
};

enum { KNOWN_MOST = 128 };

static void add(struct known *list, int *n, enum made_of of, double value, const char *words)
{
    if (*n >= KNOWN_MOST || !isfinite(value) || value == 0)
        return;
    list[*n].value = value;
    list[*n].of = of;
    snprintf(list[*n].words, CONSTANT_BYTES, "%s", words);
    ++*n;
}

/* In the order of how soon one thinks of them: the bits are log2 of the place in the list, and 3. */
static int list_known(const struct oracle_case *c, struct known *list)
{
    const double scale = codes_plain_scale(c);
    char words[CONSTANT_BYTES];
    int n = 0;
    add(list, &n, OF_NOTHING, 1, "1");
    add(list, &n, OF_NOTHING, 2, "2");
    add(list, &n, OF_NOTHING, 0.5, "1/2");
    if (c->keep.data) {
        const double kept = 1 - c->dropout;
        add(list, &n, OF_DROPOUT, kept, "1 - dropout");
        add(list, &n, OF_DROPOUT, kept * kept, "1 - dropout, squared");
        add(list, &n, OF_DROPOUT, 1 / kept, "1 / (1 - dropout)");
        add(list, &n, OF_DROPOUT, kept / c->dropout, "1 / dropout - 1");
    }
    add(list, &n, OF_SCALE, scale, "the softmax scale");
    add(list, &n, OF_SCALE, 1 / scale, "1 / softmax scale");
    add(list, &n, OF_UNITS, M_LOG2E, "log2(e)");
    add(list, &n, OF_UNITS, M_LN2, "ln 2");
    add(list, &n, OF_SCALE, scale * scale, "the softmax scale squared");
    add(list, &n, OF_SCALE, 1 / sqrt(c->head_dim), "1 / sqrt(head_dim)");
    add(list, &n, OF_SCALE, sqrt(c->head_dim), "sqrt(head_dim)");
    add(list, &n, OF_NOTHING, M_SQRT2, "sqrt(2)");
    add(list, &n, OF_NOTHING, M_SQRT1_2, "1 / sqrt(2)");
    add(list, &n, OF_SCALE, c->head_dim, "head_dim");
    add(list, &n, OF_SCALE, 1.0 / c->head_dim, "1 / head_dim");
    if (c->conventions.p_offset) {
        add(list, &n, OF_OFFSET, c->conventions.p_offset * M_LN2, "p_offset · ln 2");
        add(list, &n, OF_OFFSET, c->conventions.p_offset * (1 - M_LN2), "p_offset · (1 - ln 2)");
        add(list, &n, OF_OFFSET, c->conventions.p_offset, "p_offset");
    }
    add(list, &n, OF_SCALE, scale * M_LOG2E, "softmax scale · log2(e)");
    add(list, &n, OF_SCALE, 1 / (scale * M_LOG2E), "1 / (softmax scale · log2(e))");
    add(list, &n, OF_SCALE, scale * M_LN2, "softmax scale · ln 2");
    add(list, &n, OF_UNITS, M_LN2 * M_LN2, "ln 2 squared");
    add(list, &n, OF_UNITS, M_LOG2E * M_LOG2E, "log2(e) squared");
    add(list, &n, OF_TYPE, 448, "448, the largest e4m3");
    add(list, &n, OF_TYPE, 1 / 448.0, "1 / 448, the largest e4m3");
    add(list, &n, OF_TYPE, 57344, "57344, the largest e5m2");
    add(list, &n, OF_TYPE, 127, "127");
    add(list, &n, OF_TYPE, 1 / 127.0, "1 / 127");
    add(list, &n, OF_CAP, c->softcap, "the soft cap");
    add(list, &n, OF_CAP, c->softcap > 0 ? 1 / c->softcap : 0, "1 / soft cap");
    add(list, &n, OF_UNITS, M_LN10, "ln 10");
    add(list, &n, OF_UNITS, 1 / M_LN10, "1 / ln 10");
    for (int k = 2; k <= 10; k++) {
        snprintf(words, sizeof words, "2^%d", k);
        add(list, &n, OF_NOTHING, ldexp(1, k), words);
        snprintf(words, sizeof words, "2^-%d", k);
        add(list, &n, OF_NOTHING, ldexp(1, -k), words);
    }
    add(list, &n, OF_NOTHING, 1.5, "3/2");
    add(list, &n, OF_NOTHING, 0.75, "3/4");
    for (int k = 3; k <= 9; k++) {
        snprintf(words, sizeof words, "%d", k);
        add(list, &n, OF_NOTHING, k, words);
        snprintf(words, sizeof words, "1/%d", k);
        add(list, &n, OF_NOTHING, 1.0 / k, words);
    }
    /* A head_dim that is another's: padded rows, half of it, a part of a warp's. */
    static const double dims[] = {8, 16, 32, 4, 2, 1, -1, -8, -16};
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
        snprintf(words, sizeof words, "sqrt(%d / %g)", c->head_dim, c->head_dim + dims[i]);
        add(list, &n, OF_SCALE, c->head_dim + dims[i] > 0 ? sqrt(c->head_dim / (c->head_dim + dims[i])) : 0, words);
    }
    snprintf(words, sizeof words, "sqrt(%d / %d): the square roots of head_dim and head_dim_v", c->head_dim,
             c->head_dim_v);
    add(list, &n, OF_SCALE, c->head_dim_v != c->head_dim ? sqrt((double)c->head_dim / c->head_dim_v) : 0, words);
    const double scales[] = {scale, scale * M_LOG2E};
    for (int i = 0; i < 4; i++) {
        const double x = scales[i / 2], rounded = bound_round(i % 2 ? DTYPE_BF16 : DTYPE_F16, x);
        const bool same = bound_round(DTYPE_F16, x) == bound_round(DTYPE_BF16, x);
        snprintf(words, sizeof words, "softmax scale%s rounded to %s, over what it is", i / 2 ? " · log2(e)" : "",
                 same    ? "f16 or bf16"
                 : i % 2 ? "bf16"
                         : "f16");
        add(list, &n, OF_SCALE, fabs(rounded / x - 1) > 1e-6 && !(same && i % 2) ? rounded / x : 0, words);
    }
    for (int k = 11; k <= 24; k++) {
        snprintf(words, sizeof words, "2^%d", k);
        add(list, &n, OF_NOTHING, ldexp(1, k), words);
        snprintf(words, sizeof words, "2^-%d", k);
        add(list, &n, OF_NOTHING, ldexp(1, -k), words);
    }
    return n;
}

bool constant_near(const struct oracle_case *c, double x, double off, double *value, double *bits, char *words)
{
    struct known list[KNOWN_MOST];
    const int n = list_known(c, list);
    for (int i = 0; i < 2 * n; i++) {
        const double sign = i < n ? 1 : -1;
        const struct known *k = &list[i % n];
        if (!(fabs(x - sign * k->value) <= off))
            continue;
        *value = sign * k->value;
        *bits = 3 + log2(i + 2);
        if (words)
            snprintf(words, CONSTANT_BYTES, "%s%s", sign < 0 ? "minus " : "", k->words);
        return true;
    }
    return false;
}

/* What else gives that number, to rounding in f32, and is made of something else; "": nothing does. By chance 8 ln 2 is
   1 / (scale log2 e) where the scale is 1/8: then nobody knows which of them it is. */
static void say_other(const struct oracle_case *c, double x, char *out, size_t bytes)
{
    struct known list[KNOWN_MOST];
    const struct known *first = NULL;
    const int n = list_known(c, list);
    out[0] = '\0';
    for (int i = 0; i < n && !out[0]; i++) {
        const struct known *k = &list[i];
        if (!(fabs(fabs(x) - k->value) <= 0x1p-23 * fabs(x)))
            continue;
        first = first ? first : k;
        if (k->of != first->of && k->of != OF_NOTHING)
            snprintf(out, bytes, ", or %s%s", x < 0 ? "minus " : "", k->words);
    }
}

void constant_say(const struct oracle_case *c, double x, char *out, size_t bytes)
{
    char words[CONSTANT_BYTES], other[CONSTANT_BYTES + 16];
    double value = 0, bits = 0;
    snprintf(out, bytes, "%.6g", x);
    if (constant_near(c, x, 1e-9 * fabs(x), &value, &bits, words)) {
        char plain[32];
        snprintf(plain, sizeof plain, "%.6g", x);
        say_other(c, x, other, sizeof other);
        if (strcmp(words, plain) != 0)
            snprintf(out, bytes, "%.6g (%s%s)", x, words, other);
    }
}
