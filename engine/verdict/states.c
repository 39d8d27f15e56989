#include "engine/verdict/states.h"

#include "engine/verdict/case.h"
#include <stdio.h>
#include <string.h>

int states_of_slot(const struct judgement *j, const struct trace *t, int slot, struct judge_scratch *scratch,
                   struct row_states *out)
{
    struct slot_case c;
    memset(out, 0, sizeof *out);
    out->first_step = out->first_row = -1;
    if (slot < 0 || !judgement_slot_done(j, slot) || slot_case_make(t, slot, &c) != 0)
        return -1;
    c.c.fingerprint = j->fingerprint;
    const int failed = row_states_make(&c.c, scratch, out);
    slot_case_free(&c);
    return failed;
}

static bool state_is_off(const struct judgement *j, int slot)
{
    static const enum asc_channel state[] = {asc_m, asc_alpha, asc_l, asc_u};
    for (int kv = 0; kv < j->kv_tiles; kv++)
        for (size_t i = 0; i < sizeof state / sizeof state[0]; i++) {
            const struct tile_verdicts *v = judgement_tile(j, (struct place){slot, kv, state[i]});
            if (verdict_bad(&v->local) || verdict_bad(&v->global))
                return true;
        }
    return false;
}

int states_find_break(const struct judgement *j, const struct trace *t, struct judge_scratch *scratch,
                      struct state_break *out)
{
    int looked = 0;
    *out = (struct state_break){.slot = -1};
    for (int slot = 0; slot < j->n_slots && looked < STATES_LOOKED && out->slot < 0; slot++) {
        struct row_states states;
        if (!judgement_slot_done(j, slot) || !state_is_off(j, slot))
            continue;
        looked++;
        if (states_of_slot(j, t, slot, scratch, &states) != 0)
            return -1;
        if (states.first_step >= 0) {
            const struct row_step *at = &states.at[states.first_step * states.rows + states.first_row];
            *out = (struct state_break){slot, states.steps[states.first_step].kv, states.first_row, at->broken};
        }
        row_states_free(&states);
    }
    return 0;
}

void states_broken_words(unsigned broken, char out[BREAK_WORDS_BYTES])
{
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < INVARIANT_COUNT && used < BREAK_WORDS_BYTES; i++)
        if (broken & 1u << i)
            used += (size_t)snprintf(out + used, BREAK_WORDS_BYTES - used, "%s%s", used ? "; " : "",
                                     invariant_sentence((enum invariant)i));
}
