/* What the kernels of a run take on the GPU, beside their budget. */
#include "tui/views/view_text.h"

#include "engine/run/resources.h"
#include "tui/screen/text_flow.h"
#include "tui/views/panels.h"
#include <stdio.h>
#include <string.h>

static void launch_flow(const struct trace_info *info, const struct trace_launch *l, struct text_flow *f)
{
    char words[320], line[448];
    launch_title(l, words, sizeof words);
    flow_put(f, STYLE_STRONG, words);
    for (int i = 0; i < FACTS; i++) {
        const enum budget_item item = fact_budget((enum fact)i);
        const enum budget_state state = item == BUDGET_ITEMS ? BUDGET_NOT_STATED : budget_of_launch(info, l, item);
        if (i >= FACT_ACHIEVED && !launch_has_counters(l))
            break;
        fact_words(l, (enum fact)i, words, sizeof words);
        size_t used = (size_t)snprintf(line, sizeof line, "  %-14s %s", fact_label((enum fact)i), words);
        if (state == BUDGET_MET || state == BUDGET_OVER)
            snprintf(line + used, sizeof line - used, "  %s %d", state == BUDGET_MET ? "≤" : "✗ more than",
                     (int)info->launches.budget.most[item]);
        flow_put(f, state == BUDGET_OVER ? STYLE_BAD : state == BUDGET_MET ? STYLE_OK : STYLE_TEXT, line);
    }
    flow_put(f, STYLE_TEXT, "");
}

/* A run on the CPU, and none at all: what would stand here. */
static void nothing_flow(const struct trace_info *info, struct text_flow *f)
{
    if (info && info->backend == BACKEND_GPU)
        flow_put(f, STYLE_DIM, "The kernel launched nothing through ASC_LAUNCH: its resources are unknown.");
    else
        flow_put(f, STYLE_DIM,
                 info ? "This run was on the CPU. For a run on a GPU, this view shows each launch: its time, "
                        "registers, shared and local memory, the occupancy and what limits it, and whether it is "
                        "within the scenario's [budget]."
                      : "No run yet.");
}

static void resources_flow(const struct session *s, struct text_flow *f)
{
    const struct trace_info *info = s->run.trace ? &s->run.trace->info : NULL;
    char words[384], line[416];
    int plain = 0;
    for (size_t i = 0; info && i < info->launches.n; i++) {
        launch_flow(info, &info->launches.at[i], f);
        plain |= info->launches.at[i].probes == 0;
    }
    if (!info || !info->launches.n)
        nothing_flow(info, f);
    if (info && info->launches.not_measured[0]) {
        snprintf(line, sizeof line, "not measured: %s", info->launches.not_measured);
        flow_put(f, STYLE_WARNING, line);
    }
    if (info && info->launches.budget.stated) {
        const int met = budget_meets(info, words, sizeof words);
        flow_put(f, met ? STYLE_TEXT : STYLE_BAD, words);
    }
    if (info && info->launches.n && !plain)
        flow_put(f, STYLE_DIM, "p reruns and measures the kernel without probes too, with hardware counters.");
}

static void view_resources_draw(const struct session *s, struct canvas *c, const struct view_state *vs)
{
    view_frame_draw(s, c, VIEW_RESOURCES, "resources", s->run.trace ? s->run.trace->info.device : "");
    text_view_draw(s, c, vs, resources_flow);
}

static int view_resources_lines(const struct session *s, const struct view_state *vs, int cols)
{
    (void)vs;
    return text_view_lines(s, cols, resources_flow);
}

const struct view view_resources = {.draw = view_resources_draw, .lines = view_resources_lines};
