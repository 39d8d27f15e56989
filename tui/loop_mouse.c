/* The mouse: a click goes to what it is on, a second one on the same place opens it, the wheel steps or scrolls, the
   line between the overview's sides can be drawn. */
#include "tui/loop_state.h"
#include "tui/screen/term.h"

#define WHEEL_LINES 3 /* of text */

static void open_it(struct loop *l)
{
    loop_act(l, ACTION_ZOOM);
}

static void click_tile(struct loop *l, int q, int kv)
{
    struct session *s = l->s;
    const int by_q = q - s->at.cursor.q_tile, by_kv = kv < 0 ? 0 : kv - s->at.cursor.kv_tile;
    if (!by_q && !by_kv)
        open_it(l);
    if (by_q)
        session_step_q(s, by_q);
    if (by_kv)
        session_step_kv(s, by_kv);
}

static void click_element(struct loop *l, int row, int col)
{
    struct session *s = l->s;
    const int by_row = row - s->at.cursor.row, by_col = col - s->at.cursor.col;
    if (!by_row && !by_col)
        open_it(l);
    if (by_row)
        session_step_row(s, by_row);
    if (by_col)
        session_step_col(s, by_col);
}

static void click_stage(struct loop *l, int channel)
{
    struct session *s = l->s;
    int by = 0;
    if (!s->run.trace || channel == (int)s->at.cursor.channel)
        return;
    if (!trace_has(s->run.trace, channel)) {
        session_say(l->s, "this stage is not recorded");
        return;
    }
    /* Steps count recorded stages. */
    const int direction = channel > (int)s->at.cursor.channel ? 1 : -1;
    for (int ch = (int)s->at.cursor.channel; ch != channel; ch += direction)
        by += trace_has(s->run.trace, ch + direction);
    session_step_stage(s, direction * by);
}

static void click_head(struct loop *l, int head)
{
    const struct session *s = l->s;
    const int at = s->run.trace ? s->at.cursor.batch * s->run.trace->problem.heads + s->at.cursor.head : head;
    if (head != at)
        session_step_head(l->s, head - at);
}

static void click_kv(struct loop *l, int kv)
{
    if (kv != l->s->at.cursor.kv_tile)
        session_step_kv(l->s, kv - l->s->at.cursor.kv_tile);
}

static void click_cell(struct loop *l, int line, int column)
{
    struct cursor to = l->s->at.cursor;
    if (!views[l->view]->click || !views[l->view]->click(l->s, &l->vs, &l->canvas, line, column, &to))
        return;
    if (cursor_same(&to, &l->s->at.cursor))
        open_it(l);
    else
        session_go_cursor(l->s, &to);
}

static void press(struct loop *l, enum hit_kind kind, int first, int second)
{
    switch (kind) {
    case HIT_TILE:
        click_tile(l, first, second);
        break;
    case HIT_KV:
        click_kv(l, second);
        break;
    case HIT_HEAD:
        click_head(l, second);
        break;
    case HIT_STAGE:
        click_stage(l, second);
        break;
    case HIT_ELEMENT:
    case HIT_COLUMN:
        click_element(l, first, second);
        break;
    case HIT_CELL:
        click_cell(l, first, second);
        break;
    case HIT_ENTRY:
        if (first == l->vs.selected)
            open_it(l);
        else
            l->vs.selected = first;
        break;
    case HIT_ACTION:
        loop_act(l, (enum action)second);
        break;
    case HIT_DIVIDER:
        l->drawing_divider = true;
        break;
    }
}

/* What a turn of the wheel steps over; the key's own way where it is on nothing. */
static void wheel(struct loop *l, int known, enum hit_kind kind, int down)
{
    if (!known || views[l->view]->lines)
        kind = HIT_ENTRY;
    switch (kind) {
    case HIT_KV:
        loop_move(l, down ? ACTION_KV_NEXT : ACTION_KV_PREV);
        break;
    case HIT_HEAD:
        loop_move(l, down ? ACTION_HEAD_NEXT : ACTION_HEAD_PREV);
        break;
    case HIT_STAGE:
        loop_move(l, down ? ACTION_NEXT_STAGE : ACTION_PREV_STAGE);
        break;
    case HIT_ELEMENT:
        loop_move(l, down ? ACTION_ROW_NEXT : ACTION_ROW_PREV);
        break;
    case HIT_COLUMN:
        loop_move(l, down ? ACTION_COL_NEXT : ACTION_COL_PREV);
        break;
    default:
        for (int i = 0; i < (views[l->view]->lines ? WHEEL_LINES : 1); i++)
            loop_act(l, down ? ACTION_Q_NEXT : ACTION_Q_PREV);
    }
}

void loop_take_mouse(struct loop *l)
{
    const struct mouse *m = term_mouse();
    enum hit_kind kind = HIT_ENTRY;
    int first = 0, second = 0;
    if (l->naming || l->prompt.sign || l->pending != ACTION_NONE)
        return;
    const int known = hits_find(&l->hits, m->row, m->col, &kind, &first, &second);
    if (!l->saver.active && (m->kind == MOUSE_PRESS || m->kind >= MOUSE_WHEEL_UP))
        session_hush(l->s);
    switch (m->kind) {
    case MOUSE_PRESS:
        l->drawing_divider = false;
        if (known)
            press(l, kind, first, second);
        break;
    case MOUSE_DRAG:
        if (l->drawing_divider)
            l->vs.split = m->col > 0 ? m->col : 1;
        break;
    case MOUSE_RELEASE:
        l->drawing_divider = false;
        break;
    case MOUSE_WHEEL_UP:
    case MOUSE_WHEEL_DOWN:
        wheel(l, known, kind, m->kind == MOUSE_WHEEL_DOWN);
        break;
    }
}
