/* Which view the loop shows: opened, left, and searched for a text. */
#include "tui/loop_state.h"
#include <string.h>

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
    if (view == VIEW_OVERVIEW)
        l->n_back = 0; /* there is no way back from it: Esc stops what is under way */
    l->vs.about = l->view;
    l->view = view;
    loop_stand(l);
    l->vs.selected = views[view]->begin ? views[view]->begin(l->s) : 0;
    l->drawing_divider = false;
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
    const bool known = by != 0 && search->line >= 0 && search->view == l->view;
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
    l->vs.top = view_clamp_top(l->view, l->s, &l->vs, l->cols, l->rows, line - view_body(l->cols, l->rows).rows / 2);
    session_say(l->s, "'%.100s' on line %d: n, N: next, previous; Esc ends", search->text, line + 1);
}
