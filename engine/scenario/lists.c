/* Lists of files: how long the sequences are, and where their rows lie in Q, K and V of files: all behind each other
   (cu_seqlens), or in pages. Such a tensor is read into one with a row of its own for each place, as all others are. */
#include "engine/scenario/lists.h"

#include "engine/base/array_file.h"
#include "engine/scenario/keys.h"
#include "engine/scenario/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OF_Q, OF_KEYS, SIDES };

/* What the lists say of Q, or of K and V. */
struct lists {
    int n;           /* sequences; 0: nothing is said */
    int64_t *begin;  /* [n + 1] rows of all sequences: the first of each, and the end; NULL: they do not lie so */
    int32_t *length; /* [n]; NULL: not said */
    int64_t *page;   /* [n][n_pages]; NULL: there are none */
    int n_pages;     /* that a sequence has room for */
    char name[2][ARRAY_NAME_BYTES]; /* of lengths and pages, for messages */
};

static void lists_free(struct lists *l)
{
    free(l->begin);
    free(l->length);
    free(l->page);
}

static enum scenario_key_id key_of(enum input_id i)
{
    return (enum scenario_key_id)(KEY_INPUT_Q + (int)i);
}

static int wrong_list(const struct array *a, const char *expected, struct err *err)
{
    char shape[160];
    return err_set(err, ERR_INPUT, a->name, "has shape %s and type %s; expected whole numbers, %s",
                   array_shape(a, shape), a->type, expected);
}

/* Reads a list of whole numbers, which the caller frees. 1: there is none. */
static int read_list(const struct scenario *s, enum input_id i, int n_dims, const char *expected, int64_t length[2],
                     int64_t **out, char name[ARRAY_NAME_BYTES], struct err *err)
{
    char spec[ARRAY_NAME_BYTES];
    struct array a;
    if (!scenario_input(s, i, spec))
        return 1;
    if (array_open(spec, true, &a, err) != 0)
        return -1;
    snprintf(name, ARRAY_NAME_BYTES, "%s", a.name);
    length[0] = a.length[0];
    length[1] = n_dims > 1 ? a.length[1] : 1;
    int failed = 0;
    const bool whole = a.dtype == DTYPE_I32 || a.dtype == DTYPE_I64;
    if (!whole || a.n_dims != n_dims || length[0] > VALUE_LENGTH_MAX || length[1] > VALUE_LENGTH_MAX)
        failed = wrong_list(&a, expected, err);
    else if (!(*out = calloc((size_t)length[0] * (size_t)length[1], sizeof **out)))
        failed = err_no_memory(err, a.name, "its numbers");
    for (int64_t x = 0; !failed && x < length[0]; x++)
        for (int64_t y = 0; y < length[1]; y++) {
            const int64_t at = x * a.stride[0] + (n_dims > 1 ? y * a.stride[1] : 0);
            (*out)[x * length[1] + y] =
                a.dtype == DTYPE_I32 ? ((const int32_t *)a.data)[at] : ((const int64_t *)a.data)[at];
        }
    array_close(&a);
    return failed;
}

static int same_count(const struct lists *l, int64_t found, const char *name, struct err *err)
{
    return !l->n || l->n == found
               ? 0
               : err_set(err, ERR_INPUT, name, "is of %lld sequences; expected %d, as another list has",
                         (long long)found, l->n);
}

static int read_begins(const struct scenario *s, enum input_id i, struct lists *l, struct err *err)
{
    int64_t length[2];
    const int found = read_list(s, i, 1, "[batch + 1]", length, &l->begin, l->name[0], err);
    if (found != 0)
        return found > 0 ? 0 : -1;
    const int n = (int)length[0] - 1;
    for (int b = 0; b <= n; b++)
        if (l->begin[b] > VALUE_LENGTH_MAX || (b == 0 ? l->begin[b] != 0 : l->begin[b] < l->begin[b - 1]))
            return err_set(err, ERR_INPUT, l->name[0],
                           "has %lld at %d; expected numbers that begin at 0 and do not fall", (long long)l->begin[b],
                           b);
    if (n < 1)
        return err_set(err, ERR_INPUT, l->name[0], "has one number; expected [batch + 1]");
    l->n = n;
    l->length = malloc((size_t)n * sizeof *l->length);
    if (!l->length)
        return err_no_memory(err, l->name[0], "its lengths");
    for (int b = 0; b < n; b++)
        l->length[b] = (int32_t)(l->begin[b + 1] - l->begin[b]);
    return 0;
}

/* Lengths themselves: of rows behind each other, how many of them count. */
static int read_lengths(const struct scenario *s, enum input_id i, struct lists *l, struct err *err)
{
    int64_t length[2], *values = NULL;
    const int found = read_list(s, i, 1, "[batch]", length, &values, l->name[0], err);
    if (found != 0)
        return found > 0 ? 0 : -1;
    int failed = same_count(l, length[0], l->name[0], err);
    if (!failed && !l->length && !(l->length = malloc((size_t)length[0] * sizeof *l->length)))
        failed = err_no_memory(err, l->name[0], "its lengths");
    for (int64_t b = 0; b < length[0] && !failed; b++) {
        const int64_t most = l->begin ? l->begin[b + 1] - l->begin[b] : VALUE_LENGTH_MAX;
        if (values[b] < 0 || values[b] > most)
            failed = err_set(err, ERR_INPUT, l->name[0], "has %lld at %lld; expected a length up to %lld",
                             (long long)values[b], (long long)b, (long long)most);
        else
            l->length[b] = (int32_t)values[b];
    }
    l->n = (int)length[0];
    free(values);
    return failed;
}

static int read_pages(const struct scenario *s, struct lists *l, struct err *err)
{
    int64_t length[2];
    const int found =
        read_list(s, INPUT_PAGE_TABLE, 2, "[batch, pages of a sequence]", length, &l->page, l->name[1], err);
    if (found != 0)
        return found > 0 ? 0 : -1;
    if (same_count(l, length[0], l->name[1], err) != 0)
        return -1;
    l->n = (int)length[0];
    l->n_pages = (int)length[1];
    if (l->begin)
        return err_set(err, ERR_INPUT, l->name[1],
                       "expected `inputs.kv_lens` beside it, or `shape.kv_lens`, found "
                       "`inputs.cu_seqlens_k`: keys lie in pages or behind each other");
    return 0;
}

static int read_lists(const struct scenario *s, int side, struct lists *out, struct err *err)
{
    *out = (struct lists){0};
    if (read_begins(s, side == OF_Q ? INPUT_CU_SEQLENS_Q : INPUT_CU_SEQLENS_K, out, err) != 0 ||
        read_lengths(s, side == OF_Q ? INPUT_Q_LENS : INPUT_KV_LENS, out, err) != 0 ||
        (side == OF_KEYS && read_pages(s, out, err) != 0)) {
        lists_free(out);
        return -1;
    }
    return 0;
}

/* Lengths of the sequences that are taken become the scenario's. */
static int keep_lengths(struct scenario *s, int side, const int32_t *length, int n)
{
    const struct cut taken = s->inputs.batches, rows = side ? s->inputs.kv_rows : s->inputs.q_rows;
    const int first = taken.end ? taken.first : 0, end = taken.end ? taken.end : n;
    if (end > n || first >= end)
        return 0;
    s->lens[side] = malloc((size_t)(end - first) * sizeof *s->lens[side]);
    if (!s->lens[side])
        return -1;
    s->n_lens[side] = end - first;
    for (int b = first; b < end; b++) {
        int left = length[b];
        if (rows.end)
            left = (left < rows.end ? left : rows.end) - rows.first;
        s->lens[side][b - first] = left > 0 ? left : 0;
    }
    return 0;
}

static bool states_lengths(const struct scenario *s, int side)
{
    return scenario_stated(s, side ? KEY_KV_LENS : KEY_Q_LENS);
}

void scenario_forget_lengths(struct scenario *s)
{
    for (int side = 0; side < SIDES; side++) {
        if (states_lengths(s, side))
            continue;
        free(s->lens[side]);
        s->lens[side] = NULL;
        s->n_lens[side] = 0;
    }
}

int scenario_take_trace_lengths(struct scenario *s, const struct asc_problem *of)
{
    for (int side = 0; side < SIDES; side++) {
        const int32_t *length = side ? of->kv_lens : of->q_lens;
        if (length && !states_lengths(s, side) && keep_lengths(s, side, length, of->batch) != 0)
            return -1;
    }
    return 0;
}

/* Rows behind what a sequence has are of nobody: no stated length reaches there. */
static int check_stated(const struct scenario *s, int side, const struct lists *l, struct err *err)
{
    const int first = s->inputs.batches.end ? s->inputs.batches.first : 0;
    const int skipped = side ? s->inputs.kv_rows.first : s->inputs.q_rows.first;
    for (int b = 0; b < s->n_lens[side] && first + b < l->n; b++)
        if (s->lens[side][b] > 0 && s->lens[side][b] > l->length[first + b] - skipped)
            return err_set(err, ERR_INPUT, l->name[0], "gives sequence %d %d rows; shape.%s has %d of it", first + b,
                           l->length[first + b], side ? "kv_lens" : "q_lens", s->lens[side][b]);
    return 0;
}

int scenario_take_lists(struct scenario *s, struct err *err)
{
    for (int side = 0; side < SIDES; side++) {
        struct lists l;
        if (read_lists(s, side, &l, err) != 0)
            return -1;
        const bool taken = l.length && !states_lengths(s, side);
        const int failed = taken && keep_lengths(s, side, l.length, l.n) != 0;
        if (failed)
            err_no_memory(err, l.name[0], "its lengths");
        else if (l.length && (l.begin || l.page) && states_lengths(s, side))
            check_stated(s, side, &l, err);
        else if (l.page && !l.length && !states_lengths(s, side))
            err_set(err, ERR_INPUT, l.name[1],
                    "expected `inputs.kv_lens` or `shape.kv_lens` beside it: how many keys "
                    "of the pages are used");
        lists_free(&l);
        if (failed || err->code != ERR_NONE)
            return -1;
    }
    return 0;
}

/* ---- rows into their places ---- */

/* A tensor of a file whose rows are not those of one sequence: where its rows, heads and elements are. */
struct scattered {
    const struct array *a;
    int row, head;     /* its dimensions; the last one is a row's elements */
    int64_t page_rows; /* of a page, which is dimension 0; 0: there are none */
    int64_t n[2];      /* rows or pages, heads */
};

static int scattered_of(const struct array *a, const struct lists *l, bool heads_first, struct scattered *out,
                        struct err *err)
{
    char shape[160];
    const int dims = l->page ? 4 : 3;
    *out = (struct scattered){.a = a, .row = heads_first && l->page ? 2 : l->page ? 1 : 0};
    out->head = l->page ? 3 - out->row : 1;
    if (a->n_dims != dims)
        return err_set(err, ERR_INPUT, a->name, "has shape %s; expected %s", array_shape(a, shape),
                       !l->page      ? "[rows of all sequences, heads, head_dim], as beside cu_seqlens"
                       : heads_first ? "[pages, kv_heads, page_size, head_dim]"
                                     : "[pages, page_size, kv_heads, head_dim]");
    out->page_rows = l->page ? a->length[out->row] : 0;
    out->n[0] = a->length[0];
    out->n[1] = a->length[out->head];
    if (l->begin && l->begin[l->n] > out->n[0])
        return err_set(err, ERR_INPUT, a->name, "has %lld rows; %s ends at %lld", (long long)out->n[0], l->name[0],
                       (long long)l->begin[l->n]);
    return 0;
}

/* Lengths that the scenario states are those of the sequences that are taken. */
static int64_t rows_of(const struct scenario *s, const struct lists *l, int b)
{
    const int first = s->inputs.batches.end ? s->inputs.batches.first : 0;
    if (l->length)
        return l->length[b];
    return b >= first && b - first < s->n_lens[OF_KEYS] ? s->lens[OF_KEYS][b - first] : 0;
}

/* Where row `row` of sequence b begins. -1: the table names no page of the file. */
static int64_t row_at(const struct lists *l, const struct scattered *t, int b, int64_t row, struct err *err)
{
    if (!l->page)
        return (l->begin[b] + row) * t->a->stride[0];
    const int64_t at = row / t->page_rows, page = at < l->n_pages ? l->page[(int64_t)b * l->n_pages + at] : -1;
    if (at >= l->n_pages)
        return err_set(err, ERR_INPUT, l->name[1], "has %d pages for a sequence; %lld keys of sequence %d need more",
                       l->n_pages, (long long)row + 1, b);
    if (page < 0 || page >= t->n[0])
        return err_set(err, ERR_INPUT, l->name[1],
                       "has page %lld at [%d, %lld], where key %lld lies by pages of %lld rows; %s has pages 0 to %lld",
                       (long long)page, b, (long long)at, (long long)row, (long long)t->page_rows, t->a->name,
                       (long long)t->n[0] - 1);
    return page * t->a->stride[0] + row % t->page_rows * t->a->stride[t->row];
}

static void copy_row(const struct array *a, int64_t from, unsigned char *to)
{
    const int last = a->n_dims - 1;
    const unsigned char *data = a->data;
    if (a->stride[last] == 1) {
        memcpy(to, data + (size_t)from * a->item, (size_t)a->length[last] * a->item);
        return;
    }
    for (int64_t i = 0; i < a->length[last]; i++)
        memcpy(to + (size_t)i * a->item, data + (size_t)(from + i * a->stride[last]) * a->item, a->item);
}

static int gather(const struct scenario *s, const struct lists *l, const struct scattered *t, bool values,
                  struct array *out, struct err *err)
{
    const int64_t cols = out->length[out->n_dims - 1], heads = t->n[1];
    int64_t longest = 1;
    for (int b = 0; b < l->n; b++)
        longest = rows_of(s, l, b) > longest ? rows_of(s, l, b) : longest;
    const size_t rows = l->n > 0 ? (size_t)l->n * (size_t)longest : 1;
    unsigned char *to = values ? calloc(rows, (size_t)(heads * cols) * out->item) : NULL;
    if (values && !to)
        return err_no_memory(err, out->name, "its rows, one sequence behind the other");
    for (int b = 0; b < l->n; b++)
        for (int64_t row = 0; row < rows_of(s, l, b); row++) {
            const int64_t from = row_at(l, t, b, row, err);
            if (from < 0) {
                free(to);
                return -1;
            }
            for (int64_t h = 0; values && h < heads; h++)
                copy_row(out, from + h * out->stride[t->head],
                         to + (size_t)(((b * longest + row) * heads + h) * cols) * out->item);
        }
    const int64_t length[4] = {l->n, longest, heads, cols};
    out->n_dims = 4;
    for (int64_t i = 3, stride = 1; i >= 0; stride *= length[i--]) {
        out->length[i] = length[i];
        out->stride[i] = stride;
    }
    if (values) {
        free(out->copy);
        out->data = out->copy = to;
    }
    return 0;
}

int scenario_gather(const struct scenario *s, enum input_id i, bool heads_first, bool values, struct array *a,
                    bool *gathered, struct err *err)
{
    struct lists l;
    struct scattered t;
    *gathered = false;
    if (s->inputs.from_trace && !scenario_stated(s, key_of(i)))
        return 0;
    if (read_lists(s, i == INPUT_Q ? OF_Q : OF_KEYS, &l, err) != 0)
        return -1;
    *gathered = l.begin || l.page;
    const int failed =
        *gathered && (scattered_of(a, &l, heads_first, &t, err) != 0 || gather(s, &l, &t, values, a, err) != 0);
    lists_free(&l);
    return failed ? -1 : 0;
}

int scenario_page_rows(const struct scenario *s, const struct array *k, bool heads_first)
{
    char spec[ARRAY_NAME_BYTES];
    return scenario_input(s, INPUT_PAGE_TABLE, spec) && k->n_dims == 4 ? (int)k->length[heads_first ? 2 : 1] : 0;
}
