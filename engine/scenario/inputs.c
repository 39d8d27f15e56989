/* Inputs of files: [inputs]. What the files hold decides the shape, as far as that is not stated. */
#include "engine/base/safetensors.h"
#include "engine/base/text.h"
#include "engine/scenario/keys.h"
#include "engine/scenario/lists.h"
#include "engine/scenario/value.h"
#include "engine/trace/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- where an element of an array is ---- */

static int kv_heads_cut(const struct inputs *inputs, struct cut *out, struct err *err)
{
    const int group = inputs->all_kv_heads ? inputs->all_heads / inputs->all_kv_heads : 1;
    const struct cut heads = inputs->heads;
    *out = (struct cut){0, 0};
    if (!heads.end)
        return 0;
    *out = (struct cut){heads.first / group, (heads.end - 1) / group + 1};
    const bool whole = heads.first % group == 0 && heads.end % group == 0, within = out->end - out->first == 1;
    return whole || within ? 0
                           : err_set(err, ERR_INPUT, "inputs.heads",
                                     "expected whole groups of %d heads, or a part of one, found %d:%d", group,
                                     heads.first, heads.end);
}

/* Takes axis `dim` (below 0: the array has it not, and one value is for all) as view axis `axis`. */
static int take_axis(const struct array *a, int dim, struct cut cut, bool spreads, struct input_view *v, int axis,
                     struct err *err)
{
    static const char *const words[] = {"batches", "heads", "rows", "columns"};
    const int64_t all = dim < 0 ? 1 : a->length[dim];
    if (all > VALUE_LENGTH_MAX)
        return err_set(err, ERR_INPUT, a->name, "has %lld %s; expected at most %d", (long long)all, words[axis],
                       VALUE_LENGTH_MAX);
    v->length[axis] = (int)all;
    v->stride[axis] = dim < 0 ? 0 : a->stride[dim];
    if ((all == 1 && spreads) || !cut.end) {
        v->stride[axis] = all == 1 ? 0 : v->stride[axis];
        return 0;
    }
    if (cut.end > all)
        return err_set(err, ERR_INPUT, a->name, "has %lld %s; [inputs] takes %d:%d of them", (long long)all,
                       words[axis], cut.first, cut.end);
    v->length[axis] = cut.end - cut.first;
    v->offset += cut.first * v->stride[axis];
    return 0;
}

static int wrong_dims(const struct array *a, const char *expected, struct err *err)
{
    char shape[160];
    return err_set(err, ERR_INPUT, a->name, "has shape %s; expected %s", array_shape(a, shape), expected);
}

/* In which order the file has them. */
static int layout_of(const struct scenario *s, enum input_id i)
{
    const bool own = scenario_stated(s, (enum scenario_key_id)(KEY_INPUT_Q + (int)i)),
               stated = scenario_stated(s, KEY_LAYOUT) && s->problem.layout != ASC_THD;
    return s->inputs.from_trace && !own           ? s->inputs.from_layout
           : scenario_stated(s, KEY_INPUT_LAYOUT) ? s->inputs.layout
           : stated                               ? s->problem.layout
                                                  : ASC_BHLD;
}

static int view_tensor(const struct scenario *s, enum input_id i, int layout, const struct array *a,
                       struct input_view *v, struct err *err)
{
    const struct inputs *in = &s->inputs;
    struct cut heads = in->heads;
    if (a->n_dims != 4)
        return wrong_dims(a, layout == ASC_BHLD ? "[batch, heads, rows, head_dim]" : "[batch, rows, heads, head_dim]",
                          err);
    if (i != INPUT_Q && kv_heads_cut(in, &heads, err) != 0)
        return -1;
    const int head = layout == ASC_BHLD ? 1 : 2;
    return take_axis(a, 0, in->batches, false, v, 0, err) != 0 || take_axis(a, head, heads, false, v, 1, err) != 0 ||
                   take_axis(a, 3 - head, i == INPUT_Q ? in->q_rows : in->kv_rows, false, v, 2, err) != 0
               ? -1
               : take_axis(a, 3, (struct cut){0, 0}, false, v, 3, err);
}

/* [rows, columns], [heads, ..] or [batch, heads, ..], where 1 stands for all. */
static int view_bias(const struct scenario *s, const struct array *a, struct input_view *v, struct err *err)
{
    const int n = a->n_dims;
    if (n < 2 || n > 4)
        return wrong_dims(a, "[batch or 1, heads or 1, q_len, kv_len]", err);
    return take_axis(a, n - 4, s->inputs.batches, true, v, 0, err) != 0 ||
                   take_axis(a, n - 3, s->inputs.heads, true, v, 1, err) != 0 ||
                   take_axis(a, n - 2, s->inputs.q_rows, false, v, 2, err) != 0
               ? -1
               : take_axis(a, n - 1, s->inputs.kv_rows, false, v, 3, err);
}

/* The groups of rows that a cut of rows takes. */
static int groups_cut(const struct array *a, struct cut rows, int scale_rows, struct cut *out, struct err *err)
{
    *out = (struct cut){0, 0};
    if (!rows.end || scale_rows == 0)
        return 0;
    if (rows.first % scale_rows)
        return err_set(err, ERR_INPUT, a->name,
                       "has a scale for %d rows; [inputs] takes rows from %d on, inside a group", scale_rows,
                       rows.first);
    *out = (struct cut){rows.first / scale_rows, (rows.end - 1) / scale_rows + 1};
    return 0;
}

/* One for all, [heads], [batch, heads], [batch, heads, groups of rows] or those and parts of a row. */
static int view_scales(const struct scenario *s, enum input_id i, const struct array *a, struct input_view *v,
                       struct err *err)
{
    const struct inputs *in = &s->inputs;
    const int n = a->n_dims, batch = n > 1 ? 0 : -1, head = n > 1 ? 1 : n == 1 && a->length[0] > 1 ? 0 : -1;
    struct cut heads = in->heads, groups;
    if (n > 4)
        return wrong_dims(a, "[], [heads], [batch, heads], [batch, heads, groups] or [batch, heads, groups, parts]",
                          err);
    if ((i != INPUT_Q_SCALE && kv_heads_cut(in, &heads, err) != 0) ||
        groups_cut(a, i == INPUT_Q_SCALE ? in->q_rows : in->kv_rows, s->problem.scale_rows, &groups, err) != 0)
        return -1;
    return take_axis(a, batch, in->batches, true, v, 0, err) != 0 || take_axis(a, head, heads, true, v, 1, err) != 0 ||
                   take_axis(a, n >= 3 ? 2 : -1, groups, true, v, 2, err) != 0
               ? -1
               : take_axis(a, n == 4 ? 3 : -1, (struct cut){0, 0}, true, v, 3, err);
}

/* Bytes of a file that hold two codes each: of a tensor whose stated type is e2m1. A trace has a code in each. */
static bool holds_pairs(const struct scenario *s, enum input_id i, const struct array *a)
{
    const int32_t types[3] = {s->problem.dtype, s->problem.k_dtype, s->problem.v_dtype};
    const bool own = i <= INPUT_V && scenario_stated(s, (enum scenario_key_id)(KEY_INPUT_Q + (int)i));
    return i <= INPUT_V && (own || !s->inputs.from_trace) && types[i] == DTYPE_E2M1 &&
           scenario_states_type(s, (int)i) && a->bits && a->item == 1;
}

int scenario_open_input(const struct scenario *s, enum input_id i, const char *spec, bool values, struct array *a,
                        struct input_view *out, struct err *err)
{
    int layout = i <= INPUT_V ? layout_of(s, i) : ASC_BHLD;
    bool gathered = false;
    if (array_open(spec, values, a, err) != 0)
        return -1;
    int failed = i <= INPUT_V ? scenario_gather(s, i, layout == ASC_BHLD, values, a, &gathered, err) : 0;
    if (gathered)
        layout = ASC_BLHD;
    if (!failed && holds_pairs(s, i, a))
        failed = array_take_pairs(a, err);
    *out = (struct input_view){.length = {1, 1, 1, 1}};
    if (failed == 0)
        failed = i <= INPUT_V                         ? view_tensor(s, i, layout, a, out, err)
                 : i >= INPUT_BIAS && i <= INPUT_KEEP ? view_bias(s, a, out, err)
                 : i >= INPUT_Q_SCALE                 ? view_scales(s, i, a, out, err)
                 : a->n_dims == 1                     ? take_axis(a, 0, s->inputs.heads, false, out, 1, err)
                                                      : wrong_dims(a, "[heads]", err);
    if (failed)
        array_close(a);
    return failed;
}

/* ---- what the files decide ---- */

struct taking {
    struct scenario *s;
    const int *line; /* of the keys, or NULL */
    struct err *err;
    struct array a;
    struct input_view view;
};

/* Says under the key what is wrong with its file. */
static int refuse(const struct taking *t, enum scenario_key_id id, const struct err *why)
{
    char where[WHERE_BYTES];
    scenario_where(t->s, t->line, id, where, sizeof where);
    return err_set(t->err, why->code, where, "%s%s%s", why->where, why->where[0] ? ": " : "", why->message);
}

static enum scenario_key_id key_of(const struct scenario *s, enum input_id i)
{
    const enum scenario_key_id own = (enum scenario_key_id)(KEY_INPUT_Q + (int)i);
    return scenario_stated(s, own) ? own : KEY_INPUT_FROM;
}

/* Reads the head of an input. 1: there is none. */
static int look(struct taking *t, enum input_id i)
{
    char spec[ARRAY_NAME_BYTES];
    struct err why = {0};
    if (!scenario_input(t->s, i, spec))
        return 1;
    if (scenario_open_input(t->s, i, spec, false, &t->a, &t->view, &why) != 0)
        return refuse(t, key_of(t->s, i), &why);
    array_close(&t->a);
    return 0;
}

/* A length that a file has: the problem's, unless another is stated. */
static int take_length(const struct taking *t, enum input_id i, enum scenario_key_id id, int32_t *to, int found)
{
    char where[WHERE_BYTES], shape[160];
    if (!scenario_stated(t->s, id))
        *to = found;
    if (*to == found)
        return 0;
    scenario_where(t->s, t->line, key_of(t->s, i), where, sizeof where);
    return err_set(t->err, ERR_INPUT, where, "%s has shape %s, which makes shape.%s %d; expected %d, which is stated",
                   t->a.name, array_shape(&t->a, shape), scenario_keys[id].name, found, *to);
}

/* Lengths that another file has given. */
static int same_length(const struct taking *t, enum input_id i, const char *what, int wanted, int found)
{
    char where[WHERE_BYTES], shape[160];
    if (wanted == found)
        return 0;
    scenario_where(t->s, t->line, key_of(t->s, i), where, sizeof where);
    return err_set(t->err, ERR_INPUT, where, "%s has shape %s: %d %s; expected %d", t->a.name,
                   array_shape(&t->a, shape), found, what, wanted);
}

/* The type that the file has is the tensor's, unless another one is stated, which it can be made. trace_type: of a
   trace, where codes stand as bytes. */
static int take_type(const struct taking *t, enum input_id i, bool stated, int32_t *to, int trace_type)
{
    char where[WHERE_BYTES];
    const struct array *a = &t->a;
    const int type = trace_type >= 0 ? trace_type : a->dtype;
    const bool real = type == DTYPE_F16 || type == DTYPE_BF16 || type == DTYPE_F32 || type == DTYPE_F64,
               code = type >= 0 && dtype_is_code((enum dtype)type);
    if (!stated && (code || (real && type != DTYPE_F64)))
        *to = type;
    if (real || *to == type || (stated && a->bits && a->item == dtype_bytes((enum dtype) * to)))
        return 0;
    scenario_where(t->s, t->line, key_of(t->s, i), where, sizeof where);
    return err_set(t->err, ERR_INPUT, where,
                   "%s is of type %s; expected floating point, codes, or a shape.dtype %zu bytes wide "
                   "that says what its bits are",
                   a->name, a->type, a->item);
}

static int take_q(struct taking *t, int trace_type)
{
    struct scenario *s = t->s;
    struct asc_problem *p = &s->problem;
    const int *n = t->view.length;
    const enum input_id i = INPUT_Q;
    if (look(t, i) != 0)
        return -1;
    return take_length(t, i, KEY_BATCH, &p->batch, n[0]) != 0 || take_length(t, i, KEY_HEADS, &p->heads, n[1]) != 0 ||
                   take_length(t, i, KEY_Q_LEN, &p->q_len, n[2]) != 0 ||
                   take_length(t, i, KEY_HEAD_DIM, &p->head_dim, n[3]) != 0
               ? -1
               : take_type(t, i, scenario_stated(s, KEY_DTYPE), &p->dtype, trace_type);
}

static int take_k(struct taking *t, int trace_type)
{
    struct scenario *s = t->s;
    struct asc_problem *p = &s->problem;
    const int *n = t->view.length;
    const enum input_id i = INPUT_K;
    if (look(t, i) != 0)
        return -1;
    return same_length(t, i, "batches", p->batch, n[0]) != 0 ||
                   take_length(t, i, KEY_KV_HEADS, &p->kv_heads, n[1]) != 0 ||
                   take_length(t, i, KEY_KV_LEN, &p->kv_len, n[2]) != 0 ||
                   same_length(t, i, "elements a row", p->head_dim, n[3]) != 0
               ? -1
               : take_type(t, i, scenario_states_type(s, 1), &p->k_dtype, trace_type);
}

static int take_v(struct taking *t, int trace_type)
{
    struct scenario *s = t->s;
    struct asc_problem *p = &s->problem;
    const int *n = t->view.length;
    const enum input_id i = INPUT_V;
    if (look(t, i) != 0)
        return -1;
    return same_length(t, i, "batches", p->batch, n[0]) != 0 || same_length(t, i, "heads", p->kv_heads, n[1]) != 0 ||
                   same_length(t, i, "rows", p->kv_len, n[2]) != 0 ||
                   take_length(t, i, KEY_HEAD_DIM_V, &p->head_dim_v, n[3]) != 0
               ? -1
               : take_type(t, i, scenario_states_type(s, 2), &p->v_dtype, trace_type);
}

/* How many heads Q and K have before they are cut: which heads of K belong to which of Q. */
static int count_heads(struct taking *t)
{
    struct inputs *in = &t->s->inputs;
    const struct cut heads = in->heads, batches = in->batches, q_rows = in->q_rows, kv_rows = in->kv_rows;
    in->heads = in->batches = in->q_rows = in->kv_rows = (struct cut){0, 0};
    int failed = look(t, INPUT_Q);
    in->all_heads = failed ? 0 : t->view.length[1];
    failed = failed ? failed : look(t, INPUT_K);
    in->all_kv_heads = failed ? 0 : t->view.length[1];
    in->heads = heads;
    in->batches = batches;
    in->q_rows = q_rows;
    in->kv_rows = kv_rows;
    if (failed)
        return failed;
    char where[WHERE_BYTES];
    scenario_where(t->s, t->line, key_of(t->s, INPUT_K), where, sizeof where);
    return in->all_heads % in->all_kv_heads == 0
               ? 0
               : err_set(t->err, ERR_INPUT, where, "%s has %d heads; expected a divisor of the %d of q", t->a.name,
                         in->all_kv_heads, in->all_heads);
}

static int take_scales(struct taking *t, enum input_id i)
{
    struct scenario *s = t->s;
    struct asc_problem *p = &s->problem;
    const int heads = i == INPUT_Q_SCALE ? p->heads : p->kv_heads, rows = i == INPUT_Q_SCALE ? p->q_len : p->kv_len;
    const int found = look(t, i);
    if (found != 0)
        return found > 0 ? 0 : -1;
    if (!scenario_stated(s, KEY_SCALE_TYPE) && (!s->inputs.from_trace || key_of(s, i) != KEY_INPUT_FROM))
        p->scale_type = t->a.dtype == DTYPE_E4M3   ? ASC_SCALE_E4M3
                        : t->a.dtype == DTYPE_E8M0 ? ASC_SCALE_E8M0
                                                   : p->scale_type;
    const int *n = t->view.length, groups = n[2], parts = n[3], cols = i == INPUT_V_SCALE ? p->head_dim_v : p->head_dim;
    if (parts > 1 && !scenario_stated(s, KEY_SCALES) && !p->scale_dims) {
        s->scales = SCALES_BLOCKS;
        p->scale_dims = (cols - 1) / parts + 1;
    }
    if (groups > 1 && !scenario_stated(s, KEY_SCALES) && !p->scale_rows) {
        if (s->inputs.q_rows.end || s->inputs.kv_rows.end)
            return refuse(
                t, key_of(s, i),
                &(struct err){.code = ERR_INPUT, .message = "expected quant.scales = rows:N beside a cut of rows"});
        s->scales = SCALES_BLOCKS;
        p->scale_rows = (rows - 1) / groups + 1;
    }
    return (n[0] != 1 && same_length(t, i, "batches", p->batch, n[0]) != 0) ||
                   (n[1] != 1 && same_length(t, i, "heads", heads, n[1]) != 0) ||
                   (groups != 1 && same_length(t, i, "groups of rows", asc_scale_groups(p, rows), groups) != 0) ||
                   (parts != 1 && same_length(t, i, "parts of a row", asc_scale_parts(p, cols), parts) != 0)
               ? -1
               : 0;
}

static int take_flag(const struct taking *t, enum input_id i, enum scenario_key_id id, int32_t *to, int32_t found)
{
    char where[WHERE_BYTES];
    if (!scenario_stated(t->s, id))
        *to = found;
    if (*to == found)
        return 0;
    scenario_where(t->s, t->line, key_of(t->s, i), where, sizeof where);
    return err_set(t->err, ERR_INPUT, where, "expected another shape.%s beside %s, found `%s`", scenario_keys[id].name,
                   t->a.name, scenario_said(t->s, id));
}

/* A bias or mask: which dimensions it has follows from the file, unless that is stated, by a key of the shape. */
static int take_pairs(struct taking *t, enum input_id i, enum scenario_key_id id, int32_t *kind)
{
    struct asc_problem *p = &t->s->problem;
    const int *n = t->view.length;
    const int found = look(t, i);
    if (found != 0)
        return found > 0 ? 0 : -1;
    const bool of_trace = t->s->inputs.from_trace && key_of(t->s, i) == KEY_INPUT_FROM;
    if ((id > KEY_INPUT_FROM || !scenario_stated(t->s, id)) && !of_trace)
        *kind = n[0] > 1 && n[1] > 1 ? ASC_BIAS_FULL
                : n[0] > 1           ? ASC_BIAS_PER_BATCH
                : n[1] > 1           ? ASC_BIAS_PER_HEAD
                                     : ASC_BIAS_SHARED;
    if (*kind == ASC_BIAS_NONE)
        return take_flag(t, i, id, kind, ASC_BIAS_FULL);
    const struct asc_strides strides = asc_pair_strides(p, *kind);
    return (n[0] > 1 && same_length(t, i, "batches", strides.batch ? p->batch : 1, n[0]) != 0) ||
                   (n[1] > 1 && same_length(t, i, "heads", strides.head ? p->heads : 1, n[1]) != 0) ||
                   same_length(t, i, "rows", p->q_len, n[2]) != 0 || same_length(t, i, "columns", p->kv_len, n[3]) != 0
               ? -1
               : 0;
}

/* Which weights are kept, of a file, which does not say by which probability. */
static int take_keep(struct taking *t)
{
    struct asc_problem *p = &t->s->problem;
    char where[WHERE_BYTES], spec[ARRAY_NAME_BYTES];
    if (!scenario_input(t->s, INPUT_KEEP, spec))
        return 0;
    if (!(p->dropout > 0)) {
        scenario_where(t->s, t->line, KEY_INPUT_KEEP, where, sizeof where);
        return err_set(t->err, ERR_INPUT, where, "expected `shape.dropout` beside it, found none");
    }
    return take_pairs(t, INPUT_KEEP, KEY_INPUT_KEEP, &p->keep_kind);
}

static int take_heads(struct taking *t, enum input_id i, enum scenario_key_id id, int32_t *has)
{
    const int found = look(t, i);
    if (found != 0)
        return found > 0 ? 0 : -1;
    return same_length(t, i, "heads", t->s->problem.heads, t->view.length[1]) != 0 ? -1 : take_flag(t, i, id, has, 1);
}

/* What a trace says of its problem beside the shape of its tensors. */
static void take_problem(struct scenario *s, const struct asc_problem *of)
{
    struct asc_problem *p = &s->problem;
    if (!scenario_stated(s, KEY_CAUSAL))
        p->causal = of->causal;
    if (!scenario_stated(s, KEY_WINDOW)) {
        p->window_left = of->window_left;
        p->window_right = of->window_right;
    }
    if (!scenario_stated(s, KEY_SOFTCAP))
        p->softcap = of->softcap;
    if (!scenario_stated(s, KEY_SCALE))
        p->scale = of->scale;
    if (!scenario_stated(s, KEY_LAYOUT))
        p->layout = of->layout;
    if (!scenario_stated(s, KEY_SCALES)) {
        s->scales = of->scale_rows || of->scale_dims ? SCALES_BLOCKS : SCALES_HEAD;
        p->scale_rows = of->scale_rows;
        p->scale_dims = of->scale_dims;
    }
    if (!scenario_stated(s, KEY_SCALE_TYPE)) {
        p->scale_type = of->scale_type;
        p->q_tensor_scale = scenario_stated(s, KEY_Q_TENSOR_SCALE) ? p->q_tensor_scale : of->q_tensor_scale;
        p->k_tensor_scale = scenario_stated(s, KEY_K_TENSOR_SCALE) ? p->k_tensor_scale : of->k_tensor_scale;
        p->v_tensor_scale = scenario_stated(s, KEY_V_TENSOR_SCALE) ? p->v_tensor_scale : of->v_tensor_scale;
    }
    if (!scenario_stated(s, KEY_SINK))
        p->has_sink = of->has_sink;
    if (!scenario_stated(s, KEY_ALIBI))
        p->has_alibi = of->has_alibi;
    if (!scenario_stated(s, KEY_BIAS))
        p->bias_kind = of->bias_kind;
    if (!scenario_stated(s, KEY_MASK)) {
        p->mask_kind = of->mask_kind;
        memcpy(p->mask_formula, of->mask_formula, sizeof p->mask_formula);
    }
    if (!scenario_stated(s, KEY_DROPOUT)) {
        p->dropout = of->dropout;
        p->keep_kind = of->keep_kind;
    }
    if (!scenario_stated(s, KEY_SCORE_MOD))
        memcpy(p->score_mod, of->score_mod, sizeof p->score_mod);
    s->inputs.from_layout = of->layout == ASC_THD ? ASC_BLHD : of->layout; /* a trace has all sequences padded */
    if (!scenario_stated(s, KEY_PAGE_SIZE))
        p->page_size = of->page_size;
    if (!scenario_stated(s, KEY_V_IN_K))
        p->v_in_k = of->v_in_k;
    if (!scenario_stated(s, KEY_STRIDES))
        p->lie = of->lie;
    if (!scenario_stated(s, KEY_LEFT_PAD))
        p->left_pad = of->left_pad;
    if (!scenario_stated(s, KEY_NEW_KEYS))
        p->new_keys = of->new_keys;
    if (!scenario_stated(s, KEY_ROPE)) {
        p->rope = of->rope;
        p->rope_dim = of->rope_dim;
        p->rope_offset = of->rope_offset;
        p->rope_base = of->rope_base;
    }
}

/* Which inputs the common file has; a trace's problem and the types of its tensors. */
static int look_from(struct taking *t, int types[3])
{
    struct inputs *in = &t->s->inputs;
    const char *from = scenario_said(t->s, KEY_INPUT_FROM);
    struct err why = {0};
    struct trace *trace;
    in->found = 0;
    in->from_trace = false;
    if (!from)
        return 0;
    if (trace_is(from, &in->from_trace, &why) != 0)
        return refuse(t, KEY_INPUT_FROM, &why);
    if (in->from_trace) {
        if (trace_open(from, &trace, &why) != 0)
            return refuse(t, KEY_INPUT_FROM, &why);
        const struct asc_problem *p = &trace->problem;
        const int32_t of[3] = {p->dtype, p->k_dtype, p->v_dtype};
        take_problem(t->s, p);
        if (scenario_take_trace_lengths(t->s, p) != 0) {
            trace_free(trace);
            return err_no_memory(t->err, from, "the lengths of its sequences");
        }
        memcpy(in->from_types, of, sizeof of);
        for (int i = 0; i < 3; i++)
            types[i] = scenario_stated(t->s, (enum scenario_key_id)(KEY_INPUT_Q + i)) ? -1 : of[i];
        trace_free(trace);
    }
    /* A trace has all sequences padded, whatever lists it has besides. */
    for (int i = 0; i < (in->from_trace ? INPUT_Q_LENS : INPUT_COUNT); i++) {
        char name[32];
        bool has;
        snprintf(name, sizeof name, "%s%s", in->from_trace ? "input." : "", scenario_input_names[i]);
        if (array_has(from, name, &has, &why) != 0)
            return refuse(t, KEY_INPUT_FROM, &why);
        in->found |= has ? 1u << i : 0;
    }
    /* Stated to be left out. */
    const struct asc_problem *p = &t->s->problem;
    in->found &= ~((!p->has_sink && scenario_stated(t->s, KEY_SINK) ? 1u << INPUT_SINK : 0) |
                   (!p->has_alibi && scenario_stated(t->s, KEY_ALIBI) ? 1u << INPUT_ALIBI : 0) |
                   (!p->bias_kind && scenario_stated(t->s, KEY_BIAS) ? 1u << INPUT_BIAS : 0) |
                   (scenario_stated(t->s, KEY_MASK) ? 1u << INPUT_MASK : 0) |
                   (p->dropout > 0 && !(in->from_trace && scenario_stated(t->s, KEY_DROPOUT)) ? 0 : 1u << INPUT_KEEP));
    return 0;
}

/* What lists say of the sequences, and how large a page is. */
static int take_lists(struct taking *t)
{
    struct scenario *s = t->s;
    char spec[ARRAY_NAME_BYTES];
    struct err why = {0};
    enum input_id i = INPUT_Q_LENS;
    if (scenario_take_lists(s, &why) != 0) {
        while (i < INPUT_PAGE_TABLE && !(scenario_input(s, i, spec) && strcmp(spec, why.where) == 0))
            i++;
        return refuse(t, key_of(s, i), &why);
    }
    if (!scenario_input(s, INPUT_PAGE_TABLE, spec) || !scenario_input(s, INPUT_K, spec))
        return 0;
    if (array_open(spec, false, &t->a, &why) != 0)
        return refuse(t, key_of(s, INPUT_K), &why);
    if (!scenario_stated(s, KEY_PAGE_SIZE))
        s->problem.page_size = scenario_page_rows(s, &t->a, layout_of(s, INPUT_K) == ASC_BHLD);
    array_close(&t->a);
    return 0;
}

static int check_cuts(const struct taking *t)
{
    char where[WHERE_BYTES];
    for (int id = KEY_INPUT_LAYOUT; id <= KEY_INPUT_KV_ROWS; id++) {
        if (!scenario_stated(t->s, (enum scenario_key_id)id))
            continue;
        scenario_where(t->s, t->line, (enum scenario_key_id)id, where, sizeof where);
        return err_set(t->err, ERR_INPUT, where, "expected files of inputs beside it, found none");
    }
    return 0;
}

int scenario_take_inputs(struct scenario *s, const int *line, struct err *err)
{
    struct taking t = {.s = s, .line = line, .err = err};
    struct asc_problem *p = &s->problem;
    int types[3] = {-1, -1, -1};
    char spec[ARRAY_NAME_BYTES], where[WHERE_BYTES];
    scenario_forget_lengths(s);
    if (!scenario_has_inputs(s))
        return check_cuts(&t);
    if (look_from(&t, types) != 0 || take_lists(&t) != 0)
        return -1;
    for (int i = INPUT_Q; i <= INPUT_V; i++)
        if (!scenario_input(s, (enum input_id)i, spec)) {
            const char *from = scenario_said(s, KEY_INPUT_FROM);
            scenario_where(s, line, (enum scenario_key_id)(from ? KEY_INPUT_FROM : KEY_INPUT_Q + i), where,
                           sizeof where);
            if (from)
                return err_set(err, ERR_INPUT, where, "%s has no array `%s`; expected q, k and v", from,
                               scenario_input_names[i]);
            return err_set(err, ERR_INPUT, where, "expected a file of %s, as another input is of a file; found none",
                           scenario_input_names[i]);
        }
    if (count_heads(&t) != 0 || take_q(&t, types[0]) != 0 || take_k(&t, types[1]) != 0 || take_v(&t, types[2]) != 0)
        return -1;
    if (!scenario_stated(s, KEY_SCALE) && !s->inputs.from_trace)
        p->scale = scenario_auto_scale(p->head_dim);
    if (!scenario_stated(s, KEY_LAYOUT) && scenario_input(s, INPUT_CU_SEQLENS_Q, spec))
        p->layout = ASC_THD;
    else if (!scenario_stated(s, KEY_LAYOUT) && scenario_stated(s, KEY_INPUT_LAYOUT))
        p->layout = s->inputs.layout;
    for (int i = INPUT_Q_SCALE; i <= INPUT_V_SCALE; i++)
        if (take_scales(&t, (enum input_id)i) != 0)
            return -1;
    return take_heads(&t, INPUT_SINK, KEY_SINK, &p->has_sink) != 0 ||
                   take_heads(&t, INPUT_ALIBI, KEY_ALIBI, &p->has_alibi) != 0 ||
                   take_pairs(&t, INPUT_BIAS, KEY_BIAS, &p->bias_kind) != 0 ||
                   take_pairs(&t, INPUT_MASK, KEY_MASK, &p->mask_kind) != 0 || take_keep(&t) != 0
               ? -1
               : 0;
}
