#include "engine/run/inputs.h"

#include "engine/base/format.h"
#include "engine/base/text.h"
#include "engine/trace/layout.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct making {
    const struct scenario *scenario;
    struct asc_problem p;
    struct pool *pool;
    struct filled *before;
    const struct runner_progress *progress;
    struct run_inputs *out;
    struct err *err;
};

static const char *const tensor_names[3] = {"Q", "K", "V"};

/* Where an element is wanted that stands at offset `at` of the array. */
struct copying {
    const struct array *a;
    enum dtype from, to;
    void *out;
    bool misfits; /* a finite value became infinite */
};

static void copy_one(struct copying *c, int64_t at, int64_t to)
{
    const double value = dtype_load(c->from, c->a->data, (size_t)at);
    dtype_store(c->to, c->out, (size_t)to, value);
    c->misfits |= isfinite(value) && !isfinite(dtype_load(c->to, c->out, (size_t)to));
}

static void copy_row(struct copying *c, int64_t at, int64_t stride, int64_t to, int n)
{
    const size_t item = dtype_bytes(c->to);
    if (c->a->pairs) {
        for (int i = 0; i < n; i++)
            ((uint8_t *)c->out)[to + i] = ((const uint8_t *)c->a->data)[(at + i) / 2] >> (at + i) % 2 * 4 & 0xF;
        return;
    }
    if (c->from == c->to && stride == 1) {
        memcpy((char *)c->out + (size_t)to * item, (const char *)c->a->data + (size_t)at * item, (size_t)n * item);
        return;
    }
    for (int i = 0; i < n; i++)
        if (c->from == c->to) /* NaN keeps its bits */
            memcpy((char *)c->out + (size_t)(to + i) * item,
                   (const char *)c->a->data + (size_t)(at + stride * i) * item, item);
        else
            copy_one(c, at + stride * i, to + i);
}

static void copy_tensor(struct copying *c, const struct input_view *v, const struct asc_problem *p,
                        const struct problem_tensor *w)
{
    for (int b = 0; b < p->batch; b++)
        for (int h = 0; h < w->heads; h++)
            for (int row = 0; row < w->rows; row++)
                copy_row(c, v->offset + v->stride[0] * b + v->stride[1] * h + v->stride[2] * row, v->stride[3],
                         problem_tensor_at(w, b, h, row), w->cols);
}

/* An input as it was when the scenario was read. */
static int open_input(const struct making *m, enum input_id i, const char *spec, struct array *a, struct input_view *v)
{
    return scenario_open_input(m->scenario, i, spec, true, a, v, m->err);
}

static int changed(const struct making *m, const struct array *a)
{
    char shape[160];
    return err_set(m->err, ERR_INPUT, a->name, "has changed: its shape is %s now; open it again",
                   array_shape(a, shape));
}

static int check_lengths(const struct making *m, const struct array *a, const struct input_view *v,
                         const struct problem_tensor *w)
{
    const int *n = v->length;
    return n[0] == m->p.batch && n[1] == w->heads && n[2] == w->rows && n[3] == w->cols ? 0 : changed(m, a);
}

static void say_rounded(const struct making *m, const struct array *a, const char *what, enum dtype to)
{
    char line[ARRAY_NAME_BYTES + 128], name[ARRAY_NAME_BYTES];
    if (!m->progress || !m->progress->log)
        return;
    snprintf(line, sizeof line, "%s is %s in %s, and rounded to %s", what, dtype_name((enum dtype)a->dtype),
             text_name(a->name, strlen(a->name), name, sizeof name), dtype_name(to));
    m->progress->log(m->progress->ctx, line);
}

/* What the file's elements are, where the kernel gets `wanted`; -1: nothing that can be made of it. */
static int type_in_file(const struct making *m, int tensor, const struct array *a, enum dtype wanted)
{
    const int is = scenario_input_type(m->scenario, tensor, a);
    const bool real = is == DTYPE_F16 || is == DTYPE_BF16 || is == DTYPE_F32 || is == DTYPE_F64;
    if (is == (int)wanted || real)
        return is;
    /* Bits mean what is stated, not what a kernel happens to take. */
    return a->bits && scenario_states_type(m->scenario, tensor) && a->item == dtype_bytes(wanted) ? (int)wanted : -1;
}

/* The values that the codes were made from, where the trace knows them. */
static int take_given(struct making *m, int tensor)
{
    char spec[ARRAY_NAME_BYTES];
    struct array a;
    struct input_view v;
    const struct problem_tensor w = problem_tensor(&m->p, (enum problem_tensor_id)tensor);
    if (!scenario_given(m->scenario, tensor, spec))
        return 0;
    if (open_input(m, (enum input_id)tensor, spec, &a, &v) != 0)
        return -1;
    int result = check_lengths(m, &a, &v, &w);
    if (result == 0 && a.dtype == DTYPE_F16) {
        m->out->values[tensor] = calloc(1, fill_tensor_bytes(&m->p, tensor) + 1);
        result = m->out->values[tensor] ? 0 : err_no_memory(m->err, "", "the inputs");
        struct copying c = {&a, DTYPE_F16, DTYPE_F16, m->out->values[tensor], false};
        if (result == 0)
            copy_tensor(&c, &v, &m->p, &w);
    }
    if (result == 0)
        result = array_check(&a, m->err);
    array_close(&a);
    return result;
}

/* What multiplies the scales of a tensor, where it is not made with its codes. */
static float tensor_scale(const struct asc_problem *p, int tensor)
{
    return p->scale_type == ASC_SCALE_E4M3 ? problem_tensor_scale(p, (enum problem_tensor_id)tensor) : 0;
}

/* Scales of a file: finite numbers above 0, and of their type. */
static int check_scale(const struct making *m, const struct array *a, float scale)
{
    const enum dtype type = problem_scale_dtype(&m->p);
    uint64_t room = 0;
    if (!(scale > 0) || !isfinite(scale))
        return err_set(m->err, ERR_INPUT, a->name, "holds the scale %g; expected finite numbers above 0",
                       (double)scale);
    dtype_store(type, &room, 0, (double)scale);
    if (dtype_load(type, &room, 0) == (double)scale)
        return 0;
    return err_set(m->err, ERR_INPUT, a->name, "holds the scale %g, which %s has not (quant.scale_type)", (double)scale,
                   dtype_name(type));
}

/* Scales of codes that a file holds: of another file, or 1. */
static int take_scales(struct making *m, int tensor)
{
    char spec[ARRAY_NAME_BYTES];
    const struct problem_tensor w = problem_tensor(&m->p, (enum problem_tensor_id)tensor);
    const enum input_id i = (enum input_id)(INPUT_Q_SCALE + tensor);
    const int groups = asc_scale_groups(&m->p, w.rows), parts = asc_scale_parts(&m->p, w.cols);
    float *out = m->out->scales[tensor];
    const int64_t n = (int64_t)m->p.batch * w.heads * groups * parts;
    m->out->tensor_scale[tensor] = tensor_scale(&m->p, tensor);
    for (int64_t k = 0; k < n; k++)
        out[k] = 1;
    if (!scenario_input(m->scenario, i, spec))
        return 0;
    struct array a;
    struct input_view v;
    if (open_input(m, i, spec, &a, &v) != 0)
        return -1;
    const bool fits = (v.length[0] == 1 || v.length[0] == m->p.batch) && (v.length[1] == 1 || v.length[1] == w.heads) &&
                      (v.length[2] == 1 || v.length[2] == groups) && (v.length[3] == 1 || v.length[3] == parts) &&
                      a.dtype >= 0;
    int result = fits ? 0 : changed(m, &a);
    const bool bits = m->p.scale_type != ASC_SCALE_F32 && a.bits && a.item == 1;
    struct copying c = {&a, bits ? problem_scale_dtype(&m->p) : (enum dtype)a.dtype, DTYPE_F32, out, false};
    for (int64_t k = 0; k < n && result == 0; k++)
        copy_one(&c,
                 v.offset + v.stride[0] * (k / parts / groups / w.heads) +
                     v.stride[1] * (k / parts / groups % w.heads) + v.stride[2] * (k / parts % groups) +
                     v.stride[3] * (k % parts),
                 k);
    for (int64_t k = 0; k < n && result == 0; k++)
        result = check_scale(m, &a, out[k]);
    if (result == 0 && a.dtype == DTYPE_F64)
        say_rounded(m, &a, scenario_input_names[i], DTYPE_F32);
    if (result == 0)
        result = array_check(&a, m->err);
    array_close(&a);
    return result;
}

static int new_codes(struct making *m, int tensor)
{
    m->out->codes[tensor] = malloc(problem_tensor_count(&m->p, (enum problem_tensor_id)tensor));
    m->out->scales[tensor] = malloc(encode_scales_bytes(&m->p, tensor));
    return m->out->codes[tensor] && m->out->scales[tensor] ? 0 : err_no_memory(m->err, "", "the inputs");
}

static bool all_finite(const struct asc_problem *p, int tensor, const uint16_t *values)
{
    const size_t n = fill_tensor_bytes(p, tensor) / sizeof *values;
    for (size_t i = 0; i < n; i++)
        if ((values[i] & 0x7C00u) == 0x7C00u)
            return false;
    return true;
}

/* K less its mean over the keys of its head, rounded to f16 as all that codes are made of is. */
static void smooth(const struct making *m, uint16_t *values)
{
    const struct problem_tensor k = problem_tensor(&m->p, TENSOR_K);
    for (int i = 0; i < m->p.batch * k.heads * k.cols; i++) {
        const int d = i % k.cols, head = i / k.cols % k.heads, batch = i / k.cols / k.heads;
        const int rows = problem_tensor_rows(&k, batch);
        double sum = 0;
        for (int row = 0; row < rows; row++)
            sum += f16_to_f64(values[problem_tensor_at(&k, batch, head, row) + d]);
        for (int row = 0; row < rows; row++) {
            uint16_t *x = &values[problem_tensor_at(&k, batch, head, row) + d];
            *x = f16_from_f64(f16_to_f64(*x) - sum / rows);
        }
    }
}

/* Of a tensor of codes, from values[tensor]. */
static int encode(struct making *m, int tensor)
{
    if (new_codes(m, tensor) != 0)
        return -1;
    if (tensor == TENSOR_K && m->scenario->smooth_k)
        smooth(m, m->out->values[tensor]);
    const float own = encode_tensor(&m->p, tensor, (enum scenario_scales)m->scenario->scales, m->out->values[tensor],
                                    m->out->codes[tensor], m->out->scales[tensor]);
    m->out->tensor_scale[tensor] = m->p.scale_type == ASC_SCALE_E4M3 ? own : 0;
    return 0;
}

/* The array is open. */
static int read_tensor(struct making *m, int tensor, const struct array *a, const struct input_view *v)
{
    const struct problem_tensor w = problem_tensor(&m->p, (enum problem_tensor_id)tensor);
    const int from = type_in_file(m, tensor, a, w.dtype);
    const enum dtype to = from == (int)w.dtype ? w.dtype : fill_dtype(&m->p, tensor);
    if (check_lengths(m, a, v, &w) != 0)
        return -1;
    if (from < 0)
        return err_set(m->err, ERR_INPUT, a->name, "is of type %s; the kernel takes %s for %s", a->type,
                       dtype_name(w.dtype), tensor_names[tensor]);
    const bool codes = dtype_is_code(to);
    if (codes && new_codes(m, tensor) != 0)
        return -1;
    if (!codes && !(m->out->values[tensor] = calloc(1, fill_tensor_bytes(&m->p, tensor) + 1)))
        return err_no_memory(m->err, "", "the inputs");
    struct copying c = {a, (enum dtype)from, to, codes ? m->out->codes[tensor] : m->out->values[tensor], false};
    copy_tensor(&c, v, &m->p, &w);
    if (c.misfits)
        return err_set(m->err, ERR_INPUT, a->name, "has values that overflow %s", dtype_name(to));
    if (codes)
        return take_scales(m, tensor) != 0 ? -1 : take_given(m, tensor);
    if (from != (int)to)
        say_rounded(m, a, tensor_names[tensor], to);
    if (!dtype_is_code(w.dtype))
        return 0;
    if (!all_finite(&m->p, tensor, m->out->values[tensor]))
        return err_set(m->err, ERR_INPUT, a->name, "holds NaN or infinity, of which no %s codes are made",
                       dtype_name(w.dtype));
    return encode(m, tensor);
}

static const struct fill *fill_of(const struct scenario *scenario, int tensor)
{
    const struct fill *fills[3] = {&scenario->fill_q, &scenario->fill_k, &scenario->fill_v};
    return fills[tensor];
}

static int fill_one(struct making *m, int tensor)
{
    const struct fill *fill = fill_of(m->scenario, tensor);
    const struct problem_tensor w = problem_tensor(&m->p, (enum problem_tensor_id)tensor);
    m->out->filled[tensor] = !dtype_is_code(w.dtype) && !w.lens; /* nothing else is made of it */
    m->out->values[tensor] = m->before && m->out->filled[tensor] ? filled_take(m->before, &m->p, tensor, fill) : NULL;
    if (m->out->values[tensor])
        return 0;
    m->out->values[tensor] = calloc(1, fill_tensor_bytes(&m->p, tensor) + 1);
    if (!m->out->values[tensor])
        return err_no_memory(m->err, "", "the inputs");
    /* It would make NaN out of a correct kernel. */
    if (fill_tensor(&m->p, tensor, fill, m->pool, m->out->values[tensor]) != 0)
        return err_set(m->err, ERR_INPUT, m->scenario->path, "fill.sigma: %s has values that overflow %s",
                       tensor_names[tensor], dtype_name(fill_dtype(&m->p, tensor)));
    return dtype_is_code(w.dtype) ? encode(m, tensor) : 0;
}

/* V that lies in K: the first elements of its rows, codes with their scales. */
static int take_from_k(struct making *m)
{
    const struct asc_problem *p = &m->p;
    const struct problem_tensor k = problem_tensor(p, TENSOR_K), v = problem_tensor(p, TENSOR_V);
    const size_t value = dtype_bytes(fill_dtype(p, TENSOR_V)),
                 rows = (size_t)p->batch * (size_t)k.heads * (size_t)k.rows;
    const bool codes = m->out->codes[TENSOR_K] != NULL;
    if (codes && new_codes(m, TENSOR_V) != 0)
        return -1;
    if (m->out->values[TENSOR_K] && !(m->out->values[TENSOR_V] = malloc(fill_tensor_bytes(p, TENSOR_V))))
        return err_no_memory(m->err, "", "the inputs");
    for (size_t i = 0; i < rows; i++) {
        const size_t from = i * (size_t)k.cols, to = i * (size_t)v.cols;
        if (m->out->values[TENSOR_V] && m->out->values[TENSOR_K])
            memcpy((char *)m->out->values[TENSOR_V] + to * value, (char *)m->out->values[TENSOR_K] + from * value,
                   (size_t)v.cols * value);
        if (codes && m->out->codes[TENSOR_V])
            memcpy((char *)m->out->codes[TENSOR_V] + to, (char *)m->out->codes[TENSOR_K] + from, (size_t)v.cols);
    }
    const size_t k_parts = (size_t)asc_scale_parts(p, k.cols), v_parts = (size_t)asc_scale_parts(p, v.cols);
    for (size_t i = 0; codes && i < encode_scales_bytes(p, TENSOR_V) / sizeof(float); i++)
        m->out->scales[TENSOR_V][i] = m->out->scales[TENSOR_K][i / v_parts * k_parts + i % v_parts];
    return 0;
}

static int make_tensor(struct making *m, int tensor)
{
    char spec[ARRAY_NAME_BYTES];
    struct array a;
    struct input_view v;
    if (tensor == TENSOR_V && m->p.v_in_k)
        return take_from_k(m);
    if (!scenario_input(m->scenario, (enum input_id)tensor, spec))
        return fill_one(m, tensor);
    if (open_input(m, (enum input_id)tensor, spec, &a, &v) != 0)
        return -1;
    int result = read_tensor(m, tensor, &a, &v);
    if (result == 0)
        result = array_check(&a, m->err);
    array_close(&a);
    return result;
}

/* Rows behind a sequence hold what no kernel may count: NaN, in bytes the NaN of e4m3 and e5m2, and 6 of
   e2m1, which has none. */
static void end_sequences(const struct making *m, int tensor)
{
    const struct asc_problem *p = &m->p;
    const struct problem_tensor w = problem_tensor(p, (enum problem_tensor_id)tensor);
    void *const arrays[2] = {m->out->values[tensor], m->out->codes[tensor]};
    if (!w.lens)
        return;
    for (int i = 0; i < 2; i++) {
        const enum dtype type = i ? w.dtype : fill_dtype(p, tensor);
        const size_t item = dtype_bytes(type), row_bytes = (size_t)w.cols * item;
        for (int b = 0; b < p->batch && arrays[i]; b++)
            for (int h = 0; h < w.heads; h++)
                for (int row = problem_tensor_rows(&w, b); row < w.rows; row++) {
                    const int64_t at = problem_tensor_at(&w, b, h, row);
                    unsigned char *to = (unsigned char *)arrays[i] + (size_t)at * item;
                    if (item == 1)
                        memset(to, type == DTYPE_E2M1 ? 0x7 : 0x7F, row_bytes);
                    else
                        for (size_t k = 0; k < row_bytes; k += 2)
                            memcpy(to + k, &(uint16_t){UNWRITTEN_16}, 2);
                }
    }
}

/* f32 values of a file as [n0][n1][n2][n3]. 1: of no file. */
static int read_term(struct making *m, enum input_id i, const int n[4], float *out)
{
    char spec[ARRAY_NAME_BYTES];
    struct array a;
    struct input_view v;
    bool fits = true;
    if (!scenario_input(m->scenario, i, spec))
        return 1;
    if (open_input(m, i, spec, &a, &v) != 0)
        return -1;
    for (int k = 0; k < 4; k++)
        fits = fits && (v.length[k] == n[k] || v.length[k] == 1);
    int result = fits && a.dtype >= 0 ? 0
                 : fits ? err_set(m->err, ERR_INPUT, a.name, "is of type %s; expected floating point", a.type)
                        : changed(m, &a);
    struct copying c = {&a, (enum dtype)a.dtype, DTYPE_F32, out, false};
    for (int64_t b = 0, to = 0; b < n[0] && result == 0; b++)
        for (int h = 0; h < n[1]; h++)
            for (int row = 0; row < n[2]; row++)
                for (int col = 0; col < n[3]; col++, to++)
                    copy_one(&c, v.offset + v.stride[0] * b + v.stride[1] * h + v.stride[2] * row + v.stride[3] * col,
                             to);
    if (result == 0 && c.misfits)
        result = err_set(m->err, ERR_INPUT, a.name, "has values that overflow f32");
    if (result == 0 && a.dtype == DTYPE_F64 && i != INPUT_MASK && i != INPUT_KEEP)
        say_rounded(m, &a, scenario_input_names[i], DTYPE_F32);
    if (result == 0)
        result = array_check(&a, m->err);
    array_close(&a);
    return result;
}

/* A mask, or which weights are kept, of a file: what is not 0 is 1. 1: of no file. */
static int read_mask(struct making *m, enum input_id id, int32_t kind, uint8_t *out)
{
    const struct asc_strides strides = asc_pair_strides(&m->p, kind);
    const int n[4] = {strides.batch ? m->p.batch : 1, strides.head ? m->p.heads : 1, m->p.q_len, m->p.kv_len};
    const size_t count = asc_pair_count(&m->p, kind);
    float *values = malloc((count + 1) * sizeof *values);
    const int read = values ? read_term(m, id, n, values) : err_no_memory(m->err, "", "a mask");
    for (size_t i = 0; i < count && read == 0; i++)
        out[i] = values[i] != 0;
    free(values);
    return read;
}

static int check_fill(struct making *m, const float *values, size_t n, const char *what)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(values[i]))
            return err_set(m->err, ERR_INPUT, m->scenario->path, "fill.%s.sigma: there are values that overflow f32",
                           what);
    return 0;
}

/* Sinks, slopes, bias and mask as far as the problem has them. */
static int make_terms(struct making *m)
{
    const struct asc_problem *p = &m->p;
    struct run_inputs *out = m->out;
    const struct asc_strides strides = asc_bias_strides(p);
    const size_t n_bias = asc_bias_count(p);
    const int heads[4] = {1, p->heads, 1, 1},
              bias[4] = {strides.batch ? p->batch : 1, strides.head ? p->heads : 1, p->q_len, p->kv_len};
    out->sink = p->has_sink ? malloc((size_t)p->heads * sizeof(float)) : NULL;
    out->alibi = p->has_alibi ? malloc((size_t)p->heads * sizeof(float)) : NULL;
    out->bias = n_bias ? malloc(n_bias * sizeof(float)) : NULL;
    out->mask = asc_mask_count(p) ? malloc(asc_mask_count(p)) : NULL;
    out->keep = asc_keep_count(p) ? malloc(asc_keep_count(p)) : NULL;
    if ((asc_keep_count(p) && !out->keep) || (p->has_sink && !out->sink) || (p->has_alibi && !out->alibi) ||
        (n_bias && !out->bias) || (asc_mask_count(p) && !out->mask))
        return err_no_memory(m->err, "", "sinks, bias and mask");
    int read = out->sink ? read_term(m, INPUT_SINK, heads, out->sink) : 0;
    if (read > 0) {
        fill_sink(p, &m->scenario->fill_sink, out->sink);
        read = check_fill(m, out->sink, (size_t)p->heads, "sink");
    }
    if (read == 0 && out->alibi && (read = read_term(m, INPUT_ALIBI, heads, out->alibi)) > 0) {
        fill_alibi(p, out->alibi);
        read = 0;
    }
    if (read == 0 && out->mask && (read = read_mask(m, INPUT_MASK, p->mask_kind, out->mask)) > 0)
        read = fill_mask(p, out->mask, m->err);
    if (read == 0 && out->keep && (read = read_mask(m, INPUT_KEEP, p->keep_kind, out->keep)) > 0) {
        fill_keep(p, &m->scenario->fill_keep, out->keep);
        read = 0;
    }
    if (read == 0 && out->bias && (read = read_term(m, INPUT_BIAS, bias, out->bias)) > 0) {
        fill_bias(p, &m->scenario->fill_bias, out->bias);
        read = check_fill(m, out->bias, n_bias, "bias");
    }
    return read;
}

int inputs_make(const struct scenario *scenario, struct pool *pool, struct filled *before,
                const struct runner_progress *progress, struct run_inputs *out, struct err *err)
{
    struct making m = {scenario, scenario->problem, pool, before, progress, out, err};
    for (int tensor = 0; tensor < 3; tensor++) {
        if (make_tensor(&m, tensor) != 0)
            return -1;
        end_sequences(&m, tensor);
    }
    if (m.p.page_size && !(out->page_table = scenario_page_table(scenario)))
        return err_no_memory(err, "", "the page table");
    return make_terms(&m);
}

struct trace_inputs inputs_of(const struct run_inputs *inputs, struct asc_problem *p)
{
    struct trace_inputs out = {0};
    for (int i = 0; i < 3; i++) {
        out.of[i] = inputs->codes[i] ? inputs->codes[i] : inputs->values[i];
        out.given[i] = inputs->codes[i] ? inputs->values[i] : NULL;
    }
    p->q_tensor_scale = inputs->tensor_scale[0];
    p->k_tensor_scale = inputs->tensor_scale[1];
    p->v_tensor_scale = inputs->tensor_scale[2];
    p->q_scale = inputs->scales[0];
    p->k_scale = inputs->scales[1];
    p->v_scale = inputs->scales[2];
    p->sink = inputs->sink;
    p->alibi = inputs->alibi;
    p->bias = inputs->bias;
    p->mask = inputs->mask;
    p->keep = inputs->keep;
    p->page_table = inputs->page_table;
    return out;
}

void inputs_keep(struct run_inputs *inputs, const struct scenario *scenario, struct filled *to)
{
    for (int i = 0; i < 3; i++) {
        if (!inputs->filled[i] || !inputs->values[i])
            continue;
        filled_keep(to, &scenario->problem, i, fill_of(scenario, i), inputs->values[i]);
        inputs->values[i] = NULL;
    }
}

void inputs_free(struct run_inputs *inputs)
{
    for (int i = 0; i < 3; i++) {
        free(inputs->values[i]);
        free(inputs->codes[i]);
        free(inputs->scales[i]);
    }
    free(inputs->sink);
    free(inputs->alibi);
    free(inputs->bias);
    free(inputs->mask);
    free(inputs->keep);
    free(inputs->page_table);
    *inputs = (struct run_inputs){0};
}
