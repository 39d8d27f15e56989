#include "engine/run/budget.h"

#include "engine/build/runner.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *budget_state_word(enum budget_state state)
{
    static const char *const words[] = {
        [BUDGET_NOT_STATED] = "not stated",
        [BUDGET_MET] = "met",
        [BUDGET_OVER] = "over",
        [BUDGET_UNJUDGED] = "not judged",
        [BUDGET_NEEDS_GPU] = "not judged: needs a GPU",
    };
    return words[state];
}

enum budget_state budget_of_launch(const struct trace_info *info, const struct trace_launch *l, enum budget_item item)
{
    const struct launch_budget *budget = &info->launches.budget;
    const int64_t takes = launch_takes(l, item);
    if (!(budget->stated >> item & 1) || l->probes != PROBES_NONE)
        return BUDGET_NOT_STATED;
    if (takes < 0)
        return BUDGET_UNJUDGED;
    return takes <= budget->most[item] ? BUDGET_MET : BUDGET_OVER;
}

struct budget_verdict budget_judge(const struct trace_info *info, enum budget_item item)
{
    const struct trace_launches *launches = &info->launches;
    struct budget_verdict v = {.state = BUDGET_NOT_STATED, .most = -1, .takes = -1};
    int unknown = 0;
    if (!(launches->budget.stated >> item & 1))
        return v;
    v.most = launches->budget.most[item];
    for (size_t i = 0; i < launches->n; i++) {
        const struct trace_launch *l = &launches->at[i];
        const enum budget_state state = budget_of_launch(info, l, item);
        unknown |= state == BUDGET_UNJUDGED;
        if (state != BUDGET_NOT_STATED && launch_takes(l, item) > v.takes) {
            v.takes = launch_takes(l, item);
            v.launch = l;
        }
    }
    if (strcmp(info->backend, backend_name(BACKEND_GPU)) != 0)
        v.state = BUDGET_NEEDS_GPU;
    else if (v.takes > v.most)
        v.state = BUDGET_OVER;
    else
        v.state = v.launch && !unknown ? BUDGET_MET : BUDGET_UNJUDGED;
    return v;
}

static void append(char *words, size_t bytes, const char *part)
{
    const size_t used = strlen(words);
    snprintf(words + used, bytes - used, "%s%s", used ? ", " : "", part);
}

int budget_meets(const struct trace_info *info, char *words, size_t bytes)
{
    char line[384];
    int met = 1, unjudged = 0;
    words[0] = '\0';
    if (!info->launches.budget.stated)
        return 1;
    for (int i = 0; i < BUDGET_ITEMS; i++) {
        const struct budget_verdict v = budget_judge(info, (enum budget_item)i);
        if (v.state == BUDGET_NEEDS_GPU) {
            snprintf(words, bytes, "budget %s", budget_state_word(v.state));
            return 1;
        }
        unjudged |= v.state == BUDGET_UNJUDGED;
        met &= v.state == BUDGET_MET || v.state == BUDGET_NOT_STATED;
        if (v.state != BUDGET_OVER)
            continue;
        snprintf(line, sizeof line, "over budget: %s uses %" PRId64 " %s, %" PRId64 " are allowed", v.launch->kernel,
                 v.takes, budget_noun((enum budget_item)i), v.most);
        append(words, bytes, line);
    }
    if (unjudged) {
        snprintf(line, sizeof line, "budget not judged: %s",
                 info->launches.not_measured[0] ? info->launches.not_measured : "the kernel's usage is unknown");
        append(words, bytes, line);
    }
    if (met)
        snprintf(words, bytes, "within budget");
    return met;
}
