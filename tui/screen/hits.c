#include "tui/screen/hits.h"

void hit_add(struct canvas *c, struct rect panel, struct rect where, enum hit_kind kind, int first, int second,
             int step)
{
    struct hits *h = c->hits;
    /* Clipped to the panel, as all that is drawn. */
    if (where.rows > panel.rows - where.row)
        where.rows = panel.rows - where.row;
    if (where.cols > panel.cols - where.col)
        where.cols = panel.cols - where.col;
    if (!h || h->n == HITS_MAX || where.rows < 1 || where.cols < 1)
        return;
    where.row += panel.row;
    where.col += panel.col;
    h->at[h->n++] = (struct hit){kind, where, first, second, step};
}

int hits_find(const struct hits *h, int row, int col, enum hit_kind *kind, int *first, int *second)
{
    for (int i = h->n; i-- > 0;) {
        const struct hit *hit = &h->at[i];
        const int down = row - hit->area.row, right = col - hit->area.col;
        if (down < 0 || right < 0 || down >= hit->area.rows || right >= hit->area.cols)
            continue;
        *kind = hit->kind;
        *first = hit->first + down;
        *second = hit->second + (hit->step ? right / hit->step : 0);
        return 1;
    }
    return 0;
}
