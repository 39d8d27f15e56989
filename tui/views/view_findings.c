/* Every finding with what speaks for it; Enter goes to where it begins. */
#include "tui/views/panels.h"

#include "tui/views/view_text.h"
#include <stdio.h>

static int count(const struct session *s)
{
    return s->run.judgement ? s->run.judgement->n_findings : 0;
}

static const struct finding *chosen(const struct session *s, const struct view_state *vs)
{
    const int n = count(s);
    return n ? &s->run.judgement->findings[list_selected(vs->selected, n)] : NULL;
}

static bool place_of(const struct session *s, const struct view_state *vs, struct cursor *at)
{
    const struct finding *f = chosen(s, vs);
    if (!f || f->first.slot < 0)
        return false;
    const int32_t *place = trace_slot_place(s->run.trace, f->first.slot);
    *at = s->at.cursor;
    at->batch = place[0];
    at->head = place[1];
    at->q_tile = place[2];
    if (channel_per_kv(f->first.channel))
        at->kv_tile = f->first.kv;
    at->channel = f->first.channel;
    at->row = f->row;
    at->col = f->col;
    return true;
}

static void finding_text(const struct list *l, int i, struct text_flow *f)
{
    const struct session *s = l->of;
    struct fact_flow to = {s, f, ""};
    run_facts_of(s->run.judgement, s->run.trace, &s->run.judgement->findings[i], FACTS_ALL, fact_flow, &to);
    if (finding_declares(&s->run.judgement->findings[i]))
        flow_put(f, STYLE_KEY, "Enter inserts this declaration");
    flow_put(f, STYLE_TEXT, "");
}

static void view_findings_draw(const struct session *s, struct canvas *c, const struct view_state *vs)
{
    const int n = count(s);
    const struct list list = {.of = s,
                              .n = n,
                              .selected = list_selected(vs->selected, n),
                              .empty = !s->run.judgement            ? "no run yet"
                                       : s->run.judgement->complete ? "nothing was found: no stage is a culprit"
                                                                    : "not judged yet",
                              .text = finding_text};
    char right[48] = "";
    if (n)
        snprintf(right, sizeof right, "%d of %d", list.selected + 1, n);
    view_frame_draw(s, c, VIEW_FINDINGS, "findings", right);
    list_draw(&list, c, view_body(c->cols, c->rows));
}

/* Enter: the declaration that it asks for, else its first tile; the source's key: its probe's line. */
static struct view_answer act(const struct session *s, struct view_state *vs, enum action a, int times)
{
    struct view_answer answer = {.does = ANSWER_GOES, .view = a == ACTION_SOURCE ? VIEW_SOURCE : VIEW_TILE};
    (void)times;
    if ((a != ACTION_ZOOM && a != ACTION_SOURCE) || !count(s))
        return (struct view_answer){0};
    if (a == ACTION_ZOOM && finding_declares(chosen(s, vs)))
        return (struct view_answer){.does = ANSWER_DECLARES, .finding = chosen(s, vs)};
    if (!place_of(s, vs, &answer.to))
        return (struct view_answer){.does = ANSWER_SAYS, .text = "the place where this begins is not recorded"};
    return answer;
}

const struct view view_findings = {.draw = view_findings_draw, .count = count, .act = act};
