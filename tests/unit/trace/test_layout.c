/* Layouts of thousands of random problems, held against a model that knows nothing of layout.c: bytes marked one by
 * one. */
#include "engine/trace/layout.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t draws;

static int draw(int below)
{
    draws = draws * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX generator */
    return (int)((draws >> 33) % (uint64_t)below);
}

static struct asc_problem random_problem(void)
{
    const int keep_kind = draw(ASC_BIAS_FULL + 1);
    static const int inputs[] = {DTYPE_F16, DTYPE_BF16, DTYPE_F32, DTYPE_E4M3, DTYPE_E5M2, DTYPE_U8};
    const int kv_heads = 1 + draw(3);
    return (struct asc_problem){.batch = 1 + draw(2),
                                .heads = kv_heads * (1 + draw(2)),
                                .kv_heads = kv_heads,
                                .q_len = 1 + draw(20),
                                .kv_len = 1 + draw(20),
                                .head_dim = 1 + draw(9),
                                .head_dim_v = 1 + draw(9),
                                .causal = draw(3),
                                .layout = draw(2),
                                .dtype = inputs[draw(6)],
                                .k_dtype = inputs[draw(6)],
                                .v_dtype = inputs[draw(6)],
                                .scale_rows = draw(2) * draw(25),
                                .has_sink = draw(2),
                                .has_alibi = draw(2),
                                .bias_kind = draw(ASC_BIAS_FULL + 1),
                                .mask_kind = draw(ASC_BIAS_FULL + 1),
                                .keep_kind = keep_kind,
                                .dropout = keep_kind ? 0.5f : 0,
                                .scale = 1.0f};
}

static struct layout_types random_types(void)
{
    static const int floats[] = {DTYPE_F16, DTYPE_BF16, DTYPE_F32, DTYPE_F64, DTYPE_E4M3, DTYPE_E5M2};
    struct layout_types types = {.o = floats[draw(6)]};
    for (int ch = 0; ch < ASC_ALL_CHANNELS; ch++)
        types.channel[ch] = draw(4) ? draw(DTYPE_COUNT) : -1;
    types.writers = draw(2);
    return types;
}

/* Marks bytes [at, at + n) as taken; each may be taken once, and none beyond the end. */
static void take(unsigned char *taken, uint64_t total, uint64_t at, uint64_t n)
{
    assert_true(at <= total && n <= total - at);
    for (uint64_t i = at; i < at + n; i++) {
        assert_int_equal(taken[i], 0);
        taken[i] = 1;
    }
}

static void take_part(unsigned char *taken, const struct layout *l, const struct layout_part *part, uint64_t bytes)
{
    assert_int_equal(part->offset % ASC_ALIGN, 0);
    assert_int_equal(part->bytes, bytes);
    take(taken, l->total_bytes, part->offset, bytes);
}

static uint64_t size_of(int dtype)
{
    return dtype_bytes((enum dtype)dtype);
}

/* An input of n elements in `heads` heads of `rows` rows, counted through the batch; with codes their scales and what
   they were made from. */
static void take_input(unsigned char *taken, const struct layout *l, const struct layout_part parts[3], int dtype,
                       uint64_t heads, uint64_t rows, uint64_t d, uint64_t scale_rows)
{
    const int codes = dtype == DTYPE_E4M3 || dtype == DTYPE_E5M2 || dtype == DTYPE_U8;
    uint64_t groups = 0;
    for (uint64_t row = 0; row < rows; row += scale_rows ? scale_rows : rows)
        groups++;
    take_part(taken, l, &parts[0], heads * rows * d * size_of(dtype));
    take_part(taken, l, &parts[1], codes ? heads * groups * 4 : 0);
    take_part(taken, l, &parts[2], codes ? heads * rows * d * 2 : 0);
    assert_int_equal(parts[0].dtype, dtype);
}

static void take_channel(unsigned char *taken, const struct layout *l, int ch)
{
    const struct asc_channel_map *map = &l->channel[ch];
    const struct asc_stamp_map *stamp = &l->stamp[ch];
    assert_int_equal(map->n_kv, channel_per_kv(ch) ? l->kv_tiles : 1);
    for (int slot = 0; slot < l->n_slots; slot++)
        for (int kv = 0; kv < map->n_kv; kv++) {
            const uint64_t s = (uint64_t)slot, k = (uint64_t)kv;
            const uint64_t at = map->offset + s * map->slot_stride + k * map->kv_stride;
            const uint64_t stamps = stamp->offset + s * stamp->slot_stride + k * stamp->kv_stride;
            assert_int_equal(at % ASC_TILE_ALIGN, 0);
            assert_true(at >= l->values_offset && stamps >= l->stamps_offset && stamps < l->values_offset);
            assert_int_equal(stamps % sizeof(uint64_t), 0);
            take(taken, l->total_bytes, at, (uint64_t)map->rows * (uint64_t)map->cols * size_of(map->dtype));
            take(taken, l->total_bytes, stamps, (uint64_t)l->warps * sizeof(uint64_t));
            const uint64_t writers = stamp->writers + s * stamp->writers_slot_stride + k * stamp->writers_kv_stride;
            if (!stamp->writers)
                continue;
            assert_true(writers > stamps && writers < l->values_offset);
            assert_int_equal(writers % sizeof(uint32_t), 0);
            take(taken, l->total_bytes, writers, 4 * (4 + (uint64_t)map->rows * (uint64_t)map->cols));
        }
}

/* Where the last byte that belongs to anything lies. */
static uint64_t last_taken(const unsigned char *taken, uint64_t n)
{
    while (n && !taken[n - 1])
        n--;
    return n;
}

static void check_one(void)
{
    const struct asc_problem p = random_problem();
    const struct asc_plan plan = {.br = 1 + draw(8), .bc = 1 + draw(8), .threads = 1 + draw(300)};
    const struct layout_types types = random_types();
    struct err err;
    struct layout l;
    const int q_tiles = (p.q_len + plan.br - 1) / plan.br, all = p.batch * p.heads * q_tiles;
    const int n_slots = draw(all + 1);
    assert_int_equal(layout_make(&p, &plan, &types, n_slots, &l, &err), 0);
    uint64_t slot_bytes = 0;
    assert_int_equal(layout_slot_bytes(&p, &plan, &types, &slot_bytes, &err), 0);
    assert_true(slot_bytes > 0);
    const struct layout_types back = layout_types_of(&l);
    uint64_t again = 0, strides = 0;
    assert_int_equal(layout_slot_bytes(&p, &plan, &back, &again, &err), 0);
    assert_int_equal(again, slot_bytes);
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        strides += l.channel[ch].slot_stride + l.stamp[ch].slot_stride + l.stamp[ch].writers_slot_stride;
    assert_int_equal(layout_keeps_writers(&l), types.writers && strides);
    assert_int_equal(slot_bytes, strides ? strides : 1);
    assert_true(l.total_bytes - l.stamps_offset >= (uint64_t)n_slots * strides);
    struct unwritten_part parts[ASC_ALL_CHANNELS];
    uint64_t end = l.values_offset;
    for (int i = 0, n = layout_unwritten(&l, parts); i < n; i++) {
        assert_int_equal(parts[i].begin, end);
        end = parts[i].end;
    }
    assert_true(end == l.total_bytes);
    assert_int_equal(l.q_tiles, q_tiles);
    assert_int_equal(l.kv_tiles, (p.kv_len + plan.bc - 1) / plan.bc);
    assert_int_equal(l.warps, (plan.threads + 31) / 32);
    assert_int_equal(l.n_slots, n_slots);

    unsigned char *taken = calloc(1, l.total_bytes);
    assert_non_null(taken);
    const uint64_t q = (uint64_t)p.batch * (uint64_t)p.heads * (uint64_t)p.q_len;
    const uint64_t k = (uint64_t)p.batch * (uint64_t)p.kv_heads * (uint64_t)p.kv_len;
    const uint64_t d = (uint64_t)p.head_dim, d_v = (uint64_t)p.head_dim_v;
    take(taken, l.total_bytes, 0, ASC_HEADER_BYTES);
    const uint64_t q_heads = q / (uint64_t)p.q_len, k_heads = k / (uint64_t)p.kv_len, rows = (uint64_t)p.scale_rows;
    const struct layout_part inputs[3][3] = {
        {l.q, l.q_scale, l.q_given}, {l.k, l.k_scale, l.k_given}, {l.v, l.v_scale, l.v_given}};
    take_input(taken, &l, inputs[0], p.dtype, q_heads, (uint64_t)p.q_len, d, rows);
    take_input(taken, &l, inputs[1], p.k_dtype, k_heads, (uint64_t)p.kv_len, d, rows);
    take_input(taken, &l, inputs[2], p.v_dtype, k_heads, (uint64_t)p.kv_len, d_v, rows);
    take_part(taken, &l, &l.o, q * d_v * size_of(types.o));
    take_part(taken, &l, &l.lse, q * 4);
    const uint64_t heads = (uint64_t)p.heads, batch = (uint64_t)p.batch, pairs = (uint64_t)p.q_len * (uint64_t)p.kv_len;
    const uint64_t biases[] = {0, 1, heads, batch, batch * heads};
    take_part(taken, &l, &l.sink, p.has_sink ? heads * 4 : 0);
    take_part(taken, &l, &l.alibi, p.has_alibi ? heads * 4 : 0);
    take_part(taken, &l, &l.bias, biases[p.bias_kind] * pairs * 4);
    take_part(taken, &l, &l.mask, biases[p.mask_kind] * pairs);
    take_part(taken, &l, &l.keep, biases[p.keep_kind] * pairs);
    take_part(taken, &l, &l.slots, (uint64_t)n_slots * 12);
    take_part(taken, &l, &l.slot_index, (uint64_t)all * 4);
    take_part(taken, &l, &l.dropped, ASC_ALL_CHANNELS * sizeof(uint64_t));
    take_part(taken, &l, &l.mistyped, ASC_ALL_CHANNELS * sizeof(uint64_t));
    int recorded = 0;
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        recorded += types.channel[ch] >= 0;
        assert_int_equal(l.channel[ch].dtype, types.channel[ch]);
        if (types.channel[ch] >= 0)
            take_channel(taken, &l, ch);
    }
    /* No more is wasted than alignment takes: for each part, tile and group of stamps, and a slot is never empty. */
    uint64_t waste = 0;
    for (uint64_t i = 0; i < l.total_bytes; i++)
        waste += !taken[i];
    const int tiles = n_slots * ASC_CHANNELS * l.kv_tiles;
    assert_true(waste <= ASC_ALIGN * (uint64_t)(20 + ASC_CHANNELS) + ASC_TILE_ALIGN * (uint64_t)tiles);
    if (n_slots)
        assert_true(recorded == 0 || last_taken(taken, l.total_bytes) + ASC_ALIGN >= l.total_bytes);
    free(taken);
}

static void parts_and_tiles_never_overlap(void **state)
{
    (void)state;
    for (int i = 0; i < 4000; i++)
        check_one();
}

/* Tiles of a width that kernels have lie as in a saved trace, one tensor without holes: saving it is one write. */
static void a_channel_is_one_tensor(void **state)
{
    (void)state;
    const struct asc_problem p = {.batch = 1,
                                  .heads = 8,
                                  .kv_heads = 8,
                                  .q_len = 512,
                                  .kv_len = 512,
                                  .head_dim = 64,
                                  .head_dim_v = 64,
                                  .dtype = DTYPE_F16,
                                  .window_left = -1,
                                  .window_right = -1,
                                  .scale = 0.125f};
    const struct asc_plan plan = {.br = 64, .bc = 64, .threads = 128};
    struct layout_types types = {.o = DTYPE_F16};
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        types.channel[ch] = DTYPE_F32;
    struct layout l;
    assert_int_equal(layout_make(&p, &plan, &types, 64, &l, NULL), 0);
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        const struct asc_channel_map *map = &l.channel[ch];
        const uint64_t tile = (uint64_t)map->rows * (uint64_t)map->cols * 4;
        assert_int_equal(map->slot_stride, tile * (uint64_t)map->n_kv);
        assert_int_equal(map->kv_stride, map->n_kv > 1 ? tile : 0);
    }
}

/* Tails: over all tiles, the valid rows and columns are exactly the problem's. */
static void tails_sum_up(void **state)
{
    (void)state;
    for (int i = 0; i < 2000; i++) {
        const struct asc_problem p = random_problem();
        const struct asc_plan plan = {.br = 1 + draw(8), .bc = 1 + draw(8), .threads = 32};
        const int q_tiles = (p.q_len + plan.br - 1) / plan.br, kv_tiles = (p.kv_len + plan.bc - 1) / plan.bc;
        int q_rows = 0, k_rows = 0;
        int64_t scores = 0;
        for (int qt = 0; qt < q_tiles; qt++)
            q_rows += channel_valid_rows(asc_q, &p, &plan, 0, qt, 0);
        for (int kv = 0; kv < kv_tiles; kv++)
            k_rows += channel_valid_rows(asc_k, &p, &plan, 0, 0, kv);
        for (int qt = 0; qt < q_tiles; qt++)
            for (int kv = 0; kv < kv_tiles; kv++) {
                const int rows = channel_valid_rows(asc_s, &p, &plan, 0, qt, kv);
                const int cols = channel_valid_cols(asc_s, &p, &plan, 0, kv);
                assert_in_range(rows, 1, channel_rows(asc_s, &plan));
                assert_in_range(cols, 1, channel_cols(asc_s, &plan, &p));
                scores += (int64_t)rows * cols;
            }
        assert_int_equal(q_rows, p.q_len);
        assert_int_equal(k_rows, p.kv_len);
        assert_int_equal(scores, (int64_t)p.q_len * p.kv_len);
        assert_int_equal(channel_valid_cols(asc_v, &p, &plan, 0, kv_tiles - 1), p.head_dim_v);
        assert_int_equal(channel_valid_cols(asc_lse, &p, &plan, 0, 0), 1);
        assert_int_equal(channel_valid_rows(asc_q, &p, &plan, 0, q_tiles, 0), 0);
        assert_int_equal(channel_valid_rows(asc_k, &p, &plan, 0, 0, -1), 0);
    }
}

static void refuses(struct asc_problem p, struct asc_plan plan, int n_slots, const char *names)
{
    struct layout_types types = {.o = DTYPE_F16};
    struct layout l;
    struct err err = {0};
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        types.channel[ch] = DTYPE_F32;
    assert_int_equal(layout_make(&p, &plan, &types, n_slots, &l, &err), -1);
    assert_int_equal(err.code, ERR_INPUT);
    assert_non_null(strstr(err.message, names));
}

static void impossible_numbers_are_refused(void **state)
{
    (void)state;
    const struct asc_problem good = {
        .batch = 1, .heads = 8, .kv_heads = 4, .q_len = 8, .kv_len = 8, .head_dim = 8, .head_dim_v = 8, .scale = 1};
    const struct asc_plan plan = {.br = 4, .bc = 4, .threads = 32};
    struct asc_problem p = good;
    int32_t *const lengths[] = {&p.batch, &p.heads, &p.kv_heads, &p.q_len, &p.kv_len, &p.head_dim};
    static const char *const names[] = {"batch", "heads", "kv_heads", "q_len", "kv_len", "head_dim"};
    for (int i = 0; i < 6; i++)
        for (int sign = -1; sign <= 0; sign++) {
            p = good;
            *lengths[i] = sign;
            refuses(p, plan, 0, names[i]);
        }
    p = good;
    p.kv_heads = 3;
    refuses(p, plan, 0, "multiple of kv_heads (3)");
    p = good;
    p.scale = (float)NAN;
    refuses(p, plan, 0, "scale");
    p.scale = 0;
    refuses(p, plan, 0, "scale");
    p.scale = -1;
    refuses(p, plan, 0, "scale");
    p = good;
    p.causal = 3;
    refuses(p, plan, 0, "causal");
    p = good;
    p.window_left = -2;
    refuses(p, plan, 0, "window");
    p = good;
    p.window_right = -2;
    refuses(p, plan, 0, "window");
    p.window_right = ASC_LENGTH_MAX + 1;
    refuses(p, plan, 0, "window");
    p = good;
    p.window_left = INT32_MAX;
    refuses(p, plan, 0, "window");
    p = good;
    p.kv_len = ASC_LENGTH_MAX + 1;
    refuses(p, plan, 0, "kv_len is 16777217");
    p = good;
    p.softcap = -1;
    refuses(p, plan, 0, "softcap");
    p.softcap = NAN;
    refuses(p, plan, 0, "softcap");
    p = good;
    p.has_sink = 2;
    refuses(p, plan, 0, "has_sink");
    p = good;
    p.has_alibi = -1;
    refuses(p, plan, 0, "has_alibi");
    p = good;
    p.bias_kind = ASC_BIAS_FULL + 1;
    refuses(p, plan, 0, "bias_kind");
    p.bias_kind = -1;
    refuses(p, plan, 0, "bias_kind");
    p.bias_kind = ASC_BIAS_FULL;
    p.batch = p.q_len = p.kv_len = 1 << 24;
    refuses(p, plan, 0, "2^63");
    p = good;
    p.layout = -1;
    refuses(p, plan, 0, "layout");
    p = good;
    p.dtype = DTYPE_I32;
    refuses(p, plan, 0, "dtype");
    p = good;
    p.k_dtype = DTYPE_I64;
    refuses(p, plan, 0, "k_dtype");
    p = good;
    p.v_dtype = -1;
    refuses(p, plan, 0, "v_dtype");
    p = good;
    p.scale_rows = -1;
    refuses(p, plan, 0, "scale_rows");
    p = good;
    p.head_dim = p.head_dim_v = ASC_HEAD_DIM_MAX + 1;
    refuses(p, plan, 0, "head_dim");
    p.batch = p.heads = p.q_len = ASC_LENGTH_MAX;
    p.head_dim = p.head_dim_v = ASC_HEAD_DIM_MAX;
    refuses(p, plan, 0, "2^63");
    p = good;
    refuses(p, (struct asc_plan){.br = 0, .bc = 4, .threads = 32}, 0, "br and bc");
    refuses(p, (struct asc_plan){.br = 4, .bc = -4, .threads = 32}, 0, "br and bc");
    refuses(p, (struct asc_plan){.br = 4, .bc = 4, .threads = 0}, 0, "threads");
    refuses(p, (struct asc_plan){.br = 4, .bc = 4, .threads = 1025}, 0, "threads");
    refuses(p, (struct asc_plan){.br = 4, .bc = 4, .threads = 32, .kv_splits = -1}, 0, "kv splits");
    refuses(p, (struct asc_plan){.br = 4, .bc = 4, .threads = 32, .kv_splits = ASC_SPLITS_MAX + 1}, 0, "kv splits");
    refuses(p, (struct asc_plan){.br = 4, .bc = 4, .threads = 32, .kv_deal = ASC_DEAL_MAP + 1}, 0, "kv_deal");
    refuses(p, (struct asc_plan){.br = 4, .bc = 4, .threads = 32, .kv_deal = -1}, 0, "kv_deal");
    refuses(p, (struct asc_plan){.br = 4, .bc = 4, .threads = 32, .workspace_bytes = ASC_WORKSPACE_MAX + 1}, 0,
            "workspace");
    refuses(p, plan, -1, "slots");
    refuses(p, plan, 17, "slots");
    refuses(p, (struct asc_plan){.br = ASC_TILE_MAX + 1, .bc = 4, .threads = 32}, 0, "br and bc");
    refuses(p, (struct asc_plan){.br = 4, .bc = INT32_MAX, .threads = 32}, 0, "br and bc");
    p.head_dim = p.head_dim_v = ASC_HEAD_DIM_MAX;
    p.q_len = 1 << 22;
    p.kv_len = ASC_LENGTH_MAX;
    refuses(p, (struct asc_plan){.br = 1, .bc = 1, .threads = 32}, 1 << 22, "2^63");
}

static void channels_have_names(void **state)
{
    (void)state;
    for (int ch = 0; ch < ASC_CHANNELS; ch++) {
        assert_int_equal(channel_from_name(channel_name(ch)), ch);
        assert_true(*channel_label(ch) && *channel_meaning(ch) && *channel_formula(ch));
    }
    assert_int_equal(channel_from_name("S"), -1);
    assert_int_equal(channel_from_name(""), -1);
    assert_false(channel_per_kv(asc_q));
    assert_true(channel_per_kv(asc_k));
    assert_false(channel_per_kv(asc_lse));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_and_tiles_never_overlap),
        cmocka_unit_test(a_channel_is_one_tensor),
        cmocka_unit_test(tails_sum_up),
        cmocka_unit_test(impossible_numbers_are_refused),
        cmocka_unit_test(channels_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
