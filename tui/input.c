/* Keys: counts, letters behind m, ' and Y, lines that are typed. */
#include "tui/commands.h"
#include "tui/copy.h"
#include "tui/loop_state.h"
#include "tui/screen/term.h"
#include <stdio.h>

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

static void type(struct loop *l, int key)
{
    const bool searching = l->prompt.sign[0] == '/';
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
static bool end_something(struct loop *l)
{
    if (l->s->search.under_way) {
        session_cancel(l->s);
    } else if (l->search.active && views[l->view]->lines) {
        l->search.active = 0;
        session_say(l->s, "search ended");
    } else {
        return false;
    }
    return true;
}

void loop_key(struct loop *l, int key)
{
    if (l->naming) {
        loop_type_name(l, key);
        return;
    }
    if (l->declaring.n_lines) {
        loop_answer_declaration(l, key);
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
        l->count = l->count > COUNT_MAX ? COUNT_MAX : l->count; /* what is shown */
        return;
    }
    const int count = l->count;
    l->count = 0;
    if (a != ACTION_QUIT && a != ACTION_PROMPT)
        l->asked = 0;
    if (a != ACTION_BACK || (count == 0 && !end_something(l))) /* Esc drops a count */
        loop_act_times(l, a, count);
}
