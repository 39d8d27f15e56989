#include "engine/trace/trace_file.h"

#include "engine/base/file_map.h"
#include "engine/trace/live.h"
#include "engine/trace/rope.h"
#include "engine/trace/trace_store.h"
#include "engine/trace/writers.h"

#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

const char *const run_status_names[] = {"", "complete", "crashed", "hung", "cancelled", "refused", NULL};

void trace_event_init(struct trace_event *event)
{
    *event = (struct trace_event){.batch = -1, .head = -1, .q_tile = -1, .kv_tile = -1, .times = 1};
}

void trace_free(struct trace *t)
{
    if (!t)
        return;
    void *mapping = (void *)(uintptr_t)t->bytes;
    const bool quiet = t->info.status == RUN_OPEN || trace_complete(t); /* nobody writes any more */
    if (t->fd >= 0 && t->store && quiet && mapping) {
        trace_store_give(t->store, &(struct trace_memory){t->fd, mapping, t->n_bytes});
    } else {
        if (!t->live)
            file_map_close(mapping);
        else if (mapping)
            munmap(mapping, t->n_bytes);
        if (t->fd >= 0)
            close(t->fd);
    }
    trace_store_free(t->store);
    free((void *)(uintptr_t)t->slot_index);
    free((void *)(uintptr_t)t->slots);
    free(t->score_mod);
    free(t->dealt);
    free(t->turned[0]);
    free(t->turned[1]);
    free((void *)(uintptr_t)t->problem.q_lens);
    free((void *)(uintptr_t)t->problem.kv_lens);
    free((void *)(uintptr_t)t->problem.page_table);
    trace_free(t->fed);
    trace_writers_free(t->writers);
    free(t->info.source);
    for (size_t i = 0; i < t->info.n_sources; i++)
        free(t->info.sources[i].text);
    free(t->info.sources);
    free(t->info.scenario);
    free(t->info.settings);
    free(t->info.sites);
    free(t->info.events);
    launches_free(&t->info.launches);
    free(t);
}

bool trace_complete(const struct trace *t)
{
    return t->info.status == RUN_COMPLETE;
}

/* Whether the kernel stored an element, or a probe came by one. Where probes of it were not recorded, the line alone
   says that the kernel has an LSE. */
static bool lse_seen(const struct trace *t)
{
    enum dtype type = DTYPE_F32;
    const void *lse = trace_tensor(t, 'L', &type);
    const size_t n = (size_t)t->problem.batch * (size_t)t->problem.heads * (size_t)t->problem.q_len;
    for (size_t i = 0; i < n; i++)
        if (!dtype_is_unwritten(type, lse, i))
            return true;
    if (t->layout.channel[asc_lse].dtype < 0)
        return trace_site(t, asc_lse) != NULL;
    for (int slot = 0; slot < t->layout.n_slots; slot++)
        if (trace_first_stamp(t, asc_lse, slot, 0))
            return true;
    return false;
}

enum trace_lse trace_lse(const struct trace *t)
{
    if (!trace_complete(t))
        return TRACE_LSE_WRITTEN;
    /* Asked for every slot, by several threads, which all find the same: noted, the run being over. */
    int *note = &((struct trace *)(uintptr_t)t)->lse_found;
    int found = __atomic_load_n(note, __ATOMIC_RELAXED);
    if (!found) {
        found = lse_seen(t) ? TRACE_LSE_WRITTEN : t->conventions.no_lse ? TRACE_LSE_DECLARED : TRACE_LSE_UNDECLARED;
        __atomic_store_n(note, found, __ATOMIC_RELAXED);
    }
    return (enum trace_lse)found;
}

bool trace_has(const struct trace *t, enum asc_channel ch)
{
    if (ch == asc_lse && trace_lse(t) != TRACE_LSE_WRITTEN)
        return false;
    return t->layout.channel[ch].dtype >= 0 || ((ch == asc_o || ch == asc_lse) && trace_complete(t));
}

/* Whether this tile of the channel exists in the problem and the slot is recorded. */
static bool in_range(const struct trace *t, enum asc_channel ch, int slot, int kv)
{
    return slot >= 0 && slot < t->layout.n_slots && (!channel_per_kv(ch) || (kv >= 0 && kv < t->layout.kv_tiles));
}

struct tile trace_tile(const struct trace *t, enum asc_channel ch, int slot, int kv)
{
    struct tile tile = {0};
    if (!in_range(t, ch, slot, kv))
        return tile;
    if (!channel_per_kv(ch))
        kv = 0;
    tile.rows = channel_rows(ch, &t->plan);
    tile.cols = channel_cols(ch, &t->plan, &t->problem);
    const int32_t *place = trace_slot_place(t, slot);
    tile.valid_rows = channel_valid_rows(ch, &t->problem, &t->plan, place[0], place[2], kv);
    tile.valid_cols = channel_valid_cols(ch, &t->problem, &t->plan, place[0], kv);
    const struct asc_channel_map *map = &t->layout.channel[ch];
    if (map->dtype < 0)
        return tile;
    tile.dtype = (enum dtype)map->dtype;
    tile.data = t->bytes + map->offset + (uint64_t)slot * map->slot_stride + (uint64_t)kv * map->kv_stride;
    return tile;
}

static int tiles_of(int rows, int tile)
{
    return rows > 0 ? (rows - 1) / tile + 1 : 0;
}

int trace_q_tiles(const struct trace *t, int batch)
{
    return tiles_of(asc_q_len(&t->problem, batch), t->plan.br);
}

int trace_kv_tiles(const struct trace *t, int batch)
{
    return tiles_of(asc_kv_len(&t->problem, batch), t->plan.bc);
}

int64_t trace_places(const struct trace *t)
{
    int64_t n = 0;
    for (int b = 0; b < t->problem.batch; b++)
        n += (int64_t)t->problem.heads * trace_q_tiles(t, b);
    return n;
}

struct tile trace_fed_tile(const struct trace *t, enum asc_channel ch, int slot, int kv)
{
    if (!t->fed || !(t->fed_channels & 1u << ch))
        return (struct tile){0};
    return trace_tile(t->fed, ch, slot, kv);
}

const void *trace_tensor(const struct trace *t, char which, enum dtype *dtype)
{
    const struct layout *l = &t->layout;
    const struct layout_part *part = which == 'q'   ? &l->q
                                     : which == 'k' ? &l->k
                                     : which == 'v' ? &l->v
                                     : which == 'o' ? &l->o
                                     : which == 'L' ? &l->lse
                                     : which == 's' ? &l->sink
                                     : which == 'a' ? &l->alibi
                                     : which == 'b' ? &l->bias
                                     : which == 'm' ? &l->mask
                                     : which == 'd' ? &l->keep
                                                    : NULL;
    if (!part || !part->bytes)
        return NULL;
    *dtype = (enum dtype)part->dtype;
    return t->bytes + part->offset;
}

const float *trace_turned(const struct trace *t, char which)
{
    static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
    float **turned = &((struct trace *)(uintptr_t)t)->turned[which == 'k'];
    enum dtype type = DTYPE_F32;
    const void *from = trace_tensor(t, which, &type);
    pthread_mutex_lock(&making); /* several threads ask, once for each slot */
    if (!*turned)
        *turned = rope_tensor(&t->problem, which == 'q', (int)type, from);
    const float *made = *turned;
    pthread_mutex_unlock(&making);
    return made;
}

const float *trace_scales(const struct trace *t, char which)
{
    const struct layout *l = &t->layout;
    const struct layout_part *part = which == 'q' ? &l->q_scale : which == 'k' ? &l->k_scale : &l->v_scale;
    return part->bytes ? (const float *)(const void *)(t->bytes + part->offset) : NULL;
}

const void *trace_given(const struct trace *t, char which, enum dtype *dtype)
{
    const struct layout *l = &t->layout;
    const struct layout_part *part = which == 'q' ? &l->q_given : which == 'k' ? &l->k_given : &l->v_given;
    if (!part->bytes)
        return trace_tensor(t, which, dtype);
    *dtype = DTYPE_F16;
    return dtype_is_unwritten(DTYPE_F16, t->bytes + part->offset, 0) ? NULL : t->bytes + part->offset;
}

const uint64_t *trace_stamps(const struct trace *t, enum asc_channel ch, int slot, int kv)
{
    if (t->layout.channel[ch].dtype < 0 || !in_range(t, ch, slot, kv))
        return NULL;
    if (!channel_per_kv(ch))
        kv = 0;
    const struct asc_stamp_map *map = &t->layout.stamp[ch];
    return (const uint64_t *)(const void *)(t->bytes + map->offset + (uint64_t)slot * map->slot_stride +
                                            (uint64_t)kv * map->kv_stride);
}

uint64_t trace_first_stamp(const struct trace *t, enum asc_channel ch, int slot, int kv)
{
    const uint64_t *stamps = trace_stamps(t, ch, slot, kv);
    uint64_t first = 0;
    for (int w = 0; stamps && w < t->layout.warps; w++)
        if (stamps[w] && (!first || stamps[w] < first))
            first = stamps[w];
    return first;
}

uint64_t trace_last_stamp(const struct trace *t, enum asc_channel ch, int slot, int kv)
{
    const uint64_t *stamps = trace_stamps(t, ch, slot, kv);
    uint64_t last = 0;
    for (int w = 0; stamps && w < t->layout.warps; w++)
        if (stamps[w] > last)
            last = stamps[w];
    return last;
}

int trace_slot(const struct trace *t, int batch, int head, int q_tile)
{
    const struct asc_problem *p = &t->problem;
    if (batch < 0 || batch >= p->batch || head < 0 || head >= p->heads || q_tile < 0 || q_tile >= t->layout.q_tiles)
        return -1;
    return t
        ->slot_index[((size_t)batch * (size_t)p->heads + (size_t)head) * (size_t)t->layout.q_tiles + (size_t)q_tile];
}

const int32_t *trace_slot_place(const struct trace *t, int slot)
{
    return t->slots + (size_t)slot * 3;
}

size_t trace_states_at(const struct trace *t, const int32_t place[3])
{
    const size_t heads = (size_t)t->problem.heads, q_tiles = (size_t)t->layout.q_tiles;
    const size_t row = ((size_t)place[0] * heads + (size_t)place[1]) * q_tiles + (size_t)place[2];
    return row * ((size_t)t->layout.kv_tiles + 1);
}

const int32_t *trace_states(const struct trace *t, const int32_t place[3])
{
    const struct layout *l = &t->layout;
    const int32_t *states = (const int32_t *)(const void *)(t->bytes + l->states.offset);
    if (t->dealt)
        return t->dealt->states + trace_states_at(t, place);
    return t->plan.kv_deal == ASC_DEAL_MAP && l->states.bytes ? states + trace_states_at(t, place) : NULL;
}

enum asc_kv_deal trace_deal(const struct trace *t)
{
    return t->dealt ? ASC_DEAL_MAP : (enum asc_kv_deal)t->plan.kv_deal;
}

int32_t trace_splits(const struct trace *t)
{
    return t->dealt ? t->dealt->splits : t->plan.kv_splits;
}

int trace_state(const struct trace *t, int slot, int kv)
{
    const int32_t *place = trace_slot_place(t, slot);
    const struct asc_plan plan = {.kv_splits = trace_splits(t), .kv_deal = trace_deal(t)};
    return asc_state_of(&plan, trace_states(t, place), trace_kv_tiles(t, place[0]), kv);
}

bool trace_same_states(const struct trace *a, const struct trace *b)
{
    static const int32_t first[3];
    const int32_t *of_a = trace_states(a, first), *of_b = trace_states(b, first);
    return a->plan.kv_splits == b->plan.kv_splits && a->plan.kv_deal == b->plan.kv_deal &&
           (!of_a || !of_b || memcmp(of_a, of_b, a->layout.states.bytes) == 0);
}

static uint64_t counter(const struct trace *t, const struct layout_part *part, enum asc_channel ch)
{
    return ((const uint64_t *)(const void *)(t->bytes + part->offset))[ch];
}

uint64_t trace_dropped(const struct trace *t, enum asc_channel ch)
{
    return counter(t, &t->layout.dropped, ch);
}

uint64_t trace_mistyped(const struct trace *t, enum asc_channel ch)
{
    return counter(t, &t->layout.mistyped, ch);
}

bool trace_mistyped_words(const struct trace *t, enum asc_channel ch, char out[LOST_WORDS_BYTES])
{
    const uint64_t n = trace_mistyped(t, ch);
    out[0] = '\0';
    if (n)
        snprintf(out, LOST_WORDS_BYTES, "%" PRIu64 " values of %s are not %s, the declared type", n,
                 plan_channel_name(&t->plan, ch), dtype_name(t->layout.channel[ch].dtype));
    return n > 0;
}

bool trace_dropped_words(const struct trace *t, enum asc_channel ch, char out[LOST_WORDS_BYTES])
{
    const uint64_t n = trace_dropped(t, ch);
    /* Its column is the lane: one, unless the kernel says that a row has partial sums in several. */
    const char *why = ch == asc_l && t->plan.l_lanes <= 1 ? " (l_lanes?): lane" : ": column";
    out[0] = '\0';
    if (n)
        snprintf(out, LOST_WORDS_BYTES, "%" PRIu64 " values of %s were not recorded%s, row or kv tile out of range", n,
                 plan_channel_name(&t->plan, ch), why);
    return n > 0;
}

uint64_t trace_unfed(const struct trace *t, enum asc_channel ch)
{
    return t->live ? ((const struct live_header *)(const void *)t->bytes)->unfed[ch] : 0;
}

const char *trace_source(const struct trace *t, const char *file)
{
    if (strcmp(file, t->info.source_name) == 0)
        return t->info.source;
    for (size_t i = 0; i < t->info.n_sources; i++)
        if (strcmp(file, t->info.sources[i].file) == 0)
            return t->info.sources[i].text;
    return NULL;
}

/* Owned; NULL: no text, or too long. */
static char *read_source(const char *path)
{
    FILE *f = fopen(path, "re");
    char *text = f ? malloc(TRACE_SOURCE_MAX + 1) : NULL;
    const size_t n = text ? fread(text, 1, TRACE_SOURCE_MAX + 1, f) : 0;
    const bool failed = !text || ferror(f) || n > TRACE_SOURCE_MAX || memchr(text, '\0', n);
    if (f)
        fclose(f);
    if (failed) {
        free(text);
        return NULL;
    }
    text[n] = '\0';
    char *fit = realloc(text, n + 1);
    return fit ? fit : text;
}

void trace_add_source(struct trace *t, const char *file, const char *path)
{
    struct trace_info *info = &t->info;
    char *text = file[0] && strlen(file) < sizeof info->sources->file && info->n_sources < TRACE_SOURCES_MAX &&
                         !trace_source(t, file)
                     ? read_source(path)
                     : NULL;
    struct trace_source *sources = text ? realloc(info->sources, (info->n_sources + 1) * sizeof *sources) : NULL;
    if (!sources) {
        free(text);
        return;
    }
    info->sources = sources;
    struct trace_source *source = &sources[info->n_sources++];
    memcpy(source->file, file, strlen(file) + 1);
    source->text = text;
}

const struct trace_site *trace_site(const struct trace *t, enum asc_channel ch)
{
    for (size_t i = 0; i < t->info.n_sites; i++)
        if (t->info.sites[i].channel == ch)
            return &t->info.sites[i];
    return NULL;
}

static int copy_part(const int32_t *from, const struct layout_part *part, const int32_t **out)
{
    int32_t *copy = from && part->bytes ? malloc(part->bytes) : NULL;
    *out = copy;
    if (copy)
        memcpy(copy, from, part->bytes);
    return from && part->bytes && !copy ? -1 : 0;
}

static int take_score_mod(struct trace *t, const char *where, struct err *err)
{
    char why[EXPRESSION_WHY_BYTES];
    if (!t->problem.score_mod[0])
        return 0;
    t->score_mod = malloc(sizeof *t->score_mod);
    if (!t->score_mod)
        return err_no_memory(err, where, "the formula of the score");
    if (expression_parse(t->problem.score_mod, true, t->score_mod, why) != 0)
        return err_set(err, ERR_INPUT, where, "score_mod: %s", why);
    return 0;
}

int trace_take_sequences(struct trace *t, const int32_t *q_lens, const int32_t *kv_lens, const int32_t *page_table,
                         const char *where, struct err *err)
{
    const struct layout *l = &t->layout;
    if (copy_part(q_lens, &l->q_lens, &t->problem.q_lens) != 0 ||
        copy_part(kv_lens, &l->kv_lens, &t->problem.kv_lens) != 0 ||
        copy_part(page_table, &l->page_table, &t->problem.page_table) != 0)
        return err_no_memory(err, where, "the lengths of its sequences");
    return problem_check(&t->problem, where, err) != 0 ? -1 : take_score_mod(t, where, err);
}

static const struct {
    const char *name;
    size_t part; /* of struct layout */
} inputs[] = {{"q", offsetof(struct layout, q)},
              {"k", offsetof(struct layout, k)},
              {"v", offsetof(struct layout, v)},
              {"sink", offsetof(struct layout, sink)},
              {"alibi", offsetof(struct layout, alibi)},
              {"bias", offsetof(struct layout, bias)},
              {"mask", offsetof(struct layout, mask)},
              {"keep", offsetof(struct layout, keep)},
              {"q_scale", offsetof(struct layout, q_scale)},
              {"k_scale", offsetof(struct layout, k_scale)},
              {"v_scale", offsetof(struct layout, v_scale)},
              {"q_lens", offsetof(struct layout, q_lens)},
              {"kv_lens", offsetof(struct layout, kv_lens)},
              {"page_table", offsetof(struct layout, page_table)}};

const char *trace_input_name(int i)
{
    return i >= 0 && (size_t)i < sizeof inputs / sizeof *inputs ? inputs[i].name : NULL;
}

void trace_input_hash(const struct trace *t, int i, char out[TRACE_HASH_BYTES])
{
    struct layout_part part;
    memcpy(&part, (const char *)&t->layout + inputs[i].part, sizeof part);
    out[0] = '\0';
    if (part.bytes)
        snprintf(out, TRACE_HASH_BYTES, "%016" PRIx64, (uint64_t)XXH3_64bits(t->bytes + part.offset, part.bytes));
}
