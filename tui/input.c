/* Keys: counts, marks, and what each action does. */
#include "engine/session/look.h"
#include "tui/commands.h"
#include "tui/copy.h"
#include "tui/loop_state.h"
#include "tui/screen/term.h"
#include <stdio.h>
#include <string.h>

#define MAX_COUNT 1000000

/* The view's first line, where it begins, or where what it stands at is. */
void loop_stand(struct loop *l)
{
    const struct view *view = views[l->view];
    l->vs.top = view_start_top(l->view, l->s, l->cols, l->rows);
    l->anchor = view->anchor ? view->anchor(l->s) : 0;
}

void loop_open_view(struct loop *l, enum view_id view)
{
    if (view == l->view)
        return;
    if (l->n_back == MAX_BACK)
        memmove(l->back, l->back + 1, (size_t)--l->n_back * sizeof *l->back);
    l->back[l->n_back++] = l->view;
    l->view = view;
    loop_stand(l);
    l->vs.selected = views[view]->begin ? views[view]->begin(l->s) : 0;
    l->drawing_divider = 0;
}

void act_cycle_shown(struct loop *l)
{
    const struct tile_detail *d = &l->s->tile.detail;
    session_cycle_shown(l->s);
    if (d->got && d->cols == 1)
        session_say(l->s, "v has no effect here: single-column tiles already show all four values");
}

static void toggle_scan(struct loop *l)
{
    const int stopped = session_look_toggle(l->s);
    session_say(l->s, "%s", stopped < 0 ? "nothing is running" : stopped ? "stopped: x continues" : "");
}

void act_cancel(struct loop *l)
{
    if (session_busy(l->s))
        session_cancel(l->s);
    else if (session_stop_values(l->s) || session_stop_rounding(l->s))
        return;
    else
        toggle_scan(l);
}

void loop_go_back(struct loop *l)
{
    if (l->n_back > 0) {
        l->view = l->back[--l->n_back];
        loop_stand(l);
    } else if (l->view != VIEW_OVERVIEW) {
        l->view = VIEW_OVERVIEW;
    } else if (session_busy(l->s)) {
        session_cancel(l->s);
    } else {
        session_stop_values(l->s);
    }
}

void act_first_bad(struct loop *l)
{
    session_go_first_bad(l->s);
}

void act_worst(struct loop *l)
{
    session_go_worst(l->s);
}

/* Another view of lines that has the text, findings and log first, then the source; -1: none has. The keys' own page is
   only searched while it is open. */
static int search_elsewhere(const struct loop *l, int *line)
{
    static const enum view_id searched[] = {VIEW_LOG, VIEW_SOURCE, VIEW_RESOURCES, VIEW_FORMATS, VIEW_CHANGES};
    const struct view_state vs = {0};
    for (size_t i = 0; i < sizeof searched / sizeof *searched; i++) {
        if (searched[i] == l->view)
            continue;
        *line = search_view(&l->search, searched[i], l->s, &vs, l->cols, -1, 1);
        if (*line >= 0)
            return (int)searched[i];
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
        session_say(l->s, line == SEARCH_NO_MEMORY ? "out of memory for a search for '%.100s'" : "'%.100s' not found",
                    search->text);
        return;
    }
    search->line = line;
    search->view = l->view;
    /* In the middle, as far as the text goes. */
    l->vs.top = view_clamp_top(l->view, l->s, l->cols, l->rows, line - view_body(l->cols, l->rows).rows / 2);
    session_say(l->s, "'%.100s' on line %d: n, N: next, previous; Esc ends", search->text, line + 1);
}

static void copy(struct loop *l, int key)
{
    const struct copy_source from = {l->s, l->view, l->cols, l->rows};
    char text[COPY_BYTES], menu[100];
    int edited = 0;
    if (!copy_name((uint32_t)key)) {
        copy_menu(menu, sizeof menu);
        session_say(l->s, "nothing was copied; %s", menu);
    } else if ((edited = copy_text(&from, (uint32_t)key, text, sizeof text)) < 0) {
        session_say(l->s, "%s", text);
    } else {
        term_copy(text);
        session_say(l->s, "copied%s: %.180s",
                    edited ? " (the kernel was edited since this run: the command runs the current text)" : "", text);
    }
}

/* The key behind m, ' or Y. */
static void take_letter(struct loop *l, int key)
{
    const enum action asked = l->pending;
    l->pending = ACTION_NONE;
    session_hush(l->s);
    if (key == KEY_ID_ESC)
        return;
    if (asked == ACTION_COPY)
        copy(l, key);
    else if (asked == ACTION_GO_MARK)
        session_go_mark(l->s, (uint32_t)key);
    else
        session_set_mark(l->s, (uint32_t)key);
}

void act_onset(struct loop *l)
{
    session_go_root(l->s, 0);
}

void act_mark(struct loop *l)
{
    l->pending = ACTION_MARK;
    session_say(l->s, "mark: a letter");
}

void act_go_mark(struct loop *l)
{
    l->pending = ACTION_GO_MARK;
    session_say(l->s, "to mark: a letter, or ' for where the last jump began");
}

void act_copy(struct loop *l)
{
    char menu[100];
    l->pending = ACTION_COPY;
    copy_menu(menu, sizeof menu);
    session_say(l->s, "%s", menu);
}

void act_pin(struct loop *l)
{
    session_toggle_pin(l->s, &l->s->cursor);
}

void act_prompt(struct loop *l)
{
    prompt_open(&l->prompt, ":", "", command_line_complete, l);
}

void act_search(struct loop *l)
{
    prompt_open(&l->prompt, "/", "", NULL, NULL);
}

void act_reference(struct loop *l)
{
    l->vs.global = !l->vs.global;
    session_say(l->s, "%s",
                l->vs.global ? "want: the reference from the original inputs"
                             : "want: what follows from the values captured upstream");
}

void act_order(struct loop *l)
{
    l->vs.by_worst = !l->vs.by_worst;
    session_say(l->s, "%s",
                l->vs.by_worst ? "the map shows the worst heads first" : "the map shows heads in their order");
}

void act_negate(struct loop *l)
{
    if (session_look_rounding(l->s, 1) == 0)
        loop_open_view(l, VIEW_BIAS);
}

void act_interrupt(struct loop *l)
{
    if (session_busy(l->s))
        session_cancel(l->s);
    else
        l->quit = 1;
}

void act_redraw(struct loop *l)
{
    (void)l;
    term_redraw_all();
}

void act_suspend(struct loop *l)
{
    (void)l;
    term_suspend();
}

void act_quit(struct loop *l)
{
    l->quit = 1;
}

/* What an action does where the view does not take it. */
static const struct {
    bool (*move)(struct session *s, int by);
    int by;
    void (*act)(struct loop *l);
    bool opens; /* this view, after that */
    enum view_id view;
} effects[ACTION_COUNT] = {
#define MOVES(verb, steps) .move = verb, .by = steps
#define OPENS(id) .opens = true, .view = id
#define DOES(function) .act = function
#define SHOWS(id, function) DOES(function), OPENS(id)
#define LEFT_TO_VIEWS .move = NULL
#define ACTION(id, keys, name, hint, help, effect) {effect},
#include "tui/keys/actions.def"
#undef ACTION
};

static void do_effect(struct loop *l, enum action a, int times)
{
    if (effects[a].move)
        effects[a].move(l->s, effects[a].by * times);
    if (effects[a].act)
        effects[a].act(l);
    if (effects[a].opens)
        loop_open_view(l, effects[a].view);
}

void loop_move(struct loop *l, enum action a)
{
    do_effect(l, a, 1);
}

void loop_act(struct loop *l, enum action a)
{
    loop_act_times(l, a, 0);
}

static void try_formats(struct loop *l, const struct whatif_choice *choice)
{
    if (session_run_choice(l->s, choice) != 0)
        return;
    session_say(l->s, "running with these formats");
    l->vs.selected = 0; /* where the run's own formats stand */
}

/* What the view makes of an action; else what the action does everywhere. */
static void act(struct loop *l, enum action a, int times)
{
    const struct view_answer answer = view_act(l->view, l->s, l->cols, l->rows, &l->vs, a, times);
    switch (answer.does) {
    case ANSWER_PASSES:
        do_effect(l, a, times);
        break;
    case ANSWER_DID:
        break;
    case ANSWER_MEANS:
        do_effect(l, answer.action, answer.times);
        break;
    case ANSWER_OPENS:
        loop_open_view(l, answer.view);
        break;
    case ANSWER_CLOSES:
        loop_go_back(l);
        break;
    case ANSWER_GOES:
        if (session_jump_to(l->s, &answer.to))
            loop_open_view(l, answer.view);
        break;
    case ANSWER_SHOWS_RUN:
        loop_show_run(l, answer.run);
        loop_open_view(l, answer.view);
        break;
    case ANSWER_TRIES:
        try_formats(l, answer.choice);
        break;
    case ANSWER_SAYS:
        session_say(l->s, "%s", answer.text);
        break;
    }
}

void loop_act_times(struct loop *l, enum action a, long count)
{
    if (a == ACTION_NONE)
        return;
    if (!l->saver.active && !l->s->search.under_way)
        session_hush(l->s);
    const int times = count > MAX_COUNT ? MAX_COUNT : count > 0 ? (int)count : 1;
    if (l->search.active && views[l->view]->lines && (a == ACTION_NEXT_BAD || a == ACTION_PREV_BAD))
        loop_search(l, a == ACTION_NEXT_BAD ? times : -times);
    else
        act(l, a, times);
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
    if (l->s->search.under_way) {
        session_cancel(l->s);
    } else if (l->search.active && views[l->view]->lines) {
        l->search.active = 0;
        session_say(l->s, "search ended");
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
