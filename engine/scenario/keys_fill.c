/* Keys about what the inputs hold: [fill]. */
#include "engine/scenario/keys_set.h"

#include "engine/scenario/value.h"

static const char *const fill_names[] = {
#define FILL(id, name, meaning) name,
#include "engine/scenario/fills.def"
#undef FILL
    NULL};

enum { FILLED = 5, SEEDED }; /* tensors: q, k, v, sink, bias; keep has a seed alone */

/* The fills that a [fill] key is about: its own tensor's, or for the common key `all` (in the table followed by those
   of the tensors) each that has no key of its own; what the sinks, the bias and the kept weights hold follows the
   common seed alone. Returns how many. */
static int fills_of(struct scenario *s, enum scenario_key_id id, enum scenario_key_id all, struct fill *fills[SEEDED])
{
    struct fill *const tensors[SEEDED] = {&s->fill_q,    &s->fill_k,    &s->fill_v,
                                          &s->fill_sink, &s->fill_bias, &s->fill_keep};
    const unsigned own_keys = all == KEY_SEED ? SEEDED : FILLED, common = all == KEY_SEED ? SEEDED : 3;
    int n = 0;
    for (unsigned t = 0; t < own_keys; t++) {
        const enum scenario_key_id own = all + 1 + t;
        if (id == own || (id == all && t < common && !scenario_stated(s, own)))
            fills[n++] = tensors[t];
    }
    return n;
}

_Static_assert(KEY_FILL_Q == KEY_FILL + 1 && KEY_FILL_BIAS == KEY_FILL + FILLED, "fills_of counts on it");
_Static_assert(KEY_SIGMA_Q == KEY_SIGMA + 1 && KEY_SIGMA_BIAS == KEY_SIGMA + FILLED, "fills_of counts on it");
_Static_assert(KEY_SEED_Q == KEY_SEED + 1 && KEY_SEED_KEEP == KEY_SEED + SEEDED, "fills_of counts on it");

int key_set_fill_kind(struct scenario *s, enum scenario_key_id id, const char *value)
{
    struct fill *fills[SEEDED];
    const int v = value_name(value, fill_names);
    if (v < 0)
        return -1;
    for (int n = fills_of(s, id, KEY_FILL, fills); n > 0; n--)
        fills[n - 1]->kind = (enum fill_kind)v;
    return 0;
}

int key_set_sigma(struct scenario *s, enum scenario_key_id id, const char *value)
{
    struct fill *fills[SEEDED];
    double v;
    if (value_real(value, &v) != 0 || !(v >= 0))
        return -1;
    for (int n = fills_of(s, id, KEY_SIGMA, fills); n > 0; n--)
        fills[n - 1]->sigma = v;
    return 0;
}

int key_set_seed(struct scenario *s, enum scenario_key_id id, const char *value)
{
    struct fill *fills[SEEDED];
    uint64_t v;
    if (value_seed(value, &v) != 0)
        return -1;
    for (int n = fills_of(s, id, KEY_SEED, fills); n > 0; n--)
        fills[n - 1]->seed = v;
    return 0;
}
