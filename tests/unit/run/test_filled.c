/* Inputs that serve again: what is taken is what filling would make, and nothing else is taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/run/filled.h"
#include "engine/trace/layout.h"
#include <stdlib.h>
#include <string.h>

static struct asc_problem problem(void)
{
    return (struct asc_problem){.batch = 2,
                                .heads = 4,
                                .kv_heads = 2,
                                .q_len = 24,
                                .kv_len = 40,
                                .head_dim = 32,
                                .head_dim_v = 64,
                                .dtype = DTYPE_F16,
                                .k_dtype = DTYPE_F16,
                                .v_dtype = DTYPE_F16};
}

static const struct fill normal = {.kind = FILL_NORMAL, .sigma = 1, .seed = 7};

static void *filled_anew(const struct asc_problem *p, int tensor, const struct fill *fill)
{
    void *values = calloc(1, fill_tensor_bytes(p, tensor) + 1);
    assert_int_equal(fill_tensor(p, tensor, fill, NULL, values), 0);
    return values;
}

static void test_the_same_serves_once(void **state)
{
    (void)state;
    struct filled f = {0};
    const struct asc_problem p = problem();
    for (int tensor = 0; tensor < 3; tensor++) {
        assert_null(filled_take(&f, &p, tensor, &normal));
        void *values = filled_anew(&p, tensor, &normal);
        filled_keep(&f, &p, tensor, &normal, values);
        assert_ptr_equal(filled_take(&f, &p, tensor, &normal), values);
        assert_null(filled_take(&f, &p, tensor, &normal)); /* it is the caller's */
        filled_keep(&f, &p, tensor, &normal, values);
    }
    filled_free(&f);
}

/* Each change that filling sees: other values, or other places for them. */
static void test_another_one_is_not_taken(void **state)
{
    (void)state;
    for (int i = 0; i < 9; i++) {
        struct filled f = {0};
        const struct asc_problem before = problem();
        struct asc_problem p = before;
        struct fill fill = normal;
        filled_keep(&f, &before, TENSOR_K, &normal, filled_anew(&before, TENSOR_K, &normal));
        p.batch += i == 0;
        p.kv_heads += i == 1 ? 2 : 0;
        p.kv_len += i == 2;
        p.head_dim *= i == 3 ? 2 : 1;
        p.k_dtype = i == 4 ? DTYPE_BF16 : p.k_dtype;
        p.layout = i == 5 ? ASC_BLHD : p.layout;
        fill.seed += i == 6;
        fill.sigma *= i == 7 ? 2 : 1;
        fill.kind = i == 8 ? FILL_UNIFORM : fill.kind;
        assert_null(filled_take(&f, &p, TENSOR_K, &fill));
        filled_free(&f);
    }
}

/* Q's rows are not K's: lengths of queries do not matter to K. */
static void test_what_a_tensor_does_not_have_may_change(void **state)
{
    (void)state;
    struct filled f = {0};
    struct asc_problem p = problem();
    void *values = filled_anew(&p, TENSOR_K, &normal);
    filled_keep(&f, &p, TENSOR_K, &normal, values);
    p.q_len *= 2;
    void *taken = filled_take(&f, &p, TENSOR_K, &normal), *anew = filled_anew(&p, TENSOR_K, &normal);
    assert_ptr_equal(taken, values);
    assert_memory_equal(taken, anew, fill_tensor_bytes(&p, TENSOR_K));
    free(taken);
    free(anew);
    filled_free(&f);
}

static void test_not_more_than_there_is_room_for(void **state)
{
    (void)state;
    struct filled f = {0};
    struct asc_problem p = problem();
    p.q_len = p.kv_len = 1 << 20;
    p.head_dim_v = p.head_dim; /* of K and V the bytes are 2 2 2^20 32 2 = 256 MiB each */
    filled_keep(&f, &p, TENSOR_K, &normal, malloc(1));
    assert_non_null(f.of[TENSOR_K].values);
    filled_keep(&f, &p, TENSOR_V, &normal, malloc(1));
    assert_null(f.of[TENSOR_V].values);
    filled_free(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_same_serves_once),
                                       cmocka_unit_test(test_another_one_is_not_taken),
                                       cmocka_unit_test(test_what_a_tensor_does_not_have_may_change),
                                       cmocka_unit_test(test_not_more_than_there_is_room_for)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
