/* Views of one stage, one tile, one row, one element: what they show at their edges. */
#include "tests/unit/tui/golden_screen.h"
#include "tui/commands.h"
#include "tui/keys/actions.h"
#include "tui/views/view_text.h"

static void large(const struct session *s, int view, const char *name)
{
    char *text = draw(s, view, 200, 60, 0, 0);
    compare(name, text);
    free(text);
}

static void at_200x60(void **state)
{
    (void)state;
    struct session *s = fixture_fail();
    large(s, VIEW_TILE, "tile-200x60");
    large(s, VIEW_MAP, "map-200x60");
    large(s, VIEW_OPERANDS, "operands-200x60");
    large(s, VIEW_ROW, "row-200x60");
    fixture_free(s);
}

static void in_ascii(void **state)
{
    (void)state;
    static const struct {
        int view;
        const char *name;
    } shown[] = {{VIEW_TILE, "tile-ascii-80x24"},
                 {VIEW_MAP, "map-ascii-80x24"},
                 {VIEW_OPERANDS, "operands-ascii-80x24"},
                 {VIEW_ROW, "row-ascii-80x24"}};
    struct session *s = fixture_fail();
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        char *text = draw(s, shown[i].view, 80, 24, 1, 0);
        compare(shown[i].name, text);
        free(text);
    }
    fixture_free(s);
}

static int has(const struct session *s, int view, int cols, int rows, const char *words)
{
    char *text = draw(s, view, cols, rows, 0, 0);
    const int found = strstr(text, words) != NULL;
    if (!found)
        fprintf(stderr, "no '%s' on\n%s", words, text);
    free(text);
    return found;
}

/* From one tile to more than any screen holds: the cursor is always there, and what a sign stands for is said. */
static void map_of_any_size(void **state)
{
    (void)state;
    static const struct {
        struct fixture_shape shape;
        const char *words;
    } maps[] = {{{1, 1, 8, 8, 8, 8}, "1 head, 1x1 tiles, a sign: a tile"},
                {{1, 1, 1024, 1024, 8, 8}, "a sign: the worst of 8x2"},
                {{2, 3, 64, 128, 8, 8}, "6 heads, 8x16 tiles each, a sign: the worst of 1x2"},
                {{4, 40, 16, 16, 8, 8}, "of 160, 2x2 tiles each"}};
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        const struct fixture_shape *shape = &maps[i].shape;
        const int q_tiles = shape->q_len / shape->tile, n = q_tiles * shape->heads * shape->batch;
        struct session *s = fixture_run(shape, n, asc_s, n);
        assert_true(has(s, VIEW_MAP, 80, 24, maps[i].words));
        s->cursor = (struct cursor){.batch = shape->batch - 1,
                                    .head = shape->heads - 1,
                                    .q_tile = q_tiles - 1,
                                    .kv_tile = shape->kv_len / shape->tile - 1,
                                    .channel = asc_s};
        assert_true(has(s, VIEW_MAP, 80, 24, "◆"));
        assert_true(has(s, VIEW_MAP, 200, 60, "◆"));
        s->cursor.channel = asc_o;
        assert_true(has(s, VIEW_MAP, 80, 24, "◆"));
        fixture_free(s);
    }
}

/* Of tiles that share a sign the worst one shows; heads with more bad tiles come first. */
static void worst_wins(void **state)
{
    (void)state;
    struct session *s = fixture_run(&fixture_mission, 64, -1, 64);
    struct tile_verdicts *v = &s->judgement->tiles[(5 * 8 + 3) * 8 * ASC_CHANNELS + asc_s];
    fixture_verdict(&v->local, CLASS_NAN, 1, 4096);
    v = &s->judgement->tiles[((2 * 8 + 3) * 8 + 6) * ASC_CHANNELS + asc_s];
    fixture_verdict(&v->local, CLASS_OFF, 4096, 4096);
    v -= ASC_CHANNELS;
    fixture_verdict(&v->local, CLASS_OFF, 4096, 4096);
    char *text = draw_state(s, VIEW_MAP, 80, 24, 0, &(struct view_state){.by_worst = 1});
    const char *h2 = strstr(text, "h2 ✗ 3"), *h5 = strstr(text, "h5 N 1"), *h1 = strstr(text, "h1 ·");
    assert_non_null(h2);
    assert_true(h5 > h2 && h1 > h5);
    free(text);
    check(s, VIEW_MAP, "worst-map");
    fixture_free(s);
    static const struct fixture_shape one = {1, 1, 1024, 1024, 8, 8};
    s = fixture_run(&one, 128, -1, 128);
    v = &s->judgement->tiles[(77 * 128 + 100) * ASC_CHANNELS + asc_s];
    fixture_verdict(&v->local, CLASS_OFF, 1, 64);
    (v + ASC_CHANNELS)->local = v->local;
    fixture_verdict(&(v + ASC_CHANNELS)->local, CLASS_INF, 1, 64);
    text = draw(s, VIEW_MAP, 80, 24, 0, 0);
    assert_non_null(strstr(text, "··∞·"));
    assert_null(strstr(text, "✗·"));
    free(text);
    fixture_free(s);
}

/* Why an element was made from nothing that is known. */
static void no_operands(void **state)
{
    (void)state;
    struct session *s = fixture_fail();
    s->operands.derived = DERIVED_UNVISITED;
    assert_true(has(s, VIEW_OPERANDS, 80, 24, "the kernel did not come to this tile"));
    s->operands.derived = DERIVED_MASKED;
    assert_true(has(s, VIEW_OPERANDS, 80, 24, "the row sees nothing of this tile"));
    s->operands.derived = DERIVED_NOT;
    assert_true(has(s, VIEW_OPERANDS, 80, 24, "is not known"));
    s->cursor.channel = asc_m;
    fixture_detail(s);
    assert_true(has(s, VIEW_OPERANDS, 80, 24, "not recorded, expected"));
    fixture_free(s);
}

/* Terms that are no numbers come with their share unknown, and what does not fit is summed up. */
static void operands_that_are_no_numbers(void **state)
{
    (void)state;
    struct session *s = fixture_fail();
    struct derivation *d = &s->operands;
    d->terms[0].got[0] = d->terms[0].term_got = NAN;
    d->terms[1].got[1] = d->terms[1].term_got = -INFINITY;
    d->size_got = INFINITY;
    d->got = d->want_local = NAN;
    snprintf(d->note, sizeof d->note, "3 padding keys take part as well");
    check(s, VIEW_OPERANDS, "nan-operands");
    fixture_free(s);
}

/* The rulers are of whole rows and columns, whatever is visible, and count what is no number as worst. */
static void rulers(void **state)
{
    (void)state;
    struct session *s = fixture_run(&fixture_mission, 64, -1, 64);
    assert_true(has(s, VIEW_TILE, 80, 24, "▂ 0.05"));
    s->detail.got[2 * 64 + 60] = NAN;
    s->detail.class_local[2 * 64 + 60] = CLASS_NAN;
    assert_true(has(s, VIEW_TILE, 80, 24, "█ inf"));
    s->detail.got[2 * 64 + 60] = s->detail.want_local[2 * 64 + 60] + 2e-5; /* about the bound */
    s->shown = SHOW_ULP;
    check(s, VIEW_TILE, "ulp-tile");
    fixture_free(s);
}

/* Every finding with its evidence and its survivors; the selected one is wholly visible, and has a place. */
static void findings(void **state)
{
    (void)state;
    struct session *s = fixture_fail();
    struct judgement *j = s->judgement;
    j->findings[0].evidence.rows = 512;
    j->findings[0].evidence.chance_tried = 20000;
    j->findings[0].evidence.chance_hit = 3;
    for (int i = 1; i < 6; i++) {
        j->findings[i] =
            (struct finding){.channel = asc_u, .first = {9 + i, i, asc_u}, .row = 3, .col = i, .n_also = 2};
        j->findings[i].also[0] = CAUSE_s_scaled_twice;
        j->findings[i].also[1] = CAUSE_s_not_scaled;
        snprintf(j->findings[i].text, sizeof j->findings[i].text, "wrong in %d of 25600 elements: no known cause", i);
    }
    j->n_findings = 6;
    check(s, VIEW_FINDINGS, "several-findings");
    const struct view_state last = {.selected = 5}, none = {.selected = 700};
    char *text = draw_state(s, VIEW_FINDINGS, 80, 24, 0, &last);
    assert_non_null(strstr(text, "▶ U: wrong in 5 of"));
    assert_non_null(strstr(text, "6 of 6"));
    free(text);
    struct cursor at;
    assert_int_equal(findings_view_place(s, &last, &at), 1);
    assert_true(at.head == 1 && at.q_tile == 6 && at.kv_tile == 5 && at.channel == asc_u && at.row == 3 && at.col == 5);
    assert_int_equal(findings_view_place(s, &none, &at), 1);
    j->findings[5].first.slot = -1;
    assert_int_equal(findings_view_place(s, &last, &at), 0);
    j->n_findings = 0;
    assert_int_equal(findings_view_place(s, &last, &at), 0);
    assert_true(has(s, VIEW_FINDINGS, 80, 24, "nothing was found"));
    fixture_free(s);
}

/* Probe lines carry the verdict of their stage. */
static void source_says_what_is_wrong(void **state)
{
    (void)state;
    struct session *s = fixture_fail();
    assert_true(has(s, VIEW_SOURCE, 80, 24, "13  S ✗"));
    s->trace->info.sites[0].channel = asc_p;
    assert_true(has(s, VIEW_SOURCE, 80, 24, "13  P ~"));
    s->trace->info.sites[0].channel = asc_q;
    assert_true(has(s, VIEW_SOURCE, 80, 24, "13  Q ok"));
    fixture_free(s);
}

/* No key and no command is left out of the help. */
static void help_has_everything(void **state)
{
    (void)state;
    struct session *s = fixture_new();
    char *text = draw(s, VIEW_HELP, 200, 400, 0, 0);
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
    fixture_free(s);
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
        cmocka_unit_test(findings),
        cmocka_unit_test(source_says_what_is_wrong),
        cmocka_unit_test(help_has_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
