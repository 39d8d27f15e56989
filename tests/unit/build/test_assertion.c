#include "engine/child/child.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void the_drivers_line_is_read(void **state)
{
    (void)state;
    struct trace_event event;
    assert_int_equal(assertion_parse("/a b/k.cu:12: void (anonymous namespace)::k<64>(P): block: [1,2,3], thread: "
                                     "[32,0,5] Assertion `i < n && \"failed\"` failed.",
                                     &event),
                     1);
    assert_int_equal(event.kind, EVENT_ASSERT);
    assert_string_equal(event.file, "/a b/k.cu");
    assert_int_equal(event.line, 12);
    assert_string_equal(event.text, "assertion `i < n && \"failed\"` failed in block (1,2,3), thread (32,0,5)");
}

static void other_lines_are_none(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "",
        "k.cu:12: block: [1,2,3]",
        "block: [1,2,3], thread: [0,0,0] Assertion `x` failed.",
        "k.cu: void k(): block: [1,2,3], thread: [0,0,0] Assertion `x` failed.",
        "k.cu:12: void k(): block: [1,2,x], thread: [0,0,0] Assertion `x` failed.",
        "k.cu:12: void k(): block: [1,2,3], thread: [0,0,0] Assertion `x",
    };
    struct trace_event event;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_int_equal(assertion_parse(lines[i], &event), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_drivers_line_is_read),
        cmocka_unit_test(other_lines_are_none),
    };
    return cmocka_run_group_tests_name("assertion", tests, NULL, NULL);
}
