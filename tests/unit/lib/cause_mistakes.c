/* The arithmetic of the test kernel of causes up to the maximum, one function per stage, with its mistakes. */
#include "tests/unit/lib/cause_parts.h"

#include <string.h>

int one_in(struct run *run, unsigned n)
{
    return test_random(&run->random) % n == 0;
}

float noise(struct run *run)
{
    return (float)test_uniform(&run->random) - 0.5f;
}

int odd(int i)
{
    return i & 1;
}

float mistaken_q(const struct run *run, int row0, int rows, int r, int d)
{
    const struct spec *s = &run->spec;
    int row = row0 + r;
    if (s->mistake == Q_FIRST_TILE)
        row = r;
    if (s->mistake == Q_WRONG_HEAD)
        row += s->q_len;
    if (s->mistake == Q_ROTATED && (r + 3) % s->br >= rows)
        return 0;
    if (s->mistake == Q_ROTATED)
        row = row0 + (r + 3) % s->br;
    return (float)dtype_load(DTYPE_F16, run->q, (size_t)row * (size_t)s->head_dim + (size_t)d);
}

static void rotate_rows(const struct run *run, float *x, float *room, int by)
{
    const ptrdiff_t bc = run->spec.bc, D = run->spec.head_dim;
    memcpy(room, x, (size_t)(bc * D) * sizeof *x);
    for (int i = 0; i < bc * D; i++)
        x[i] = room[(i / D + by) % bc * D + i % D];
}

void mistaken_tile(const struct run *run, struct tile *t)
{
    const struct spec *s = &run->spec;
    const int n = s->bc * s->head_dim;
    load_tile(run, run->k, OWN_HEAD, t->first, t->other);
    switch (s->mistake) {
    case K_PREVIOUS_TILE:
        load_tile(run, run->k, OWN_HEAD, (t->before >= 0 ? t->before : t->kv) * s->bc, t->k);
        break;
    case K_NEXT_TILE:
        load_next(run, run->k, t, t->k);
        break;
    case K_FIRST_TILE:
        load_tile(run, run->k, OWN_HEAD, t->start * s->bc, t->k);
        break;
    case K_ROW_MOVED:
        load_tile(run, run->k, OWN_HEAD, t->first + 1, t->k);
        break;
    case K_HOLDS_V:
        load_tile(run, run->v, OWN_HEAD, t->first, t->k);
        break;
    case K_WRONG_HEAD:
        load_tile(run, run->k, OWN_HEAD + 1, t->first, t->k);
        break;
    case K_ROTATED:
        rotate_rows(run, t->k, t->other, 3);
        break;
    case V_PREVIOUS_TILE:
        load_tile(run, run->v, OWN_HEAD, (t->before >= 0 ? t->before : t->kv) * s->bc, t->v);
        break;
    case V_NEXT_TILE:
        load_next(run, run->v, t, t->v);
        break;
    case V_ROW_MOVED: /* where nobody looks at kv_len: the next head begins there */
        for (int i = 0; i < n; i++)
            t->v[i] = (float)dtype_load(
                DTYPE_F16, run->v,
                ((size_t)OWN_HEAD * (size_t)s->kv_len + (size_t)t->first + 1) * (size_t)s->head_dim + (size_t)i);
        for (int i = t->valid * s->head_dim; i < n; i++)
            t->v[i] = 0;
        break;
    case V_HOLDS_K:
        load_tile(run, run->k, OWN_HEAD, t->first, t->v);
        break;
    case V_WRONG_HEAD:
        load_tile(run, run->v, OWN_HEAD - 1, t->first, t->v);
        break;
    case V_ROTATED:
        rotate_rows(run, t->v, t->other, 1);
        break;
    case V_ZERO_POINT:
        for (int i = 0; i < n; i++)
            t->v[i] = round_to(DTYPE_F16, t->v[i] - ZERO_POINT);
        break;
    default:
        break;
    }
}

ptrdiff_t swizzled(ptrdiff_t row, ptrdiff_t d)
{
    return d ^ (row % 2 * 8);
}

const float *other_k(const struct run *run, const struct tile *t)
{
    const struct spec *s = &run->spec;
    const ptrdiff_t D = s->head_dim, n = s->bc * D;
    memcpy(t->other, t->k, (size_t)n * sizeof(float));
    switch (s->mistake) {
    case S_K_PREVIOUS_TILE:
        if (t->before >= 0)
            load_tile(run, run->k, OWN_HEAD, t->before * s->bc, t->other);
        break;
    case S_K_TWO_BACK:
        if (t->before2 >= 0)
            load_tile(run, run->k, OWN_HEAD, t->before2 * s->bc, t->other);
        break;
    case S_NEXT_TILE:
        load_next(run, run->k, t, t->other);
        break;
    case S_OF_V:
        memcpy(t->other, t->v, (size_t)n * sizeof(float));
        break;
    case S_K_BLOCKS_TRANSPOSED:
        transpose_blocks(run, t->k, t->other);
        break;
    case S_K_WRONG_HEAD:
        load_tile(run, run->k, OWN_HEAD - 1, t->first, t->other);
        break;
    case S_K_OTHER_HEAD:
        load_tile(run, run->k, 3, t->first, t->other);
        break;
    case S_K_NOT_TRANSPOSED:
        for (int i = 0; i < n; i++)
            t->other[i] = t->k[i % D * D + i / D];
        break;
    case S_K_SWIZZLED:
    case S_BOTH_SWIZZLED:
        for (int i = 0; i < n; i++)
            t->other[i] = t->k[i / D * D + swizzled(i / D, i % D)];
        break;
    case S_K_BITS_IN_TURN: /* of the column, the key, and the key's second one */
        for (int i = 0; i < n; i++) {
            const int row = i / (int)D, col = i % (int)D;
            t->other[i] = t->k[((row & ~3) | (row & 2) >> 1 | (col & 1) << 1) * D + ((col & ~1) | (row & 1))];
        }
        break;
    case S_NEXT_KEY:
        for (int i = 0; i < n; i++)
            t->other[i] = t->k[(i / D + 1) % s->bc * D + i % D];
        break;
    case S_HALVES_SWAPPED:
        for (int i = 0; i < n; i++)
            t->other[i] = t->k[(i / D + s->bc / 2) % s->bc * D + i % D];
        break;
    default:
        break;
    }
    return t->other;
}

static float round_f64_to(enum dtype t, double x)
{
    uint64_t room = 0;
    dtype_store(t, &room, 0, x);
    return (float)dtype_load(t, &room, 0);
}

static float sum_f16(const float *a, const float *b, int n)
{
    float sum = 0;
    for (int i = 0; i < n; i++)
        sum = round_f64_to(DTYPE_F16, (double)sum + (double)a[i] * (double)b[i]); /* one rounding, as HFMA */
    return sum;
}

float sum_in_bf16(const float *a, const float *b, ptrdiff_t stride_b, int n, int each, float sum)
{
    for (int i = 0; i < n; i += each) {
        for (int k = i; k < i + each && k < n; k++)
            sum += a[k] * b[k * stride_b];
        sum = round_to(DTYPE_BF16, sum);
    }
    return sum;
}

static float sum_products(const struct run *run, const float *a, const float *b, int n)
{
    return product(run, a, b, 1, n, 0);
}

float dot_product(struct run *run, const struct state *st, const struct tile *t, int r, int c)
{
    const struct spec *s = &run->spec;
    const ptrdiff_t D = s->head_dim;
    const float *k = c == 0 && r == 0 ? other_k(run, t) : t->other;
    const float *a = st->q + r * D, *b = k + c * D;
    float q[512], kept[512];
    memcpy(kept, b, (size_t)D * sizeof *kept);
    memcpy(q, a, (size_t)D * sizeof *q);
    switch (s->mistake) {
    case S_NEXT_ROW:
        return sum_products(run, st->q + (r + 1) % s->br * D, b, (int)D);
    case S_ROWS_SWAPPED:
        return sum_products(run, st->q + (r ^ 8) * D, b, (int)D);
    case S_BOTH_SWIZZLED:
        for (int d = 0; d < D; d++)
            q[d] = a[swizzled(r, d)];
        break;
    case S_LAST_PRODUCT:
        return sum_products(run, a, b, (int)D - 1);
    case S_HALF_OF_D:
        return sum_products(run, a, b, (int)D / 2);
    case S_F16_ACCUMULATOR:
        return sum_f16(a, b, (int)D);
    case S_SUMMED_IN_BF16:
        return sum_in_bf16(a, b, 1, (int)D, 8, 0);
    case S_RESULT_TRANSPOSED:
        return sum_products(run, st->q + c % s->br * D, k + r % s->bc * D, (int)D);
    case S_Q_ROUNDED_BF16:
        for (int d = 0; d < D; d++)
            q[d] = round_to(DTYPE_BF16, q[d]);
        break;
    case S_Q_SCALED_IN_F16:
        for (int d = 0; d < D; d++)
            q[d] = round_to(DTYPE_F16, q[d] * (run->scale * (float)M_LOG2E)) / (run->scale * (float)M_LOG2E);
        break;
    case S_Q_ROUNDED_E4M3:
        for (int d = 0; d < D; d++)
            q[d] = round_to(DTYPE_E4M3, q[d]);
        break;
    case S_LAST_PRODUCT_TWICE:
        q[D - 1] *= 2;
        break;
    case S_MIDDLE_PRODUCT:
        q[D / 2 - 3] = 0;
        break;
    case S_EVEN_PRODUCTS:
        for (int d = 1; d < D; d += 2)
            q[d] = 0;
        break;
    case S_ONE_OF_EIGHT_PAIRED:
        for (int d = 7; d < D; d += 8)
            kept[d] = b[d - 1];
        b = kept;
        break;
    case S_TWO_D_SWAPPED:
        q[3] = a[5];
        q[5] = a[3];
        break;
    case S_CUT_IN_ODD_ROWS:
        return sum_products(run, a, b, (int)(odd(r) ? D / 2 : D));
    case S_TWICE_AND_CUT:
        return run->scale * sum_products(run, a, b, (int)D / 2);
    case S_PREVIOUS_TILE_AT_TIMES:
        for (int d = 0; t->before >= 0 && d < D && (d > 0 || one_in(run, 5)); d++)
            kept[d] = (float)dtype_load(DTYPE_F16, run->k,
                                        (size_t)((OWN_HEAD * s->kv_len + t->before * s->bc + c % t->valid) * D + d));
        b = kept;
        break;
    case S_XOR_IN_HALF_THE_ROWS:
        return sum_products(run, a, k + (r < s->br / 2 ? c ^ 8 : c) * D, (int)D);
    case S_ROW_7_TWICE:
        return sum_products(run, st->q + (r % 16 == 7 ? r - 1 : r) * D, b, (int)D);
    default:
        break;
    }
    return sum_products(run, q, b, (int)D);
}

int is_masked(const struct run *run, int row, int key, enum mistake mistake)
{
    const struct spec *s = &run->spec;
    struct spec other = *s;
    enum asc_causal causal = s->causal;
    int moved = 0;
    if (key >= s->kv_len)
        return mistake != S_TAIL_NOT_MASKED;
    switch (mistake) {
    case S_MASK_MISSING:
    case P_MASKED_LATE:
    case U_P_MASKED_LATE:
        return 0;
    case S_MASK_IN_EVEN_ROWS:
        if (odd(row))
            return 0;
        break;
    case S_CAUSAL_ONE_MORE:
        moved = 1;
        break;
    case S_CAUSAL_ONE_LESS:
        moved = -1;
        break;
    case S_CAUSAL_TWO_MORE:
        moved = 2;
        break;
    case S_TOP_LEFT:
        causal = ASC_CAUSAL_TOP_LEFT;
        break;
    case S_BOTTOM_RIGHT:
        causal = ASC_CAUSAL_BOTTOM_RIGHT;
        break;
    case S_WINDOW_MISSING:
        other.has_window = 0;
        break;
    case S_WINDOW_ONE_MORE:
        other.window_left++;
        break;
    case S_WINDOW_ONE_LESS:
        other.window_left--;
        break;
    default:
        break;
    }
    return mask_hides(&other, row, key, causal, moved);
}

static float score_of_masked(const struct spec *s)
{
    if (s->mistake == S_MASK_TOO_WEAK)
        return -10;
    return s->masked_value != 0 ? s->masked_value : -INFINITY;
}

float mistaken_score(struct run *run, const struct state *st, const struct tile *t, int r, int c)
{
    const struct spec *s = &run->spec;
    const float dot = dot_product(run, st, t, r, c), product = dot * unit_factor(run), x = capped(run, product);
    const int never_scaled = s->unit == ASC_UNIT_RAW && !(s->softcap > 0);
    if (is_masked(run, st->row0 + r, t->first + c, s->mistake))
        return score_of_masked(s);
    switch (s->mistake) {
    case S_SCALED_TWICE:
        return capped(run, product * run->scale * (never_scaled ? run->scale : 1));
    case S_NOT_SCALED:
        return capped(run, product / run->scale);
    case S_NOT_CAPPED:
        return product;
    case S_ROUNDED_F16:
        return round_to(DTYPE_F16, x);
    case S_ROUNDED_BF16:
        return round_to(DTYPE_BF16, x);
    case S_TIMES_1_5:
        return x * 1.5f;
    case S_TIMES_HALF:
        return x * 0.5f;
    case S_TIMES_1_001:
        return x * 1.001f;
    case S_TIMES_0_999:
        return x * 0.999f;
    case S_PLUS_MILLI:
        return x + 1e-3f;
    case S_MINUS_MILLI:
        return x - 1e-3f;
    case S_PLUS_HALF:
        return x + 0.5f;
    case S_SIGN:
        return -x;
    case S_ABSOLUTE:
        return fabsf(x) + 1e-3f;
    case S_SQUARED:
        return x * x;
    case S_SIGN_OF_ODD_COLUMNS:
        return odd(c) ? -x : x;
    case S_NOISE:
        return x + 1e-3f * noise(run);
    case S_NOISE_RELATIVE:
        return x * (1 + 1e-2f * noise(run));
    case S_RANDOM_SWAPS:
        return one_in(run, 50) ? -x + 0.25f : x;
    case S_RANDOM_ZEROS:
        return one_in(run, 100) ? 0 : x;
    case S_TWICE_IN_ODD_ROWS:
        return odd(r) ? x * run->scale : x;
    case S_SCALED_THRICE:
        return x * run->scale * run->scale * (s->unit == ASC_UNIT_RAW ? run->scale : 1);
    case S_ROOT_OF_SCALE:
        return x * sqrtf(run->scale);
    case S_TANH:
        return tanhf(x) * 1.01f;
    case S_RELU:
        return x > 0 ? x : 0;
    case S_CLAMPED:
        return fminf(fmaxf(x, -1), 1);
    case S_GRID:
        return roundf(x * 64) / 64 + 0.001f;
    case S_LAST_QUARTER_CONSTANT:
        return c >= s->bc * 3 / 4 ? 0.125f : x;
    case S_NAN_AT_TIMES:
        return one_in(run, 200) ? NAN : x;
    case S_SCALED_BY_ROW:
        return x * (1 + (float)r / 64);
    case S_TILE_NUMBER_ADDED:
        return x + (float)t->kv + 0.25f;
    case S_ONE_ELEMENT:
        return r == 3 && c == 5 ? x + 1 : x;
    default:
        return x;
    }
}

int in_part(const struct spec *s, enum asc_channel ch, int r, int c)
{
    const int of_l = s->mistake == L_FIRST_HALF || s->mistake == L_OWN_LANE || s->mistake == L_SHUFFLE_MISSING;
    if (of_l != (ch == asc_l))
        return 1;
    switch (s->mistake) {
    case M_FIRST_HALF:
    case L_FIRST_HALF:
        return c < s->bc / 2;
    case M_SECOND_HALF:
        return c >= s->bc / 2;
    case M_SHUFFLE_MISSING:
        return !(c & 2);
    case L_SHUFFLE_MISSING:
        return (c & 4) != 0;
    case M_EVERY_FOURTH:
        return c % 4 == 1;
    case M_THREE_QUARTERS:
        return c < s->bc * 3 / 4;
    case M_FIVE_EIGHTHS:
        return c < s->bc * 5 / 8;
    case M_OWN_LANE:
    case L_OWN_LANE:
        return c % 16 == r % 16;
    default:
        return 1;
    }
}

float mistaken_start(const struct run *run, float m)
{
    return run->spec.mistake == M_NOT_CARRIED || run->spec.mistake == M_MEAN ? -INFINITY : m;
}

float mistaken_maximum(struct run *run, const struct state *st, const struct tile *t, int r, float m)
{
    const struct spec *s = &run->spec;
    float top = m, second = m, least = INFINITY, sum = 0;
    int n = 0;
    if (s->mistake == M_NOT_UPDATED && t->before >= 0)
        return m;
    for (int c = 0; c < s->bc; c++) {
        float x = t->score[c];
        if (s->mistake == M_BEFORE_MASK && t->first + c < s->kv_len)
            x = capped(run, dot_product(run, st, t, r, c) * unit_factor(run));
        if (!in_part(s, asc_m, r, c) || (s->mistake == M_RANDOM_KEYS && one_in(run, 3)))
            continue;
        if (s->mistake == M_NEXT_ROW && x != -INFINITY && c < t->valid)
            x = capped(run, dot_product(run, st, t, (r + 1) % s->br, c) * unit_factor(run));
        if (s->mistake == M_OF_ABSOLUTES && x != -INFINITY)
            x = fabsf(x) + 1e-3f;
        if (x > top) {
            second = top;
            top = x;
        } else if (x > second) {
            second = x;
        }
        if (x != -INFINITY) {
            least = fminf(least, x);
            sum += x;
            n++;
        }
    }
    switch (s->mistake) {
    case M_PLUS_MILLI:
        return top + 1e-3f;
    case M_TIMES_1_01:
        return top * 1.01f;
    case M_MINIMUM:
        return n ? least : top;
    case M_MEAN:
        return n ? sum / (float)n : top;
    case M_SECOND:
        return second;
    case M_ROUNDED_F16:
        return round_to(DTYPE_F16, top) + 1e-3f;
    case M_GUARD_KEPT:
        return top == -INFINITY ? 0 : top;
    default:
        return top;
    }
}
