#include "engine/oracle/bias.h"

#include "engine/oracle/schedule.h"
#include "engine/oracle/score_mod.h"
#include <math.h>
#include <stdlib.h>

int bias_terms(const struct oracle_case *c)
{
    return (c->alibi_slope != 0) + (c->bias.data != NULL);
}

bool bias_changes(const struct oracle_case *c)
{
    return bias_terms(c) > 0 || c->score_mod;
}

double bias_modified(const struct oracle_case *c, int r, int key, double score)
{
    double unused = 0;
    return (c->score_mod ? score_mod_at(c, r, key, score, &unused) : score) + bias_at(c, r, key, &unused);
}

/* FlashAttention-2 (csrc/flash_attn/src/mask.h) adds alibi_slope * col_idx where its Is_causal holds, and subtracts
   alibi_slope * abs(row_idx + max_seqlen_k - max_seqlen_q - col_idx) elsewhere. Is_causal is "no window to the left,
   and 0 to the right" (flash_api.cpp), where a window of kv_len or more is none. */
bool bias_counts_columns(const struct oracle_case *c)
{
    const int right = c->causal != ASC_CAUSAL_NONE ? 0 : c->window_right;
    return c->conventions.alibi_form == ASC_ALIBI_FLASH && right == 0 &&
           (c->window_left < 0 || c->window_left >= c->kv_len);
}

double bias_at(const struct oracle_case *c, int r, int key, double *size)
{
    double sum = 0;
    *size = 0;
    if (c->alibi_slope != 0) {
        sum = c->alibi_slope * (bias_counts_columns(c) ? (double)key : -fabs((double)(schedule_diagonal(c, r) - key)));
        *size = fabs(sum);
    }
    if (c->bias.data) {
        const double x = dtype_load(c->bias.dtype, c->bias.data, (size_t)(r * c->bias.row_stride + key));
        sum += x;
        *size += fabs(x);
    }
    return sum;
}

void bias_tile(const struct oracle_case *c, int kv, int cols, double *bias, double *size)
{
    for (int r = 0; r < c->in_q.rows; r++)
        for (int col = 0; col < cols; col++) {
            const size_t i = (size_t)r * (size_t)cols + (size_t)col;
            bias[i] = bias_at(c, r, kv * c->bc + col, &size[i]);
        }
}
