#include "scenarios/keys.h"

#include "engine/base/tensor_core.h"
#include "probes/event.h"
#include "probes/layout.h"
#include "scenarios/value.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT_LENGTH "a whole number from 1 to 16777216"
#define EXPECT_SIGMA "a finite number, 0 or more"
#define EXPECT_SEED "a whole number from 0 to 18446744073709551615"
#define EXPECT_PLACES "all, or ascending numbers and ranges such as 0,3,5-7"
#define EXPECT_BUDGET "a whole number from 0 to 2147483647"
#define EXPECT_DTYPE "f16, bf16, f32, e4m3, e5m2 or u8"
#define EXPECT_DEFINE                                                                                                  \
    "NAME=VALUE or NAME, up to 8 with blanks between and 255 bytes in all (values of letters, digits and + - . _; no " \
    "name that begins with ASC_, SIMT_, DTYPE_, __ or _ and a capital)"
#define EXPECT_FILL expect_fill
#define EXPECT_EVENTS expect_events
#define EXPECT_EVENTS_OR_NONE expect_events_or_none
#define EXPECT_CHANNELS_OR_NONE expect_channels_or_none
#define EXPECT_CHANNELS_OR_ALL expect_channels_or_all

_Static_assert(VALUE_LENGTH_MAX == 16777216, "EXPECT_LENGTH names it");
_Static_assert(KEY_COUNT <= 64, "struct scenario keeps a 64-bit set of them");
_Static_assert(ASC_CHANNELS <= 32, "struct scenario keeps 32-bit sets of them");

static const char expect_fill[] = "one of"
#define FILL(id, name, meaning) " " name
#include "scenarios/fills.def"
#undef FILL
    ;
static const char expect_channels_or_none[] = "none, or channels separated by commas, out of"
#define CHANNEL(id, label, rows, cols, extent, type, meaning, formula) " " #id
#include "probes/channels.def"
    ;
static const char expect_channels_or_all[] = "all, or channels separated by commas, out of"
#include "probes/channels.def"
#undef CHANNEL
    ;

static const char expect_events_or_none[] = "none, or kinds of events separated by commas, out of"
#define EVENT(id, name, mistake, meaning) " " name
#include "probes/events.def"
    ;
static const char expect_events[] = "kinds of events separated by commas, out of"
#include "probes/events.def"
#undef EVENT
    ;

static const char *const fill_names[] = {
#define FILL(id, name, meaning) name,
#include "scenarios/fills.def"
#undef FILL
    NULL};
static const char *const no_yes[] = {"no", "yes", NULL};
static const char *const backend_names[] = {
    [SCENARIO_BACKEND_AUTO] = "auto", [SCENARIO_BACKEND_GPU] = "gpu", [SCENARIO_BACKEND_CPU] = "cpu", NULL};
static const char *const profile_names[] = {[SCENARIO_PROFILE_NO] = "no", [SCENARIO_PROFILE_YES] = "yes", NULL};
static const char *const debug_names[] = {[SCENARIO_DEBUG_LINEINFO] = "lineinfo", [SCENARIO_DEBUG_FULL] = "full", NULL};
static const char *const probes_names[] = {[SCENARIO_PROBES_ON] = "on", [SCENARIO_PROBES_OFF] = "off", NULL};
static const char *const verdict_names[] = {
    [EXPECT_NOTHING] = "", [EXPECT_CLEAN] = "clean", [EXPECT_FAIL] = "fail", NULL};

static int set_choice(int *out, const char *const *names, const char *value)
{
    const int v = value_name(value, names);
    if (v < 0)
        return -1;
    *out = v;
    return 0;
}

static int set_path(struct scenario *s, enum scenario_key_id id, const char *value)
{
    char *out = id == KEY_KERNEL ? s->kernel : s->patch;
    const size_t n = strlen(value);
    if (n == 0 || n >= sizeof s->kernel)
        return -1;
    memcpy(out, value, n + 1);
    return 0;
}

_Static_assert(SCENARIO_DEFINES_MAX == 8, "EXPECT_DEFINE says it");
_Static_assert(sizeof((struct scenario *)NULL)->define == 256, "EXPECT_DEFINE says it");

static int set_define(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    char all[256] = "";
    for (const char *at = value + strspn(value, " \t"); *at; at += strspn(at, " \t")) {
        const size_t n = strcspn(at, " \t");
        if (define_add(all, at, n) != 0)
            return -1;
        at += n;
    }
    if (!all[0])
        return -1;
    memcpy(s->define, all, sizeof all);
    return 0;
}

static int set_backend(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    return set_choice(&s->backend, backend_names, value);
}

static int set_debug(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    return set_choice(&s->debug, debug_names, value);
}

static int set_probes(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    return set_choice(&s->probes, probes_names, value);
}

static int set_checks(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    return set_choice(&s->checks, no_yes, value);
}

static int set_profile(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    return set_choice(&s->profile, profile_names, value);
}

static int set_tensor_core(struct scenario *s, enum scenario_key_id id, const char *value)
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

static int set_limit(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    double v;
    if (value_real(value, &v) != 0 || !(v > 0 && v <= 86400))
        return -1;
    s->limit_s = v;
    return 0;
}

float scenario_auto_scale(int head_dim)
{
    return (float)(1.0 / sqrt((double)head_dim));
}

static int set_length(struct scenario *s, enum scenario_key_id id, const char *value)
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
    return 0;
}

static int set_causal(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    return set_choice(&s->problem.causal, problem_causal_names, value);
}

/* The next word of *text, up to one of `ends`, blanks around it dropped; moves *text behind it. 0: empty or too long.
 */
static int take_word(const char **text, const char *ends, char *out, size_t n_bytes)
{
    const char *at = *text + strspn(*text, " \t");
    const size_t n = strcspn(at, ends);
    *text = at + n + strspn(at + n, " \t");
    size_t kept = n;
    while (kept > 0 && (at[kept - 1] == ' ' || at[kept - 1] == '\t'))
        kept--;
    if (kept == 0 || kept >= n_bytes)
        return 0;
    memcpy(out, at, kept);
    out[kept] = '\0';
    return 1;
}

/* "LEFT,RIGHT", each a whole number or -1. */
static int set_window(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    int side[2] = {-1, -1};
    char word[16];
    if (strcmp(value, "none") != 0) {
        for (int i = 0; i < 2; i++) {
            if (!take_word(&value, ",", word, sizeof word) || (*value == ',') != (i == 0))
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

static int set_softcap(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    double v;
    if (value_real(value, &v) != 0 || !(v == 0 || ((float)v > 0 && isfinite((float)v))))
        return -1;
    s->problem.softcap = (float)v;
    return 0;
}

static int set_sink(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    return set_choice(&s->problem.has_sink, no_yes, value);
}

static int set_alibi(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    return set_choice(&s->problem.has_alibi, no_yes, value);
}

static int set_bias(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    return set_choice(&s->problem.bias_kind, problem_bias_names, value);
}

static int set_scale(struct scenario *s, enum scenario_key_id id, const char *value)
{
    double v;
    if (strcmp(value, "auto") == 0) {
        s->problem.scale = scenario_auto_scale(s->problem.head_dim);
        s->stated &= ~(UINT64_C(1) << id); /* so that it follows a head_dim set later */
        return 0;
    }
    if (value_real(value, &v) != 0 || !((float)v > 0 && isfinite((float)v)))
        return -1;
    s->problem.scale = (float)v;
    return 0;
}

static int set_layout(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    return set_choice(&s->problem.layout, problem_layout_names, value);
}

static int set_dtype(struct scenario *s, enum scenario_key_id id, const char *value)
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

static int set_scales(struct scenario *s, enum scenario_key_id id, const char *value)
{
    static const char *const names[] = {[SCALES_HEAD] = "head", [SCALES_TENSOR] = "tensor", NULL};
    static const char rows_of[] = "rows:";
    int v = value_name(value, names), rows = 0;
    (void)id;
    if (v < 0) {
        v = SCALES_ROWS;
        if (strncmp(value, rows_of, sizeof rows_of - 1) != 0 ||
            value_integer(value + sizeof rows_of - 1, 1, VALUE_LENGTH_MAX, &rows) != 0)
            return -1;
    }
    s->scales = v;
    s->problem.scale_rows = rows;
    return 0;
}

enum { FILLED = 5 }; /* tensors: q, k, v, sink, bias */

/* The fills that a [fill] key is about: its own tensor's, or for the common key `all` (in the table followed by those
   of the tensors) each that has no key of its own; what the sinks and the bias hold follows the common seed alone.
   Returns how many. */
static int fills_of(struct scenario *s, enum scenario_key_id id, enum scenario_key_id all, struct fill *fills[FILLED])
{
    struct fill *const tensors[FILLED] = {&s->fill_q, &s->fill_k, &s->fill_v, &s->fill_sink, &s->fill_bias};
    const unsigned common = all == KEY_SEED ? FILLED : 3;
    int n = 0;
    for (unsigned t = 0; t < FILLED; t++) {
        const enum scenario_key_id own = all + 1 + t;
        if (id == own || (id == all && t < common && !scenario_stated(s, own)))
            fills[n++] = tensors[t];
    }
    return n;
}

_Static_assert(KEY_FILL_Q == KEY_FILL + 1 && KEY_FILL_BIAS == KEY_FILL + FILLED, "fills_of counts on it");
_Static_assert(KEY_SIGMA_Q == KEY_SIGMA + 1 && KEY_SIGMA_BIAS == KEY_SIGMA + FILLED, "fills_of counts on it");
_Static_assert(KEY_SEED_Q == KEY_SEED + 1 && KEY_SEED_BIAS == KEY_SEED + FILLED, "fills_of counts on it");

static int set_fill_kind(struct scenario *s, enum scenario_key_id id, const char *value)
{
    struct fill *fills[FILLED];
    const int v = value_name(value, fill_names);
    if (v < 0)
        return -1;
    for (int n = fills_of(s, id, KEY_FILL, fills); n > 0; n--)
        fills[n - 1]->kind = (enum fill_kind)v;
    return 0;
}

static int set_sigma(struct scenario *s, enum scenario_key_id id, const char *value)
{
    struct fill *fills[FILLED];
    double v;
    if (value_real(value, &v) != 0 || !(v >= 0))
        return -1;
    for (int n = fills_of(s, id, KEY_SIGMA, fills); n > 0; n--)
        fills[n - 1]->sigma = v;
    return 0;
}

static int set_seed(struct scenario *s, enum scenario_key_id id, const char *value)
{
    struct fill *fills[FILLED];
    uint64_t v;
    if (value_seed(value, &v) != 0)
        return -1;
    for (int n = fills_of(s, id, KEY_SEED, fills); n > 0; n--)
        fills[n - 1]->seed = v;
    return 0;
}

static int set_places(struct scenario *s, enum scenario_key_id id, const char *value)
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

/* "s,l" as a set; -1: not such a list. */
static int read_channels(const char *value, unsigned *set)
{
    *set = 0;
    for (;;) {
        char name[16];
        if (!take_word(&value, ",", name, sizeof name))
            return -1;
        const int ch = channel_from_name(name);
        if (ch < 0)
            return -1;
        *set |= 1u << ch;
        if (*value == '\0')
            return 0;
        value++;
    }
}

static int set_channels(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    unsigned set = (1u << ASC_CHANNELS) - 1;
    if (strcmp(value, "all") != 0 && read_channels(value, &set) != 0)
        return -1;
    s->capture.channels = set;
    return 0;
}

static int set_mem(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    return value_bytes(value, &s->capture.mem_bytes);
}

static int set_verdict(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    const int v = value_name(value, verdict_names);
    if (v <= EXPECT_NOTHING)
        return -1;
    s->expect.verdict = (enum expect_verdict)v;
    return 0;
}

static int set_first(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    static const char letters[] = "bhqk";
    int channel = -1, place[4] = {-1, -1, -1, -1};
    do {
        char word[16];
        if (!take_word(&value, " \t", word, sizeof word))
            return -1;
        /* "q" is the channel, "q0" a q tile. */
        const int ch = channel_from_name(word);
        const char *letter = strchr(letters, word[0]);
        if (ch >= 0 && channel < 0)
            channel = ch;
        else if (ch >= 0 || !letter || place[letter - letters] >= 0 ||
                 value_integer(word + 1, 0, VALUE_LENGTH_MAX - 1, &place[letter - letters]) != 0)
            return -1;
    } while (*value != '\0');
    s->expect.first_channel = channel;
    memcpy(s->expect.first, place, sizeof place);
    return 0;
}

static int set_culprits(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    unsigned set = 0;
    const int none = strcmp(value, "none") == 0;
    if (!none && read_channels(value, &set) != 0)
        return -1;
    s->expect.culprits = set;
    s->expect.no_culprits = none;
    return 0;
}

static int set_expected_bias(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    unsigned set = 0;
    const int none = strcmp(value, "none") == 0;
    if (!none && read_channels(value, &set) != 0)
        return -1;
    s->expect.bias = set;
    s->expect.no_bias = none;
    return 0;
}

/* "a, b" as "a,b"; -1: not such a list, or out has no room for it. */
static int read_names(const char *value, char *out, size_t n_bytes)
{
    char names[256] = "";
    for (size_t used = 0;; value++) {
        char name[64];
        if (!take_word(&value, ",", name, sizeof name))
            return -1;
        const size_t n = strlen(name);
        if (used + n + 2 > n_bytes || used + n + 2 > sizeof names ||
            strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") != n)
            return -1;
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? "," : "", name);
        if (*value == '\0')
            break;
    }
    snprintf(out, n_bytes, "%s", names);
    return 0;
}

static int set_cause(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    return read_names(value, s->expect.cause, sizeof s->expect.cause);
}

static int read_events(const char *value, char *out, size_t n_bytes)
{
    char names[sizeof((struct expect *)NULL)->event], name[64];
    if (read_names(value, names, sizeof names) != 0)
        return -1;
    for (int i = 0; scenario_listed(names, i, name); i++)
        if (event_from_name(name) < 0)
            return -1;
    snprintf(out, n_bytes, "%s", names);
    return 0;
}

static int set_event(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    if (strcmp(value, "none") != 0)
        return read_events(value, s->expect.event, sizeof s->expect.event);
    snprintf(s->expect.event, sizeof s->expect.event, "none");
    return 0;
}

static int set_stopped(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    return read_events(value, s->expect.stopped, sizeof s->expect.stopped);
}

static int set_event_at(struct scenario *s, enum scenario_key_id id, const char *value)
{
    (void)id;
    const size_t n = strlen(value);
    if (n == 0 || n >= sizeof s->expect.event_at)
        return -1;
    memcpy(s->expect.event_at, value, n + 1);
    return 0;
}

int scenario_listed(const char *list, int i, char name[64])
{
    for (; *list && i > 0; i--)
        list += strcspn(list, ",") + (list[strcspn(list, ",")] == ',');
    return take_word(&list, ",", name, 64);
}

_Static_assert(KEY_BUDGET_SHARED - KEY_BUDGET_REGISTERS == BUDGET_SHARED_BYTES, "set_budget counts on it");
_Static_assert(KEY_BUDGET_SPILL - KEY_BUDGET_REGISTERS == BUDGET_SPILL_BYTES, "set_budget counts on it");

static int set_budget(struct scenario *s, enum scenario_key_id id, const char *value)
{
    const unsigned item = (unsigned)id - KEY_BUDGET_REGISTERS;
    int v;
    if (value_integer(value, 0, INT32_MAX, &v) != 0)
        return -1;
    s->budget.most[item] = v;
    s->budget.stated |= 1u << item;
    return 0;
}

const struct scenario_key scenario_keys[KEY_COUNT] = {
#define KEY(id, section, key, setter, expected, by_default, meaning)                                                   \
    [id] = {section, key, expected, by_default, meaning, setter},
#include "scenarios/keys.def"
#undef KEY
};

int scenario_section(const char *section)
{
    for (int i = 0; i < KEY_COUNT; i++) {
        if (strcmp(scenario_keys[i].section, section) == 0)
            return i;
    }
    return -1;
}

int scenario_key_find(const char *section, const char *name)
{
    for (int i = 0; i < KEY_COUNT; i++) {
        if (strcmp(scenario_keys[i].section, section) == 0 && strcmp(scenario_keys[i].name, name) == 0)
            return i;
    }
    return -1;
}

int scenario_unknown(const char *section, const char *name, const char *where, struct err *err)
{
    const int known = scenario_section(section) >= 0;
    char names[256] = "", found[80];
    size_t used = 0;
    for (int i = 0; i < KEY_COUNT; i++) {
        const struct scenario_key *key = &scenario_keys[i];
        if (known ? strcmp(key->section, section) != 0 : scenario_section(key->section) != i)
            continue;
        const int n =
            snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", known ? key->name : key->section);
        used += n > 0 && (size_t)n < sizeof names - used ? (size_t)n : 0;
    }
    value_quote(known ? name : section, strlen(known ? name : section), found, sizeof found);
    return err_set(err, ERR_INPUT, where, "expected a %s out of %s; found `%s`", known ? "key" : "section", names,
                   found);
}

int scenario_key_set(struct scenario *s, enum scenario_key_id id, const char *value, const char *where, struct err *err)
{
    const uint64_t stated = s->stated;
    s->stated |= UINT64_C(1) << id; /* before the call: a setter may take it back */
    const int status = scenario_keys[id].set(s, id, value);
    if (status == 0)
        return 0;
    s->stated = stated;
    if (status == -2)
        return err_set(err, ERR_SYSTEM, where, "no memory for its value");
    char found[128];
    value_quote(value, strlen(value), found, sizeof found);
    return err_set(err, ERR_INPUT, where, "expected %s, found %s%s%s", scenario_keys[id].expected, value[0] ? "`" : "",
                   value[0] ? found : "nothing", value[0] ? "`" : "");
}
