/* Whether two runs can be compared at all. */
#include "engine/study/difference.h"

#include "engine/base/bounded_json.h"
#include "engine/trace/conventions.h"
#include <stdio.h>
#include <string.h>

struct pair {
    const struct trace *a, *b;
    const char *name_a, *name_b;
};

#define refuse(pair, format, ...)                                                                                      \
    err_set(err, ERR_INPUT, (pair)->name_b, "cannot be compared with %s: " format, (pair)->name_a, __VA_ARGS__)

static int check_problem(const struct pair *x, struct err *err)
{
    const struct asc_problem *a = &x->a->problem, *b = &x->b->problem;
    char here[TYPES_BYTES], there[TYPES_BYTES];
    problem_types(b, here);
    problem_types(a, there);
    if (strcmp(here, there) != 0)
        return refuse(x, "its inputs are of type %s, there %s", here, there);
#define PROBLEM_INTEGER(name)                                                                                          \
    if (a->name != b->name)                                                                                            \
        return refuse(x, "its %s is %d, there %d", #name, (int)b->name, (int)a->name);
#define PROBLEM_REAL(name)                                                                                             \
    if (a->name != b->name)                                                                                            \
        return refuse(x, "its %s is %.9g, there %.9g", #name, (double)b->name, (double)a->name);
#define PROBLEM_TEXT(name)                                                                                             \
    if (strcmp(a->name, b->name) != 0)                                                                                 \
        return refuse(x, "its %s is `%s`, there `%s`", #name, b->name, a->name);
#include "engine/base/fields.def"
#undef PROBLEM_INTEGER
#undef PROBLEM_REAL
#undef PROBLEM_TEXT
    return 0;
}

static int check_plan(const struct pair *x, struct err *err)
{
    const struct asc_plan *a = &x->a->plan, *b = &x->b->plan;
    if (a->br != b->br || a->bc != b->bc)
        return refuse(x, "its tiles are %d x %d, there %d x %d", b->br, b->bc, a->br, a->bc);
    if (a->kv_splits != b->kv_splits)
        return refuse(x, "it has %d kv splits, there %d", b->kv_splits, a->kv_splits);
    if (a->kv_deal != b->kv_deal)
        return refuse(x, "its kv tiles are dealt to the splits as %s, there as %s", plan_deal_names[b->kv_deal],
                      plan_deal_names[a->kv_deal]);
    if (!trace_same_states(x->a, x->b))
        return refuse(x, "its kv tiles are dealt to other splits of the %d", (int)a->kv_splits);
    if (a->l_lanes != b->l_lanes)
        return refuse(x, "its l has %d lanes, there %d", b->l_lanes, a->l_lanes);
    return 0;
}

static void convention_words(const struct trace *t, int i, char *out, size_t bytes)
{
    const double number = convention_get(&t->conventions, i);
    if (conventions[i].kind == CONVENTION_CHOICE)
        convention_choice(i, (int)number, out, bytes);
    else
        snprintf(out, bytes, "%.9g", number);
}

static int check_conventions(const struct pair *x, struct err *err)
{
    char here[64], there[64];
    for (int i = 0; i < CONVENTIONS; i++) {
        convention_words(x->b, i, here, sizeof here);
        convention_words(x->a, i, there, sizeof there);
        if (strcmp(here, there) != 0)
            return refuse(x, "its kernel declares %s %s, there %s", conventions[i].name, here, there);
    }
    return 0;
}

static int check_types(const struct pair *x, struct err *err)
{
    const struct layout *a = &x->a->layout, *b = &x->b->layout;
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        if (a->channel[ch].dtype >= 0 && b->channel[ch].dtype >= 0 && a->channel[ch].dtype != b->channel[ch].dtype)
            return refuse(x, "it has %s as %s, there %s", channel_name(ch),
                          dtype_name((enum dtype)b->channel[ch].dtype), dtype_name((enum dtype)a->channel[ch].dtype));
    if (a->o.dtype != b->o.dtype)
        return refuse(x, "its output is of type %s, there %s", dtype_name((enum dtype)b->o.dtype),
                      dtype_name((enum dtype)a->o.dtype));
    return 0;
}

static json_t *said_of(const struct trace *t)
{
    struct err ignored;
    json_t *json = t->info.settings ? bounded_json(t->info.settings, strlen(t->info.settings), "", &ignored) : NULL;
    return json_is_object(json) ? json : json_object();
}

static const char *said_word(const json_t *value)
{
    return json_is_string(value) ? json_string_value(value) : "its default";
}

/* ": fill.seed is 3, there its default": what makes inputs and was said otherwise; "": nothing, as far as they keep it.
 */
static void fill_words(const struct pair *x, char *out, size_t bytes)
{
    json_t *both[] = {said_of(x->a), said_of(x->b)}, *value;
    const char *key;
    out[0] = '\0';
    for (int which = 0; which < 2 && !out[0]; which++)
        json_object_foreach(both[which], key, value)
        {
            const json_t *here = json_object_get(both[1], key), *there = json_object_get(both[0], key);
            if (out[0] || strncmp(key, "fill.", strlen("fill.")) != 0 || json_equal(here, there))
                continue;
            snprintf(out, bytes, ": %.40s is %.60s, there %.60s", key, said_word(here), said_word(there));
        }
    json_decref(both[0]);
    json_decref(both[1]);
}

static int check_inputs(const struct pair *x, struct err *err)
{
    static const char letters[] = "qkvsabm";
    static const char *const names[] = {"Q", "K", "V", "sink", "alibi", "bias", "mask", "kept weights"};
    const struct layout *l = &x->a->layout;
    char fill[180];
    fill_words(x, fill, sizeof fill);
    const struct layout_part *parts[] = {&l->q, &l->k, &l->v, &l->sink, &l->alibi, &l->bias, &l->mask, &l->keep};
    for (int i = 0; letters[i]; i++) {
        enum dtype t;
        const void *a = trace_tensor(x->a, letters[i], &t), *b = trace_tensor(x->b, letters[i], &t);
        if (a && b && memcmp(a, b, parts[i]->bytes) != 0)
            return refuse(x, "its input %s has different values%s", names[i], fill);
    }
    const struct layout_part *scales[] = {&l->q_scale, &l->k_scale, &l->v_scale};
    for (int i = 0; i < 3; i++)
        if (scales[i]->bytes &&
            memcmp(trace_scales(x->a, letters[i]), trace_scales(x->b, letters[i]), scales[i]->bytes) != 0)
            return refuse(x, "the scales of its input %s have different values", names[i]);
    return 0;
}

int difference_check(const struct trace *a, const struct trace *b, const char *name_a, const char *name_b,
                     struct err *err)
{
    const struct pair x = {a, b, name_a, name_b};
    return check_problem(&x, err) != 0 || check_plan(&x, err) != 0 || check_conventions(&x, err) != 0 ||
                   check_types(&x, err) != 0 || check_inputs(&x, err) != 0
               ? -1
               : 0;
}
