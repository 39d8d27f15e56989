/* Traces that cannot be made, saved or attached to: each is refused with a sentence, and nothing is left behind. */
#include "engine/trace/live.h"
#include "tests/unit/lib/small_trace.h"
#include "tests/unit/lib/temporary.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
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

static void refuses_to_create(const int32_t (*slots)[3], int n, const char *words)
{
    const uint16_t zeros[240] = {0};
    const struct layout_types types = small_types();
    struct trace *t = NULL;
    struct err err = {0};
    assert_int_equal(
        trace_create(&small, &small_plan, &small_conventions, &types, slots, n, zeros, zeros, zeros, &t, &err), -1);
    assert_null(t);
    assert_non_null(strstr(err.message, words));
}

static void wrong_slots_are_refused(void **state)
{
    (void)state;
    refuses_to_create((const int32_t[][3]){{0, 4, 0}}, 1, "slot 0: no batch 0, head 4");
    refuses_to_create((const int32_t[][3]){{0, 0, 0}, {0, 0, 3}}, 2, "slot 1: no batch 0, head 0, q tile 3");
    refuses_to_create((const int32_t[][3]){{0, 0, 1}, {0, 1, 1}, {0, 0, 1}}, 3, "slots 0 and 2 are both");
    refuses_to_create((const int32_t[][3]){{-1, 0, 0}}, 1, "no batch -1");
}

/* Limits the size of files this process may write; returns the old limit. */
static struct rlimit limit_files(rlim_t bytes)
{
    struct rlimit old, now;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    now = old;
    now.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &now), 0);
    return old;
}

static void no_space_is_an_error_not_a_crash(void **state)
{
    (void)state;
    const uint16_t zeros[240] = {0};
    const struct layout_types types = small_types();
    struct trace *t = NULL;
    struct err err = {0};
    const struct rlimit old = limit_files(8192);
    assert_int_equal(
        trace_create(&small, &small_plan, &small_conventions, &types, small_slots, 2, zeros, zeros, zeros, &t, &err),
        -1);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(err.code, ERR_SYSTEM);
    assert_non_null(strstr(err.message, "no space"));
    assert_null(t);

    /* More than any machine has. */
    struct asc_problem huge = small;
    huge.q_len = huge.kv_len = ASC_LENGTH_MAX;
    huge.head_dim = huge.head_dim_v = ASC_HEAD_DIM_MAX;
    huge.bias_kind = ASC_BIAS_NONE;
    assert_int_equal(
        trace_create(&huge, &small_plan, &small_conventions, &types, small_slots, 2, zeros, zeros, zeros, &t, &err),
        -1);
    assert_int_equal(err.code, ERR_SYSTEM);
    assert_non_null(strstr(err.message, "MiB of memory are free"));
}

static void save_fails(const struct trace *t, const char *path, enum err_code code, const char *words)
{
    struct err err = {0};
    assert_int_equal(trace_save(t, path, &err), -1);
    assert_int_equal(err.code, code);
    assert_string_equal(err.where, path);
    if (!strstr(err.message, words))
        fail_msg("'%s' does not say '%s'", err.message, words);
    assert_null(strchr(err.message, '\n'));
}

static void a_failed_save_leaves_nothing_behind(void **state)
{
    (void)state;
    char path[256];
    struct trace *t = make_small();
    snprintf(path, sizeof path, "%s/kept.safetensors", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("12345678{precious", file); /* looks like a trace, so it may be replaced, but not lost */
    fclose(file);
    const int files = files_in_folder();

    const struct rlimit old = limit_files(3000); /* the disk is full half way */
    save_fails(t, path, ERR_SYSTEM, "cannot be written");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(files_in_folder(), files);
    char text[32] = "";
    file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    fclose(file);
    assert_string_equal(text, "12345678{precious");
    file = fopen(path, "w");
    assert_non_null(file);
    fputs("// a kernel", file);
    fclose(file);
    save_fails(t, path, ERR_INPUT, "is not a trace");
    unlink(path);

    save_fails(t, "/nonexistent/folder/t.safetensors", ERR_SYSTEM, "No such file");
    save_fails(t, "/proc/t.safetensors", ERR_SYSTEM, "cannot be written");
    save_fails(t, folder, ERR_INPUT, "not a regular file");
    save_fails(t, "/dev/null", ERR_INPUT, "not a regular file");
    snprintf(path, sizeof path, "%s/", folder);
    save_fails(t, path, ERR_INPUT, "not a regular file");
    trace_free(t);
}

/* Changes one header field of a live trace and expects the child to refuse it. */
static void attach_refuses(size_t offset, uint64_t value, size_t bytes, enum err_code code, const char *words)
{
    struct trace *t = make_small();
    assert_int_equal(pwrite(t->fd, &value, bytes, (off_t)offset), bytes);
    struct asc_problem problem;
    struct asc_plan plan;
    struct asc_device device;
    void *mapping;
    size_t n_bytes;
    struct err err = {0};
    assert_int_equal(trace_attach(t->fd, &problem, &plan, &device, &mapping, &n_bytes, &err), -1);
    assert_int_equal(err.code, code);
    if (!strstr(err.message, words))
        fail_msg("'%s' does not say '%s'", err.message, words);
    trace_free(t);
}

#define FIELD_AT(name) offsetof(struct live_header, name), 4242, sizeof(((struct live_header *)0)->name)

static void a_child_refuses_a_header_that_lies(void **state)
{
    (void)state;
    attach_refuses(FIELD_AT(magic[3]), ERR_INPUT, "magic");
    attach_refuses(FIELD_AT(abi), ERR_ABI, "ABI version 4242");
    attach_refuses(FIELD_AT(header_bytes), ERR_ABI, "header of 4242");
    attach_refuses(FIELD_AT(total_bytes), ERR_INPUT, "its header says 4242");
    attach_refuses(FIELD_AT(problem.kv_heads), ERR_INPUT, "kv_heads");
    attach_refuses(FIELD_AT(problem.q_len), ERR_INPUT, "offsets");
    attach_refuses(FIELD_AT(plan.bc), ERR_INPUT, "br and bc are 1 to 1024");
    attach_refuses(FIELD_AT(layout.k.offset), ERR_INPUT, "offsets");
    attach_refuses(FIELD_AT(layout.channel[asc_s].kv_stride), ERR_INPUT, "offsets");
    attach_refuses(FIELD_AT(layout.stamp[asc_lse].offset), ERR_INPUT, "offsets");
    attach_refuses(FIELD_AT(layout.stamp[asc_s].writers), ERR_INPUT, "offsets");
    attach_refuses(FIELD_AT(layout.n_slots), ERR_INPUT, "slots");
    struct trace *t = make_small();
    const size_t index = t->layout.slot_index.offset;
    trace_free(t);
    attach_refuses(index, 2, 4, ERR_INPUT, "points at slot 2 of 2");

    const int fd = memfd_create("short", MFD_CLOEXEC);
    struct asc_problem problem;
    struct asc_plan plan;
    struct asc_device device;
    void *mapping;
    size_t n_bytes;
    struct err err = {0};
    assert_int_equal(trace_attach(fd, &problem, &plan, &device, &mapping, &n_bytes, &err), -1);
    assert_non_null(strstr(err.message, "less than a header"));
    close(fd);
    assert_int_equal(trace_attach(-1, &problem, &plan, &device, &mapping, &n_bytes, &err), -1);
    assert_int_equal(err.code, ERR_SYSTEM);
}

static void a_child_can_not_shrink_the_trace(void **state)
{
    (void)state;
    struct trace *t = make_small();
    assert_int_not_equal(ftruncate(t->fd, 0), 0);
    assert_int_not_equal(ftruncate(t->fd, (off_t)t->n_bytes + 1), 0);
    trace_free(t);
    trace_free(NULL);
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
        cmocka_unit_test(wrong_slots_are_refused),
        cmocka_unit_test(no_space_is_an_error_not_a_crash),
        cmocka_unit_test(a_failed_save_leaves_nothing_behind),
        cmocka_unit_test(a_child_refuses_a_header_that_lies),
        cmocka_unit_test(a_child_can_not_shrink_the_trace),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
