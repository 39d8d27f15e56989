#include "engine/study/formats.h"

#include "engine/base/quantize.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/quantization/flow.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/values.h"
#include "engine/verdict/case.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *formats_source_words(enum formats_source source)
{
    static const char *const words[] = {[FORMATS_GIVEN] = "codes and scales of the problem",
                                        [FORMATS_MADE] = "made by the launch",
                                        [FORMATS_RECORDED] = "recorded",
                                        [FORMATS_DECLARED] = "by its declared type, from what was recorded"};
    return words[source];
}

double formats_badness(const struct formats_group *g)
{
    if (g->nan)
        return INFINITY;
    if (isnan(g->rms))
        return isfinite(g->headroom) ? g->headroom : 0;
    return g->value_rms > 0 ? g->rms / g->value_rms : 0;
}

/* One of q, k and v as an array of heads. */
struct input {
    char letter;
    struct problem_tensor of;
    int heads, rows, share, dims; /* rows, elements of each, that share a scale; 0: all */
};

static struct input input_of(const struct trace *t, const struct formats_tensor *tensor)
{
    const struct asc_problem *p = &t->problem;
    struct input in = {.of = problem_tensor(p, problem_tensor_of(tensor->channel))};
    in.letter = channel_name(tensor->channel)[0];
    in.heads = in.of.heads;
    in.rows = in.of.rows;
    in.share = tensor->source == FORMATS_GIVEN ? p->scale_rows : t->conventions.quantized_rows;
    in.dims = tensor->source == FORMATS_GIVEN ? p->scale_dims : 0;
    return in;
}

static int groups_of(const struct trace *t, const struct formats_tensor *tensor)
{
    const struct input in = input_of(t, tensor);
    return tensor->channel == asc_p
               ? t->layout.n_slots
               : t->problem.batch * in.heads * codes_groups(in.rows, in.share) * codes_groups(in.of.cols, in.dims);
}

/* 0: the tensor has no codes. */
static int find_input(const struct trace *t, enum asc_channel ch, struct formats_tensor *out)
{
    const struct asc_problem *p = &t->problem;
    const enum dtype type = problem_tensor(p, problem_tensor_of(ch)).dtype;
    const bool made = t->conventions.quantized != ASC_QUANTIZED_GIVEN;
    if (!made && !dtype_is_code(type))
        return 0;
    *out = (struct formats_tensor){.channel = ch,
                                   .type = made ? codes_type(t->conventions.quantized) : type,
                                   .source = made ? FORMATS_MADE : FORMATS_GIVEN};
    return 1;
}

static int find_p(const struct trace *t, struct formats_tensor *out)
{
    struct slot_case c;
    int found = 0;
    if (!t->layout.n_slots || (!trace_has(t, asc_p) && !trace_has(t, asc_s)))
        return 0;
    if (slot_case_make(t, 0, &c) != 0)
        return -1;
    const int type = flow_rounding(&c.c).type, recorded = t->layout.channel[asc_p].dtype;
    if (type >= 0 && dtype_is_code((enum dtype)type)) {
        *out = (struct formats_tensor){.channel = asc_p,
                                       .type = (enum dtype)type,
                                       .source = recorded == type ? FORMATS_RECORDED : FORMATS_DECLARED};
        found = 1;
    }
    slot_case_free(&c);
    return found;
}

int formats_begin(const struct trace *t, struct formats **out, int *pieces)
{
    static const enum asc_channel inputs[] = {asc_q, asc_k, asc_v};
    struct formats *f = calloc(1, sizeof *f);
    *out = NULL;
    *pieces = 0;
    if (!f)
        return -1;
    for (int i = 0; i < 3; i++)
        f->n += find_input(t, inputs[i], &f->tensor[f->n]);
    const int p = find_p(t, &f->tensor[f->n]);
    f->n += p > 0;
    int failed = p < 0;
    for (int i = 0; i < f->n; i++) {
        struct formats_tensor *tensor = &f->tensor[i];
        tensor->n_groups = groups_of(t, tensor);
        tensor->groups = calloc((size_t)tensor->n_groups + 1, sizeof *tensor->groups);
        tensor->order = calloc((size_t)tensor->n_groups + 1, sizeof *tensor->order);
        failed |= !tensor->groups || !tensor->order;
        *pieces += tensor->channel == asc_p ? t->layout.n_slots : t->problem.batch * input_of(t, tensor).heads;
    }
    if (failed) {
        formats_free(f);
        return -1;
    }
    *out = f;
    return 0;
}

void formats_free(struct formats *f)
{
    if (!f)
        return;
    for (int i = 0; i < FORMATS_TENSORS; i++) {
        free(f->tensor[i].groups);
        free(f->tensor[i].order);
    }
    free(f);
}

/* Adds the codes of a group to its tensor, and says what becomes of them. */
static void judge_group(struct formats_tensor *tensor, const struct format_values *v, struct formats_group *g)
{
    struct format_counts counts = {0};
    double squares = 0, best_squares = 0;
    formats_add(v, &counts);
    formats_add(v, &tensor->counts);
    g->scale = v->scale;
    g->elements = counts.elements;
    g->saturated = counts.saturated;
    g->flushed = counts.flushed;
    g->nan = counts.nan;
    g->rms = formats_rms(&counts);
    if (v->value) {
        for (size_t i = 0; i < v->n; i++)
            squares += isfinite(v->value[i]) ? (double)v->value[i] * (double)v->value[i] : 0;
        g->amax = formats_amax(v->value, v->n);
        g->best_scale = (double)formats_best_scale(v->type, v->value, v->n, (float)v->scale, &best_squares);
        g->best_rms = counts.compared ? sqrt(best_squares / (double)counts.compared) : NAN;
        g->value_rms = counts.compared ? sqrt(squares / (double)counts.compared) : NAN;
    } else {
        double top = 0; /* of the codes, which amount to the same but for their rounding */
        for (int i = 0; i < 256; i++)
            if (counts.code[i] && isfinite(values_code(v->type, (uint8_t)i)))
                top = fmax(top, fabs(values_code(v->type, (uint8_t)i)));
        g->amax = top * v->scale;
        g->best_scale = g->best_rms = g->value_rms = NAN;
    }
    g->headroom = formats_headroom(v->type, v->scale, g->amax);
}

/* Codes and values of one group, [rows][dim] packed. */
struct gathered {
    uint8_t *code;
    float *value;
    bool known; /* value holds something */
    double scale;
};

static void gather(const struct trace *t, const struct formats_tensor *tensor, const struct input *in,
                   const struct formats_group *g, struct gathered *out)
{
    const int dim = g->cols;
    const size_t n = (size_t)g->rows * (size_t)dim;
    enum dtype dtype, given_dtype = DTYPE_F16;
    const uint8_t *codes = trace_tensor(t, in->letter, &dtype);
    const void *given = trace_given(t, in->letter, &given_dtype);
    out->known = given != NULL;
    for (int r = 0; r < g->rows; r++) {
        const size_t from = (size_t)problem_tensor_at(&in->of, g->batch, g->head, g->first + r) + (size_t)g->first_col,
                     to = (size_t)r * (size_t)dim;
        for (int d = 0; given && d < dim; d++)
            out->value[to + (size_t)d] = (float)dtype_load(given_dtype, given, from + (size_t)d);
        if (tensor->source == FORMATS_GIVEN)
            memcpy(out->code + to, codes + from, (size_t)dim);
    }
    if (tensor->source == FORMATS_GIVEN) {
        out->scale = (double)trace_scales(t, in->letter)[asc_scale_of(&t->problem, in->heads, in->rows, in->of.cols,
                                                                      g->batch, g->head, g->first, g->first_col)] *
                     (double)problem_tensor_scale(&t->problem, problem_tensor_of(tensor->channel));
        return;
    }
    const struct quantizer q =
        quantizer_of(tensor->type, (float)formats_amax(out->value, n),
                     t->conventions.quantized_by == ASC_BY_RECIPROCAL ? QUANTISE_RECIPROCAL : QUANTISE_DIVISION);
    out->scale = (double)q.scale;
    for (size_t i = 0; i < n; i++)
        out->code[i] = quantize_code(&q, out->value[i]);
}

static int input_piece(const struct trace *t, struct formats_tensor *tensor, int head)
{
    const struct input in = input_of(t, tensor);
    const int parts = codes_groups(in.of.cols, in.dims), per_head = codes_groups(in.rows, in.share) * parts,
              share = in.share > 0 && in.share < in.rows ? in.share : in.rows;
    const size_t n = (size_t)share * (size_t)in.of.cols;
    struct gathered x = {.code = calloc(n, 1), .value = calloc(n, sizeof(float))};
    const bool failed = !x.code || !x.value;
    for (int i = 0; !failed && i < per_head; i++) {
        struct formats_group *g = &tensor->groups[head * per_head + i];
        *g = (struct formats_group){.batch = head / in.heads,
                                    .head = head % in.heads,
                                    .first = i / parts * share,
                                    .first_col = i % parts * in.dims,
                                    .parts = parts};
        const int rows = problem_tensor_rows(&in.of, g->batch);
        g->rows = rows - g->first < share ? rows - g->first : share;
        g->cols = in.dims > 0 && in.of.cols - g->first_col > in.dims ? in.dims : in.of.cols - g->first_col;
        if (g->rows <= 0) { /* behind its sequence */
            g->rows = 0;
            continue;
        }
        gather(t, tensor, &in, g, &x);
        judge_group(tensor,
                    &(struct format_values){tensor->type, x.code, x.known ? x.value : NULL,
                                            (size_t)g->rows * (size_t)g->cols, x.scale},
                    g);
    }
    free(x.code);
    free(x.value);
    return failed ? -1 : 0;
}

/* Whether what P was before it was rounded is known: it was recorded so, or follows from S. */
static bool p_known(const struct slot_case *c)
{
    return c->c.captured[asc_s].data || !dtype_is_code((enum dtype)c->types[asc_p]);
}

/* P of the keys that each row sees, in its own frame and with its offset. */
static void p_group(const struct slot_case *c, struct formats_tensor *tensor, double *room, const struct gathered *to,
                    struct formats_group *g)
{
    const struct flow_shape n = flow_shape(&c->c);
    const size_t weights = (size_t)n.rows * (size_t)n.keys;
    double *s = room, *w = room + weights, *p = room + 2 * weights, *code = room + 3 * weights;
    size_t count = 0;
    flow_run_scores(&c->c, s, s);
    flow_run_weights(&c->c, s, &(struct flow_weights){w, p, code});
    const int known = p_known(c);
    for (int r = 0; r < n.rows; r++) {
        const struct key_range seen = schedule_range(&c->c, r);
        for (int j = seen.first; j < seen.last; j++) {
            const size_t i = (size_t)r * (size_t)n.keys + (size_t)j;
            if (!flow_visited(&c->c, j / c->c.bc) || !schedule_shows(&c->c, r, j))
                continue;
            dtype_store(tensor->type, to->code, count, code[i]);
            to->value[count++] = (float)p[i];
        }
    }
    judge_group(tensor, &(struct format_values){tensor->type, to->code, known ? to->value : NULL, count, 1}, g);
}

static int p_piece(const struct trace *t, struct formats_tensor *tensor, int slot)
{
    const int32_t *place = trace_slot_place(t, slot);
    struct formats_group *g = &tensor->groups[slot];
    struct slot_case c;
    if (slot_case_make(t, slot, &c) != 0)
        return -1;
    *g = (struct formats_group){
        .batch = place[0], .head = place[1], .first = place[2] * t->plan.br, .rows = c.c.in_q.rows};
    const size_t weights = (size_t)c.c.in_q.rows * (size_t)c.c.kv_len;
    double *room = calloc(weights * 4, sizeof *room);
    const struct gathered to = {.code = calloc(weights, 1), .value = calloc(weights, sizeof(float))};
    const bool made = room && to.code && to.value;
    if (made)
        p_group(&c, tensor, room, &to, g);
    free(room);
    free(to.code);
    free(to.value);
    slot_case_free(&c);
    return made ? 0 : -1;
}

/* Insertion into what is sorted so far would be quadratic: keys beside indices, and the library's sort. */
struct ranked {
    double badness;
    int group;
};

static int worst_first(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->badness != y->badness ? (x->badness < y->badness ? 1 : -1)
                                    : (x->group > y->group) - (x->group < y->group);
}

static int sort_groups(struct formats_tensor *tensor)
{
    struct ranked *ranked = calloc((size_t)tensor->n_groups + 1, sizeof *ranked);
    if (!ranked)
        return -1;
    for (int i = 0; i < tensor->n_groups; i++)
        ranked[i] = (struct ranked){formats_badness(&tensor->groups[i]), i};
    qsort(ranked, (size_t)tensor->n_groups, sizeof *ranked, worst_first);
    for (int i = 0; i < tensor->n_groups; i++)
        tensor->order[i] = ranked[i].group;
    free(ranked);
    return 0;
}

int formats_piece(const struct trace *t, struct formats *f, int piece)
{
    for (int i = 0; i < f->n; i++) {
        struct formats_tensor *tensor = &f->tensor[i];
        const bool is_p = tensor->channel == asc_p;
        const int pieces = is_p ? t->layout.n_slots : t->problem.batch * input_of(t, tensor).heads;
        if (piece >= pieces) {
            piece -= pieces;
            continue;
        }
        const int failed = is_p ? p_piece(t, tensor, piece) : input_piece(t, tensor, piece);
        return failed ? -1 : piece + 1 == pieces ? sort_groups(tensor) : 0;
    }
    return 0;
}
