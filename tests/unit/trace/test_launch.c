/* What a launch takes, as JSON there and back; what keeps blocks from a multiprocessor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/base/occupancy.h"
#include "engine/trace/launch.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static struct trace_launch one(void)
{
    struct trace_launch l;
    launch_init(&l);
    snprintf(l.kernel, sizeof l.kernel, "attention<__half, 64>");
    snprintf(l.limited_by, sizeof l.limited_by, "registers");
    for (int i = 0; i < 3; i++) {
        l.grid[i] = 8 >> i;
        l.block[i] = 128 >> i;
    }
    l.registers = 168;
    l.static_shared_bytes = 1024;
    l.dynamic_shared_bytes = 73728;
    l.resident_warps = 12;
    l.warp_slots = 64;
    l.seconds = 1.25e-4;
    return l;
}

static void nothing_is_known_at_first(void **state)
{
    (void)state;
    struct trace_launch l;
    launch_init(&l);
    assert_int_equal(l.registers, -1);
    assert_int_equal(launch_shared_bytes(&l), -1);
    assert_true(isnan(launch_occupancy(&l)));
    assert_true(isnan(l.seconds));
    assert_false(launch_has_counters(&l));
    for (int i = 0; i < BUDGET_ITEMS; i++)
        assert_int_equal(launch_takes(&l, (enum budget_item)i), -1);
    l.tensor_pipe = 0; /* counted, and none */
    assert_true(launch_has_counters(&l));
}

static void there_and_back(void **state)
{
    (void)state;
    struct trace_launch l = one();
    struct trace_launches from = {.at = &l, .n = 1, .not_measured = "not here"}, to = {0};
    from.budget.stated = 1u << BUDGET_SPILL_BYTES;
    json_t *json = launches_json(&from);
    to.budget = (struct launch_budget){1u << BUDGET_REGISTERS, {64}};
    assert_null(launches_read(json, &to));
    json_object_del(json_array_get(json_object_get(json, "list"), 0), "staging_lacks"); /* of an earlier version */
    assert_null(launches_read(json, &to));                                              /* appended */
    assert_null(launches_read(NULL, &to));
    assert_int_equal(to.n, 2);
    assert_string_equal(to.not_measured, "not here");
    assert_int_equal(to.budget.stated, 1u << BUDGET_REGISTERS | 1u << BUDGET_SPILL_BYTES);
    assert_int_equal(to.budget.most[BUDGET_REGISTERS], 64);
    assert_int_equal(to.budget.most[BUDGET_SPILL_BYTES], 0);
    const struct trace_launch *got = &to.at[1];
    assert_string_equal(got->kernel, l.kernel);
    assert_string_equal(got->limited_by, "registers");
    assert_memory_equal(got->grid, l.grid, sizeof l.grid);
    assert_memory_equal(got->block, l.block, sizeof l.block);
    assert_int_equal(got->registers, 168);
    assert_int_equal(got->local_bytes, -1);
    assert_true(got->seconds == 1.25e-4);
    assert_true(isnan(got->dram_share));
    assert_true(launch_occupancy(got) == 12.0 / 64);
    assert_int_equal(launch_takes(got, BUDGET_SHARED_BYTES), 74752);
    json_decref(json);
    launches_free(&to);
}

/* One field replaced; which one is named as wrong. */
static void refuse(const char *field, json_t *value, const char *named)
{
    struct trace_launch l = one();
    struct trace_launches from = {.at = &l, .n = 1}, to = {0};
    json_t *json = launches_json(&from);
    json_object_set_new(json_array_get(json_object_get(json, "list"), 0), field, value);
    const char *wrong = launches_read(json, &to);
    assert_non_null(wrong);
    assert_string_equal(wrong, named);
    assert_int_equal(to.n, 0);
    json_decref(json);
    launches_free(&to);
}

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    char long_name[400];
    memset(long_name, 'k', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    refuse("kernel", json_string(long_name), "kernel");
    refuse("kernel", json_integer(3), "kernel");
    refuse("kernel", json_stringn("a\0b", 3), "kernel");
    refuse("grid", json_pack("[ii]", 1, 1), "grid");
    refuse("block", json_pack("[iii]", 1, 1, -1), "block");
    refuse("registers", json_integer(-2), "registers");
    refuse("registers", json_integer(INT64_C(1) << 31), "registers");
    refuse("registers", json_null(), "registers");
    refuse("registers", json_real(16), "registers");
    refuse("seconds", json_real(-1e-9), "seconds");
    refuse("seconds", json_string("1"), "seconds");
    refuse("limited_by", json_true(), "limited_by");
}

static void there_are_never_too_many(void **state)
{
    (void)state;
    struct trace_launch many[TRACE_LAUNCHES_MAX + 1];
    struct trace_launches from = {.at = many, .n = TRACE_LAUNCHES_MAX}, to = {0};
    for (size_t i = 0; i < sizeof many / sizeof *many; i++)
        many[i] = one();
    json_t *json = launches_json(&from);
    assert_null(launches_read(json, &to));
    assert_string_equal(launches_read(json, &to), "list");
    assert_int_equal(to.n, TRACE_LAUNCHES_MAX);
    launches_free(&to);
    json_decref(json);
    from.n++;
    json = launches_json(&from);
    assert_string_equal(launches_read(json, &to), "list");
    json_decref(json);
    json = json_pack("{s:s, s:[], s:{s:i}}", "not_measured", "", "list", "budget", "registers", -1);
    assert_string_equal(launches_read(json, &to), "budget");
    json_decref(json);
    launches_free(&to);
}

/* An H100, and the limits that cuda_occupancy.h gives for it. */
static const struct occupancy_device h100 = {64, 32, 65536, 233472, 1024};

static void limit_of(int threads, int registers, int shared, int resident, const char *limited_by)
{
    const struct occupancy_block block = {threads, registers, shared};
    int blocks[OCCUPANCY_LIMITS];
    char text[48];
    occupancy_blocks(&h100, &block, blocks);
    occupancy_limited_by(blocks, resident, text, sizeof text);
    assert_string_equal(text, limited_by);
}

static void what_limits_occupancy(void **state)
{
    (void)state;
    limit_of(32, 16, 0, 32, "blocks");
    limit_of(1024, 16, 0, 2, "warps");
    limit_of(1024, 32, 0, 2, "warps, registers");
    limit_of(128, 168, 0, 3, "registers"); /* 21 * 256 a warp: 3 warps a partition, 12 in all */
    limit_of(128, 128, 73728, 3, "shared memory");
    limit_of(128, 255, 99 * 1024, 2, "registers, shared memory");
    limit_of(256, 40, 48 * 1024, 4, "shared memory");
    limit_of(256, 40, 48 * 1024, 3, ""); /* not by what is known here */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_known_at_first), cmocka_unit_test(there_and_back),
        cmocka_unit_test(what_is_wrong_is_named),    cmocka_unit_test(there_are_never_too_many),
        cmocka_unit_test(what_limits_occupancy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
