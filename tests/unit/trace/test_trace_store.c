/* Memory that serves one trace after another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/base/pool.h"
#include "engine/trace/trace_store.h"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* One head of 20 queries and kv_len keys, D = 8; sizes that leave gaps between the parts. */
static bool values_later;

static struct trace *make(struct trace_store *store, int kv_len, int value)
{
    const struct asc_problem p = {.batch = 1,
                                  .heads = 3,
                                  .kv_heads = 1,
                                  .q_len = 20,
                                  .kv_len = kv_len,
                                  .head_dim = 8,
                                  .head_dim_v = 8,
                                  .dtype = DTYPE_F16,
                                  .window_left = -1,
                                  .window_right = -1,
                                  .scale = 1};
    const struct asc_plan plan = {.br = 8, .bc = 8, .threads = 64};
    const struct asc_conventions conventions = {0};
    static const int32_t slots[2][3] = {{0, 0, 0}, {0, 2, 2}};
    struct layout_types types = {.o = DTYPE_F16};
    static unsigned char input[1 << 19];
    struct trace *t = NULL;
    struct err err = {0};
    const struct trace_inputs inputs = {.of = {input, input, input}, .values_later = values_later};
    memset(input, value, sizeof input);
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        types.channel[ch] = DTYPE_F32;
    types.channel[asc_p] = DTYPE_E4M3;
    types.channel[asc_alpha] = -1;
    if (trace_create_in(store, &p, &plan, &conventions, &types, slots, 2, &inputs, &t, &err) != 0)
        fail_msg("%s: %s", err.where, err.message);
    return t;
}

static ino_t file_of(const struct trace *t)
{
    struct stat status;
    assert_int_equal(fstat(t->fd, &status), 0);
    return status.st_ino;
}

/* A run that writes everywhere. */
static void scribble(const struct trace *t)
{
    unsigned char *bytes = mmap(NULL, t->n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, t->fd, 0);
    assert_true(bytes != MAP_FAILED);
    memset(bytes, 0xAB, t->n_bytes);
    munmap(bytes, t->n_bytes);
}

static void ended(struct trace *t, enum run_status status)
{
    scribble(t);
    t->info.status = (int32_t)status;
    trace_free(t);
}

static void test_nothing_survives(void **state)
{
    (void)state;
    struct trace_store *store = trace_store_new(NULL);
    struct trace *t = make(store, 24, 1);
    const ino_t file = file_of(t);
    ended(t, RUN_COMPLETE);
    t = make(store, 24, 2);
    assert_int_equal(file_of(t), file); /* what a debuggee has mapped is this very file */
    struct trace *fresh = make(NULL, 24, 2);
    assert_int_not_equal(file_of(fresh), file);
    assert_int_equal(t->n_bytes, fresh->n_bytes);
    assert_memory_equal(t->bytes, fresh->bytes, t->n_bytes);
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        assert_int_equal(trace_dropped(t, ch) + trace_mistyped(t, ch) + trace_unfed(t, ch), 0);
        assert_int_equal(trace_first_stamp(t, ch, 1, 2), 0);
    }
    trace_free(fresh);
    trace_free(t);
    trace_store_free(store);
}

/* A trace of several MiB, so that each thread has some of it; the second one in memory that was used. */
static void test_threads_fill_the_same(void **state)
{
    (void)state;
    struct pool *pool = NULL;
    assert_int_equal(pool_new(3, &pool, NULL), 0);
    struct trace_store *store = trace_store_new(pool);
    struct trace *want = make(NULL, 20000, 7);
    assert_true(want->n_bytes > 6 << 20);
    for (int i = 0; i < 2; i++) {
        struct trace *t = make(store, 20000, 7);
        assert_memory_equal(t->bytes, want->bytes, want->n_bytes);
        ended(t, RUN_COMPLETE);
    }
    trace_free(want);
    trace_store_free(store);
    pool_free(pool);
}

/* What an earlier run left there goes when it is asked to, all else at once. */
static void test_values_are_filled_later(void **state)
{
    (void)state;
    struct trace_store *store = trace_store_new(NULL);
    struct trace *fresh = make(NULL, 24, 2);
    ended(make(store, 24, 1), RUN_COMPLETE);
    values_later = true;
    struct trace *t = make(store, 24, 2);
    values_later = false;
    const uint64_t begin = t->layout.values_offset;
    assert_memory_equal(t->bytes, fresh->bytes, begin);
    for (uint64_t i = begin; i < t->n_bytes; i++)
        assert_int_equal(t->bytes[i], 0xAB);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(trace_fill_values(t, NULL), 0);
        assert_memory_equal(t->bytes, fresh->bytes, t->n_bytes);
        assert_false(t->values_later);
    }
    trace_free(fresh);
    trace_free(t);
    trace_store_free(store);
}

static void test_another_size_is_another_file(void **state)
{
    (void)state;
    struct trace_store *store = trace_store_new(NULL);
    struct trace *t = make(store, 24, 1);
    const ino_t file = file_of(t);
    ended(t, RUN_COMPLETE);
    t = make(store, 16, 2);
    assert_int_not_equal(file_of(t), file);
    trace_free(t);
    trace_store_free(store);
}

/* The child of a run that was stopped may write on. */
static void test_stopped_runs_leave_nothing(void **state)
{
    (void)state;
    static const enum run_status statuses[] = {RUN_CRASHED, RUN_HUNG, RUN_CANCELLED};
    for (int i = 0; i < 3; i++) {
        struct trace_store *store = trace_store_new(NULL);
        struct trace *held = make(store, 24, 1);
        const ino_t file = file_of(held);
        const int fd = dup(held->fd); /* so that the number is not given to a new file */
        ended(held, statuses[i]);
        held = make(store, 24, 1);
        assert_int_not_equal(file_of(held), file);
        trace_free(held);
        close(fd);
        trace_store_free(store);
    }
}

static void test_two_at_once(void **state)
{
    (void)state;
    struct trace_store *store = trace_store_new(NULL);
    struct trace *a = make(store, 24, 1), *b = make(store, 24, 1);
    const ino_t file_a = file_of(a), file_b = file_of(b);
    assert_int_not_equal(file_a, file_b);
    ended(a, RUN_COMPLETE);
    struct trace *c = make(store, 24, 1);
    assert_int_equal(file_of(c), file_a);
    ended(b, RUN_COMPLETE);
    ended(c, RUN_COMPLETE); /* one is kept: the last one */
    a = make(store, 24, 1);
    assert_int_equal(file_of(a), file_a);
    /* The store's owner may go first. */
    trace_store_free(store);
    ended(a, RUN_COMPLETE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_survives),           cmocka_unit_test(test_threads_fill_the_same),
        cmocka_unit_test(test_values_are_filled_later),    cmocka_unit_test(test_another_size_is_another_file),
        cmocka_unit_test(test_stopped_runs_leave_nothing), cmocka_unit_test(test_two_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
