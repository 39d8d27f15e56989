/* The laboratory's views on recorded runs, as text against tests/screens/. Runs in the repository's root. */
#include "engine/session/look.h"
#include "tests/unit/lib/golden.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct session *opened(const char *path, unsigned looks)
{
    struct session *s;
    struct err err;
    if (session_open_trace(path, &s, &err) != 0)
        fail_msg("%s: %s", path, err.message);
    assert_int_equal(session_start(s), 0);
    session_finish(s, 0);
    session_look(s, looks);
    session_look_finish(s);
    return s;
}

/* e4m3 codes with a scale for each head, outliers, tails and a mask. */
static const char fp8[] = "tests/screens/traces/fp8-mma.safetensors";

static void formats(void **state)
{
    (void)state;
    struct session *s = opened(fp8, LABORATORY_FORMATS);
    golden_view(s, VIEW_FORMATS, &(struct view_state){.selected = 1}, "fp8-formats");
    /* P, and a choice beyond the last tensor is the last. */
    golden_view(s, VIEW_FORMATS, &(struct view_state){.selected = 9, .top = 99}, "fp8-formats-p");
    /* Opened, it shows what the cursor's stage is made of. */
    s->at.cursor.channel = asc_u;
    golden_view(s, VIEW_FORMATS, &(struct view_state){.selected = views[VIEW_FORMATS]->begin(s)}, "fp8-formats-p");
    s->at.cursor.channel = asc_k;
    golden_view(s, VIEW_FORMATS, &(struct view_state){.selected = views[VIEW_FORMATS]->begin(s)}, "fp8-formats");
    struct view_state vs = {.selected = 9};
    assert_int_equal(view_act(VIEW_FORMATS, s, 80, 24, &vs, ACTION_KV_NEXT, 1).does, ANSWER_DID);
    assert_int_equal(vs.selected, 3); /* of four */
    session_free(s);
}

static void compared(void **state)
{
    (void)state;
    struct session *s = opened(fp8, LABORATORY_COMPARISON | LABORATORY_SURVEY);
    s->at.cursor = (struct cursor){.head = 0, .kv_tile = 1, .channel = asc_o, .row = 39, .col = 12};
    golden_view(s, VIEW_COMPARE, &(struct view_state){0}, "fp8-compare");
    /* The survey knows the other head, its comparison has not been asked for. */
    s->at.cursor.head = 1;
    char *text = golden_draw(s, VIEW_COMPARE, 80, 24, false, &(struct view_state){0});
    assert_non_null(strstr(text, "Computing the three paths"));
    free(text);
    session_look(s, LABORATORY_COMPARISON);
    session_look_finish(s);
    text = golden_draw(s, VIEW_COMPARE, 80, 24, false, &(struct view_state){0});
    assert_non_null(strstr(text, "compare b0 h1 q0"));
    assert_non_null(strstr(text, "o[39,12]: "));
    free(text);
    session_free(s);
}

static void predicted(void **state)
{
    (void)state;
    struct session *s = opened(fp8, LABORATORY_WHATIF);
    golden_view(s, VIEW_WHATIF, &(struct view_state){.selected = 3}, "fp8-whatif");
    assert_int_equal(session_try(s, "u8 rows:8 x0.25"), 0);
    session_look_finish(s);
    char *text = golden_draw(s, VIEW_WHATIF, 120, 40, false, &(struct view_state){.selected = 99});
    assert_non_null(strstr(text, "▶  u8 rows:8 x0.25 p=e4m3 offset:8"));
    assert_null(strstr(text, "NaN or infinite"));
    free(text);
    ((struct whatif *)(uintptr_t)session_looked(s)->whatif)->measured.bad = 2;
    assert_true(golden_has(s, VIEW_WHATIF, 120, 40, "prediction of ◆, 2 NaN or infinite"));
    assert_int_equal(session_try(s, "u9"), -1);
    assert_non_null(strstr(s->message, "'u9' is not one of"));
    struct view_state last = {.selected = 99};
    const struct view_answer answer = view_act(VIEW_WHATIF, s, 80, 24, &last, ACTION_ZOOM, 1);
    assert_int_equal(answer.does, ANSWER_TRIES);
    assert_float_equal(answer.choice->factor, 0.25, 0);
    assert_int_equal(session_run_choice(s, answer.choice), -1); /* a saved trace */
    session_free(s);
}

/* A run of an f16 kernel: nothing is quantized, the rest of the laboratory has its say. */
static void nothing_quantized(void **state)
{
    (void)state;
    struct session *s = opened("tests/recorded/clean-wmma.safetensors", ~0U);
    golden_view(s, VIEW_FORMATS, &(struct view_state){0}, "f16-formats");
    golden_view(s, VIEW_COMPARE, &(struct view_state){0}, "f16-compare");
    golden_view(s, VIEW_WHATIF, &(struct view_state){0}, "f16-whatif");
    session_free(s);
}

/* A run that ended early has no output to attribute. */
static void no_output(void **state)
{
    (void)state;
    struct session *s = opened("tests/recorded/hung.safetensors", ~0U);
    golden_view(s, VIEW_COMPARE, &(struct view_state){0}, "hung-compare");
    session_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats),           cmocka_unit_test(compared),  cmocka_unit_test(predicted),
        cmocka_unit_test(nothing_quantized), cmocka_unit_test(no_output),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
