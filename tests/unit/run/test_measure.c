/* Measuring: what a debuggee answers to profile and bench (shell scripts play it), budgets, and the words for all of
   it; the error of an output, on the CPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/child/child.h"
#include "engine/run/measure.h"
#include "engine/run/output_error.h"
#include "engine/run/resources.h"
#include "engine/scenario/scenario.h"
#include "engine/trace/conventions.h"
#include "tests/unit/lib/temporary.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct trace_launch launch_of(int probes, int registers)
{
    struct trace_launch l;
    launch_init(&l);
    snprintf(l.kernel, sizeof l.kernel, "k%d", registers);
    l.probes = probes;
    l.registers = registers;
    l.static_shared_bytes = 1024;
    l.dynamic_shared_bytes = 0;
    l.local_bytes = 0;
    for (int i = 0; i < 3; i++)
        l.grid[i] = l.block[i] = 1;
    return l;
}

/* A debuggee that says hello, then `answer` to whatever comes. */
static struct child *play(const char *answer)
{
    char path[TEMPORARY], *hello;
    struct child *c = NULL;
    struct err err = {0};
    json_t *declared = json_object(), *types = json_array();
    for (int i = 0; i < CONVENTIONS; i++)
        json_object_set_new(declared, conventions[i].name, json_real(conventions[i].low > 0 ? conventions[i].low : 0));
    for (int i = 0; i < ASC_CHANNELS; i++)
        json_array_append_new(types, json_integer(-1));
    json_t *json = json_pack("{s:s, s:i, s:s, s:s, s:s, s:i, s:i, s:i, s:o, s:o}", "type", "hello", "abi",
                             ASC_ABI_VERSION, "kernel", "k", "backend", "gpu", "device", "none", "dtypes", 1, "layouts",
                             1, "o_dtype", -1, "channel_dtype", types, "conventions", declared);
    hello = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    int fd = mkstemp(temporary(path, "measure"));
    assert_true(fd >= 0);
    dprintf(fd, "#!/bin/sh\necho '%s' >&3\nread x <&3\necho '%s' >&3\nread x <&3\n", hello, answer);
    fchmod(fd, 0700);
    close(fd);
    free(hello);
    if (child_start(path, &c, NULL, &err) != 0)
        fail_msg("%s: %s", err.where, err.message);
    unlink(path);
    return c;
}

/* An answer with these launches; the id is the first request's. */
static char *answer_of(const char *type, const char *text, const struct trace_launch *launches, size_t n,
                       const char *more)
{
    struct trace_launches all = {
        .at = (struct trace_launch *)(uintptr_t)launches, .n = n, .not_measured = "no counters"};
    json_t *json =
        json_pack("{s:s, s:i, s:s, s:o}", "type", type, "id", 1, "text", text, "launches", launches_json(&all));
    json_t *rest = json_loads(more, 0, NULL);
    assert_non_null(rest);
    json_object_update(json, rest);
    char *line = json_dumps(json, JSON_COMPACT);
    json_decref(rest);
    json_decref(json);
    return line;
}

static void a_profile_is_appended(void **state)
{
    (void)state;
    const struct trace_launch l[2] = {launch_of(-1, 40), launch_of(-1, 96)};
    char *answer = answer_of("profiled", "", l, 2, "{}");
    struct child *c = play(answer);
    struct trace t = {.fd = -1};
    struct err err = {0};
    assert_int_equal(child_profile(c, &t, true, 20, NULL, &err), 0);
    assert_int_equal(t.info.launches.n, 2);
    assert_int_equal(t.info.launches.at[1].registers, 96);
    assert_int_equal(t.info.launches.at[1].probes, PROBES_NONE);
    assert_string_equal(t.info.launches.not_measured, "no counters");
    launches_free(&t.info.launches);
    child_stop(c);
    free(answer);
}

static void profile_fails(const char *answer, double limit_s, enum err_code code, const char *part)
{
    struct child *c = play(answer);
    struct trace t = {.fd = -1};
    struct err err = {0};
    assert_int_equal(child_profile(c, &t, true, limit_s, NULL, &err), -1);
    assert_non_null(strstr(err.message, part));
    assert_int_equal(err.code, code);
    launches_free(&t.info.launches);
    child_stop(c);
}

static void what_can_go_wrong(void **state)
{
    (void)state;
    struct trace_launch l = launch_of(-1, 40);
    char *failed = answer_of("profiled", "k stopped: an illegal memory access", &l, 1, "{}");
    l.registers = -7;
    char *lies = answer_of("profiled", "", &l, 1, "{}");
    profile_fails(failed, 20, ERR_RUN, "k stopped");
    profile_fails(lies, 20, ERR_RUN, "registers of its launches");
    profile_fails("{\"type\":\"declined\",\"id\":1,\"why\":\"profile needs a GPU\"}", 20, ERR_DECLINED, "needs a GPU");
    profile_fails("{\"type\":\"profiled\",\"id\":9}", 0.2, ERR_RUN, "within 0.2 s"); /* another request's */
    profile_fails("good morning", 20, ERR_RUN, "not a JSON object");
    free(failed);
    free(lies);
}

static void times_are_taken_over(void **state)
{
    (void)state;
    const struct trace_launch l = launch_of(-1, 40);
    char *answer =
        answer_of("timed", "", &l, 1,
                  "{\"warm\":{\"median\":2e-3,\"min\":1e-3,\"n\":50},"
                  "\"cold\":{\"median\":1e-3,\"min\":2e-3,\"n\":50}," /* impossible */
                  "\"graph\":{\"median\":null,\"min\":null,\"n\":0},\"no_graph\":\"why not\",\"copy\":5e10}");
    struct child *c = play(answer);
    struct trace t = {.fd = -1};
    struct bench_result result;
    struct err err = {0};
    const struct bench_request request = {.repeats = 50, .limit_s = 1};
    assert_int_equal(child_bench(c, &t, &request, 20, NULL, &result, &err), 0);
    assert_true(result.warm.median_s == 2e-3 && result.warm.min_s == 1e-3 && result.warm.n == 50);
    assert_int_equal(result.cold.n, 0);
    assert_int_equal(result.graph.n, 0);
    assert_true(isnan(result.graph.median_s));
    assert_true(result.copy_bytes_per_second == 5e10);
    assert_string_equal(result.no_graph, "why not");
    assert_int_equal(result.launches.n, 1);
    launches_free(&result.launches);
    child_stop(c);
    free(answer);
}

static void budget_is(const struct trace_info *info, int met, const char *words)
{
    char line[384];
    assert_int_equal(budget_meets(info, line, sizeof line), met);
    assert_string_equal(line, words);
}

static void budgets_are_judged_without_probes(void **state)
{
    (void)state;
    struct trace_launch l[3] = {launch_of(PROBES_RECORD, 255), launch_of(PROBES_NONE, 40), launch_of(PROBES_NONE, 64)};
    struct trace_info info = {.backend = BACKEND_GPU};
    info.launches.at = l;
    info.launches.n = 3;
    budget_is(&info, 1, "");
    info.launches.budget = (struct launch_budget){.stated = 3, .most = {64, 1024}};
    budget_is(&info, 1, "within budget");
    info.launches.budget.most[BUDGET_REGISTERS] = 63;
    budget_is(&info, 0, "over budget: k64 uses 64 registers of a thread, 63 are allowed");
    info.launches.budget.most[BUDGET_SHARED_BYTES] = 1023;
    budget_is(&info, 0,
              "over budget: k64 uses 64 registers of a thread, 63 are allowed, over budget: k40 uses 1024 bytes of "
              "shared memory, static and dynamic, 1023 are allowed");
    assert_int_equal(budget_of_launch(&info, &l[0], BUDGET_REGISTERS), BUDGET_NOT_STATED);
    assert_int_equal(budget_of_launch(&info, &l[1], BUDGET_REGISTERS), BUDGET_MET);
    assert_int_equal(budget_of_launch(&info, &l[2], BUDGET_SPILL_BYTES), BUDGET_NOT_STATED);
}

static void a_budget_is_never_met_silently(void **state)
{
    (void)state;
    struct trace_launch l[2] = {launch_of(PROBES_RECORD, 16), launch_of(PROBES_NONE, -1)};
    struct trace_info info = {.backend = BACKEND_GPU};
    info.launches.at = l;
    info.launches.n = 1;
    info.launches.budget = (struct launch_budget){.stated = 1, .most = {64}};
    budget_is(&info, 0, "budget not judged: the kernel's usage is unknown");
    info.launches.n = 2;
    budget_is(&info, 0, "budget not judged: the kernel's usage is unknown");
    snprintf(info.launches.not_measured, sizeof info.launches.not_measured, "it does not compile without probes");
    budget_is(&info, 0, "budget not judged: it does not compile without probes");
    info.backend = BACKEND_CPU;
    budget_is(&info, 1, "budget not judged: needs a GPU");
    info.launches.budget.stated = 0;
    budget_is(&info, 1, "");
}

static void says(const struct trace_launch *l, enum fact fact, const char *words)
{
    char line[128];
    fact_words(l, fact, line, sizeof line);
    assert_string_equal(line, words);
}

static void absent_is_no_zero(void **state)
{
    (void)state;
    struct trace_launch l;
    char title[256];
    launch_init(&l);
    for (int i = 0; i < FACT_ACHIEVED; i++)
        says(&l, (enum fact)i, "not known");
    for (int i = FACT_ACHIEVED; i < FACTS; i++)
        says(&l, (enum fact)i, "not counted");
    l = launch_of(PROBES_NONE, 0);
    l.tensor_pipe = 0;
    l.dram_share = 0.5;
    says(&l, FACT_REGISTERS, "0 a thread");
    says(&l, FACT_SHARED, "1.00 KiB a block");
    says(&l, FACT_LOCAL, "0 B a thread");
    says(&l, FACT_TENSOR, "0.0 % of the active cycles");
    says(&l, FACT_DRAM, "50.0 % of its rate");
    l.dram_bytes_per_second = 2.4e12;
    says(&l, FACT_DRAM, "50.0 % of its rate, 2400.0 GB/s");
    l.dram_share = NAN;
    says(&l, FACT_DRAM, "2400.0 GB/s");
    l.resident_blocks = l.resident_warps = 1;
    l.warp_slots = 64;
    says(&l, FACT_OCCUPANCY, "1.6 %: 1 of 64 warps in 1 block");
    l.grid[2] = 5;
    l.probes = PROBES_RECORD;
    launch_title(&l, title, sizeof title);
    assert_string_equal(title, "k0, grid 1 x 1 x 5, block 1, with probes");
}

static void small_scenario(struct scenario *s)
{
    struct err err = {0};
    scenario_init(s);
    s->backend = SCENARIO_BACKEND_CPU;
    assert_int_equal(scenario_set(s, "scenario.kernel", "kernels/v2b_scalar.cu", &err), 0);
    assert_int_equal(scenario_parse_shape("1,2,70,64", &s->problem, &err), 0);
}

static void the_error_of_an_output(void **state)
{
    (void)state;
    struct runner_paths paths;
    struct scenario s;
    struct err err = {0};
    struct output_error error;
    assert_int_equal(runner_find_paths(&paths, &err), 0);
    small_scenario(&s);
    if (output_error_measure(&paths, &s, NULL, &error, &err) != 0)
        fail_msg("%s: %s", err.where, err.message);
    assert_int_equal(error.elements, 2 * 70 * 64);
    assert_true(error.largest > 0 && error.largest < 1e-2);
    assert_true(error.largest_ratio > 0 && error.largest_ratio <= 1);
    assert_int_equal(scenario_set(&s, "scenario.patch", "scenarios/bugs/o-not-divided.patch", &err), 0);
    assert_int_equal(output_error_measure(&paths, &s, NULL, &error, &err), 0);
    assert_true(error.largest > 0.1 && error.largest_ratio > 100);
    assert_int_equal(scenario_set(&s, "scenario.patch", "tests/session/nan-row.patch", &err), 0);
    assert_int_equal(output_error_measure(&paths, &s, NULL, &error, &err), 0);
    assert_true(isnan(error.largest) && isnan(error.largest_ratio));
    scenario_free(&s);
}

static void the_cpu_declines(void **state)
{
    (void)state;
    struct runner_paths paths;
    struct scenario s;
    struct err err = {0};
    struct recorder r = {0};
    struct trace *t = NULL;
    assert_int_equal(runner_find_paths(&paths, &err), 0);
    small_scenario(&s);
    assert_int_equal(measure_ready(&paths, &s, "profile", &err), -1);
    assert_non_null(strstr(err.message, "needs a GPU"));
    assert_int_equal(record_open(&r, &paths, &s, PROBES_NONE, false, NULL, &t, &err), 0);
    assert_int_equal(child_profile(r.child, t, true, 20, NULL, &err), -1);
    assert_int_equal(err.code, ERR_DECLINED);
    assert_string_equal(err.message, "profile needs a GPU");
    assert_true(child_alive(r.child)); /* and runs */
    assert_int_equal(child_run(r.child, t, 20, NULL, &err), 0);
    assert_int_equal(t->info.launches.n, 0);
    trace_free(t);
    recorder_free(&r);
    scenario_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_profile_is_appended),          cmocka_unit_test(what_can_go_wrong),
        cmocka_unit_test(times_are_taken_over),           cmocka_unit_test(budgets_are_judged_without_probes),
        cmocka_unit_test(a_budget_is_never_met_silently), cmocka_unit_test(absent_is_no_zero),
        cmocka_unit_test(the_error_of_an_output),         cmocka_unit_test(the_cpu_declines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
