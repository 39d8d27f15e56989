/* Causes that lie in what joins the scores: biases, and the sink. */
#include "engine/oracle/causes/cause.h"

#include "engine/oracle/bias.h"
#include "engine/oracle/bound.h"
#include "engine/oracle/local.h"
#include "engine/oracle/values.h"
#include <stdio.h>

/* Before the first tile l is the sink's weight: only that tile tells. */
int cause_l_sink_missing(struct candidate *k)
{
    struct operands s = cause_altered(k);
    if (!k->tile->c->has_sink || k->tile->c->conventions.l_sink != ASC_SINK_START)
        return 0;
    cause_right(k);
    if (k->tile->visited[0] >= 0)
        return 1;
    s.l_prev.value = s.l_prev.loose = k->tile->s->room.zero;
    local_l(k->tile->c, &s, cause_out(k));
    return 1;
}
