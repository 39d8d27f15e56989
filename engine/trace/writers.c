#include "engine/trace/writers.h"

#include "engine/base/path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* The line is kept mod 1024: it is that of a probe of the channel, if it is of one alone. */
static const struct trace_site *site_of(const struct trace *t, enum asc_channel ch, uint32_t line)
{
    const struct trace_site *found = NULL;
    for (size_t i = 0; i < t->info.n_sites; i++) {
        const struct trace_site *site = &t->info.sites[i];
        if (site->channel != ch || ((uint32_t)site->line & 1023u) != line)
            continue;
        if (found && (found->line != site->line || strcmp(found->file, site->file) != 0))
            return NULL;
        found = site;
    }
    return found;
}

/* Head and elements of a tile. */
static const uint32_t *live_tile(const struct trace *t, enum asc_channel ch, int slot, int kv)
{
    const struct asc_stamp_map *map = &t->layout.stamp[ch];
    return (const uint32_t *)(const void *)(t->bytes + map->writers + (uint64_t)slot * map->writers_slot_stride +
                                            (uint64_t)kv * map->writers_kv_stride);
}

bool trace_keeps_writers(const struct trace *t)
{
    return t->writers || layout_keeps_writers(&t->layout);
}

/* As abi.h has them; 0: nobody recorded the element, or it is not known who. */
static uint32_t element_of(const struct trace *t, enum asc_channel ch, int slot, int kv, int row, int col,
                           const uint32_t **head_of)
{
    const struct asc_channel_map *map = &t->layout.channel[ch];
    const uint32_t *head, *elements;
    kv = channel_per_kv(ch) ? kv : 0;
    if (map->dtype < 0 || slot < 0 || slot >= t->layout.n_slots || kv < 0 || kv >= map->n_kv || row < 0 ||
        row >= map->rows || col < 0 || col >= map->cols)
        return 0;
    if (t->writers) {
        const struct channel_writers *w = &t->writers->channel[ch];
        if (!w->n)
            return 0;
        const uint32_t *of = w->of[(size_t)slot * (size_t)map->n_kv + (size_t)kv];
        head = of + 1;
        elements = w->planes + (size_t)of[0] * (size_t)map->rows * (size_t)map->cols;
    } else if (t->layout.stamp[ch].writers) {
        head = live_tile(t, ch, slot, kv);
        elements = head + ASC_WRITER_HEAD;
    } else {
        return 0;
    }
    *head_of = head;
    return head[0] ? elements[(size_t)row * (size_t)map->cols + (size_t)col] : 0;
}

int trace_writer_thread(const struct trace *t, enum asc_channel ch, int slot, int kv, int row, int col)
{
    const uint32_t *head;
    const uint32_t element = element_of(t, ch, slot, kv, row, col, &head);
    return element >> ASC_WRITER_NUMBER ? (int)(element & 1023u) : -1;
}

bool trace_writer(const struct trace *t, enum asc_channel ch, int slot, int kv, int row, int col,
                  struct trace_writer *out)
{
    const uint32_t *head;
    const uint32_t element = element_of(t, ch, slot, kv, row, col, &head), number = element >> ASC_WRITER_NUMBER;
    if (!number)
        return false;
    *out = (struct trace_writer){.blocks = head[0] == ASC_WRITER_BLOCKS,
                                 .block = {head[0] - 1, head[1], head[2]},
                                 .thread = (int)(element & 1023u),
                                 .number = number == ASC_WRITER_SHARED ? WRITER_SHARED
                                           : number == ASC_WRITER_FAR  ? WRITER_FAR
                                                                       : (int)number - 1,
                                 .site = site_of(t, ch, element >> ASC_WRITER_LINE & 1023u)};
    return true;
}

void trace_writer_words(const struct trace_writer *w, char out[WRITER_WORDS_BYTES])
{
    char block[64] = "one of several blocks,", number[40] = "", place[300] = "";
    if (!w->blocks)
        snprintf(block, sizeof block, "block (%u,%u,%u)", w->block[0], w->block[1], w->block[2]);
    if (w->number >= 0)
        snprintf(number, sizeof number, ", value %d", w->number);
    else if (w->number == WRITER_SHARED)
        snprintf(number, sizeof number, ", from shared memory");
    if (w->site)
        snprintf(place, sizeof place, ", %s:%d", path_name(w->site->file), w->site->line);
    snprintf(out, WRITER_WORDS_BYTES, "%s warp %d lane %d (thread %d)%s%s", block, w->thread / 32, w->thread % 32,
             w->thread, number, place);
}

void trace_writers_free(struct trace_writers *w)
{
    for (int ch = 0; w && ch < ASC_ALL_CHANNELS; ch++) {
        free(w->channel[ch].owned);
        free(w->channel[ch].of);
    }
    free(w);
}

/* Planes that are known, by their hashes. */
struct table {
    uint64_t *hash;  /* owned */
    uint32_t *plane; /* owned, + 1; 0: free */
    size_t size;     /* a power of two */
};

static int add_plane(struct channel_writers *w, size_t elements, const uint32_t *from, uint64_t *room)
{
    if (w->n == *room) {
        const uint64_t more = *room ? 2 * *room : 4;
        uint32_t *planes = realloc(w->owned, more * elements * sizeof *planes);
        if (!planes)
            return -1;
        w->planes = w->owned = planes;
        *room = more;
    }
    memcpy(w->owned + w->n++ * elements, from, elements * sizeof *from);
    return 0;
}

static int plane_of(struct channel_writers *w, struct table *table, size_t elements, const uint32_t *from,
                    uint64_t *room, uint32_t *plane)
{
    const uint64_t hash = XXH3_64bits(from, elements * sizeof *from);
    size_t at = (size_t)hash & (table->size - 1);
    for (; table->plane[at]; at = (at + 1) & (table->size - 1)) {
        *plane = table->plane[at] - 1;
        if (table->hash[at] == hash && memcmp(w->owned + (size_t)*plane * elements, from, elements * sizeof *from) == 0)
            return 0;
    }
    *plane = (uint32_t)w->n;
    table->hash[at] = hash;
    table->plane[at] = *plane + 1;
    return add_plane(w, elements, from, room);
}

static int collect_channel(const struct trace *t, enum asc_channel ch, const int *slots, int n,
                           struct channel_writers *w)
{
    const struct asc_channel_map *map = &t->layout.channel[ch];
    const size_t elements = (size_t)map->rows * (size_t)map->cols, tiles = (size_t)n * (size_t)map->n_kv;
    struct table table = {.size = 16};
    uint64_t room = 0;
    while (table.size < 2 * tiles)
        table.size *= 2;
    table.hash = calloc(table.size, sizeof *table.hash);
    table.plane = calloc(table.size, sizeof *table.plane);
    w->of = calloc(tiles ? tiles : 1, sizeof *w->of);
    int failed = !table.hash || !table.plane || !w->of;
    for (size_t i = 0; i < tiles && !failed; i++) {
        const int slot = (int)(i / (size_t)map->n_kv);
        const uint32_t *tile = live_tile(t, ch, slots ? slots[slot] : slot, (int)(i % (size_t)map->n_kv));
        failed = plane_of(w, &table, elements, tile + ASC_WRITER_HEAD, &room, &w->of[i][0]);
        memcpy(w->of[i] + 1, tile, 3 * sizeof *tile);
    }
    free(table.hash);
    free(table.plane);
    return failed;
}

/* Of a saved trace: its own, of fewer slots. */
static int copy_channel(const struct trace *t, enum asc_channel ch, const int *slots, int n, struct channel_writers *w)
{
    const size_t n_kv = (size_t)t->layout.channel[ch].n_kv;
    const struct channel_writers *from = &t->writers->channel[ch];
    *w = (struct channel_writers){.planes = from->planes, .n = from->n, .of = calloc((size_t)n * n_kv, sizeof *w->of)};
    if (!w->of)
        return -1;
    for (int i = 0; i < n; i++)
        memcpy(w->of + (size_t)i * n_kv, from->of + (size_t)(slots ? slots[i] : i) * n_kv, n_kv * sizeof *w->of);
    return 0;
}

int trace_writers_collect(const struct trace *t, const int *slots, int n, struct trace_writers **out, struct err *err)
{
    *out = NULL;
    if (!trace_keeps_writers(t))
        return 0;
    n = slots ? n : t->layout.n_slots;
    struct trace_writers *w = calloc(1, sizeof *w);
    int failed = !w;
    for (int ch = 0; ch < ASC_ALL_CHANNELS && !failed; ch++)
        if (t->writers && t->writers->channel[ch].n)
            failed = copy_channel(t, (enum asc_channel)ch, slots, n, &w->channel[ch]);
        else if (t->layout.stamp[ch].writers)
            failed = collect_channel(t, (enum asc_channel)ch, slots, n, &w->channel[ch]);
    if (!failed) {
        *out = w;
        return 0;
    }
    trace_writers_free(w);
    return err_no_memory(err, "", "who recorded the values");
}

static bool is_table(const struct safetensors_tensor *tensor, const struct trace *t, enum asc_channel ch)
{
    const struct asc_channel_map *map = &t->layout.channel[ch];
    const int n = 2 + channel_per_kv(ch);
    return tensor && strcmp(tensor->dtype, "I32") == 0 && tensor->n_dims == n && tensor->offset % 4 == 0 &&
           tensor->shape[0] == (uint64_t)t->layout.n_slots && tensor->shape[n - 1] == 4 &&
           (n == 2 || tensor->shape[1] == (uint64_t)map->n_kv);
}

static bool is_planes(const struct safetensors_tensor *tensor, const struct asc_channel_map *map)
{
    return tensor && strcmp(tensor->dtype, "I32") == 0 && tensor->n_dims == 3 && tensor->offset % 4 == 0 &&
           tensor->shape[0] > 0 && tensor->shape[1] == (uint64_t)map->rows && tensor->shape[2] == (uint64_t)map->cols;
}

static int read_channel(const struct safetensors *file, const char *path, const struct trace *t, enum asc_channel ch,
                        struct channel_writers *w, struct err *err)
{
    char planes_name[48], of_name[48];
    const char *name = plan_channel_name(&t->plan, ch);
    snprintf(planes_name, sizeof planes_name, "writer.%s", name);
    snprintf(of_name, sizeof of_name, "writer_of.%s", name);
    const struct safetensors_tensor *planes = safetensors_find(file, planes_name),
                                    *of = safetensors_find(file, of_name);
    const struct asc_channel_map *map = &t->layout.channel[ch];
    if (!planes && !of)
        return 0;
    if (!is_planes(planes, map))
        return err_set(err, ERR_INPUT, path, "tensor '%s': expected I32 [1 or more, %d, %d]", planes_name, map->rows,
                       map->cols);
    if (!is_table(of, t, ch))
        return err_set(err, ERR_INPUT, path, "tensor '%s': expected I32, four numbers for each tile of channel.%s",
                       of_name, name);
    const size_t tiles = (size_t)t->layout.n_slots * (size_t)map->n_kv;
    w->of = calloc(tiles ? tiles : 1, sizeof *w->of);
    if (!w->of)
        return err_no_memory(err, path, "who recorded the values");
    /* A copy: what was checked must stay what it is, whatever becomes of the file. */
    memcpy(w->of, t->bytes + of->offset, tiles * sizeof *w->of);
    for (size_t i = 0; i < tiles; i++)
        if (w->of[i][0] >= planes->shape[0])
            return err_set(err, ERR_INPUT, path, "tensor '%s' names tile %u of '%s'; expected less than %llu", of_name,
                           w->of[i][0], planes_name, (unsigned long long)planes->shape[0]);
    w->planes = (const uint32_t *)(const void *)(t->bytes + planes->offset);
    w->n = planes->shape[0];
    return 0;
}

int trace_writers_read(const struct safetensors *file, const char *path, struct trace *t, struct err *err)
{
    struct trace_writers *w = calloc(1, sizeof *w);
    bool any = false;
    if (!w)
        return err_no_memory(err, path, "who recorded the values");
    for (int ch = 0; ch < ASC_ALL_CHANNELS; ch++) {
        if (t->layout.channel[ch].dtype >= 0 &&
            read_channel(file, path, t, (enum asc_channel)ch, &w->channel[ch], err) != 0) {
            trace_writers_free(w);
            return -1;
        }
        any = any || w->channel[ch].n;
    }
    if (any)
        t->writers = w;
    else
        trace_writers_free(w);
    return 0;
}
