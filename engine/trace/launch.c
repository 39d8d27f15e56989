#include "engine/trace/launch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const backend_names[] = {"cpu", "gpu", NULL};

void launch_init(struct trace_launch *l)
{
    memset(l, 0, sizeof *l);
#define LAUNCH_INTEGER(name, meaning) l->name = -1;
#define LAUNCH_REAL(name, meaning) l->name = NAN;
#include "engine/trace/launch.def"
#undef LAUNCH_INTEGER
#undef LAUNCH_REAL
}

double launch_occupancy(const struct trace_launch *l)
{
    return l->resident_warps >= 0 && l->warp_slots > 0 ? (double)l->resident_warps / l->warp_slots : NAN;
}

int64_t launch_shared_bytes(const struct trace_launch *l)
{
    return l->static_shared_bytes < 0 || l->dynamic_shared_bytes < 0
               ? -1
               : (int64_t)l->static_shared_bytes + l->dynamic_shared_bytes;
}

static const struct {
    const char *name, *noun;
} budget_items[BUDGET_ITEMS] = {
    [BUDGET_REGISTERS] = {"registers", "registers of a thread"},
    [BUDGET_SHARED_BYTES] = {"shared_bytes", "bytes of shared memory, static and dynamic"},
    [BUDGET_SPILL_BYTES] = {"spill_bytes", "bytes of local memory of a thread"},
};

const char *budget_name(enum budget_item item)
{
    return budget_items[item].name;
}

const char *budget_noun(enum budget_item item)
{
    return budget_items[item].noun;
}

int64_t launch_takes(const struct trace_launch *l, enum budget_item item)
{
    switch (item) {
    case BUDGET_REGISTERS:
        return l->registers;
    case BUDGET_SHARED_BYTES:
        return launch_shared_bytes(l);
    case BUDGET_SPILL_BYTES:
        return l->local_bytes;
    case BUDGET_ITEMS:
        break;
    }
    return -1;
}

bool launch_has_counters(const struct trace_launch *l)
{
    return isfinite(l->achieved_occupancy) || isfinite(l->tensor_pipe) || isfinite(l->dram_share) ||
           isfinite(l->dram_bytes_per_second);
}

/* JSON has no NaN. */
static json_t *real_json(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

/* A text may be cut within a character: then each byte beyond ASCII becomes '?'. */
static json_t *text_json(const char *text)
{
    char ascii[sizeof((struct trace_launches *)NULL)->not_measured];
    json_t *json = json_string(text);
    if (json)
        return json;
    size_t n = strnlen(text, sizeof ascii - 1);
    for (size_t i = 0; i < n; i++)
        ascii[i] = (char)((unsigned char)text[i] < 0x80 ? text[i] : '?');
    return json_stringn(ascii, n);
}

static json_t *launch_json(const struct trace_launch *l)
{
    json_t *json = json_pack("{s:o, s:s, s:[iii], s:[iii]}", "kernel", text_json(l->kernel), "limited_by",
                             l->limited_by, "grid", (int)l->grid[0], (int)l->grid[1], (int)l->grid[2], "block",
                             (int)l->block[0], (int)l->block[1], (int)l->block[2]);
#define LAUNCH_INTEGER(name, meaning) json_object_set_new(json, #name, json_integer(l->name));
#define LAUNCH_REAL(name, meaning) json_object_set_new(json, #name, real_json(l->name));
#include "engine/trace/launch.def"
#undef LAUNCH_INTEGER
#undef LAUNCH_REAL
    return json;
}

static json_t *budget_json(const struct launch_budget *budget)
{
    json_t *json = json_object();
    for (int i = 0; i < BUDGET_ITEMS; i++)
        if (budget->stated >> i & 1)
            json_object_set_new(json, budget_items[i].name, json_integer(budget->most[i]));
    return json;
}

json_t *launches_json(const struct trace_launches *launches)
{
    json_t *list = json_array();
    for (size_t i = 0; i < launches->n; i++)
        json_array_append_new(list, launch_json(&launches->at[i]));
    return json_pack("{s:o, s:o, s:o}", "not_measured", text_json(launches->not_measured), "budget",
                     budget_json(&launches->budget), "list", list);
}

static int read_text(const json_t *json, char *out, size_t size)
{
    if (!json_is_string(json) || json_string_length(json) >= size ||
        strlen(json_string_value(json)) != json_string_length(json))
        return -1;
    memcpy(out, json_string_value(json), json_string_length(json) + 1);
    return 0;
}

static int read_integer(const json_t *json, json_int_t least, int32_t *out)
{
    if (!json_is_integer(json) || json_integer_value(json) < least || json_integer_value(json) > INT32_MAX)
        return -1;
    *out = (int32_t)json_integer_value(json);
    return 0;
}

/* What is stated there takes the place of what was. */
static int read_budget(const json_t *json, struct launch_budget *budget)
{
    for (int i = 0; i < BUDGET_ITEMS; i++) {
        const json_t *most = json_object_get(json, budget_items[i].name);
        if (most && read_integer(most, 0, &budget->most[i]) != 0)
            return -1;
        budget->stated |= most ? 1u << i : 0;
    }
    return 0;
}

static int read_extent(const json_t *json, int32_t out[3])
{
    int failed = json_array_size(json) != 3;
    for (size_t i = 0; i < 3 && !failed; i++)
        failed = read_integer(json_array_get(json, i), 0, &out[i]) != 0; /* a launch that failed may have asked for 0 */
    return failed ? -1 : 0;
}

static int read_real(const json_t *json, double *out)
{
    *out = NAN;
    if (json_is_null(json))
        return 0;
    *out = json_number_value(json);
    return json_is_number(json) && *out >= 0 ? 0 : -1;
}

/* NULL, or the field that is wrong. */
static const char *read_launch(const json_t *json, struct trace_launch *l)
{
    launch_init(l);
    if (read_text(json_object_get(json, "kernel"), l->kernel, sizeof l->kernel) != 0)
        return "kernel";
    if (read_text(json_object_get(json, "limited_by"), l->limited_by, sizeof l->limited_by) != 0)
        return "limited_by";
    if (read_extent(json_object_get(json, "grid"), l->grid) != 0)
        return "grid";
    if (read_extent(json_object_get(json, "block"), l->block) != 0)
        return "block";
#define LAUNCH_INTEGER(name, meaning)                                                                                  \
    if (json_object_get(json, #name) && read_integer(json_object_get(json, #name), -1, &l->name) != 0)                 \
        return #name;
#define LAUNCH_REAL(name, meaning)                                                                                     \
    if (read_real(json_object_get(json, #name), &l->name) != 0)                                                        \
        return #name;
#include "engine/trace/launch.def"
#undef LAUNCH_INTEGER
#undef LAUNCH_REAL
    return NULL;
}

const char launches_no_memory[] = "out of memory for the list";

const char *launches_read(const json_t *json, struct trace_launches *to)
{
    const json_t *list = json_object_get(json, "list");
    const size_t n = json_array_size(list);
    char not_measured[sizeof to->not_measured];
    if (!json || json_is_null(json))
        return NULL;
    if (!json_is_array(list) || n > TRACE_LAUNCHES_MAX - to->n)
        return "list";
    if (read_text(json_object_get(json, "not_measured"), not_measured, sizeof not_measured) != 0)
        return "not_measured";
    struct trace_launch *more = realloc(to->at, (to->n + n + 1) * sizeof *more);
    if (!more)
        return launches_no_memory;
    to->at = more;
    for (size_t i = 0; i < n; i++) {
        const char *wrong = read_launch(json_array_get(list, i), &to->at[to->n + i]);
        if (wrong)
            return wrong;
    }
    if (read_budget(json_object_get(json, "budget"), &to->budget) != 0)
        return "budget";
    to->n += n;
    if (not_measured[0])
        memcpy(to->not_measured, not_measured, sizeof not_measured);
    return NULL;
}

void launches_free(struct trace_launches *launches)
{
    free(launches->at);
    *launches = (struct trace_launches){0};
}
