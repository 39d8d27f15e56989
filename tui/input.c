/* Keys: counts, marks, and what each action does. */
#include "engine/session/rounding_look.h"
#include "tui/commands.h"
#include "tui/copy.h"
#include "tui/loop_state.h"
#include "tui/screen/term.h"
#include "tui/views/looks.h"
#include <stdio.h>
#include <string.h>

#define PAGE_TILES 8
#define MAX_COUNT 1000000

void loop_say(struct loop *l, const char *text)
{
    snprintf(l->s->message, sizeof l->s->message, "%.*s", (int)sizeof l->s->message - 1, text);
}

void loop_open_view(struct loop *l, enum view_id view)
{
    if (view == l->view)
        return;
    if (l->n_back == MAX_BACK)
        memmove(l->back, l->back + 1, (size_t)--l->n_back * sizeof *l->back);
    l->back[l->n_back++] = l->view;
    l->view = view;
    l->vs.top = view_start_top(view, l->s, l->cols, l->rows);
    l->vs.selected = view == VIEW_RUNS ? runs_view_start(l->s) : 0;
}

static void cycle_shown(struct loop *l)
{
    const struct tile_detail *d = &l->s->detail;
    session_cycle_shown(l->s);
    if (d->got && d->cols == 1)
        loop_say(l, "v changes what tiles of several columns show: the list of one column has all four numbers");
}

static void toggle_scan(struct loop *l)
{
    const int stopped = session_look_toggle(l->s);
    loop_say(l, stopped < 0 ? "nothing is under way" : stopped ? "stopped: x goes on" : "");
}

static void cancel(struct loop *l)
{
    if (session_busy(l->s))
        session_cancel(l->s);
    else if (session_stop_study(l->s) || session_stop_rounding(l->s))
        return;
    else
        toggle_scan(l);
}

void loop_go_back(struct loop *l)
{
    if (l->n_back > 0) {
        l->view = l->back[--l->n_back];
        l->vs.top = view_start_top(l->view, l->s, l->cols, l->rows);
    } else if (l->view != VIEW_OVERVIEW) {
        l->view = VIEW_OVERVIEW;
    } else if (session_busy(l->s)) {
        session_cancel(l->s);
    } else {
        session_stop_study(l->s);
    }
}

/* Views of one element. */
static int shows_element(const struct loop *l)
{
    return l->view == VIEW_TILE || l->view == VIEW_OPERANDS;
}

static void zoom(struct loop *l)
{
    if (shows_element(l))
        loop_open_view(l, VIEW_SOURCE);
    else if (l->view == VIEW_OVERVIEW || l->view == VIEW_MAP || l->view == VIEW_ONSET)
        loop_open_view(l, VIEW_TILE);
}

/* Keys that scroll views of text; 1 if this was one. */
static int scroll(struct loop *l, enum action a, int times)
{
    const int page = view_body(l->cols, l->rows).rows;
    if (!views[l->view].lines)
        return 0;
    int by = a == ACTION_Q_NEXT      ? 1
             : a == ACTION_Q_PREV    ? -1
             : a == ACTION_PAGE_DOWN ? page
             : a == ACTION_PAGE_UP   ? -page
                                     : 0;
    l->vs.top = view_clamp_top(l->view, l->s, l->cols, l->rows, l->vs.top + by * times);
    return by != 0;
}

/* In views of one element the keys that step over tiles step over elements. */
static enum action within_tile(enum action a)
{
    switch (a) {
    case ACTION_KV_PREV:
        return ACTION_COL_PREV;
    case ACTION_KV_NEXT:
        return ACTION_COL_NEXT;
    case ACTION_Q_PREV:
        return ACTION_ROW_PREV;
    case ACTION_Q_NEXT:
        return ACTION_ROW_NEXT;
    default:
        return a;
    }
}

static int step(struct loop *l, enum action a, int times)
{
    static const struct {
        enum action action;
        int (*step)(struct session *s, int by);
        int by;
    } steps[] = {
        {ACTION_NEXT_BAD, session_step_bad, 1},
        {ACTION_PREV_BAD, session_step_bad, -1},
        {ACTION_NEXT_STAGE, session_step_stage, 1},
        {ACTION_PREV_STAGE, session_step_stage, -1},
        {ACTION_STEP, session_step_order, 1},
        {ACTION_STEP_BACK, session_step_order, -1},
        {ACTION_VISIT_NEXT, session_step_visit, 1},
        {ACTION_VISIT_PREV, session_step_visit, -1},
        {ACTION_ELEMENT_NEXT, session_step_element, 1},
        {ACTION_ELEMENT_PREV, session_step_element, -1},
        {ACTION_HEAD_NEXT, session_step_head, 1},
        {ACTION_HEAD_PREV, session_step_head, -1},
        {ACTION_KV_NEXT, session_step_kv, 1},
        {ACTION_KV_PREV, session_step_kv, -1},
        {ACTION_Q_NEXT, session_step_q, 1},
        {ACTION_Q_PREV, session_step_q, -1},
        {ACTION_ROW_NEXT, session_step_row, 1},
        {ACTION_ROW_PREV, session_step_row, -1},
        {ACTION_COL_NEXT, session_step_col, 1},
        {ACTION_COL_PREV, session_step_col, -1},
        {ACTION_STOP_NEXT, session_seek, 1},
        {ACTION_STOP_PREV, session_seek, -1},
        {ACTION_NEXT_ROOT, session_go_root, 1},
        {ACTION_PREV_ROOT, session_go_root, -1},
        {ACTION_JUMP_FORWARD, session_jump, 1},
        {ACTION_JUMP_BACK, session_jump, -1},
    };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (steps[i].action == a) {
            steps[i].step(l->s, steps[i].by * times);
            return 1;
        }
    if (a == ACTION_FIRST_BAD)
        session_go_first_bad(l->s);
    else if (a == ACTION_WORST)
        session_go_worst(l->s);
    else if (a == ACTION_PAGE_DOWN || a == ACTION_PAGE_UP)
        (shows_element(l) ? session_step_row : session_step_q)(l->s,
                                                               (a == ACTION_PAGE_UP ? -times : times) * PAGE_TILES);
    else
        return 0;
    return 1;
}

/* Another view of lines that has the text, findings and log first, then the source; -1: none has. The keys' own page is
   only searched while it is open. */
static int search_elsewhere(const struct loop *l, int *line)
{
    for (int i = -2; i < VIEW_COUNT; i++) {
        const enum view_id view = i == -2 ? VIEW_LOG : i == -1 ? VIEW_SOURCE : (enum view_id)i;
        const struct view_state vs = {0};
        if (view == l->view || view == VIEW_HELP)
            continue;
        *line = search_view(&l->search, view, l->s, &vs, l->cols, -1, 1);
        if (*line >= 0)
            return (int)view;
        if (*line == SEARCH_NO_MEMORY)
            return -1;
    }
    return -1;
}

void loop_search(struct loop *l, int by)
{
    struct search *search = &l->search;
    const int known = by != 0 && search->line >= 0 && search->view == l->view;
    const int begin = known ? search->line : l->vs.top - (by >= 0);
    int line = search_view(search, l->view, l->s, &l->vs, l->cols, begin, by ? by : 1);
    if (line == -1 && by == 0) {
        const int view = search_elsewhere(l, &line);
        if (view >= 0)
            loop_open_view(l, (enum view_id)view);
    }
    search->active = line >= 0;
    if (line < 0) {
        snprintf(l->s->message, sizeof l->s->message,
                 line == SEARCH_NO_MEMORY ? "out of memory for a search for '%.100s'" : "'%.100s' is nowhere",
                 search->text);
        return;
    }
    search->line = line;
    search->view = l->view;
    /* In the middle, as far as the text goes. */
    l->vs.top = view_clamp_top(l->view, l->s, l->cols, l->rows, line - view_body(l->cols, l->rows).rows / 2);
    snprintf(l->s->message, sizeof l->s->message, "'%.100s' on line %d: n, N go on, Esc ends", search->text, line + 1);
}

void loop_toggle_pin(struct loop *l, const struct cursor *at)
{
    const int pinned = pins_toggle(&l->s->pins, at);
    if (!l->s->trace || pinned < 0) {
        loop_say(l, l->s->trace ? "four elements are pinned already: `:unpin N`" : "there is no run yet");
        return;
    }
    session_refresh_detail(l->s);
    loop_say(l, pinned ? "pinned" : "not pinned any more");
}

static void copy(struct loop *l, int key)
{
    const struct copy_source from = {l->s, views[l->view].name, l->cols, l->rows};
    char text[COPY_BYTES], menu[100];
    int edited = 0;
    if (!copy_name((uint32_t)key)) {
        copy_menu(menu, sizeof menu);
        snprintf(l->s->message, sizeof l->s->message, "nothing was copied; %s", menu);
    } else if ((edited = copy_text(&from, (uint32_t)key, text, sizeof text)) < 0) {
        loop_say(l, text);
    } else {
        term_copy(text);
        snprintf(l->s->message, sizeof l->s->message, "copied%s: %.180s",
                 edited ? " (the kernel was edited since this run: it runs what is there now)" : "", text);
    }
}

/* The key behind m, ' or Y. */
static void take_letter(struct loop *l, int key)
{
    const enum action asked = l->pending;
    l->pending = ACTION_NONE;
    l->s->message[0] = '\0';
    if (key == KEY_ID_ESC)
        return;
    if (asked == ACTION_COPY)
        copy(l, key);
    else if (asked == ACTION_GO_MARK)
        session_go_mark(l->s, (uint32_t)key);
    else if (jumps_set_mark(&l->s->jumps, (uint32_t)key, &l->s->cursor))
        snprintf(l->s->message, sizeof l->s->message, "mark %c", key);
    else
        loop_say(l, "a mark is a letter, a to z or A to Z");
}

/* Actions that have the name of a view open it. */
static void open_view(struct loop *l, enum action a)
{
    const int view = view_from_name(action_text(a)->name);
    if (view < 0)
        return;
    if (view == VIEW_HELP && l->view == VIEW_HELP)
        loop_go_back(l);
    else
        loop_open_view(l, (enum view_id)view);
}

static void command(struct loop *l, enum action a)
{
    switch (a) {
    case ACTION_ZOOM:
        zoom(l);
        break;
    case ACTION_BACK:
        loop_go_back(l);
        break;
    case ACTION_ONSET:
        session_go_root(l->s, 0);
        open_view(l, a);
        break;
    case ACTION_MARK:
    case ACTION_GO_MARK:
        l->pending = a;
        loop_say(l, a == ACTION_MARK ? "mark: a letter" : "to mark: a letter, or ' for where the last jump began");
        break;
    case ACTION_COPY:
        l->pending = a;
        copy_menu(l->s->message, sizeof l->s->message);
        break;
    case ACTION_PIN:
        loop_toggle_pin(l, &l->s->cursor);
        break;
    case ACTION_PROMPT:
        prompt_open(&l->prompt, ":", "", command_line_complete, l);
        break;
    case ACTION_SEARCH:
        prompt_open(&l->prompt, "/", "", NULL, NULL);
        break;
    case ACTION_CYCLE_SHOWN:
        cycle_shown(l);
        break;
    case ACTION_REFERENCE:
        l->vs.truth = !l->vs.truth;
        loop_say(l, l->vs.truth ? "wanted: the truth from the original inputs"
                                : "wanted: what follows from the values captured upstream");
        break;
    case ACTION_ORDER:
        l->vs.by_worst = !l->vs.by_worst;
        loop_say(l, l->vs.by_worst ? "the map shows the worst heads first" : "the map shows heads in their order");
        break;
    case ACTION_NEGATE:
        if (session_look_rounding(l->s, 1) == 0 && l->view != VIEW_BIAS)
            loop_open_view(l, VIEW_BIAS);
        break;
    case ACTION_CANCEL:
        cancel(l);
        break;
    case ACTION_INTERRUPT:
        if (session_busy(l->s))
            session_cancel(l->s);
        else if (!session_stop_study(l->s))
            l->quit = 1;
        break;
    case ACTION_REDRAW:
        term_redraw_all();
        break;
    case ACTION_SUSPEND:
        term_suspend();
        break;
    case ACTION_QUIT:
        l->quit = 1;
        break;
    default:
        open_view(l, a);
        break;
    }
}

int loop_step(struct loop *l, enum action a)
{
    return step(l, a, 1);
}

void loop_act(struct loop *l, enum action a)
{
    loop_act_times(l, a, 0);
}

void loop_act_times(struct loop *l, enum action a, long count)
{
    if (a == ACTION_NONE)
        return;
    if (!l->saver.active && !l->s->seeking)
        l->s->message[0] = '\0';
    const int times = count > MAX_COUNT ? MAX_COUNT : count > 0 ? (int)count : 1;
    if (l->search.active && views[l->view].lines && (a == ACTION_NEXT_BAD || a == ACTION_PREV_BAD)) {
        loop_search(l, a == ACTION_NEXT_BAD ? times : -times);
        return;
    }
    if (loop_list_action(l, a, times) || scroll(l, a, times))
        return;
    if (shows_element(l))
        a = within_tile(a);
    if (!step(l, a, times) && !loop_run_action(l, a))
        command(l, a);
}

static void type(struct loop *l, int key)
{
    const int searching = l->prompt.sign[0] == '/';
    if (prompt_key(&l->prompt, key) != PROMPT_ENTERED)
        return;
    if (!searching) {
        command_line_run(l, l->prompt.line);
    } else if (l->prompt.line[0] || l->search.text[0]) { /* an empty line: the last text once more */
        if (l->prompt.line[0])
            snprintf(l->search.text, sizeof l->search.text, "%.*s", (int)sizeof l->search.text - 1, l->prompt.line);
        l->search.line = -1;
        loop_search(l, 0);
    }
}

/* Esc first ends what is in the way: a search, or looking for a stop condition. */
static int end_something(struct loop *l)
{
    if (l->s->seeking) {
        session_cancel(l->s);
    } else if (l->search.active && views[l->view].lines) {
        l->search.active = 0;
        loop_say(l, "search ended");
    } else {
        return 0;
    }
    return 1;
}

void loop_key(struct loop *l, int key)
{
    if (l->naming) {
        loop_type_name(l, key);
        return;
    }
    if (l->prompt.sign) {
        type(l, key);
        return;
    }
    l->notes.n = 0;
    if (l->pending != ACTION_NONE) {
        take_letter(l, key);
        return;
    }
    /* A digit that the user has given to an action is that action's. */
    const enum action a = action_of_key(key);
    if (a == ACTION_NONE && ((key >= '1' && key <= '9') || (key == '0' && l->count > 0))) {
        l->count = l->count * 10 + (key - '0');
        l->count = l->count > MAX_COUNT ? MAX_COUNT : l->count; /* what is shown */
        return;
    }
    const int count = l->count;
    l->count = 0;
    if (a != ACTION_BACK || (count == 0 && !end_something(l))) /* Esc drops a count */
        loop_act_times(l, a, count);
}
