/* Pieces that views are made of. Each draws into its rectangle only. */
#ifndef VIEWS_PANELS_H
#define VIEWS_PANELS_H

#include "engine/verdict/element_code.h"
#include "tui/views/list.h"
#include "tui/views/view.h"
#include <stdbool.h>

/* A horizontal line with a title in it, and text at its right end ("" or NULL for none). */
void rule_draw(struct canvas *c, struct rect area, const char *title, const char *right);
void text_right(struct canvas *c, struct rect area, int row, enum style style, const char *text);

void header_draw(const struct session *s, struct canvas *c, struct rect area);
void keys_draw(struct canvas *c, struct rect area, enum view_id view);
/* The line above the keys: what the last command said, else what changed since the run before. */
void message_draw(const struct session *s, struct canvas *c, struct rect area);
/* What that line says; "": nothing. */
const char *message_words(const struct session *s, char *room, size_t bytes, enum style *style);
void strip_draw(const struct session *s, struct canvas *c, struct rect area);
void facts_draw(const struct session *s, struct canvas *c, struct rect area);
/* Rows that answer first, two where that does. finding_rows(): how many they take; fewer end with where to read on.
 * roomy: the facts stand elsewhere on the screen. */
int finding_rows(const struct session *s, int cols, bool roomy);
void finding_draw(const struct session *s, struct canvas *c, struct rect area, bool roomy, const struct view_state *vs);
/* The cursor is where the finding that is shown begins, and that one asks for a declaration. */
bool declaration_here(const struct session *s);
void legend_draw(const struct session *s, struct canvas *c, struct rect area);

/* Tiles of the cursor's stage and head, and below them the heads. */
void map_draw(const struct session *s, struct canvas *c, struct rect area);
void map_title(const struct session *s, char *out, size_t bytes);

/* Why there is nothing to see of the cursor's tile; returns 1 if so. */
bool absent_draw(const struct session *s, struct canvas *c, struct rect area);
/* Says how far what belongs here is, or that it was stopped. 0: it is neither. */
bool values_under_way_draw(const struct session *s, struct canvas *c, struct rect area);
void tile_list_draw(const struct session *s, struct canvas *c, struct rect area, const struct view_state *vs);
/* Which elements of the cursor's tile tile_matrix_draw shows where: cell (r, c) stands in row 1 + r of its area and in
   column label_cols + c cell_cols, its text 7 wide. */
struct tile_window {
    int label_cols, cell_cols, first_row, rows, first_col, cols;
};
struct tile_window tile_window(const struct session *s, struct rect area);
/* |captured - wanted| / bound of an element; NaN where it is NaN or missing, 0 where nothing is wanted. */
enum dtype captured_type(const struct session *s, enum asc_channel ch);
double tile_ratio(const struct session *s, int row, int col, bool global);
/* In the last line of the area: the shape, and which number is shown. */
void tile_shown_draw(const struct session *s, struct canvas *c, struct rect area);
void tile_matrix_draw(const struct session *s, struct canvas *c, struct rect area, const struct view_state *vs);
/* 1 where wanted values and bounds are the reference's: the user wants so, or nothing was written here and what would
   follow from upstream is not known either. */
int shown_global(const struct session *s, const struct view_state *vs);
void tile_title(const struct session *s, bool with_row, const struct view_state *vs, char *out, size_t bytes);
/* "local: S = scale * ..." */
void formula_words(const struct session *s, const struct view_state *vs, char *out, size_t bytes);
void bound_words(const struct session *s, char *out, size_t bytes); /* the formula of the local bound */
/* The lines of element_code_words() of the cursor's element; 0: it is no code. */
int code_lines(const struct session *s, char out[CODE_LINES][CODE_LINE_BYTES]);
/* "recorded by block (0,0,3) warp 2 lane 17 ...", of the element under the cursor; false: it is not known. */
bool writer_words(const struct session *s, char *out, size_t bytes);
void element_draw(const struct session *s, struct canvas *c, struct rect area, const struct view_state *vs);
void counts_draw(const struct session *s, struct canvas *c, struct rect area, int row, const struct view_state *vs);

/* Pinned elements. How many of `rows` they leave to a view: all, where they would make it too small and lie over its
   last ones. */
int pins_view_rows(const struct session *s, int rows);
void pins_draw(const struct session *s, struct canvas *c, int view_rows, const struct view_state *vs);

/* m, alpha and l of the cursor's row over the kv tiles. */
void state_draw(const struct session *s, struct canvas *c, struct rect area, bool roomy);

/* The kernel's text from line `first` (1 is the top) on, source_line() marked. dedent: without the blanks that all
   visible lines begin with. */
void source_draw(const struct session *s, struct canvas *c, struct rect area, int first, bool dedent);
int source_count(const struct session *s); /* lines */
/* Where the source stands: at the event of a run that has one, until the cursor moves, then at the probe of the
   cursor's stage; 0: unknown. And what is there: "barrier, line 53", "probe of S". */
int source_line(const struct session *s);
const char *source_file(const struct session *s); /* the file of that line; NULL: unknown */
void source_words(const struct session *s, char *out, size_t bytes);
const char *source_event_text(const struct session *s); /* of the event it stands at; "": none */
/* The first line of a window of `rows` lines around that. */
int source_window(const struct session *s, int rows);

/* Views of the session's laboratory. "12 of 24, x stops"; "": all is there. */
void looks_words(const struct session *s, char *out, size_t bytes);
enum { LOOKS_NUMBER = 24 };
const char *looks_number(char out[LOOKS_NUMBER], double value); /* three digits; a dash where it is not known */
void looks_cell(struct canvas *c, struct rect area, int row, int end, enum style style, double value); /* ends there */

/* Facts that several panels need. */
const struct asc_problem *shown_problem(const struct session *s);
bool session_failed_to_show(const struct session *s); /* there is an error and no trace of that run to look at */
const struct verdict *cursor_verdict(const struct session *s, bool global); /* of the cursor's tile; NULL: not judged */
bool cursor_has_detail(const struct session *s);
/* What keys mean in views of one element: steps over tiles are steps over elements, Enter goes to the source. */
struct view_answer act_on_element(const struct session *s, struct view_state *vs, enum action a, int times);
/* ", then rounded": an element that is ok although it is off by more than its bound is recorded in a narrower type, to
   which both ends are rounded; else "". */
const char *bound_rounds(enum tile_status sign, double off, double bound);
void tile_words(const struct session *s, struct place place, char *out, size_t bytes);  /* "h0 q0 k0" */
void place_words(const struct session *s, struct place place, char *out, size_t bytes); /* "S h0 q0 k0" */
void stage_list(unsigned stages, char *out, size_t bytes);                              /* "S, l" */
void culprit_words(unsigned culprits, char *out, size_t bytes);                         /* "S alone", "S, l" */

/* What a view shows, in a sentence or two. */
const char *view_about(enum view_id view, const char **title);
/* The keys of a view, as its key line has them, all of them, in lines of so many columns: "n/N bad  [ ] stage". */
void keys_words(enum view_id view, int cols, char *out, size_t bytes);

#endif
