/* The mask: tiles of the cursor's head, and the elements of the cursor's tile, each with what is wanted and what the
   kernel applied in one glyph. */
#include "engine/verdict/masks.h"

#include "engine/verdict/case.h"
#include "tui/screen/text_flow.h"
#include "tui/views/panels.h"
#include "tui/views/view_text.h"
#include <stdio.h>

enum { LABEL_COLS = 5, WORDS_ROWS = 3, GAP = 3 };

struct mark_of {
    const char *glyph, *meaning;
    enum style style;
};

enum relation { BOTH, CUT, NEITHER, ONLY_APPLIED, ONLY_WANTED, BOTH_WAYS, UNKNOWN, UNRECORDED, WAITING, RELATIONS };

static const struct mark_of marks[RELATIONS] = {
    [BOTH] = {"█", "seen", STYLE_OK},
    [CUT] = {"/", "cut", STYLE_OK},
    [NEITHER] = {"·", "hidden", STYLE_DIM},
    [ONLY_APPLIED] = {"+", "wrongly seen", STYLE_BAD},
    [ONLY_WANTED] = {"-", "wrongly hidden", STYLE_WARNING},
    [BOTH_WAYS] = {"*", "both", STYLE_BAD},
    [UNKNOWN] = {"?", "not known", STYLE_DIM},
    [UNRECORDED] = {"░", "not recorded", STYLE_DIM},
    [WAITING] = {"…", "not judged", STYLE_DIM},
};

static enum relation tile_relation(const struct session *s, int slot, int kv)
{
    if (slot < 0)
        return UNRECORDED;
    if (!judgement_slot_done(s->run.judgement, slot))
        return WAITING;
    const struct mask_counts *n = masks_tile(s->run.judgement->masks, slot, kv);
    if (n->only_applied && n->only_wanted)
        return BOTH_WAYS;
    if (n->only_applied || n->only_wanted)
        return n->only_applied ? ONLY_APPLIED : ONLY_WANTED;
    if (n->both && n->neither)
        return CUT;
    return n->both ? BOTH : n->neither ? NEITHER : UNKNOWN;
}

static enum relation element_relation(const struct mask_tile *m, int row, int col)
{
    const int wanted = mask_bit(m, m->wanted, row, col), applied = mask_bit(m, m->applied, row, col);
    if (!mask_bit(m, m->known, row, col))
        return UNKNOWN;
    return wanted && applied ? BOTH : wanted ? ONLY_WANTED : applied ? ONLY_APPLIED : NEITHER;
}

/* A part of a matrix of glyphs, with numbers on two sides. */
struct part {
    struct rect area;
    int first_row, rows, first_col, cols; /* what is shown */
    int n_rows, n_cols;                   /* what there is */
    char of_row, of_col;                  /* letters before the numbers */
};

static struct part part_of(struct rect area, int row, int n_rows, int col, int n_cols)
{
    struct part p = {.area = area, .n_rows = n_rows, .n_cols = n_cols};
    p.rows = area.rows - 1 < n_rows ? area.rows - 1 : n_rows;
    p.cols = area.cols - LABEL_COLS < n_cols ? area.cols - LABEL_COLS : n_cols;
    p.first_row = window_first(row, p.rows, n_rows);
    p.first_col = window_first(col, p.cols, n_cols);
    return p;
}

static void part_heads(struct canvas *c, const struct part *p)
{
    for (int i = 0; i < p->cols; i++)
        if ((p->first_col + i) % 8 == 0)
            canvas_printf(c, p->area, 0, LABEL_COLS + i, STYLE_DIM, "%c%d", p->of_col, p->first_col + i);
    for (int i = 0; i < p->rows; i++)
        canvas_printf(c, p->area, 1 + i, 0, STYLE_DIM, "%c%d", p->of_row, p->first_row + i);
    if (p->first_col + p->cols < p->n_cols)
        canvas_put(c, p->area, 0, p->area.cols - 1, STYLE_DIM, "→");
    if (p->first_row + p->rows < p->n_rows)
        canvas_put(c, p->area, p->rows, LABEL_COLS - 1, STYLE_DIM, "↓");
}

static void glyph_draw(struct canvas *c, const struct part *p, int row, int col, enum relation relation, int here)
{
    canvas_put(c, p->area, 1 + row, LABEL_COLS + col, here ? STYLE_CURSOR : marks[relation].style,
               marks[relation].glyph);
}

static void plane_draw(const struct session *s, struct canvas *c, struct rect area)
{
    const struct cursor *cur = &s->at.cursor;
    const struct layout *l = &s->run.trace->layout;
    struct part p = part_of(area, cur->q_tile, l->q_tiles, cur->kv_tile, l->kv_tiles);
    p.of_row = 'q';
    p.of_col = 'k';
    part_heads(c, &p);
    for (int r = 0; r < p.rows; r++) {
        const int slot = trace_slot(s->run.trace, cur->batch, cur->head, p.first_row + r);
        for (int k = 0; k < p.cols; k++)
            glyph_draw(c, &p, r, k, tile_relation(s, slot, p.first_col + k),
                       p.first_row + r == cur->q_tile && p.first_col + k == cur->kv_tile);
    }
}

static void tile_draw(const struct session *s, struct canvas *c, struct rect area, const struct mask_tile *m)
{
    const struct cursor *cur = &s->at.cursor;
    struct part p = part_of(area, cur->row < m->rows ? cur->row : m->rows - 1, m->rows,
                            cur->col < m->cols ? cur->col : m->cols - 1, m->cols);
    p.of_row = 'r';
    p.of_col = 'c';
    part_heads(c, &p);
    for (int r = 0; r < p.rows; r++)
        for (int k = 0; k < p.cols; k++)
            glyph_draw(c, &p, r, k, element_relation(m, p.first_row + r, p.first_col + k),
                       p.first_row + r == cur->row && p.first_col + k == cur->col);
}

/* The cursor's tile: one of those that were kept, or read again. */
static void cursor_tile_draw(const struct session *s, struct canvas *c, struct rect area)
{
    const int slot = session_slot(s), kv = s->at.cursor.kv_tile;
    struct mask_tile tile;
    struct slot_case at;
    if (slot < 0 || !judgement_slot_done(s->run.judgement, slot))
        return;
    const struct masks *masks = s->run.judgement->masks;
    const bool is_known = masks->source[slot] != MASK_NOT_KNOWN;
    if (masks->wrong[slot]) {
        tile_draw(s, c, area, &masks->wrong[slot][kv]);
        return;
    }
    if (masks->source[slot] == MASK_FROM_P && !s->tile.scratch)
        return;
    if (slot_case_make(s->run.trace, slot, &at) != 0) {
        c->no_memory = true;
        return;
    }
    if (mask_tile_new(&at.c, &tile) == 0 && (!is_known || mask_read(&at.c, s->tile.scratch, kv, &tile) == 0))
        tile_draw(s, c, area, &tile);
    else
        c->no_memory = true;
    mask_tile_free(&tile);
    slot_case_free(&at);
}

/* As many as there is room for: what explains itself stands last. */
static void legend_line(struct canvas *c, struct rect area)
{
    int col = 0;
    for (int i = 0; i < RELATIONS; i++) {
        if (col + 2 + text_columns(marks[i].meaning) > area.cols)
            return;
        col += canvas_put(c, area, 0, col, marks[i].style, marks[i].glyph);
        col += canvas_printf(c, area, 0, col, STYLE_DIM, " %s  ", marks[i].meaning);
    }
}

/* "h0 q3 k5: 2016 seen, 2016 hidden, + 64". */
static void tile_words_of(const struct session *s, char *out, size_t bytes)
{
    const int slot = session_slot(s);
    char place[64];
    tile_words(s, (struct place){slot, s->at.cursor.kv_tile, asc_s}, place, sizeof place);
    if (slot < 0 || !judgement_slot_done(s->run.judgement, slot)) {
        snprintf(out, bytes, "not recorded, or not judged yet");
        return;
    }
    const struct mask_counts *n = masks_tile(s->run.judgement->masks, slot, s->at.cursor.kv_tile);
    if (s->run.judgement->masks->source[slot] == MASK_NOT_KNOWN) {
        snprintf(out, bytes, "%s: not known", place);
        return;
    }
    size_t used =
        (size_t)snprintf(out, bytes, "%s: %llu seen, %llu hidden", place, (unsigned long long)n->both + n->only_applied,
                         (unsigned long long)n->neither + n->only_wanted);
    if (n->only_applied)
        used += (size_t)snprintf(out + used, bytes - used, ", + %llu", (unsigned long long)n->only_applied);
    if (n->only_wanted)
        used += (size_t)snprintf(out + used, bytes - used, ", - %llu", (unsigned long long)n->only_wanted);
    if (n->unknown)
        snprintf(out + used, bytes - used, ", ? %llu", (unsigned long long)n->unknown);
}

static const char *read_from(const struct session *s)
{
    struct mask_counts all;
    switch (masks_total(s->run.judgement->masks, &all)) {
    case MASK_FROM_S:
        return "read from S";
    case MASK_FROM_P:
        return "read from P";
    default:
        return "";
    }
}

static void view_mask_draw(const struct session *s, struct canvas *c, const struct view_state *vs)
{
    struct rect body = view_body(c->cols, c->rows);
    char title[64], words[512], line[544];
    (void)vs;
    if (!s->run.trace || !s->run.judgement) {
        view_frame_draw(s, c, VIEW_MASK, "mask", "");
        canvas_put(c, body, 0, 1, STYLE_DIM, "No run yet.");
        return;
    }
    snprintf(title, sizeof title, "mask of head %d/%d", s->at.cursor.head, (int)s->run.trace->problem.heads);
    view_frame_draw(s, c, VIEW_MASK, title, read_from(s));
    body.col = 1;
    body.cols -= 2;
    mask_wanted_words(&s->run.trace->problem, words, sizeof words);
    canvas_printf(c, body, 0, 0, STYLE_TEXT, "wanted   %s", words);
    masks_words(s->run.judgement->masks, words, sizeof words);
    snprintf(line, sizeof line, "applied  %s", words);
    struct mask_counts all;
    masks_total(s->run.judgement->masks, &all);
    flow_fit(c, (struct rect){body.row + 1, body.col, WORDS_ROWS - 1, body.cols},
             mask_wrong(&all) ? STYLE_BAD : STYLE_TEXT, line, "--json");
    tile_words_of(s, words, sizeof words);
    rule_draw(c, (struct rect){body.row + WORDS_ROWS, 0, 1, c->cols}, "cursor", words);
    legend_line(c, (struct rect){body.row + body.rows - 1, body.col, 1, body.cols});
    struct rect left = {body.row + WORDS_ROWS + 1, body.col, body.rows - WORDS_ROWS - 2, body.cols / 2 - GAP};
    const int wide = LABEL_COLS + s->run.trace->layout.kv_tiles + 2;
    if (wide < left.cols)
        left.cols = wide < 16 ? 16 : wide;
    const struct rect right = {left.row, left.col + left.cols + GAP, left.rows, body.cols - left.cols - GAP};
    plane_draw(s, c, left);
    cursor_tile_draw(s, c, right);
}

const struct view view_mask = {.draw = view_mask_draw};
