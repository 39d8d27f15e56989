#include "tests/unit/lib/hand_made.h"

#include "engine/session/show_run.h"
#include "engine/session/work.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

const struct hand_made hand_made_usual = {
    .batch = 1, .heads = 8, .q_len = 512, .kv_len = 512, .head_dim = 16, .tile = 64, .mistake = HAND_S_SCALED_TWICE};

static const char source[] = "#include \"attnscope.h\"\n"
                             "// scalar dot products, streaming softmax\n"
                             "__global__ void attention(asc_problem p)\n"
                             "{\n"
                             "    for (int kt = 0; kt < tiles; kt++) {\n"
                             "        float s0 = 0, s1 = 0;\n"
                             "        for (int d = 0; d < D; d++) {\n"
                             "\t\tfloat qv = __half2float(sQ[row * LD + d]);\n"
                             "            s0 += qv * __half2float(sK[lane * LD + d]);\n"
                             "            s1 += qv * __half2float(sK[(lane + 32) * LD + d]);\n"
                             "        }\n"
                             "        s0 *= p.scale * p.scale; s1 *= p.scale * p.scale;\n"
                             "        ASC_RECORD(s, kt, i, 2, row, lane + 32 * i, s01[i]);\n"
                             "        float mo = sm[row], mn = fmaxf(mo, warp_max(fmaxf(s0, s1)));\n"
                             "    }\n"
                             "}\n";

/* A trace that is being written: its bytes, mapped to be written, and the next stamp. */
struct writer {
    const struct trace *t;
    const struct hand_made *made;
    unsigned char *bytes;
    uint64_t stamp;
    float *k, *v, *p; /* of a head, of a kv tile, of a row */
};

static void give_up(const char *what)
{
    fprintf(stderr, "a run by hand: %s\n", what);
    abort();
}

static int tiles(int length, int tile)
{
    return (length + tile - 1) / tile;
}

static struct asc_problem problem_of(const struct hand_made *made)
{
    return (struct asc_problem){.batch = made->batch,
                                .heads = made->heads,
                                .kv_heads = made->heads,
                                .q_len = made->q_len,
                                .kv_len = made->kv_len,
                                .head_dim = made->head_dim,
                                .head_dim_v = made->head_dim,
                                .dtype = DTYPE_F16,
                                .k_dtype = DTYPE_F16,
                                .v_dtype = DTYPE_F16,
                                .causal = made->causal ? ASC_CAUSAL_TOP_LEFT : 0,
                                .window_left = -1,
                                .window_right = -1,
                                .scale = 1 / sqrtf((float)made->head_dim)};
}

/* Sums of uniform numbers, near to normal ones; the same on every machine. */
static void fill(uint16_t *out, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        double sum = -2;
        for (int k = 0; k < 4; k++) {
            seed = seed * 1664525u + 1013904223u;
            sum += (double)(seed >> 8) / (1 << 24);
        }
        dtype_store(DTYPE_F16, out, i, sum * sqrt(3));
    }
}

static void describe(struct trace *t)
{
    struct trace_info *info = &t->info;
    snprintf(info->kernel, sizeof info->kernel, "v2b_scalar");
    snprintf(info->source_name, sizeof info->source_name, "kernels/v2b_scalar.cu");
    snprintf(info->scenario_name, sizeof info->scenario_name, "double-scale");
    info->backend = BACKEND_CPU;
    info->status = RUN_COMPLETE;
    info->source = strdup(source);
    info->workers = 2;
    info->seconds = 0.41;
    free(info->sites);
    info->sites = calloc(1, sizeof *info->sites);
    if (!info->source || !info->sites)
        give_up("no memory");
    info->n_sites = 1;
    info->sites[0] = (struct trace_site){.channel = asc_s, .line = 13, .file = "kernels/v2b_scalar.cu"};
}

struct trace *hand_made_empty(const struct hand_made *made)
{
    const struct asc_problem p = problem_of(made);
    const struct asc_plan plan = {.br = made->tile, .bc = made->tile, .threads = 128};
    const struct asc_conventions conventions = {.s_unit = ASC_UNIT_SCALED, .m_unit = ASC_UNIT_SCALED};
    struct layout_types types = {.o = DTYPE_F16, .writers = made->writers};
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        types.channel[ch] = DTYPE_F32;
    types.channel[asc_q] = types.channel[asc_k] = types.channel[asc_v] = types.channel[asc_o] = DTYPE_F16;
    const int q_tiles = tiles(p.q_len, plan.br), all = p.batch * p.heads * q_tiles;
    const int n_slots = made->n_slots ? made->n_slots : all;
    const size_t heads = (size_t)p.batch * (size_t)p.heads, longest = (size_t)(p.q_len > p.kv_len ? p.q_len : p.kv_len);
    const size_t n = heads * longest * (size_t)p.head_dim;
    int32_t(*slots)[3] = calloc((size_t)n_slots, sizeof *slots);
    uint16_t *inputs = malloc(3 * n * sizeof *inputs);
    struct trace *t = NULL;
    struct err err = {0};
    if (!slots || !inputs)
        give_up("no memory");
    for (int i = 0; i < n_slots; i++) {
        slots[i][0] = i / q_tiles / p.heads;
        slots[i][1] = i / q_tiles % p.heads;
        slots[i][2] = i % q_tiles;
    }
    for (uint32_t i = 0; i < 3; i++)
        fill(inputs + i * n, n, i + 1);
    if (trace_create(&p, &plan, &conventions, &types, (const int32_t(*)[3])slots, n_slots, inputs, inputs + n,
                     inputs + 2 * n, &t, &err) != 0)
        give_up(err.message);
    free(slots);
    free(inputs);
    describe(t);
    return t;
}

static void *writable(struct writer *w, const void *at)
{
    return w->bytes + ((const unsigned char *)at - w->t->bytes);
}

static struct tile tile_of(struct writer *w, enum asc_channel ch, int slot, int kv)
{
    struct tile tile = trace_tile(w->t, ch, slot, kv);
    uint64_t *stamps = writable(w, trace_stamps(w->t, ch, slot, kv));
    for (int warp = 0; warp < w->t->layout.warps; warp++)
        stamps[warp] = ++w->stamp;
    const struct asc_stamp_map *map = &w->t->layout.stamp[ch];
    uint32_t *writers = (uint32_t *)(void *)(w->bytes + map->writers + (uint64_t)slot * map->writers_slot_stride +
                                             (uint64_t)kv * map->writers_kv_stride);
    for (uint32_t i = 0; map->writers && i < (uint32_t)(tile.rows * tile.cols); i++) {
        writers[0] = 2 + 1;
        writers[ASC_WRITER_HEAD + i] = (i / 128 + 1) << ASC_WRITER_NUMBER | 13u << ASC_WRITER_LINE | i % 128;
    }
    tile.data = writable(w, tile.data);
    return tile;
}

static void put(struct tile tile, int row, int col, double value)
{
    dtype_store(tile.dtype, (void *)(uintptr_t)tile.data, (size_t)row * (size_t)tile.cols + (size_t)col, value);
}

/* Rows of an input of one head; past the last one zeros. */
static void load(const struct trace *t, char which, size_t head, int length, int first, int rows, float *out)
{
    enum dtype type;
    const void *all = trace_tensor(t, which, &type);
    const size_t D = (size_t)t->problem.head_dim;
    for (int r = 0; r < rows; r++)
        for (size_t d = 0; d < D; d++)
            out[(size_t)r * D + d] =
                first + r < length ? (float)dtype_load(type, all, (head * (size_t)length + (size_t)(first + r)) * D + d)
                                   : 0;
}

static void put_rows(struct tile tile, const float *from, int rows, int cols)
{
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c++)
            put(tile, r, c, (double)from[(size_t)r * (size_t)cols + (size_t)c]);
}

struct row {
    float m, l;
};

/* One row through one kv tile: S, m, alpha, P, l, U. at: the tiles of these, by channel. */
static void write_row(struct writer *w, const struct tile *at, const float *q, int r, int kv, int q_tile,
                      struct row *row, float *u)
{
    const struct asc_problem *p = &w->t->problem;
    const int D = p->head_dim, bc = w->t->plan.bc, left = p->kv_len - kv * bc;
    const int seen = p->causal ? q_tile * w->t->plan.br + r + 1 - kv * bc : bc, first = left < seen ? left : seen;
    const int keys = first < 0 ? 0 : first < bc ? first : bc;
    const bool twice = w->made->mistake == HAND_S_SCALED_TWICE, healed = w->made->healed;
    float m = row->m, sum = 0;
    for (int c = 0; c < bc; c++) {
        float dot = 0;
        for (int d = 0; d < D; d++)
            dot += q[d] * w->k[c * D + d];
        const float right = dot * p->scale, s = c >= keys ? -INFINITY : twice ? right * p->scale : right;
        put(at[asc_s], r, c, (double)s);
        w->p[c] = healed && c < keys ? right : s;
        m = fmaxf(m, w->p[c]);
    }
    const float alpha = isinf(row->m) ? 0 : expf(row->m - m);
    for (int c = 0; c < bc; c++) {
        w->p[c] = expf(w->p[c] - m);
        sum += w->p[c];
        put(at[asc_p], r, c, (double)w->p[c]);
    }
    row->m = m;
    row->l = row->l * alpha + sum;
    put(at[asc_m], r, 0, (double)m);
    put(at[asc_alpha], r, 0, (double)alpha);
    put(at[asc_l], r, 0, (double)row->l);
    const float kept = w->made->mistake == HAND_U_NOT_RESCALED && kv > 0 ? 1 : alpha;
    for (int d = 0; d < D; d++)
        u[d] *= kept;
    for (int c = 0; c < keys; c++)
        for (int d = 0; d < D; d++)
            u[d] += w->p[c] * w->v[c * D + d];
    for (int d = 0; d < D; d++)
        put(at[asc_u], r, d, (double)u[d]);
}

/* What a q tile leaves: O and LSE, recorded and in the output. */
static void write_end(struct writer *w, int slot, size_t head, const struct row *row, const float *u, int rows)
{
    const struct trace *t = w->t;
    const int32_t *place = trace_slot_place(t, slot);
    const size_t D = (size_t)t->problem.head_dim, first = head * (size_t)t->problem.q_len;
    const struct tile o = tile_of(w, asc_o, slot, 0), lse = tile_of(w, asc_lse, slot, 0);
    const float factor = w->made->mistake == HAND_O_DOUBLED ? 2 : 1;
    for (int r = 0; r < rows; r++) {
        const size_t at = first + (size_t)(place[2] * t->plan.br + r);
        const double ends = (double)(row[r].m + logf(row[r].l));
        put(lse, r, 0, ends);
        dtype_store(DTYPE_F32, w->bytes + t->layout.lse.offset, at, ends);
        for (size_t d = 0; d < D; d++) {
            const double value = (double)(factor * u[(size_t)r * D + d] / row[r].l);
            put(o, r, (int)d, value);
            dtype_store(t->layout.o.dtype, w->bytes + t->layout.o.offset, at * D + d, value);
        }
    }
}

static void write_slot(struct writer *w, int slot)
{
    const struct trace *t = w->t;
    const struct asc_problem *p = &t->problem;
    const int32_t *place = trace_slot_place(t, slot);
    const int D = p->head_dim, br = t->plan.br, bc = t->plan.bc;
    const int rows = channel_valid_rows(asc_q, p, &t->plan, place[0], place[2], 0);
    const size_t head = (size_t)place[0] * (size_t)p->heads + (size_t)place[1];
    const int visited = w->made->kv_tiles ? w->made->kv_tiles : t->layout.kv_tiles;
    const int last =
        (w->made->ends_slot || w->made->ends_kv) && slot == w->made->ends_slot ? w->made->ends_kv : visited;
    float *q = calloc((size_t)br * (size_t)D, sizeof *q), *u = calloc((size_t)br * (size_t)D, sizeof *u);
    struct row *row = calloc((size_t)br, sizeof *row);
    if (!q || !u || !row)
        give_up("no memory");
    for (int r = 0; r < br; r++)
        row[r].m = -INFINITY;
    load(t, 'q', head, p->q_len, place[2] * br, br, q);
    put_rows(tile_of(w, asc_q, slot, 0), q, br, D);
    for (int kv = 0; kv < last; kv++) {
        struct tile at[ASC_CHANNELS];
        for (int ch = asc_k; ch <= asc_u; ch++)
            at[ch] = tile_of(w, (enum asc_channel)ch, slot, kv);
        load(t, 'k', head, p->kv_len, kv * bc, bc, w->k);
        load(t, 'v', head, p->kv_len, kv * bc, bc, w->v);
        put_rows(at[asc_k], w->k, bc, D);
        put_rows(at[asc_v], w->v, bc, D);
        for (int r = 0; r < rows; r++)
            write_row(w, at, q + (ptrdiff_t)r * D, r, kv, place[2], &row[r], u + (ptrdiff_t)r * D);
    }
    if (last == visited)
        write_end(w, slot, head, row, u, rows);
    free(q);
    free(u);
    free(row);
}

struct trace *hand_made_trace(const struct hand_made *made)
{
    struct trace *t = hand_made_empty(made);
    const size_t tile = (size_t)t->plan.bc * (size_t)t->problem.head_dim;
    struct writer w = {.t = t, .made = made, .k = malloc(tile * 4), .v = malloc(tile * 4)};
    w.p = malloc((size_t)t->plan.bc * 4);
    /* The trace's own mapping is read-only: a kernel's values come from elsewhere. */
    w.bytes = mmap(NULL, t->n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, t->fd, 0);
    if (!w.k || !w.v || !w.p || w.bytes == MAP_FAILED)
        give_up("no memory");
    const int ends = made->ends_slot || made->ends_kv;
    for (int slot = 0; slot < t->layout.n_slots && (!ends || slot <= made->ends_slot); slot++)
        write_slot(&w, slot);
    munmap(w.bytes, t->n_bytes);
    free(w.k);
    free(w.v);
    free(w.p);
    return t;
}

static void overwrite(const struct trace *t, const void *at, const void *bytes, size_t n)
{
    const off_t offset = (const unsigned char *)at - t->bytes;
    if (pwrite(t->fd, bytes, n, offset) != (ssize_t)n)
        give_up("a trace cannot be written");
}

void hand_made_store(const struct trace *t, enum asc_channel ch, int slot, int kv, int row, int col, double value)
{
    const struct tile tile = trace_tile(t, ch, slot, kv);
    const size_t i = (size_t)row * (size_t)tile.cols + (size_t)col, size = dtype_bytes(tile.dtype);
    unsigned char bytes[8];
    dtype_store(tile.dtype, bytes, 0, value);
    overwrite(t, (const unsigned char *)tile.data + i * size, bytes, size);
}

void hand_made_unwrite(const struct trace *t, enum asc_channel ch, int slot, int kv)
{
    const struct tile tile = trace_tile(t, ch, slot, kv);
    const size_t n = (size_t)tile.rows * (size_t)tile.cols * dtype_bytes(tile.dtype);
    uint16_t *unwritten = malloc(n);
    if (!unwritten)
        give_up("no memory");
    for (size_t i = 0; i < n / 2; i++)
        unwritten[i] = UNWRITTEN_16;
    overwrite(t, tile.data, unwritten, n);
    memset(unwritten, 0, n);
    overwrite(t, trace_stamps(t, ch, slot, kv), unwritten, (size_t)t->layout.warps * sizeof(uint64_t));
    free(unwritten);
}

void hand_made_event(struct trace *t, enum event_kind kind, const char *text, const char *file, int line)
{
    struct trace_info *info = &t->info;
    struct trace_event *events = realloc(info->events, (info->n_events + 1) * sizeof *events);
    if (!events)
        give_up("no memory");
    info->events = events;
    struct trace_event *e = &events[info->n_events++];
    trace_event_init(e);
    e->line = line;
    e->kind = kind;
    snprintf(e->text, sizeof e->text, "%s", text);
    snprintf(e->file, sizeof e->file, "%s", file);
}

void hand_made_counter(const struct trace *t, const struct layout_part *part, enum asc_channel ch, uint64_t n)
{
    overwrite(t, t->bytes + part->offset + ch * sizeof n, &n, sizeof n);
}

struct session *hand_made_session(const struct hand_made *made)
{
    struct scenario scenario;
    struct session *s;
    struct err err = {0};
    scenario_init(&scenario);
    scenario.problem = problem_of(made);
    scenario.capture.mem_bytes = (uint64_t)2 << 30;
    snprintf(scenario.kernel, sizeof scenario.kernel, "kernels/v2b_scalar.cu");
    snprintf(scenario.patch, sizeof scenario.patch, "double-scale.patch");
    if (session_open_adhoc(&scenario, &s, &err) != 0)
        give_up(err.message);
    session_make_title(s);
    return s;
}

void hand_made_judge(struct session *s, struct trace *t)
{
    runs_make_room(&s->runs, s->subject.scenario.capture.mem_bytes);
    if (work_judge(s->work, t) != 0 || session_finish(s, 0) != 0)
        give_up("it cannot be judged");
}

struct session *hand_made_run(const struct hand_made *made)
{
    struct session *s = hand_made_session(made);
    hand_made_judge(s, hand_made_trace(made));
    return s;
}

void hand_made_go(struct session *s, struct cursor to)
{
    if (!session_go_cursor(s, &to))
        give_up("no such place");
}
