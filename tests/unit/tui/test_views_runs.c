/* The views of several runs and of a build that failed, as text against tests/screens/. */
#include "engine/sweep/sweep.h"
#include "tests/unit/lib/golden.h"
#include "tests/unit/lib/hand_made.h"
#include "tui/loop_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *edited(const char *text, const char *old, const char *now)
{
    const char *at = strstr(text, old);
    char *made = malloc(strlen(text) + strlen(now) + 1);
    assert_non_null(at);
    sprintf(made, "%.*s%s%s", (int)(at - text), text, now, at + strlen(old));
    return made;
}

/* One run more, of a kernel with other words in it than the shown one's; old NULL: with the same. */
static void add_run(struct session *s, enum hand_mistake mistake, const char *old, const char *now)
{
    struct hand_made made = hand_made_usual;
    made.mistake = mistake;
    struct trace *t = hand_made_trace(&made);
    if (old) {
        free(t->info.source);
        t->info.source = edited(s->run.trace->info.source, old, now);
    }
    hand_made_judge(s, t);
    struct run *run = &s->runs.at[s->runs.n - 1];
    run->at = 60 * (time_t)run->number;
}

/* Scores were scaled twice, then a repair went wrong in O. */
static struct session *three_runs(void)
{
    struct session *s = hand_made_session(&hand_made_usual);
    add_run(s, HAND_S_SCALED_TWICE, NULL, NULL);
    session_name_run(s, 1, "as it came");
    session_note_saved(s, 1, "as-it-came.safetensors");
    add_run(s, HAND_S_SCALED_TWICE, "        float s0 = 0, s1 = 0;\n",
            "        float s0 = 0;\n        float s1 = 0;\n");
    add_run(s, HAND_O_DOUBLED, "        s0 *= p.scale * p.scale; s1 *= p.scale * p.scale;\n",
            "        s0 *= p.scale;\n");
    session_show_run(s, 1);
    session_show_run(s, 3);
    return s;
}

static void runs_and_changes(void **state)
{
    (void)state;
    struct session *s = three_runs();
    assert_int_equal(session_watch(s, 1), 0);
    golden_screen(s, VIEW_OVERVIEW, NULL, 80, 24, "changed");
    golden_view(s, VIEW_RUNS, NULL, "runs-three");
    golden_view(s, VIEW_CHANGES, NULL, "changes-three");
    session_show_run(s, 2);
    assert_true(golden_has(s, VIEW_OVERVIEW, 80, 24, "since run 1: as before"));
    session_show_run(s, 1); /* nothing before it */
    char *text = golden_draw(s, VIEW_OVERVIEW, 120, 40, false, NULL);
    assert_null(strstr(text, "since run"));
    assert_null(strstr(text, "▲"));
    free(text);
    assert_true(golden_has(s, VIEW_CHANGES, 120, 40, "there is no run before this one"));
    for (int i = 0; i < 9; i++) /* the ring is full: room for a line of each, and what is said of one */
        add_run(s, HAND_S_SCALED_TWICE, i % 2 ? "scalar dots" : "scalar dot products",
                i % 2 ? "scalar dot products" : "scalar dots");
    golden_view(s, VIEW_RUNS, NULL, "runs-full");
    session_free(s);
}

/* The panel of a build that failed, and the run behind it. */
static void build_error_over_a_run(void **state)
{
    (void)state;
    struct session *s = three_runs();
    s->job.phase = PHASE_FAILED;
    s->job.made_run = 0;
    err_set(&s->job.err, ERR_BUILD, "kernels/v2b_scalar.cu:71:16", "%s",
            "'scal' was not declared in this scope; did you mean 'scale'?\n"
            "   71 |         s0 *= p.scal * p.scale;\n"
            "      |                 ^~~~\n"
            "      |                 scale\n"
            "kernels/v2b_scalar.cu:80:9: warning: unused variable 'x' [-Wunused-variable]\n"
            "kernels/v2b_scalar.cu: In function 'void attention(asc_problem)':\n"
            "kernels/v2b_scalar.cu:93:5: error: expected ';' before '}' token");
    golden_view(s, VIEW_ERRORS, NULL, "build-error");
    golden_top(s, "build-error-behind");
    struct view_state vs = {.selected = 0};
    char file[256];
    assert_int_equal(views[VIEW_ERRORS]->count(s), 7);
    assert_int_equal(views[VIEW_ERRORS]->place(s, &vs, file, sizeof file), 71);
    assert_string_equal(file, "kernels/v2b_scalar.cu");
    vs.selected = 5; /* both errors stand before the warning */
    assert_int_equal(views[VIEW_ERRORS]->place(s, &vs, file, sizeof file), 93);
    vs.selected = 1000;
    assert_int_equal(views[VIEW_ERRORS]->place(s, &vs, file, sizeof file), 80);
    s->job.phase = PHASE_READY;
    s->job.err = (struct err){0};
    assert_int_equal(views[VIEW_ERRORS]->count(s), 0);
    assert_int_equal(views[VIEW_ERRORS]->place(s, &vs, file, sizeof file), 0);
    session_free(s);
}

/* Fails where kv_len is odd and the mask is none, and once elsewhere; one point was not tried. */
static struct sweep *swept(void)
{
    static const char *const lengths[] = {"31", "32", "33", "64", "65", "96"};
    static const char *const masks[] = {"none", "top-left", "bottom-right"};
    static const char *const seeds[] = {"0", "1", "2"};
    static const struct {
        const char *key;
        const char *const *values;
        int n;
    } axes[] = {{"shape.kv_len", lengths, 6}, {"shape.causal", masks, 3}, {"fill.seed", seeds, 3}};
    struct sweep *s = calloc(1, sizeof *s);
    assert_non_null(s);
    sweep_init(s);
    s->br = 16;
    s->bc = 32;
    s->grid = s->whole = 54;
    s->ended = true;
    for (int a = 0; a < 3; a++) {
        struct sweep_axis *axis = &s->axis[s->n_axes++];
        axis->key = strdup(axes[a].key);
        axis->n = axes[a].n;
        axis->value = calloc((size_t)axis->n, sizeof *axis->value);
        assert_non_null(axis->value);
        for (int v = 0; v < axis->n; v++)
            axis->value[v] = strdup(axes[a].values[v]);
    }
    s->point = calloc(54, sizeof *s->point);
    assert_non_null(s->point);
    for (s->n = 0; s->n < 54; s->n++) {
        struct sweep_point *p = &s->point[s->n];
        *p = (struct sweep_point){.number = s->n, .at = {(short)(s->n / 9), (short)(s->n / 3 % 3), (short)(s->n % 3)}};
        const bool odd = p->at[0] == 0 || p->at[0] == 2 || p->at[0] == 4;
        p->result = (odd && p->at[1] == 0) || s->n == 13 ? SWEEP_FAIL : s->n == 53 ? SWEEP_NOT_TRIED : SWEEP_OK;
        if (p->result == SWEEP_FAIL)
            p->what = strdup("s: tail-not-masked");
    }
    struct err err = {0};
    assert_int_equal(sweep_find(s, &err), 0);
    return s;
}

static void the_grid_of_a_sweep(void **state)
{
    (void)state;
    struct session *s = hand_made_session(&hand_made_usual);
    golden_view(s, VIEW_SWEEP, NULL, "swept-none");
    s->swept = swept();
    struct view_state vs = {.selected = views[VIEW_SWEEP]->begin(s)};
    golden_screen(s, VIEW_SWEEP, &vs, 80, 24, "swept");
    /* h j k l move in the picture, Enter runs the cell's point. */
    view_act(VIEW_SWEEP, s, 80, 24, &vs, ACTION_KV_NEXT, 1);
    struct view_answer a = view_act(VIEW_SWEEP, s, 80, 24, &vs, ACTION_Q_NEXT, 1);
    assert_int_equal(a.does, ANSWER_DID);
    golden_screen(s, VIEW_SWEEP, &vs, 160, 40, "swept-moved");
    a = view_act(VIEW_SWEEP, s, 80, 24, &vs, ACTION_ZOOM, 1);
    assert_int_equal(a.does, ANSWER_RUNS_POINT);
    assert_int_equal(a.run, 13);
    for (int i = 0; i < 9; i++)
        view_act(VIEW_SWEEP, s, 80, 24, &vs, i % 2 ? ACTION_KV_NEXT : ACTION_Q_NEXT, 5);
    assert_int_equal(vs.selected, 17);
    session_free(s);
}

int main(void)
{
    setenv("TZ", "UTC", 1); /* times of runs */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_and_changes),
        cmocka_unit_test(build_error_over_a_run),
        cmocka_unit_test(the_grid_of_a_sweep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
