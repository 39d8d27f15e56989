#include "cli/kernel_cases.h"

#include "engine/build/process.h"
#include "engine/oracle/codes.h"
#include "engine/run/record.h"
#include "engine/scenario/keys.h"
#include "engine/trace/layout.h"

#include <stdlib.h>
#include <string.h>

#define LAST_LIMIT_S 300 /* of the largest shapes, as in scenarios/acceptance */
#define HEAD_DIM_MAX 1024
#define INSTANCES_MAX 512 /* more than all types that can be named, at all of head_dims */

/* Head dims that kernels are written for. One that takes none of these is asked for every other. */
static const int head_dims[] = {64, 16, 32, 40, 48, 72, 80, 96, 112, 128, 160, 192, 224, 256, 512};
/* q_len, kv_len at which a kernel is asked what it takes: some take whole tiles alone, or one query. */
static const int lengths[][2] = {{64, 64},  {128, 128}, {256, 256}, {512, 512}, {1024, 1024}, {1, 64},   {1, 512},
                                 {1, 1024}, {16, 16},   {32, 32},   {8, 8},     {1, 1},       {64, 1024}};
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* What kernels of V of its own width, or in K, are written for where they take none of these. */
static const struct width {
    int head_dim, head_dim_v;
    bool v_in_k;
} widths[] = {{192, 128, false}, {576, 512, false}, {576, 512, true}, {64, 64, true}, {128, 128, true}};

/* A set of types and a head_dim that the kernel takes. */
struct instance {
    struct asc_problem problem; /* at lengths that it takes */
    struct asc_plan plan;
    char words[96]; /* settings that choose the types; "" for those that are run where nothing is said */
};

struct asking {
    struct recorder *r;
    const struct runner_paths *paths;
    const struct scenario *scenario;
    enum probes probes;
    const struct runner_progress *progress;
    struct child_hello hello; /* a plan that crashes takes its process along */
    struct instance instances[INSTANCES_MAX];
    size_t n_instances;
    int32_t layout; /* that is asked for */
    struct kernel_cases *out;
};

enum case_of { CASE_KERNEL, CASE_INSTANCE, CASE_USE };

/* 1: taken; 0: declined, in *err's words; -1: the plan did not answer. */
static int ask(struct asking *a, const struct asc_problem *problem, struct asc_plan *plan, struct err *err)
{
    if (process_cancelled(a->progress))
        return err_set(err, ERR_CANCELLED, "", "cancelled");
    if ((!a->r->child || !child_alive(a->r->child)) &&
        record_child(a->r, a->paths, a->scenario, a->probes, a->progress, err) != 0)
        return -1;
    if (child_load(a->r->child, problem, plan, err) == 0)
        return 1;
    return err->code == ERR_DECLINED ? 0 : -1;
}

/* The settings of a case that choose what the kernel need not take are those of its own. */
static bool registered(const struct asking *a, const struct scenario *s)
{
    const struct child_hello *hello = &a->hello;
    const struct asc_problem *p = &s->problem;
    return hello->layouts & 1u << p->layout && (!p->has_alibi || hello->biases & ASC_SUPPORTS(ALIBI)) &&
           (p->bias_kind == ASC_BIAS_NONE || hello->biases & ASC_SUPPORTS(BIAS)) &&
           (!p->has_q_lens || hello->sequences & ASC_SUPPORTS(Q_LENS)) &&
           (!p->has_kv_lens || hello->sequences & ASC_SUPPORTS(KV_LENS)) &&
           (!p->page_size || hello->sequences & ASC_SUPPORTS(PAGES)) &&
           (p->head_dim_v == p->head_dim || hello->tensors & ASC_SUPPORTS(HEAD_DIM_V)) &&
           (!p->new_keys || hello->sequences & ASC_SUPPORTS(NEW_KEYS)) &&
           (!p->left_pad || hello->sequences & ASC_SUPPORTS(LEFT_PAD)) &&
           (p->lie != ASC_STRIDED || hello->tensors & ASC_SUPPORTS(STRIDES)) &&
           (p->lie != ASC_PACKED_QKV || hello->tensors & ASC_SUPPORTS(STRIDES)) &&
           (p->lie != ASC_V_TRANSPOSED || hello->tensors & ASC_SUPPORTS(TRANSPOSED_V)) &&
           (!p->scale_dims || hello->tensors & ASC_SUPPORTS(SCALE_DIMS)) &&
           (!p->scale_type || hello->tensors & ASC_SUPPORTS(SCALE_TYPES)) &&
           (!p->v_in_k || hello->tensors & ASC_SUPPORTS(V_IN_K)) &&
           (p->dropout == 0 || hello->biases & ASC_SUPPORTS(DROPOUT)) &&
           (!p->rope || hello->tensors & ASC_SUPPORTS(ROPE)) &&
           (!p->has_sink || hello->conventions.l_sink != ASC_SINK_NONE) &&
           (!scenario_stated(s, KEY_SCALES) || problem_has_codes(p));
}

static void add_word(char *words, size_t bytes, const char *word)
{
    const size_t used = strlen(words);
    if (word[0])
        snprintf(words + used, bytes - used, "%s%s", used ? " " : "", word);
}

static int set_words(struct scenario *s, const char *words, struct err *err)
{
    char word[64];
    while (*words) {
        const size_t n = strcspn(words, " ");
        snprintf(word, sizeof word, "%.*s", (int)n, words);
        words += n + (words[n] == ' ');
        char *equals = strchr(word, '=');
        *equals = '\0';
        if (scenario_set(s, word, equals + 1, err) != 0)
            return -1;
    }
    return 0;
}

/* "(1,4/2,67,35,64) causal=top-left fill.seed=1"; kv_heads stands in the shape. */
static void name_case(struct kernel_case *c, int batch, int heads, int kv_heads, const char *lengths_of)
{
    char group[16] = "";
    if (heads != kv_heads)
        snprintf(group, sizeof group, "/%d", kv_heads);
    snprintf(c->name, sizeof c->name, "(%d,%d%s,%s)", batch, heads, group, lengths_of);
    for (const char *word = c->settings; *word;) {
        const size_t n = strcspn(word, " ");
        const size_t used = strlen(c->name), section = strncmp(word, "shape.", 6) == 0 ? 6 : 0;
        if (strncmp(word, "shape.kv_heads=", 15) != 0)
            snprintf(c->name + used, sizeof c->name - used, " %.*s", (int)(n - section), word + section);
        word += n + (word[n] == ' ');
    }
}

static struct kernel_case *add_case(struct kernel_cases *out, struct err *err)
{
    struct kernel_case *more = realloc(out->at, (out->n + 1) * sizeof *more);
    if (!more) {
        err_no_memory(err, "", "the cases");
        return NULL;
    }
    out->at = more;
    more[out->n] = (struct kernel_case){0};
    return &more[out->n++];
}

#define NOWHERE "is registered, but the plan never accepts it: "

/* What the registration says and the plan takes in no case. */
static int add_broken(struct asking *a, const char *name, const char *what, const char *why, struct err *err)
{
    struct kernel_case *c = add_case(a->out, err);
    if (!c)
        return -1;
    snprintf(c->name, sizeof c->name, "%s", name);
    c->answer = CASE_BROKEN;
    snprintf(c->why, sizeof c->why, "%s%s", what, why);
    return 0;
}

static const struct instance *find_instance(const struct asking *a, const int32_t types[3], int head_dim)
{
    for (size_t i = 0; i < a->n_instances; i++) {
        const struct asc_problem *p = &a->instances[i].problem;
        if (p->dtype == types[0] && p->k_dtype == types[1] && p->v_dtype == types[2] && p->head_dim == head_dim)
            return &a->instances[i];
    }
    return NULL;
}

/* Looks for lengths at which this head_dim is taken. 1: found; 0: declined, why the first time in *err's words. */
static int try_head_dim(struct asking *a, const struct scenario *s, const char *words, struct width width,
                        struct err *err)
{
    struct err again;
    for (size_t i = 0; i < COUNT(lengths); i++) {
        struct instance *found = &a->instances[a->n_instances];
        struct asc_problem p = s->problem;
        p.batch = 1;
        p.heads = p.kv_heads = 2;
        p.q_len = lengths[i][0];
        p.kv_len = lengths[i][1];
        p.head_dim = width.head_dim;
        p.head_dim_v = width.head_dim_v;
        p.v_in_k = width.v_in_k;
        if (!scenario_stated(s, KEY_SCALE))
            p.scale = scenario_auto_scale(width.head_dim);
        p.layout = a->layout;
        const int taken = ask(a, &p, &found->plan, i ? &again : err);
        if (taken < 0 && i)
            *err = again;
        if (taken < 0)
            return -1;
        if (taken) {
            found->problem = p;
            snprintf(found->words, sizeof found->words, "%s", words);
            char word[32];
            snprintf(word, sizeof word, "shape.layout=%s", problem_layout_names[a->layout]);
            if (a->layout != ASC_BHLD)
                add_word(found->words, sizeof found->words, word);
            snprintf(word, sizeof word, "shape.head_dim_v=%d", width.head_dim_v);
            if (width.head_dim_v != width.head_dim)
                add_word(found->words, sizeof found->words, word);
            if (width.v_in_k)
                add_word(found->words, sizeof found->words, "shape.v_in_k=yes");
            a->n_instances++;
            return 1;
        }
    }
    return 0;
}

/* All head dims with the types of s, which words choose. 1: some; 0: none, *err holds the plan's sentence. */
static int try_head_dims(struct asking *a, const struct scenario *s, const char *words, bool every_head_dim,
                         struct err *err)
{
    const size_t before = a->n_instances;
    struct err declined = {0};
    const int32_t types[3] = {s->problem.dtype, s->problem.k_dtype, s->problem.v_dtype};
    const size_t n = every_head_dim ? HEAD_DIM_MAX : COUNT(head_dims);
    for (size_t i = 0; i < n && a->n_instances < INSTANCES_MAX; i++) {
        const int head_dim = every_head_dim ? (int)i + 1 : head_dims[i];
        if (find_instance(a, types, head_dim))
            return 1; /* other words for the same types */
        const int taken = try_head_dim(a, s, words, (struct width){head_dim, head_dim, false}, err);
        if (taken < 0)
            return -1;
        if (!taken && declined.code == ERR_NONE)
            declined = *err;
        if (taken && every_head_dim)
            break;
    }
    for (size_t i = 0; i < COUNT(widths) && a->n_instances == before && a->hello.tensors; i++)
        if (try_head_dim(a, s, words, widths[i], err) < 0)
            return -1;
    *err = declined;
    return a->n_instances > before;
}

/* The same with the types that these settings choose. */
static int try_types(struct asking *a, const char *words, bool every_head_dim, struct err *err)
{
    struct scenario s;
    if (scenario_copy(a->scenario, &s) != 0)
        return err_no_memory(err, "", "the scenario");
    int taken = set_words(&s, words, err);
    adopt_types(&a->hello, &s);
    if (taken == 0)
        taken = try_head_dims(a, &s, words, every_head_dim, err);
    scenario_free(&s);
    return taken;
}

/* The types that a scenario can name. */
static uint32_t runnable(uint32_t set)
{
    uint32_t known = 1u << DTYPE_F16 | 1u << DTYPE_BF16 | 1u << DTYPE_F32;
    for (int t = 0; t < DTYPE_COUNT; t++)
        known |= (uint32_t)(dtype_is_code((enum dtype)t) != 0) << t;
    return set & known;
}

/* Each type of K, or of V, that is registered by itself, with the first type of Q that goes with it. */
static int try_others(struct asking *a, const char *key, uint32_t set, struct err *err)
{
    const uint32_t queries = runnable(a->hello.dtypes);
    for (int t = 0; t < DTYPE_COUNT; t++) {
        int taken = 0;
        char words[96] = "", alone[32];
        if (!(runnable(set) & 1u << t))
            continue;
        snprintf(alone, sizeof alone, "shape.%s=%s", key, dtype_name((enum dtype)t));
        taken = try_types(a, alone, false, err);
        for (int q = 0; q < DTYPE_COUNT && !taken; q++)
            if (queries & 1u << q) {
                snprintf(words, sizeof words, "shape.dtype=%s %s", dtype_name((enum dtype)q), alone);
                taken = try_types(a, words, false, err);
            }
        if (taken < 0 || (!taken && add_broken(a, strchr(alone, '.') + 1, NOWHERE, err->message, err) != 0))
            return -1;
    }
    return 0;
}

static bool takes_type(const struct asking *a, int dtype)
{
    bool taken = false;
    for (size_t i = 0; i < a->n_instances; i++)
        taken = taken || a->instances[i].problem.dtype == dtype;
    return taken;
}

/* Every registered type of Q that no instance has yet. tell: what is not taken then is a promise that is not kept. */
static int try_queries(struct asking *a, bool tell, struct err *err)
{
    const uint32_t set = runnable(a->hello.dtypes);
    for (int t = 0; t < DTYPE_COUNT; t++) {
        char words[32];
        if (!(set & 1u << t) || takes_type(a, t))
            continue;
        snprintf(words, sizeof words, "shape.dtype=%s", dtype_name((enum dtype)t));
        const int taken = try_types(a, words, false, err);
        if (taken < 0 || (!taken && tell && add_broken(a, strchr(words, '.') + 1, NOWHERE, err->message, err) != 0))
            return -1;
    }
    return 0;
}

/* Fills instances with all that is taken, first what is run where nothing is said. 0: also where that is nothing, *err
   then holds the plan's sentence. */
static int find_instances(struct asking *a, struct err *err)
{
    struct err other;
    const int taken = try_types(a, "", false, err);
    if (taken < 0 || try_queries(a, false, taken ? err : &other) != 0)
        return -1;
    if (!a->n_instances && try_types(a, "", true, &other) < 0)
        return -1;
    if (!a->n_instances)
        return 0;
    if (try_queries(a, true, err) != 0)
        return -1;
    return try_others(a, "k_dtype", a->hello.k_dtypes, err) || try_others(a, "v_dtype", a->hello.v_dtypes, err) ? -1
                                                                                                                : 0;
}

static const struct kernel_case *find_listed(const struct kernel_cases *cases, const struct kernel_case *c)
{
    for (size_t i = 0; i + 1 < cases->n; i++)
        if (strcmp(cases->at[i].name, c->name) == 0)
            return &cases->at[i];
    return NULL;
}

/* What a row of the table is, for one instance and seed. */
struct row {
    enum case_of of;
    int batch, heads, kv_heads, q_len, kv_len, head_dim, seed;
    const char *settings;
};

static int at_least_one(int length)
{
    return length > 1 ? length : 1;
}

/* Asks the plan of the case that was added last; one that is there already, or that the kernel does not register, is
   left out. */
static int ask_case(struct asking *a, struct kernel_case *c, const struct scenario *s, struct err *err)
{
    struct asc_plan plan;
    c->normal = s->fill_q.kind == FILL_NORMAL && s->fill_k.kind == FILL_NORMAL && s->fill_v.kind == FILL_NORMAL;
    const struct kernel_case *listed = find_listed(a->out, c);
    if (listed || !registered(a, s)) {
        c->answer = listed ? listed->answer : CASE_TAKEN;
        a->out->n--;
        return 0;
    }
    const int taken = ask(a, &s->problem, &plan, err);
    if (taken < 0 && err->code != ERR_RUN)
        return -1;
    const char *refused =
        taken > 0 && scenario_stated(s, KEY_SCALES) ? codes_refused(&s->problem, &plan, &a->hello.conventions) : NULL;
    c->answer = taken < 0 ? CASE_BROKEN : taken && !refused ? CASE_TAKEN : CASE_DECLINED;
    if (c->answer != CASE_TAKEN)
        snprintf(c->why, sizeof c->why, "%s", refused ? refused : err->message);
    return 0;
}

/* Adds the case, unless it is left out. */
static int make_case(struct asking *a, const struct instance *instance, const struct row *row,
                     enum kernel_answer *answer, struct err *err)
{
    struct kernel_case *c = add_case(a->out, err);
    char word[64], lengths_of[48];
    if (!c)
        return -1;
    const int q_len = at_least_one(row->q_len), kv_len = at_least_one(row->kv_len);
    if (q_len == kv_len)
        snprintf(lengths_of, sizeof lengths_of, "%d,%d", q_len, row->head_dim);
    else
        snprintf(lengths_of, sizeof lengths_of, "%d,%d,%d", q_len, kv_len, row->head_dim);
    snprintf(c->shape, sizeof c->shape, "%d,%d,%s", row->batch, row->heads, lengths_of);
    if (row->kv_heads != row->heads) {
        snprintf(word, sizeof word, "shape.kv_heads=%d", row->kv_heads);
        add_word(c->settings, sizeof c->settings, word);
    }
    add_word(c->settings, sizeof c->settings, instance->words);
    if (!strstr(instance->words, "shape.layout") || !strstr(row->settings, "shape.layout"))
        add_word(c->settings, sizeof c->settings, row->settings);
    if (row->seed) {
        snprintf(word, sizeof word, "fill.seed=%d", row->seed);
        add_word(c->settings, sizeof c->settings, word);
    }
    name_case(c, row->batch, row->heads, row->kv_heads, lengths_of);
    c->types[0] = instance->problem.dtype;
    c->types[1] = instance->problem.k_dtype;
    c->types[2] = instance->problem.v_dtype;
    c->last = row->of == CASE_USE;
    struct scenario s;
    if (kernel_case_make(c, a->scenario, &s, err) != 0)
        return -1;
    const int failed = ask_case(a, c, &s, err);
    *answer = c->answer;
    scenario_free(&s);
    return failed;
}

/* What a registration says beside types. */
static const char *const promises[] = {
    "layout=", "alibi=",   "bias=",     "sink=", "_lens=",   "page_size=", "head_dim_v=",
    "v_in_k=", "strides=", "left_pad=", "rope=", "dropout=", "new_keys="};

/* A part of the registration of which the plan takes no case at all is a promise that is not kept. */
static void hold_promises(struct kernel_cases *cases)
{
    for (size_t i = 0; i < COUNT(promises); i++) {
        struct kernel_case *declined = NULL;
        bool taken = false;
        for (size_t n = 0; n < cases->n; n++)
            if (strstr(cases->at[n].settings, promises[i])) {
                taken = taken || cases->at[n].answer != CASE_DECLINED;
                declined = declined ? declined : &cases->at[n];
            }
        if (!declined || taken)
            continue;
        char why[sizeof declined->why];
        snprintf(why, sizeof why, NOWHERE "%.400s", declined->why);
        memcpy(declined->why, why, sizeof why);
        declined->answer = CASE_BROKEN;
    }
}

static int round_up(int length, int to)
{
    return (length + to - 1) / to * to;
}

/* A case that was declined may have been so for its lengths: the same of whole tiles of either kind, or else of the
   lengths at which this instance is known to be taken. */
static int make_taken(struct asking *a, const struct instance *instance, struct row row, struct err *err)
{
    const int tile = instance->plan.br > instance->plan.bc ? instance->plan.br : instance->plan.bc;
    enum kernel_answer answer = CASE_DECLINED;
    for (int i = 0; i < 2 && answer == CASE_DECLINED; i++) {
        const size_t before = a->out->n;
        row.q_len = i ? instance->problem.q_len : round_up(row.q_len, tile);
        row.kv_len = i ? instance->problem.kv_len : round_up(row.kv_len, tile);
        if (make_case(a, instance, &row, &answer, err) != 0)
            return -1;
        if (answer == CASE_DECLINED)
            a->out->n = before; /* one sentence is enough */
    }
    return 0;
}

static int add_row(struct asking *a, const struct instance *base, const struct instance *instance, struct row row,
                   int seeds, struct err *err)
{
    const int32_t types[3] = {base->problem.dtype, base->problem.k_dtype, base->problem.v_dtype};
    if (row.of != CASE_INSTANCE) {
        const struct instance *wanted = row.head_dim ? find_instance(a, types, row.head_dim) : NULL;
        instance = wanted ? wanted : base;
    }
    row.head_dim = instance->problem.head_dim;
    for (row.seed = 0; row.seed < seeds; row.seed++) {
        enum kernel_answer answer;
        if (make_case(a, instance, &row, &answer, err) != 0 ||
            (answer == CASE_DECLINED && row.of != CASE_USE && make_taken(a, instance, row, err) != 0))
            return -1;
    }
    return 0;
}

/* All rows of one kind; of an instance, br and bc are its own. */
static int add_rows(struct asking *a, enum case_of of, const struct instance *base, const struct instance *instance,
                    struct err *err)
{
    const int br = instance->plan.br, bc = instance->plan.bc, n = 2 * (br > bc ? br : bc) + 3;
    int failed = 0;
#define KERNEL_CASE(is_of, batch, heads, kv_heads, q_len, kv_len, head_dim, seeds, settings)                           \
    if (!failed && (is_of) == of)                                                                                      \
        failed = add_row(a, base, instance,                                                                            \
                         (struct row){of, batch, heads, kv_heads, q_len, kv_len, head_dim, 0, settings}, seeds, err);
#include "cli/kernel_cases.def"
#undef KERNEL_CASE
    return failed;
}

static void add_names(char *out, size_t bytes, const char *before, uint32_t set, const char *(*name)(int))
{
    const char *between = before;
    for (int i = 0; i < 32; i++)
        if (set & 1u << i) {
            const size_t used = strlen(out);
            snprintf(out + used, bytes - used, "%s%s", between, name(i));
            between = ", ";
        }
}

static const char *type_of(int t)
{
    return dtype_name((enum dtype)t);
}

static const char *layout_of(int layout)
{
    return problem_layout_names[layout];
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void describe_takes(const struct asking *a)
{
    const struct child_hello *hello = &a->hello;
    char *out = a->out->takes;
    const size_t bytes = sizeof a->out->takes;
    int dims[INSTANCES_MAX] = {0};
    size_t n = 0;
    add_names(out, bytes, "", hello->dtypes & ((1u << DTYPE_COUNT) - 1), type_of);
    add_names(out, bytes, "; K ", hello->k_dtypes & ((1u << DTYPE_COUNT) - 1), type_of);
    add_names(out, bytes, "; V ", hello->v_dtypes & ((1u << DTYPE_COUNT) - 1), type_of);
    add_names(out, bytes, "; ", hello->layouts & (ASC_SUPPORTS(BHLD) | ASC_SUPPORTS(BLHD) | ASC_SUPPORTS(THD)),
              layout_of);
    for (size_t i = 0; i < a->n_instances; i++)
        dims[n++] = a->instances[i].problem.head_dim;
    qsort(dims, n, sizeof *dims, by_number);
    for (size_t i = 0; i < n; i++) {
        const size_t used = strlen(out);
        if (i == 0 || dims[i] != dims[i - 1])
            snprintf(out + used, bytes - used, "%s%d", i ? ", " : "; head_dim ", dims[i]);
    }
}

static int list(struct asking *a, struct err *err)
{
    for (a->layout = ASC_BHLD; a->layout <= ASC_THD && !a->n_instances; a->layout++) {
        if (!(a->hello.layouts & 1u << a->layout))
            continue;
        if (find_instances(a, err) != 0)
            return -1;
        if (!a->n_instances) {
            char name[32];
            snprintf(name, sizeof name, "layout=%s", problem_layout_names[a->layout]);
            if (add_broken(a, name, NOWHERE, err->message, err) != 0)
                return -1;
        }
    }
    if (!a->n_instances) {
        a->out->n = 0; /* one sentence for all */
        return add_broken(a, "every case", "the plan accepts no problem: ", err->message, err);
    }
    const struct instance *base = &a->instances[0]; /* of head_dim 64 where that is taken: the first to be asked for */
    describe_takes(a);
    a->out->base = base->problem;
    memcpy(a->out->base_words, base->words, sizeof base->words);
    if (add_rows(a, CASE_KERNEL, base, base, err) != 0)
        return -1;
    for (size_t i = 0; i < a->n_instances; i++)
        if (add_rows(a, CASE_INSTANCE, base, &a->instances[i], err) != 0)
            return -1;
    if (add_rows(a, CASE_USE, base, base, err) != 0)
        return -1;
    hold_promises(a->out);
    return 0;
}

int kernel_cases_list(struct recorder *r, const struct runner_paths *paths, const struct scenario *scenario,
                      enum probes probes, const struct runner_progress *progress, struct kernel_cases *out,
                      struct err *err)
{
    *out = (struct kernel_cases){0};
    if (record_child(r, paths, scenario, probes, progress, err) != 0)
        return -1;
    struct asking *a = calloc(1, sizeof *a);
    if (!a)
        return err_no_memory(err, "", "the cases");
    *a = (struct asking){
        .r = r, .paths = paths, .scenario = scenario, .probes = probes, .progress = progress, .out = out};
    a->hello = *child_hello(r->child);
    const int failed = list(a, err);
    free(a);
    if (failed)
        kernel_cases_free(out); /* part of them is no answer */
    return failed;
}

void kernel_cases_free(struct kernel_cases *cases)
{
    free(cases->at);
    *cases = (struct kernel_cases){0};
}

int kernel_case_make(const struct kernel_case *c, const struct scenario *from, struct scenario *out, struct err *err)
{
    if (scenario_copy(from, out) != 0)
        return err_no_memory(err, "", "the scenario");
    const float scale = out->problem.scale;
    if (scenario_set_shape(out, c->shape, err) != 0 || set_words(out, c->settings, err) != 0 ||
        scenario_settle_sequences(out, NULL, err) != 0) {
        scenario_free(out);
        return -1;
    }
    if (scenario_stated(from, KEY_SCALE))
        out->problem.scale = scale;
    out->problem.dtype = c->types[0];
    out->problem.k_dtype = c->types[1];
    out->problem.v_dtype = c->types[2];
    out->stated[KEY_DTYPE] = out->stated[KEY_K_DTYPE] = out->stated[KEY_V_DTYPE] = true;
    if (c->last && !scenario_stated(from, KEY_LIMIT))
        out->limit_s = LAST_LIMIT_S;
    return 0;
}

int kernel_cases_allow(const char *setting, struct err *err)
{
    static const char *const sections[] = {"shape.", "fill.", "quant.", "capture.", "expect."};
    static const char *const left_alone[] = {"shape.scale", "fill.sigma", "capture.mem"}; /* by every case */
    const size_t n = strcspn(setting, "=");
    for (size_t i = 0; i < COUNT(left_alone); i++)
        if (strlen(left_alone[i]) == n && strncmp(setting, left_alone[i], n) == 0)
            return 0;
    for (size_t i = 0; i < COUNT(sections); i++)
        if (strncmp(setting, sections[i], strlen(sections[i])) == 0)
            return err_set(err, ERR_USAGE, "--set", "%.*s is set by the kernel's cases; with --shape it can be set",
                           (int)n, setting);
    return 0;
}
