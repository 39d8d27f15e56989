/* random_runs [--small] [--sequences] [--values] [--rope] [--masks] [--blocks] [--formats] [--all] RUNS SEED KERNEL
   [KEY=VALUE...]: runs a correct kernel on RUNS random problems and fails, in TAP, if the oracle raises anything. A
   problem follows from (SEED, its number) alone, from --small, which makes it a third as large, --sequences, which
   gives sequences their own lengths and pages, --values, which gives V its own width and arrays their own strides,
   --rope, which turns Q and K by their positions, --masks, which gives masks of their own and the formulas of scores
   that kernels/flex.cu has, --blocks, which gives parts of a row of codes scales of their own, and --formats, which
   has codes and scales of the microscaling formats; or from --all, which draws from everything that
   tests/everything/everything.cu takes at once. KEY=VALUE fixes what the kernel cannot take otherwise. One session
   serves all runs, so the kernel is built once and its process stays warm. A run that is not clean is printed as the
   command that repeats it. */
#include "engine/base/philox.h"
#include "engine/scenario/keys.h"
#include "engine/session/session.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_KEYS = 48, MAX_SHOWN = 10 };

/* The keys of one problem, as they would stand behind --set. */
struct problem {
    char setting[MAX_KEYS][96];
    int n;
    char scales[32]; /* quant.scales, for a kernel that takes codes */
};

struct random {
    bool is_small, sequences, values, rope, masks, blocks, formats, all;
    uint64_t seed;
    uint32_t run, drawn;
};

/* A number in [0, n). */
static int draw(struct random *r, int n)
{
    const uint32_t counter[4] = {r->drawn++, r->run, 0, 0};
    const uint32_t key[2] = {(uint32_t)r->seed, (uint32_t)(r->seed >> 32)};
    uint32_t out[4];
    philox4x32(counter, key, out);
    return (int)(((uint64_t)out[0] * (uint64_t)n) >> 32);
}

static const char *choose(struct random *r, const char *const *words, int n)
{
    return words[draw(r, n)];
}
#define CHOOSE(r, ...)                                                                                                 \
    choose(r, (const char *const[]){__VA_ARGS__},                                                                      \
           (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)))

static void add(struct problem *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct problem *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(p->setting[p->n++], sizeof p->setting[0], format, args);
    va_end(args);
}

/* Lengths around a tile's edges as often as any other. */
static int length(struct random *r, int most)
{
    static const int edges[] = {1, 7, 31, 32, 33, 63, 64, 65, 127, 128, 129, 191, 192};
    return draw(r, 2) ? edges[draw(r, (int)(sizeof edges / sizeof edges[0]))] : 1 + draw(r, most);
}

/* Heads that read one kv head, sequences and such. */
static int few(struct random *r, int most)
{
    const int n = 1 + draw(r, most);
    return r->is_small && draw(r, 2) ? 1 : n;
}

/* "100,0,37"; least: of each, where it is not 0. */
static void add_lengths(struct random *r, struct problem *p, const char *key, int n, int least, int most)
{
    char list[48] = "";
    for (int b = 0; b < n; b++) {
        const int drawn = length(r, most), rows = drawn < least ? least : drawn;
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%d", b ? "," : "",
                 b == 0 || least > 1 || draw(r, 8) ? rows : 0);
    }
    add(p, "shape.%s=%s", key, list);
}

/* In the place of the lengths that all have. */
static void add_sequences(struct random *r, struct problem *p)
{
    const int n = 1 + draw(r, 4), which = draw(r, 4);
    add(p, "shape.batch=%d", n);
    if (which & 1)
        add_lengths(r, p, "q_lens", n, 1, r->is_small ? 100 : 150);
    if (which & 2)
        add_lengths(r, p, "kv_lens", n, 1, r->is_small ? 200 : 300);
    if (draw(r, 2))
        add(p, "shape.layout=THD");
    if (draw(r, 2))
        add(p, "shape.page_size=%s", CHOOSE(r, "1", "16", "16", "48", "64", "256"));
}

/* Rows of V that are shorter or longer than those of K, or the first part of these. */
static void add_values(struct random *r, struct problem *p)
{
    static const int dims[][2] = {{64, 64}, {192, 128}, {96, 32},   {64, 96},
                                  {72, 64}, {160, 128}, {288, 256}, {576, 512}};
    const int *pair = dims[draw(r, r->is_small ? 6 : 8)];
    add(p, "shape.head_dim=%d", pair[0]);
    if (pair[1] != pair[0] || draw(r, 2))
        add(p, "shape.head_dim_v=%d", pair[1]);
    if (pair[1] <= pair[0] && draw(r, 2))
        add(p, "shape.v_in_k=yes");
}

static bool says(const struct problem *p, const char *setting)
{
    for (int i = 0; i < p->n; i++)
        if (strstr(p->setting[i], setting))
            return true;
    return false;
}

/* How rows lie, as far as that goes with what there is. */
static void add_strides(struct random *r, struct problem *p)
{
    const char *way = CHOOSE(r, "contiguous", "contiguous", "padded", "v-transposed", "packed-qkv");
    const bool lens = says(p, "_lens"), in_pages = says(p, "page_size"), thd = says(p, "layout=THD");
    if (says(p, "v_in_k") || (way[0] == 'v' && (thd || in_pages)))
        way = "contiguous";
    if (strcmp(way, "packed-qkv") == 0) {
        if (lens || in_pages || says(p, "head_dim_v")) {
            way = "padded";
        } else {
            add(p, "shape.layout=%s", thd ? "THD" : "BLHD");
            add(p, "shape.kv_len=%d", 64);
            add(p, "shape.q_len=%d", 64);
        }
    }
    add(p, "shape.strides=%s", way);
    if (says(p, "kv_lens") && !in_pages && !thd && strcmp(way, "packed-qkv") != 0 && draw(r, 2))
        add(p, "shape.left_pad=yes");
}

/* Positions from 0 where no query lies before key 0, else from one that is large enough for any. */
static void add_rope(struct random *r, struct problem *p)
{
    add(p, "shape.rope=%s", CHOOSE(r, "interleaved", "half", "half"));
    if (draw(r, 2))
        add(p, "shape.rope_dim=%s", CHOOSE(r, "32", "62", "2", "64"));
    if (draw(r, 2))
        add(p, "shape.rope_base=%s", CHOOSE(r, "500000", "100", "1"));
    if (!says(p, "causal=top-left") || draw(r, 2))
        add(p, "shape.rope_offset=%d", 512 + draw(r, 5000));
    if (draw(r, 3) == 0)
        add(p, "shape.softcap=%s", CHOOSE(r, "1", "20"));
    if (draw(r, 3) == 0)
        add(p, "shape.window=%s", CHOOSE(r, "17,3", "100,0", "-1,40", "0,0"));
    if (draw(r, 3) == 0)
        add(p, "shape.mask=%s", CHOOSE(r, "j % 3 != i % 3", "i / 32 == j / 32 || h == 0", "j < kv_len / 2"));
    if (!r->values)
        add_strides(r, p);
}

/* Codes of one byte or of half a one, and scales of any type. */
static void add_formats(struct random *r, struct problem *p)
{
    static const char *const names[] = {"dtype", "k_dtype", "v_dtype"};
    for (int i = 0; i < 3; i++)
        add(p, "shape.%s=%s", names[i], i == 0 && draw(r, 2) ? "f16" : CHOOSE(r, "e2m1", "e2m1", "e4m3", "e5m2"));
    add(p, "quant.scale_type=%s", CHOOSE(r, "e4m3", "e4m3", "e8m0", "e8m0", "f32"));
}

static void add_masks(struct random *r, struct problem *p)
{
    add(p, "shape.mask=%s",
        CHOOSE(r, "none", "j <= i || j < 37", "i / 32 == j / 32", "i / 64 == j / 64 || j % 5 == h",
               "(i + j) % (b + 2) != 0", "j % 3 == h % 3 && i > 4", "j < kv_len / 2", "i % 2", "0"));
    add(p, "shape.score_mod=%s",
        CHOOSE(r, "none", "s - 0.1 * abs(i - j)", "tanh(s / 20) * 20", "j < 64 ? s : s * 0.5",
               "h % 2 == 0 ? s : max(s, 0) - log(1 + exp(-abs(s)))"));
}

/* What a third of the runs has. */
static void add_third(struct random *r, struct problem *p, const char *key, const char *value)
{
    if (draw(r, 3) == 0)
        add(p, "shape.%s=%s", key, value);
}

/* How many of V, K and Q hold codes, these first. */
static void add_types(struct random *r, struct problem *p, int codes, bool v_in_k)
{
    static const char *const keys[] = {"v_dtype", "k_dtype", "dtype"};
    add(p, "shape.dtype=%s", draw(r, 3) || codes ? "f16" : "f32");
    for (int i = v_in_k; i < codes; i++)
        add(p, "shape.%s=%s", keys[i], CHOOSE(r, "e4m3", "e4m3", "e5m2", "s8", "u8"));
}

/* Everything at once, but for what does not combine, which a run would be refused for. */
static void add_all(struct random *r, struct problem *p)
{
    enum { Q_ROWS = 48, KV_ROWS = 100, MOST_NEW = 7 };
    static const int widths[] = {16, 32, 40, 64, 64, 72, 128};
    const int batch = 1 + draw(r, 3), d = widths[draw(r, 7)], dv = draw(r, 2) ? d : widths[draw(r, 7)];
    const int kind = draw(r, 6), codes = kind < 3 ? 0 : kind - 2;
    const bool v_in_k = dv <= d && codes != 1 && draw(r, 5) == 0, rope = !v_in_k && codes < 2 && draw(r, 2);
    const bool thd = draw(r, 3) == 0, new_keys = draw(r, 2), in_pages = (new_keys && thd) || draw(r, 3) == 0;
    const char *way = CHOOSE(r, "contiguous", "padded", "v-transposed");
    add_types(r, p, codes, v_in_k);
    add(p, "shape.batch=%d", batch);
    add(p, "shape.head_dim=%d", d);
    add(p, "shape.head_dim_v=%d", dv);
    add(p, "shape.v_in_k=%s", v_in_k ? "yes" : "no");
    const int which = draw(r, 3); /* queries of a sequence's own mean keys of its own too */
    if (which == 2)
        add_lengths(r, p, "q_lens", batch, 1, Q_ROWS);
    else
        add(p, "shape.q_len=%d", 1 + draw(r, Q_ROWS));
    if (which >= 1)
        add_lengths(r, p, "kv_lens", batch, new_keys ? MOST_NEW : 1, KV_ROWS);
    else
        add(p, "shape.kv_len=%d", MOST_NEW + draw(r, KV_ROWS));
    if (thd)
        add(p, "shape.layout=THD");
    if (in_pages)
        add(p, "shape.page_size=%s", CHOOSE(r, "1", "16", "16", "24", "64"));
    if (new_keys)
        add(p, "shape.new_keys=%d", 1 + draw(r, MOST_NEW));
    if (!v_in_k && !(way[0] == 'v' && (thd || in_pages)))
        add(p, "shape.strides=%s", way);
    if (which >= 1 && !in_pages && !thd && draw(r, 2))
        add(p, "shape.left_pad=yes");
    if (rope) {
        add(p, "shape.rope=%s", CHOOSE(r, "interleaved", "half"));
        add(p, "shape.rope_dim=%d", draw(r, 2) ? d : 2 + 2 * draw(r, d / 2));
        add(p, "shape.rope_offset=%d", 192 + draw(r, 1000));
    }
    add_third(r, p, "softcap", CHOOSE(r, "1", "20"));
    add_third(r, p, "window", CHOOSE(r, "17,3", "40,0", "-1,20", "0,0"));
    add_third(r, p, "sink", "yes");
    add_third(r, p, "alibi", "yes");
    add_third(r, p, "bias", CHOOSE(r, "shared", "per-head", "per-batch", "full"));
    add_third(r, p, "mask", CHOOSE(r, "j % 3 != i % 3", "i / 32 == j / 32 || h == 0", "j < kv_len / 2", "i % 2"));
    add_third(r, p, "score_mod", CHOOSE(r, "s - 0.1 * abs(i - j)", "tanh(s / 20) * 20", "j < 64 ? s : s * 0.5"));
    if (!codes)
        add_third(r, p, "dropout", CHOOSE(r, "0.1", "0.5", "0.9"));
}

static void make_problem(struct random *r, struct problem *p)
{
    static const char *const operands[] = {"q", "k", "v"};
    const int group = few(r, 3), kv_heads = few(r, 2);
    p->n = 0;
    add(p, "shape.batch=%d", few(r, 2));
    add(p, "shape.heads=%d", kv_heads * group);
    add(p, "shape.kv_heads=%d", kv_heads);
    const int q_len = length(r, r->is_small ? 100 : 150), kv_len = length(r, r->is_small ? 200 : 300);
    if (!r->sequences && !r->all) {
        add(p, "shape.q_len=%d", q_len);
        add(p, "shape.kv_len=%d", kv_len);
    }
    if (r->values)
        add_values(r, p);
    else
        add(p, "shape.head_dim=%s", CHOOSE(r, "64", "64", "128"));
    add(p, "shape.causal=%s", CHOOSE(r, "none", "top-left", "bottom-right"));
    add(p, "shape.layout=%s", CHOOSE(r, "BHLD", "BLHD"));
    add(p, "shape.dtype=%s", CHOOSE(r, "f16", "bf16"));
    add(p, "shape.scale=%s", CHOOSE(r, "auto", "auto", "auto", "0.3", "1", "0.001"));
    for (int i = 0; i < 3; i++) {
        add(p, "fill.%s.kind=%s", operands[i],
            CHOOSE(r, "normal", "normal", "normal", "uniform", "outliers", "large-logits", "one-hot", "arange",
                   "zeros"));
        add(p, "fill.%s.sigma=%s", operands[i], CHOOSE(r, "1", "1", "1", "0.01", "3"));
    }
    add(p, "fill.seed=%d", draw(r, 1 << 30));
    const int rows = length(r, 150);
    snprintf(p->scales, sizeof p->scales, "%s", CHOOSE(r, "tensor", "head", ""));
    if (!*p->scales)
        snprintf(p->scales, sizeof p->scales, "rows:%d", rows);
    if ((r->blocks || (r->all && draw(r, 2))) && strchr(p->scales, ':') == NULL)
        snprintf(p->scales, sizeof p->scales, "%sdims:%d", CHOOSE(r, "", "rows:1,", "rows:16,", "rows:37,"),
                 draw(r, 2) ? 1 + draw(r, 150) : 16);
    if (r->formats)
        add_formats(r, p);
    if (r->all)
        add_all(r, p);
    if (r->sequences)
        add_sequences(r, p);
    if (r->values)
        add_strides(r, p);
    if (r->rope)
        add_rope(r, p);
    if (r->masks)
        add_masks(r, p);
}

static int set(struct scenario *s, const char *setting, struct err *err)
{
    char key[64];
    const char *equals = strchr(setting, '=');
    if (!equals || (size_t)(equals - setting) >= sizeof key)
        return err_set(err, ERR_USAGE, setting, "expected KEY=VALUE");
    memcpy(key, setting, (size_t)(equals - setting));
    key[equals - setting] = '\0';
    return scenario_set(s, key, equals + 1, err);
}

static int takes_scales(const struct scenario *s)
{
    return problem_has_codes(&s->problem) && !scenario_stated(s, KEY_SCALES);
}

struct kernel {
    const char *path;
    char **fixed; /* [n_fixed] settings that win over the random ones */
    int n_fixed;
};

/* 1: clean; why: one line. */
static int run(struct session *s, const struct kernel *kernel, struct problem *p, char *why, size_t why_bytes)
{
    static const struct expect clean = {.verdict = EXPECT_CLEAN, .first_channel = -1, .first = {-1, -1, -1, -1}};
    struct err err = {0};
    int failed = 0;
    scenario_free(&s->subject.scenario);
    scenario_init(&s->subject.scenario);
    snprintf(s->subject.scenario.kernel, sizeof s->subject.scenario.kernel, "%s", kernel->path);
    for (int i = 0; i < p->n && !failed; i++)
        failed = set(&s->subject.scenario, p->setting[i], &err);
    for (int i = 0; i < kernel->n_fixed && !failed; i++)
        failed = set(&s->subject.scenario, kernel->fixed[i], &err);
    const int with_scales = !failed && takes_scales(&s->subject.scenario);
    if (with_scales)
        failed = scenario_set(&s->subject.scenario, "quant.scales", p->scales, &err);
    else
        p->scales[0] = '\0';
    failed = failed || scenario_check(&s->subject.scenario, &err);
    if (!failed && session_start(s) != 0)
        failed = err_set(&err, ERR_SYSTEM, "", "no thread could be started");
    if (!failed && session_finish(s, 0) != 0) {
        err = s->job.err;
        failed = -1;
    }
    if (failed) {
        snprintf(why, why_bytes, "%s: %s", err.where, err.message);
        return 0;
    }
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        if (trace_dropped(s->run.trace, ch) || trace_mistyped(s->run.trace, ch)) {
            snprintf(why, why_bytes, "values of %s were not recorded", channel_name(ch));
            return 0;
        }
    }
    if (s->run.trace->info.n_events) {
        snprintf(why, why_bytes, "event %s: %s", event_name(s->run.trace->info.events[0].kind),
                 s->run.trace->info.events[0].text);
        return 0;
    }
    return judgement_meets(s->run.judgement, s->run.trace, &clean, why, why_bytes);
}

static void print_command(const struct kernel *kernel, const struct problem *p)
{
    printf("#   attnscope run %s", kernel->path);
    for (int i = 0; i < p->n; i++)
        printf(" --set %s", p->setting[i]);
    for (int i = 0; i < kernel->n_fixed; i++)
        printf(" --set %s", kernel->fixed[i]);
    if (*p->scales)
        printf(" --set quant.scales=%s", p->scales);
    printf("\n");
}

int main(int argc, char **argv)
{
    struct session *s;
    struct err err = {0};
    struct random r = {.seed = 0};
    const struct {
        const char *name;
        bool *is;
    } options[] = {
        {"--small", &r.is_small}, {"--sequences", &r.sequences}, {"--values", &r.values},   {"--rope", &r.rope},
        {"--masks", &r.masks},    {"--blocks", &r.blocks},       {"--formats", &r.formats}, {"--all", &r.all}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        *options[i].is = argc > 1 && strcmp(argv[1], options[i].name) == 0;
        argc -= *options[i].is;
        argv += *options[i].is;
    }
    if (argc < 4) {
        fprintf(stderr,
                "usage: random_runs [--small] [--sequences] [--values] [--rope] [--masks] [--blocks] [--formats] "
                "[--all] RUNS SEED KERNEL [KEY=VALUE...]\n");
        return 2;
    }
    const long runs = strtol(argv[1], NULL, 10);
    const struct kernel kernel = {argv[3], argv + 4, argc - 4};
    r.seed = strtoull(argv[2], NULL, 10);
    printf("1..1\n");
    if (session_open(kernel.path, &s, &err) != 0) {
        printf("# %s: %s\nnot ok 1 - random runs of %s\n", err.where, err.message, kernel.path);
        return 1;
    }
    long bad = 0;
    uint64_t elements = 0;
    for (long i = 0; i < runs; i++) {
        struct problem p;
        char why[4200];
        r.run = (uint32_t)i;
        r.drawn = 0;
        make_problem(&r, &p);
        if (!run(s, &kernel, &p, why, sizeof why)) {
            if (bad++ < MAX_SHOWN) {
                printf("# run %ld: %s\n", i, why);
                print_command(&kernel, &p);
                fflush(stdout);
            }
            continue;
        }
        for (int ch = 0; ch < ASC_CHANNELS; ch++)
            elements += s->run.judgement->summary.stage[ch].elements;
    }
    session_free(s);
    printf("# %ld runs with seed %s, %llu elements judged, %ld runs not clean\n", runs, argv[2],
           (unsigned long long)elements, bad);
    printf("%sok 1 - random runs of %s\n", bad || runs < 1 ? "not " : "", kernel.path);
    return bad || runs < 1;
}
