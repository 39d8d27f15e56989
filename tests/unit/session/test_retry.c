/* A second run in the background, where the first one tells no cause. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/session/look.h"
#include "engine/verdict/again.h"
#include "tests/unit/lib/open_scenario.h"
#include "tui/show.h"
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void shows(const struct session *s, const char *words)
{
    char *screen = NULL;
    size_t bytes = 0;
    struct err err;
    FILE *out = open_memstream(&screen, &bytes);
    assert_non_null(out);
    assert_int_equal(tui_show(s, VIEW_OVERVIEW, 150, 40, false, out, &err), 0);
    fclose(out);
    assert_non_null(strstr(screen, words));
    free(screen);
}

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
    /* As where it had found nothing. */
    s->run.judgement->asked_again = true;
    shows(s, "no cause by rules, checks, other orders; next: i isolate, d operands");
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

/* A clean run, small, of this scenario. */
static struct session *run_clean(const char *scenario)
{
    struct session *s = open_scenario("%s", scenario);
    struct err err;
    assert_int_equal(session_set(s, "shape.q_len", "128", &err), 0);
    assert_int_equal(session_set(s, "shape.kv_len", "128", &err), 0);
    assert_int_equal(session_set(s, "shape.heads", "1", &err), 0);
    assert_int_equal(session_set(s, "scenario.checks", "no", &err), 0);
    assert_int_equal(session_start(s), 0);
    session_finish(s, NULL);
    assert_int_equal(session_verdict(s), RUN_IS_CLEAN);
    return s;
}

/* What checks say of it, and the screen's line. */
static void says(struct session *s, int is, const char *words)
{
    session_want_retry(s);
    assert_string_equal(session_retry_words(s), "running again with access checks");
    session_finish_retry(s);
    assert_int_equal(s->run.judgement->checked.is, is);
    assert_non_null(strstr(s->run.judgement->checked.words, words));
    session_look_rounding(s, false);
    session_finish_rounding(s);
    shows(s, s->run.judgement->checked.words);
    session_drop_look(s); /* once is enough */
    session_want_retry(s);
    assert_null(s->run.retry);
}

static void checks_see_what_a_clean_run_hides(void **state)
{
    (void)state;
    struct session *s = run_clean("scenarios/bugs/wmma-barrier-between-products.ini");
    says(s, CHECKED_FOUND, "checks find race v2c_wmma_qk.cu:");
    session_free(s);
}

/* As a GPU's run: what runs on the CPU is smaller. */
static void a_gpu_run_is_checked_on_the_cpu(void **state)
{
    (void)state;
    struct session *s = run_clean("scenarios/v2c-wmma-qk-512.ini");
    s->run.trace->info.backend = BACKEND_GPU;
    says(s, CHECKED_CLEAN, "checks clean on the CPU at 1,1,");
    session_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_finding_says_what_it_found),
        cmocka_unit_test(one_that_is_stopped_says_nothing),
        cmocka_unit_test(it_goes_with_its_run),
        cmocka_unit_test(checks_see_what_a_clean_run_hides),
        cmocka_unit_test(a_gpu_run_is_checked_on_the_cpu),
    };
    return cmocka_run_group_tests_name("session: a second run", tests, NULL, NULL);
}
