/* Inputs as codes: which elements share a scale, where it stands, in either layout and with tails. */
#include "engine/base/format.h"
#include "engine/base/quantize.h"
#include "engine/scenario/scenario.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct asc_problem problem(int layout, int scale_rows)
{
    struct scenario s;
    scenario_init(&s);
    assert_int_equal(scenario_parse_shape("2,4,10,13,8", &s.problem, NULL), 0);
    s.problem.kv_heads = 2;
    s.problem.layout = layout;
    s.problem.dtype = DTYPE_E4M3;
    s.problem.k_dtype = DTYPE_E5M2;
    s.problem.v_dtype = DTYPE_U8;
    s.problem.scale_rows = scale_rows;
    return s.problem;
}

static float amax_of(const struct asc_problem *p, int heads, int rows, const uint16_t *values, const int group[6])
{
    const struct asc_strides s = asc_strides_of(p, heads, rows);
    float amax = 0;
    for (int b = group[0]; b < group[1]; b++)
        for (int h = group[2]; h < group[3]; h++)
            for (int row = group[4]; row < group[5]; row++)
                for (int d = 0; d < p->head_dim; d++)
                    amax = quantize_amax(amax, f16_to_f32(values[s.batch * b + s.head * h + s.row * row + d]));
    return amax;
}

/* The elements that share a scale with (b, h, row), looked for in the plainest way. */
static void check(const struct asc_problem *p, int tensor, enum scenario_scales by)
{
    const int heads = tensor == 0 ? p->heads : p->kv_heads, rows = tensor == 0 ? p->q_len : p->kv_len;
    const enum dtype type = (enum dtype)(tensor == 0 ? p->dtype : tensor == 1 ? p->k_dtype : p->v_dtype);
    const struct asc_strides s = asc_strides_of(p, heads, rows);
    const struct fill fill = {FILL_NORMAL, 2.0, 3};
    const size_t n = fill_tensor_bytes(p, tensor) / 2;
    assert_int_equal(fill_dtype(p, tensor), DTYPE_F16);
    assert_int_equal(n, p->batch * heads * rows * p->head_dim);
    uint16_t *values = malloc(n * sizeof *values);
    uint8_t *codes = malloc(n);
    const size_t scales_bytes = encode_scales_bytes(p, tensor);
    float *scales = malloc(scales_bytes);
    assert_true(values && codes && scales);
    assert_int_equal(scales_bytes / sizeof *scales, p->batch * heads * asc_scale_groups(p, rows));
    assert_int_equal(fill_tensor(p, tensor, &fill, NULL, values), 0);
    memset(scales, 0xFF, scales_bytes);
    encode_tensor(p, tensor, by, values, codes, scales);
    for (int b = 0; b < p->batch; b++)
        for (int h = 0; h < heads; h++)
            for (int row = 0; row < rows; row++) {
                const int span = p->scale_rows ? p->scale_rows : rows, first = row / span * span;
                const int own[6] = {b, b + 1, h, h + 1, first, first + span < rows ? first + span : rows};
                const int all[6] = {0, p->batch, 0, heads, 0, rows};
                const float amax = amax_of(p, heads, rows, values, by == SCALES_TENSOR ? all : own);
                const struct quantizer q = quantizer_of(type, amax, QUANTISE_DIVISION);
                assert_true(scales[asc_scale_at(p, heads, rows, b, h, row)] == q.scale);
                for (int d = 0; d < p->head_dim; d++) {
                    const int64_t at = s.batch * b + s.head * h + s.row * row + d;
                    assert_int_equal(codes[at], quantize_code(&q, f16_to_f32(values[at])));
                }
            }
    free(values);
    free(codes);
    free(scales);
}

static void groups_are_as_asked(void **state)
{
    (void)state;
    static const struct {
        enum scenario_scales by;
        int rows;
    } cases[] = {{SCALES_TENSOR, 0}, {SCALES_HEAD, 0},    {SCALES_BLOCKS, 1},  {SCALES_BLOCKS, 4},
                 {SCALES_BLOCKS, 5}, {SCALES_BLOCKS, 10}, {SCALES_BLOCKS, 13}, {SCALES_BLOCKS, 4096}};
    for (int layout = 0; layout < 2; layout++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            const struct asc_problem p = problem(layout, cases[i].rows);
            for (int tensor = 0; tensor < 3; tensor++)
                check(&p, tensor, cases[i].by);
        }
}

/* What an f16 run of the same scenario is given. */
static void originals_are_those_of_an_f16_run(void **state)
{
    (void)state;
    const struct asc_problem codes = problem(ASC_BHLD, 0);
    struct asc_problem values = codes;
    const struct fill fill = {FILL_OUTLIERS, 1.0, 9};
    values.dtype = values.k_dtype = values.v_dtype = DTYPE_F16;
    for (int tensor = 0; tensor < 3; tensor++) {
        const size_t n = fill_tensor_bytes(&codes, tensor);
        assert_int_equal(n, fill_tensor_bytes(&values, tensor));
        void *a = malloc(n), *b = malloc(n);
        assert_true(a && b);
        assert_int_equal(fill_tensor(&codes, tensor, &fill, NULL, a), 0);
        assert_int_equal(fill_tensor(&values, tensor, &fill, NULL, b), 0);
        assert_memory_equal(a, b, n);
        free(a);
        free(b);
    }
}

static void each_tensor_has_its_own_type(void **state)
{
    (void)state;
    struct asc_problem p = problem(ASC_BHLD, 0);
    p.k_dtype = DTYPE_F32;
    p.v_dtype = DTYPE_BF16;
    assert_int_equal(fill_dtype(&p, 0), DTYPE_F16);
    assert_int_equal(fill_dtype(&p, 1), DTYPE_F32);
    assert_int_equal(fill_dtype(&p, 2), DTYPE_BF16);
    assert_int_equal(fill_tensor_bytes(&p, 0), 2 * 4 * 10 * 8 * 2);
    assert_int_equal(fill_tensor_bytes(&p, 1), 2 * 2 * 13 * 8 * 4);
    assert_int_equal(fill_tensor_bytes(&p, 2), 2 * 2 * 13 * 8 * 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_are_as_asked),
        cmocka_unit_test(originals_are_those_of_an_f16_run),
        cmocka_unit_test(each_tensor_has_its_own_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
