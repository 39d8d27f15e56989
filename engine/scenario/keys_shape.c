/* Keys about what the kernel computes: [shape]. */
#include "engine/scenario/keys_set.h"

#include "engine/scenario/value.h"
#include "engine/trace/layout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

float scenario_auto_scale(int head_dim)
{
    return (float)(1.0 / sqrt((double)head_dim));
}

int key_set_length(struct scenario *s, enum scenario_key_id id, const char *value)
{
    struct asc_problem *p = &s->problem;
    int v;
    if (value_integer(value, 1, VALUE_LENGTH_MAX, &v) != 0)
        return -1;
    if (id == KEY_BATCH)
        p->batch = v;
    if (id == KEY_HEADS)
        p->heads = v;
    if (id == KEY_KV_HEADS || (id == KEY_HEADS && !scenario_stated(s, KEY_KV_HEADS)))
        p->kv_heads = v;
    if (id == KEY_Q_LEN)
        p->q_len = v;
    if (id == KEY_KV_LEN || (id == KEY_Q_LEN && !scenario_stated(s, KEY_KV_LEN)))
        p->kv_len = v;
    if (id == KEY_HEAD_DIM) {
        p->head_dim = v;
        if (!scenario_stated(s, KEY_SCALE))
            p->scale = scenario_auto_scale(v);
    }
    if (id == KEY_HEAD_DIM_V || (id == KEY_HEAD_DIM && !scenario_stated(s, KEY_HEAD_DIM_V)))
        p->head_dim_v = v;
    return 0;
}

/* "100,37,0": counted where `out` is NULL. -1: it is no such list. */
static int read_lengths(const char *text, int32_t *out)
{
    char word[16];
    for (int n = 0;; n++) {
        int length;
        if (!value_word(&text, ",", word, sizeof word) || value_integer(word, 0, VALUE_LENGTH_MAX, &length) != 0)
            return -1;
        if (out)
            out[n] = length;
        if (*text == '\0')
            return n + 1;
        text++;
    }
}

int key_set_lengths(struct scenario *s, enum scenario_key_id id, const char *value)
{
    const int which = id == KEY_KV_LENS, none = strcmp(value, "none") == 0, n = none ? 0 : read_lengths(value, NULL);
    int32_t *lens = n > 0 ? malloc((size_t)n * sizeof *lens) : NULL;
    if (n < 0)
        return -1;
    if (n && !lens)
        return -2;
    if (n)
        read_lengths(value, lens);
    free(s->lens[which]);
    s->lens[which] = lens;
    s->n_lens[which] = n;
    return 0;
}

int key_set_page_size(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    int rows = 0;
    if (strcmp(value, "none") != 0 && value_integer(value, 1, VALUE_LENGTH_MAX, &rows) != 0)
        return -1;
    s->problem.page_size = rows;
    return 0;
}

int key_set_new_keys(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    return value_integer(value, 0, VALUE_LENGTH_MAX, &s->problem.new_keys);
}

int key_set_left_pad(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    return value_choice(&s->problem.left_pad, value_no_yes, value);
}

int key_set_v_in_k(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    return value_choice(&s->problem.v_in_k, value_no_yes, value);
}

int key_set_causal(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    return value_choice(&s->problem.causal, problem_causal_names, value);
}

/* "LEFT,RIGHT", each a whole number or -1. */
int key_set_window(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    int side[2] = {-1, -1};
    char word[16];
    if (strcmp(value, "none") != 0) {
        for (int i = 0; i < 2; i++) {
            if (!value_word(&value, ",", word, sizeof word) || (*value == ',') != (i == 0))
                return -1;
            if (strcmp(word, "-1") != 0 && value_integer(word, 0, VALUE_LENGTH_MAX, &side[i]) != 0)
                return -1;
            value += i == 0;
        }
    }
    s->problem.window_left = side[0];
    s->problem.window_right = side[1];
    return 0;
}

int key_set_softcap(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    double v;
    if (value_real(value, &v) != 0 || !(v == 0 || ((float)v > 0 && isfinite((float)v))))
        return -1;
    s->problem.softcap = (float)v;
    return 0;
}

int key_set_dropout(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    double v;
    if (value_real(value, &v) != 0 || !(v == 0 || ((float)v > 0 && (float)v < 1)))
        return -1;
    s->problem.dropout = (float)v;
    return 0;
}

int key_set_sink(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    return value_choice(&s->problem.has_sink, value_no_yes, value);
}

int key_set_alibi(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    return value_choice(&s->problem.has_alibi, value_no_yes, value);
}

int key_set_bias(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    return value_choice(&s->problem.bias_kind, problem_bias_names, value);
}

int key_set_formula(struct scenario *s, enum scenario_key_id id, const char *value)
{
    char *to = id == KEY_MASK ? s->problem.mask_formula : s->problem.score_mod;
    if (strlen(value) >= ASC_FORMULA_BYTES)
        return -1;
    memset(to, 0, ASC_FORMULA_BYTES);
    if (strcmp(value, "none") != 0)
        memcpy(to, value, strlen(value));
    return 0;
}

int key_set_rope(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    return value_choice(&s->problem.rope, problem_rope_names, value);
}

int key_set_rope_number(struct scenario *s, enum scenario_key_id id, const char *value)
{
    struct asc_problem *p = &s->problem;
    double base;
    if (id == KEY_ROPE_OFFSET)
        return value_integer(value, 0, VALUE_LENGTH_MAX, &p->rope_offset);
    if (id == KEY_ROPE_DIM)
        return value_integer(value, 2, ASC_HEAD_DIM_MAX, &p->rope_dim) == 0 && p->rope_dim % 2 == 0 ? 0 : -1;
    if (value_real(value, &base) != 0 || !((float)base > 0 && isfinite((float)base)))
        return -1;
    p->rope_base = (float)base;
    return 0;
}

int key_set_scale(struct scenario *s, enum scenario_key_id id, const char *value)
{
    double v;
    if (strcmp(value, "auto") == 0) {
        s->problem.scale = scenario_auto_scale(s->problem.head_dim);
        s->stated[id] = false; /* so that it follows a head_dim set later */
        return 0;
    }
    if (value_real(value, &v) != 0 || !((float)v > 0 && isfinite((float)v)))
        return -1;
    s->problem.scale = (float)v;
    return 0;
}

int key_set_layout(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    return value_choice(&s->problem.layout, problem_layout_names, value);
}

int key_set_strides(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    return value_choice(&s->problem.lie, problem_lie_names, value);
}

int key_set_dtype(struct scenario *s, enum scenario_key_id id, const char *value)
{
    struct asc_problem *p = &s->problem;
    const int v = dtype_from_name(value);
    if (v != DTYPE_F16 && v != DTYPE_BF16 && v != DTYPE_F32 && (v < 0 || !dtype_is_code((enum dtype)v)))
        return -1;
    if (id == KEY_DTYPE)
        p->dtype = v;
    if (id == KEY_K_DTYPE || (id == KEY_DTYPE && !scenario_stated(s, KEY_K_DTYPE)))
        p->k_dtype = v;
    if (id == KEY_V_DTYPE)
        p->v_dtype = v;
    else if (!scenario_stated(s, KEY_V_DTYPE))
        p->v_dtype = p->k_dtype;
    return 0;
}

int key_set_scales(struct scenario *s, enum scenario_key_id id, const char *value)
{
    static const char *const names[] = {[SCALES_HEAD] = "head", [SCALES_TENSOR] = "tensor", NULL};
    char word[32];
    int v = value_name(value, names), rows = 0, dims = 0;
    (void)id;
    if (v < 0) {
        v = SCALES_BLOCKS;
        if (!value_word(&value, ",", word, sizeof word))
            return -1;
        if (strncmp(word, "rows:", 5) == 0) {
            if (value_integer(word + 5, 1, VALUE_LENGTH_MAX, &rows) != 0)
                return -1;
            if (*value == ',' && (value++, !value_word(&value, ",", word, sizeof word) || strncmp(word, "dims:", 5)))
                return -1;
        }
        if (*value || (strncmp(word, "dims:", 5) == 0 ? value_integer(word + 5, 1, VALUE_LENGTH_MAX, &dims) : !rows))
            return -1;
    }
    s->scales = v;
    s->problem.scale_rows = rows;
    s->problem.scale_dims = dims;
    return 0;
}

int key_set_scale_type(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    return value_choice(&s->problem.scale_type, problem_scale_type_names, value);
}

int key_set_tensor_scale(struct scenario *s, enum scenario_key_id id, const char *value)
{
    struct asc_problem *p = &s->problem;
    double v;
    if (value_real(value, &v) != 0 || !((float)v > 0 && isfinite((float)v)))
        return -1;
    *(id == KEY_Q_TENSOR_SCALE   ? &p->q_tensor_scale
      : id == KEY_K_TENSOR_SCALE ? &p->k_tensor_scale
                                 : &p->v_tensor_scale) = (float)v;
    return 0;
}

int key_set_smooth_k(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    return value_choice(&s->smooth_k, value_no_yes, value);
}
