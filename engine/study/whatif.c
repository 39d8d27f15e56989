#include "engine/study/whatif.h"

#include "engine/base/quantize.h"
#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/quantization/flow.h"
#include "engine/oracle/quantization/formats.h"
#include "engine/run/given.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char letters[] = "qkv";

/* The common choices, as words on top of the run's own. */
static const char *const common[] = {"f16 p=f16 offset:0",
                                     "e4m3 tensor",
                                     "e4m3 head",
                                     "e4m3 rows:64",
                                     "e4m3 rows:16",
                                     "q=f16 k=e4m3 v=e4m3 head",
                                     "q=f16 k=e4m3 v=e4m3 rows:64",
                                     "e5m2 head",
                                     "u8 head",
                                     "u8 rows:16",
                                     "e4m3 head x0.5",
                                     "e4m3 head x2",
                                     "e4m3 head p=e4m3 offset:8"};

static bool coded(int type)
{
    return type >= 0 && dtype_is_code((enum dtype)type);
}

static struct problem_tensor extent_of(const struct trace *t, int which)
{
    return problem_tensor(&t->problem, (enum problem_tensor_id)which);
}

/* Whether every scale of the tensor is the same number, and there is more than one head. */
static bool one_scale(const struct trace *t, int which)
{
    const struct problem_tensor e = extent_of(t, which);
    const float *scale = trace_scales(t, letters[which]);
    const int n = t->problem.batch * e.heads;
    for (int i = 1; scale && i < n; i++)
        if (scale[i] != scale[0])
            return false;
    return scale && n > 1;
}

void whatif_of_run(const struct trace *t, struct whatif_choice *out)
{
    const int32_t types[3] = {t->problem.dtype, t->problem.k_dtype, t->problem.v_dtype};
    const int made = t->conventions.quantized;
    struct slot_case c;
    int tensors = 0, same = 0;
    *out = (struct whatif_choice){.factor = 1, .p_type = -1, .p_factor = 1};
    const int share = made ? t->conventions.quantized_rows : t->problem.scale_rows;
    for (int i = 0; i < 3; i++) {
        out->type[i] = made ? (int)codes_type(made) : types[i];
        tensors += coded(out->type[i]);
        same += one_scale(t, i);
    }
    out->dims = made ? 0 : t->problem.scale_dims;
    out->scale_type = made ? ASC_SCALE_F32 : t->problem.scale_type;
    out->scales = share > 0 || out->dims > 0 ? WHATIF_ROWS : tensors && same == tensors ? WHATIF_TENSOR : WHATIF_HEAD;
    out->rows = share;
    if (!t->layout.n_slots || slot_case_make(t, 0, &c) != 0)
        return;
    const struct flow_rounding rounding = flow_rounding(&c.c);
    out->p_type = rounding.type;
    out->p_offset = t->conventions.p_offset;
    out->p_factor = ldexp(rounding.factor, -out->p_offset);
    out->p_sums = rounding.sums;
    slot_case_free(&c);
}

int whatif_scales(const struct whatif_choice *c, char *out, size_t bytes)
{
    char rows[24] = "", dims[24] = "";
    if (c->rows > 0)
        snprintf(rows, sizeof rows, "rows:%d", c->rows);
    if (c->dims > 0)
        snprintf(dims, sizeof dims, "%sdims:%d", c->rows > 0 ? "," : "", c->dims);
    return c->scales == WHATIF_ROWS ? snprintf(out, bytes, "%s%s", rows, dims)
                                    : snprintf(out, bytes, "%s", c->scales == WHATIF_HEAD ? "head" : "tensor");
}

void whatif_words(const struct whatif_choice *c, char *out, size_t bytes)
{
    const int *type = c->type;
    size_t used;
    if (type[0] == type[1] && type[1] == type[2])
        used = (size_t)snprintf(out, bytes, "%s", dtype_name((enum dtype)type[0]));
    else
        used = (size_t)snprintf(out, bytes, "q=%s k=%s v=%s", dtype_name((enum dtype)type[0]),
                                dtype_name((enum dtype)type[1]), dtype_name((enum dtype)type[2]));
    if (used < bytes && (coded(type[0]) || coded(type[1]) || coded(type[2]))) {
        char scales[64];
        whatif_scales(c, scales, sizeof scales);
        used += (size_t)snprintf(out + used, bytes - used, " %s", scales);
        if (c->scale_type && used < bytes)
            used += (size_t)snprintf(out + used, bytes - used, " scales=%s", problem_scale_type_names[c->scale_type]);
    }
    if (used < bytes && c->factor != 1)
        used += (size_t)snprintf(out + used, bytes - used, " x%g", c->factor);
    if (used < bytes && c->p_type >= 0)
        used += (size_t)snprintf(out + used, bytes - used, " p=%s", dtype_name((enum dtype)c->p_type));
    if (used < bytes && c->p_offset)
        used += (size_t)snprintf(out + used, bytes - used, " offset:%d", c->p_offset);
    if (used < bytes && c->p_factor != 1)
        snprintf(out + used, bytes - used, " factor:%g", c->p_factor);
}

/* enum dtype that values may be rounded to, or -1. */
static int type_named(const char *name)
{
    const int type = dtype_from_name(name);
    return coded(type) || type == DTYPE_F16 || type == DTYPE_BF16 ? type : -1;
}

static bool number_in(const char *text, double least, double most, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return end != text && *end == '\0' && *out >= least && *out <= most;
}

static int take_word(const char *word, struct whatif_choice *c)
{
    double x;
    const char *which = strchr(letters, word[0]);
    for (int i = 0; problem_scale_type_names[i]; i++)
        if (strncmp(word, "scales=", 7) == 0 && strcmp(word + 7, problem_scale_type_names[i]) == 0) {
            c->scale_type = i;
            return 0;
        }
    if (type_named(word) >= 0) {
        c->type[0] = c->type[1] = c->type[2] = type_named(word);
    } else if (strcmp(word, "tensor") == 0 || strcmp(word, "head") == 0) {
        c->scales = word[0] == 't' ? WHATIF_TENSOR : WHATIF_HEAD;
        c->dims = 0;
    } else if (strncmp(word, "rows:", 5) == 0 && number_in(word + 5, 1, 16777216, &x) && x == floor(x)) {
        c->scales = WHATIF_ROWS;
        c->rows = (int)x;
        c->dims = 0;
    } else if (word[0] == 'x' && number_in(word + 1, 0x1p-20, 0x1p20, &x)) {
        c->factor = x;
    } else if (strncmp(word, "offset:", 7) == 0 && number_in(word + 7, -64, 64, &x) && x == floor(x)) {
        c->p_offset = (int)x;
        c->p_factor = 1;
    } else if (strncmp(word, "factor:", 7) == 0 && number_in(word + 7, 0x1p-64, 0x1p64, &x)) {
        c->p_factor = x;
    } else if (word[0] != '\0' && word[1] == '=' && which && type_named(word + 2) >= 0) {
        c->type[which - letters] = type_named(word + 2);
    } else if (strncmp(word, "p=", 2) == 0 && type_named(word + 2) >= 0 &&
               !dtype_is_step_code((enum dtype)type_named(word + 2))) {
        c->p_type = type_named(word + 2);
    } else {
        return -1;
    }
    return 0;
}

int whatif_parse(const char *text, struct whatif_choice *c, char bad[32])
{
    struct whatif_choice made = *c;
    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        const size_t n = strcspn(text, " ");
        char word[32];
        snprintf(word, sizeof word, "%.*s", (int)n, text);
        if (n >= sizeof word || take_word(word, &made) != 0) {
            memcpy(bad, word, sizeof word);
            return -1;
        }
        text += n;
    }
    *c = made;
    return 0;
}

static bool same_choice(const struct whatif_choice *a, const struct whatif_choice *b)
{
    char x[96], y[96];
    whatif_words(a, x, sizeof x);
    whatif_words(b, y, sizeof y);
    return strcmp(x, y) == 0;
}

int whatif_add(struct whatif *w, const struct whatif_choice *choice)
{
    for (int i = 0; i < w->n; i++)
        if (same_choice(&w->row[i].choice, choice))
            return 0;
    if (w->n == WHATIF_MAX)
        return -1;
    w->row[w->n++] = (struct whatif_row){.choice = *choice};
    return 0;
}

static int find_amax(const struct trace *t, int which, float **out)
{
    const struct problem_tensor e = extent_of(t, which);
    enum dtype dtype = DTYPE_F16;
    const void *given = trace_given(t, letters[which], &dtype);
    const int dim = e.cols, parts = asc_scale_parts(&t->problem, dim), part = parts > 1 ? t->problem.scale_dims : dim;
    float *row = malloc((size_t)dim * sizeof *row);
    float *next = *out =
        calloc((size_t)t->problem.batch * (size_t)e.heads * (size_t)e.rows * (size_t)parts, sizeof **out);
    for (int64_t i = 0; row && next && i < (int64_t)t->problem.batch * e.heads * e.rows; i++) {
        const int64_t b = i / e.rows / e.heads, h = i / e.rows % e.heads, r = i % e.rows;
        const int64_t at = problem_tensor_at(&e, b, h, r);
        if (r >= problem_tensor_rows(&e, (int)b))
            continue; /* behind its sequence */
        for (int d = 0; d < dim; d++)
            row[d] = (float)dtype_load(dtype, given, (size_t)(at + d));
        for (int d = 0; d < dim; d += part)
            next[i * parts + d / part] = (float)formats_amax(row + d, (size_t)(dim - d < part ? dim - d : part));
    }
    const bool failed = !row || !next;
    free(row);
    return failed ? -1 : 0;
}

int whatif_begin(const struct trace *t, int most, struct whatif **out, int *pieces)
{
    struct whatif *w = calloc(1, sizeof *w);
    struct trace view;
    struct whatif_choice own;
    char bad[32];
    *out = NULL;
    *pieces = 0;
    if (!w)
        return -1;
    w->given_known = given_view(t, &view);
    w->all = t->layout.n_slots;
    w->slots = w->all < most ? w->all : most;
    for (int i = 0; w->given_known && i < 3; i++)
        if (find_amax(t, i, &w->amax[i]) != 0) {
            whatif_free(w);
            return -1;
        }
    whatif_of_run(t, &own);
    whatif_add(w, &own);
    for (size_t i = 0; w->given_known && i < sizeof common / sizeof *common; i++) {
        struct whatif_choice choice = own;
        choice.scale_type = ASC_SCALE_F32;
        whatif_parse(common[i], &choice, bad);
        whatif_add(w, &choice);
    }
    *pieces = w->given_known ? w->slots : 0;
    *out = w;
    return 0;
}

void whatif_free(struct whatif *w)
{
    if (!w)
        return;
    for (int i = 0; i < 3; i++)
        free(w->amax[i]);
    free(w);
}

/* One head of a tensor, whose rows first .. first + rows - 1 are wanted. */
struct head_rows {
    int which, batch, head, first, rows;
};

/* The largest magnitude of those that share a scale with element d of a row. */
static float shared_amax(const struct trace *t, const struct whatif *w, const struct whatif_choice *c,
                         const struct head_rows *at, int row, int d)
{
    const struct problem_tensor e = extent_of(t, at->which);
    const int parts = asc_scale_parts(&t->problem, e.cols);
    int64_t from = ((int64_t)at->batch * e.heads + at->head) * e.rows, to = from + e.rows;
    float top = 0;
    if (c->scales == WHATIF_TENSOR) {
        from = 0;
        to = (int64_t)t->problem.batch * e.heads * e.rows;
    } else if (c->scales == WHATIF_ROWS && c->rows > 0) {
        const int64_t end = from + ((int64_t)row / c->rows + 1) * c->rows;
        from += (int64_t)row / c->rows * c->rows;
        to = end < to ? end : to;
    }
    const int first = c->dims > 0 ? d / c->dims : 0, last = c->dims > 0 ? first : parts - 1;
    for (int64_t i = from; i < to; i++)
        for (int part = first; part <= last; part++)
            top = fmaxf(top, w->amax[at->which][i * parts + part]);
    return top;
}

static int operand_is_value(const struct trace *t, int which)
{
    return which == 2 ? t->conventions.v_descale == ASC_V_OPERANDS : t->conventions.qk_descale == ASC_QK_OPERANDS;
}

/* x, [rows][dim] as given, becomes what the choice makes of it. */
static void round_rows(const struct trace *t, const struct whatif *w, const struct whatif_choice *c,
                       const struct head_rows *at, double *x)
{
    const int dim = extent_of(t, at->which).cols, type = c->type[at->which];
    const int narrow = !coded(type) ? type : operand_is_value(t, at->which) ? (int)DTYPE_F16 : -1;
    const int step = c->dims > 0 && c->dims < 256 ? c->dims : 256;
    const struct asc_problem types = {.scale_type = c->scale_type};
    const struct whatif_choice all = {.scales = WHATIF_TENSOR};
    const float own = coded(type) && c->scale_type == ASC_SCALE_E4M3
                          ? quantize_tensor_scale((enum dtype)type, shared_amax(t, w, &all, at, 0, 0))
                          : 1;
    float scale = 1;
    float row[256];
    for (int r = 0; r < at->rows; r++) {
        const bool fresh = r == 0 || (c->scales == WHATIF_ROWS && c->rows > 0 && (at->first + r) % c->rows == 0);
        for (int d = 0; d < dim; d += step) {
            const int n = dim - d < step ? dim - d : step;
            if (coded(type) && (c->dims > 0 || (fresh && d == 0)))
                scale = (float)((double)quantize_scale((enum dtype)type, problem_scale_dtype(&types),
                                                       shared_amax(t, w, c, at, at->first + r, d), own) *
                                (double)own * c->factor);
            double *part = x + (size_t)r * (size_t)dim + (size_t)d;
            for (int i = 0; i < n; i++)
                row[i] = (float)part[i];
            if (coded(type))
                formats_round_trip((enum dtype)type, scale, row, (size_t)n, row);
            for (int i = 0; i < n; i++)
                part[i] = narrow >= 0 ? bound_round((enum dtype)narrow, (double)row[i]) : (double)row[i];
        }
    }
}

/* What one slot's predictions are made in. */
struct bench {
    const struct oracle_case *c; /* of what was given */
    double *given[3], *used[3];  /* owned: q [rows][dim], k [keys][dim], v [keys][dim_v] */
    double *s, *w;               /* owned, [rows][keys] */
    double *reference, *o;       /* owned, [rows][dim_v] */
};

static int bench_new(const struct oracle_case *c, struct bench *b)
{
    const struct flow_shape n = flow_shape(c);
    const size_t sizes[3] = {(size_t)n.rows * (size_t)n.dim, (size_t)n.keys * (size_t)n.dim,
                             (size_t)n.keys * (size_t)n.dim_v};
    const size_t o = (size_t)n.rows * (size_t)n.dim_v, weights = (size_t)n.rows * (size_t)n.keys;
    *b = (struct bench){.c = c};
    int made = 1;
    for (int i = 0; i < 3; i++) {
        made &= (b->given[i] = calloc(sizes[i], sizeof(double))) != NULL;
        made &= (b->used[i] = calloc(sizes[i], sizeof(double))) != NULL;
    }
    b->s = calloc(weights, sizeof(double));
    b->w = calloc(weights, sizeof(double));
    b->reference = calloc(o, sizeof(double));
    b->o = calloc(o, sizeof(double));
    return made && b->s && b->w && b->reference && b->o ? 0 : -1;
}

static void bench_free(struct bench *b)
{
    for (int i = 0; i < 3; i++) {
        free(b->given[i]);
        free(b->used[i]);
    }
    free(b->s);
    free(b->w);
    free(b->reference);
    free(b->o);
}

static void add_errors(const struct bench *b, int rounded, struct path_error *to)
{
    const struct flow_shape n = flow_shape(b->c);
    for (int i = 0; i < n.rows * n.dim_v; i++) {
        const double o = rounded ? bound_round((enum dtype)b->c->o_dtype, b->o[i]) : b->o[i];
        const double off = fabs(o - b->reference[i]);
        if (!isfinite(off)) {
            to->bad++;
            continue;
        }
        to->n++;
        to->largest = fmax(to->largest, off);
        to->squares += off * off;
    }
}

static void predict(const struct trace *t, const struct whatif *w, const int32_t *place, const struct bench *b,
                    struct whatif_row *row)
{
    const struct flow_shape n = flow_shape(b->c);
    const struct whatif_choice *c = &row->choice;
    const int kv_head = asc_kv_head(&t->problem, place[1], t->conventions.kv_head_map);
    for (int i = 0; i < 3; i++) {
        const struct head_rows at = {i, place[0], i ? kv_head : place[1], i ? 0 : place[2] * t->plan.br,
                                     i ? n.keys : n.rows};
        memcpy(b->used[i], b->given[i], (size_t)at.rows * (size_t)(i == 2 ? n.dim_v : n.dim) * sizeof(double));
        round_rows(t, w, c, &at, b->used[i]);
    }
    flow_scores(b->c, b->used[0], b->used[1], b->s);
    flow_round_weights(b->c, b->s, &(struct flow_rounding){c->p_type, ldexp(c->p_factor, c->p_offset), c->p_sums},
                       &(struct flow_weights){.w = b->w});
    flow_output(b->c, b->w, b->used[2], b->o);
    add_errors(b, 1, &row->o);
}

int whatif_piece(const struct trace *t, struct whatif *w, int piece)
{
    const int slot = (int)((int64_t)piece * w->all / w->slots + (int64_t)piece * 5 % (w->all / w->slots));
    struct given_case g;
    struct bench b = {0};
    if (given_case_make(t, slot, &g) != 0)
        return -1;
    int failed = bench_new(&g.given.c, &b) != 0;
    if (!failed) {
        flow_load(b.c, asc_q, FLOW_INPUT, b.given[0]);
        flow_load(b.c, asc_k, FLOW_INPUT, b.given[1]);
        flow_load(b.c, asc_v, FLOW_INPUT, b.given[2]);
        flow_scores(b.c, b.given[0], b.given[1], b.s);
        flow_weights(b.c, b.s, b.w);
        flow_output(b.c, b.w, b.given[2], b.reference);
        for (int i = 0; i < w->n; i++)
            predict(t, w, trace_slot_place(t, slot), &b, &w->row[i]);
        if (flow_run_output(&g.run.c, b.o))
            add_errors(&b, 0, &w->measured);
    }
    bench_free(&b);
    given_case_free(&g);
    return failed ? -1 : 0;
}
