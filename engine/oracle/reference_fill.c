#include "engine/oracle/reference_fill.h"

#include "engine/oracle/local.h"
#include "engine/oracle/merge.h"
#include "engine/oracle/reference.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/tile.h"
#include "engine/oracle/values.h"
#include "engine/trace/layout.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct job {
    const struct oracle_case *c;
    struct judge_scratch *s;
    const struct reference_target *tiles;
};

static const struct reference_target *tile_of(const struct job *job, enum asc_channel ch)
{
    return &job->tiles[(channel_per_kv(ch) ? job->s->at.kv : 0) * ASC_CHANNELS + (int)ch];
}

static void store(const struct reference_target *tile, int row, int col, double value)
{
    const double stored = tile->dtype == DTYPE_U8 ? value + ASC_U8_MIDPOINT : value;
    if (!isnan(value))
        dtype_store(tile->dtype, tile->data, (size_t)(row * tile->row_stride + col), stored);
}

/* Columns beyond those of the reference are further lanes of a row sum: one lane has all of it, the others nothing. */
static void write_stage(const struct job *job, enum asc_channel ch)
{
    const struct stage *stage = &job->s->stage[ch];
    const struct reference_target *tile = tile_of(job, ch);
    if (!tile->data)
        return;
    for (int r = 0; r < tile->rows && r < stage->rows; r++)
        for (int col = 0; col < tile->cols; col++)
            store(tile, r, col,
                  col < stage->cols ? stage->want[GLOBAL][(size_t)r * (size_t)stage->cols + (size_t)col] : 0);
}

static void fill_columns(const struct reference_target *tile, double value)
{
    for (int r = 0; tile->data && r < tile->rows; r++)
        for (int col = 0; col < tile->pad_cols; col++)
            store(tile, r, tile->cols + col, value);
}

/* Keys from kv_len on are masked like any other hidden key; what they hold where the mask comes after S, and what a
   finite mask makes of their weights, the kernel knows itself. */
static void write_padding(const struct job *job)
{
    const struct asc_conventions *conventions = &job->c->conventions;
    const bool is_value = conventions->s_masked == ASC_MASKED_VALUE;
    if (!values_mask_later(job->c))
        fill_columns(tile_of(job, asc_s), is_value ? (double)conventions->s_masked_value : -INFINITY);
    if (!is_value)
        fill_columns(tile_of(job, asc_p), 0);
}

/* u of the tile before, which is recorded once this one has rescaled it. */
static void write_late_u(const struct job *job)
{
    struct judge_scratch *s = job->s;
    const struct stage own = s->stage[asc_u];
    const int kv = s->at.kv;
    if (s->late_kv < 0)
        return;
    s->stage[asc_u] = s->late;
    s->at.kv = s->late_kv;
    write_stage(job, asc_u);
    s->stage[asc_u] = own;
    s->at.kv = kv;
    s->late_kv = -1;
}

static void write_operand(const struct job *job, enum asc_channel ch)
{
    operand_take(job->c, job->s, ch);
    write_stage(job, ch);
}

/* Where a kernel may choose m, the reference's is the one that its P, l and U stand on. */
static void choose_m(const struct job *job)
{
    struct judge_scratch *s = job->s;
    const struct stage *m = &s->stage[asc_m];
    if (job->c->conventions.m_policy == ASC_M_RUNNING)
        return;
    for (int r = 0; r < m->rows; r++)
        m->want[GLOBAL][r] = s->reference.frame[r] / values_natural_m(job->c);
}

static void fill_tile(const struct job *job, int kv)
{
    struct judge_scratch *s = job->s;
    scratch_tile(s, job->c, kv);
    write_operand(job, asc_k);
    write_operand(job, asc_v);
    s->exact_q = s->exact_k = false; /* reference_s then takes the inputs, not what local_s would have left */
    reference_s(job->c, s);
    reference_tile(job->c, s);
    choose_m(job);
    for (int i = 0; i < TILE_STAGES; i++)
        write_stage(job, tile_stages[i]);
    write_padding(job);
    write_late_u(job);
    if (job->c->conventions.u_phase == ASC_U_RESCALED)
        local_keep_u(job->c, s);
    s->at.tiles_seen++;
}

static void fill_split(const struct job *job, int split)
{
    const struct oracle_case *c = job->c;
    const struct schedule_lists *lists = &job->s->lists;
    int *seen = job->s->seen;
    reference_begin(c, job->s, split);
    for (int i = lists->first_visit[split]; i >= 0 && !job->s->stopped; i = lists->next_visit[i]) {
        seen[c->order[i]] = 1;
        fill_tile(job, c->order[i]);
    }
    for (int kv = lists->first_tile[split]; kv >= 0 && !job->s->stopped; kv = lists->next_tile[kv])
        if (!seen[kv])
            fill_tile(job, kv);
    merge_reference(c, job->s);
}

int reference_fill(const struct oracle_case *c, struct judge_scratch *scratch, const struct reference_target *tiles)
{
    struct oracle_case own = *c;
    const struct job job = {&own, scratch, tiles};
    /* Nothing counts as captured but operands: the reference then stands on its own running maximum. */
    struct matrix *captured = calloc((size_t)c->kv_tiles * ASC_CHANNELS, sizeof *captured);
    if (!captured || scratch_prepare(scratch, c) != 0) {
        free(captured);
        return -1;
    }
    for (int i = 0; i < c->kv_tiles * ASC_CHANNELS; i++)
        if (i % ASC_CHANNELS == asc_q || i % ASC_CHANNELS == asc_k || i % ASC_CHANNELS == asc_v)
            captured[i] = c->captured[i];
    own.captured = captured;
    own.fed = NULL;
    reference_inputs(&own, scratch);
    scratch_tile(scratch, &own, 0);
    write_operand(&job, asc_q);
    merge_begin(&own, scratch);
    for (int split = 0; split < scratch->lists.splits && !scratch->stopped; split++)
        fill_split(&job, split);
    if (scratch->stopped) {
        free(captured);
        return -1;
    }
    merge_finish_reference(&own, scratch);
    reference_end(&own, scratch);
    write_stage(&job, asc_o);
    write_stage(&job, asc_lse);
    free(captured);
    return 0;
}
