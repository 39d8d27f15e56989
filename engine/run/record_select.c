#include "engine/run/record_parts.h"

#include "engine/base/units.h"
#include "engine/trace/conventions.h"

#include <stdlib.h>

static int has_site(const struct build *b, int channel)
{
    for (size_t i = 0; i < b->n_sites; i++)
        if ((int)b->sites[i].channel == channel)
            return 1;
    return 0;
}

static int default_dtype(const struct child_hello *hello, const struct asc_problem *p, int channel)
{
    static const char type_of[ASC_CHANNELS] = {
#define TYPE_INPUT 'i'
#define TYPE_OUTPUT 'o'
#define TYPE_F32 'f'
#define CHANNEL(id, label, rows, cols, extent, type, meaning, formula) type,
#include "probes/channels.def"
#undef CHANNEL
#undef TYPE_INPUT
#undef TYPE_OUTPUT
#undef TYPE_F32
    };
    if (hello->channel_dtype[channel] >= 0)
        return hello->channel_dtype[channel];
    if (type_of[channel] == 'i')
        return conventions_operand(&hello->conventions, p, (enum asc_channel)channel);
    if (type_of[channel] == 'o')
        return problem_o_dtype(p, hello->o_dtype);
    return DTYPE_F32;
}

void record_choose_types(const struct recorder *r, const struct scenario *scenario, struct layout_types *types)
{
    const struct child_hello *hello = child_hello(r->child);
    types->o = problem_o_dtype(&scenario->problem, hello->o_dtype);
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        int wanted = (scenario->capture.channels & 1u << ch) && has_site(&r->build, ch);
        types->channel[ch] = wanted ? default_dtype(hello, &scenario->problem, ch) : -1;
    }
}

static int selected(const int *list, int n, int value)
{
    if (!n)
        return 1;
    for (int i = 0; i < n; i++)
        if (list[i] == value)
            return 1;
    return 0;
}

int record_list_places(const struct scenario *scenario, int q_tiles, int32_t (**out)[3], int64_t *n_out,
                       struct err *err)
{
    const struct asc_problem *p = &scenario->problem;
    const struct capture *c = &scenario->capture;
    const int64_t all = (int64_t)p->batch * p->heads * q_tiles;
    int32_t(*places)[3] = malloc((size_t)all * sizeof *places);
    int64_t n = 0;
    if (!places)
        return err_no_memory(err, "", "the slot table");
    for (int b = 0; b < p->batch; b++)
        for (int h = 0; h < p->heads; h++)
            for (int q = 0; q < q_tiles; q++) {
                if (!selected(c->batches, c->n_batches, b) || !selected(c->heads, c->n_heads, h) ||
                    !selected(c->q_tiles, c->n_q_tiles, q))
                    continue;
                places[n][0] = b;
                places[n][1] = h;
                places[n++][2] = q;
            }
    if (!n) {
        free(places);
        return err_set(err, ERR_INPUT, scenario->path, "capture: selects nothing of %d batches, %d heads, %d q tiles",
                       p->batch, p->heads, q_tiles);
    }
    *out = places;
    *n_out = n;
    return 0;
}

int record_slots_room(const struct scenario *scenario, const struct asc_plan *plan, const struct layout_types *types,
                      int64_t wanted, int *room, struct err *err)
{
    const struct asc_problem *p = &scenario->problem;
    const uint64_t mem = scenario->capture.mem_bytes;
    struct layout l;
    uint64_t slot_bytes;
    if (layout_make(p, plan, types, 1, &l, err) != 0 || layout_slot_bytes(p, plan, types, &slot_bytes, err) != 0)
        return -1;
    if (l.total_bytes > mem) {
        char outside[32], one[32], allowed[32];
        units_bytes(l.total_bytes - slot_bytes, outside, sizeof outside);
        units_bytes(slot_bytes, one, sizeof one);
        units_bytes(mem, allowed, sizeof allowed);
        return err_set(err, ERR_INPUT, scenario->path,
                       "capture.mem: inputs and outputs take %s and one q tile %s, %s are allowed", outside, one,
                       allowed);
    }
    const uint64_t fit = 1 + (mem - l.total_bytes) / slot_bytes,
                   most = wanted < INT32_MAX ? (uint64_t)wanted : INT32_MAX;
    *room = (int)(fit < most ? fit : most);
    /* The slot table grows with them. */
    while (*room > 1 && (layout_make(p, plan, types, *room, &l, err) != 0 || l.total_bytes > mem))
        --*room;
    return 0;
}
