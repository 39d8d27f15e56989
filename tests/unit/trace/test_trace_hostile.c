/* A saved trace cut short, flipped and rewritten: trace_open refuses it with a sentence, or every accessor stays inside
   the file. Files are memfds, opened by their path below /proc. */
#include "engine/base/safetensors.h"
#include "engine/trace/trace.h"
#include "tests/unit/lib/temporary.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static unsigned char *good; /* a whole file */
static size_t good_bytes;
static int fd = -1;
static char path[64];

static void put_file(const unsigned char *bytes, size_t n)
{
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(pwrite(fd, bytes, n, 0), (ssize_t)n);
}

static void inside(const struct trace *t, const void *data, uint64_t n)
{
    const unsigned char *at = data;
    assert_true(at >= t->bytes && n <= t->n_bytes && (size_t)(at - t->bytes) <= t->n_bytes - n);
}

/* Visits everything an honest reader would. */
static void walk(const struct trace *t)
{
    enum dtype dtype;
    const struct asc_problem *p = &t->problem;
    const uint64_t q = (uint64_t)p->batch * (uint64_t)p->heads * (uint64_t)p->q_len;
    const void *o = trace_tensor(t, 'o', &dtype);
    inside(t, o, q * (uint64_t)p->head_dim * dtype_bytes(dtype));
    inside(t, trace_tensor(t, 'L', &dtype), q * 4);
    for (int slot = 0; slot < t->layout.n_slots; slot++) {
        const int32_t *place = trace_slot_place(t, slot);
        assert_int_equal(trace_slot(t, place[0], place[1], place[2]), slot);
        for (int ch = 0; ch < ASC_CHANNELS; ch++) {
            (void)trace_dropped(t, ch);
            (void)trace_site(t, ch);
            for (int kv = 0; kv < t->layout.kv_tiles; kv++) {
                const struct tile tile = trace_tile(t, ch, slot, kv);
                (void)trace_first_stamp(t, ch, slot, kv);
                if (tile.data)
                    inside(t, tile.data, (uint64_t)tile.rows * (uint64_t)tile.cols * dtype_bytes(tile.dtype));
            }
        }
    }
}

/* 1: it opened. */
static int try_file(const unsigned char *bytes, size_t n)
{
    struct trace *t = NULL;
    struct err err = {0};
    put_file(bytes, n);
    if (trace_open(path, &t, &err) == 0) {
        walk(t);
        trace_free(t);
        return 1;
    }
    assert_null(t);
    assert_true(err.code == ERR_INPUT || err.code == ERR_ABI);
    assert_true(strncmp(err.where, path, strlen(path)) == 0);
    assert_true(*err.message);
    for (const char *c = err.message; *c; c++)
        assert_in_range((unsigned char)*c, 0x20, 0x7E);
    return 0;
}

static void truncation_is_refused(void **state)
{
    (void)state;
    assert_int_equal(try_file(good, good_bytes), 1);
    for (size_t n = 1; n < good_bytes; n += n < 64 ? 1 : 7)
        assert_int_equal(try_file(good, n), 0);
    assert_int_equal(try_file(good, good_bytes - 1), 0);
}

static void flipped_bytes_never_crash(void **state)
{
    (void)state;
    uint64_t draws = 1;
    unsigned char *bytes = malloc(good_bytes);
    assert_non_null(bytes);
    int opened = 0;
    uint64_t header_bytes = 0;
    memcpy(&header_bytes, good, 8);
    for (int i = 0; i < 8000; i++) {
        memcpy(bytes, good, good_bytes);
        const int flips = 1 + i % 4;
        for (int f = 0; f < flips; f++) {
            draws = draws * 6364136223846793005u + 1442695040888963407u;
            /* Most go into the header, where they can do harm; some become digits, so that numbers change. */
            const size_t at = (draws >> 33) % (i % 8 ? header_bytes + 8 : good_bytes);
            const unsigned char value = (unsigned char)(draws >> 24);
            bytes[at] = i % 3 && bytes[at] >= '0' && bytes[at] <= '9' ? (unsigned char)('0' + value % 10) : value;
        }
        opened += try_file(bytes, good_bytes);
    }
    free(bytes);
    assert_in_range(opened, 100, 7900); /* both ways were taken */
}

/* Replaces the first occurrence of a text in the header by another of at most its length, padded with spaces. */
/* The file with one text in it replaced by another of at most its length. */
static int open_rewritten(const char *from, const char *to, struct trace **t, struct err *err)
{
    unsigned char *bytes = malloc(good_bytes);
    assert_non_null(bytes);
    memcpy(bytes, good, good_bytes);
    unsigned char *at = memmem(bytes, good_bytes, from, strlen(from));
    assert_non_null(at);
    assert_true(strlen(to) <= strlen(from));
    memset(at, ' ', strlen(from));
    memcpy(at, to, strlen(to));
    put_file(bytes, good_bytes);
    free(bytes);
    return trace_open(path, t, err);
}

static void rewritten(const char *from, const char *to, const char *words)
{
    struct trace *t = NULL;
    struct err err = {0};
    assert_int_equal(open_rewritten(from, to, &t, &err), -1);
    if (!strstr(err.message, words))
        fail_msg("'%s' does not say '%s'", err.message, words);
}

static void lies_are_named(void **state)
{
    (void)state;
    rewritten("\"attnscope.format\":\"3\"", "\"attnscope.format\":\"1\"", "is a trace of format 1");
    rewritten("\"attnscope.format\":\"3\"", "\"attnscope.farmat\":\"1\"", "not an attnscope trace");
    rewritten("\\\"has_sink\\\":0", "\\\"has_sink\\\":2", "has_sink is 2");
    rewritten("\\\"has_sink\\\":0", "\\\"has_sink\\\":1", "tensor 'input.sink' is missing");
    rewritten("\\\"kv_splits\\\":0", "\\\"kv_split\\\" :0", "kv_splits must be a 32-bit integer");
    rewritten("attnscope.plan", "attnscope.plam", "metadata attnscope.plan is missing");
    rewritten("channel.s", "channel.x", "tensor 'channel.s' is missing");
    rewritten("stamp.s", "stamp.x", "tensor 'stamp.s' is missing");
    rewritten("\"slot\"", "\"slut\"", "no tensor 'slot'");
    rewritten("dropped", "drupped", "tensor 'dropped' is missing");
    rewritten("\\\"q_len\\\":6", "\\\"q_len\\\":8", "expected [1, 2, 8");
    rewritten("\\\"heads\\\":2", "\\\"heads\\\":0", "heads is 0");
    rewritten("\\\"bc\\\":4", "\\\"bc\\\":2", "expected [2, 3, ");
    rewritten("\\\"br\\\":4", "\\\"br\\\":0", "br and bc are 1 to 1024");
    rewritten("\\\"scaled\\\"", "\\\"sealed\\\"", "s_unit must be one of the names");
    rewritten("\\\"scale\\\":0.5", "\\\"scale\\\":[0]", "scale must be a finite number");
    rewritten("\\\"s\\\":\\\"f32\\\"", "\\\"s\\\":\\\"f16\\\"", "tensor 'channel.s' is of type F32; expected F16");
    rewritten("\\\"s\\\":\\\"f32\\\"", "\\\"y\\\":\\\"f32\\\"", "must be the names of channels");
    rewritten("\\\"workers\\\":3", "\\\"workers\\\":x", "is not valid JSON");
    rewritten("\\\"threads\\\":32", "\\\"threads\\\":64", "tensor 'stamp.");
    rewritten("\\\"m_lag\\\":0.0", "\\\"m_lag\\\":99 ", "m_lag is 99; it must be 0 to 64");
    rewritten("\\\"m_lag\\\":0.0", "\\\"m_lag\\\":[]", "m_lag must be a finite number");
    rewritten("\\\"p_offset\\\":0", "\\\"p_offset\\\":{", "is not valid JSON");
    rewritten("\\\"l_lanes\\\":0", "\\\"l_lanes\\\":2", "tensor 'channel.l' has shape");
    rewritten("\\\"natural\\\"", "\\\"unusual\\\"", "lse_base2 must be one of the names");
    rewritten("\\\"registers\\\":-1", "\\\"registers\\\":-2", "metadata attnscope.launches: registers must be as");
    rewritten("\\\"warp_slots\\\":-1", "\\\"warp_slots\\\":[]", "attnscope.launches: warp_slots must be as");
}

/* Traces outlive the version that wrote them: conventions that it did not know have their defaults. */
static void younger_conventions_may_lack(void **state)
{
    (void)state;
    static const char *const lacking[][2] = {{"\\\"s_unit\\\":", "\\\"x_unit\\\":"},
                                             {"\\\"m_lag\\\":", "\\\"x_lag\\\":"}};
    struct trace *t = NULL;
    struct err err = {0};
    for (size_t i = 0; i < sizeof lacking / sizeof *lacking; i++) {
        if (open_rewritten(lacking[i][0], lacking[i][1], &t, &err) != 0)
            fail_msg("%s: %s", err.where, err.message);
        assert_int_equal(t->conventions.s_unit, i == 0 ? ASC_UNIT_RAW : ASC_UNIT_SCALED);
        assert_true(t->conventions.m_lag == 0);
        trace_free(t);
    }
}

static void slot_tables_are_checked(void **state)
{
    (void)state;
    struct trace *t = NULL;
    assert_int_equal((put_file(good, good_bytes), trace_open(path, &t, NULL)), 0);
    const size_t slots = t->layout.slots.offset;
    trace_free(t);
    static const struct {
        int at;
        int32_t value;
        const char *words;
    } cases[] = {{0, 1, "no batch 1"}, {1, -1, "head -1"}, {2, 2, "q tile 2"}, {4, 0, "slots 0 and 1 are both"}};
    for (int i = 0; i < 4; i++) {
        struct err err = {0};
        unsigned char *bytes = malloc(good_bytes);
        assert_non_null(bytes);
        memcpy(bytes, good, good_bytes);
        memcpy(bytes + slots + 4 * (size_t)cases[i].at, &cases[i].value, 4);
        put_file(bytes, good_bytes);
        assert_int_equal(trace_open(path, &t, &err), -1);
        assert_non_null(strstr(err.message, cases[i].words));
        free(bytes);
    }
}

/* The file again with its data one byte further on: parsed, but every tensor is misaligned. */
static void misaligned_tensors_are_refused(void **state)
{
    (void)state;
    uint64_t header_bytes = 0;
    struct trace *t = NULL;
    struct err err = {0};
    memcpy(&header_bytes, good, 8);
    unsigned char *bytes = malloc(good_bytes + 1);
    assert_non_null(bytes);
    memcpy(bytes, good, 8 + header_bytes);
    bytes[8 + header_bytes] = ' ';
    memcpy(bytes + 9 + header_bytes, good + 8 + header_bytes, good_bytes - 8 - header_bytes);
    header_bytes++;
    memcpy(bytes, &header_bytes, 8);
    put_file(bytes, good_bytes + 1);
    free(bytes);
    assert_int_equal(trace_open(path, &t, &err), -1);
    assert_non_null(strstr(err.message, "not a multiple of its element size"));
}

static void what_is_no_file_is_refused(void **state)
{
    (void)state;
    struct trace *t = NULL;
    struct err err = {0};
    assert_int_equal(trace_open("/nonexistent.safetensors", &t, &err), -1);
    assert_int_equal(err.code, ERR_INPUT);
    assert_int_equal(trace_open("/tmp", &t, &err), -1);
    assert_int_equal(err.code, ERR_INPUT);
    assert_int_equal(trace_open("/dev/zero", &t, &err), -1);
    assert_non_null(strstr(err.message, "not a regular file"));
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(trace_open(path, &t, &err), -1);
    assert_non_null(strstr(err.message, "empty"));
}

static const struct asc_problem small = {.batch = 1,
                                         .heads = 2,
                                         .kv_heads = 1,
                                         .q_len = 6,
                                         .kv_len = 6,
                                         .head_dim = 4,
                                         .head_dim_v = 4,
                                         .dtype = DTYPE_F16,
                                         .window_left = -1,
                                         .window_right = -1,
                                         .scale = 0.5f};
static const struct asc_plan small_plan = {.br = 4, .bc = 4, .threads = 32};
static const struct asc_conventions small_conventions = {.s_unit = ASC_UNIT_SCALED};

static struct layout_types small_types(void)
{
    struct layout_types types = {.o = DTYPE_F16};
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        types.channel[ch] = DTYPE_F32;
    return types;
}

/* There would be no place to show. */
static void no_slots_are_refused(void **state)
{
    (void)state;
    const int32_t slots[1][3] = {{0, 0, 0}};
    const uint16_t zeros[48] = {0};
    const struct layout_types types = small_types();
    struct trace *t = NULL;
    struct err err = {0};
    char name[TEMPORARY];
    close(mkstemp(temporary(name, "no-slots")));
    assert_int_equal(
        trace_create(&small, &small_plan, &small_conventions, &types, slots, 0, zeros, zeros, zeros, &t, NULL), 0);
    assert_int_equal(trace_save(t, name, NULL), 0);
    trace_free(t);
    assert_int_equal(trace_open(name, &t, &err), -1);
    assert_int_equal(err.code, ERR_INPUT);
    assert_non_null(strstr(err.message, "its tensor 'slot' is empty"));
    unlink(name);
}

static int set_up(void **state)
{
    (void)state;
    const int32_t slots[2][3] = {{0, 0, 1}, {0, 1, 1}};
    const uint16_t zeros[48] = {0};
    const struct layout_types types = small_types();
    struct trace *t = NULL;
    char name[TEMPORARY];
    fd = mkstemp(temporary(name, "hostile"));
    if (fd < 0 ||
        trace_create(&small, &small_plan, &small_conventions, &types, slots, 2, zeros, zeros, zeros, &t, NULL) != 0)
        return -1;
    t->info.workers = 3;
    t->info.source = strdup("kernel");
    t->info.sites = calloc(1, sizeof *t->info.sites);
    t->info.events = calloc(1, sizeof *t->info.events);
    t->info.n_sites = t->info.n_events = 1;
    t->info.launches.at = calloc(1, sizeof *t->info.launches.at);
    launch_init(t->info.launches.at);
    t->info.launches.n = 1;
    const int saved = trace_save(t, name, NULL);
    trace_free(t);
    close(fd);
    fd = open(name, O_RDONLY);
    good_bytes = (size_t)lseek(fd, 0, SEEK_END);
    good = malloc(good_bytes);
    const ssize_t n = good ? pread(fd, good, good_bytes, 0) : -1;
    close(fd);
    unlink(name);
    fd = memfd_create("hostile", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return saved == 0 && n == (ssize_t)good_bytes && fd >= 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    free(good);
    return close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(truncation_is_refused),
        cmocka_unit_test(flipped_bytes_never_crash),
        cmocka_unit_test(lies_are_named),
        cmocka_unit_test(younger_conventions_may_lack),
        cmocka_unit_test(slot_tables_are_checked),
        cmocka_unit_test(misaligned_tensors_are_refused),
        cmocka_unit_test(what_is_no_file_is_refused),
        cmocka_unit_test(no_slots_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
