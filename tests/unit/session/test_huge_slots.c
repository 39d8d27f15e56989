/* One q tile of very many kv tiles: the work grows with their number and not with its square, and it moves. Work is
   counted, by what is asked where: case.c and schedule.c are compiled in here, with a counter in asc_state_of() and
   trace_state(). */
#include "engine/trace/trace.h"

static long asked;

static inline int32_t counted_state_of(const struct asc_plan *plan, const int32_t *states, int32_t kv_tiles,
                                       int32_t tile)
{
    asked++;
    return asc_state_of(plan, states, kv_tiles, tile);
}

static int counted_trace_state(const struct trace *t, int slot, int kv)
{
    asked++;
    return trace_state(t, slot, kv);
}

#define asc_state_of counted_state_of
#define trace_state counted_trace_state
#include "engine/oracle/schedule.c" // NOLINT(bugprone-suspicious-include): with the counter
#include "engine/verdict/case.c"    // NOLINT(bugprone-suspicious-include): as above
#undef asc_state_of
#undef trace_state

#include "engine/session/session.h"
#include "tests/unit/lib/temporary.h"
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { BC = 8, DIM = 8 };

/* One slot that nobody wrote, of zeros. */
static struct trace *one_slot(int kv_tiles, int kv_splits, int rows)
{
    const struct asc_problem p = {.batch = 1,
                                  .heads = 1,
                                  .kv_heads = 1,
                                  .q_len = rows,
                                  .kv_len = kv_tiles * BC,
                                  .head_dim = DIM,
                                  .head_dim_v = DIM,
                                  .window_left = -1,
                                  .window_right = -1,
                                  .dtype = DTYPE_F32,
                                  .k_dtype = DTYPE_F32,
                                  .v_dtype = DTYPE_F32,
                                  .scale = 1};
    const struct asc_plan plan = {.br = rows, .bc = BC, .threads = 32, .kv_splits = kv_splits};
    const struct asc_conventions conventions = {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED};
    const int32_t slots[1][3] = {{0, 0, 0}};
    struct layout_types types = {.o = DTYPE_F32};
    struct trace *t = NULL;
    struct err err = {0};
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        types.channel[ch] = ch == asc_m ? DTYPE_F32 : -1;
    float *zeros = calloc((size_t)(p.kv_len + rows) * DIM, sizeof *zeros);
    assert_non_null(zeros);
    if (trace_create(&p, &plan, &conventions, &types, slots, 1, zeros, zeros, zeros, &t, &err) != 0)
        fail_msg("%s: %s", err.where, err.message);
    free(zeros);
    t->info.status = RUN_COMPLETE;
    return t;
}

/* Kernels whose q tile lies at the end begin with the last kv tile. */
static void last_tile_first(void **state)
{
    enum { TILES = 20000 };
    (void)state;
    struct trace *t = one_slot(TILES, 0, 1);
    unsigned char *mapped = mmap(NULL, t->n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, t->fd, 0);
    int *order = calloc(TILES, sizeof *order);
    assert_true(mapped != MAP_FAILED);
    assert_non_null(order);
    for (int kv = 0; kv < TILES; kv++) {
        const uint64_t stamp = (uint64_t)(TILES - kv);
        memcpy(mapped + ((const unsigned char *)trace_stamps(t, asc_m, 0, kv) - t->bytes), &stamp, sizeof stamp);
    }
    asked = 0;
    assert_int_equal(visiting_order(t, 0, order), TILES);
    assert_in_range(asked, 1, 100L * TILES);
    for (int i = 0; i < TILES; i++)
        assert_int_equal(order[i], TILES - 1 - i);
    free(order);
    munmap(mapped, t->n_bytes);
    trace_free(t);
}

/* Warps that leave tiles out run apart: which tile came first their rows say, not who was first of all. */
static void rows_say_which_came_first(void **state)
{
    enum { TILES = 3, ROWS = 2 };
    (void)state;
    static const float m[2][TILES][ROWS] = {{{1, 0}, {2, 5}, {3, 6}}, {{1, 4}, {2, 3}, {3, 0}}}; /* 0: left out */
    static const int wanted[2][TILES] = {{0, 1, 2}, {1, 0, 2}};
    for (int i = 0; i < 2; i++) {
        struct trace *t = one_slot(TILES, 0, ROWS);
        unsigned char *mapped = mmap(NULL, t->n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, t->fd, 0);
        int order[TILES];
        assert_true(mapped != MAP_FAILED);
        for (int kv = 0; kv < TILES; kv++) {
            static const uint64_t stamps[] = {3, 1,
                                              2}; /* the second warp has two tiles behind it when the first begins */
            memcpy(mapped + ((const unsigned char *)trace_stamps(t, asc_m, 0, kv) - t->bytes), &stamps[kv],
                   sizeof stamps[kv]);
            for (int row = 0; row < ROWS; row++)
                if (m[i][kv][row] > 0)
                    memcpy(mapped + ((const unsigned char *)trace_tile(t, asc_m, 0, kv).data - t->bytes) +
                               (size_t)row * sizeof(float),
                           &m[i][kv][row], sizeof(float));
        }
        assert_int_equal(visiting_order(t, 0, order), TILES);
        for (int kv = 0; kv < TILES; kv++)
            assert_int_equal(order[kv], wanted[i][kv]);
        munmap(mapped, t->n_bytes);
        trace_free(t);
    }
}

/* How many splits there are is asked at every one of them. */
static void as_many_splits_as_tiles(void **state)
{
    enum { TILES = 20000 };
    (void)state;
    struct trace *t = one_slot(TILES, TILES, 1);
    struct slot_case c;
    int splits = 0;
    assert_int_equal(slot_case_make(t, 0, &c), 0);
    asked = 0;
    while (splits < schedule_splits(&c.c))
        splits++;
    assert_int_equal(splits, TILES);
    assert_in_range(asked, 1, 100L * TILES);
    c.c.kv_deal = ASC_DEAL_ROUND_ROBIN;
    assert_int_equal(schedule_splits(&c.c), TILES);
    c.c.kv_splits = 3;
    assert_int_equal(schedule_splits(&c.c), 3);
    slot_case_free(&c);
    trace_free(t);
}

/* Nobody asks of every split which of all tiles and visits are its own: where none was visited, and where all were. */
static void every_split_takes_its_own(void **state)
{
    enum { TILES = 12500 };
    (void)state;
    struct trace *t = one_slot(TILES, TILES, 1);
    struct judge_scratch *scratch = judge_scratch_new();
    struct tile_verdicts *verdicts = calloc((size_t)TILES * ASC_CHANNELS, sizeof *verdicts);
    struct case_step *steps = calloc(TILES, sizeof *steps);
    double *row = calloc((size_t)3 * TILES, sizeof *row);
    struct slot_case c;
    assert_true(scratch && verdicts && steps && row);
    assert_int_equal(slot_case_make(t, 0, &c), 0);
    for (int i = 0; i < 4; i++) {
        asked = 0;
        c.c.kv_deal = i % 2 ? ASC_DEAL_ROUND_ROBIN : ASC_DEAL_RANGES;
        c.c.n_visited = i < 2 ? 0 : TILES;
        for (int kv = 0; kv < TILES; kv++)
            c.order[kv] = TILES - 1 - kv;
        assert_int_equal(judge_case(&c.c, scratch, verdicts, NULL), 0);
        assert_int_equal(row_state_want(&c.c, 0, row, row + TILES, row + (ptrdiff_t)2 * TILES), 0);
        assert_int_equal(steps_list(&c.c, steps), c.c.n_visited);
        for (int kv = 0; kv < TILES; kv++)
            assert_in_range(schedule_nth(&c.c, kv), 0, TILES - 1);
        assert_in_range(asked, 1, 100L * TILES);
    }
    free(row);
    free(steps);
    free(verdicts);
    judge_scratch_free(scratch);
    slot_case_free(&c);
    trace_free(t);
}

/* The lists hold what asking every tile and every visit gives. */
static void lists_are_what_is_asked(void **state)
{
    enum { MOST = 23 };
    (void)state;
    for (int tiles = 1; tiles < MOST; tiles++)
        for (int i = 0; i < 4 * (tiles + 3); i++) {
            int order[2 * MOST], room[8 * MOST], nth = 0, listed = 0;
            struct schedule_lists lists;
            struct oracle_case c = {.kv_tiles = tiles, .order = order, .kv_splits = i / 4, .kv_deal = i % 2};
            for (int k = 0; k < tiles; k++) /* some twice, some never, one there is not */
                order[k] = k * (7 + i) % (tiles + 1) / (i % 4 < 2 ? 1 : 2);
            assert_in_range(schedule_lists_room(&c) + (size_t)tiles, 1, sizeof room / sizeof *room);
            for (int split = 0; split < schedule_splits(&c); split++)
                for (int kv = 0; kv < tiles; kv++)
                    if (schedule_split(&c, kv) == split)
                        assert_int_equal(schedule_nth(&c, nth++), kv);
            assert_int_equal(nth, tiles);
            c.n_visited = tiles;
            schedule_lists_make(&c, room, &lists);
            assert_int_equal(lists.splits, schedule_splits(&c));
            for (int split = 0; split < lists.splits; split++) {
                int kv = lists.first_tile[split], at = lists.first_visit[split], last = -1, seen[MOST] = {0};
                for (int k = 0; k < tiles; k++)
                    if (schedule_split(&c, k) == split) {
                        assert_int_equal(kv, k);
                        kv = lists.next_tile[kv];
                    }
                for (int k = 0; k < tiles; k++) {
                    if (order[k] >= tiles || schedule_split(&c, order[k]) != split)
                        continue;
                    last = order[k];
                    if (seen[order[k]]++)
                        continue;
                    assert_int_equal(at, k);
                    at = lists.next_visit[at];
                    listed++;
                }
                assert_int_equal(kv, -1);
                assert_int_equal(at, -1);
                assert_int_equal(lists.last_tile[split], last);
            }
            assert_true(listed > 0);
        }
}

static struct session *open_huge(int kv_tiles)
{
    char path[TEMPORARY];
    struct trace *t = one_slot(kv_tiles, 0, 1);
    struct session *s = NULL;
    struct err err = {0};
    const int fd = mkstemp(temporary(path, "huge"));
    assert_true(fd >= 0);
    close(fd);
    if (trace_save(t, path, &err) != 0 || session_open_trace(path, &s, &err) != 0)
        fail_msg("%s: %s", err.where, err.message);
    unlink(path);
    trace_free(t);
    assert_int_equal(session_start(s), 0);
    return s;
}

static void take_news(struct session *s)
{
    poll(&(struct pollfd){.fd = session_fd(s), .events = POLLIN}, 1, 100);
    session_update(s);
}

/* The bar of a run of one slot moves while that is judged. */
static void progress_within_a_slot(void **state)
{
    enum { TILES = 30000 };
    (void)state;
    struct session *s = open_huge(TILES);
    int between = 0;
    s->tile.unseen = 1;
    while (session_busy(s)) {
        take_news(s);
        between += s->job.step == STEP_JUDGING && s->job.total == TILES && s->job.done > 0 && s->job.done < TILES;
    }
    assert_int_equal(s->job.err.code, ERR_NONE);
    assert_in_range(between, 1, 1000000);
    session_free(s);
}

/* A verb comes back before the values of its tile are there; they come by themselves, or are stopped. */
static void values_of_a_tile_come_later(void **state)
{
    enum { TILES = 30000 };
    (void)state;
    struct session *s = open_huge(TILES);
    double share = -1, seconds = -1;
    s->tile.unseen = 1;
    session_finish(s, 0);
    s->tile.unseen = 0;
    s->tile.patience_s = 1e-9;
    s->at.cursor.channel = asc_m;
    assert_int_equal(session_step_kv(s, 1), 1);
    assert_null(s->tile.detail.got);
    assert_int_equal(session_values_under_way(s, &share, &seconds), 1);
    assert_true(share >= 0 && share < 1);
    while (!s->tile.detail.got)
        take_news(s);
    assert_int_equal(s->tile.detail.kv, 1);

    assert_int_equal(session_step_kv(s, 1), 1);
    assert_int_equal(session_stop_values(s), 1);
    while (session_values_under_way(s, &share, &seconds))
        take_news(s);
    assert_null(s->tile.detail.got); /* stopped: nothing is asked again before the cursor moves */
    assert_false(session_lacks_memory(s));

    s->tile.patience_s = 0; /* as `show` has it */
    assert_int_equal(session_step_kv(s, 1), 1);
    assert_int_equal(s->tile.detail.kv, 3);
    assert_non_null(s->tile.row_want[asc_m]);
    session_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(last_tile_first),
        cmocka_unit_test(rows_say_which_came_first),
        cmocka_unit_test(as_many_splits_as_tiles),
        cmocka_unit_test(every_split_takes_its_own),
        cmocka_unit_test(lists_are_what_is_asked),
        cmocka_unit_test(progress_within_a_slot),
        cmocka_unit_test(values_of_a_tile_come_later),
    };
    return cmocka_run_group_tests_name("huge_slots", tests, NULL, NULL);
}
