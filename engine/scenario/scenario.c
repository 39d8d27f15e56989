#include "engine/scenario/scenario.h"

#include "engine/base/tensor_core.h"
#include "engine/base/text.h"
#include "engine/scenario/keys.h"
#include "engine/scenario/value.h"
#include "engine/trace/trace.h"

#include <stdlib.h>
#include <string.h>

void scenario_init(struct scenario *s)
{
    memset(s, 0, sizeof *s);
    s->expect.first_channel = -1;
    for (int i = 0; i < 4; i++)
        s->expect.first[i] = -1;
    s->problem.dtype = DTYPE_F16;
    s->problem.window_left = s->problem.window_right = -1;
    s->capture.channels = (1u << ASC_CHANNELS) - 1;
    s->capture.mem_bytes = UINT64_C(2) << 30;
    s->limit_s = 30;
    s->tensor_core = TENSOR_CORE_H100;
    s->fill_q = s->fill_k = s->fill_v = s->fill_sink = s->fill_bias = (struct fill){FILL_NORMAL, 1.0, 0};
    scenario_parse_shape("1,8,512,64", &s->problem, NULL);
}

void scenario_free(struct scenario *s)
{
    if (!s)
        return;
    free(s->capture.batches);
    free(s->capture.heads);
    free(s->capture.q_tiles);
    free(s->lens[0]);
    free(s->lens[1]);
    free(s->text);
    for (int i = 0; i < SCENARIO_KEYS_MAX; i++)
        free(s->said[i]);
    memset(s, 0, sizeof *s);
}

/* A list of its own. 0: there is none to copy, or it is made. */
static int copy_places(const int *from, int n, int **out)
{
    *out = n ? malloc((size_t)n * sizeof **out) : NULL;
    if (n && *out)
        memcpy(*out, from, (size_t)n * sizeof **out);
    return n && !*out;
}

static int copy_text(const char *from, char **out)
{
    *out = from ? strdup(from) : NULL;
    return from && !*out;
}

int scenario_copy(const struct scenario *from, struct scenario *out)
{
    const struct capture *c = &from->capture;
    *out = *from;
    int failed = copy_places(c->batches, c->n_batches, &out->capture.batches);
    failed |= copy_places(c->heads, c->n_heads, &out->capture.heads);
    failed |= copy_places(c->q_tiles, c->n_q_tiles, &out->capture.q_tiles);
    failed |= copy_text(from->text, &out->text);
    failed |= scenario_copy_sequences(from, out);
    for (int i = 0; i < SCENARIO_KEYS_MAX; i++)
        failed |= copy_text(from->said[i], &out->said[i]);
    if (failed)
        scenario_free(out);
    return failed ? -1 : 0;
}

int scenario_parse_shape(const char *text, struct asc_problem *p, struct err *err)
{
    int length[5], kv_heads = 0, n = 0, ok = 1;
    const size_t all = strlen(text);
    const bool closed = all > 1 && text[0] == '(' && text[all - 1] == ')'; /* as it is printed */
    const char *const end = text + all - closed;
    for (const char *at = text + closed; ok; at++) {
        const size_t chars = strcspn(at, ",") < (size_t)(end - at) ? strcspn(at, ",") : (size_t)(end - at);
        char number[32];
        ok = n < 5 && chars < sizeof number;
        if (ok) {
            memcpy(number, at, chars);
            number[chars] = '\0';
            char *of = n == 1 ? strchr(number, '/') : NULL; /* heads of Q / heads of K and V */
            if (of) {
                *of = '\0';
                ok = value_integer(of + 1, 1, VALUE_LENGTH_MAX, &kv_heads) == 0;
            }
            ok = ok && value_integer(number, 1, VALUE_LENGTH_MAX, &length[n++]) == 0;
        }
        at += chars;
        if (at >= end)
            break;
    }
    if (!ok || n < 4) {
        char found[128];
        text_name(text, strlen(text), found, sizeof found);
        return err_set(err, ERR_INPUT, "shape",
                       "expected B,H,L,D or B,H,Lq,Lkv,D, each from 1 to %d, H or H/Hkv, found `%s`", VALUE_LENGTH_MAX,
                       found);
    }
    struct asc_problem made = *p;
    made.batch = length[0];
    made.heads = length[1];
    made.kv_heads = kv_heads ? kv_heads : length[1];
    made.q_len = length[2];
    made.kv_len = length[n - 2];
    made.head_dim = made.head_dim_v = length[n - 1];
    made.scale = scenario_auto_scale(made.head_dim);
    if (problem_check(&made, "shape", err) != 0)
        return -1;
    *p = made;
    return 0;
}

static void unstate(struct scenario *s, enum scenario_key_id id)
{
    free(s->said[id]);
    s->said[id] = NULL;
    s->stated[id] = false;
}

static void unstate_lengths(struct scenario *s)
{
    static const enum scenario_key_id open[] = {KEY_BATCH,  KEY_HEADS,    KEY_KV_HEADS,   KEY_Q_LEN,
                                                KEY_KV_LEN, KEY_HEAD_DIM, KEY_HEAD_DIM_V, KEY_SCALE};
    for (size_t i = 0; i < sizeof open / sizeof *open; i++)
        unstate(s, open[i]);
    for (int i = 0; i < 2; i++) {
        unstate(s, i ? KEY_KV_LENS : KEY_Q_LENS);
        free(s->lens[i]);
        s->lens[i] = NULL;
        s->n_lens[i] = 0;
    }
    s->problem.q_lens = s->problem.kv_lens = NULL;
    s->problem.has_q_lens = s->problem.has_kv_lens = 0;
}

int scenario_set_shape(struct scenario *s, const char *text, struct err *err)
{
    if (scenario_parse_shape(text, &s->problem, err) != 0)
        return -1;
    unstate_lengths(s);
    const struct asc_problem p = s->problem;
    const struct {
        enum scenario_key_id id;
        int length;
    } said[] = {{KEY_BATCH, p.batch}, {KEY_HEADS, p.heads},   {KEY_KV_HEADS, p.kv_heads},
                {KEY_Q_LEN, p.q_len}, {KEY_KV_LEN, p.kv_len}, {KEY_HEAD_DIM, p.head_dim}};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", said[i].length);
        const bool follows = (said[i].id == KEY_KV_LEN && p.kv_len == p.q_len) || /* as where it is not stated */
                             (said[i].id == KEY_KV_HEADS && p.kv_heads == p.heads);
        if (!follows && scenario_key_set(s, said[i].id, number, "shape", err) != 0)
            return -1;
    }
    return 0;
}

/* What gives way to files that are named later than it: their shape, and all that a trace says of its problem. */
static void give_way(struct scenario *s, enum scenario_key_id id, const char *value)
{
    struct err ignored;
    bool trace = false;
    unstate_lengths(s);
    if (id == KEY_INPUT_FROM && trace_is(value, &trace, &ignored) == 0 && trace)
        for (int of = 0; of < KEY_COUNT; of++)
            if (scenario_keys[of].section == SECTION_SHAPE || scenario_keys[of].section == SECTION_QUANT)
                unstate(s, (enum scenario_key_id)of);
}

int scenario_set(struct scenario *s, const char *key, const char *value, struct err *err)
{
    char section[32], where[128];
    const char *dot = strchr(key, '.');
    const size_t n = dot ? (size_t)(dot - key) : 0;
    text_name(key, strlen(key), where, sizeof where);
    if (n == 0 || n >= sizeof section)
        return err_set(err, ERR_INPUT, where, "expected section.key, such as shape.heads");
    memcpy(section, key, n);
    section[n] = '\0';
    const int id = scenario_key_find(section, dot + 1);
    if (id < 0)
        return scenario_unknown(section, dot + 1, where, err);
    if (id >= KEY_INPUT_FROM && id <= KEY_INPUT_V)
        give_way(s, (enum scenario_key_id)id, value);
    return scenario_key_set(s, (enum scenario_key_id)id, value, where, err);
}

/* Places of one kind, the largest of them `last`, lie below `limit`, which is a length of the shape. */
static int check_below(const struct scenario *s, const int *line, enum scenario_key_id id, const char *what, int last,
                       enum scenario_key_id length_id, int limit, struct err *err)
{
    char where[WHERE_BYTES];
    if (last < limit)
        return 0;
    scenario_where(s, line, id, where, sizeof where);
    return err_set(err, ERR_INPUT, where, "expected %s below %d (shape.%s), found %d", what, limit,
                   scenario_keys[length_id].name, last);
}

static int check_places(const struct scenario *s, const int *line, struct err *err)
{
    const struct asc_problem *p = &s->problem;
    const struct capture *c = &s->capture;
    const int *first = s->expect.first;
    if (c->n_batches &&
        check_below(s, line, KEY_BATCHES, "batches", c->batches[c->n_batches - 1], KEY_BATCH, p->batch, err))
        return -1;
    if (c->n_heads &&
        check_below(s, line, KEY_CAPTURED_HEADS, "heads", c->heads[c->n_heads - 1], KEY_HEADS, p->heads, err))
        return -1;
    /* How many tiles there are is the kernel's own choice; never more than there are rows. */
    if (c->n_q_tiles &&
        check_below(s, line, KEY_Q_TILES, "q tiles", c->q_tiles[c->n_q_tiles - 1], KEY_Q_LEN, p->q_len, err))
        return -1;
    if (check_below(s, line, KEY_FIRST, "a batch", first[0], KEY_BATCH, p->batch, err) ||
        check_below(s, line, KEY_FIRST, "a head", first[1], KEY_HEADS, p->heads, err) ||
        check_below(s, line, KEY_FIRST, "a q tile", first[2], KEY_Q_LEN, p->q_len, err) ||
        check_below(s, line, KEY_FIRST, "a kv tile", first[3], KEY_KV_LEN, p->kv_len, err))
        return -1;
    return 0;
}

/* Types that are open follow the kernel. */
static bool states_types(const struct scenario *s)
{
    return scenario_stated(s, KEY_DTYPE) || scenario_stated(s, KEY_K_DTYPE) || scenario_stated(s, KEY_V_DTYPE);
}

/* Scales are those of codes. */
static int check_scales(const struct scenario *s, const int *line, struct err *err)
{
    char where[WHERE_BYTES];
    if (s->smooth_k && (s->problem.v_in_k || !dtype_is_code((enum dtype)s->problem.k_dtype))) {
        scenario_where(s, line, KEY_SMOOTH_K, where, sizeof where);
        return err_set(err, ERR_INPUT, where, "expected K to be of codes beside it (shape.k_dtype), and V not in K");
    }
    const enum scenario_key_id id = scenario_stated(s, KEY_SCALES) ? KEY_SCALES : KEY_SCALE_TYPE;
    if (!scenario_stated(s, id) || problem_has_codes(&s->problem))
        return 0;
    scenario_where(s, line, id, where, sizeof where);
    return err_set(err, ERR_INPUT, where,
                   "expected a tensor of codes beside it (shape.dtype, k_dtype or v_dtype: e4m3, e5m2, e2m1, u8 or "
                   "s8), found none");
}

static int lacks(const struct scenario *s, const int *line, enum scenario_key_id id, const char *wanted,
                 const char *found, struct err *err)
{
    char where[WHERE_BYTES];
    scenario_where(s, line, id, where, sizeof where);
    return err_set(err, ERR_INPUT, where, "expected %s beside it, found %s", wanted, found);
}

/* What is said about a fault needs a fault, a place in the source something that stands there. */
static int check_expect(const struct scenario *s, const int *line, struct err *err)
{
    static const enum scenario_key_id about_faults[] = {KEY_FIRST, KEY_CULPRITS, KEY_CAUSE, KEY_EVENT, KEY_STOPPED};
    const struct expect *e = &s->expect;
    const char *verdict = e->verdict == EXPECT_CLEAN ? "`verdict = clean`" : "no verdict";
    for (size_t i = 0; i < sizeof about_faults / sizeof about_faults[0]; i++)
        if (e->verdict != EXPECT_FAIL && scenario_stated(s, about_faults[i]) &&
            !(about_faults[i] == KEY_EVENT && e->no_event))
            return lacks(s, line, about_faults[i], "`verdict = fail`", verdict, err);
    if (e->event_at[0] && !(e->events || e->stopped))
        return lacks(s, line, KEY_EVENT_AT, "kinds in `event` or `stopped`", e->no_event ? "`event = none`" : "neither",
                     err);
    return 0;
}

/* A GPU shows neither who wrote last nor who may come at the same time. */
static int check_checks(const struct scenario *s, const int *line, struct err *err)
{
    char where[WHERE_BYTES];
    if (!s->checks || s->backend != SCENARIO_BACKEND_GPU)
        return 0;
    scenario_where(s, line, KEY_CHECKS, where, sizeof where);
    return err_set(err, ERR_INPUT, where,
                   "expected `backend = cpu` or `auto` beside it, found `gpu`: only the CPU "
                   "executor can check accesses");
}

/* How Q, K and V lie. */
static int check_lie(const struct scenario *s, const int *line, struct err *err)
{
    const struct asc_problem *p = &s->problem;
    char where[WHERE_BYTES];
    scenario_where(s, line, p->left_pad ? KEY_LEFT_PAD : KEY_STRIDES, where, sizeof where);
    if (problem_check_lie(p, where, err) != 0)
        return -1;
    scenario_where(s, line, KEY_NEW_KEYS, where, sizeof where);
    if (problem_check_new_keys(p, where, err) != 0)
        return -1;
    if (!p->v_in_k)
        return 0;
    scenario_where(s, line, KEY_V_IN_K, where, sizeof where);
    if (scenario_stated(s, KEY_INPUT_V))
        return err_set(err, ERR_INPUT, where, "V is a part of K: expected no `inputs.v` beside it");
    return p->head_dim_v > p->head_dim
               ? err_set(err, ERR_INPUT, where, "V is a part of K: expected a head_dim_v up to head_dim (%d), found %d",
                         p->head_dim, p->head_dim_v)
               : 0;
}

int scenario_check_lines(const struct scenario *s, const int *line, struct err *err)
{
    const struct asc_problem *p = &s->problem;
    char where[WHERE_BYTES];
    if (s->kernel[0] == '\0') {
        scenario_where(s, line, KEY_KERNEL, where, sizeof where);
        return err_set(err, ERR_INPUT, where, "expected %s, found no such key", scenario_keys[KEY_KERNEL].expected);
    }
    if (p->kv_heads > 0 && p->heads % p->kv_heads != 0) {
        scenario_where(s, line, KEY_KV_HEADS, where, sizeof where);
        return err_set(err, ERR_INPUT, where, "expected a divisor of heads (%d), found %d", p->heads, p->kv_heads);
    }
    /* Sizes as a whole belong to no key: the first length that the file states stands for them. */
    enum scenario_key_id stated = KEY_BATCH;
    while (stated < KEY_HEAD_DIM && !scenario_stated(s, stated))
        stated++;
    scenario_where(s, line, stated, where, sizeof where);
    if (check_lie(s, line, err) != 0 || problem_check(p, where, err) != 0 || check_places(s, line, err) != 0 ||
        check_checks(s, line, err) != 0 || (states_types(s) && check_scales(s, line, err) != 0))
        return -1;
    return check_expect(s, line, err);
}

int scenario_check_scales(const struct scenario *s, struct err *err)
{
    return check_scales(s, NULL, err);
}

int scenario_check(struct scenario *s, struct err *err)
{
    return scenario_take_inputs(s, NULL, err) != 0 || scenario_settle_sequences(s, NULL, err) != 0 ||
                   scenario_settle_formulas(s, NULL, err) != 0
               ? -1
               : scenario_check_lines(s, NULL, err);
}
