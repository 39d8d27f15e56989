/* Where NaN begins in runs of real kernels, the way from root to root, and the softmax state of the cursor's rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/session/onset.h"
#include "engine/session/session.h"
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static struct session *run(const char *path)
{
    char full[600];
    struct runner_paths paths;
    struct session *s;
    struct err err = {0};
    assert_int_equal(runner_find_paths(&paths, &err), 0);
    snprintf(full, sizeof full, "%s/%s.ini", paths.root, path);
    if (session_open(full, &s, &err) != 0)
        fail_msg("%s: %s", err.where, err.message);
    assert_int_equal(session_start(s), 0);
    session_finish(s, 0);
    return s;
}

/* Row 5 of kv tile 1 of head 1 is NaN: one row of S, all of that row of O. */
static void from_root_to_root(void **state)
{
    (void)state;
    struct session *s = run("tests/session/nan-row");
    const struct run_onset *o = s->judgement->onset;
    assert_non_null(o);
    const struct run_root *first = run_onset_first(o);
    assert_int_equal(o->of_stage[asc_s], o->roots);
    assert_int_equal(first->root.channel, asc_s);
    assert_int_equal(first->root.kv, 1);
    assert_int_equal(first->root.row, 5);
    assert_int_equal(first->root.members, 36);
    assert_int_equal(first->root.reached, 64);
    assert_int_equal(first->root.n_products, ONSET_PRODUCTS);
    assert_int_equal(o->outputs, 64);
    assert_int_equal(o->of_heads[ASC_CHANNELS + asc_s], 36);
    s->cursor.head = 0;
    assert_int_equal(session_go_root(s, 0), 1);
    assert_int_equal(session_root(s), 0);
    assert_int_equal(s->cursor.head, 1);
    assert_int_equal(s->cursor.channel, asc_s);
    assert_int_equal(s->cursor.row, 5);
    assert_int_equal(session_go_root(s, 1), 0);
    assert_non_null(strstr(s->message, "last root"));
    session_free(s);
}

static void nothing_begins_in_a_clean_run(void **state)
{
    (void)state;
    struct session *s = run("tests/session/small");
    assert_null(s->judgement->onset);
    assert_int_equal(s->judgement->state_break.slot, -1);
    assert_int_equal(session_go_root(s, 0), 0);
    assert_int_equal(session_root(s), -1);
    /* The state belongs to the cursor's slot, as long as a view wants it. */
    assert_null(s->states.steps);
    session_want_states(s, 1);
    assert_int_equal(s->states.n_steps, s->trace->layout.kv_tiles);
    assert_int_equal(s->states_slot, session_slot(s));
    assert_int_equal(s->states.first_step, -1);
    session_step_head(s, 1);
    assert_int_equal(s->states_slot, session_slot(s));
    session_want_states(s, 0);
    assert_null(s->states.steps);
    session_free(s);
}

static void state_breaks_at_its_step(void **state)
{
    (void)state;
    struct session *s = run("scenarios/bugs/m-not-carried");
    const struct state_break *b = &s->judgement->state_break;
    assert_int_equal(b->slot, 0);
    assert_int_equal(b->kv, 1);
    assert_int_equal(b->broken, 1u << INVARIANT_M_RISES | 1u << INVARIANT_ALPHA_ONE);
    session_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_root_to_root),
        cmocka_unit_test(nothing_begins_in_a_clean_run),
        cmocka_unit_test(state_breaks_at_its_step),
    };
    return cmocka_run_group_tests_name("session: onset and softmax state", tests, NULL, NULL);
}
