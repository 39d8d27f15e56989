/* What each action does, in the view that is shown and elsewhere. */
#include "engine/session/look.h"
#include "tui/commands.h"
#include "tui/copy.h"
#include "tui/loop_state.h"
#include "tui/screen/term.h"

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
    else if (session_stop_values(l->s) || session_stop_rounding(l->s) || session_stop_retry(l->s))
        return;
    else
        toggle_scan(l);
}

void act_first_bad(struct loop *l)
{
    session_go_first_bad(l->s);
}

void act_worst(struct loop *l)
{
    session_go_worst(l->s);
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
    session_toggle_pin(l->s, &l->s->at.cursor);
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
    if (l->declaring.n_lines)
        loop_answer_declaration(l, KEY_ID_ESC);
    else if (session_busy(l->s))
        session_cancel(l->s);
    else
        session_say(l->s, "nothing is running; q leaves");
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

/* Several runs are what a session has and its files do not: it is said that they go, and the next key is the answer. */
void loop_leave(struct loop *l)
{
    const struct runs *runs = &l->s->runs;
    int unsaved = 0;
    for (int i = 0; i < runs->n; i++)
        unsaved += !runs->at[i].saved;
    l->quit = unsaved < 2 || l->asked == unsaved;
    if (!l->quit)
        session_say(l->s, "%d runs are not saved: q again leaves, R lists them, s saves one", unsaved);
    l->asked = unsaved;
}

void act_quit(struct loop *l)
{
    if (l->view != VIEW_OVERVIEW)
        loop_go_back(l);
    else
        loop_leave(l);
}

/* What an action does where the view does not take it. */
static const struct {
    bool (*move)(struct session *s, int by);
    int by;
    void (*act)(struct loop *l);
    bool opens; /* this view, after that */
    enum view_id view;
} effects[ACTION_COUNT] = {
#define MOVES(verb, steps) .move = (verb), .by = (steps)
#define OPENS(id) .opens = true, .view = (id)
#define DOES(function) .act = (function)
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
    case ANSWER_RUNS_POINT:
        if (session_run_point(l->s, (size_t)answer.run) == 0)
            loop_open_view(l, answer.view);
        break;
    case ANSWER_DECLARES:
        loop_ask_declaration(l, answer.finding);
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
    const int times = count > COUNT_MAX ? COUNT_MAX : count > 0 ? (int)count : 1;
    if (l->search.active && views[l->view]->lines && (a == ACTION_NEXT_BAD || a == ACTION_PREV_BAD))
        loop_search(l, a == ACTION_NEXT_BAD ? times : -times);
    else
        act(l, a, times);
}
