#include "engine/verdict/case.h"

#include "engine/base/tensor_core.h"
#include "engine/oracle/codes.h"
#include <stdlib.h>
#include <string.h>

static uint64_t first_visit(const struct trace *t, int slot, int kv)
{
    uint64_t first = 0;
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        if (!channel_per_kv(ch))
            continue;
        uint64_t stamp = trace_first_stamp(t, ch, slot, kv);
        if (stamp && (!first || stamp < first))
            first = stamp;
    }
    return first;
}

bool case_visited(const struct trace *t, int slot, int kv)
{
    return first_visit(t, slot, kv) != 0;
}

/* A visit of a kv tile. Splits run at the same time, each with a clock of its own: they stand one after the other. */
struct visit {
    uint64_t when;
    int state, kv;
};

static int by_visit(const void *a, const void *b)
{
    const struct visit *x = a, *y = b;
    if (x->state != y->state)
        return x->state < y->state ? -1 : 1;
    return x->when != y->when ? (x->when < y->when ? -1 : 1) : x->kv - y->kv;
}

/* m and l behind a kv tile. */
struct states {
    struct tile of[2];
};

static struct states states_of(const struct trace *t, int slot, int kv)
{
    return (struct states){{trace_tile(t, asc_m, slot, kv), trace_tile(t, asc_l, slot, kv)}};
}

static bool is_recorded(const struct states *s, int row)
{
    for (int i = 0; i < 2; i++)
        for (int col = 0; col < s->of[i].cols && s->of[i].data; col++)
            if (dtype_is_unwritten(s->of[i].dtype, s->of[i].data, (size_t)row * (size_t)s->of[i].cols + (size_t)col))
                return false;
    return true;
}

/* 0 m, 1 l of a row that is recorded, its lanes of l added up. */
static double state_of_row(const struct states *s, int i, int row)
{
    double sum = 0;
    for (int col = 0; col < s->of[i].cols && s->of[i].data; col++)
        sum += dtype_load(s->of[i].dtype, s->of[i].data, (size_t)row * (size_t)s->of[i].cols + (size_t)col);
    return sum;
}

bool case_visited_in_part(const struct trace *t, int slot, int kv, int rows[2])
{
    const struct states states = states_of(t, slot, kv);
    const int all = states.of[0].valid_rows;
    int visited = 0;
    for (int row = 0; row < all; row++) {
        if (!is_recorded(&states, row))
            continue;
        rows[0] = visited++ ? rows[0] : row;
        rows[1] = row;
    }
    if (visited && visited <= rows[1] - rows[0])
        rows[0] = rows[1] = -1;
    return visited > 0 && visited < all;
}

/* Whether all rows that say anything say that they visited tile a before tile b: m never falls, and where it stays l
   grows. */
static bool rows_say_before(const struct trace *t, int slot, int a, int b)
{
    const struct states x = states_of(t, slot, a), y = states_of(t, slot, b);
    int before = 0, behind = 0;
    for (int row = 0; row < x.of[0].valid_rows; row++) {
        if (!is_recorded(&x, row) || !is_recorded(&y, row))
            continue;
        const double m[] = {state_of_row(&x, 0, row), state_of_row(&y, 0, row)};
        const double l[] = {state_of_row(&x, 1, row), state_of_row(&y, 1, row)};
        before += m[0] < m[1] || (m[0] == m[1] && l[0] < l[1]);
        behind += m[0] > m[1] || (m[0] == m[1] && l[0] > l[1]);
    }
    return before > 0 && behind == 0;
}

/* Where warps leave tiles out they run apart: one may be at the second tile before another has begun with the first.
   Then the order is what the rows say, where they agree. */
static void order_by_rows(const struct trace *t, int slot, int *order, int n)
{
    enum { APART_MOST = 32 }; /* the work must not grow with the square of n */
    bool apart = false;
    for (int i = 0; i < n && trace_has(t, asc_m) && !apart; i++)
        apart = case_visited_in_part(t, slot, order[i], (int[2]){0});
    for (int i = 1; i < n && apart; i++)
        for (int k = i;
             k > 0 && i - k < APART_MOST && trace_state(t, slot, order[k - 1]) == trace_state(t, slot, order[k]) &&
             rows_say_before(t, slot, order[k], order[k - 1]);
             k--) {
            const int later = order[k - 1];
            order[k - 1] = order[k];
            order[k] = later;
        }
}

int visiting_order(const struct trace *t, int slot, int *order)
{
    int n = 0, sorted = 1;
    struct visit *visits = malloc((size_t)t->layout.kv_tiles * sizeof *visits);
    if (!visits)
        return -1;
    for (int kv = 0; kv < t->layout.kv_tiles; kv++) {
        struct visit v = {first_visit(t, slot, kv), 0, kv};
        if (!v.when)
            continue;
        v.state = trace_state(t, slot, kv);
        sorted = sorted && (n == 0 || by_visit(&visits[n - 1], &v) < 0);
        visits[n++] = v;
    }
    if (!sorted)
        qsort(visits, (size_t)n, sizeof *visits, by_visit);
    for (int i = 0; i < n; i++)
        order[i] = visits[i].kv;
    free(visits);
    order_by_rows(t, slot, order, n);
    return n;
}

enum { ALPHA_SEEN = 1, ALPHA_LEFT_OUT };

/* Whether a probe saw alpha on the first tile of any state; 0: the slot has no tile that was visited. */
static int alpha_first_of(const struct trace *t, int slot, int *order)
{
    const int n = visiting_order(t, slot, order);
    for (int i = 0; i < n; i++) /* a state's tiles stand together */
        if ((i == 0 || trace_state(t, slot, order[i]) != trace_state(t, slot, order[i - 1])) &&
            trace_first_stamp(t, asc_alpha, slot, order[i]))
            return ALPHA_SEEN;
    return n > 0 ? ALPHA_LEFT_OUT : 0;
}

bool case_alpha_left_out(const struct trace *t)
{
    if (!trace_complete(t) || t->layout.channel[asc_alpha].dtype < 0)
        return false;
    int *note = &((struct trace *)(uintptr_t)t)->alpha_found; /* as trace_lse() */
    int found = __atomic_load_n(note, __ATOMIC_RELAXED);
    int *order = found ? NULL : calloc((size_t)t->layout.kv_tiles, sizeof *order);
    for (int slot = 0; slot < t->layout.n_slots && order && found != ALPHA_SEEN; slot++) {
        const int of_slot = alpha_first_of(t, slot, order);
        found = of_slot ? of_slot : found;
    }
    if (order)
        __atomic_store_n(note, found ? found : ALPHA_SEEN, __ATOMIC_RELAXED);
    free(order);
    return found == ALPHA_LEFT_OUT;
}

/* Rows first .. first + rows - 1 of one head of q (which 'q'), or kv head of k or v. */
static struct matrix input_rows(const struct trace *t, char which, int batch, int head, int first, int rows)
{
    const struct problem_tensor tensor = problem_tensor(&t->problem, which == 'q'   ? TENSOR_Q
                                                                     : which == 'k' ? TENSOR_K
                                                                                    : TENSOR_V);
    struct matrix m = {.rows = rows, .cols = tensor.cols, .row_stride = tensor.stride.row};
    const unsigned char *data = trace_tensor(t, which, &m.dtype);
    if (t->problem.rope && which != 'v') {
        data = (const unsigned char *)trace_turned(t, which);
        m.dtype = DTYPE_F32;
    }
    if (data)
        m.data = data + (size_t)problem_tensor_at(&tensor, batch, head, first) * dtype_bytes(m.dtype);
    return m;
}

/* The scales of a head, counted through the batches, that the launch itself makes. NULL: memory ran out. */
static const float *made_scales(const struct trace *t, char which, int head, struct slot_case *out)
{
    const struct asc_problem *p = &t->problem;
    const int heads = which == 'q' ? p->heads : p->kv_heads;
    const int rows = which == 'q' ? asc_q_len(p, head / heads) : asc_kv_len(p, head / heads);
    const int share = t->conventions.quantized_rows;
    const struct matrix m = input_rows(t, which, head / heads, head % heads, 0, rows);
    float *scale = m.data ? malloc((size_t)codes_groups(rows, share) * sizeof *scale) : NULL;
    if (!scale)
        return NULL;
    codes_make_scales(&m, t->conventions.quantized, share, scale);
    out->made[out->n_made++] = scale;
    return scale;
}

/* How rows first .. of a head are coded. -1 where memory ran out. */
static int coding_of(const struct trace *t, char which, int batch, int head, int first, struct slot_case *out,
                     struct coding *coding)
{
    const struct asc_problem *p = &t->problem;
    const int heads = which == 'q' ? p->heads : p->kv_heads, rows = which == 'q' ? p->q_len : p->kv_len;
    const int cols = which == 'v' ? p->head_dim_v : p->head_dim;
    const int own = batch * heads + head;
    const float *given = trace_scales(t, which);
    *coding = (struct coding){.first = first, .tensor = 1};
    if (!given && t->conventions.quantized == ASC_QUANTIZED_GIVEN)
        return 0;
    coding->quantized = given ? ASC_QUANTIZED_GIVEN : t->conventions.quantized;
    coding->rows = given ? p->scale_rows : t->conventions.quantized_rows;
    coding->groups = codes_groups(rows, coding->rows);
    coding->dims = given ? p->scale_dims : 0;
    coding->parts = codes_groups(cols, coding->dims);
    if (given) {
        coding->scale_type = p->scale_type;
        coding->tensor = problem_tensor_scale(p, which == 'q' ? TENSOR_Q : which == 'k' ? TENSOR_K : TENSOR_V);
    }
    coding->scale = given ? given + (ptrdiff_t)own * coding->groups * coding->parts : made_scales(t, which, own, out);
    return coding->scale ? 0 : -1;
}

static struct matrix valid_part(struct tile tile)
{
    return (struct matrix){tile.data, tile.dtype, tile.cols, tile.valid_rows, tile.valid_cols};
}

/* One-byte types have no pattern that says that an element was never written. Of a tile that no probe came to, as its
   stamps say, all rows are the same never-written one. */
static int take_unvisited(const struct trace *t, int slot, struct slot_case *out)
{
    size_t cols = (size_t)t->plan.bc;
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        cols = cols > (size_t)t->layout.channel[ch].cols ? cols : (size_t)t->layout.channel[ch].cols;
    for (int i = 0; i < t->layout.kv_tiles * ASC_CHANNELS; i++) {
        struct matrix *m = &out->captured[i];
        if (!m->data || dtype_has_unwritten(m->dtype) ||
            trace_first_stamp(t, (enum asc_channel)(i % ASC_CHANNELS), slot, i / ASC_CHANNELS))
            continue;
        if (!out->unwritten) {
            out->unwritten = malloc(cols * sizeof *out->unwritten);
            for (size_t k = 0; k < cols && out->unwritten; k++)
                out->unwritten[k] = UNWRITTEN_16;
        }
        if (!out->unwritten)
            return -1;
        m->data = out->unwritten;
        m->dtype = DTYPE_F16;
        m->row_stride = 0;
    }
    return 0;
}

/* What a complete run left in its output: the rows of this q tile of o, or of lse. This is what the kernel's caller
   gets, so it is judged rather than what a probe saw on its way there. */
static struct matrix output_rows(const struct trace *t, enum asc_channel ch, const int32_t place[3])
{
    const struct asc_problem *p = &t->problem;
    const int first = place[2] * t->plan.br;
    struct matrix m = {.rows = channel_valid_rows(asc_q, p, &t->plan, place[0], place[2], 0)};
    int64_t at;
    if (ch == asc_o) {
        const struct problem_tensor o = problem_tensor(p, TENSOR_O);
        m.cols = o.cols;
        m.row_stride = o.stride.row;
        at = problem_tensor_at(&o, place[0], place[1], first);
    } else {
        m.cols = 1;
        m.row_stride = 1;
        at = ((int64_t)place[0] * p->heads + place[1]) * p->q_len + first;
    }
    const unsigned char *data = trace_tensor(t, ch == asc_o ? 'o' : 'L', &m.dtype);
    m.data = data + (size_t)at * dtype_bytes(m.dtype);
    return m;
}

int case_output_differs(const struct trace *t, enum asc_channel ch, int slot)
{
    const struct tile tile = trace_tile(t, ch, slot, 0);
    if (!trace_complete(t) || !tile.data)
        return 0;
    const struct matrix m = output_rows(t, ch, trace_slot_place(t, slot));
    if (m.dtype != tile.dtype)
        return 0;
    const size_t bytes = dtype_bytes(m.dtype);
    int n = 0;
    for (int r = 0; r < tile.valid_rows; r++)
        for (int c = 0; c < tile.valid_cols; c++)
            n += memcmp((const unsigned char *)tile.data + (size_t)(r * tile.cols + c) * bytes,
                        (const unsigned char *)m.data + (size_t)(r * m.row_stride + c) * bytes, bytes) != 0;
    return n;
}

static struct matrix padding_of(struct tile tile)
{
    if (!tile.data || tile.valid_cols >= tile.cols)
        return (struct matrix){0};
    const unsigned char *first = (const unsigned char *)tile.data + (size_t)tile.valid_cols * dtype_bytes(tile.dtype);
    return (struct matrix){first, tile.dtype, tile.cols, tile.valid_rows, tile.cols - tile.valid_cols};
}

static struct matrix padding_rows_of(struct tile tile)
{
    if (!tile.data || tile.valid_rows >= tile.rows)
        return (struct matrix){0};
    const size_t first = (size_t)tile.valid_rows * (size_t)tile.cols * dtype_bytes(tile.dtype);
    return (struct matrix){(const unsigned char *)tile.data + first, tile.dtype, tile.cols, tile.rows - tile.valid_rows,
                           tile.valid_cols};
}

/* All tiles of a slot: captured ones by trace_tile, fed ones by trace_fed_tile. */
static int list_tiles(const struct trace *t, int slot,
                      struct tile (*get)(const struct trace *t, enum asc_channel ch, int slot, int kv),
                      struct matrix **tiles, struct matrix **padding)
{
    const int kv_tiles = t->layout.kv_tiles;
    *tiles = calloc((size_t)kv_tiles * ASC_CHANNELS, sizeof **tiles);
    *padding = calloc((size_t)kv_tiles * 3, sizeof **padding);
    if (!*tiles || !*padding)
        return -1;
    for (int kv = 0; kv < kv_tiles; kv++) {
        (*padding)[kv] = padding_of(get(t, asc_s, slot, kv));
        (*padding)[kv_tiles + kv] = padding_of(get(t, asc_p, slot, kv));
        (*padding)[2 * kv_tiles + kv] = padding_rows_of(get(t, asc_v, slot, kv));
        for (int ch = 0; ch < ASC_CHANNELS; ch++)
            if (kv == 0 || channel_per_kv(ch))
                (*tiles)[kv * ASC_CHANNELS + ch] = valid_part(get(t, ch, slot, kv));
    }
    return 0;
}

/* The bias of the rows of this q tile, as it is for another head and sequence. */
static struct matrix bias_rows(const struct trace *t, const float *bias, int batch, int head, int q_tile, int rows)
{
    const struct asc_strides s = asc_bias_strides(&t->problem);
    return (struct matrix){bias + s.batch * batch + s.head * head + s.row * q_tile * t->plan.br, DTYPE_F32, s.row, rows,
                           t->problem.kv_len};
}

static void take_biases(const struct trace *t, const int32_t place[3], int rows, struct oracle_case *c)
{
    const struct asc_problem *p = &t->problem;
    const int batch = place[0], head = place[1], batches = p->batch, heads = p->heads;
    enum dtype f32;
    const float *bias = trace_tensor(t, 'b', &f32);
    const int others[OTHER_BIASES][2] = {[OTHER_BIAS_PREVIOUS_HEAD] = {batch, (head + heads - 1) % heads},
                                         [OTHER_BIAS_NEXT_HEAD] = {batch, (head + 1) % heads},
                                         [OTHER_BIAS_KV_HEAD] = {batch, head / (heads / p->kv_heads)},
                                         [OTHER_BIAS_KV_HEAD_IN_TURN] = {batch, head % p->kv_heads},
                                         [OTHER_BIAS_FIRST_HEAD] = {batch, 0},
                                         [OTHER_BIAS_FIRST_BATCH] = {0, head},
                                         [OTHER_BIAS_PREVIOUS_BATCH] = {(batch + batches - 1) % batches, head},
                                         [OTHER_BIAS_NEXT_BATCH] = {(batch + 1) % batches, head}};
    if (!bias)
        return;
    c->bias = bias_rows(t, bias, batch, head, place[2], rows);
    for (int i = 0; i < OTHER_BIASES; i++) {
        const struct matrix other = bias_rows(t, bias, others[i][0], others[i][1], place[2], rows);
        if (other.data != c->bias.data)
            c->other_bias[i] = other;
    }
}

/* which: 'm' mask, 'd' which weights dropout keeps. all, at: those of all heads and sequences. */
static struct matrix mask_rows(const struct trace *t, char which, const int32_t place[3], int rows, const uint8_t **all,
                               struct asc_strides *at)
{
    enum dtype u8;
    const struct asc_strides s = *at = which == 'm' ? asc_mask_strides(&t->problem) : asc_keep_strides(&t->problem);
    *all = trace_tensor(t, which, &u8);
    return *all ? (struct matrix){*all + s.batch * place[0] + s.head * place[1] + s.row * place[2] * t->plan.br,
                                  DTYPE_U8, s.row, rows, t->problem.kv_len}
                : (struct matrix){0};
}

/* Sink, slope, bias and mask of this head; splits. */
static void take_terms(const struct trace *t, const int32_t place[3], int rows, struct oracle_case *c)
{
    enum dtype f32;
    const float *sink = trace_tensor(t, 's', &f32), *alibi = trace_tensor(t, 'a', &f32);
    c->kv_splits = trace_splits(t);
    c->kv_deal = trace_deal(t);
    c->states = trace_states(t, place);
    if (sink) {
        c->has_sink = true;
        c->sink = (double)sink[place[1]];
    }
    if (alibi)
        c->alibi_slope = (double)alibi[place[1]];
    take_biases(t, place, rows, c);
    c->mask = mask_rows(t, 'm', place, rows, &c->masks, &c->masks_at);
    c->keep = mask_rows(t, 'd', place, rows, &c->keeps, &c->keeps_at);
    c->dropout = (double)t->problem.dropout;
    c->score_mod = t->score_mod;
    c->mask_formula = t->problem.mask_formula;
    c->score_formula = t->problem.score_mod;
    memcpy(c->place, place, sizeof c->place);
}

uint32_t case_known_cores(const struct trace *t)
{
    return tensor_cores_from_names(*t->info.cores ? t->info.cores : t->info.tensor_core);
}

int slot_case_make(const struct trace *t, int slot, struct slot_case *out)
{
    return place_case_make(t, trace_slot_place(t, slot), NULL, out);
}

int place_case_make(const struct trace *t, const int32_t place[3], const int32_t *types, struct slot_case *out)
{
    const struct asc_problem *p = &t->problem;
    const int kv_tiles = t->layout.kv_tiles, slot = trace_slot(t, place[0], place[1], place[2]);
    memset(out, 0, sizeof *out);
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        out->types[ch] = types ? types[ch] : t->layout.channel[ch].dtype;
    out->order = calloc((size_t)kv_tiles, sizeof *out->order);
    if (!out->order || list_tiles(t, slot, trace_tile, &out->captured, &out->padding) != 0 ||
        take_unvisited(t, slot, out) != 0 ||
        (t->fed && list_tiles(t, slot, trace_fed_tile, &out->fed, &out->fed_padding) != 0)) {
        slot_case_free(out);
        return -1;
    }
    if (trace_complete(t)) {
        out->captured[asc_o] = output_rows(t, asc_o, place);
        out->captured[asc_lse] = trace_has(t, asc_lse) ? output_rows(t, asc_lse, place) : (struct matrix){0};
    }
    struct oracle_case *c = &out->c;
    c->scale = p->scale;
    c->softcap = p->softcap;
    c->causal = p->causal;
    c->window_left = p->window_left;
    c->window_right = p->window_right;
    c->q_len = asc_q_len(p, place[0]);
    c->kv_len = asc_kv_len(p, place[0]);
    c->head_dim = p->head_dim;
    c->head_dim_v = p->head_dim_v;
    c->br = t->plan.br;
    c->bc = t->plan.bc;
    c->q_tile = place[2];
    enum dtype o_dtype = DTYPE_F16;
    trace_tensor(t, 'o', &o_dtype);
    c->o_dtype = (int)o_dtype;
    c->conventions = t->conventions;
    c->cores = tensor_cores_from_names(t->info.cores);
    c->known_cores = case_known_cores(t);
    if (case_alpha_left_out(t))
        c->conventions.alpha_first = ASC_ALPHA_NONE_FIRST;
    int rows = channel_valid_rows(asc_q, p, &t->plan, place[0], place[2], 0);
    c->in_q = input_rows(t, 'q', place[0], place[1], place[2] * t->plan.br, rows);
    const int kv_head = asc_kv_head(p, place[1], t->conventions.kv_head_map);
    c->in_k = input_rows(t, 'k', place[0], kv_head, 0, c->kv_len);
    c->in_v = input_rows(t, 'v', place[0], kv_head, 0, c->kv_len);
    c->new_keys = p->new_keys;
    if (p->rope) {
        c->rope = (struct rope){p->rope, p->rope_dim, (double)p->rope_base};
        c->q_position = asc_query_position(p, place[0], place[2] * t->plan.br);
        c->k_position = p->rope_offset;
        c->turned_type = (enum dtype)p->dtype;
    }
    if (!c->in_q.data || !c->in_k.data ||
        coding_of(t, 'q', place[0], place[1], place[2] * t->plan.br, out, &c->q_codes) != 0 ||
        coding_of(t, 'k', place[0], kv_head, 0, out, &c->k_codes) != 0 ||
        coding_of(t, 'v', place[0], kv_head, 0, out, &c->v_codes) != 0) {
        slot_case_free(out);
        return -1;
    }
    codes_fold(c);
    take_terms(t, place, rows, c);
    c->kv_tiles = kv_tiles;
    c->captured = out->captured;
    c->types = out->types;
    c->s_padding = out->padding;
    c->p_padding = out->padding + kv_tiles;
    c->v_padding = out->padding + (ptrdiff_t)2 * kv_tiles;
    c->fed = out->fed;
    c->fed_s_padding = out->fed_padding;
    c->order = out->order;
    c->n_visited = visiting_order(t, slot, out->order);
    if (c->n_visited < 0) {
        slot_case_free(out);
        return -1;
    }
    return 0;
}

void slot_case_free(struct slot_case *s)
{
    if (!s)
        return;
    free(s->captured);
    free(s->padding);
    free(s->fed);
    free(s->fed_padding);
    free(s->order);
    free(s->unwritten);
    for (int i = 0; i < s->n_made; i++)
        free(s->made[i]);
    memset(s, 0, sizeof *s);
}

/* Row `row` of a matrix, alone. */
static void keep_row(struct matrix *m, int row)
{
    if (m->data)
        m->data = (const unsigned char *)m->data + (size_t)((int64_t)row * m->row_stride) * dtype_bytes(m->dtype);
    m->rows = 1;
}

static void keep_row_of_tiles(struct matrix *tiles, struct matrix *padding, int kv_tiles, int row)
{
    for (int i = 0; tiles && i < kv_tiles * ASC_CHANNELS; i++)
        if (i % ASC_CHANNELS != asc_k && i % ASC_CHANNELS != asc_v)
            keep_row(&tiles[i], row);
    /* Of s and p; that of v has rows of its own. */
    for (int i = 0; padding && i < 2 * kv_tiles; i++)
        keep_row(&padding[i], row);
}

/* Rows do not meet in any formula: a q tile of one row, the right one, is judged as that row is among others. */
void slot_case_row(struct slot_case *c, int row)
{
    struct oracle_case *o = &c->c;
    keep_row_of_tiles(c->captured, c->padding, o->kv_tiles, row);
    keep_row_of_tiles(c->fed, c->fed_padding, o->kv_tiles, row);
    keep_row(&o->in_q, row);
    keep_row(&o->bias, row);
    keep_row(&o->mask, row);
    keep_row(&o->keep, row);
    o->q_codes.first += row;
    o->q_position += row;
    o->q_tile = o->q_tile * o->br + row;
    o->br = 1;
}

int case_sources(const struct trace *t, struct case_sources *out)
{
    const struct asc_problem *p = &t->problem;
    const enum asc_channel of[] = {asc_q, asc_k, asc_v};
    const char which[] = "qkv";
    *out = (struct case_sources){0};
    const size_t most = (size_t)p->batch * (size_t)(p->heads + 2 * p->kv_heads);
    out->sources = calloc(most, sizeof *out->sources);
    out->scales = calloc(most, sizeof *out->scales);
    if (!out->sources || !out->scales) {
        case_sources_free(out);
        return -1;
    }
    for (int i = 0; i < 3; i++) {
        const int heads = of[i] == asc_q ? p->heads : p->kv_heads;
        for (int head = 0; head < p->batch * heads; head++) {
            struct source *source = &out->sources[out->n];
            *source = (struct source){.of = of[i], .head = head};
            source->rows = input_rows(t, which[i], head / heads, head % heads, 0,
                                      of[i] == asc_q ? asc_q_len(p, head / heads) : asc_kv_len(p, head / heads));
            if (!source->rows.data ||
                coding_of(t, which[i], head / heads, head % heads, 0, &out->scales[out->n++], &source->coding) != 0) {
                case_sources_free(out);
                return -1;
            }
        }
    }
    return 0;
}

void case_sources_free(struct case_sources *s)
{
    for (int i = 0; i < s->n; i++)
        slot_case_free(&s->scales[i]);
    free(s->scales);
    free(s->sources);
    *s = (struct case_sources){0};
}
