/* What text.c tells of work under way where standard error is a file. It looks at a clock that the test sets. */
#include <time.h>

static time_t seconds;

static int set_clock(clockid_t id, struct timespec *now)
{
    (void)id;
    *now = (struct timespec){.tv_sec = seconds};
    return 0;
}

#define clock_gettime set_clock
#include "engine/base/text.c" // NOLINT(bugprone-suspicious-include): with the clock
#undef clock_gettime

#include <fcntl.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* A line of progress in each of these seconds, and its end. */
static void tell(time_t first, time_t last)
{
    for (seconds = first; seconds <= last; seconds++) {
        char line[32];
        snprintf(line, sizeof line, "judging %d s", (int)seconds);
        text_progress(line);
    }
    text_progress("");
}

static void progress_in_a_file(void **state)
{
    (void)state;
    char path[] = "/tmp/attnscope-text-XXXXXX", got[512] = "";
    const int fd = mkstemp(path), terminal = dup(STDERR_FILENO);
    assert_true(fd >= 0 && terminal >= 0);
    unlink(path);
    dup2(fd, STDERR_FILENO);
    setenv("ATTNSCOPE_PROGRESS", "no", 1);
    tell(900, 1000);
    unsetenv("ATTNSCOPE_PROGRESS");
    tell(1000, 1004);
    const off_t after_a_short_run = lseek(fd, 0, SEEK_END);
    tell(1005, 1070);
    text_progress("Q\r\x1b[2J");
    seconds = 1100;
    text_progress("Q\r\x1b[2J");
    dup2(terminal, STDERR_FILENO);
    close(terminal);
    assert_int_equal(after_a_short_run, 0);
    assert_true(pread(fd, got, sizeof got - 1, 0) > 0);
    assert_string_equal(got, "judging 1005 s\njudging 1035 s\njudging 1065 s\nQ^M^[[2J\n");
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(progress_in_a_file)};
    if (text_open() != 0)
        return 1;
    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
