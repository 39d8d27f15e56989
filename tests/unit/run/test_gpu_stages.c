/* The judge of captured stages on a GPU, run by the CPU executor: of every q tile the verdicts that the CPU gives, and
   none of one with a mistake. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/judge/ask.h"
#include "engine/judge/work.h"
#include "engine/run/gpu_stages.h"
#include "engine/session/session.h"
#include "engine/session/work_parts.h"
#include "engine/verdict/masks.h"
#include "engine/verdict/status.h"
#include "tests/unit/lib/judge_program.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIR "build/test-gpu-stages"

static const char *program = DIR "/attnscope-judge";
static bool on_gpu;

static int build_judge(void **state)
{
    (void)state;
    judge_program_build(on_gpu ? NULL : program, DIR);
    return 0;
}

static bool slot_is_right(const struct judgement *j, int slot)
{
    const struct tile_verdicts *v = judgement_tiles(j, slot);
    for (int i = 0; i < j->kv_tiles * ASC_CHANNELS; i++)
        if (verdict_bad(&v[i].local) || verdict_bad(&v[i].global) || v[i].local.unjudged || v[i].global.unjudged ||
            v[i].local.unequal)
            return false;
    return true;
}

static void say(const char *side, int i, const struct verdict *x, const struct verdict *y)
{
    print_message("kv %d %s %s: ok %u, worst %.9g at %d %d, mean %.9g, ratio %.9g %.9g, exact %d, of %d %d %d; the CPU "
                  "has %u, %.9g at %d %d, %.9g, %.9g %.9g, %d, %d %d %d\n",
                  i / ASC_CHANNELS, channel_name((enum asc_channel)(i % ASC_CHANNELS)), side, x->count[CLASS_OK],
                  (double)x->worst_ratio, x->worst_row, x->worst_col, (double)x->mean_error, (double)x->ratio_median,
                  (double)x->ratio_spread, x->exact, x->judged, x->visited, x->masked, y->count[CLASS_OK],
                  (double)y->worst_ratio, y->worst_row, y->worst_col, (double)y->mean_error, (double)y->ratio_median,
                  (double)y->ratio_spread, y->exact, y->judged, y->visited, y->masked);
}

static void show(const struct tile_verdicts *gpu, const struct tile_verdicts *cpu, int kv_tiles)
{
    int said = 0;
    for (int i = 0; i < kv_tiles * ASC_CHANNELS && said < 12; i++) {
        const struct verdict *x[] = {&gpu[i].local, &gpu[i].global}, *y[] = {&cpu[i].local, &cpu[i].global};
        for (int side = 0; side < 2; side++)
            if (x[side]->count[CLASS_OK] != y[side]->count[CLASS_OK] || x[side]->worst_ratio != y[side]->worst_ratio ||
                x[side]->exact != y[side]->exact || x[side]->visited != y[side]->visited) {
                say(side ? "globally" : "locally", i, x[side], y[side]);
                said++;
            }
    }
}

struct counts {
    int right, good, slots;
};

/* Judges a run on both. least: q tiles that must be right on the GPU; all: every one that the CPU finds right. */
static struct counts expect_same(const char *kernel, const char *const *keys)
{
    struct session *s = judge_program_run(kernel, keys);
    const struct trace *t = s->run.trace;
    const struct judgement *j = s->run.judgement;
    struct counts n = {.slots = j->n_slots};
    struct gpu_stages g;
    struct err err = {0};
    const char *unknown;
    assert_int_equal(gpu_stages_unknown(t, j->fingerprint, &unknown), 0);
    if (unknown)
        fail_msg("%s: it does not know %s", kernel, unknown);
    if (gpu_stages_judge(program, NULL, NULL, t, j->fingerprint, NULL, &g, &err) != 0)
        fail_msg("%s: %s", kernel, err.message);
    for (int slot = 0; slot < j->n_slots; slot++) {
        const struct tile_verdicts *gpu = g.tiles + (size_t)slot * (size_t)j->kv_tiles * ASC_CHANNELS;
        const bool right = slot_is_right(j, slot);
        n.right += right;
        n.good += g.good[slot];
        if (g.good[slot] && !right)
            fail_msg("%s: slot %d is not right", kernel, slot);
        if (g.good[slot] && !gpu_stages_agree(gpu, judgement_tiles(j, slot), j->kv_tiles)) {
            show(gpu, judgement_tiles(j, slot), j->kv_tiles);
            fail_msg("%s: slot %d", kernel, slot);
        }
        for (int kv = 0; kv < j->kv_tiles && g.good[slot] && g.seen; kv++)
            assert_int_equal(g.seen[slot * j->kv_tiles + kv], masks_tile(j->masks, slot, kv)->both);
    }
    assert_int_equal(g.n_good, n.good);
    gpu_stages_free(&g);
    session_free(s);
    return n;
}

static void expect_all(const char *kernel, const char *const *keys)
{
    const struct counts n = expect_same(kernel, keys);
    if (n.good != n.slots)
        fail_msg("%s: %d of %d q tiles are right, %d by the CPU", kernel, n.good, n.slots, n.right);
}

/* Sums in f32, a causal mask, tails of both tiles. */
static void test_scalar_sums(void **state)
{
    (void)state;
    expect_all("kernels/v2b_scalar.cu", (const char *const[]){"shape.heads", "2", "shape.q_len", "100", "shape.kv_len",
                                                              "200", "shape.head_dim", "64", NULL});
    expect_all("kernels/v2b_scalar.cu",
               (const char *const[]){"shape.heads", "2", "shape.kv_heads", "1", "shape.q_len", "130", "shape.kv_len",
                                     "130", "shape.head_dim", "128", "shape.causal", "bottom-right", "shape.dtype",
                                     "bf16", NULL});
}

/* Bits of tensor cores, lanes of l, a P rounded to the inputs' type. */
static void test_tensor_cores(void **state)
{
    (void)state;
    expect_all("kernels/fp16_mma.cu", (const char *const[]){"shape.heads", "2", "shape.q_len", "128", "shape.kv_len",
                                                            "256", "shape.head_dim", "64", NULL});
    expect_all("kernels/fp16_mma.cu",
               (const char *const[]){"shape.heads", "2", "shape.q_len", "100", "shape.kv_len", "200", "shape.head_dim",
                                     "128", "shape.causal", "bottom-right", "shape.dtype", "bf16", NULL});
    expect_all("kernels/v2c_wmma.cu", (const char *const[]){"shape.heads", "2", "shape.q_len", "128", "shape.kv_len",
                                                            "128", "shape.head_dim", "64", NULL});
}

/* Bounds of long rows, and whether O's errors are of the size of roundings. */
static void test_long_rows(void **state)
{
    (void)state;
    expect_all("kernels/fp16_mma.cu",
               (const char *const[]){"shape.q_len", "20", "shape.kv_len", "4100", "shape.head_dim", "64",
                                     "shape.causal", "bottom-right", NULL});
    expect_all("kernels/v2b_scalar.cu",
               (const char *const[]){"shape.q_len", "20", "shape.kv_len", "4096", "shape.head_dim", "128", NULL});
}

/* kv tiles of 48, 96 and 160 keys. */
static void test_other_widths(void **state)
{
    (void)state;
    for (int bc = 48; bc <= 160; bc += bc == 48 ? 48 : 64) {
        judge_program_other_tiles(DIR, bc);
        expect_all(DIR "/sink_end.cu", (const char *const[]){"shape.q_len", "20", "shape.kv_len", "350",
                                                             "shape.head_dim", "64", "shape.alibi", "yes", NULL});
    }
}

/* S as it is before its mask, its bias and its cap. */
static void test_early_scores(void **state)
{
    (void)state;
    static const char *const at[] = {"S_AT=ASC_S_BIASED", "S_AT=ASC_S_CAPPED", "S_AT=ASC_S_DOT"};
    for (int i = 0; i < 3; i++)
        expect_all("tests/terms/sink_end.cu",
                   (const char *const[]){"scenario.define", at[i], "shape.heads", "2", "shape.q_len", "40",
                                         "shape.kv_len", "70", "shape.head_dim", "64", "shape.alibi", "yes",
                                         "shape.softcap", "2", "shape.causal", "bottom-right", NULL});
}

/* A sink that m and l begin with, in m's unit and converted to it; and one that joins at the end, of long rows too. */
static void test_sinks(void **state)
{
    (void)state;
    static const char *const keys[] = {
        "shape.heads", "2",          "shape.q_len", "20",           "shape.kv_len", "70", "shape.head_dim",
        "64",          "shape.sink", "yes",         "shape.causal", "bottom-right", NULL};
    expect_all("tests/terms/sink_start.cu", keys);
    expect_all("tests/terms/sink_end.cu", keys);
    expect_all("tests/terms/sink_end.cu",
               (const char *const[]){"shape.q_len", "20", "shape.kv_len", "4096", "shape.head_dim", "64", "shape.sink",
                                     "yes", "shape.alibi", "yes", NULL});
}

/* Mistakes of every stage: of no q tile with one it is said that it is right, and of the others what the CPU says. */
static void test_mistakes(void **state)
{
    (void)state;
    static const char *const scenarios[] = {
        "scenarios/bugs/causal-off-by-one.ini", "scenarios/bugs/alpha-inverted.ini",
        "scenarios/bugs/cut-not-rounded.ini",   "scenarios/bugs/kv-tail-not-masked.ini",
        "scenarios/bugs/k-next-tile.ini",       "scenarios/bugs/l-alpha-forgotten.ini",
        "scenarios/bugs/lse-base-2.ini",        "scenarios/bugs/m-half-row.ini",
        "scenarios/bugs/mma-half-rescaled.ini", "scenarios/bugs/o-not-divided.ini",
        "scenarios/bugs/u-last-key-dropped.ini"};
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        const struct counts n = expect_same(scenarios[i], (const char *const[]){"shape.heads", "1", NULL});
        print_message("# %s: %d of %d, the CPU: %d\n", scenarios[i], n.good, n.slots, n.right);
        assert_true(n.good < n.slots);
        assert_int_equal(n.good, n.right);
    }
}

/* The same in long rows, of S that is captured early, with a sink, and in kv tiles of another width. */
static void test_more_mistakes(void **state)
{
    (void)state;
    static const struct {
        const char *kernel;
        const char *keys[15];
    } of[] = {
        {"scenarios/bugs/u-last-key-dropped.ini", {"shape.heads", "1", "shape.q_len", "20", "shape.kv_len", "4100"}},
        {"tests/terms/sink_end.cu",
         {"scenario.define", "S_AT=ASC_S_DOT MISTAKE=BIAS_OF_HEAD_0", "shape.heads", "2", "shape.q_len", "20",
          "shape.kv_len", "70", "shape.head_dim", "64", "shape.bias", "per-head"}},
        {DIR "/sink_end.cu",
         {"shape.heads", "2", "shape.q_len", "20", "shape.kv_len", "350", "shape.head_dim", "64", "shape.sink",
          "yes"}}};
    judge_program_other_tiles(DIR, 96);
    judge_program_must("sed -i 's/= __expf(p.sink.h. - /= 1.01f * __expf(p.sink[h] - /' " DIR "/attention.h");
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        const struct counts n = expect_same(of[i].kernel, of[i].keys);
        print_message("# %s: %d of %d, the CPU: %d\n", of[i].kernel, n.good, n.slots, n.right);
        assert_true(n.good < n.slots);
        assert_int_equal(n.good, n.right);
    }
}

/* As if every element had been looked at. */
static void claim_all(const char *path)
{
    const int fd = open(path, O_RDWR);
    struct stat status = {0};
    assert_true(fd >= 0 && fstat(fd, &status) == 0);
    unsigned char *at = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(at != (unsigned char *)MAP_FAILED);
    const struct judge_work *w = (struct judge_work *)(void *)at;
    const struct judge_slot *slots = (struct judge_slot *)(void *)(at + w->slots);
    const struct judge_tile *tiles = (struct judge_tile *)(void *)(at + w->tiles);
    const struct judge_numbers *numbers = (struct judge_numbers *)(void *)(at + w->numbers);
    struct judge_verdict *verdicts = (struct judge_verdict *)(void *)(at + w->verdicts);
    for (int64_t slot = 0; slot < w->n_tiles; slot++)
        for (int i = 0; i < (slots[slot].visits * JUDGE_STAGES + JUDGE_ENDS) * JUDGE_SIDES; i++)
            verdicts[slots[slot].verdicts + i].all.n = tiles[slot].rows * numbers->head_dim_v;
    munmap(at, (size_t)status.st_size);
    close(fd);
}

/* Who calls everything right, and has looked at nothing; with LIAR set it says that it has. */
static int lie(void)
{
    struct judge_answer answer = {.device = "a liar"};
    struct judge_ask ask;
    while (send(JUDGE_SOCKET, &answer, sizeof answer, 0) == (ssize_t)sizeof answer &&
           recv(JUDGE_SOCKET, &ask, sizeof ask, 0) == (ssize_t)sizeof ask)
        if (getenv("LIAR"))
            claim_all(ask.work);
    return 0;
}

static struct session *run_judged(const char *judge, const char *scenario)
{
    struct session *s;
    struct err err = {0};
    if (session_open(scenario, &s, &err) != 0)
        fail_msg("%s: %s", err.where, err.message);
    assert_int_equal(scenario_set(&s->subject.scenario, "capture.mem", "2GiB", &err), 0);
    s->work->recorder.judge = gpu_process_start(judge);
    for (int i = 0; i < 2; i++) { /* the second one asks the same process */
        assert_int_equal(session_start(s), 0);
        session_finish(s, 0);
        assert_int_equal(s->job.phase, PHASE_READY);
    }
    return s;
}

/* What a session shows is the same with it and without, findings and masks included. */
static void test_a_session(void **state)
{
    (void)state;
    struct session *with = run_judged(program, "tests/session/one-q-tile.ini"),
                   *without = judge_program_run("tests/session/one-q-tile.ini",
                                                (const char *const[]){"capture.mem", "2GiB", NULL});
    const struct judgement *j = with->run.judgement, *own = without->run.judgement;
    assert_true(j->by_gpu >= 9 && j->by_gpu <= 18); /* not the first, the worst, the bad one, and nine at most */
    assert_non_null(strstr(j->judge, "alone, where the CPU came to the same"));
    assert_int_equal(j->n_findings, own->n_findings);
    assert_string_equal(j->findings[0].text, own->findings[0].text);
    assert_int_equal(atomic_load(&j->n_done), j->n_slots);
    for (int slot = 0; slot < j->n_slots; slot++)
        assert_true(gpu_stages_agree(judgement_tiles(j, slot), judgement_tiles(own, slot), j->kv_tiles));
    struct mask_counts counts, own_counts;
    assert_int_equal(masks_total(j->masks, &counts), masks_total(own->masks, &own_counts));
    assert_memory_equal(&counts, &own_counts, sizeof counts);
    session_free(with);
    session_free(without);
}

static void test_a_liar_is_not_believed(void **state)
{
    (void)state;
    char self[4096] = "";
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    struct session *s = run_judged(self, "tests/session/one-q-tile.ini");
    assert_int_equal(s->run.judgement->by_gpu, 0); /* what nobody has looked at is not right */
    assert_int_equal(s->run.judgement->n_findings, 1);
    session_free(s);
    setenv("LIAR", "1", 1);
    s = run_judged(self, "tests/session/one-q-tile.ini");
    unsetenv("LIAR");
    const struct judgement *j = s->run.judgement;
    assert_int_equal(j->by_gpu, 0);
    assert_string_equal(j->judge,
                        "the CPU: the judge on a liar is wrong about b0 h0 q0, and nothing that it said counts");
    assert_int_equal(j->n_findings, 1);
    assert_int_equal(atomic_load(&j->n_done), j->n_slots);
    session_free(s);
    s = run_judged("/bin/false", "tests/session/one-q-tile.ini");
    assert_string_equal(s->run.judgement->judge,
                        "the CPU, since there is no judge on the GPU: attnscope-judge ended early");
    assert_int_equal(s->run.judgement->n_findings, 1);
    session_free(s);
}

static void test_what_it_does_not_know(void **state)
{
    (void)state;
    struct session *s =
        judge_program_run("kernels/rope.cu", (const char *const[]){"shape.q_len", "20", "shape.kv_len", "70",
                                                                   "shape.head_dim", "64", "shape.rope", "half", NULL});
    const char *unknown;
    assert_int_equal(gpu_stages_unknown(s->run.trace, s->run.judgement->fingerprint, &unknown), 0);
    assert_string_equal(unknown, "RoPE, a factor folded into Q, Q, K or V converted to a narrower type");
    session_free(s);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "serve") == 0)
        return lie();
    on_gpu = argc > 1;
    if (on_gpu)
        program = argv[1];
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_scalar_sums),
                                       cmocka_unit_test(test_tensor_cores),
                                       cmocka_unit_test(test_long_rows),
                                       cmocka_unit_test(test_other_widths),
                                       cmocka_unit_test(test_early_scores),
                                       cmocka_unit_test(test_sinks),
                                       cmocka_unit_test(test_mistakes),
                                       cmocka_unit_test(test_more_mistakes),
                                       cmocka_unit_test(test_a_session),
                                       cmocka_unit_test(test_a_liar_is_not_believed),
                                       cmocka_unit_test(test_what_it_does_not_know)};
    return cmocka_run_group_tests(tests, build_judge, NULL);
}
