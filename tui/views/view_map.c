/* The tile map: every head a small picture of its tiles, q tiles down and kv tiles across, the cursor in one of them.
 */
#include "tui/views/panels.h"
#include "tui/views/view_text.h"

#include "tui/views/sign.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SMALLEST_CELLS = 8, /* pictures of more heads are not made smaller than this */
    SHARE_STEP = 6      /* columns of a tile with its share: "✗ 100 " */
};

/* What a head comes to. */
struct head {
    int at;         /* batch * heads + head */
    int tiles, bad; /* judged ones */
    enum tile_status worst;
};

/* How the pictures lie on the screen. */
struct arrangement {
    int q_tiles, kv_tiles;
    int by_q, by_kv; /* tiles that share a mark */
    int rows, cols;  /* signs of a picture */
    int step;        /* columns of a mark */
    int label_cols;
    int title_cols, gap_cols;
    int panel_rows, panel_cols; /* with title and gap */
    int across, down;           /* pictures there is room for */
};

static int divide_up(int a, int b)
{
    return (a + b - 1) / b;
}

static void size_panels(struct arrangement *a, struct rect area)
{
    a->rows = divide_up(a->q_tiles, a->by_q);
    a->cols = divide_up(a->kv_tiles, a->by_kv);
    const int cells = a->cols * a->step;
    a->panel_rows = a->rows + 2;
    a->panel_cols = (cells > a->title_cols ? cells : a->title_cols) + a->gap_cols;
    a->across = (area.cols - a->label_cols + a->gap_cols) / a->panel_cols;
    a->down = (area.rows + 1) / a->panel_rows;
}

static bool fits(struct arrangement *a, struct rect area, int heads, int step, int gap_cols)
{
    a->step = step;
    a->gap_cols = gap_cols;
    size_panels(a, area);
    return a->across > 0 && a->across * a->down >= heads;
}

static int digits(int n)
{
    return n > 100 ? 3 : n > 10 ? 2 : 1;
}

/* As wide as all heads have room for; else tiles share signs until they have, or the pictures become too small. */
static struct arrangement arrange(const struct session *s, struct rect area)
{
    const struct layout *l = &s->run.trace->layout;
    const struct asc_problem *p = &s->run.trace->problem;
    const int heads = p->batch * p->heads;
    struct arrangement a = {.q_tiles = l->q_tiles,
                            .kv_tiles = channel_per_kv(s->at.cursor.channel) ? l->kv_tiles : 1,
                            .by_q = 1,
                            .by_kv = 1,
                            .label_cols = l->q_tiles > 1000  ? 7
                                          : l->q_tiles > 100 ? 5
                                                             : 4};
    a.title_cols = 1 + digits(p->heads) + (p->batch > 1 ? 1 + digits(p->batch) : 0) + 6; /* "b1h12 ✗ 100" */
    if (fits(&a, area, heads, SHARE_STEP, 2))
        return a;
    for (;;) {
        if (fits(&a, area, heads, 2, 2) || fits(&a, area, heads, 1, 2) || fits(&a, area, heads, 1, 1))
            return a;
        if (a.across > 0 && a.down > 0 && a.rows <= SMALLEST_CELLS && a.cols <= SMALLEST_CELLS)
            return a;
        if (a.down < 1 || (a.across > 0 && a.rows > a.cols))
            a.by_q *= 2;
        else
            a.by_kv *= 2;
    }
}

static int tile_slot(const struct session *s, int head, int q)
{
    return trace_slot(s->run.trace, head / s->run.trace->problem.heads, head % s->run.trace->problem.heads, q);
}

/* signs: NULL, or [a->rows][a->cols] STATUS_UNRECORDED each: what each of the picture's signs comes to. One pass: a
   head may have a quarter of a million tiles. */
static struct head weigh_head(const struct session *s, const struct arrangement *a, int at, enum tile_status *signs)
{
    struct head h = {.at = at, .worst = STATUS_UNRECORDED};
    for (int q = 0; q < a->q_tiles; q++) {
        struct place place = {tile_slot(s, at, q), 0, s->at.cursor.channel};
        enum tile_status *row = signs ? signs + (size_t)(q / a->by_q) * (size_t)a->cols : NULL;
        for (int col = 0; place.slot >= 0 && col < a->cols; col++) { /* else none of its tiles is recorded */
            enum tile_status worst = STATUS_UNRECORDED;
            for (int i = 0; i < a->by_kv && place.kv < a->kv_tiles; i++, place.kv++) {
                const enum tile_status sign = sign_of_tile(s, place);
                h.tiles += sign != STATUS_UNRECORDED && sign != STATUS_UNJUDGED;
                h.bad += sign_bad(sign);
                if (sign != worst)
                    worst = sign_worse(worst, sign);
            }
            h.worst = sign_worse(h.worst, worst);
            if (row)
                row[col] = sign_worse(row[col], worst);
        }
    }
    return h;
}

static int by_worst(const void *a, const void *b)
{
    const struct head *x = a, *y = b;
    const double share_x = x->tiles ? (double)x->bad / x->tiles : 0, share_y = y->tiles ? (double)y->bad / y->tiles : 0;
    if (share_x != share_y)
        return share_x < share_y ? 1 : -1;
    if (x->worst != y->worst)
        return sign_worse(x->worst, y->worst) == x->worst ? -1 : 1;
    return x->at - y->at;
}

/* All heads in the order in which they are shown; NULL without memory. */
static struct head *list_heads(const struct session *s, const struct arrangement *a, int n, int worst_first)
{
    struct head *heads = calloc((size_t)n, sizeof *heads);
    for (int i = 0; heads && i < n; i++)
        heads[i] = worst_first ? weigh_head(s, a, i, NULL) : (struct head){.at = i};
    if (heads && worst_first)
        qsort(heads, (size_t)n, sizeof *heads, by_worst);
    return heads;
}

/* "100", " 12", " <1": the share of a tile's elements that are bad by the local verdict. */
static void share_draw(const struct session *s, struct canvas *c, struct rect area, int row, int col,
                       struct place place)
{
    if (place.slot < 0 || !judgement_slot_done(s->run.judgement, place.slot))
        return;
    const struct verdict *v = &judgement_tile(s->run.judgement, place)->local;
    uint64_t total = 0;
    for (int i = 0; i < CLASS_COUNT; i++)
        total += v->count[i];
    if (total == 0 || !judgement_tile_bad(s->run.judgement, place, 0))
        return;
    const double share = 100.0 * verdict_bad(v) / (double)total;
    if (share < 1)
        canvas_put(c, area, row, col, STYLE_BAD, " <1");
    else
        canvas_printf(c, area, row, col, STYLE_BAD, "%3d", (int)share);
}

static void title_draw(const struct session *s, struct canvas *c, struct rect panel, const struct head *head)
{
    const int heads = s->run.trace->problem.heads, at = s->at.cursor.batch * heads + s->at.cursor.head;
    char name[32];
    if (s->run.trace->problem.batch > 1)
        snprintf(name, sizeof name, "b%dh%d", head->at / heads, head->at % heads);
    else
        snprintf(name, sizeof name, "h%d", head->at);
    int col = canvas_put(c, panel, 0, 0, head->at == at ? STYLE_CURSOR : STYLE_STRONG, name) + 1;
    col += canvas_put(c, panel, 0, col, sign_style(head->worst), sign_glyph(head->worst));
    if (head->bad)
        canvas_printf(c, panel, 0, col + 1, STYLE_BAD, head->bad * 100 < head->tiles ? "<1" : "%d",
                      (int)(100.0 * head->bad / head->tiles));
}

static void panel_draw(const struct session *s, struct canvas *c, struct rect panel, const struct arrangement *a,
                       const struct head *head, const enum tile_status *signs)
{
    const struct cursor *cur = &s->at.cursor;
    const bool own = head->at == cur->batch * s->run.trace->problem.heads + cur->head;
    title_draw(s, c, panel, head);
    for (int r = 0; r < a->rows; r++) {
        for (int i = 0; i < a->cols; i++) {
            const enum tile_status sign = signs[r * a->cols + i];
            const bool here = own && r == cur->q_tile / a->by_q && (a->kv_tiles == 1 || i == cur->kv_tile / a->by_kv);
            const int col = i * a->step;
            canvas_put(c, panel, 1 + r, col, here ? STYLE_CURSOR : sign_style(sign), here ? "◆" : sign_glyph(sign));
            if (here && a->step > 1)
                canvas_put(c, panel, 1 + r, col + 1, sign_style(sign), sign_glyph(sign));
            if (a->step == SHARE_STEP)
                share_draw(s, c, panel, 1 + r, col + 2,
                           (struct place){tile_slot(s, head->at, r), i, s->at.cursor.channel});
        }
    }
}

static void labels_draw(struct canvas *c, struct rect area, const struct arrangement *a, int row)
{
    if (a->kv_tiles > 1)
        canvas_put(c, area, row, 0, STYLE_DIM, "kv→");
    for (int r = 0; r < a->rows; r++)
        canvas_printf(c, area, row + 1 + r, 0, STYLE_DIM, "q%d", r * a->by_q);
}

/* What the pictures show, and what the tile under the cursor is. */
static void words_draw(const struct session *s, struct canvas *c, struct rect line, const struct arrangement *a,
                       const int window[2], int heads)
{
    char words[96], tiles[64] = "a mark: a tile", place[64];
    const enum tile_status sign = sign_of_tile(s, session_place(s));
    if (a->by_q * a->by_kv > 1)
        snprintf(tiles, sizeof tiles, "a mark: the worst of %dx%d", a->by_q, a->by_kv);
    tile_words(s, session_place(s), place, sizeof place);
    if (window[1] - window[0] < heads)
        snprintf(words, sizeof words, "heads %d-%d of %d, %dx%d tiles each, %s", window[0] + 1, window[1], heads,
                 a->q_tiles, a->kv_tiles, tiles);
    else
        snprintf(words, sizeof words, "%d head%s, %dx%d tiles%s, %s", heads, heads > 1 ? "s" : "", a->q_tiles,
                 a->kv_tiles, heads > 1 ? " each" : "", tiles);
    int col = 1 + canvas_put(c, line, 0, 1, STYLE_DIM, words) + 3;
    col += canvas_put(c, line, 0, col, STYLE_TEXT, place[0] ? place : "here") + 1;
    canvas_printf(c, line, 0, col, sign_style(sign), "%s %s", sign_glyph(sign), sign_word(sign));
}

/* A click goes to the tile in the cursor's own head, and to another head. */
static void hit_panel(const struct session *s, struct canvas *c, struct rect area, const struct arrangement *a,
                      int head, int row, int col)
{
    const bool own = head == s->at.cursor.batch * s->run.trace->problem.heads + s->at.cursor.head;
    const struct rect panel = {row, a->label_cols + col, a->panel_rows, a->panel_cols};
    const struct rect tiles = {row + 1, a->label_cols + col, a->rows, a->cols * a->step};
    if (!own)
        hit_add(c, area, panel, HIT_HEAD, 0, head, 0);
    else if (a->by_q * a->by_kv == 1)
        hit_add(c, area, tiles, HIT_TILE, 0, a->kv_tiles > 1 ? 0 : -1, a->kv_tiles > 1 ? a->step : 0);
}

static void pictures_draw(const struct session *s, struct canvas *c, struct rect body, int worst_first)
{
    const struct asc_problem *p = &s->run.trace->problem;
    const int n = p->batch * p->heads, own = s->at.cursor.batch * p->heads + s->at.cursor.head;
    const struct rect area = {body.row + 1, body.col + 1, body.rows - 1, body.cols - 2};
    const struct arrangement a = arrange(s, area);
    struct head *heads = list_heads(s, &a, n, worst_first);
    int at = 0;
    while (heads && at < n - 1 && heads[at].at != own)
        at++;
    enum tile_status *signs = malloc((size_t)a.rows * (size_t)a.cols * sizeof *signs);
    if (!heads || !signs) {
        c->no_memory = true;
        free(heads);
        free(signs);
        return;
    }
    const int first = window_first(at / a.across, a.down, divide_up(n, a.across)) * a.across;
    const int last = first + a.across * a.down < n ? first + a.across * a.down : n;
    for (int i = first; i < last; i++) {
        const int row = (i - first) / a.across * a.panel_rows, col = (i - first) % a.across * a.panel_cols;
        for (int k = 0; k < a.rows * a.cols; k++)
            signs[k] = STATUS_UNRECORDED;
        heads[i] = weigh_head(s, &a, heads[i].at, signs);
        if (col == 0)
            labels_draw(c, area, &a, row);
        hit_panel(s, c, area, &a, heads[i].at, row, col);
        panel_draw(
            s, c, (struct rect){area.row + row, area.col + a.label_cols + col, a.panel_rows, a.panel_cols - a.gap_cols},
            &a, &heads[i], signs);
    }
    free(signs);
    words_draw(s, c, (struct rect){body.row, body.col, 1, body.cols}, &a, (int[]){first, last}, n);
    free(heads);
}

static void view_map_draw(const struct session *s, struct canvas *c, const struct view_state *vs)
{
    char title[96], right[96];
    struct rect body = view_body(c->cols, c->rows);
    map_title(s, title, sizeof title);
    snprintf(right, sizeof right, "heads by %s, with their %% of bad tiles", vs->by_worst ? "worst" : "place");
    view_frame_draw(s, c, VIEW_MAP, title, right);
    if (!s->run.trace || !s->run.judgement)
        return;
    legend_draw(s, c, (struct rect){body.row + body.rows - 1, 1, 1, body.cols - 2});
    body.rows--;
    pictures_draw(s, c, body, vs->by_worst);
}

static struct view_answer act(const struct session *s, struct view_state *vs, enum action a, int times)
{
    (void)s;
    (void)vs;
    (void)times;
    return a == ACTION_ZOOM ? (struct view_answer){.does = ANSWER_OPENS, .view = VIEW_TILE} : (struct view_answer){0};
}

const struct view view_map = {.draw = view_map_draw, .act = act};
