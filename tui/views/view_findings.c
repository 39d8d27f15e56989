/* Every finding with what speaks for it; Enter goes to where it begins. */
#include "tui/views/panels.h"

#include "engine/base/path.h"
#include "engine/verdict/edge.h"
#include "tui/screen/hits.h"
#include "tui/screen/text_flow.h"
#include "tui/views/view_text.h"
#include <stdio.h>

static int count(const struct session *s)
{
    return s->judgement ? s->judgement->n_findings : 0;
}

static int place_of(const struct session *s, const struct view_state *vs, struct cursor *at)
{
    const int n = count(s);
    const struct finding *f = n ? &s->judgement->findings[list_selected(vs->selected, n)] : NULL;
    if (!f || f->first.slot < 0)
        return 0;
    const int32_t *place = trace_slot_place(s->trace, f->first.slot);
    *at = s->cursor;
    at->batch = place[0];
    at->head = place[1];
    at->q_tile = place[2];
    if (channel_per_kv(f->first.channel))
        at->kv_tile = f->first.kv;
    at->channel = f->first.channel;
    at->row = f->row;
    at->col = f->col;
    return 1;
}

static void evidence_flow(const struct cause_evidence *e, struct text_flow *f)
{
    char line[256];
    if (e->elements == 0)
        return;
    snprintf(line, sizeof line, "explained: %llu of %llu elements in bad tiles; plain rounding explains %llu",
             (unsigned long long)e->explained, (unsigned long long)e->elements, (unsigned long long)e->rounding);
    flow_put(f, STYLE_TEXT, line);
    if (e->discriminating) {
        snprintf(line, sizeof line, "distinguishing the two: %llu elements in %llu rows",
                 (unsigned long long)e->discriminating, (unsigned long long)e->rows);
        flow_put(f, STYLE_TEXT, line);
    }
    if (e->chance_tried) {
        snprintf(line, sizeof line, "by chance: fits %llu of %llu values of other elements",
                 (unsigned long long)e->chance_hit, (unsigned long long)e->chance_tried);
        flow_put(f, STYLE_TEXT, line);
    }
}

static void finding_flow(const struct session *s, const struct finding *found, struct text_flow *f)
{
    char line[512], place[64], edge[EDGE_WORDS_BYTES];
    const struct trace_site *site = finding_site(found, s->trace);
    place_words(s, found->first, place, sizeof place);
    snprintf(line, sizeof line, "%s: %s", found->loop ? "kv loop" : channel_label(found->channel), found->text);
    flow_put(f, STYLE_BAD, line);
    if (site)
        snprintf(line, sizeof line, "begins at %s r%d c%d, its probe is %s:%d", place, found->row, found->col,
                 path_name(site->file), site->line);
    else
        snprintf(line, sizeof line, "begins at %s r%d c%d", place, found->row, found->col);
    flow_put(f, STYLE_STRONG, line);
    evidence_flow(&found->evidence, f);
    if (edge_words(s->trace, &s->judgement->summary, found, edge))
        flow_put(f, STYLE_TEXT, edge);
    for (int k = 0; k < found->n_also; k++) {
        finding_also(found, k, line, sizeof line);
        flow_put(f, STYLE_WARNING, line);
    }
    flow_put(f, STYLE_TEXT, "");
}

/* First line of each finding, and behind the last one how many lines there are. */
static void count_lines(const struct session *s, int cols, int starts[MAX_FINDINGS + 1])
{
    struct text_flow f = {.area = {0, 0, 0, cols}};
    const int n = count(s);
    for (int i = 0; i < n; i++) {
        starts[i] = f.line;
        finding_flow(s, &s->judgement->findings[i], &f);
    }
    starts[n] = f.line;
}

static int first_line(const int *starts, int n, int selected, int rows)
{
    const int last = starts[n] - rows;
    int top = starts[selected + 1] - rows; /* all of the selected one, and as much before it as there is room for */
    top = top > starts[selected] ? starts[selected] : top;
    top = top > last ? last : top;
    return top > 0 ? top : 0;
}

static void list_draw(const struct session *s, struct canvas *c, struct rect area, int selected)
{
    int starts[MAX_FINDINGS + 1];
    const int n = count(s);
    const struct rect inner = {area.row, 2, area.rows, area.cols - 3};
    count_lines(s, inner.cols, starts);
    struct text_flow f = {.canvas = c, .area = inner, .top = first_line(starts, n, selected, area.rows)};
    for (int i = 0; i < n; i++) {
        const int row = starts[i] - f.top;
        finding_flow(s, &s->judgement->findings[i], &f);
        for (int k = row < 0 ? 0 : row; k < starts[i + 1] - f.top && k < area.rows; k++)
            hit_add(c, area, (struct rect){k, 0, 1, area.cols}, HIT_ENTRY, i, 0, 0);
        if (i == selected && row >= 0)
            canvas_put(c, area, row, 0, STYLE_CURSOR, "▶");
    }
}

static void view_findings_draw(const struct session *s, struct canvas *c, const struct view_state *vs)
{
    const struct rect body = view_body(c->cols, c->rows);
    const int n = count(s), selected = list_selected(vs->selected, n);
    char right[48] = "";
    if (n)
        snprintf(right, sizeof right, "%d of %d", selected + 1, n);
    view_frame_draw(s, c, VIEW_FINDINGS, "findings", right);
    if (n)
        list_draw(s, c, body, selected);
    else
        canvas_put(c, body, 1, 3, STYLE_DIM,
                   !s->judgement            ? "no run yet"
                   : s->judgement->complete ? "nothing was found: no stage is a culprit"
                                            : "not judged yet");
}

/* Enter: its first tile; the source's key: its probe's line. */
static struct view_answer act(const struct session *s, struct view_state *vs, enum action a, int times)
{
    struct view_answer answer = {.does = ANSWER_GOES, .view = a == ACTION_SOURCE ? VIEW_SOURCE : VIEW_TILE};
    (void)times;
    if ((a != ACTION_ZOOM && a != ACTION_SOURCE) || !count(s))
        return (struct view_answer){0};
    if (!place_of(s, vs, &answer.to))
        return (struct view_answer){.does = ANSWER_SAYS,
                                    .text = "the place the place the place where this begins is not recorded"};
    return answer;
}

const struct view view_findings = {.draw = view_findings_draw, .count = count, .act = act};
