/* The judge of O and LSE on a GPU, run by the CPU executor: it expects the CPU's bits, within bounds that are hardly
   wider, for each thing that it knows; what it does not know goes to the CPU. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/judge/numbers.h"
#include "engine/oracle/bound.h"
#include "engine/run/bounded.h"
#include "engine/run/gpu_judge.h"
#include "engine/session/session.h"
#include "engine/verdict/case.h"
#include "tests/unit/lib/golden.h"
#include "tests/unit/lib/judge_program.h"
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define DIR "build/test-gpu-judge"

/* What is asked: the program that this builds for the executor, or the one that the command line names, on a GPU. */
static const char *program = DIR "/attnscope-judge";
static bool on_gpu;

static int build_judge(void **state)
{
    (void)state;
    judge_program_build(on_gpu ? NULL : program, DIR);
    return 0;
}

struct compared {
    const struct judge_value *values;
    int rows, cols;
    int64_t differing;
    char first[200];
};

static double least_wider = 1, most_wider = 1;

/* A bound is the CPU's, or a little wider; or narrower by what underflow may cost the CPU's own sums of magnitudes. */
static bool is_bound(double gpu, double cpu)
{
    if ((isinf(gpu) && isinf(cpu)) || (gpu < cpu && cpu - gpu <= BOUND_TINY))
        return true;
    const double wider = cpu > 0 ? gpu / cpu : gpu == cpu;
    least_wider = fmin(least_wider, wider);
    most_wider = fmax(most_wider, wider);
    return wider >= 1 - 1e-9 && wider <= 1 + JUDGE_WIDER;
}

static bool same_bits(double x, double y, double room)
{
    return memcmp(&x, &y, sizeof x) == 0 || /* NOLINT(bugprone-suspicious-memory-comparison): bits are meant */
           fabs(x - y) <= room * fmax(1, fabs(y));
}

static void compare_tile(void *ctx, const struct tile_detail *d)
{
    struct compared *x = ctx;
    if (d->channel != asc_o && d->channel != asc_lse)
        return;
    const struct judge_value *values = x->values + (d->channel == asc_lse ? (ptrdiff_t)x->rows * x->cols : 0);
    /* The logarithms that LSE takes may have another last bit on a GPU (CUDA C++ Programming Guide: log errs by 1 ulp,
       log1p by 1), and glibc's err by 1 as well; what is made of them rounds once more. */
    const double room = on_gpu && d->channel == asc_lse ? 4 * DBL_EPSILON : 0;
    for (int i = 0; i < d->rows * d->cols; i++) {
        const bool same =
            same_bits(values[i].want, d->want_global[i], room) && is_bound(values[i].bound, d->bound_global[i]);
        if (!same && !x->differing++)
            snprintf(x->first, sizeof x->first, "%s %d of %d: %.17g +- %.17g, the CPU has %.17g +- %.17g",
                     d->channel == asc_o ? "o" : "lse", i, d->rows * d->cols, values[i].want, values[i].bound,
                     d->want_global[i], d->bound_global[i]);
    }
}

/* The case of a place with nothing captured but its outputs. */
static void inputs_alone(struct slot_case *c)
{
    for (int i = 0; i < c->c.kv_tiles * ASC_CHANNELS; i++)
        if (i != asc_o && i != asc_lse)
            c->captured[i].data = NULL;
    c->c.n_visited = 0;
}

/* Every q tile of a run, bit for bit; with the verdicts and the noise. change, which may be NULL: what the kernel is
   taken to have said or read besides. */
static void expect_same_changed(const char *kernel, const char *const *keys, int64_t bad,
                                void (*change)(struct trace *t))
{
    struct session *s = judge_program_run(kernel, keys);
    if (change)
        change(s->run.trace);
    const struct trace *t = s->run.trace;
    const struct asc_problem *p = &t->problem;
    const int q_tiles = t->layout.q_tiles, n = p->batch * p->heads * q_tiles;
    int32_t(*places)[3] = calloc((size_t)n, sizeof *places);
    struct judge_scratch *scratch = judge_scratch_new();
    struct gpu_judged g;
    struct err err = {0};
    const char *unknown;
    int64_t value = 0;
    int64_t found = 0;
    for (int i = 0; i < n; i++) {
        places[i][0] = i / q_tiles / p->heads;
        places[i][1] = i / q_tiles % p->heads;
        places[i][2] = i % q_tiles;
    }
    assert_int_equal(gpu_judge_unknown(t, NULL, places, n, &unknown, &err), 0);
    if (unknown)
        fail_msg("%s: it does not know %s", kernel, unknown);
    if (gpu_judge_run(program, t, NULL, places, n, true, NULL, &g, &err) != 0)
        fail_msg("%s: %s", kernel, err.message);
    for (int i = 0; i < n; i++) {
        struct slot_case c;
        struct tile_verdicts *v = calloc((size_t)t->layout.kv_tiles * ASC_CHANNELS, sizeof *v);
        assert_int_equal(place_case_make(t, places[i], NULL, &c), 0);
        inputs_alone(&c);
        struct compared compared = {.values = g.values + value, .rows = c.c.in_q.rows, .cols = p->head_dim_v};
        assert_int_equal(judge_each(&c.c, scratch, compare_tile, &compared), 0);
        if (compared.differing)
            fail_msg("%s b%d h%d q%d: %lld numbers differ; %s", kernel, places[i][0], places[i][1], places[i][2],
                     (long long)compared.differing, compared.first);
        assert_int_equal(judge_case(&c.c, scratch, v, NULL), 0);
        const struct output_noise *noise = judge_noise(scratch);
        const int64_t wrong = verdict_bad(&v[asc_o].global) + verdict_bad(&v[asc_lse].global);
        assert_in_range(g.tiles[i].bad, wrong - (wrong + 99) / 100, wrong); /* some are beyond the CPU's bounds alone */
        assert_false(g.tiles[i].open);
        assert_float_equal(g.tiles[i].worst,
                           fmax((double)v[asc_o].global.worst_ratio, (double)v[asc_lse].global.worst_ratio),
                           JUDGE_WIDER * g.tiles[i].worst);
        assert_int_equal(noise->known, g.tiles[i].noise.known);
        const struct output_noise *of = &g.tiles[i].noise;
        const double gpu[] = {of->ratio, of->row, of->low, of->high, of->limit, of->slope},
                     cpu[] = {noise->ratio, noise->row, noise->low, noise->high, noise->limit, noise->slope};
        for (int k = 0; noise->known && k < 6; k++)
            assert_true(fabs(gpu[k] - cpu[k]) <= JUDGE_WIDER * fabs(cpu[k]));
        found += g.tiles[i].bad;
        value += (int64_t)c.c.in_q.rows * (p->head_dim_v + 1);
        free(v);
        slot_case_free(&c);
    }
    assert_int_equal(value, g.n_values);
    assert_true(bad ? found > 0 : found == 0);
    print_message("# %s: bounds are %.9f to %.9f of the CPU's\n", kernel, least_wider, most_wider);
    gpu_judged_free(&g);
    judge_scratch_free(scratch);
    free(places);
    session_free(s);
}

static void expect_same(const char *kernel, const char *const *keys, int64_t bad)
{
    expect_same_changed(kernel, keys, bad, NULL);
}

/* An input of a run, to be changed: its memory is what attnscope-judge maps. */
static void *part_of(const struct trace *t, char which)
{
    enum dtype type;
    unsigned char *at = mmap(NULL, t->n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, t->fd, 0);
    assert_true(at != MAP_FAILED);
    return at + ((const unsigned char *)trace_tensor(t, which, &type) - t->bytes);
}

/* Sequences of their own lengths and pages, shared kv heads, a causal mask with a window, tails of both tiles. */
static void test_bits(void **state)
{
    (void)state;
    expect_same("kernels/rope.cu",
                (const char *const[]){"shape.batch",
                                      "2",
                                      "shape.heads",
                                      "2",
                                      "shape.kv_heads",
                                      "1",
                                      "shape.q_len",
                                      "40",
                                      "shape.kv_len",
                                      "70",
                                      "shape.q_lens",
                                      "40,30",
                                      "shape.kv_lens",
                                      "70,41",
                                      "shape.page_size",
                                      "16",
                                      "shape.head_dim",
                                      "64",
                                      "shape.dtype",
                                      "bf16",
                                      "shape.causal",
                                      "bottom-right",
                                      "shape.window",
                                      "30,0",
                                      NULL},
                0);
}

/* Long rows: likely bounds, and the noise of O. Tensor cores, a P of f16, four lanes of l. */
static void test_bits_of_long_rows(void **state)
{
    (void)state;
    expect_same("kernels/fp16_mma.cu",
                (const char *const[]){"shape.q_len", "20", "shape.kv_len", "4100", "shape.head_dim", "64", NULL}, 0);
}

/* A mask that hides every other kv tile whole. */
static void test_bits_of_a_mask(void **state)
{
    (void)state;
    expect_same("kernels/flex.cu",
                (const char *const[]){"shape.q_len", "20", "shape.kv_len", "200", "shape.head_dim", "64", "shape.mask",
                                      "j % 128 < 40 && j <= i + 140", NULL},
                0);
}

static void capped_later(struct trace *t)
{
    t->conventions.s_at = ASC_S_DOT;
}

/* A soft cap, ALiBi, a bias of each head and a sink behind the last tile; S captured behind them, and before. */
static void test_bits_of_terms(void **state)
{
    (void)state;
    static const char *const keys[] = {"shape.heads",
                                       "2",
                                       "shape.kv_heads",
                                       "1",
                                       "shape.q_len",
                                       "20",
                                       "shape.kv_len",
                                       "70",
                                       "shape.head_dim",
                                       "64",
                                       "shape.softcap",
                                       "2",
                                       "shape.alibi",
                                       "yes",
                                       "shape.bias",
                                       "per-head",
                                       "shape.sink",
                                       "yes",
                                       "shape.causal",
                                       "bottom-right",
                                       NULL};
    expect_same("tests/terms/sink_end.cu", keys, 0);
    expect_same_changed("tests/terms/sink_end.cu", keys, 0, capped_later);
}

/* Likely bounds behind a sink and with a bias, where nothing is known of the noise. */
static void test_bits_of_long_rows_with_terms(void **state)
{
    (void)state;
    expect_same("tests/terms/sink_end.cu",
                (const char *const[]){"shape.heads", "2", "shape.q_len", "20", "shape.kv_len", "4100", "shape.head_dim",
                                      "64", "shape.sink", "yes", "shape.bias", "shared", NULL},
                0);
}

static void test_bits_of_a_sink_at_the_start(void **state)
{
    (void)state;
    expect_same("tests/terms/sink_start.cu",
                (const char *const[]){"shape.heads", "2", "shape.q_len", "40", "shape.kv_len", "70", "shape.head_dim",
                                      "64", "shape.sink", "yes", "shape.alibi", "yes", "shape.causal", "none", NULL},
                0);
}

/* Codes of e4m3: scales of heads, folded into the softmax and into O, and scales of blocks, left for the products. */
static void test_bits_of_codes(void **state)
{
    (void)state;
    expect_same("kernels/fp8_mma.cu",
                (const char *const[]){"shape.heads", "2", "shape.q_len", "70", "shape.kv_len", "150", "shape.head_dim",
                                      "64", "shape.dtype", "e4m3", NULL},
                0);
    expect_same("kernels/hopper_fp8.cu",
                (const char *const[]){"shape.heads", "2", "shape.q_len", "70", "shape.kv_len", "300", "shape.head_dim",
                                      "64", "shape.dtype", "e4m3", "scenario.define", "BLOCKS=1", "quant.scales",
                                      "rows:128", NULL},
                0);
}

/* RoPE of both kinds, part of a row and all of it; with a Q that is rounded to bf16 behind its turn. */
static void test_bits_of_rope(void **state)
{
    (void)state;
    expect_same("kernels/rope.cu",
                (const char *const[]){"shape.heads", "2", "shape.kv_heads", "1", "shape.q_len", "40", "shape.kv_len",
                                      "150", "shape.head_dim", "64", "shape.rope", "half", "shape.causal",
                                      "bottom-right", NULL},
                0);
    expect_same("kernels/rope.cu", (const char *const[]){"shape.batch",
                                                         "2",
                                                         "shape.heads",
                                                         "2",
                                                         "shape.q_len",
                                                         "40",
                                                         "shape.kv_len",
                                                         "70",
                                                         "shape.kv_lens",
                                                         "70,41",
                                                         "shape.head_dim",
                                                         "128",
                                                         "shape.rope",
                                                         "interleaved",
                                                         "shape.rope_dim",
                                                         "48",
                                                         "shape.rope_offset",
                                                         "100",
                                                         "shape.dtype",
                                                         "bf16",
                                                         NULL},
                0);
}

static void fold_scale(struct trace *t)
{
    t->conventions.q_fold = ASC_FOLD_SCALE;
}

static void fold_log2(struct trace *t)
{
    t->conventions.q_fold = ASC_FOLD_LOG2;
    t->conventions.s_at = ASC_S_DOT;
}

/* A factor folded into Q, also of rows that RoPE has turned, and before a cap. */
static void test_bits_of_a_folded_factor(void **state)
{
    (void)state;
    expect_same_changed("kernels/v2b_scalar.cu",
                        (const char *const[]){"shape.q_len", "40", "shape.kv_len", "70", "shape.head_dim", "64", NULL},
                        0, fold_scale);
    expect_same_changed("kernels/rope.cu",
                        (const char *const[]){"shape.q_len", "40", "shape.kv_len", "70", "shape.head_dim", "64",
                                              "shape.rope", "half", NULL},
                        0, fold_scale);
    expect_same_changed("tests/terms/sink_end.cu",
                        (const char *const[]){"shape.q_len", "20", "shape.kv_len", "70", "shape.head_dim", "64",
                                              "shape.softcap", "2", "shape.alibi", "yes", NULL},
                        0, fold_log2);
}

/* Codes that become values before a product: of heads, of blocks of rows, of parts of rows; of 4 bits too. */
static void test_bits_of_descaled_codes(void **state)
{
    (void)state;
    expect_same("kernels/block_scales.cu",
                (const char *const[]){"shape.batch", "2", "shape.heads", "2", "shape.kv_heads", "1", "shape.q_len",
                                      "40", "shape.kv_len", "150", "shape.head_dim", "64", "shape.dtype", "e4m3",
                                      "quant.scales", "rows:16", "shape.causal", "bottom-right", NULL},
                0);
    expect_same("kernels/block_scales.cu",
                (const char *const[]){"shape.heads", "2", "shape.q_len", "40", "shape.kv_len", "70", "shape.head_dim",
                                      "64", "shape.dtype", "f16", "shape.k_dtype", "s8", "shape.v_dtype", "u8",
                                      "quant.scales", "rows:16,dims:32", NULL},
                0);
    expect_same("kernels/micro_scales.cu",
                (const char *const[]){"shape.heads", "2", "shape.q_len", "40", "shape.kv_len", "70", "shape.head_dim",
                                      "64", "shape.dtype", "e2m1", "quant.scales", "rows:1,dims:16", "quant.scale_type",
                                      "e4m3", NULL},
                0);
    expect_same("kernels/micro_scales.cu",
                (const char *const[]){"shape.heads", "2", "shape.q_len", "40", "shape.kv_len", "70", "shape.head_dim",
                                      "64", "shape.dtype", "e5m2", "quant.scales", "rows:1,dims:32", "quant.scale_type",
                                      "e8m0", NULL},
                0);
}

/* Splits of ranges, one after the other, in turn and by a map; with sinks, of which one begins a state without keys. */
static void test_bits_of_splits(void **state)
{
    (void)state;
    static const char *const keys[] = {"shape.heads",  "2",   "shape.kv_heads", "1",    "shape.q_len", "20",
                                       "shape.kv_len", "200", "shape.head_dim", "64",   "shape.sink",  "yes",
                                       "shape.alibi",  "yes", "shape.window",   "60,3", NULL};
    expect_same("tests/terms/split.cu", keys, 0);
    expect_same("tests/terms/split_start.cu", keys, 0);
    expect_same("tests/terms/dealt.cu", keys, 0);
    expect_same("tests/terms/mapped.cu", keys, 0);
    expect_same("kernels/split_kv.cu",
                (const char *const[]){"shape.batch", "2", "shape.heads", "2", "shape.q_len", "1", "shape.kv_len",
                                      "1000", "shape.head_dim", "128", NULL},
                0);
}

/* Likely bounds of splits. */
static void test_bits_of_long_splits(void **state)
{
    (void)state;
    expect_same("kernels/split_kv.cu",
                (const char *const[]){"shape.q_len", "3", "shape.kv_len", "4100", "shape.head_dim", "64",
                                      "shape.causal", "bottom-right", NULL},
                0);
}

/* Kernels whose kv tiles have 48, 96 and 160 keys. */
static void test_bits_of_other_widths(void **state)
{
    (void)state;
    static const char *const keys[] = {"shape.heads",    "2",    "shape.q_len", "20",  "shape.kv_len", "350",
                                       "shape.head_dim", "64",   "shape.alibi", "yes", "shape.causal", "bottom-right",
                                       "shape.window",   "60,3", NULL};
    for (int bc = 48; bc <= 160; bc += bc == 48 ? 48 : 64) {
        judge_program_other_tiles(DIR, bc);
        expect_same(DIR "/sink_end.cu", keys, 0);
    }
}

/* Weights over so many powers of two that of most columns of U the largest is far below the row's. */
static void test_bits_of_small_weights(void **state)
{
    (void)state;
    static const char *const types[] = {"bf16", "f16"};
    for (int i = 0; i < 2; i++)
        expect_same("kernels/v2b_scalar.cu",
                    (const char *const[]){"shape.q_len", "40", "shape.kv_len", "130", "shape.head_dim", "64",
                                          "shape.dtype", types[i], "fill.kind", "large-logits", "fill.v.kind",
                                          "one-hot", NULL},
                    0);
}

/* Kernels that take K and V of 16 bits: of both types and lengths of rows, short ones, and long ones with a window. */
static void test_bits_of_16_bits(void **state)
{
    (void)state;
    static const char *const types[] = {"f16", "bf16"};
    for (int i = 0; i < 2; i++) {
        expect_same("kernels/v2b_scalar.cu",
                    (const char *const[]){"shape.heads", "2", "shape.q_len", "70", "shape.kv_len", "150",
                                          "shape.head_dim", "128", "shape.dtype", types[i], "shape.causal",
                                          "bottom-right", NULL},
                    0);
        expect_same("kernels/rope.cu",
                    (const char *const[]){"shape.q_len", "20", "shape.kv_len", "4200", "shape.head_dim", "64",
                                          "shape.dtype", types[i], "shape.causal", "bottom-right", "shape.window",
                                          "4150,0", NULL},
                    0);
    }
}

/* Long rows of which every other one sees nothing of the first tiles. */
static void test_bits_of_rows_that_begin_late(void **state)
{
    (void)state;
    expect_same("kernels/flex.cu",
                (const char *const[]){"shape.q_len", "20", "shape.kv_len", "4200", "shape.head_dim", "64", "shape.mask",
                                      "j >= i % 2 * 300", NULL},
                0);
}

static void hidden_key(struct trace *t)
{
    uint16_t *k = part_of(t, 'k');
    k[30 * 64 + 5] = 0x7F80; /* inf */
    k[31 * 64 + 6] = 0x7FC0; /* NaN */
}

/* No row sees keys 30 and 31, whose numbers are none. */
static void test_bits_of_a_hidden_infinity(void **state)
{
    (void)state;
    static const char *const keys[] = {"shape.q_len", "16",          "shape.kv_len", "40",           "shape.head_dim",
                                       "64",          "shape.dtype", "bf16",         "shape.causal", "top-left",
                                       NULL};
    expect_same_changed("kernels/v2b_scalar.cu", keys, 0, hidden_key);
    expect_same_changed("kernels/rope.cu", keys, 0, hidden_key);
}

static void flat_first_head(struct trace *t)
{
    ((float *)part_of(t, 'a'))[0] = 0;
}

static void flat_second_head(struct trace *t)
{
    ((float *)part_of(t, 'a'))[1] = 0;
}

/* A slope of 0 is no bias, in one head alone. O is not that of such slopes. */
static void test_bits_of_a_flat_head(void **state)
{
    (void)state;
    static const char *const keys[] = {
        "shape.heads", "2",           "shape.q_len", "20",          "shape.kv_len", "70", "shape.head_dim",
        "64",          "shape.alibi", "yes",         "shape.dtype", "f16",          NULL};
    expect_same_changed("tests/terms/sink_end.cu", keys, 1, flat_first_head);
    expect_same_changed("tests/terms/sink_end.cu", keys, 1, flat_second_head);
}

static void large_sinks(struct trace *t)
{
    float *sink = part_of(t, 's');
    sink[0] = 16;
    sink[1] = 30;
}

/* Sinks that leave nothing but 2^-20 and less to the keys of long rows. O is not that of such sinks. */
static void test_bits_below_a_sink(void **state)
{
    (void)state;
    expect_same_changed("tests/terms/sink_start.cu",
                        (const char *const[]){"shape.heads", "2", "shape.q_len", "20", "shape.kv_len", "4100",
                                              "shape.head_dim", "64", "shape.sink", "yes", "shape.causal", "none",
                                              NULL},
                        1, large_sinks);
}

static void zeros_first(struct trace *t)
{
    const size_t tile = 64 * (size_t)64, keys = 200 * (size_t)64;
    uint16_t *v = part_of(t, 'v');
    memset(part_of(t, 'k'), 0, tile * sizeof *v);
    memset(v, 0, tile * sizeof *v);
    for (size_t i = tile; i < keys; i++)
        v[i] = (uint16_t)((v[i] & 0x807Fu) | (127u - 70u) << 7); /* about 2^-70 */
}

/* Units are those of the first tile that has any. O is not that of such inputs. */
static void test_bits_behind_zeros(void **state)
{
    (void)state;
    static const char *const keys[] = {"shape.q_len", "20",          "shape.kv_len", "200", "shape.head_dim",
                                       "64",          "shape.dtype", "bf16",         NULL};
    expect_same_changed("kernels/v2b_scalar.cu", keys, 1, zeros_first);
}

/* A mistake in a kernel of each kind: both see the same elements off. */
static void test_mistakes(void **state)
{
    (void)state;
    static const struct {
        const char *kernel, *edit;
        const char *keys[15];
    } of[] = {{"kernels/rope.cu",
               "s/second ? x \\* of.cosines\\[at\\] + y/second ? x * of.cosines[at] - y/",
               {"shape.q_len", "40", "shape.kv_len", "70", "shape.head_dim", "64", "shape.rope", "half"}},
              {"kernels/block_scales.cu",
               "s/row . of->scale_rows \\*/row \\/ 2 \\/ of->scale_rows */",
               {"shape.q_len", "40", "shape.kv_len", "70", "shape.head_dim", "64", "shape.dtype", "e4m3",
                "quant.scales", "rows:16"}},
              {"kernels/split_kv.cu",
               "s/__expf(split_lse\\[split\\] - base)/__expf(split_lse[0] - base)/",
               {"shape.q_len", "3", "shape.kv_len", "200", "shape.head_dim", "64"}}};
    judge_program_must("cp kernels/ladder.cuh " DIR);
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        char command[400];
        snprintf(command, sizeof command, "sed '%s' %s >" DIR "/mistaken.cu && ! cmp -s %s " DIR "/mistaken.cu",
                 of[i].edit, of[i].kernel, of[i].kernel);
        judge_program_must(command);
        expect_same(DIR "/mistaken.cu", of[i].keys, 1);
    }
    judge_program_other_tiles(DIR, 96);
    judge_program_must("sed -i 's/float w.BC., sum = 0.0f/float w[BC], sum = 0.01f/' " DIR "/attention.h");
    expect_same(DIR "/sink_end.cu",
                (const char *const[]){"shape.q_len", "20", "shape.kv_len", "350", "shape.head_dim", "64", NULL}, 1);
}

/* A run without probes, all of whose q tiles a judge on a GPU is asked about; one of them is off. */
static struct session *without_probes(struct bounded *b)
{
    struct session *s =
        judge_program_run("tests/session/one-q-tile.ini", (const char *const[]){"scenario.probes", "off", NULL});
    const int n = 20;
    struct err err;
    int32_t(*places)[3] = calloc((size_t)n, sizeof *places);
    for (int i = 0; i < n; i++) {
        places[i][1] = i / 5;
        places[i][2] = i % 5;
    }
    assert_int_equal(bounded_begin(b, places, n, &err), 0);
    return s;
}

static void test_the_cpu_confirms(void **state)
{
    (void)state;
    struct bounded b;
    struct err err = {0};
    struct session *s = without_probes(&b);
    if (bounded_judge_on_gpu(&b, s->run.trace, NULL, program, "it", NULL, &err) != 0)
        fail_msg("%s %s", b.judge, err.message);
    assert_int_equal(b.judged, 20);
    assert_int_equal(b.off, 1);
    assert_int_equal(b.state[2 * 5 + 3], BOUNDED_OFF);
    /* The first, the worst, which is the bad one, and eight good ones. */
    assert_int_equal(b.by_gpu, 10);
    assert_string_equal(b.judge, "it, and the CPU came to the same about 10 q tiles of 20");
    bounded_end(&b);
    session_free(s);
}

/* A judge that reads an O of its own: the program, run on a copy of the trace of which one byte is another one. */
static void test_a_judge_that_is_wrong_is_not_believed(void **state)
{
    (void)state;
    static const char liar[] = DIR "/liar";
    struct bounded b;
    struct err err = {0};
    struct session *s = without_probes(&b);
    enum dtype type;
    const unsigned char *o = trace_tensor(s->run.trace, 'o', &type);
    FILE *f = fopen(liar, "w");
    assert_non_null(f);
    fprintf(f,
            "#!/bin/sh\ncp \"$2\" " DIR "/copy && printf '\\173' | dd of=" DIR "/copy bs=1 seek=%lld conv=notrunc "
            "2>/dev/null && exec %s \"$1\" " DIR "/copy\n",
            (long long)(o - s->run.trace->bytes) + 1, program);
    assert_int_equal(fclose(f), 0);
    judge_program_must("chmod +x " DIR "/liar");
    assert_int_equal(bounded_judge_on_gpu(&b, s->run.trace, NULL, liar, "it", NULL, &err), 1);
    assert_string_equal(b.judge, "the CPU: the judge on it is wrong about b0 h0 q0, and nothing that it said counts");
    for (int i = 0; i < 20; i++)
        assert_int_equal(b.state[i], BOUNDED_UNJUDGED);
    /* One that fails is not asked any more, and it is said why. */
    assert_int_equal(bounded_judge_on_gpu(&b, s->run.trace, NULL, "/bin/false", "it", NULL, &err), 1);
    assert_string_equal(b.judge, "the CPU, since the judge on it failed: attnscope-judge ended early");
    bounded_end(&b);
    session_free(s);
}

/* Every feature of a problem, with its judge: whoever teaches the GPU one finds it here. */
static void test_features(void **state)
{
    (void)state;
    char text[4096] = "";
    size_t used = 0;
    for (const struct judge_feature *f = judge_features; f->what; f++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s: %s\n", f->on_gpu ? "GPU" : "CPU", f->what);
    golden_compare("gpu-judge-features", text);
}

/* 32 heads of 65536 x 65536 scores, 256 products each, by 128 multiprocessors that make two in a clock. */
static void test_slow_float64(void **state)
{
    (void)state;
    char words[200];
    struct gpu_device gpu = {.name = "NVIDIA GeForce RTX 4090", .multiprocessors = 128, .clock_khz = 2520000};
    const struct asc_problem p = {
        .batch = 1, .heads = 32, .q_len = 65536, .kv_len = 65536, .head_dim = 128, .head_dim_v = 128};
    struct asc_problem causal = p;
    causal.causal = ASC_CAUSAL_TOP_LEFT;
    static const struct {
        int f32_per_f64;
        bool slow;
    } rows[] = {{0, false}, {2, false}, {4, false}, {5, true}, {64, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        gpu.f32_per_f64 = rows[i].f32_per_f64;
        assert_int_equal(gpu_judge_is_slow(&gpu), rows[i].slow);
    }
    gpu_judge_slow_words(&gpu, &p, words, sizeof words);
    assert_string_equal(words,
                        "NVIDIA GeForce RTX 4090 computes float64 at 1/64 of f32's rate: the products of every q "
                        "tile take at least 54.5 s there");
    gpu_judge_slow_words(&gpu, &causal, words, sizeof words);
    assert_non_null(strstr(words, "at least 27.3 s there"));
    gpu.clock_khz = 0;
    gpu_judge_slow_words(&gpu, &p, words, sizeof words);
    assert_string_equal(words, "NVIDIA GeForce RTX 4090 computes float64 at 1/64 of f32's rate");
}

int main(int argc, char **argv)
{
    on_gpu = argc > 1;
    if (on_gpu)
        program = argv[1];
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bits),
                                       cmocka_unit_test(test_bits_of_long_rows),
                                       cmocka_unit_test(test_bits_of_a_mask),
                                       cmocka_unit_test(test_bits_of_terms),
                                       cmocka_unit_test(test_bits_of_long_rows_with_terms),
                                       cmocka_unit_test(test_bits_of_a_sink_at_the_start),
                                       cmocka_unit_test(test_bits_of_codes),
                                       cmocka_unit_test(test_bits_of_rope),
                                       cmocka_unit_test(test_bits_of_a_folded_factor),
                                       cmocka_unit_test(test_bits_of_descaled_codes),
                                       cmocka_unit_test(test_bits_of_splits),
                                       cmocka_unit_test(test_bits_of_long_splits),
                                       cmocka_unit_test(test_bits_of_other_widths),
                                       cmocka_unit_test(test_bits_of_small_weights),
                                       cmocka_unit_test(test_bits_of_16_bits),
                                       cmocka_unit_test(test_bits_of_rows_that_begin_late),
                                       cmocka_unit_test(test_bits_of_a_hidden_infinity),
                                       cmocka_unit_test(test_bits_of_a_flat_head),
                                       cmocka_unit_test(test_bits_below_a_sink),
                                       cmocka_unit_test(test_bits_behind_zeros),
                                       cmocka_unit_test(test_mistakes),
                                       cmocka_unit_test(test_the_cpu_confirms),
                                       cmocka_unit_test(test_a_judge_that_is_wrong_is_not_believed),
                                       cmocka_unit_test(test_features),
                                       cmocka_unit_test(test_slow_float64)};
    return cmocka_run_group_tests(tests, build_judge, NULL);
}
