/* A second run in the background, where the first one tells no cause. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/session/look.h"
#include "engine/verdict/again.h"
#include "tests/unit/lib/open_scenario.h"
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

/* A race, and rules that explain a part of what it leaves. */
static struct session *run(void)
{
    struct session *s = open_scenario("scenarios/bugs/m-l-shared-by-two-rows.ini");
    struct err err;
    assert_int_equal(session_set(s, "scenario.checks", "no", &err), 0);
    assert_int_equal(session_start(s), 0);
    session_finish(s, NULL);
    assert_non_null(s->run.finding);
    assert_non_null(strstr(s->run.finding->text, "no known cause"));
    return s;
}

static void the_finding_says_what_it_found(void **state)
{
    (void)state;
    struct session *s = run();
    const size_t events = s->run.trace->info.n_events;
    session_want_retry(s);
    assert_non_null(s->run.retry);
    session_finish_retry(s);
    assert_string_equal(session_retry_words(s), "");
    assert_non_null(strstr(s->run.finding->text, "a race at"));
    assert_string_equal(finding_word(s->run.finding, s->run.trace), "race");
    assert_string_equal(found_by_name(s->run.finding->found_by), "checks");
    assert_int_equal(s->run.trace->info.n_events, events);
    /* Once is enough, also after the run was left and shown again. */
    session_drop_look(s);
    session_want_retry(s);
    assert_null(s->run.retry);
    session_free(s);
}

static void one_that_is_stopped_says_nothing(void **state)
{
    (void)state;
    struct session *s = run();
    session_want_retry(s);
    assert_string_equal(session_retry_words(s), "running again with access checks");
    assert_true(session_stop_retry(s));
    session_finish_retry(s);
    assert_false(session_stop_retry(s));
    assert_non_null(strstr(s->run.finding->text, "no known cause"));
    assert_int_equal(s->run.finding->found_by, FOUND_BY_RUN);
    session_free(s);
}

static void it_goes_with_its_run(void **state)
{
    (void)state;
    struct session *s = run();
    session_want_retry(s);
    assert_int_equal(session_start(s), 0);
    session_finish(s, NULL);
    assert_null(s->run.retry);
    assert_int_equal(s->run.number, 2);
    session_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_finding_says_what_it_found),
        cmocka_unit_test(one_that_is_stopped_says_nothing),
        cmocka_unit_test(it_goes_with_its_run),
    };
    return cmocka_run_group_tests_name("session: a second run", tests, NULL, NULL);
}
