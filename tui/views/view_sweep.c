/* A sweep: where it fails in sentences, then its points by the two axes that the rule names. */
#include "engine/base/text.h"
#include "engine/sweep/sweep.h"
#include "tui/screen/text_flow.h"
#include "tui/views/panels.h"
#include "tui/views/view_text.h"

#include <stdio.h>
#include <string.h>

/* The picture: columns by one axis, rows by the other. */
struct grid_picture {
    const struct sweep *of;
    int x, y; /* axes; -1: there is none, and one column or row */
    int cols, rows;
};

static struct grid_picture picture_of(const struct session *s)
{
    const struct sweep *sweep = s->swept;
    struct grid_picture p = {.of = sweep, .x = sweep->shown[0], .y = sweep->shown[1]};
    /* The longer one goes across. */
    if (p.y >= 0 && sweep->axis[p.y].n > sweep->axis[p.x].n) {
        p.x = sweep->shown[1];
        p.y = sweep->shown[0];
    }
    p.cols = p.x < 0 ? 1 : sweep->axis[p.x].n;
    p.rows = p.y < 0 ? 1 : sweep->axis[p.y].n;
    return p;
}

static const char *label(const struct grid_picture *p, int axis, int value)
{
    return axis < 0 ? "" : p->of->axis[axis].value[value];
}

static bool is_in(const struct grid_picture *p, const struct sweep_point *point, int cell)
{
    return (p->x < 0 || point->at[p->x] == cell % p->cols) && (p->y < 0 || point->at[p->y] == cell / p->cols);
}

static int cell_of(const struct grid_picture *p, const struct sweep_point *point)
{
    return (p->y < 0 ? 0 : point->at[p->y]) * p->cols + (p->x < 0 ? 0 : point->at[p->x]);
}

struct tally {
    int n[SWEEP_RESULTS];
};

static struct tally tally_of(const struct grid_picture *p, int cell)
{
    struct tally t = {{0}};
    for (size_t i = 0; i < p->of->n; i++)
        if (is_in(p, &p->of->point[i], cell))
            t.n[p->of->point[i].result]++;
    return t;
}

static const char *glyph_of(struct tally t, enum style *style)
{
    const int bad = t.n[SWEEP_FAIL], right = t.n[SWEEP_OK];
    *style = bad && right ? STYLE_WARNING : bad ? STYLE_BAD : right ? STYLE_OK : STYLE_DIM;
    return bad && right ? "~" : bad ? "✗" : right ? "·" : t.n[SWEEP_DECLINED] ? "-" : t.n[SWEEP_NOT_TRIED] ? "?" : " ";
}

static int selected(const struct grid_picture *p, const struct view_state *vs)
{
    return list_selected(vs->selected, p->cols * p->rows);
}

static int begin(const struct session *s)
{
    if (!s->swept)
        return 0;
    const struct grid_picture p = picture_of(s);
    const struct sweep_point *least = sweep_smallest(s->swept, SWEEP_FAIL);
    return cell_of(&p, least ? least : &s->swept->point[0]);
}

static bool comes_before(const struct sweep *s, const struct sweep_point *a, const struct sweep_point *b)
{
    const bool fails = a->result == SWEEP_FAIL;
    return fails != (b->result == SWEEP_FAIL) ? fails : sweep_point_size(s, a) < sweep_point_size(s, b);
}

/* The smallest that fails, else the smallest; -1: the cell has none. */
static int point_in(const struct grid_picture *p, int cell)
{
    int found = -1;
    for (size_t i = 0; i < p->of->n; i++) {
        const struct sweep_point *point = &p->of->point[i];
        if (is_in(p, point, cell) && (found < 0 || comes_before(p->of, point, &p->of->point[found])))
            found = (int)i;
    }
    return found;
}

static void sentences_flow(const struct sweep *sweep, struct text_flow *f)
{
    char line[SWEEP_LINE_BYTES], name[SWEEP_LINE_BYTES]; /* of a file that anybody may have written */
    for (int i = 0; sweep_sentence(sweep, i, line, sizeof line); i++)
        flow_put(f, i < sweep->rules.n ? STYLE_STRONG : STYLE_TEXT, text_name(line, strlen(line), name, sizeof name));
}

/* As many columns and rows as there is room for, the cursor's among them. Returns the lines used. */
static int grid_draw(const struct grid_picture *p, struct canvas *c, struct rect area, int cursor)
{
    int left = 0, wide = 1;
    for (int y = 0; y < p->rows; y++)
        left = text_columns(label(p, p->y, y)) > left ? text_columns(label(p, p->y, y)) : left;
    for (int x = 0; x < p->cols; x++)
        wide = text_columns(label(p, p->x, x)) > wide ? text_columns(label(p, p->x, x)) : wide;
    if (p->y >= 0 && text_columns(sweep_axis_name(&p->of->axis[p->y])) > left)
        left = text_columns(sweep_axis_name(&p->of->axis[p->y]));
    left = left > area.cols / 3 ? area.cols / 3 : left;
    wide = wide > 12 ? 12 : wide;
    int fits = (area.cols - left - 2) / (wide + 1), rows = area.rows - 2;
    fits = fits < 1 ? 1 : fits > p->cols ? p->cols : fits;
    rows = rows < 1 ? 1 : rows > p->rows ? p->rows : rows;
    const int first_x = window_first(cursor % p->cols, fits, p->cols),
              first_y = window_first(cursor / p->cols, rows, p->rows);
    if (p->x >= 0)
        canvas_printf(c, area, 0, left + 2, STYLE_DIM, "%s%s", sweep_axis_name(&p->of->axis[p->x]),
                      fits < p->cols ? " (h l for more)" : "");
    if (p->y >= 0)
        canvas_put_cut(c, (struct rect){area.row, area.col, 2, left + 1}, 1, 0, STYLE_DIM,
                       sweep_axis_name(&p->of->axis[p->y]));
    for (int x = 0; x < fits; x++)
        canvas_put_cut(c, (struct rect){area.row + 1, area.col + left + 2 + x * (wide + 1), 1, wide}, 0, 0, STYLE_DIM,
                       label(p, p->x, first_x + x));
    for (int y = 0; y < rows; y++) {
        canvas_put_cut(c, (struct rect){area.row + 2 + y, area.col, 1, left}, 0, 0, STYLE_DIM,
                       label(p, p->y, first_y + y));
        for (int x = 0; x < fits; x++) {
            const int cell = (first_y + y) * p->cols + first_x + x;
            enum style style;
            const char *glyph = glyph_of(tally_of(p, cell), &style);
            canvas_put(c, area, 2 + y, left + 2 + x * (wide + 1), cell == cursor ? STYLE_CURSOR : style, glyph);
        }
    }
    return 2 + rows;
}

static void cell_words(const struct grid_picture *p, int cell, char *out, size_t bytes)
{
    const struct tally t = tally_of(p, cell);
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < 2; i++) {
        const int axis = i ? p->y : p->x;
        if (axis >= 0 && used < bytes)
            used += (size_t)snprintf(out + used, bytes - used, "%s%s=%s", used ? " " : "",
                                     sweep_axis_name(&p->of->axis[axis]),
                                     label(p, axis, i ? cell / p->cols : cell % p->cols));
    }
    if (used < bytes)
        used += (size_t)snprintf(out + used, bytes - used, ": %d fail, %d right", t.n[SWEEP_FAIL], t.n[SWEEP_OK]);
    for (int r = SWEEP_DECLINED; r < SWEEP_RESULTS && used < bytes; r++)
        if (t.n[r])
            used += (size_t)snprintf(out + used, bytes - used, ", %d %s", t.n[r], sweep_result_names[r]);
}

/* The points of a cell: what else they are at, and what came of them. */
static void points_flow(const struct grid_picture *p, int cell, struct text_flow *f)
{
    static const enum style styles[] = {STYLE_OK, STYLE_BAD, STYLE_DIM, STYLE_DIM};
    const int first = point_in(p, cell);
    if (first < 0)
        flow_put(f, STYLE_DIM, "no point was drawn here");
    for (size_t k = 0; k < p->of->n; k++) {
        /* The one that Enter runs stands first. */
        const size_t i = k == 0 ? (size_t)(first < 0 ? 0 : first) : k <= (size_t)first ? k - 1 : k;
        const struct sweep_point *point = &p->of->point[i];
        char words[512], line[700];
        if (first < 0 || !is_in(p, point, cell))
            continue;
        sweep_point_words(p->of, point, words, sizeof words);
        snprintf(line, sizeof line, "%-9s %s%s%s", sweep_result_names[point->result], words, point->what ? "  " : "",
                 point->what ? point->what : "");
        flow_cut(f, styles[point->result], line);
    }
}

static void view_sweep_draw(const struct session *s, struct canvas *c, const struct view_state *vs)
{
    const struct rect body = view_body(c->cols, c->rows);
    char right[96], words[256];
    if (!s->swept) {
        struct text_flow f = {.canvas = c, .area = body};
        view_frame_draw(s, c, VIEW_SWEEP, "sweep", NULL);
        flow_put(&f, STYLE_DIM,
                 "no sweep is open: attnscope sweep KERNEL.cu --save FILE.json makes one, :sweep FILE.json opens it");
        return;
    }
    const struct grid_picture p = picture_of(s);
    const int cursor = selected(&p, vs);
    snprintf(right, sizeof right, "%s%zu of %.0f points, %zu fail, %zu right",
             s->swept->ended ? "" : "stopped early: ", s->swept->n, s->swept->grid, sweep_count(s->swept, SWEEP_FAIL),
             sweep_count(s->swept, SWEEP_OK));
    view_frame_draw(s, c, VIEW_SWEEP, "sweep", right);
    struct text_flow f = {.canvas = c, .area = {body.row, body.col, body.rows / 2, body.cols}};
    sentences_flow(s->swept, &f);
    int used = (f.line > f.area.rows ? f.area.rows : f.line) + 1;
    const int points = body.rows - used > 12 ? 6 : 3; /* lines for the cell */
    used += grid_draw(&p, c, (struct rect){body.row + used, body.col, body.rows - used - points, body.cols}, cursor);
    if (body.rows - used < 2)
        return;
    cell_words(&p, cursor, words, sizeof words);
    rule_draw(c, (struct rect){body.row + used, 0, 1, body.cols}, words,
              body.cols < 100 ? "· right  ✗ fail  ~ both" : "· right  ✗ fail  ~ both  - declined  ? not tried");
    struct text_flow rest = {.canvas = c, .area = {body.row + used + 1, 1, body.rows - used - 1, body.cols - 2}};
    points_flow(&p, cursor, &rest);
}

static struct view_answer act(const struct session *s, struct view_state *vs, enum action a, int times)
{
    const struct view_answer did = {.does = ANSWER_DID};
    if (!s->swept)
        return (struct view_answer){0};
    const struct grid_picture p = picture_of(s);
    const int cell = selected(&p, vs);
    int x = cell % p.cols, y = cell / p.cols;
    switch (a) {
    case ACTION_KV_PREV:
    case ACTION_KV_NEXT:
        x = list_selected(x + (a == ACTION_KV_NEXT ? times : -times), p.cols);
        break;
    case ACTION_Q_PREV:
    case ACTION_Q_NEXT:
        y = list_selected(y + (a == ACTION_Q_NEXT ? times : -times), p.rows);
        break;
    case ACTION_ZOOM: {
        const int point = point_in(&p, cell);
        if (point < 0)
            return (struct view_answer){.does = ANSWER_SAYS, .text = "no point was drawn here"};
        return (struct view_answer){.does = ANSWER_RUNS_POINT, .run = point, .view = VIEW_OVERVIEW};
    }
    default:
        return (struct view_answer){0};
    }
    vs->selected = y * p.cols + x;
    return did;
}

const struct view view_sweep = {.draw = view_sweep_draw, .begin = begin, .act = act};
