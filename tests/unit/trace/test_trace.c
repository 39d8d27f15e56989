/* Traces: made, attached to as a debuggee does, written to, saved, opened again. */
#include "engine/base/safetensors.h"
#include "engine/trace/live.h"
#include "engine/trace/writers.h"
#include "tests/unit/lib/small_trace.h"
#include "tests/unit/lib/temporary.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[TEMPORARY];

static const char *in_folder(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int files_in_folder(void)
{
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    int n = 0;
    for (const struct dirent *e; (e = readdir(dir));)
        n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}

static void a_new_trace_holds_inputs_and_nothing_else(void **state)
{
    (void)state;
    struct trace *t = make_small();
    enum dtype dtype;
    const uint16_t *q = trace_tensor(t, 'q', &dtype);
    assert_int_equal(dtype, DTYPE_F16);
    assert_int_equal(q[239], 239);
    assert_int_equal(((const uint16_t *)trace_tensor(t, 'v', &dtype))[155], 2155);
    const void *o = trace_tensor(t, 'o', &dtype);
    assert_int_equal(dtype, DTYPE_BF16);
    for (size_t i = 0; i < 240; i++)
        assert_true(dtype_is_unwritten(DTYPE_BF16, o, i));
    const void *lse = trace_tensor(t, 'L', &dtype);
    for (size_t i = 0; i < 40; i++)
        assert_true(dtype_is_unwritten(DTYPE_F32, lse, i));
    assert_memory_equal(trace_tensor(t, 's', &dtype), small_sink, sizeof small_sink);
    assert_int_equal(dtype, DTYPE_F32);
    assert_memory_equal(trace_tensor(t, 'a', &dtype), small_alibi, sizeof small_alibi);
    assert_memory_equal(trace_tensor(t, 'b', &dtype), small_bias, sizeof small_bias);
    assert_null(t->problem.bias);
    assert_null(trace_tensor(t, 'x', &dtype));
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        for (int slot = 0; slot < 2; slot++)
            for (int kv = 0; kv < 2; kv++) {
                const struct tile tile = trace_tile(t, ch, slot, kv);
                assert_int_equal(tile.data == NULL, ch == asc_alpha);
                for (size_t i = 0; tile.data && i < (size_t)tile.rows * (size_t)tile.cols; i++)
                    assert_true(ch == asc_v ? isnan(dtype_load(tile.dtype, tile.data, i))
                                            : dtype_is_unwritten(tile.dtype, tile.data, i));
                assert_int_equal(trace_first_stamp(t, ch, slot, kv), 0);
                assert_int_equal(trace_last_stamp(t, ch, slot, kv), 0);
            }
    assert_null(trace_stamps(t, asc_alpha, 0, 0));
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        assert_int_equal(trace_dropped(t, ch) + trace_mistyped(t, ch), 0);
    trace_free(t);
}

/* "As the inputs" is settled where the inputs are known. */
static void a_trace_has_definite_conventions(void **state)
{
    (void)state;
    static const struct {
        enum dtype inputs;
        int codes, acc, p; /* codes: multiplied as they are */
    } cases[] = {{DTYPE_F16, 0, ASC_ACC_MMA_F16, ASC_P_F16},    {DTYPE_BF16, 0, ASC_ACC_MMA_BF16, ASC_P_BF16},
                 {DTYPE_E4M3, 1, ASC_ACC_MMA_E4M3, ASC_P_E4M3}, {DTYPE_E4M3, 0, ASC_ACC_MMA_F16, ASC_P_F16},
                 {DTYPE_E5M2, 1, ASC_ACC_F32, ASC_P_E5M2},      {DTYPE_U8, 1, ASC_ACC_F32, ASC_P_AS_RECORDED},
                 {DTYPE_U8, 0, ASC_ACC_MMA_F16, ASC_P_F16},     {DTYPE_F32, 0, ASC_ACC_F32, ASC_P_AS_RECORDED}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int type = (int)cases[i].inputs;
        const struct asc_problem inputs = {.dtype = type, .k_dtype = type, .v_dtype = type};
        struct asc_conventions c = {.acc_s = ASC_ACC_MMA,
                                    .acc_u = ASC_ACC_MMA,
                                    .p_rounded = ASC_P_INPUT,
                                    .qk_descale = cases[i].codes ? ASC_QK_PRODUCT : ASC_QK_OPERANDS,
                                    .v_descale = cases[i].codes ? ASC_V_OUTPUT : ASC_V_OPERANDS};
        conventions_resolve(&c, &inputs);
        assert_int_equal(c.acc_s, cases[i].acc);
        assert_int_equal(c.acc_u, cases[i].acc);
        assert_int_equal(c.p_rounded, cases[i].p);
        c.acc_s = ASC_ACC_ADA_E4M3;
        c.p_rounded = ASC_P_E5M2;
        conventions_resolve(&c, &inputs);
        assert_int_equal(c.acc_s, ASC_ACC_ADA_E4M3);
        assert_int_equal(c.p_rounded, ASC_P_E5M2);
    }
    const struct layout_types types = small_types();
    static const uint16_t zeros[10 * 4 * 6 + 13 * 2 * 6];
    struct asc_conventions c = small_conventions;
    c.acc_u = ASC_ACC_MMA;
    struct trace *t = NULL;
    struct err err = {0};
    assert_int_equal(trace_create(&small, &small_plan, &c, &types, small_slots, 2, zeros, zeros, zeros, &t, &err), 0);
    assert_int_equal(t->conventions.acc_u, small.dtype == DTYPE_BF16 ? ASC_ACC_MMA_BF16 : ASC_ACC_MMA_F16);
    trace_free(t);
}

static void tiles_know_their_tails(void **state)
{
    (void)state;
    struct trace *t = make_small();
    struct tile tile = trace_tile(t, asc_s, 0, 1); /* q tile 2 of 10 rows in fours, kv tile 1 of 13 in eights */
    assert_int_equal(tile.rows, 4);
    assert_int_equal(tile.cols, 8);
    assert_int_equal(tile.valid_rows, 2);
    assert_int_equal(tile.valid_cols, 5);
    tile = trace_tile(t, asc_q, 1, 99); /* once per q tile: kv is ignored */
    assert_non_null(tile.data);
    assert_int_equal(tile.valid_rows, 4);
    assert_null(trace_tile(t, asc_s, 0, 2).data);
    assert_null(trace_tile(t, asc_s, 2, 0).data);
    assert_null(trace_tile(t, asc_s, -1, 0).data);
    assert_int_equal(trace_slot(t, 0, 3, 2), 0);
    assert_int_equal(trace_slot(t, 0, 1, 0), 1);
    assert_int_equal(trace_slot(t, 0, 0, 0), -1);
    assert_int_equal(trace_slot(t, 0, 4, 0), -1);
    assert_int_equal(trace_slot(t, 1, 0, 0), -1);
    assert_int_equal(trace_slot(t, 0, 0, 3), -1);
    assert_int_equal(trace_slot_place(t, 1)[1], 1);
    trace_free(t);
}

/* Element i of a channel: its threads have 4 values each; those of K lay in shared memory. */
static uint32_t writer_of(int ch, int i)
{
    const uint32_t number = ch == asc_k ? ASC_WRITER_SHARED : ch == asc_v ? ASC_WRITER_FAR : (uint32_t)i % 4 + 1;
    return number << ASC_WRITER_NUMBER | (ch == asc_s ? 40u : 12u) << ASC_WRITER_LINE | (uint32_t)i / 4;
}

static void check_writers(const struct trace *t, int first_slot)
{
    struct trace_writer w;
    char words[WRITER_WORDS_BYTES];
    const int slot = 1 - first_slot;
    assert_true(trace_keeps_writers(t));
    assert_true(trace_writer(t, asc_s, slot, 1, 3, 6, &w)); /* element 30 of 4 x 8 */
    assert_int_equal(w.thread, 7);
    assert_int_equal(w.number, 2);
    assert_false(w.blocks);
    assert_int_equal(w.block[0], 1);
    assert_int_equal(w.block[1], 1);
    assert_ptr_equal(w.site, trace_site(t, asc_s));
    trace_writer_words(&w, words);
    assert_string_equal(words, "block (1,1,0) warp 0 lane 7 (thread 7), value 2, a.cuh:40");
    assert_false(trace_writer(t, asc_s, slot, 1, 3, 7, &w)); /* nobody */
    assert_false(trace_writer(t, asc_s, slot, 2, 0, 0, &w));
    assert_false(trace_writer(t, asc_s, slot, 0, 4, 0, &w));
    assert_false(trace_writer(t, asc_s, 2, 0, 0, 0, &w));
    assert_false(trace_writer(t, asc_alpha, slot, 0, 0, 0, &w)); /* not recorded */
    assert_true(trace_writer(t, asc_k, slot, 0, 0, 5, &w));
    assert_int_equal(w.number, WRITER_SHARED);
    assert_int_equal(w.site->line, 12);
    assert_true(trace_writer(t, asc_v, slot, 0, 0, 0, &w));
    assert_int_equal(w.number, WRITER_FAR);
    assert_true(trace_writer(t, asc_p, slot, 1, 0, 0, &w));
    assert_true(w.blocks);
    assert_null(w.site); /* a line of no probe of p */
    trace_writer_words(&w, words);
    assert_string_equal(words, "one of several blocks, warp 0 lane 0 (thread 0), value 0");
    assert_true(trace_writer(t, asc_q, slot, 99, 0, 0, &w)); /* once per q tile: kv is ignored */
}

/* Writes through the child's mapping, as probes do: element value slot*1000 + kv*100 + index, stamps 10*slot + kv + 1.
 */
static void play_debuggee(const struct trace *t)
{
    struct asc_problem problem;
    struct asc_plan plan;
    struct asc_device device;
    void *mapping = NULL;
    size_t n_bytes = 0;
    struct err err = {0};
    if (trace_attach(t->fd, &problem, &plan, &device, &mapping, &n_bytes, &err) != 0)
        fail_msg("%s: %s", err.where, err.message);
    assert_int_equal(n_bytes, t->n_bytes);
    assert_int_equal(plan.bc, 8);
    assert_int_equal(((const uint16_t *)problem.k)[155], 1155);
    assert_true(problem.scale == 0.1f);
    assert_int_equal(device.slot[3 * 3 + 2], 0);
    assert_int_equal(device.slot[0], -1);
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        const struct asc_channel_map *map = &device.channel[ch];
        for (uint64_t slot = 0; map->dtype >= 0 && slot < 2; slot++)
            for (uint64_t kv = 0; kv < (uint64_t)map->n_kv; kv++) {
                unsigned char *values = device.trace + map->offset + slot * map->slot_stride + kv * map->kv_stride;
                for (int i = 0; i < map->rows * map->cols; i++)
                    dtype_store((enum dtype)map->dtype, values, (size_t)i, (double)(slot * 1000 + kv * 100) + i);
                const struct asc_stamp_map *stamp = &device.stamp[ch];
                uint64_t *stamps = (uint64_t *)(void *)(device.trace + stamp->offset + slot * stamp->slot_stride +
                                                        kv * stamp->kv_stride);
                stamps[1] = 10 * slot + kv + 1;
                stamps[0] = slot ? 100 : 0;
                uint32_t *writers =
                    (uint32_t *)(void *)(device.stamps + stamp->writers + slot * stamp->writers_slot_stride +
                                         kv * stamp->writers_kv_stride);
                writers[0] = kv && ch == asc_p ? ASC_WRITER_BLOCKS : (uint32_t)slot + 1;
                writers[1] = (uint32_t)kv;
                for (int i = 0; i + 1 < map->rows * map->cols; i++) /* the last one nobody recorded */
                    writers[ASC_WRITER_HEAD + (uint32_t)i] = writer_of(ch, i);
            }
    }
    device.dropped[asc_s] = 7;
    device.mistyped[asc_lse] = 9;
    problem.lse[39] = 2.5f;
    memset(problem.o, 0, 480);
    munmap(mapping, n_bytes);
}

static void check_played(const struct trace *t)
{
    enum dtype dtype;
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        for (int slot = 0; slot < 2; slot++)
            for (int kv = 0; kv < (channel_per_kv(ch) ? 2 : 1); kv++) {
                const struct tile tile = trace_tile(t, ch, slot, kv);
                assert_int_equal(tile.data == NULL, ch == asc_alpha);
                if (!tile.data)
                    continue;
                assert_int_equal(tile.rows, channel_rows(ch, &small_plan));
                for (int i = 0; i < tile.rows * tile.cols; i++) {
                    double want = slot * 1000 + kv * 100 + i, rounded;
                    dtype_store(tile.dtype, &rounded, 0, want);
                    assert_true(dtype_load(tile.dtype, tile.data, (size_t)i) == dtype_load(tile.dtype, &rounded, 0));
                }
                assert_int_equal(trace_first_stamp(t, ch, slot, kv), 10 * slot + kv + 1);
                assert_int_equal(trace_last_stamp(t, ch, slot, kv), slot ? 100 : kv + 1);
            }
    assert_int_equal(trace_dropped(t, asc_s), 7);
    assert_int_equal(trace_dropped(t, asc_p), 0);
    assert_int_equal(trace_mistyped(t, asc_lse), 9);
    assert_true(((const float *)trace_tensor(t, 'L', &dtype))[39] == 2.5f);
    assert_true(dtype_is_unwritten(DTYPE_F32, trace_tensor(t, 'L', &dtype), 38));
    assert_int_equal(((const uint16_t *)trace_tensor(t, 'o', &dtype))[239], 0);
    assert_int_equal(dtype, DTYPE_BF16);
    assert_int_equal(((const uint16_t *)trace_tensor(t, 'k', &dtype))[155], 1155);
    assert_int_equal(trace_slot(t, 0, 3, 2), 0);
    assert_int_equal(trace_slot(t, 0, 1, 0), 1);
    assert_int_equal(trace_slot(t, 0, 2, 1), -1);
}

static void fill_info(struct trace *t)
{
    struct trace_info *info = &t->info;
    strcpy(info->kernel, "v2b");
    strcpy(info->source_name, "my \"kernel\".cu");
    info->status = RUN_COMPLETE;
    strcpy(info->status_text, "cut in the middle of a letter: \xce");
    info->workers = 2;
    info->seconds = 0.25;
    info->source = strdup("// latin-1 \xe4, utf-8 \xce\xb1 \xf0\x9f\x99\x82\n");
    info->n_sites = 2;
    info->sites = calloc(2, sizeof *info->sites);
    info->sites[0] = (struct trace_site){asc_k, 12, "a.cu"};
    info->sites[1] = (struct trace_site){asc_s, 40, "a.cuh"};
    info->n_events = 2;
    info->events = calloc(2, sizeof *info->events);
    trace_event_init(&info->events[0]);
    info->events[0].kind = EVENT_FP_INVALID;
    strcpy(info->events[0].text, "inf - inf");
    strcpy(info->events[0].file, "a.cu");
    info->events[0].line = 33;
    trace_event_init(&info->events[1]);
    info->events[1].kind = EVENT_RACE;
    strcpy(info->events[1].other_file, "b.cuh");
    info->events[1].other_line = 7;
    strcpy(info->events[1].recorder_file, "a.cu");
    info->events[1].recorder_line = 12;
    info->events[1].batch = 0;
    info->events[1].head = 3;
    info->events[1].q_tile = 1;
    info->events[1].kv_tile = 2;
    info->events[1].times = 64;
    info->events[1].stack = (struct trace_stack){2, {{"put", "b.cuh", 9}, {"kernel", "my \"kernel\".cu", 80}}};
    info->events[1].other_stack.n = TRACE_FRAMES;
    for (int i = 0; i < TRACE_FRAMES; i++)
        info->events[1].other_stack.at[i] = (struct trace_frame){"", "b.cuh", 1 + i};
    info->checked = true;
    info->sources = calloc(1, sizeof *info->sources);
    info->n_sources = 1;
    strcpy(info->sources[0].file, "b.cuh");
    info->sources[0].text = strdup("a\n\"b\" \xe4\n");
    info->launches.at = calloc(1, sizeof *info->launches.at);
    info->launches.n = 1;
    launch_init(&info->launches.at[0]);
    info->launches.at[0].registers = 96;
    info->launches.at[0].seconds = 0.1; /* no binary fraction */
    info->launches.budget = (struct launch_budget){.stated = 1u << BUDGET_SPILL_BYTES};
}

static void a_saved_trace_reads_like_the_live_one(void **state)
{
    (void)state;
    struct trace *live = make_small(), *t = NULL;
    struct err err = {0};
    fill_info(live);
    play_debuggee(live);
    check_played(live);
    const int saved = trace_save(live, in_folder("small.safetensors"), &err);
    if (saved != 0 || trace_open(in_folder("small.safetensors"), &t, &err) != 0 || !t) {
        fail_msg("%s: %s", err.where, err.message);
        return; /* never; the analyser does not know */
    }
    assert_false(t->live);
    check_played(t);
    check_writers(live, 0);
    check_writers(t, 0);
    assert_int_equal(t->writers->channel[asc_s].n, 1); /* four tiles alike */
    struct trace *part = NULL;
    assert_int_equal(trace_save_slots(t, (const int[]){1}, 1, in_folder("slot.safetensors"), &err), 0);
    assert_int_equal(trace_open(in_folder("slot.safetensors"), &part, &err), 0);
    check_writers(part, 1);
    trace_free(part);
    unlink(in_folder("slot.safetensors"));
    assert_int_equal(t->problem.causal, ASC_CAUSAL_BOTTOM_RIGHT);
    assert_int_equal(t->problem.window_left, 5);
    assert_int_equal(t->problem.window_right, -1);
    assert_true(t->problem.softcap == 2.5f);
    assert_int_equal(t->problem.layout, ASC_BLHD);
    assert_int_equal(t->problem.has_sink, 1);
    assert_int_equal(t->problem.has_alibi, 1);
    assert_int_equal(t->problem.bias_kind, ASC_BIAS_PER_HEAD);
    enum dtype dtype;
    assert_memory_equal(trace_tensor(t, 's', &dtype), small_sink, sizeof small_sink);
    assert_memory_equal(trace_tensor(t, 'a', &dtype), small_alibi, sizeof small_alibi);
    assert_memory_equal(trace_tensor(t, 'b', &dtype), small_bias, sizeof small_bias);
    assert_true(t->problem.scale == 0.1f);
    assert_memory_equal(&t->plan, &small_plan, sizeof small_plan);
    assert_memory_equal(&t->conventions, &small_conventions, sizeof small_conventions);
    assert_string_equal(t->info.source_name, "my \"kernel\".cu");
    assert_string_equal(t->info.status_text, "cut in the middle of a letter: ?");
    assert_string_equal(t->info.source, "// latin-1 ?, utf-8 \xce\xb1 \xf0\x9f\x99\x82\n");
    assert_null(t->info.scenario);
    assert_true(t->info.seconds == 0.25);
    assert_int_equal(t->info.workers, 2);
    assert_int_equal(trace_site(t, asc_s)->line, 40);
    assert_string_equal(trace_site(t, asc_s)->file, "a.cuh");
    assert_null(trace_site(t, asc_p));
    assert_int_equal(t->info.n_events, 2);
    const struct trace_event *plain = &t->info.events[0], *race = &t->info.events[1];
    assert_int_equal(plain->line, 33);
    assert_int_equal(plain->other_line, 0);
    assert_string_equal(plain->other_file, "");
    assert_string_equal(plain->recorder_file, "");
    assert_int_equal(plain->batch, -1);
    assert_int_equal(plain->kv_tile, -1);
    assert_int_equal(plain->times, 1);
    assert_int_equal(race->kind, EVENT_RACE);
    assert_string_equal(race->other_file, "b.cuh");
    assert_int_equal(race->other_line, 7);
    assert_string_equal(race->recorder_file, "a.cu");
    assert_int_equal(race->recorder_line, 12);
    assert_int_equal(race->batch, 0);
    assert_int_equal(race->head, 3);
    assert_int_equal(race->q_tile, 1);
    assert_int_equal(race->kv_tile, 2);
    assert_int_equal(race->times, 64);
    assert_int_equal(plain->stack.n, 0);
    assert_int_equal(race->stack.n, 2);
    assert_string_equal(race->stack.at[0].function, "put");
    assert_string_equal(race->stack.at[1].file, "my \"kernel\".cu");
    assert_int_equal(race->stack.at[1].line, 80);
    assert_int_equal(race->other_stack.n, TRACE_FRAMES);
    assert_int_equal(race->other_stack.at[TRACE_FRAMES - 1].line, TRACE_FRAMES);
    assert_ptr_equal(trace_source(t, t->info.source_name), t->info.source);
    assert_string_equal(trace_source(t, "b.cuh"), "a\n\"b\" ?\n");
    assert_null(trace_source(t, "c.cuh"));
    assert_true(t->info.checked);
    assert_string_equal(t->info.events[0].text, "inf - inf");
    assert_int_equal(t->info.launches.n, 1);
    assert_int_equal(t->info.launches.at[0].registers, 96);
    assert_int_equal(t->info.launches.at[0].local_bytes, -1);
    assert_true(t->info.launches.at[0].seconds == 0.1 && isnan(t->info.launches.at[0].dram_share));
    assert_int_equal(t->info.launches.budget.stated, 1u << BUDGET_SPILL_BYTES);

    /* A saved trace saves again, over itself, to the same bytes. */
    struct trace *again = NULL;
    assert_int_equal(trace_save(t, in_folder("small.safetensors"), &err), 0);
    assert_int_equal(trace_open(in_folder("small.safetensors"), &again, &err), 0);
    assert_int_equal(again->n_bytes, t->n_bytes);
    assert_memory_equal(again->bytes, t->bytes, t->n_bytes);
    trace_free(again);
    check_played(t);
    trace_free(t);
    trace_free(live);
    assert_int_equal(files_in_folder(), 1);
}

/* Runs after the test above, on its file. Values by the rule of play_debuggee(). */
static void an_independent_reader_agrees(void **state)
{
    (void)state;
    static const struct {
        const char *what, *want;
    } cases[] = {
        {"", "problem 1 4 2 10 13 6 bottom-right f16\nrun v2b complete slots 2\n"},
        {"channel.s 63 3", "131.0 1000.0 1001.0\n"}, /* tiles of 32 values: the end of slot 0 */
        {"channel.k 48 2", "100.0 101.0\n"},
        {"channel.u 95 1", "1123.0\n"},
        {"stamp.s 0 8", "0 1 0 2 100 11 100 12\n"},
        {"slot 0 6", "0 3 2 0 1 0\n"},
        {"dropped 0 11", "0 0 0 7 0 0 0 0 0 0 0\n"},
        {"output.lse 39 1", "2.5\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char command[512], output[4096] = "";
        snprintf(command, sizeof command, "python3 tests/read_trace.py %s %s 2>&1", in_folder("small.safetensors"),
                 cases[i].what);
        FILE *pipe = popen(command, "r");
        assert_non_null(pipe);
        output[fread(output, 1, sizeof output - 1, pipe)] = '\0';
        if (pclose(pipe) != 0 || strncmp(output, cases[i].want, strlen(cases[i].want)) != 0)
            fail_msg("%s: %s", command, output);
    }
}

static void a_trace_without_channels_opens_and_one_without_slots_is_refused(void **state)
{
    (void)state;
    const uint16_t q[240] = {0};
    struct layout_types types = {.o = DTYPE_F16};
    struct trace *live = NULL, *t = NULL;
    struct err err = {0};
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        types.channel[ch] = -1;
    for (int n = 0; n < 2; n++) {
        assert_int_equal(
            trace_create(&small, &small_plan, &small_conventions, &types, small_slots, n, q, q, q, &live, &err), 0);
        assert_int_equal(trace_save(live, in_folder("empty.safetensors"), &err), 0);
        const int failed = trace_open(in_folder("empty.safetensors"), &t, &err);
        trace_free(live);
        if (n == 0) { /* nothing is recorded in it that could be judged */
            assert_int_equal(failed, -1);
            assert_non_null(strstr(err.message, "expected at least one recorded q tile"));
            continue;
        }
        if (failed)
            fail_msg("%s: %s", err.where, err.message);
        assert_int_equal(t->layout.n_slots, n);
        assert_null(trace_tile(t, asc_s, 0, 0).data);
        trace_free(t);
    }
    unlink(in_folder("empty.safetensors"));
}

static int set_up(void **state)
{
    (void)state;
    signal(SIGXFSZ, SIG_IGN); /* as attnscope's main does: a file too large is an error, not a death */
    return mkdtemp(temporary(folder, "trace")) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(in_folder("small.safetensors"));
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_trace_holds_inputs_and_nothing_else),
        cmocka_unit_test(a_trace_has_definite_conventions),
        cmocka_unit_test(tiles_know_their_tails),
        cmocka_unit_test(a_saved_trace_reads_like_the_live_one),
        cmocka_unit_test(an_independent_reader_agrees),
        cmocka_unit_test(a_trace_without_channels_opens_and_one_without_slots_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
