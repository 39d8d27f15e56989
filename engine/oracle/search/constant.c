#include "engine/oracle/search/constant.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

struct known {
    double value;
    char words[CONSTANT_BYTES];
};

enum { KNOWN_MOST = 128 };

static void add(struct known *list, int *n, double value, const char *words)
{
    if (*n >= KNOWN_MOST || !isfinite(value) || value == 0)
        return;
    list[*n].value = value;
    snprintf(list[*n].words, CONSTANT_BYTES, "%s", words);
    ++*n;
}

/* In the order of how soon one thinks of them: the bits are log2 of the place in the list, and 3. */
static int list_known(const struct oracle_case *c, struct known *list)
{
    const double scale = codes_plain_scale(c);
    char words[CONSTANT_BYTES];
    int n = 0;
    add(list, &n, 1, "1");
    add(list, &n, 2, "2");
    add(list, &n, 0.5, "1/2");
    if (c->keep.data) {
        const double kept = 1 - c->dropout;
        add(list, &n, kept, "1 - dropout");
        add(list, &n, kept * kept, "1 - dropout, squared");
        add(list, &n, 1 / kept, "1 / (1 - dropout)");
        add(list, &n, kept / c->dropout, "1 / dropout - 1");
    }
    add(list, &n, scale, "the softmax scale");
    add(list, &n, 1 / scale, "1 / softmax scale");
    add(list, &n, M_LOG2E, "log2(e)");
    add(list, &n, M_LN2, "ln 2");
    add(list, &n, scale * scale, "the softmax scale squared");
    add(list, &n, 1 / sqrt(c->head_dim), "1 / sqrt(head_dim)");
    add(list, &n, sqrt(c->head_dim), "sqrt(head_dim)");
    add(list, &n, M_SQRT2, "sqrt(2)");
    add(list, &n, M_SQRT1_2, "1 / sqrt(2)");
    add(list, &n, c->head_dim, "head_dim");
    add(list, &n, 1.0 / c->head_dim, "1 / head_dim");
    add(list, &n, scale * M_LOG2E, "softmax scale · log2(e)");
    add(list, &n, 1 / (scale * M_LOG2E), "1 / (softmax scale · log2(e))");
    add(list, &n, scale * M_LN2, "softmax scale · ln 2");
    add(list, &n, M_LN2 * M_LN2, "ln 2 squared");
    add(list, &n, M_LOG2E * M_LOG2E, "log2(e) squared");
    add(list, &n, 448, "448, the largest e4m3");
    add(list, &n, 1 / 448.0, "1 / 448, the largest e4m3");
    add(list, &n, 57344, "57344, the largest e5m2");
    add(list, &n, 127, "127");
    add(list, &n, 1 / 127.0, "1 / 127");
    add(list, &n, c->softcap, "the soft cap");
    add(list, &n, c->softcap > 0 ? 1 / c->softcap : 0, "1 / soft cap");
    add(list, &n, M_LN10, "ln 10");
    add(list, &n, 1 / M_LN10, "1 / ln 10");
    if (c->conventions.p_offset) {
        add(list, &n, c->conventions.p_offset * M_LN2, "p_offset · ln 2");
        add(list, &n, c->conventions.p_offset * (1 - M_LN2), "p_offset · (1 - ln 2)");
        add(list, &n, c->conventions.p_offset, "p_offset");
    }
    for (int k = 2; k <= 10; k++) {
        snprintf(words, sizeof words, "2^%d", k);
        add(list, &n, ldexp(1, k), words);
        snprintf(words, sizeof words, "2^-%d", k);
        add(list, &n, ldexp(1, -k), words);
    }
    add(list, &n, 1.5, "3/2");
    add(list, &n, 0.75, "3/4");
    for (int k = 3; k <= 9; k++) {
        snprintf(words, sizeof words, "%d", k);
        add(list, &n, k, words);
        snprintf(words, sizeof words, "1/%d", k);
        add(list, &n, 1.0 / k, words);
    }
    /* A head_dim that is another's: padded rows, half of it, a part of a warp's. */
    static const double dims[] = {8, 16, 32, 4, 2, 1, -1, -8, -16};
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
        snprintf(words, sizeof words, "sqrt(%d / %g)", c->head_dim, c->head_dim + dims[i]);
        add(list, &n, c->head_dim + dims[i] > 0 ? sqrt(c->head_dim / (c->head_dim + dims[i])) : 0, words);
    }
    snprintf(words, sizeof words, "sqrt(%d / %d): the square roots of head_dim and head_dim_v", c->head_dim,
             c->head_dim_v);
    add(list, &n, c->head_dim_v != c->head_dim ? sqrt((double)c->head_dim / c->head_dim_v) : 0, words);
    const double scales[] = {scale, scale * M_LOG2E};
    for (int i = 0; i < 4; i++) {
        const double x = scales[i / 2], rounded = bound_round(i % 2 ? DTYPE_BF16 : DTYPE_F16, x);
        const bool same = bound_round(DTYPE_F16, x) == bound_round(DTYPE_BF16, x);
        snprintf(words, sizeof words, "softmax scale%s rounded to %s, over what it is", i / 2 ? " · log2(e)" : "",
                 same    ? "f16 or bf16"
                 : i % 2 ? "bf16"
                         : "f16");
        add(list, &n, fabs(rounded / x - 1) > 1e-6 && !(same && i % 2) ? rounded / x : 0, words);
    }
    for (int k = 11; k <= 24; k++) {
        snprintf(words, sizeof words, "2^%d", k);
        add(list, &n, ldexp(1, k), words);
        snprintf(words, sizeof words, "2^-%d", k);
        add(list, &n, ldexp(1, -k), words);
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

void constant_say(const struct oracle_case *c, double x, char *out, size_t bytes)
{
    char words[CONSTANT_BYTES];
    double value = 0, bits = 0;
    snprintf(out, bytes, "%.6g", x);
    if (constant_near(c, x, 1e-9 * fabs(x), &value, &bits, words)) {
        char plain[32];
        snprintf(plain, sizeof plain, "%.6g", x);
        if (strcmp(words, plain) != 0)
            snprintf(out, bytes, "%.6g (%s)", x, words);
    }
}
