/* States that become one: those that the splits of the keys end with, and a sink that is added behind the last tile.

   A kernel may merge (m_s, l_s, u_s) as such: l = sum l_s exp(m_s - m). Or each split gives o_s = u_s / l_s and
   lse_s = m_s + ln l_s, and o = sum o_s exp(lse_s - lse) with lse = ln sum exp(lse_s), as FlashAttention-2 and
   FlashInfer do. The second errs by more, in the share of split s relatively by d_s = e_s + exp's own error at the
   argument lse_s - lse + 4 u for o_s, e_s being the absolute error of lse_s, where |lse_s - lse| <= |lse_s| + |lse|, so
   that the splits can be taken in one after the other. All of o carries the error of lse besides. To first order |o^ -
   o| <= sum share_s |o_s| d_s + |o| (sum share_s d_s + error of lse), which is what (U's uncertainty + |o| L's) / L
   gives with uncertainties sum w |u_s| d_s and sum w l_s d_s.

   A U that was divided by l after every tile is o_s: u_s = l_s o_s, which rounds once more than what is said above.

   A split without any key has l_s = 0 and weighs nothing, whatever its m. */
#ifndef ORACLE_MERGE_H
#define ORACLE_MERGE_H

#include "engine/oracle/scratch.h"
#include <stdbool.h>

/* Before the first split. */
void merge_begin(const struct oracle_case *c, struct judge_scratch *s);

/* Behind the last tile of a split (its state is in m_prev, l_prev, u_prev, or max, sum, out): takes it in. */
void merge_local(const struct oracle_case *c, struct judge_scratch *s);
void merge_reference(const struct oracle_case *c, struct judge_scratch *s);

/* Behind the last split: the state is the merged one, and holds a sink that is added at the end. */
void merge_finish_local(const struct oracle_case *c, struct judge_scratch *s);
void merge_finish_reference(const struct oracle_case *c, struct judge_scratch *s);

/* Whether there is a sink that joins l behind the last tile. */
bool merge_sink_comes_last(const struct oracle_case *c);

/* Whether U was divided by l after every tile, and is not merged with anything: o is the last one. */
bool merge_leaves_normalized(const struct oracle_case *c);

#endif
