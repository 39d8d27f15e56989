/* Keys about how a kernel is built and run, what is recorded and what it may take: [scenario], [capture], [budget]. */
#include "engine/scenario/keys_set.h"

#include "engine/base/tensor_core.h"
#include "engine/scenario/value.h"
#include "engine/trace/layout.h"

#include <stdlib.h>
#include <string.h>

static const char *const backend_wishes[] = {
    [SCENARIO_BACKEND_AUTO] = "auto", [SCENARIO_BACKEND_GPU] = "gpu", [SCENARIO_BACKEND_CPU] = "cpu", NULL};
static const char *const profile_names[] = {[SCENARIO_PROFILE_NO] = "no", [SCENARIO_PROFILE_YES] = "yes", NULL};
static const char *const debug_names[] = {[SCENARIO_DEBUG_LINEINFO] = "lineinfo", [SCENARIO_DEBUG_FULL] = "full", NULL};
static const char *const probes_names[] = {[SCENARIO_PROBES_ON] = "on", [SCENARIO_PROBES_OFF] = "off", NULL};

int key_set_path(struct scenario *s, enum scenario_key_id id, const char *value)
{
    char *out = id == KEY_KERNEL ? s->kernel : s->patch;
    const size_t n = strlen(value);
    if (n == 0 || n >= sizeof s->kernel)
        return -1;
    memcpy(out, value, n + 1);
    return 0;
}

_Static_assert(VALUE_MACROS_MAX == 8, "EXPECT_DEFINE says it");
_Static_assert(sizeof((struct scenario *)NULL)->define == VALUE_MACROS_BYTES, "EXPECT_DEFINE says it");

int key_set_define(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    char all[VALUE_MACROS_BYTES] = "";
    for (const char *at = value + strspn(value, " \t"); *at; at += strspn(at, " \t")) {
        const size_t n = strcspn(at, " \t");
        if (value_add_macro(all, at, n) != 0)
            return -1;
        at += n;
    }
    if (!all[0])
        return -1;
    memcpy(s->define, all, sizeof all);
    return 0;
}

/* What attnscope itself says to the compiler: which step to take, of what, and where the result goes. */
static bool is_own_flag(const char *flag)
{
    static const char *const own[] = {"-c", "-E", "-S", "-M", "-o", "-x"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strncmp(flag, own[i], 2) == 0 && (i > 2 || !flag[2]))
            return true;
    return false;
}

int key_set_list(struct scenario *s, enum scenario_key_id id, const char *value)
{
    _Static_assert(sizeof s->include == 1024 && sizeof s->flags == 1024, "EXPECT_INCLUDE and EXPECT_FLAGS say it");
    char all[sizeof s->include] = "", word[sizeof s->include];
    while (value += strspn(value, " \t"), *value) {
        const bool first = !all[0];
        if (!value_next(&value, word, sizeof word) || value_join(all, sizeof all, word) != 0 ||
            (id == KEY_FLAGS && ((first && word[0] != '-') || is_own_flag(word))))
            return -1;
    }
    if (!all[0])
        return -1;
    memcpy(id == KEY_FLAGS ? s->flags : s->include, all, sizeof all);
    return 0;
}

int key_set_backend(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    return value_choice(&s->backend, backend_wishes, value);
}

int key_set_debug(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    return value_choice(&s->debug, debug_names, value);
}

int key_set_probes(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    return value_choice(&s->probes, probes_names, value);
}

int key_set_checks(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    return value_choice(&s->checks, value_no_yes, value);
}

int key_set_profile(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    return value_choice(&s->profile, profile_names, value);
}

int key_set_tensor_core(struct scenario *s, enum scenario_key_id id, const char *value)
{
    static const char *const names[] = {"h100", "b200", "a100", "ada", "v100", "f32", NULL};
    static const enum tensor_core models[] = {TENSOR_CORE_H100, TENSOR_CORE_H100, TENSOR_CORE_A100,
                                              TENSOR_CORE_A100, TENSOR_CORE_V100, TENSOR_CORE_F32};
    (void)id;
    const int v = value_name(value, names);
    if (v < 0)
        return -1;
    s->tensor_core = (int)models[v];
    return 0;
}

int key_set_limit(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    double v;
    if (value_real(value, &v) != 0 || !(v > 0 && v <= 86400))
        return -1;
    s->limit_s = v;
    return 0;
}

int key_set_places(struct scenario *s, enum scenario_key_id id, const char *value)
{
    struct capture *c = &s->capture;
    int **list = id == KEY_BATCHES ? &c->batches : id == KEY_CAPTURED_HEADS ? &c->heads : &c->q_tiles;
    int *n_list = id == KEY_BATCHES ? &c->n_batches : id == KEY_CAPTURED_HEADS ? &c->n_heads : &c->n_q_tiles;
    int *places, n_places;
    const int status = value_places(value, &places, &n_places);
    if (status != 0)
        return status;
    free(*list);
    *list = places;
    *n_list = n_places;
    return 0;
}

int key_read_names(const char *value, int (*from_name)(const char *name), unsigned *set)
{
    *set = 0;
    for (;;) {
        char name[16];
        if (!value_word(&value, ",", name, sizeof name))
            return -1;
        const int bit = from_name(name);
        if (bit < 0)
            return -1;
        *set |= 1u << bit;
        if (*value == '\0')
            return 0;
        value++;
    }
}

int key_read_channels(const char *value, unsigned *set)
{
    return key_read_names(value, channel_from_name, set);
}

int key_set_channels(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    unsigned set = (1u << ASC_CHANNELS) - 1;
    if (strcmp(value, "all") != 0 && key_read_channels(value, &set) != 0)
        return -1;
    s->capture.channels = set;
    return 0;
}

int key_set_mem(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    return value_bytes(value, &s->capture.mem_bytes);
}

int key_set_memory(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    return value_choice(&s->capture.memory, memory_names, value);
}

int key_set_writers(struct scenario *s, enum scenario_key_id id, const char *value)
{
    static const char *const names[] = {[WRITERS_AUTO] = "auto", [WRITERS_ON] = "on", [WRITERS_OFF] = "off", NULL};
    (void)id;
    return value_choice(&s->capture.writers, names, value);
}

int key_set_judge(struct scenario *s, enum scenario_key_id id, const char *value)
{
    static const char *const names[] = {
        [SCENARIO_JUDGE_AUTO] = "auto", [SCENARIO_JUDGE_CPU] = "cpu", [SCENARIO_JUDGE_GPU] = "gpu", NULL};
    (void)id;
    return value_choice(&s->capture.judge, names, value);
}

_Static_assert(KEY_BUDGET_SHARED - KEY_BUDGET_REGISTERS == BUDGET_SHARED_BYTES, "key_set_budget counts on it");
_Static_assert(KEY_BUDGET_SPILL - KEY_BUDGET_REGISTERS == BUDGET_SPILL_BYTES, "key_set_budget counts on it");

int key_set_budget(struct scenario *s, enum scenario_key_id id, const char *value)
{
    const unsigned item = (unsigned)id - KEY_BUDGET_REGISTERS;
    int v;
    if (value_integer(value, 0, INT32_MAX, &v) != 0)
        return -1;
    s->budget.most[item] = v;
    s->budget.stated |= 1u << item;
    return 0;
}
