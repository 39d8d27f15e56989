/* Masks that a kernel may have taken for the right one. */
#include "engine/oracle/mask/mask.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *name, *sentence;
    int moves;
} facts[MASK_SHIFTS] = {
#define SHIFT(id, name, moves, sentence) [id] = {name, sentence, moves},
#include "engine/oracle/mask/masks.def"
#undef SHIFT
};

const char *mask_shift_name(enum mask_shift shift)
{
    return facts[shift].name;
}

const char *mask_shift_sentence(enum mask_shift shift)
{
    return facts[shift].sentence;
}

bool mask_shift_moves(enum mask_shift shift)
{
    return facts[shift].moves == 1;
}

/* About keys beyond kv_len, and no others. */
static bool is_of_tail(enum mask_shift shift)
{
    return shift == MASK_TAIL || shift == MASK_TAIL_EDGE || shift == MASK_TAIL_LINE;
}

static int clamped(int x, int low, int high)
{
    return x < low ? low : x > high ? high : x;
}

/* A causal mask ends every row at its diagonal, whatever the window's right side is. */
static bool has_right_side(const struct oracle_case *c)
{
    return c->window_right >= 0 && c->causal == ASC_CAUSAL_NONE;
}

bool mask_shift_range(const struct oracle_case *c, enum mask_shift shift, int by, int r, struct key_range *out)
{
    struct oracle_case other = *c;
    const bool is_causal = c->causal != ASC_CAUSAL_NONE;
    const int has_left = c->window_left >= 0, has_window = has_left || c->window_right >= 0;
    if (!is_causal && !has_window && !is_of_tail(shift))
        return false;
    if (facts[shift].moves && by == 0)
        return false;
    switch (shift) {
    case MASK_OTHER_CORNER:
        other.causal = c->causal == ASC_CAUSAL_TOP_LEFT ? ASC_CAUSAL_BOTTOM_RIGHT : ASC_CAUSAL_TOP_LEFT;
        *out = schedule_range(&other, r);
        return is_causal && c->q_len != c->kv_len;
    case MASK_NONE:
        *out = (struct key_range){0, c->kv_len};
        return true;
    case MASK_INVERTED:
        *out = schedule_range(c, r);
        return true;
    case MASK_NOT_CAUSAL:
        other.causal = ASC_CAUSAL_NONE;
        if (c->causal == ASC_CAUSAL_TOP_LEFT) { /* without a causal mask the diagonal would be the other one */
            other.window_left += has_left ? c->kv_len - c->q_len : 0;
            other.window_right += c->window_right >= 0 ? c->q_len - c->kv_len : 0;
        }
        *out = schedule_range(&other, r);
        return is_causal && has_window;
    case MASK_NO_WINDOW:
        other.window_left = other.window_right = -1;
        *out = schedule_range(&other, r);
        return is_causal && has_window;
    case MASK_NO_LEFT:
        other.window_left = -1;
        *out = schedule_range(&other, r);
        return has_left && has_right_side(c);
    case MASK_NO_RIGHT:
        other.window_right = -1;
        *out = schedule_range(&other, r);
        return has_left && has_right_side(c);
    case MASK_DIAGONAL:
        *out = schedule_range(c, r + by);
        return true;
    case MASK_CAUSAL_EDGE:
    case MASK_RIGHT_EDGE:
        *out = schedule_range(c, r);
        out->last =
            clamped((int)schedule_diagonal(c, r) + 1 + by + (is_causal ? 0 : c->window_right), out->first, c->kv_len);
        return shift == MASK_CAUSAL_EDGE ? is_causal && has_left : has_left && has_right_side(c);
    case MASK_LEFT_EDGE:
        *out = schedule_range(c, r);
        out->first = clamped((int)schedule_diagonal(c, r) - c->window_left + by, 0, out->last);
        return has_left;
    case MASK_TAIL:
        *out = (struct key_range){0, c->kv_tiles * c->bc};
        return c->kv_len % c->bc != 0;
    case MASK_TAIL_EDGE: /* the diagonal stays where it is */
        other.kv_len = clamped(c->kv_len + by, c->kv_len, c->kv_tiles * c->bc);
        other.q_len += other.kv_len - c->kv_len;
        *out = schedule_range(&other, r);
        return c->kv_len % c->bc != 0;
    case MASK_TAIL_LINE: /* row i of the run sees i keys of the tail, and `by` more */
        *out = (struct key_range){0, clamped(c->kv_len + c->q_tile * c->br + r + by, c->kv_len, c->kv_tiles * c->bc)};
        return c->kv_len % c->bc != 0;
    default:
        return false;
    }
}

/* The first and last key that a row was seen to see. 0: it sees none. */
static bool seen_range(const struct oracle_case *c, const struct mask_tile *tiles, int r, struct key_range *out)
{
    *out = (struct key_range){0, 0};
    for (int kv = 0; kv < c->kv_tiles; kv++) {
        const int cols = schedule_cols(c, kv);
        for (int col = 0; col < cols; col++) {
            if (!mask_bit(&tiles[kv], tiles[kv].applied, r, col))
                continue;
            if (!out->last)
                out->first = kv * c->bc + col;
            out->last = kv * c->bc + col + 1;
        }
    }
    return out->last > 0;
}

/* The key behind those of the tail that a row was seen to see, kv_len where it sees none. */
static int tail_seen(const struct oracle_case *c, const struct mask_tile *tiles, int r)
{
    const int kv = c->kv_tiles - 1, cols = schedule_cols(c, kv);
    int last = cols;
    for (int col = cols; col < c->bc; col++)
        if (mask_bit(&tiles[kv], tiles[kv].applied, r, col))
            last = col + 1;
    return kv * c->bc + last;
}

static void vote(struct mask_plan *plan, enum mask_shift shift, int by)
{
    if (by && by >= -MASK_MOVES / 2 && by <= MASK_MOVES / 2)
        plan->votes[shift][by + MASK_MOVES / 2]++;
}

void mask_vote(const struct oracle_case *c, const struct mask_tile *tiles, struct mask_plan *plan)
{
    for (int r = 0; r < c->in_q.rows; r += 2) {
        const struct key_range wanted = schedule_range(c, r);
        const int tail = tail_seen(c, tiles, r);
        struct key_range seen;
        if (tail > c->kv_len && tail < c->kv_tiles * c->bc) { /* ends that the line is cut off at say nothing */
            vote(plan, MASK_TAIL_LINE, tail - c->kv_len - c->q_tile * c->br - r);
            vote(plan, MASK_TAIL_EDGE, tail - c->kv_len);
        }
        if (!seen_range(c, tiles, r, &seen))
            continue;
        /* An edge that all keys end at says nothing. */
        if (seen.last < c->kv_len && wanted.last < c->kv_len) {
            vote(plan, MASK_DIAGONAL, seen.last - wanted.last);
            vote(plan, MASK_CAUSAL_EDGE, seen.last - wanted.last);
            vote(plan, MASK_RIGHT_EDGE, seen.last - wanted.last);
        }
        if (seen.first > 0 && wanted.first > 0) {
            vote(plan, MASK_LEFT_EDGE, seen.first - wanted.first);
            if (seen.last == c->kv_len || wanted.last == c->kv_len)
                vote(plan, MASK_DIAGONAL, seen.first - wanted.first);
        }
    }
}

void mask_plan_close(struct mask_plan *plan)
{
    for (int shift = 0; shift < MASK_SHIFTS; shift++) {
        uint32_t most = 0;
        plan->by[shift] = 0;
        for (int i = 0; i < MASK_MOVES; i++) {
            if (plan->votes[shift][i] <= most)
                continue;
            most = plan->votes[shift][i];
            plan->by[shift] = i - MASK_MOVES / 2;
        }
    }
}

/* Bits of columns first .. last - 1 of a tile, in word w. */
static uint64_t range_bits(struct key_range keys, int first_key, int cols, int w)
{
    const int from = clamped(keys.first - first_key - 64 * w, 0, 64);
    const int to = clamped(clamped(keys.last - first_key, 0, cols) - 64 * w, from, 64);
    const uint64_t below_to = to == 64 ? UINT64_MAX : (UINT64_C(1) << to) - 1;
    const uint64_t below_from = from == 64 ? UINT64_MAX : (UINT64_C(1) << from) - 1;
    return below_to & ~below_from;
}

/* What a shift says of row r, word w of a tile; the tail has a formula of its own, the others are about keys that
   exist. about: the bits it is about. */
static uint64_t shift_bits(const struct oracle_case *c, enum mask_shift shift, struct key_range keys, int kv, int w,
                           uint64_t *about)
{
    const int first = kv * c->bc;
    const uint64_t exist = range_bits((struct key_range){0, c->kv_len}, first, c->bc, w);
    const uint64_t all = range_bits((struct key_range){0, c->kv_tiles * c->bc}, first, c->bc, w);
    const uint64_t bits = range_bits(keys, first, c->bc, w);
    *about = is_of_tail(shift) ? all & ~exist : exist;
    return (shift == MASK_INVERTED ? ~bits : bits) & *about;
}

struct trial {
    const struct oracle_case *c;
    const struct mask_tile *tile;
    enum mask_shift shift;
    int kv, row;
    struct key_range keys;
};

static size_t word_at(const struct trial *t, int row, int w)
{
    return (size_t)row * (size_t)t->tile->words + (size_t)w;
}

/* Whether the wanted mask of another row is what the shift says of this one: then a right mask may look like it. */
static bool agrees(const struct trial *t, int other)
{
    for (int w = 0; w < t->tile->words; w++) {
        uint64_t about;
        const uint64_t bits = shift_bits(t->c, t->shift, t->keys, t->kv, w, &about);
        if ((t->tile->wanted[word_at(t, other, w)] & about) != bits)
            return false;
    }
    return true;
}

enum { CHANCE_ROWS = 8 };

/* All rows have to be explained; those that had a say in choosing a move speak for none. */
static void collect_row(const struct trial *t, struct mask_evidence *e)
{
    uint64_t telling = 0;
    for (int w = 0; w < t->tile->words; w++) {
        uint64_t about;
        const size_t at = word_at(t, t->row, w);
        const uint64_t bits = shift_bits(t->c, t->shift, t->keys, t->kv, w, &about);
        const uint64_t known = t->tile->known[at] & about;
        const uint64_t explained = ~(bits ^ t->tile->applied[at]) & known;
        e->elements += (uint64_t)__builtin_popcountll(known);
        e->explained += (uint64_t)__builtin_popcountll(explained);
        telling += (uint64_t)__builtin_popcountll(explained & (bits ^ t->tile->wanted[at]));
    }
    if (!telling || (facts[t->shift].moves && t->row % 2 == 0))
        return;
    e->telling += telling;
    e->rows++;
    for (int i = 1; i <= CHANCE_ROWS; i++) {
        const int other = (t->row + i * i) % t->tile->rows; /* the next one, and others ever further away */
        if (other == t->row)
            continue;
        e->chance_tried++;
        e->chance_hit += (uint64_t)agrees(t, other);
    }
}

/* Whether a tile has a wrong bit that a shift may be about: of keys that exist, or of the tail. */
static bool is_wrong(const struct oracle_case *c, const struct mask_tile *m, enum mask_shift shift, int kv)
{
    for (int r = 0; r < m->rows; r++) {
        for (int w = 0; w < m->words; w++) {
            uint64_t about;
            const size_t at = (size_t)r * (size_t)m->words + (size_t)w;
            shift_bits(c, shift, (struct key_range){0, 0}, kv, w, &about);
            if ((m->wanted[at] ^ m->applied[at]) & m->known[at] & about)
                return true;
        }
    }
    return false;
}

void mask_collect(const struct oracle_case *c, const struct mask_tile *tiles, const struct mask_plan *plan,
                  struct mask_evidence evidence[MASK_SHIFTS])
{
    for (int shift = 0; shift < MASK_SHIFTS; shift++) {
        for (int kv = 0; kv < c->kv_tiles; kv++) {
            struct trial t = {.c = c, .tile = &tiles[kv], .shift = (enum mask_shift)shift, .kv = kv};
            if (!is_wrong(c, t.tile, t.shift, kv))
                continue;
            for (t.row = 0; t.row < t.tile->rows; t.row++)
                if (mask_shift_range(c, t.shift, plan->by[shift], t.row, &t.keys))
                    collect_row(&t, &evidence[shift]);
        }
    }
}

bool mask_named(const struct mask_evidence *e)
{
    const double chance = ((double)e->chance_hit + 1) / ((double)e->chance_tried + 1);
    return e->elements > 0 && (double)e->explained >= 0.9999 * (double)e->elements && e->telling >= 16 &&
           e->rows >= 16 && (double)e->rows * log(1 / chance) >= 30;
}
