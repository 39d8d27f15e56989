/* Views of one stage, one tile, one row, one element: what they show at their edges. */
#include "tests/unit/lib/golden.h"
#include "tests/unit/lib/hand_made.h"
#include "tui/commands.h"
#include "tui/keys/actions.h"
#include "tui/views/view_text.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct session *failing(void)
{
    return hand_made_run(&hand_made_usual);
}

/* As much as a screen may hold. */
static void at_200x60(void **state)
{
    (void)state;
    struct session *s = failing();
    golden_screen(s, VIEW_TILE, NULL, 200, 60, "tile");
    golden_screen(s, VIEW_MAP, NULL, 200, 60, "map");
    session_free(s);
}

static void in_ascii(void **state)
{
    (void)state;
    struct session *s = failing();
    char *text = golden_draw(s, VIEW_MAP, 80, 24, true, NULL);
    golden_compare("map-ascii-80x24", text);
    free(text);
    text = golden_draw(s, VIEW_OPERANDS, 80, 24, true, NULL);
    golden_compare("operands-ascii-80x24", text);
    free(text);
    session_free(s);
}

/* From one tile to more than any screen holds: the cursor is always there, and what a sign stands for is said. */
static void map_of_any_size(void **state)
{
    (void)state;
    static const struct {
        struct hand_made made;
        const char *words;
    } maps[] = {{{1, 1, 8, 8, 8, 8, .mistake = HAND_RIGHT}, "1 head, 1x1 tiles, a mark: a tile"},
                {{1, 1, 1024, 1024, 8, 8, .mistake = HAND_RIGHT}, "a mark: the worst of 8x2"},
                {{2, 3, 64, 128, 8, 8, .mistake = HAND_RIGHT}, "6 heads, 8x16 tiles each, a mark: the worst of 1x2"},
                {{4, 40, 16, 16, 8, 8, .mistake = HAND_RIGHT}, "of 160, 2x2 tiles each"}};
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        const struct hand_made *made = &maps[i].made;
        struct session *s = hand_made_run(made);
        hand_made_go(s, (struct cursor){.channel = asc_s});
        assert_true(golden_has(s, VIEW_MAP, 80, 24, maps[i].words));
        struct cursor last = {.batch = made->batch - 1,
                              .head = made->heads - 1,
                              .q_tile = made->q_len / made->tile - 1,
                              .kv_tile = made->kv_len / made->tile - 1,
                              .channel = asc_s};
        hand_made_go(s, last);
        assert_true(golden_has(s, VIEW_MAP, 80, 24, "◆"));
        assert_true(golden_has(s, VIEW_MAP, 200, 60, "◆"));
        last.channel = asc_o;
        hand_made_go(s, last);
        assert_true(golden_has(s, VIEW_MAP, 80, 24, "◆"));
        session_free(s);
    }
}

/* Of tiles that share a sign the worst one shows; heads with more bad tiles come first. */
static void worst_wins(void **state)
{
    (void)state;
    struct hand_made made = hand_made_usual;
    made.mistake = HAND_RIGHT;
    struct trace *t = hand_made_trace(&made);
    hand_made_store(t, asc_s, 5 * 8 + 3, 0, 9, 9, NAN);
    for (int kv = 5; kv < 7; kv++)
        for (int i = 0; i < 64; i++)
            hand_made_store(t, asc_s, 2 * 8 + 3, kv, i, i, 99);
    struct session *s = hand_made_session(&made);
    hand_made_judge(s, t);
    hand_made_go(s, (struct cursor){.channel = asc_s});
    const struct view_state by_worst = {.by_worst = 1};
    char *text = golden_draw(s, VIEW_MAP, 80, 24, false, &by_worst);
    const char *h2 = strstr(text, "h2 ✗ 3"), *h5 = strstr(text, "h5 N 1"), *h1 = strstr(text, "h1 ·");
    assert_non_null(h2);
    assert_true(h5 > h2 && h1 > h5);
    free(text);
    golden_view(s, VIEW_MAP, &by_worst, "worst-map");
    session_free(s);
    const struct hand_made one = {1, 1, 1024, 1024, 8, 8, .mistake = HAND_RIGHT};
    t = hand_made_trace(&one);
    hand_made_store(t, asc_s, 77, 100, 1, 1, 99);
    hand_made_store(t, asc_s, 77, 101, 1, 1, INFINITY);
    s = hand_made_session(&one);
    hand_made_judge(s, t);
    hand_made_go(s, (struct cursor){.channel = asc_s});
    text = golden_draw(s, VIEW_MAP, 80, 24, false, NULL);
    assert_non_null(strstr(text, "··∞·"));
    assert_null(strstr(text, "✗·"));
    free(text);
    session_free(s);
}

/* Why an element was made from nothing that is known. */
static void no_operands(void **state)
{
    (void)state;
    struct hand_made made = hand_made_usual;
    made.kv_tiles = 7;
    struct session *s = hand_made_run(&made);
    hand_made_go(s, (struct cursor){.kv_tile = 7, .channel = asc_s});
    assert_true(golden_has(s, VIEW_OPERANDS, 80, 24, "the kernel did not reach this tile"));
    session_free(s);
    made = hand_made_usual;
    made.causal = true;
    struct trace *t = hand_made_trace(&made);
    for (int ch = asc_k; ch <= asc_u; ch++)
        hand_made_unwrite(t, (enum asc_channel)ch, 0, 7);
    s = hand_made_session(&made);
    hand_made_judge(s, t);
    hand_made_go(s, (struct cursor){.kv_tile = 7, .channel = asc_s});
    assert_true(golden_has(s, VIEW_OPERANDS, 80, 24, "the row sees no key of this tile"));
    session_free(s);
}

/* Terms that are no numbers come with their share unknown. */
static void operands_that_are_no_numbers(void **state)
{
    (void)state;
    struct trace *t = hand_made_trace(&hand_made_usual);
    hand_made_store(t, asc_k, 0, 0, 0, 3, NAN);
    hand_made_store(t, asc_k, 0, 0, 0, 5, -INFINITY);
    hand_made_store(t, asc_s, 0, 0, 0, 0, NAN);
    struct session *s = hand_made_session(&hand_made_usual);
    hand_made_judge(s, t);
    hand_made_go(s, (struct cursor){.channel = asc_s});
    golden_view(s, VIEW_OPERANDS, NULL, "nan-operands");
    session_free(s);
}

/* The rulers are of whole rows and columns, whatever is visible, and count what is no number as worst. */
static void rulers(void **state)
{
    (void)state;
    struct hand_made made = hand_made_usual;
    made.mistake = HAND_RIGHT;
    struct session *s = hand_made_run(&made);
    hand_made_go(s, (struct cursor){.channel = asc_s});
    assert_true(golden_has(s, VIEW_TILE, 80, 24, "▂ 0."));
    s->at.shown = SHOW_ULP;
    golden_view(s, VIEW_TILE, NULL, "ulp-tile");
    session_free(s);
    struct trace *t = hand_made_trace(&made);
    hand_made_store(t, asc_s, 0, 0, 2, 60, NAN);
    s = hand_made_session(&made);
    hand_made_judge(s, t);
    hand_made_go(s, (struct cursor){.channel = asc_s});
    assert_true(golden_has(s, VIEW_TILE, 80, 24, "█ nan"));
    session_free(s);
}

static float *values_of(const struct trace *t, enum asc_channel ch, int slot, int kv)
{
    const struct tile tile = trace_tile(t, ch, slot, kv);
    assert_int_equal(tile.dtype, DTYPE_F32);
    return (float *)(uintptr_t)tile.data;
}

/* Pieces of 16 columns of the lower rows change places, and a few elements are no numbers. */
static struct session *shuffled(void)
{
    const struct hand_made made = {1, 1, 64, 64, 8, 32, .mistake = HAND_RIGHT};
    struct trace *t = hand_made_trace(&made);
    const float *was = values_of(t, asc_s, 0, 0);
    float kept[32 * 32];
    memcpy(kept, was, sizeof kept);
    for (int r = 16; r < 32; r++)
        for (int c = 0; c < 32; c++)
            hand_made_store(t, asc_s, 0, 0, r, c, (double)kept[r * 32 + (c ^ 16)]);
    hand_made_store(t, asc_s, 0, 0, 3, 4, NAN);
    hand_made_store(t, asc_s, 0, 0, 5, 9, INFINITY);
    hand_made_store(t, asc_s, 1, 1, 7, 8, 1e9);
    struct session *s = hand_made_session(&made);
    hand_made_judge(s, t);
    hand_made_go(s, (struct cursor){.channel = asc_s});
    return s;
}

/* Who recorded the element under the cursor, and all of a tile as a picture; where that is not known nothing is said.
 */
static void who_recorded_it(void **state)
{
    (void)state;
    struct hand_made made = hand_made_usual;
    made.writers = true;
    struct session *s = hand_made_run(&made), *without = failing();
    hand_made_go(s, (struct cursor){.channel = asc_s, .row = 2, .col = 3});
    hand_made_go(without, s->at.cursor);
    char words[128];
    const int element = 2 * made.tile + 3;
    snprintf(words, sizeof words, "recorded by block (2,0,0) warp %d lane %d (thread %d), value %d, v2b_scalar.cu:13",
             element % 128 / 32, element % 32, element % 128, element / 128);
    assert_true(golden_has(s, VIEW_TILE, 100, 30, words));
    assert_true(golden_has(s, VIEW_OPERANDS, 80, 24, words));
    assert_false(golden_has(without, VIEW_TILE, 100, 30, "recorded by"));
    struct view_state vs = {.paint = 0}, other = vs;
    for (int i = 0; i < 5; i++) {
        view_act(VIEW_PICTURE, s, 80, 24, &vs, ACTION_CYCLE_SHOWN, 1);
        view_act(VIEW_PICTURE, without, 80, 24, &other, ACTION_CYCLE_SHOWN, 1);
    }
    char *text = golden_draw(s, VIEW_PICTURE, 80, 24, false, &vs);
    assert_non_null(strstr(text, "recorded by warp"));
    free(text);
    text = golden_draw(without, VIEW_PICTURE, 80, 24, false, &other);
    assert_non_null(strstr(text, "from row"));
    free(text);
    session_free(s);
    session_free(without);
}

/* Without colors: as many dots as it is wrong, the signs of what is no number, a legend. */
static void picture(void **state)
{
    (void)state;
    struct session *s = shuffled();
    golden_screen(s, VIEW_PICTURE, NULL, 80, 24, "picture-shuffled");
    char *text = golden_draw(s, VIEW_PICTURE, 80, 24, true, NULL);
    golden_compare("picture-shuffled-ascii-80x24", text);
    free(text);
    /* v goes through what colors show; of one tile, where elements come from. */
    struct view_state vs = {.paint = 0};
    static const char *const paints[] = {"class",    "difference",  "got/want",   "captured",
                                         "from row", "from column", "err/bound  "};
    for (size_t i = 0; i < sizeof paints / sizeof *paints; i++) {
        assert_int_equal(view_act(VIEW_PICTURE, s, 80, 24, &vs, ACTION_CYCLE_SHOWN, 1).does, ANSWER_DID);
        text = golden_draw(s, VIEW_PICTURE, 80, 24, false, &vs);
        assert_non_null(strstr(text, paints[i]));
        free(text);
    }
    hand_made_go(s, (struct cursor){.channel = asc_l});
    assert_true(golden_has(s, VIEW_PICTURE, 80, 24, "l[h0,q0,k0] err/bound"));
    session_free(s);
}

/* What the cells of a picture hold: the worst of what they cover, whatever the size. */
static void cells_of_a_picture(void **state)
{
    (void)state;
    struct session *s = shuffled();
    struct picture p;
    assert_int_equal(picture_of_tile(s, false, &p), 0);
    assert_true(p.rows == 32 && p.cols == 32 && p.by_row == 1 && p.by_col == 1);
    assert_int_equal(p.cells[3 * 32 + 4].status, CLASS_NAN);
    assert_int_equal(p.cells[5 * 32 + 9].status, CLASS_INF);
    assert_int_equal(p.cells[0].status, CLASS_OK);
    assert_true(p.cells[0].from_row == 0 && p.cells[0].from_col == 0);
    assert_true(p.cells[20 * 32 + 3].status == CLASS_OFF && p.cells[20 * 32 + 3].ratio > 1);
    assert_true(p.cells[20 * 32 + 3].from_row == 20 && p.cells[20 * 32 + 3].from_col == 19);
    assert_int_equal(p.cells[3 * 32 + 4].from_row, -1);
    picture_free(&p);
    session_want_picture(s, PICTURE_HEAD, false);
    const struct picture *head = &s->tile.picture;
    assert_true(head->n_made == 2 && head->n_there == 2 && head->rows == 64 && head->cols == 64);
    assert_int_equal(head->cells[(32 + 7) * 64 + 32 + 8].status, CLASS_OFF);
    assert_true(head->cells[(32 + 7) * 64 + 32 + 8].row == 39 && head->cells[39 * 64 + 40].col == 40);
    assert_int_equal(head->cells[3 * 64 + 4].status, CLASS_NAN);
    struct view_state vs = {.scope = PICTURE_HEAD};
    char *text = golden_draw(s, VIEW_PICTURE, 80, 24, false, &vs);
    assert_non_null(strstr(text, "worst of 3x1"));
    assert_non_null(strstr(text, "N"));
    free(text);
    hand_made_go(s, (struct cursor){.channel = asc_m});
    session_want_picture(s, PICTURE_Q_TILE, false);
    assert_true(s->tile.picture.rows == 32 && s->tile.picture.cols == 2);
    session_want_picture(s, PICTURE_TILE, false);
    assert_null(s->tile.picture.cells);
    session_free(s);
    /* More elements than a picture has cells. */
    const struct hand_made large = {1, 1, 1024, 1024, 8, 64, .mistake = HAND_RIGHT};
    struct trace *t = hand_made_trace(&large);
    hand_made_store(t, asc_s, 9, 5, 17, 33, 1e9);
    s = hand_made_session(&large);
    hand_made_judge(s, t);
    hand_made_go(s, (struct cursor){.channel = asc_s});
    session_want_picture(s, PICTURE_HEAD, false);
    const struct picture *all = &s->tile.picture;
    assert_true(all->by_row == 3 && all->by_col == 2 && all->n_made == 16);
    const int row = 9 * 64 + 17, col = 5 * 64 + 33;
    const struct picture_cell *cell = &all->cells[row / 3 * all->cols + col / 2];
    assert_true(cell->status == CLASS_OFF && cell->row == row && cell->col == col);
    /* A click on the dot goes to that element. */
    struct canvas c;
    struct hits hits = {.n = 0};
    struct cursor to = s->at.cursor;
    assert_int_equal(canvas_init(&c, 120, 40, false), 0);
    c.hits = &hits;
    vs = (struct view_state){.scope = PICTURE_HEAD};
    view_draw(VIEW_PICTURE, s, &c, &vs);
    bool clicked = false;
    for (int i = 0; i < hits.n; i++)
        if (hits.at[i].kind == HIT_CELL) {
            const int rows = hits.at[i].area.rows, cols = hits.at[i].area.cols;
            clicked = views[VIEW_PICTURE]->click(s, &vs, &c, row * rows / 1024, col * cols / 1024, &to);
        }
    assert_true(clicked);
    assert_true(to.q_tile == 9 && to.kv_tile == 5 && to.row == 17 && to.col == 33);
    canvas_free(&c);
    session_free(s);
}

/* Every finding with its evidence and its survivors; the selected one is wholly visible, and has a place. */
static void findings(void **state)
{
    (void)state;
    struct session *s = failing();
    struct judgement *j = s->run.judgement;
    j->findings[0].evidence.rows = 512;
    j->findings[0].evidence.chance_tried = 20000;
    j->findings[0].evidence.chance_hit = 3;
    for (int i = 1; i < 6; i++) {
        j->findings[i] =
            (struct finding){.channel = asc_u, .first = {9 + i, i, asc_u}, .row = 3, .col = i, .n_also = 2};
        j->findings[i].also[0] = CAUSE_s_scaled_twice;
        j->findings[i].also[1] = CAUSE_s_not_scaled;
        snprintf(j->findings[i].text, sizeof j->findings[i].text, "U is wrong in %d of 25600 elements: no known cause",
                 i);
    }
    j->n_findings = 6;
    golden_view(s, VIEW_FINDINGS, NULL, "several-findings");
    const struct view_state last = {.selected = 5};
    char *text = golden_draw(s, VIEW_FINDINGS, 80, 24, false, &last);
    assert_non_null(strstr(text, "▶ U is wrong in 5 of"));
    assert_non_null(strstr(text, "6 of 6"));
    free(text);
    struct view_state vs = last;
    const struct view *view = views[VIEW_FINDINGS];
    struct view_answer answer = view->act(s, &vs, ACTION_ZOOM, 1);
    const struct cursor at = answer.to;
    assert_int_equal(answer.does, ANSWER_GOES);
    assert_int_equal(answer.view, VIEW_TILE);
    assert_true(at.head == 1 && at.q_tile == 6 && at.kv_tile == 5 && at.channel == asc_u && at.row == 3 && at.col == 5);
    vs.selected = 700;
    answer = view->act(s, &vs, ACTION_SOURCE, 1);
    assert_int_equal(answer.view, VIEW_SOURCE);
    assert_true(cursor_same(&answer.to, &at));
    assert_int_equal(view->act(s, &vs, ACTION_KV_NEXT, 1).does, ANSWER_PASSES);
    assert_int_equal(view_act(VIEW_FINDINGS, s, 80, 24, &vs, ACTION_Q_PREV, 2).does, ANSWER_DID);
    assert_int_equal(vs.selected, 3); /* from the last one */
    vs.selected = 5;
    j->findings[5].first.slot = -1;
    assert_int_equal(view->act(s, &vs, ACTION_ZOOM, 1).does, ANSWER_SAYS);
    j->n_findings = 0;
    assert_int_equal(view->act(s, &vs, ACTION_ZOOM, 1).does, ANSWER_PASSES);
    assert_true(golden_has(s, VIEW_FINDINGS, 80, 24, "nothing was found"));
    session_free(s);
}

/* Probe lines carry the verdict of their stage. */
static void source_says_what_is_wrong(void **state)
{
    (void)state;
    struct session *s = failing();
    assert_true(golden_has(s, VIEW_SOURCE, 80, 24, "13  S ✗"));
    s->run.trace->info.sites[0].channel = asc_p;
    assert_true(golden_has(s, VIEW_SOURCE, 80, 24, "13  P ~"));
    s->run.trace->info.sites[0].channel = asc_q;
    assert_true(golden_has(s, VIEW_SOURCE, 80, 24, "13  Q ok"));
    session_free(s);
}

/* No key and no command is left out of the help. */
static void help_has_everything(void **state)
{
    (void)state;
    struct session *s = hand_made_session(&hand_made_usual);
    char *text = golden_draw(s, VIEW_HELP, 200, 400, false, NULL);
    for (int a = 0; a < ACTION_COUNT; a++) {
        char line[512];
        snprintf(line, sizeof line, "\n %-16s %s", action_text(a)->keys, action_text(a)->help);
        const char *first = strstr(text, line);
        if (!first || strstr(first + 1, line))
            fail_msg("%s: not once in the help", action_text(a)->name);
    }
    for (int i = 0; command_text(i); i++)
        assert_non_null(strstr(text, command_text(i)->name));
    free(text);
    session_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_200x60),
        cmocka_unit_test(in_ascii),
        cmocka_unit_test(map_of_any_size),
        cmocka_unit_test(worst_wins),
        cmocka_unit_test(no_operands),
        cmocka_unit_test(operands_that_are_no_numbers),
        cmocka_unit_test(rulers),
        cmocka_unit_test(who_recorded_it),
        cmocka_unit_test(picture),
        cmocka_unit_test(cells_of_a_picture),
        cmocka_unit_test(findings),
        cmocka_unit_test(source_says_what_is_wrong),
        cmocka_unit_test(help_has_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
