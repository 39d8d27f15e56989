/* Rules of RoPE: Q or K is turned otherwise than by its position. What a row would be is made of the row as it should
   be, turned back; which position it was turned by is looked for, row by row, among those that there may be. */
#include "engine/oracle/search/propose.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/element.h"
#include "engine/oracle/values.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The angle of pair i at a position. A table that is read at another pitch gives that of another position. */
static double angle(const struct turned *how, const struct rope *own, double position, int i)
{
    if (how->pitch) {
        const double at = position * how->pitch + i, row = floor(at / (own->dim / 2));
        return row * pow(own->base, -2 * (at - row * (own->dim / 2)) / own->dim);
    }
    return position * pow(how->by.base, -2.0 * i / how->by.dim);
}

/* Turns a row as the rule has it: elements of a pair may have angles of their own. */
static void turn_row(const struct turned *how, const struct rope *own, double position, const double *x, int n,
                     double *out)
{
    const int pairs = how->by.dim / 2;
    memcpy(out, x, (size_t)n * sizeof *out);
    for (int i = 0; i < pairs && how->times != 0; i++) {
        int32_t pair[2];
        asc_rope_pair(how->by.kind, how->by.dim, i, pair);
        for (int k = 0; k < 2; k++) {
            const int d = pair[k], at = how->angles == how->by.kind    ? i
                                        : how->angles == ASC_ROPE_HALF ? d % pairs
                                                                       : d / 2;
            const double by = how->times * angle(how, own, position, at);
            out[d] = x[d] * cos(by) + (k ? 1 : -1) * x[pair[!k]] * sin(by);
        }
    }
}

/* Where row `line` of the operand lies in its head, what is there, and its own position. */
static int own_row(const struct sample_tile *t, enum asc_channel ch, int line, int *position)
{
    const struct oracle_case *c = t->c;
    const int row = ch == asc_q ? line : t->kv * c->bc + line;
    *position = (ch == asc_q ? c->q_position : c->k_position) + row;
    return row;
}

/* The row as the launch was given it, to within 4 u of its pairs' lengths; returns its largest magnitude. */
static double row_before(const struct sample_tile *t, enum asc_channel ch, int line, double *out)
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
    rope_row(&c->rope, -(double)position, out);
    return most;
}

/* What a map of positions is asked of: the row's number in its head, or its own position; and what is added to what it
   says. */
static int index_of(const struct turned *how, const struct sample_tile *t, enum asc_channel ch, int line, int *plus)
{
    int position;
    const int row = own_row(t, ch, line, &position), of_head = ch == asc_q ? t->at[AXIS_Q_TILE] * t->c->br + row : row;
    *plus = how->from_first ? position - of_head : how->from_key ? t->c->k_position : 0;
    return how->by_row ? of_head : position;
}

/* Relative to a row's largest magnitude: both turns and the constant of a fold; and where the angles are the kernel's
   own, which as f32 are off by a few roundings of themselves. */
static double error_of(const struct turned *how, const struct oracle_case *c, double position)
{
    const bool computed = !how->pitch && how->times != 0 && how->by.base != c->rope.base;
    return (16 + (computed ? 8 * fabs(position) : 0)) * BOUND_U + 2 * (double)c->conventions.rope_error;
}

static int lines_of(const struct search *search, const struct sample_tile *t, enum asc_channel ch)
{
    return ch == asc_q ? (int)query_rows(t) : search->sample->channel == asc_k ? t->rows : t->x.cols;
}

/* The operand as the rule has it: where the stage is its own, before it is rounded to its type. */
static void make_operand(const struct search *search, const struct rule *rule, const struct sample_tile *t,
                         enum asc_channel ch, double *out, double *loose)
{
    const int D = t->c->head_dim;
    const double fold = ch == asc_q ? values_fold(t->c) : 1;
    double *row = search->rows[2];
    for (int line = 0; line < lines_of(search, t, ch); line++, out += D, loose += D) {
        int plus;
        const int to = map_at(&rule->map, index_of(&rule->turned, t, ch, line, &plus)) + plus;
        const double most = row_before(t, ch, line, row) * fabs(fold);
        turn_row(&rule->turned, &t->c->rope, to, row, D, out);
        for (int d = 0; d < D; d++) {
            out[d] *= fold;
            loose[d] = error_of(&rule->turned, t->c, to) * most + BOUND_TINY;
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
    for (int i = 0; i < lines_of(search, t, ch) * t->c->head_dim; i++)
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

static struct rule plain(const struct search *search, enum asc_channel operand)
{
    struct rule rule = rule_new(RULE_TURNED);
    const struct oracle_case *c = search->sample->tiles[0].c;
    rule.rows.operand = operand;
    rule.turned = (struct turned){.by = c->rope, .angles = c->rope.kind, .times = 1};
    rule.cost = 3;
    return rule;
}

static void try_if_any(struct search *search, struct rule *rule)
{
    if (!rule_is_hopeless(search, rule))
        rule_try(search, rule);
}

/* Another number of elements, of angles that go on, that begin anew for so many, or that a table gives that is read as
   if it had so many. */
static void try_dims(struct search *search, const struct rule *from)
{
    const struct oracle_case *c = search->sample->tiles[0].c;
    const int own = c->rope.dim, dims[] = {own, c->head_dim, own / 2, own / 4, c->head_dim / 2, c->head_dim / 4};
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
        for (int how = 0; how < 4; how++) {
            struct rule rule = *from;
            const int pitches[] = {0, 0, own / 2, dims[i] / 2};
            if (dims[i] < 2 || dims[i] % 2 || dims[i] > c->head_dim || (dims[i] == own && how < 3))
                continue;
            rule.turned.by.dim = dims[i];
            rule.turned.by.base = how == 1 ? c->rope.base : pow(c->rope.base, (double)dims[i] / own);
            rule.turned.pitch = dims[i] == own ? c->head_dim / 2 : pitches[how];
            rule.cost += 5;
            if (rule.turned.pitch != own / 2 || dims[i] != own)
                try_if_any(search, &rule);
        }
}

static void try_bases(struct search *search, const struct rule *from)
{
    static const double bases[] = {10000, 100, 1000, 100000, 150000, 500000, 1000000, 5000000, 10000000};
    const struct rope *own = &from->turned.by;
    const int head_dim = search->sample->tiles[0].c->head_dim;
    for (size_t i = 0; i <= sizeof bases / sizeof *bases; i++) {
        struct rule rule = *from;
        rule.turned.by.base = i < sizeof bases / sizeof *bases ? bases[i] : pow(own->base, (double)own->dim / head_dim);
        rule.cost += 6;
        if (rule.turned.by.base != own->base)
            try_if_any(search, &rule);
    }
}

static void try_variants(struct search *search, enum asc_channel operand)
{
    static const double times[] = {0, -1, 2, 3, 0.5, 0.25, 0.125};
    const struct rule own = plain(search, operand);
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        struct rule rule = own;
        rule.turned.times = times[i];
        try_if_any(search, &rule);
    }
    const int other = own.turned.by.kind == ASC_ROPE_HALF ? ASC_ROPE_INTERLEAVED : ASC_ROPE_HALF;
    for (int i = 1; i < 4; i++) {
        struct rule rule = own;
        rule.turned.by.kind = i & 1 ? other : own.turned.by.kind;
        rule.turned.angles = i & 2 ? other : own.turned.by.kind;
        try_if_any(search, &rule);
    }
    try_dims(search, &own);
    try_bases(search, &own);
}

/* Whether the row, turned so, is what was captured of Q or K, or gives the scores that were: all that were looked at.
 */
static bool row_fits(const struct search *search, const struct rule *rule, const struct sample_tile *t, int line,
                     const double *before, double most, double *row, double position)
{
    enum { SCORES = 6, LEAST = 3 };
    const enum asc_channel of = rule->rows.operand, stage = search->sample->channel;
    const int D = t->c->head_dim, type = values_type(t->c, of);
    const double fold = of == asc_q ? values_fold(t->c) : 1;
    const double factor = values_factor(t->c->conventions.s_unit, t->c->scale) / values_fold(t->c);
    int told = 0;
    turn_row(&rule->turned, &t->c->rope, position, before, D, row);
    for (int d = 0; d < D && stage == of; d++) {
        const size_t i = (size_t)line * (size_t)D + (size_t)d;
        if (t->cell[i] != CELL_SILENT &&
            !element_within(t->type, t->got[i], row[d] * fold, error_of(&rule->turned, t->c, position) * most))
            return false;
        told += t->cell[i] == CELL_WRONG;
    }
    for (int d = 0; d < D && stage != of; d++)
        row[d] = type < 0 ? row[d] * fold : bound_round((enum dtype)type, row[d] * fold);
    for (int k = 0; k < (of == asc_q ? t->cols : t->rows) && stage != of && told < SCORES; k++) {
        const size_t at =
            of == asc_q ? (size_t)line * (size_t)t->cols + (size_t)k : (size_t)k * (size_t)t->cols + (size_t)line;
        const double *y = t->x.of[of == asc_q ? asc_k : asc_q].value + (size_t)k * (size_t)D;
        const double *own = t->x.of[of].value + (size_t)line * (size_t)D;
        double moved = 0;
        if (!is_wrong_number(t, at))
            continue;
        for (int d = 0; d < D; d++)
            moved += y[d] * (row[d] - own[d]);
        if (fabs(t->got[at] - t->want[at] - factor * moved) > 4 * t->bound[at] + 1e-6 * fabs(t->got[at]))
            return false;
        told++;
    }
    return told >= LEAST;
}

enum { ROWS_LOOKED_AT = 48, NEAR = 2048, AMBIGUOUS = -1 };

/* The position from `first` to `last` that a row was turned by; *found stays as it is where there is none. */
static void look_for_position(const struct search *search, const struct rule *rule, const struct sample_tile *t,
                              int line, int first, int last, int *found)
{
    double *before = search->rows[2], *row = search->rows[3];
    const double most = row_before(t, rule->rows.operand, line, before);
    for (int p = first; p <= last && *found != AMBIGUOUS; p++)
        if (row_fits(search, rule, t, line, before, most, row, p))
            *found = *found == INT_MAX ? p : AMBIGUOUS;
}

/* Counted from 0, to beyond the last one; where positions begin far from 0, near to that as well. */
static bool find_position(const struct search *search, const struct rule *rule, const struct sample_tile *t, int line,
                          int *found)
{
    const struct oracle_case *c = t->c;
    const int longest = c->kv_len > c->q_len ? c->kv_len : c->q_len, reach = 2 * (longest < NEAR ? longest : NEAR);
    const bool far = c->k_position > reach;
    *found = INT_MAX;
    look_for_position(search, rule, t, line, 0, far ? reach : c->k_position + reach, found);
    if (far)
        look_for_position(search, rule, t, line, c->k_position - reach > reach ? c->k_position - reach : reach + 1,
                          c->k_position + reach, found);
    return *found != INT_MAX && *found != AMBIGUOUS;
}

/* Rows, and the position that each was turned by. */
struct positions {
    struct {
        int tile, line, position;
    } at[ROWS_LOOKED_AT];
    size_t n;
};

static void look_at_tile(const struct search *search, const struct rule *rule, int tile, int step, struct positions *p)
{
    const struct sample_tile *t = &search->sample->tiles[tile];
    const int lines = lines_of(search, t, rule->rows.operand);
    for (int line = tile % step; line < lines && p->n < ROWS_LOOKED_AT; line += step) {
        p->at[p->n].tile = tile;
        p->at[p->n].line = line;
        p->n += find_position(search, rule, t, line, &p->at[p->n].position);
    }
}

static void try_positions(struct search *search, struct rule rule)
{
    enum { TILES = 8, LEAST = 8 };
    const struct sample *s = search->sample;
    const struct oracle_case *c = s->tiles[0].c;
    const double cost = rule.cost;
    struct positions p = {.n = 0};
    int tiles = 0;
    for (int k = 0; k < s->n && tiles < TILES; k++)
        if (wrong_cells(&s->tiles[k]) >= LEAST) {
            look_at_tile(search, &rule, k, 1 + lines_of(search, &s->tiles[k], rule.rows.operand) / TILES, &p);
            tiles++;
        }
    if (p.n < LEAST)
        return;
    /* A map of positions; of rows, to positions, to rows, to what is added to the first key's position. */
    for (int way = 0; way < 4; way++) {
        struct pair pairs[ROWS_LOOKED_AT];
        rule.turned.by_row = way > 0;
        rule.turned.from_first = way == 2;
        rule.turned.from_key = way == 3;
        for (size_t i = 0; i < p.n; i++) {
            int plus;
            pairs[i].from = index_of(&rule.turned, &s->tiles[p.at[i].tile], rule.rows.operand, p.at[i].line, &plus);
            pairs[i].to = p.at[i].position - plus;
        }
        rule.cost = cost + 3 + way + map_fit(pairs, p.n, c->k_position + c->kv_len + c->q_len, &rule.map);
        if (rule.cost < INFINITY && (way == 1 || way == 3 || rule.map.kind != MAP_SAME))
            rule_try(search, &rule);
    }
}

void propose_rope(struct search *search)
{
    const enum asc_channel stage = search->sample->channel;
    const struct oracle_case *c = search->sample->tiles[0].c;
    const bool itself = stage == asc_q || stage == asc_k;
    const enum asc_channel operands[] = {itself ? stage : asc_q, asc_k, asc_s};
    if (!c->rope.kind || (!itself && stage != asc_s))
        return;
    for (int i = 0; i < (itself ? 1 : 3); i++)
        try_variants(search, operands[i]);
    for (int i = 0; i < (itself ? 1 : 2) && !search_is_settled(search); i++) {
        if (!itself && (c->softcap > 0 || c->score_mod))
            continue;
        struct rule rule = plain(search, operands[i]);
        try_positions(search, rule);
        rule.turned.by.kind = rule.turned.angles = c->rope.kind == ASC_ROPE_HALF ? ASC_ROPE_INTERLEAVED : ASC_ROPE_HALF;
        rule.cost += 2;
        if (!search_is_settled(search))
            try_positions(search, rule);
    }
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
    const char *name = of == asc_q ? "Q is" : of == asc_k ? "K is" : "Q and K are";
    char words[96], wanted[32];
    size_t n = 0;
#define SAY(...) (n += (size_t)snprintf(out + (n < bytes ? n : bytes - 1), n < bytes ? bytes - n : 1, __VA_ARGS__))
    SAY("%s ", name);
    if (how->times == 0) {
        SAY("not turned by RoPE");
        return;
    }
    SAY("turned");
    if (how->times == -1)
        SAY(" the other way, by minus the angle");
    else if (how->times == 2 || how->times == 3)
        SAY(how->times == 2 ? " twice" : " three times");
    else if (how->times != 1)
        SAY(" by %g of the angle", how->times);
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
    else if (how->by_row && how->from_key && c->k_position)
        SAY("%s by position %s + %d, %s being the %s, and not by its own", and, words, c->k_position, row, whose);
    else if (how->by_row)
        SAY("%s by position %s, %s being the %s, and not by its own", and, words, row, whose);
    else
        SAY("%s by position %s where p is its own", and, words);
#undef SAY
}
