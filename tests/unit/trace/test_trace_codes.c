/* Traces of runs on codes: scales and given values lie beside them, live and saved; files that lie about them. */
#include "engine/run/given.h"
#include "engine/trace/live.h"
#include "engine/trace/trace_store.h"
#include "engine/verdict/element_code.h"
#include "tests/unit/lib/temporary.h"

#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { BATCH = 2, HEADS = 4, KV_HEADS = 2, Q_LEN = 10, KV_LEN = 13, D = 6, ROWS = 4 };
enum { Q = BATCH * HEADS * Q_LEN * D, KV = BATCH * KV_HEADS * KV_LEN * D };
enum { Q_SCALES = BATCH * HEADS * 3, KV_SCALES = BATCH * KV_HEADS * 4 }; /* groups of 4 rows, with a tail */

static uint8_t q_codes[Q], v_codes[KV];
static uint16_t k_values[KV], q_given[Q], v_given[KV];
static float q_scale[Q_SCALES], v_scale[KV_SCALES];
static char path[TEMPORARY];

/* Q of e4m3 and V of u8 codes, K of values. */
static const struct asc_problem mixed = {.batch = BATCH,
                                         .heads = HEADS,
                                         .kv_heads = KV_HEADS,
                                         .q_len = Q_LEN,
                                         .kv_len = KV_LEN,
                                         .head_dim = D,
                                         .head_dim_v = D,
                                         .layout = ASC_BLHD,
                                         .dtype = DTYPE_E4M3,
                                         .k_dtype = DTYPE_F16,
                                         .v_dtype = DTYPE_U8,
                                         .scale_rows = ROWS,
                                         .window_left = -1,
                                         .window_right = -1,
                                         .scale = 0.1f,
                                         .q_scale = q_scale,
                                         .v_scale = v_scale};
static const struct asc_plan plan = {.br = 4,
                                     .bc = 8,
                                     .threads = 64,
                                     .kv_splits = 2,
                                     .kv_deal = ASC_DEAL_ROUND_ROBIN,
                                     .workspace_bytes = UINT64_C(5) << 32};
static const struct asc_conventions folded = {.qk_descale = ASC_QK_FOLDED, .v_descale = ASC_V_OUTPUT};
static const int32_t slots[1][3] = {{1, 3, 2}};

static struct trace *make(struct trace_store *store, const struct asc_problem *p, int known)
{
    const struct trace_inputs inputs = {.of = {q_codes, k_values, v_codes},
                                        .given = {known ? q_given : NULL, NULL, known ? v_given : NULL}};
    struct layout_types types = {.o = DTYPE_F16};
    struct trace *t = NULL;
    struct err err = {0};
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        types.channel[ch] = DTYPE_F32;
    types.channel[asc_q] = DTYPE_E4M3;
    if (trace_create_in(store, p, &plan, &folded, &types, slots, 1, &inputs, &t, &err) != 0)
        fail_msg("%s: %s", err.where, err.message);
    return t;
}

static void check_inputs(const struct trace *t, int known)
{
    enum dtype dtype;
    assert_memory_equal(trace_tensor(t, 'q', &dtype), q_codes, sizeof q_codes);
    assert_int_equal(dtype, DTYPE_E4M3);
    assert_memory_equal(trace_tensor(t, 'k', &dtype), k_values, sizeof k_values);
    assert_int_equal(dtype, DTYPE_F16);
    assert_memory_equal(trace_tensor(t, 'v', &dtype), v_codes, sizeof v_codes);
    assert_int_equal(dtype, DTYPE_U8);
    assert_memory_equal(trace_scales(t, 'q'), q_scale, sizeof q_scale);
    assert_null(trace_scales(t, 'k'));
    assert_memory_equal(trace_scales(t, 'v'), v_scale, sizeof v_scale);
    assert_ptr_equal(trace_given(t, 'k', &dtype), trace_tensor(t, 'k', &dtype));
    if (known) {
        assert_memory_equal(trace_given(t, 'q', &dtype), q_given, sizeof q_given);
        assert_int_equal(dtype, DTYPE_F16);
        assert_memory_equal(trace_given(t, 'v', &dtype), v_given, sizeof v_given);
    } else {
        assert_null(trace_given(t, 'q', &dtype));
        assert_null(trace_given(t, 'v', &dtype));
    }
}

static void a_live_trace_holds_them(void **state)
{
    (void)state;
    for (int known = 0; known < 2; known++) {
        struct trace *t = make(NULL, &mixed, known);
        check_inputs(t, known);
        assert_null(t->problem.q_scale);
        assert_null(t->problem.v_scale);
        trace_free(t);
    }
}

static void a_debuggee_finds_them(void **state)
{
    (void)state;
    struct trace *t = make(NULL, &mixed, 1);
    struct asc_problem p;
    struct asc_plan there;
    struct asc_device device;
    struct err err = {0};
    void *mapping = NULL;
    size_t n_bytes = 0;
    assert_int_equal(trace_attach(t->fd, &p, &there, &device, &mapping, &n_bytes, &err), 0);
    assert_memory_equal(p.q, q_codes, sizeof q_codes);
    assert_memory_equal(p.q_scale, q_scale, sizeof q_scale);
    assert_null(p.k_scale);
    assert_memory_equal(p.v_scale, v_scale, sizeof v_scale);
    assert_null(p.workspace); /* the debuggee's own */
    assert_int_equal(there.workspace_bytes, UINT64_C(5) << 32);
    assert_int_equal(there.kv_deal, ASC_DEAL_ROUND_ROBIN);
    munmap(mapping, n_bytes);
    trace_free(t);
}

/* A memory file that is used again holds nothing of what it held. */
static void memory_is_filled_anew(void **state)
{
    (void)state;
    struct trace_store *store = trace_store_new(NULL);
    trace_free(make(store, &mixed, 1));
    struct trace *t = make(store, &mixed, 0), *fresh = make(NULL, &mixed, 0);
    check_inputs(t, 0);
    assert_int_equal(t->n_bytes, fresh->n_bytes);
    assert_memory_equal(t->bytes, fresh->bytes, t->n_bytes);
    trace_free(t);
    trace_free(fresh);
    trace_store_free(store);
}

static void a_saved_trace_holds_them(void **state)
{
    (void)state;
    struct err err = {0};
    for (int known = 0; known < 2; known++) {
        struct trace *live = make(NULL, &mixed, known), *t = NULL;
        assert_int_equal(trace_save(live, path, &err), 0);
        trace_free(live);
        if (trace_open(path, &t, &err) != 0)
            fail_msg("%s: %s", err.where, err.message);
        check_inputs(t, known);
        assert_int_equal(t->problem.k_dtype, DTYPE_F16);
        assert_int_equal(t->problem.v_dtype, DTYPE_U8);
        assert_int_equal(t->problem.scale_rows, ROWS);
        assert_int_equal(t->plan.workspace_bytes, UINT64_C(5) << 32);
        assert_int_equal(t->plan.kv_deal, ASC_DEAL_ROUND_ROBIN);
        assert_int_equal(t->conventions.qk_descale, ASC_QK_FOLDED);
        trace_free(t);
    }
    char command[512], output[512] = "";
    snprintf(command, sizeof command, "python3 tests/read_trace.py %s input.q_scale 0 2 2>&1", path);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    output[fread(output, 1, sizeof output - 1, pipe)] = '\0';
    assert_int_equal(pclose(pipe), 0);
    assert_string_equal(output, "1.0 1.25\n");
}

/* Without codes a file has no word of them: it is what it was. */
static void a_trace_without_codes_is_as_before(void **state)
{
    (void)state;
    struct asc_problem p = mixed;
    struct err err = {0};
    p.dtype = p.v_dtype = DTYPE_F16;
    p.scale_rows = 0;
    const struct trace_inputs inputs = {.of = {q_given, k_values, v_given}};
    const struct layout_types types = {.o = DTYPE_F16};
    struct asc_plan without = plan;
    without.workspace_bytes = 0;
    struct trace *t = NULL, *opened = NULL;
    enum dtype dtype;
    assert_int_equal(trace_create_in(NULL, &p, &without, &folded, &types, slots, 1, &inputs, &t, &err), 0);
    assert_int_equal(t->layout.q_scale.bytes + t->layout.v_given.bytes, 0);
    assert_ptr_equal(trace_given(t, 'q', &dtype), trace_tensor(t, 'q', &dtype));
    assert_int_equal(trace_save(t, path, &err), 0);
    trace_free(t);
    assert_int_equal(trace_open(path, &opened, &err), 0);
    static const char *const words[] = {"k_dtype", "v_dtype", "scale_rows", "_scale", "_given", "workspace"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_null(memmem(opened->bytes, opened->n_bytes, words[i], strlen(words[i])));
    assert_int_equal(opened->problem.k_dtype, DTYPE_F16);
    assert_int_equal(opened->problem.v_dtype, DTYPE_F16);
    trace_free(opened);
}

static void rewritten(const char *from, const char *to, const char *words)
{
    struct trace *t = NULL;
    struct err err = {0};
    static unsigned char bytes[1 << 20];
    struct trace *live = make(NULL, &mixed, 1);
    assert_int_equal(trace_save(live, path, &err), 0);
    trace_free(live);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    const size_t n = fread(bytes, 1, sizeof bytes, file);
    assert_true(n < sizeof bytes && strlen(from) == strlen(to));
    unsigned char *at = memmem(bytes, n, from, strlen(from));
    if (!at)
        fail_msg("no %s in the file", from);
    assert_int_equal(fseek(file, at - bytes, SEEK_SET), 0);
    assert_int_equal(fwrite(to, strlen(to), 1, file), 1);
    fclose(file);
    assert_int_equal(trace_open(path, &t, &err), -1);
    if (!strstr(err.message, words))
        fail_msg("'%s' does not say '%s'", err.message, words);
}

static void lies_are_named(void **state)
{
    (void)state;
    rewritten("\\\"k_dtype\\\":\\\"f16\\\"", "\\\"k_dtype\\\":\\\"f17\\\"",
              "k_dtype must be the name of an element type");
    rewritten("\\\"k_dtype\\\":\\\"f16\\\"", "\\\"k_dtype\\\":\\\"i32\\\"", "k_dtype is 8");
    rewritten("\\\"k_dtype\\\":\\\"f16\\\"", "\\\"k_dtype\\\":\\\"f32\\\"", "tensor 'input.k' is of type F16");
    rewritten("\\\"v_dtype\\\":\\\"u8\\\"", "\\\"v_dtype\\\":123456", "v_dtype must be the name of an element type");
    rewritten("\\\"scale_rows\\\":4", "\\\"scale_rows\\\":0", "tensor 'input.q_scale' has shape");
    rewritten("\\\"scale_rows\\\":4", "\\\"scale_raws\\\":4", "tensor 'input.q_scale' has shape");
    rewritten("\\\"scale_rows\\\":4", "\\\"scale_rows\\\":x", "is not valid JSON");
    rewritten("\\\"workspace_bytes\\\":21474836480", "\\\"workspace_bytes\\\":-1474836480",
              "workspace_bytes must be a count");
    rewritten("input.v_scale", "input.w_scale", "tensor 'input.v_scale' is missing");
    rewritten("input.q_given", "input.q_taken", "tensor 'input.q_given' is missing");
}

static void the_view_of_what_was_given(void **state)
{
    (void)state;
    struct trace *t = make(NULL, &mixed, 1), view;
    enum dtype dtype;
    assert_true(unquantized_view(t, &view));
    assert_memory_equal(trace_tensor(&view, 'q', &dtype), q_given, sizeof q_given);
    assert_int_equal(dtype, DTYPE_F16);
    assert_ptr_equal(trace_tensor(&view, 'k', &dtype), trace_tensor(t, 'k', &dtype));
    assert_int_equal(view.problem.dtype, DTYPE_F16);
    assert_int_equal(view.problem.v_dtype, DTYPE_F16);
    assert_null(trace_scales(&view, 'q'));
    assert_null(trace_tile(&view, asc_s, 0, 0).data);
    assert_int_equal(view.conventions.qk_descale, ASC_QK_OPERANDS);
    trace_free(t);
    t = make(NULL, &mixed, 0);
    assert_false(unquantized_view(t, &view));
    t->problem.dtype = t->problem.v_dtype = DTYPE_F16; /* nothing is quantized */
    assert_false(unquantized_view(t, &view));
    trace_free(t);
}

static int set_up(void **state)
{
    (void)state;
    for (int i = 0; i < Q; i++) {
        q_codes[i] = (uint8_t)i;
        q_given[i] = (uint16_t)(1000 + i);
    }
    for (int i = 0; i < KV; i++) {
        k_values[i] = (uint16_t)(2000 + i);
        v_codes[i] = (uint8_t)(3 * i);
        v_given[i] = (uint16_t)(3000 + i);
    }
    for (int i = 0; i < Q_SCALES; i++)
        q_scale[i] = 1 + 0.25f * (float)i;
    for (int i = 0; i < KV_SCALES; i++)
        v_scale[i] = 0.5f + (float)i;
    const int fd = mkstemp(temporary(path, "codes"));
    return fd < 0 ? -1 : close(fd);
}

static int tear_down(void **state)
{
    (void)state;
    return unlink(path);
}

/* Element (3, 5) of the first tile of Q, and of P, which is rounded to codes behind its probe; the ends of the format.
 */
static void an_element_that_is_a_code(void **state)
{
    struct trace *t;
    struct err err;
    struct element_code c;
    char lines[CODE_LINES][CODE_LINE_BYTES];
    (void)state;
    assert_int_equal(trace_open("tests/recorded/clean-fp8-mma.safetensors", &t, &err), 0);
    assert_true(element_code(t, (struct place){0, 0, asc_q}, 3, 5, NAN, &c));
    assert_int_equal(c.type, DTYPE_E4M3);
    assert_int_equal(c.code, 0x63);
    assert_float_equal(c.plain, 44, 0);
    assert_float_equal(c.value, 44 * c.scale, 0);
    assert_true(fabs(c.value - c.given) <= 2 * c.scale); /* half of the step there, which is 4 */
    assert_int_equal(c.below.code, 0x62);
    assert_float_equal(c.below.value, 40 * c.scale, 0);
    assert_int_equal(c.above.code, 0x64);
    assert_float_equal(c.above.value, 48 * c.scale, 0);
    element_code_words(&c, lines);
    assert_non_null(strstr(lines[0], "code 0x63 of e4m3 is +44, times the scale"));
    assert_true(element_code(t, (struct place){0, 0, asc_p}, 3, 5, NAN, &c));
    assert_int_equal(c.code, 0x5a);
    assert_float_equal(c.scale, 0x1p-8, 0);
    assert_false(element_code(t, (struct place){0, 0, asc_s}, 3, 5, NAN, &c));
    bool ends = false; /* the largest element of a head is 448 times its scale */
    for (int row = 0; row < t->problem.q_len && row < t->plan.br; row++)
        for (int col = 0; col < t->problem.head_dim; col++)
            if (element_code(t, (struct place){0, 0, asc_q}, row, col, NAN, &c) && fabs(c.plain) >= 448) {
                ends = true;
                assert_int_equal(c.plain > 0 ? c.above.is : c.below.is, false);
                assert_int_equal(c.plain > 0 ? c.below.is : c.above.is, true);
            }
    for (int row = 0; row < t->plan.bc && !ends; row++)
        for (int col = 0; col < t->problem.head_dim; col++)
            ends |= element_code(t, (struct place){0, 0, asc_k}, row, col, NAN, &c) && fabs(c.plain) >= 448;
    assert_true(ends);
    trace_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_element_that_is_a_code),
        cmocka_unit_test(a_live_trace_holds_them),
        cmocka_unit_test(a_debuggee_finds_them),
        cmocka_unit_test(memory_is_filled_anew),
        cmocka_unit_test(a_saved_trace_holds_them),
        cmocka_unit_test(a_trace_without_codes_is_as_before),
        cmocka_unit_test(lies_are_named),
        cmocka_unit_test(the_view_of_what_was_given),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
