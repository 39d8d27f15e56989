#include "engine/study/comparison.h"

#include "engine/run/given.h"
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int comparison_make(const struct trace *t, int slot, struct comparison *out)
{
    struct given_case g;
    *out = (struct comparison){.slot = slot};
    if (given_case_make(t, slot, &g) != 0)
        return -1;
    struct trace view;
    out->given_known = given_view(t, &view);
    out->has_output = g.run.c.captured[asc_o].data != NULL;
    int failed = paths_make(&g.given.c, &g.run.c, &out->paths) != 0;
    failed = failed || (out->has_output && attribution_make(&g.given.c, &g.run.c, &out->attribution) != 0);
    given_case_free(&g);
    if (failed) {
        comparison_free(out);
        return -1;
    }
    for (int p = 0; p < PLAYERS; p++)
        out->share[p] = NAN;
    if (out->has_output)
        attribution_shares(&out->attribution, 0, out->attribution.rows, out->share);
    return 0;
}

void comparison_free(struct comparison *c)
{
    if (!c)
        return;
    paths_free(&c->paths);
    attribution_free(&c->attribution);
    memset(c, 0, sizeof *c);
}

static void tile_sums(const struct trace *t, const struct attribution *a, const double *by_key, double *sum)
{
    for (int j = 0; j < a->keys; j++)
        sum[j / t->plan.bc] += by_key[j];
}

int comparison_step(const struct trace *t, const struct comparison *c, enum player player, int row, int col,
                    struct comparison_step *out)
{
    const struct attribution *a = &c->attribution;
    double *by_key = calloc((size_t)a->keys, sizeof *by_key), *sum = calloc((size_t)t->layout.kv_tiles, sizeof *sum);
    const bool failed = !by_key || !sum;
    *out = (struct comparison_step){.kv = -1};
    if (!failed) {
        const double sign = a->part[player][(size_t)row * (size_t)a->dim + (size_t)col] < 0 ? -1 : 1;
        attribution_keys(a, player, row, col, by_key);
        tile_sums(t, a, by_key, sum);
        for (int kv = 0; kv < t->layout.kv_tiles; kv++)
            if (sum[kv] * sign > 0 && (out->kv < 0 || fabs(sum[kv]) > fabs(out->part))) {
                out->kv = kv;
                out->part = sum[kv];
            }
        for (int j = 0; j < a->keys; j++)
            if (j / t->plan.bc != out->kv)
                by_key[j] = 0;
        attribution_largest(a, player, row, col, by_key, &out->largest);
    }
    free(by_key);
    free(sum);
    return failed ? -1 : 0;
}

/* The player with the largest part of the error's sign; -1: the error is none, or no number. */
static int largest_player(const struct attribution *a, size_t i)
{
    const double error = a->o_run[i] - a->o_given[i];
    int most = -1;
    for (int p = 0; p < PLAYERS; p++)
        if (a->part[p][i] * error > 0 && (most < 0 || fabs(a->part[p][i]) > fabs(a->part[most][i])))
            most = p;
    return most;
}

int comparison_words(const struct trace *t, const struct comparison *c, int row, int col, char *out, size_t bytes)
{
    const struct attribution *a = &c->attribution;
    const size_t i = (size_t)row * (size_t)a->dim + (size_t)col;
    struct comparison_step step;
    if (!c->has_output || row >= a->rows || col >= a->dim) {
        snprintf(out, bytes, c->has_output ? "o[%d,%d] does not exist" : "o[%d,%d]: the run left no output", row, col);
        return 0;
    }
    const double error = a->o_run[i] - a->o_given[i];
    size_t used = (size_t)snprintf(out, bytes, "o[%d,%d]: %+.3g in total", row, col, error);
    const int player = largest_player(a, i);
    if (!isfinite(error))
        snprintf(out, bytes, "o[%d,%d] is NaN or infinite; see the onset view (o)", row, col);
    if (player < 0 || used >= bytes)
        return 0;
    used +=
        (size_t)snprintf(out + used, bytes - used, ", %s %+.3g", player_name((enum player)player), a->part[player][i]);
    if (comparison_step(t, c, (enum player)player, row, col, &step) != 0)
        return -1;
    if (step.kv < 0 || player == PLAYER_REST || used >= bytes)
        return 0;
    used += (size_t)snprintf(out + used, bytes - used, ", %s at k%d",
                             isnan(step.largest.was) ? "most" : fate_words(step.largest.fate), step.kv);
    if (used < bytes && isnan(step.largest.was))
        snprintf(out + used, bytes - used, " (%+.3g; key %d)", step.part, step.largest.key);
    else if (used < bytes)
        snprintf(out + used, bytes - used, " (key %d: %.4g became %.4g)", step.largest.key, step.largest.was,
                 step.largest.is);
    return 0;
}

void survey_row_of(const struct comparison *c, struct survey_row *out)
{
    memcpy(out->o, c->paths.o, sizeof out->o);
    memcpy(out->share, c->share, sizeof out->share);
}

void survey_total(const struct survey_row *rows, int n, struct survey_row *out)
{
    double squares = 0;
    *out = (struct survey_row){0};
    for (int i = 0; i < n; i++) {
        for (int path = 0; path < PATHS; path++)
            path_error_add(&out->o[path], &rows[i].o[path]);
        if (isnan(rows[i].share[0]))
            continue;
        squares += rows[i].o[PATH_RUN].squares;
        for (int p = 0; p < PLAYERS; p++)
            out->share[p] += rows[i].share[p] * rows[i].o[PATH_RUN].squares;
    }
    for (int p = 0; p < PLAYERS; p++)
        out->share[p] = squares > 0 ? out->share[p] / squares : NAN;
}
