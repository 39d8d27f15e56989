#include "engine/run/resources.h"

#include "engine/base/units.h"
#include "engine/build/runner.h"
#include <inttypes.h>
#include <math.h>
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
    if (info->backend != BACKEND_GPU)
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

bool budget_meets(const struct trace_info *info, char *words, size_t bytes)
{
    char line[384];
    int met = 1, unjudged = 0;
    words[0] = '\0';
    if (!info->launches.budget.stated)
        return true;
    for (int i = 0; i < BUDGET_ITEMS; i++) {
        const struct budget_verdict v = budget_judge(info, (enum budget_item)i);
        if (v.state == BUDGET_NEEDS_GPU) {
            snprintf(words, bytes, "budget %s", budget_state_word(v.state));
            return true;
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

const char *fact_label(enum fact fact)
{
    static const char *const labels[FACTS] = {
        [FACT_TIME] = "time",           [FACT_REGISTERS] = "registers", [FACT_SHARED] = "shared memory",
        [FACT_LOCAL] = "local memory",  [FACT_OCCUPANCY] = "occupancy", [FACT_ACHIEVED] = "achieved",
        [FACT_TENSOR] = "tensor cores", [FACT_DRAM] = "memory",
    };
    return labels[fact];
}

enum budget_item fact_budget(enum fact fact)
{
    switch (fact) {
    case FACT_REGISTERS:
        return BUDGET_REGISTERS;
    case FACT_SHARED:
        return BUDGET_SHARED_BYTES;
    case FACT_LOCAL:
        return BUDGET_SPILL_BYTES;
    default:
        return BUDGET_ITEMS;
    }
}

static void share_words(double share, const char *of, char *out, size_t bytes)
{
    if (isfinite(share))
        snprintf(out, bytes, "%.1f %% of %s", 100 * share, of);
    else
        snprintf(out, bytes, "not counted");
}

static void shared_words(const struct trace_launch *l, char *out, size_t bytes)
{
    char all[32], fixed[32], dynamic[32];
    if (launch_shared_bytes(l) < 0) {
        snprintf(out, bytes, "not known");
        return;
    }
    units_bytes((uint64_t)launch_shared_bytes(l), all, sizeof all);
    units_bytes((uint64_t)l->static_shared_bytes, fixed, sizeof fixed);
    units_bytes((uint64_t)l->dynamic_shared_bytes, dynamic, sizeof dynamic);
    if (l->static_shared_bytes && l->dynamic_shared_bytes)
        snprintf(out, bytes, "%s a block: %s static, %s dynamic", all, fixed, dynamic);
    else
        snprintf(out, bytes, "%s a block%s", all, l->dynamic_shared_bytes ? ", dynamic" : "");
}

static void occupancy_words(const struct trace_launch *l, char *out, size_t bytes)
{
    if (!isfinite(launch_occupancy(l))) {
        snprintf(out, bytes, "not known");
        return;
    }
    snprintf(out, bytes, "%.1f %%: %d of %d warps in %d block%s%s%s", 100 * launch_occupancy(l), (int)l->resident_warps,
             (int)l->warp_slots, (int)l->resident_blocks, l->resident_blocks == 1 ? "" : "s",
             l->limited_by[0] ? ", limited by " : "", l->limited_by);
}

static void memory_words(const struct trace_launch *l, char *out, size_t bytes)
{
    size_t used;
    share_words(l->dram_share, "its rate", out, bytes);
    used = strlen(out);
    if (isfinite(l->dram_bytes_per_second))
        snprintf(isfinite(l->dram_share) ? out + used : out, isfinite(l->dram_share) ? bytes - used : bytes,
                 "%s%.1f GB/s", isfinite(l->dram_share) ? ", " : "", 1e-9 * l->dram_bytes_per_second);
}

void fact_words(const struct trace_launch *l, enum fact fact, char *out, size_t bytes)
{
    char amount[32];
    snprintf(out, bytes, "not known");
    switch (fact) {
    case FACT_TIME:
        if (isfinite(l->seconds) && l->seconds > 0)
            units_seconds(l->seconds, out, bytes);
        break;
    case FACT_REGISTERS:
        if (l->registers >= 0)
            snprintf(out, bytes, "%d a thread", (int)l->registers);
        break;
    case FACT_SHARED:
        shared_words(l, out, bytes);
        break;
    case FACT_LOCAL:
        if (l->local_bytes < 0)
            break;
        units_bytes((uint64_t)l->local_bytes, amount, sizeof amount);
        snprintf(out, bytes, "%s a thread%s", amount,
                 l->local_bytes ? ": spills, or arrays with variable indices" : "");
        break;
    case FACT_OCCUPANCY:
        occupancy_words(l, out, bytes);
        break;
    case FACT_ACHIEVED:
        share_words(l->achieved_occupancy, "the warps", out, bytes);
        break;
    case FACT_TENSOR:
        share_words(l->tensor_pipe, "the active cycles", out, bytes);
        break;
    case FACT_DRAM:
        memory_words(l, out, bytes);
        break;
    case FACTS:
        break;
    }
}

/* "8 x 4": without ones at the end. */
static void extent_words(const int32_t extent[3], char *out, size_t bytes)
{
    size_t used = (size_t)snprintf(out, bytes, "%d", (int)extent[0]);
    const int dimensions = extent[2] != 1 ? 3 : extent[1] != 1 ? 2 : 1;
    for (int i = 1; i < dimensions && used < bytes; i++)
        used += (size_t)snprintf(out + used, bytes - used, " x %d", (int)extent[i]);
}

void launch_title(const struct trace_launch *l, char *out, size_t bytes)
{
    char grid[48], block[48];
    extent_words(l->grid, grid, sizeof grid);
    extent_words(l->block, block, sizeof block);
    snprintf(out, bytes, "%s, grid %s, block %s%s", l->kernel, grid, block, l->probes == 0 ? "" : ", with probes");
}
