/* The first screen: the answer is on it before a key is pressed. */
#include "engine/base/path.h"
#include "tui/views/layout.h"
#include "tui/views/panels.h"
#include "tui/views/view_text.h"

#include "tui/screen/number.h"
#include "tui/views/sign.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Where the rules of both sides meet the line between them. */
static void divider_draw(const struct session *s, struct canvas *c, const struct screen_layout *l)
{
    const struct rect all = {0, 0, c->rows, c->cols};
    const int col = l->divider.col;
    if (!l->divider.rows)
        return;
    canvas_fill(c, l->divider, STYLE_RULE, "│");
    hit_add(c, all, l->divider, HIT_DIVIDER, 0, 0, 0);
    canvas_put(c, all, l->top_rule.row, col, STYLE_RULE, "┬");
    char words[256];
    enum style style;
    if (text_columns(message_words(s, words, sizeof words, &style)) + 3 < col) /* the message lies on that rule */
        canvas_put(c, all, l->bottom_rule.row, col, STYLE_RULE, "┴");
    const int right[] = {l->element_rule.rows ? l->element_rule.row : -1,
                         l->source_rule.rows ? l->source_rule.row : -1};
    int met = l->state_rule.rows == 0;
    for (int i = 0; i < 2; i++) {
        if (right[i] < 0)
            continue;
        met |= right[i] == l->state_rule.row;
        canvas_put(c, all, right[i], col, STYLE_RULE, right[i] == l->state_rule.row ? "┼" : "├");
    }
    if (!met)
        canvas_put(c, all, l->state_rule.row, col, STYLE_RULE, "┤");
}

static void left_draw(const struct session *s, struct canvas *c, const struct screen_layout *l)
{
    char title[96];
    map_draw(s, c, l->map);
    if (!l->state.rows)
        return;
    snprintf(title, sizeof title, "row %d over kv", s->at.cursor.row);
    const bool roomy = text_columns(title) + 3 < l->state_rule.cols;
    rule_draw(c, l->state_rule, roomy ? title : NULL, NULL);
    if (!roomy)
        canvas_put(c, l->state_rule, 0, 1, STYLE_STRONG, title);
    state_draw(s, c, l->state, l->roomy);
}

static void right_draw(const struct session *s, struct canvas *c, const struct screen_layout *l,
                       const struct view_state *vs)
{
    char title[64], right[96];
    if (l->roomy) {
        tile_matrix_draw(s, c, l->tile, vs);
        snprintf(title, sizeof title, "cursor r%d,c%d", s->at.cursor.row, s->at.cursor.col);
        formula_words(s, vs, right, sizeof right);
        rule_draw(c, l->element_rule, title, right);
        element_draw(s, c, l->element, vs);
    } else {
        tile_list_draw(s, c, l->tile, vs);
    }
    if (!l->source.rows)
        return;
    source_words(s, right, sizeof right);
    rule_draw(c, l->source_rule, path_name(source_file(s) ? source_file(s) : ""), right);
    source_draw(s, c, l->source, source_window(s, l->source.rows), 1);
    legend_draw(s, c, l->legend);
}

/* 1 if got and want differ by about the same factor everywhere. Two roundings to e4m3, 2^-4 each, spread it by at most
   an eighth; what lies further apart no factor explains. */
static bool one_factor(const struct verdict *v)
{
    return !isnan(v->ratio_median) && v->ratio_spread <= fabsf(v->ratio_median) / 8;
}

static void titles_draw(const struct session *s, struct canvas *c, const struct screen_layout *l,
                        const struct view_state *vs)
{
    char left[96], right[96], ratio[96] = "", number[NUMBER_BYTES];
    const struct verdict *v = cursor_verdict(s, vs->global);
    map_title(s, left, sizeof left);
    tile_title(s, !l->roomy, vs, right, sizeof right);
    if (v && sign_of_tile(s, session_place(s)) == STATUS_UPSTREAM && !vs->global)
        snprintf(ratio, sizeof ratio, "right for its inputs; t: reference");
    else if (v && one_factor(v))
        snprintf(ratio, sizeof ratio, "median got/want %s", number_signed(number, (double)v->ratio_median, 7));
    struct rect side = l->top_rule;
    if (l->divider.rows) {
        side.cols = l->divider.col;
        rule_draw(c, side, left, NULL);
        side = (struct rect){l->top_rule.row, l->divider.col + 1, 1, l->top_rule.cols - l->divider.col - 1};
    }
    rule_draw(c, side, right, ratio);
}

static void view_overview_draw(const struct session *s, struct canvas *c, const struct view_state *vs)
{
    struct screen_layout l;
    if (screen_layout(c->cols, c->rows, vs->split, 0, &l) != 0 ||
        screen_layout(c->cols, c->rows, vs->split, finding_rows(s, c->cols, l.roomy), &l) != 0)
        return;
    header_draw(s, c, l.header);
    strip_draw(s, c, l.strip);
    if (l.facts.rows)
        facts_draw(s, c, l.facts);
    finding_draw(s, c, l.finding, l.roomy, vs);
    message_draw(s, c, l.bottom_rule);
    keys_draw(c, l.keys, VIEW_OVERVIEW);
    const struct rect body = {l.top_rule.row + 1, 0, l.bottom_rule.row - l.top_rule.row - 1, c->cols};
    if (session_failed_to_show(s) && !s->run.trace) {
        rule_draw(c, l.top_rule, NULL, NULL);
        error_draw(s, c, body);
    } else if (!s->run.trace) {
        rule_draw(c, l.top_rule, NULL, NULL);
    } else {
        titles_draw(s, c, &l, vs);
        left_draw(s, c, &l);
        right_draw(s, c, &l, vs);
        divider_draw(s, c, &l);
    }
}

static struct view_answer act(const struct session *s, struct view_state *vs, enum action a, int times)
{
    (void)vs;
    (void)times;
    if (a == ACTION_ZOOM && declaration_here(s))
        return (struct view_answer){.does = ANSWER_DECLARES, .finding = s->run.finding};
    return a == ACTION_ZOOM ? (struct view_answer){.does = ANSWER_OPENS, .view = VIEW_TILE} : (struct view_answer){0};
}

const struct view view_overview = {.draw = view_overview_draw, .act = act};
