/* Causes of a wrong output and of a wrong LSE. Running state is that after the last tile. */
#include "engine/oracle/causes/cause.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/local.h"
#include "engine/oracle/values.h"

int cause_o_unguarded(struct candidate *k)
{
    const struct stage *o = &k->tile->s->stage[asc_o];
    if (k->tile->c->kv_splits > 1)
        return 0; /* of a row that no split has a key for: merge_unguarded */
    cause_right(k);
    k->makes_nan = 1;
    for (int i = 0; i < o->rows * o->cols; i++)
        if (k->tile->s->at.l_prev.value[i / o->cols] == 0)
            k->want[i] = NAN;
    return 1;
}
