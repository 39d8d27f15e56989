/* Codes, scales and a workspace on their way through a real run on the CPU: what the kernel was handed is seen from
   what its probes recorded. */
#include "engine/base/format.h"
#include "engine/base/quantize.h"
#include "engine/run/output_error.h"
#include "engine/scenario/keys.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct runner_paths paths;
static struct recorder recorder;

static void scenario(struct scenario *s, const char *const settings[], size_t n)
{
    struct err err = {0};
    if (scenario_read("tests/session/codes.ini", "", s, &err) != 0)
        fail_msg("%s: %s", err.where, err.message);
    s->backend = SCENARIO_BACKEND_CPU;
    for (size_t i = 0; i + 1 < n; i += 2)
        if (scenario_set(s, settings[i], settings[i + 1], &err) != 0)
            fail_msg("%s: %s", err.where, err.message);
}

static struct trace *run(const struct scenario *s)
{
    struct trace *t = NULL;
    struct err err = {0};
    if (record(&recorder, &paths, s, NULL, &t, &err) != 0)
        fail_msg("%s: %s", err.where, err.message);
    return t;
}

/* An element of an input in f32, as the kernel makes it from its code. */
static float value_of(const struct trace *t, char which, int b, int h, int row, int d)
{
    const struct asc_problem *p = &t->problem;
    const int heads = which == 'q' ? p->heads : p->kv_heads, rows = which == 'q' ? p->q_len : p->kv_len;
    const struct asc_strides s = asc_strides_of(p, heads, rows);
    const size_t at = (size_t)(s.batch * b + s.head * h + s.row * row + d);
    enum dtype dtype;
    const void *data = trace_tensor(t, which, &dtype);
    const float *scales = trace_scales(t, which);
    if (!scales)
        return f16_to_f32(((const uint16_t *)data)[at]);
    return quantize_value(dtype, ((const uint8_t *)data)[at]) * scales[asc_scale_at(p, heads, rows, b, h, row)];
}

static void check_tile(const struct trace *t, enum asc_channel ch, int slot, int kv)
{
    const int32_t *place = trace_slot_place(t, slot);
    const struct tile tile = trace_tile(t, ch, slot, kv);
    const int group = t->problem.heads / t->problem.kv_heads;
    assert_non_null(tile.data);
    assert_int_equal(tile.dtype, DTYPE_F16);
    for (int r = 0; r < tile.valid_rows; r++)
        for (int c = 0; c < tile.valid_cols; c++) {
            const float want =
                ch == asc_q ? value_of(t, 'q', place[0], place[1], place[2] * t->plan.br + r, c)
                            : value_of(t, ch == asc_k ? 'k' : 'v', place[0], place[1] / group, kv * t->plan.bc + r, c);
            assert_int_equal(((const uint16_t *)tile.data)[r * tile.cols + c], f16_from_f32(want));
        }
}

static void store_o(const struct trace *t, size_t i, float value)
{
    enum dtype type;
    const uint16_t bits = f16_from_f32(value);
    const unsigned char *o = trace_tensor(t, 'o', &type);
    assert_int_equal(pwrite(t->fd, &bits, sizeof bits, o - t->bytes + (off_t)(i * sizeof bits)), sizeof bits);
}

static void the_kernel_gets_what_was_asked_for(void **state)
{
    (void)state;
    static const char *const settings[][10] = {
        {"quant.scales", "rows:7"},
        {"quant.scales", "head", "shape.layout", "BLHD"},
        {"quant.scales", "tensor", "shape.dtype", "f16", "shape.k_dtype", "u8", "shape.v_dtype", "e4m3"},
        {"quant.scales", "rows:1", "shape.dtype", "u8", "shape.k_dtype", "f16", "shape.v_dtype", "e5m2", "shape.layout",
         "BLHD"},
        {"shape.dtype", "e5m2", "shape.k_dtype", "e4m3", "shape.v_dtype", "f16"},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        struct scenario s;
        struct err err = {0};
        struct output_error error;
        size_t n = 0;
        while (n < 10 && settings[i][n])
            n++;
        scenario(&s, settings[i], n);
        struct trace *t = run(&s);
        assert_int_equal(t->info.n_events, 0);
        assert_int_equal(t->layout.o.dtype, DTYPE_F16);
        for (int slot = 0; slot < t->layout.n_slots; slot++)
            for (int kv = 0; kv < t->layout.kv_tiles; kv++) {
                check_tile(t, asc_q, slot, 0);
                check_tile(t, asc_k, slot, kv);
                check_tile(t, asc_v, slot, kv);
            }
        assert_int_equal(output_error_judge(t, NULL, &error, &err), 0);
        assert_true(error.largest < 4e-3);
        assert_true(error.unquantized.known && error.unquantized.rms > 2e-3 && error.unquantized.rms < 0.05);
        assert_true(error.unquantized.largest > error.unquantized.rms && error.unquantized.largest < 0.5);
        store_o(t, 5, INFINITY);
        assert_int_equal(output_error_judge(t, NULL, &error, &err), 0);
        assert_true(isinf(error.largest) && isinf(error.largest_ratio) && isinf(error.unquantized.largest));
        store_o(t, i, NAN);
        assert_int_equal(output_error_judge(t, NULL, &error, &err), 0);
        assert_true(isnan(error.largest) && isnan(error.largest_ratio));
        assert_true(error.unquantized.known && isnan(error.unquantized.largest) && isnan(error.unquantized.rms));
        trace_free(t);
        scenario_free(&s);
    }
}

/* Where nothing is quantized there is no such error; and the given values are those of the f16 run. */
static void originals_are_the_values_of_an_f16_run(void **state)
{
    (void)state;
    static const char *const as_values[] = {"shape.dtype", "f16", "shape.k_dtype", "f16", "shape.v_dtype", "f16"};
    struct scenario s;
    struct err err = {0};
    struct unquantized_error error;
    enum dtype dtype;
    scenario(&s, NULL, 0);
    struct trace *codes = run(&s);
    scenario_free(&s);
    scenario(&s, as_values, 6);
    s.stated[KEY_SCALES] = false;
    s.problem.scale_rows = 0;
    struct trace *values = run(&s);
    scenario_free(&s);
    assert_int_equal(output_error_unquantized(values, &error, &err), 0);
    assert_false(error.known);
    for (int i = 0; i < 3; i++) {
        const struct layout *l = &values->layout;
        const size_t bytes[3] = {l->q.bytes, l->k.bytes, l->v.bytes};
        assert_memory_equal(trace_given(codes, "qkv"[i], &dtype), trace_tensor(values, "qkv"[i], &dtype), bytes[i]);
    }
    trace_free(codes);
    trace_free(values);
}

static void crashes(const char *patch, const char *kv_len, const char *words)
{
    const char *const settings[] = {"scenario.patch", patch, "shape.kv_len", kv_len};
    struct scenario s;
    struct trace *t = NULL;
    struct err err = {0};
    int found = 0;
    scenario(&s, settings, 4);
    (void)record(&recorder, &paths, &s, NULL, &t, &err);
    assert_non_null(t);
    for (size_t i = 0; i < t->info.n_events; i++)
        found += t->info.events[i].kind == EVENT_ADDRESS && strstr(t->info.events[i].text, words) != NULL;
    if (!found)
        fail_msg("no event says '%s' but %s", words, t->info.n_events ? t->info.events[0].text : "none");
    trace_free(t);
    scenario_free(&s);
}

/* K and V take 2 * 2 * 2 * kv_len * 24 f16: with 50 keys a multiple of 256 bytes, behind which the guard zone begins at
   once, with 51 there are 128 bytes between. */
static void arrays_have_names_and_guards(void **state)
{
    (void)state;
    crashes("tests/session/codes-behind-workspace.patch", "50", "past the end of the workspace");
    crashes("tests/session/codes-behind-workspace.patch", "51", "the kernel wrote outside the workspace");
    crashes("tests/session/codes-behind-scales.patch", "50", "past the end of the scales of V");
    crashes("tests/session/codes-write-scales.patch", "50", "write to the scales of K, which is an input");
}

static void declines(const char *const settings[], size_t n, const char *kernel, const char *words)
{
    struct scenario s;
    struct trace *t = NULL;
    struct err err = {0};
    scenario(&s, settings, n);
    snprintf(s.kernel, sizeof s.kernel, "%s", kernel);
    assert_int_equal(record(&recorder, &paths, &s, NULL, &t, &err), -1);
    assert_int_equal(err.code, ERR_DECLINED);
    assert_string_equal(err.message, words);
    scenario_free(&s);
}

static void types_that_are_not_taken_are_named(void **state)
{
    (void)state;
    static const char *const bf16[] = {"shape.v_dtype", "bf16"};
    static const char *const mixed[] = {"shape.dtype", "bf16", "shape.k_dtype", "e5m2"};
    declines(bf16, 2, "tests/session/codes.cu", "codes_test takes V of f16, e4m3, e5m2, u8, not bf16");
    declines(mixed, 4, "kernels/v2b_scalar.cu", "v2b_scalar takes K of Q's type, bf16, not e5m2");
}

/* Where the types are open, whether there are codes hangs on what the kernel takes. */
static void scales_wait_for_the_kernels_types(void **state)
{
    (void)state;
    struct scenario s;
    struct trace *t = NULL;
    struct err err = {0};
    scenario_init(&s);
    s.backend = SCENARIO_BACKEND_CPU;
    assert_int_equal(scenario_set(&s, "scenario.kernel", "kernels/v2b_scalar.cu", &err), 0);
    assert_int_equal(scenario_set(&s, "quant.scales", "rows:32", &err), 0);
    assert_int_equal(scenario_check(&s, &err), 0);
    assert_int_equal(record(&recorder, &paths, &s, NULL, &t, &err), -1);
    assert_non_null(strstr(err.message, "expected a tensor of codes beside it"));
    scenario_free(&s);
}

static int set_up(void **state)
{
    (void)state;
    return runner_find_paths(&paths, NULL);
}

static int tear_down(void **state)
{
    (void)state;
    recorder_free(&recorder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_kernel_gets_what_was_asked_for), cmocka_unit_test(originals_are_the_values_of_an_f16_run),
        cmocka_unit_test(arrays_have_names_and_guards),       cmocka_unit_test(types_that_are_not_taken_are_named),
        cmocka_unit_test(scales_wait_for_the_kernels_types),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
