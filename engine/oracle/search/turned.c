/* Rules of RoPE: Q or K is turned otherwise than it should. */
#include "engine/oracle/search/turned.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/values.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The angle of pair i at a position. A table that is read at another pitch gives that of another position. */
static double angle(const struct turned *how, const struct rope *own, double position, int i)
{
    if (how->pitch) {
        const int pairs = own->dim / 2;
        const double at = position * how->pitch + i, row = floor(at / pairs);
        return row * pow(own->base, -2 * (at - row * pairs) / own->dim);
    }
    const double first = pow(how->by.base, -2.0 * i / how->by.dim);
    return position * (how->narrow == ROPE_NARROW_BASE ? bound_round(how->narrow_type, first) : first);
}

static int partner_of(const struct turned *how, int d, int own, int head_dim)
{
    const int pairs = how->by.dim / 2;
    switch (how->partner) {
    case PARTNER_XOR:
        return d ^ pairs;
    case PARTNER_FURTHER:
        return (d + pairs) % head_dim;
    case PARTNER_OF_HEAD:
        return (d + head_dim / 2) % head_dim;
    default:
        return own;
    }
}

/* As `d > rope_dim` for `d >= rope_dim` has it: in halves it is the second one of pair 0 once more, else the first one
   of a pair that is none. */
static void turn_beyond(const struct turned *how, const struct rope *own, double position, const double *x, int n,
                        double *out)
{
    const int d = own->dim, pairs = d / 2;
    const bool half = own->kind == ASC_ROPE_HALF;
    if (how->beyond == BEYOND_NONE || d + 1 >= n)
        return;
    const double by = half                             ? position
                      : how->beyond == BEYOND_BY_TABLE ? position + 1
                                                       : position * pow(own->base, -2.0 * pairs / d);
    out[d] = x[d] * cos(by) + (half ? x[pairs] : -x[d + 1]) * sin(by);
}

void turned_row(const struct turned *how, const struct rope *own, double position, const double *x, int n, double *out)
{
    const int pairs = how->by.dim / 2;
    memcpy(out, x, (size_t)n * sizeof *out);
    for (int i = 0; i < pairs && how->times != 0; i++) {
        int32_t pair[2];
        asc_rope_pair(how->by.kind, how->by.dim, i, pair);
        for (int turn = 0; turn < 2; turn++) {
            const int k = how->reuse == REUSE_SECOND ? !turn : turn, d = pair[k],
                      own_angle = how->angles == how->by.kind    ? i
                                  : how->angles == ASC_ROPE_HALF ? d % pairs
                                                                 : d / 2,
                      at = map_at(&how->which, own_angle);
            const double wide = how->times * angle(how, own, position, at) + how->quarters * M_PI_2;
            const double by = how->narrow == ROPE_NARROW_ANGLE ? bound_round(how->narrow_type, wide) : wide;
            const double both[] = {cos(by), sin(by)};
            const bool narrow = how->narrow == ROPE_NARROW_TABLE;
            const double c = narrow ? bound_round(how->narrow_type, both[0]) : both[0],
                         s = narrow ? bound_round(how->narrow_type, both[1]) : both[1];
            const int partner = partner_of(how, d, pair[!k], n);
            const double other = partner < n ? (how->reuse && turn ? out : x)[partner] : NAN;
            const bool second = how->signs == how->by.kind ? k : how->signs == ASC_ROPE_HALF ? d >= pairs : d % 2;
            out[d] = x[d] * c + (second ? 1 : -1) * other * s;
        }
    }
    turn_beyond(how, own, position, x, n, out);
}

/* Where row `line` of the operand lies in its head, what is there, and its own position. */
static int own_row(const struct sample_tile *t, enum asc_channel ch, int line, int *position)
{
    const struct oracle_case *c = t->c;
    const int row = ch == asc_q ? line : t->kv * c->bc + line;
    *position = (ch == asc_q ? c->q_position : c->k_position) + row;
    return row;
}

double turned_row_before(const struct sample_tile *t, enum asc_channel ch, int line, double *out)
{
    const struct oracle_case *c = t->c;
    const struct matrix *in = codes_input(c, ch);
    int position;
    const int row = own_row(t, ch, line, &position);
    double most = 0;
    for (int d = 0; d < in->cols; d++) {
        out[d] = row < in->rows ? values_element(in, (size_t)(row * in->row_stride + d)) : 0;
        most = fmax(most, fabs(out[d]));
    }
    if (ch != asc_v) /* which nothing turns */
        rope_row(&c->rope, -(double)position, out);
    return most;
}

int turned_index(const struct turned *how, const struct sample_tile *t, enum asc_channel ch, int line, int *plus)
{
    int position;
    const int row = own_row(t, ch, line, &position), of_head = ch == asc_q ? t->at[AXIS_Q_TILE] * t->c->br + row : row;
    *plus = how->from_first ? position - of_head : how->from_key ? t->c->k_position : 0;
    if (how->from_new)
        return row - (t->c->kv_len - t->c->new_keys);
    return how->by_row ? of_head : position;
}

double turned_error(const struct turned *how, const struct oracle_case *c, double position)
{
    const bool computed = !how->pitch && how->times != 0 && how->by.base != c->rope.base;
    return (16 + (computed ? 8 * fabs(position) : 0)) * BOUND_U + 2 * (double)c->conventions.rope_error;
}

int turned_lines(const struct search *search, const struct sample_tile *t, enum asc_channel ch)
{
    return ch == asc_q ? (int)query_rows(t) : search->sample->channel == ch ? t->rows : t->x.cols;
}

/* The operand as the rule has it: where the stage is its own, before it is rounded to its type. */
static void make_operand(const struct search *search, const struct rule *rule, const struct sample_tile *t,
                         enum asc_channel ch, double *out, double *loose)
{
    const int D = oracle_dim(t->c, ch);
    const double fold = ch == asc_q ? values_fold(t->c) : 1;
    double *row = search->rows[2], unit = 0, half_tiny = 0;
    if (rule->turned.reuse || rule->turned.times > 1) /* what is turned again may have been rounded to its type */
        bound_narrow(t->c->turned_type, &unit, &half_tiny);
    for (int line = 0; line < turned_lines(search, t, ch); line++, out += D, loose += D) {
        int plus;
        const int to = map_at(&rule->map, turned_index(&rule->turned, t, ch, line, &plus)) + plus;
        const double most = turned_row_before(t, ch, line, row) * fabs(fold);
        turned_row(&rule->turned, &t->c->rope, to, row, D, out);
        for (int d = 0; d < D; d++) {
            out[d] *= fold;
            loose[d] = (turned_error(&rule->turned, t->c, to) + unit) * most + half_tiny + BOUND_TINY;
        }
    }
}

/* It goes into the scores rounded to its type, up or down: the sizes have that. */
static void replace_operand(const struct search *search, const struct rule *rule, const struct sample_tile *t,
                            enum asc_channel ch, struct operands *x, double *out, double *size)
{
    const int type = values_type(t->c, ch);
    double unit = 0, half_tiny = 0;
    bound_narrow(type < 0 ? t->c->turned_type : (enum dtype)type, &unit, &half_tiny);
    make_operand(search, rule, t, ch, out, size);
    for (int i = 0; i < turned_lines(search, t, ch) * t->c->head_dim; i++)
        size[i] += fabs(out[i]) * (1 + unit) + half_tiny;
    x->of[ch] = (struct operand){out, search->sample->zero, false};
    x->size[ch] = size;
    x->unseen[ch] = true;
}

bool turned_forward(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                    double *bound)
{
    const enum asc_channel stage = search->sample->channel, of = rule->rows.operand;
    struct operands x = t->x;
    if (stage == of && of != asc_s) {
        make_operand(search, rule, t, of, want, bound);
        return true;
    }
    if (of != asc_k)
        replace_operand(search, rule, t, asc_q, &x, search->operand, search->sizes[0]);
    if (of != asc_q)
        replace_operand(search, rule, t, asc_k, &x, search->loose, search->sizes[1]);
    search_formula(search, t, &x, want, bound);
    return true;
}

static void say_pairs(const struct rope *rope, char *out, size_t bytes)
{
    if (rope->kind == ASC_ROPE_HALF)
        snprintf(out, bytes, "(i, i + %d)", rope->dim / 2);
    else
        snprintf(out, bytes, "(2 i, 2 i + 1)");
}

void turned_say(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    const struct turned *how = &rule->turned;
    const struct oracle_case *c = s->tiles[0].c;
    const struct rope *own = &c->rope;
    const enum asc_channel of = rule->rows.operand;
    const char *name = of == asc_q ? "Q is" : of == asc_k ? "K is" : of == asc_v ? "V is" : "Q and K are";
    char words[96], wanted[32];
    size_t n = 0;
#define SAY(...) (n += (size_t)snprintf(out + (n < bytes ? n : bytes - 1), n < bytes ? bytes - n : 1, __VA_ARGS__))
    SAY("%s ", name);
    if (how->times == 0) {
        SAY("not turned by RoPE");
        return;
    }
    SAY("turned");
    if (of == asc_v)
        SAY(" by RoPE, as Q and K alone should be");
    if (how->quarters)
        SAY(how->times == -1 && how->quarters == 1 ? " with sine and cosine exchanged" : " by %d degrees %s than by %s",
            90 * abs(how->quarters), how->quarters > 0 ? "more" : "less",
            how->times == -1 ? "minus its angle" : "its angle");
    else if (how->times == -1)
        SAY(" the other way, by minus the angle");
    else if (how->times == 2 || how->times == 3)
        SAY(how->times == 2 ? " twice" : " three times");
    else if (how->times != 1)
        SAY(" by %g of the angle", how->times);
    if (how->narrow)
        SAY(" by %s rounded to %s",
            how->narrow == ROPE_NARROW_TABLE   ? "sines and cosines that are"
            : how->narrow == ROPE_NARROW_ANGLE ? "an angle that is"
                                               : "angles of which those of position 1 are",
            dtype_name(how->narrow_type));
    if (how->reuse)
        SAY(" in place: the %s element of each pair is made of the %s one that is turned already",
            how->reuse == REUSE_FIRST ? "second" : "first", how->reuse == REUSE_FIRST ? "first" : "second");
    if (how->partner == PARTNER_XOR)
        SAY(" with element d xor %d for the other one of its pair", own->dim / 2);
    else if (how->partner)
        SAY(" with element (d + %d) mod %d for the other one of its pair",
            (how->partner == PARTNER_FURTHER ? own->dim : c->head_dim) / 2, c->head_dim);
    if (how->beyond)
        SAY(" one element too far: element %d too, which lies behind rope_dim", own->dim);
    const char *and = "";
    if (how->by.kind != own->kind) {
        say_pairs(&how->by, words, sizeof words);
        say_pairs(own, wanted, sizeof wanted);
        SAY(" in pairs %s where they are %s", words, wanted);
        and = ",";
    }
    if (how->angles != how->by.kind) {
        SAY("%s with the angles of the other pairing: element d has that of pair %s", and,
            how->angles == ASC_ROPE_HALF ? "d mod (rope_dim / 2)" : "d / 2");
        and = ",";
    }
    if (how->which.kind != MAP_SAME) {
        map_words(&how->which, "i", words, sizeof words);
        SAY("%s with the angle of pair %s where that of pair i is wanted", and, words);
        and = ",";
    }
    if (how->signs != how->by.kind) {
        SAY("%s with the sine's sign by the other pairing: an element is taken for the second one of its pair by %s",
            and, how->signs == ASC_ROPE_HALF ? "its half" : "its parity");
        and = ",";
    }
    if (how->by.dim != own->dim) {
        SAY("%s in %d elements where rope_dim is %d", and, how->by.dim, own->dim);
        and = ",";
    }
    if (how->pitch) {
        SAY("%s by tables that are read as if a position had %d angles, not %d", and, how->pitch, own->dim / 2);
        and = ",";
    } else {
        const double base = how->by.dim == own->dim ? own->base : pow(own->base, (double)how->by.dim / own->dim);
        if (how->by.dim == own->dim && c->head_dim != own->dim &&
            fabs(how->by.base - pow(own->base, (double)own->dim / c->head_dim)) <= 1e-6 * how->by.base)
            SAY("%s by angles that go by head_dim (%d), not rope_dim (%d)", and, c->head_dim, own->dim);
        else if (fabs(how->by.base - base) > 1e-6 * base)
            SAY("%s by angles of base %g%s", and, how->by.base, how->by.dim == own->dim ? "" : " for these elements");
        if (how->by.dim == own->dim && how->by.base != own->base &&
            !(c->head_dim != own->dim &&
              fabs(how->by.base - pow(own->base, (double)own->dim / c->head_dim)) <= 1e-6 * how->by.base))
            SAY(", not %g", own->base);
    }
    if (!how->by_row && rule->map.kind == MAP_SAME)
        return;
    const char *row = of == asc_q ? "i" : "j", *whose = of == asc_q ? "query" : "key";
    map_words(&rule->map, how->by_row ? row : "p", words, sizeof words);
    if (how->from_first)
        SAY("%s by the position of %s %s where that of %s %s is wanted", and, whose, words, whose, row);
    else if (how->from_new)
        SAY("%s by position %s, %s being the number of the key among the new ones, and not by its own", and, words,
            row);
    else if (how->by_row && how->from_key && c->k_position)
        SAY("%s by position %s + %d, %s being the %s, and not by its own", and, words, c->k_position, row, whose);
    else if (how->by_row)
        SAY("%s by position %s, %s being the %s, and not by its own", and, words, row, whose);
    else
        SAY("%s by position %s where p is its own", and, words);
#undef SAY
}
