/* Rules of edits. RULE_OPERAND: the formula's operand is rounded, cut off at a limit, or moved. RULE_SCORE: what joins
   a score beside the product does so otherwise: soft cap, attention bias, ALiBi. What each gives, and the words
   of RULE_SCORE. */
#include "engine/oracle/search/rule.h"

#include "engine/oracle/bias.h"
#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/search/constant.h"
#include "engine/oracle/values.h"
#include "engine/trace/layout.h"
#include <stdio.h>
#include <string.h>

/* The operand of the stage that a rule edits; value NULL: the stage has none. */
static struct operand *operand_of(struct operands *x, enum asc_channel operand, enum asc_channel stage)
{
    if (operand == asc_p)
        return stage == asc_l ? &x->l_p : &x->pv_p;
    return operand == asc_s ? &x->s : operand == asc_u ? &x->u_prev : &x->of[operand];
}

static size_t values_of(const struct sample_tile *t, enum asc_channel operand)
{
    const size_t R = (size_t)t->c->in_q.rows, C = (size_t)t->x.cols, D = (size_t)oracle_dim(t->c, operand);
    return operand == asc_q || operand == asc_u ? R * D : operand == asc_p || operand == asc_s ? R * C : C * D;
}

/* The operand as it was at the tile visited before or next. */
static bool turn_forward(const struct search *search, const struct rule *rule, const struct sample_tile *t,
                         double *want, double *bound)
{
    const int at = rule->turns < 0 ? t->before : t->next;
    const struct sample_tile *other = at >= 0 ? &search->sample->tiles[at] : NULL;
    struct operands x = t->x, theirs;
    if (!other || other->x.cols != x.cols || query_rows(other) != query_rows(t))
        return false;
    theirs = other->x;
    *operand_of(&x, rule->rows.operand, search->sample->channel) =
        *operand_of(&theirs, rule->rows.operand, search->sample->channel);
    search_formula(search, t, &x, want, bound);
    return true;
}

int operand_type(const struct oracle_case *c, enum asc_channel operand)
{
    enum dtype type;
    if (operand != asc_p)
        return values_type(c, operand);
    return values_p_type(c, &type) ? (int)type : -1;
}

/* The number that the bits of x are in another type of their size; a byte that is i32 is one without a sign. */
static double read_as(enum dtype own, enum dtype other, double x)
{
    uint64_t bits = 0;
    if (own == DTYPE_U8)
        x += ASC_U8_MIDPOINT;
    dtype_store(own, &bits, 0, x);
    if (other == DTYPE_I32)
        return (double)(uint8_t)bits;
    return other == DTYPE_U8 ? values_code(other, (uint8_t)bits) : dtype_load(other, &bits, 0);
}

/* Q, K or V itself: of codes that become values each is one, times its scale. */
static bool input_forward(const struct rule *rule, const struct sample_tile *t, double *want, double *bound)
{
    const enum asc_channel of = rule->rows.operand;
    const struct coding *coding = codes_of(t->c, of);
    const int first = of == asc_q ? 0 : t->kv * t->c->bc;
    if (rule->reads && (codes_use(t->c, of) != CODES_DESCALED || coding->quantized))
        return false;
    for (size_t i = 0; i < sample_cells(t); i++) {
        const double step = codes_step(t->c, of, first + (int)(i / (size_t)t->cols), (int)(i % (size_t)t->cols)),
                     by = rule->plus * step - (rule->behind_scale ? rule->plus : 0);
        want[i] = t->want[i] + by;
        bound[i] = t->bound[i] + 4 * BOUND_U * (fabs(by) + (rule->behind_scale ? fabs(rule->plus) * (1 + step) : 0));
        if (rule->reads)
            want[i] = step * read_as(codes_input(t->c, of)->dtype, rule->type, t->want[i] / step);
    }
    return true;
}

/* Codes of Q and of K, both moved; or their numbers, both read as another type's. */
static bool both_forward(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                         double *bound)
{
    struct operands x = t->x;
    double *const moved[] = {[asc_q] = search->operand, [asc_k] = search->loose};
    for (int of = asc_q; of <= asc_k; of++) {
        const int own = operand_type(t->c, (enum asc_channel)of);
        if (rule->reads && (own < 0 || dtype_bytes((enum dtype)own) != dtype_bytes(rule->type) || !x.of[of].value))
            return false;
        for (size_t i = 0; i < values_of(t, (enum asc_channel)of); i++)
            moved[of][i] =
                rule->reads ? read_as((enum dtype)own, rule->type, x.of[of].value[i]) : x.of[of].value[i] + rule->plus;
        x.of[of].value = x.size[of] = moved[of];
    }
    search_formula(search, t, &x, want, bound);
    return true;
}

/* What an element of Q or K that may be either of two numbers leaves open of S, whose formula takes them to be exact.
 */
static void loosen_scores(const struct sample_tile *t, const struct operands *x, enum asc_channel of, double *bound)
{
    const struct oracle_case *c = t->c;
    const int D = c->head_dim, C = x->cols;
    const double factor = fabs(values_factor(c->conventions.s_unit, c->scale) / values_fold(c));
    const double *loose = x->of[of].loose, *other = x->of[of == asc_q ? asc_k : asc_q].value;
    for (size_t k = 0; k < values_of(t, of); k++) {
        const int line = (int)k / D, d = (int)k % D;
        for (int i = 0; loose[k] > 0 && i < (of == asc_q ? C : c->in_q.rows); i++) {
            const int r = of == asc_q ? line : i, col = of == asc_q ? i : line;
            const double by = x->scales_s ? fabs(x->by_q[r] * x->by_k[col]) : 1;
            bound[r * C + col] += factor * by * loose[k] * fabs(other[i * D + d]);
        }
    }
}

bool operand_forward(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                     double *bound)
{
    const enum asc_channel of = rule->rows.operand, stage = search->sample->channel;
    struct operands x = t->x;
    if (of == stage)
        return of == asc_s ? both_forward(search, rule, t, want, bound) : input_forward(rule, t, want, bound);
    struct operand *it = operand_of(&x, of, stage);
    double unit = 0, half_tiny = 0;
    const int own = operand_type(t->c, of);
    if (rule->turns)
        return it->value && turn_forward(search, rule, t, want, bound);
    if (!it->value || (rule->reads && (own < 0 || dtype_bytes((enum dtype)own) != dtype_bytes(rule->type))))
        return false;
    if (rule->type != DTYPE_COUNT)
        bound_narrow(rule->type, &unit, &half_tiny);
    /* P as it was recorded: what is rounded has not been rounded to the declared type before. */
    const struct operand from =
        of == asc_p && rule->type != DTYPE_COUNT && (!rule->reads || rule->cuts) ? t->x.of[asc_p] : *it;
    const int line = of == asc_p ? t->x.cols : (int)oracle_dim(t->c, of);
    for (size_t i = 0; i < values_of(t, of); i++) {
        double v = rule->factor * from.value[i] + rule->plus;
        const double loose = from.loose[i];
        if (rule->of_terms && !term_holds(&rule->keys, of == asc_v ? (int)i / line : (int)i % line)) {
            search->operand[i] = it->value[i];
            search->loose[i] = it->loose[i];
            continue;
        }
        search->loose[i] = loose > 0 ? loose + (1 + rule->cuts) * (unit * (fabs(v) + loose) + half_tiny) : 0;
        if (rule->reads)
            v = rule->cuts ? read_as(rule->type, (enum dtype)own, v) : read_as((enum dtype)own, rule->type, v);
        else if (rule->limit > 0)
            v = rule_rounded(rule, v);
        else if (rule->type != DTYPE_COUNT && isfinite(v) && (rule->weight != 1 || rule->factor != 1)) {
            double off = 2 * BOUND_U * fabs(v * rule->weight) + loose * rule->weight;
            v = rule_rounded_near(rule, v * rule->weight, &off) / rule->weight;
            search->loose[i] = off / rule->weight;
            if (of == asc_p && own >= 0)
                v = bound_round_unlimited((enum dtype)own, v);
        } else if (rule->type != DTYPE_COUNT && isfinite(v))
            v = rule_rounded(rule, v);
        search->operand[i] = v;
    }
    *it = (struct operand){search->operand, search->loose, false};
    if ((int)of < INPUTS)
        x.size[of] = search->operand;
    search_formula(search, t, &x, want, bound);
    /* What is beyond the type's numbers stays infinite, divided by l: a formula of operands says nothing of it. */
    for (size_t i = 0; i < values_of(t, of) && stage == asc_o && of == asc_u; i++)
        if (isinf(search->operand[i]) && isfinite(from.value[i])) {
            want[i] = search->operand[i];
            bound[i] = 0;
        }
    if (stage == asc_s && of <= asc_k && rule->type != DTYPE_COUNT && !rule->reads)
        loosen_scores(t, &x, of, bound);
    return true;
}

static const struct matrix *bias_of(const struct rule *rule, const struct oracle_case *c)
{
    return rule->bias_of == BIAS_OWN ? &c->bias : &c->other_bias[rule->bias_of];
}

/* What ALiBi adds to the scores where it counts otherwise. */
static void count_distances(const struct search *search, const struct places *places, const struct sample_tile *t,
                            const struct oracle_case *c, double *out, double *size)
{
    const int above = t->at[AXIS_Q_TILE] * c->br;
    struct oracle_case corner = *c;
    if (places->other_corner)
        corner.causal = c->causal == ASC_CAUSAL_TOP_LEFT ? ASC_CAUSAL_BOTTOM_RIGHT : ASC_CAUSAL_TOP_LEFT;
    for (int r = 0; r < c->in_q.rows; r++)
        for (int col = 0; col < t->x.cols; col++) {
            const int row = packed_row(search, t, places->packed, above + r) - above;
            const double i = (double)schedule_diagonal(&corner, row) - (places->row_of_tile ? above : 0),
                         j = (places->col_of_tile ? 0 : t->kv * c->bc) + (places->lane ? col % 32 : col);
            const double by[DISTANCES] = {[DISTANCE_AWAY] = -fabs(i - j),
                                          [DISTANCE_BEFORE] = j - i,
                                          [DISTANCE_BEHIND] = i - j,
                                          [DISTANCE_APART] = fabs(i - j),
                                          [DISTANCE_KEY] = j};
            const size_t at = (size_t)r * (size_t)t->x.cols + (size_t)col;
            out[at] = c->alibi_slope * by[places->distance];
            size[at] = fabs(out[at]);
        }
}

/* NaN: there is none. */
static double bias_read(const struct rule *rule, const struct sample_tile *t, const struct matrix *m, int r, int col)
{
    const struct places *places = &rule->places;
    const int above = t->at[AXIS_Q_TILE] * t->c->br, before = t->kv * t->c->bc, row = map_at(&rule->map, r),
              key = before + map_at(&rule->col_map, col);
    if (!places->row_step && (row < 0 || row >= m->rows || key < 0 || key >= m->cols))
        return NAN;
    if (!places->row_step)
        return dtype_load(m->dtype, m->data, (size_t)(row * m->row_stride + key));
    const int at = (places->row_of_tile ? r : above + r) * places->row_step +
                   (places->col_of_tile ? col : before + col) * places->col_step;
    const unsigned char *first =
        (const unsigned char *)m->data - (size_t)(above * m->row_stride) * dtype_bytes(m->dtype);
    return at < t->c->q_len * t->c->kv_len ? dtype_load(m->dtype, first, (size_t)at) : NAN;
}

/* The bias of all scores as the rule has it, in search->operand, and the magnitudes of its terms in search->loose. */
static void edit_bias(struct search *search, const struct rule *rule, const struct sample_tile *t,
                      const struct oracle_case *edited)
{
    const struct matrix *tensor = bias_of(rule, t->c);
    struct oracle_case slopes = *edited;
    slopes.bias.data = NULL;
    bias_tile(&slopes, t->kv, t->x.cols, search->operand, search->loose);
    if (rule->places.distance != DISTANCE_OWN)
        count_distances(search, &rule->places, t, edited, search->operand, search->loose);
    for (int r = 0; r < t->c->in_q.rows && edited->bias.data; r++) {
        for (int col = 0; col < t->x.cols; col++) {
            const size_t i = (size_t)r * (size_t)t->x.cols + (size_t)col;
            const double read = bias_read(rule, t, tensor, r, col),
                         b = rule->weight * (rule->type == DTYPE_COUNT ? read : rule_rounded(rule, read));
            search->operand[i] += b;
            search->loose[i] += fabs(b);
        }
    }
}

/* A cap tanh(B x / cap) is cap' tanh(x' / cap') with cap' = A cap and x' = A B x: the rule's old_factor is A, its
   factor A B. limit 1: in its place scores go no further than the cap; below 0: they get a soft cap of -limit that
   nobody asked for, behind all else. */
bool score_forward(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                   double *bound)
{
    struct oracle_case c = *t->c;
    struct sample_tile edited = *t;
    struct operands x = t->x;
    const int head = map_at(&rule->rows.head, t->at[AXIS_HEAD]);
    if (search->sample->channel != asc_s || values_capped_later(&c) || values_biased_later(&c) ||
        (rule->bias_of != BIAS_OWN && !bias_of(rule, &c)->data))
        return false;
    c.scale *= rule->factor;
    c.softcap *= rule->old_factor;
    if (rule->rows.head.kind != MAP_SAME) {
        if (!search->slopes || head < 0 || head >= search->heads)
            return false;
        c.alibi_slope = (double)search->slopes[head];
    }
    c.alibi_slope *= rule->power;
    if (rule->weight == 0)
        c.bias.data = NULL;
    if (bias_terms(&c)) {
        edit_bias(search, rule, t, &c);
        x.bias = search->operand;
        x.bias_size = search->loose;
    }
    edited.c = &c;
    search_formula(search, &edited, &x, want, bound);
    const double most = rule->limit * t->c->softcap / values_natural_s(&c);
    for (size_t i = 0; i < sample_cells(t) && most > 0; i++)
        want[i] = isfinite(want[i]) ? fmax(fmin(want[i], most), -most) : want[i];
    const double cap = -rule->limit / values_natural_s(&c);
    for (size_t i = 0; i < sample_cells(t) && cap > 0; i++)
        if (isfinite(want[i])) {
            want[i] = cap * tanh(want[i] / cap);
            bound[i] += bound_tanh(&c) * fabs(want[i]);
        }
    /* The edited case's unit of S is another where it depends on scale or cap: back to the kernel's. */
    const double unit = values_natural_s(&c) / values_natural_s(t->c);
    for (size_t i = 0; i < sample_cells(t) && unit != 1; i++) {
        if (isfinite(want[i])) {
            want[i] *= unit;
            bound[i] = fabs(unit) * bound[i] + BOUND_U * fabs(want[i]);
        }
    }
    /* A number more and its product. */
    rule_loosen(t, want, bound, 2);
    return true;
}

static void say_times(const struct sample *s, const char *what, double factor, char *out, size_t bytes)
{
    char number[160];
    constant_say(s->tiles[0].c, factor, number, sizeof number);
    if (factor == 0)
        snprintf(out, bytes, "%s is not added", what);
    else if (factor == -1)
        snprintf(out, bytes, "%s has the wrong sign", what);
    else
        snprintf(out, bytes, "%s is multiplied by %s", what, number);
}

static void say_cap(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    char cap[160] = "", inner[160] = "";
    const double by = rule->factor / rule->old_factor, of = s->tiles[0].c->softcap;
    if (rule->limit > 0) {
        snprintf(out, bytes, "scores are cut off at the soft cap: min(max(x, -cap), cap), not cap tanh(x / cap)");
        return;
    }
    if (rule->limit < 0) {
        const double cap = -rule->limit / values_natural_s(s->tiles[0].c); /* of S as it is recorded */
        snprintf(out, bytes, "S gets a soft cap that nobody asked for%s: %.6g tanh(s / %.6g)",
                 s->tiles[0].c->score_mod ? ", behind the formula" : "", cap, cap);
        return;
    }
    if (fabs(rule->old_factor * of * of - 1) < 1e-6 && rule->factor == 1) {
        snprintf(out, bytes,
                 "S = tanh(cap x) / cap, x being the score before the soft cap: cap and 1 / cap are exchanged");
        return;
    }
    if (rule->old_factor == 0) {
        constant_say(s->tiles[0].c, rule->factor, inner, sizeof inner);
        snprintf(out, bytes, "the soft cap is not applied%s%s", rule->factor == 1 ? "" : ", and the score is times ",
                 rule->factor == 1 ? "" : inner);
        return;
    }
    if (rule->old_factor != 1)
        constant_say(s->tiles[0].c, rule->old_factor, cap, sizeof cap);
    if (by != 1)
        constant_say(s->tiles[0].c, by, inner, sizeof inner);
    snprintf(out, bytes, "S = %s%scap tanh(%s%sx / cap), x being the score before the soft cap", cap, cap[0] ? " " : "",
             inner, inner[0] ? " " : "");
}

static void say_places(const struct places *p, char *out, size_t bytes)
{
    char packed[96] = "";
    static const char *const by[DISTANCES] = {[DISTANCE_AWAY] = "-|i - j|",
                                              [DISTANCE_BEFORE] = "(j - i)",
                                              [DISTANCE_BEHIND] = "(i - j)",
                                              [DISTANCE_APART] = "|i - j|",
                                              [DISTANCE_KEY] = "j"};
    const char *j = p->lane          ? (p->col_of_tile ? "the key's lane" : "the tile's first key and the lane")
                    : p->col_of_tile ? "the column of the kv tile"
                                     : "the key";
    if (p->packed)
        snprintf(packed, sizeof packed, " of row r * %d + g, g being the head's number in its group", p->packed);
    if (p->row_step) {
        snprintf(out, bytes, "the attention bias is read at i * %d + j * %d, i being the row%s, j %s", p->row_step,
                 p->col_step, p->row_of_tile ? " of the q tile" : "", j);
    } else if (p->other_corner && !p->row_of_tile && !p->col_of_tile && p->distance == DISTANCE_AWAY) {
        snprintf(out, bytes, "ALiBi counts distances from the diagonal of the other corner");
    } else if (p->distance == DISTANCE_KEY) {
        snprintf(out, bytes, "ALiBi adds slope j, j being %s", j);
    } else {
        snprintf(out, bytes, "ALiBi adds slope %s, i being the diagonal%s%s%s, j %s", by[p->distance],
                 p->other_corner ? " of the other corner" : "", packed,
                 p->row_of_tile ? " less the q tile's first row" : "", j);
    }
}

void score_say(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    static const char *const others[OTHER_BIASES] = {[OTHER_BIAS_PREVIOUS_HEAD] = "the head before",
                                                     [OTHER_BIAS_NEXT_HEAD] = "the next head",
                                                     [OTHER_BIAS_KV_HEAD] = "head h / (heads / kv_heads), the kv head",
                                                     [OTHER_BIAS_KV_HEAD_IN_TURN] = "head h mod kv_heads",
                                                     [OTHER_BIAS_FIRST_HEAD] = "head 0",
                                                     [OTHER_BIAS_FIRST_BATCH] = "the same head of batch 0",
                                                     [OTHER_BIAS_PREVIOUS_BATCH] = "the same head of the batch before",
                                                     [OTHER_BIAS_NEXT_BATCH] = "the same head of the next batch"};
    char words[96];
    if (rule->bias_of != BIAS_OWN) {
        snprintf(out, bytes, "the attention bias is that of %s", others[rule->bias_of]);
    } else if (rule->type != DTYPE_COUNT) {
        rule_rounding(rule, words, sizeof words);
        snprintf(out, bytes, "the attention bias is %s before it is added", words);
    } else if (rule->map.kind != MAP_SAME || rule->col_map.kind != MAP_SAME) {
        char col[96];
        map_words(&rule->map, "r", words, sizeof words);
        map_words(&rule->col_map, "c", col, sizeof col);
        snprintf(out, bytes,
                 "the attention bias of row %s, column %s of the tile is added where that of row r, column c is wanted",
                 words, col);
    } else if (rule->weight != 1) {
        say_times(s, "the attention bias", rule->weight, out, bytes);
    } else if (rule->rows.head.kind != MAP_SAME) {
        map_words(&rule->rows.head, "h", words, sizeof words);
        snprintf(out, bytes, "ALiBi has the slope of head %s where it should be h", words);
    } else if (rule->power != 1) {
        say_times(s, "ALiBi", rule->power, out, bytes);
    } else if (rule->places.edited) {
        say_places(&rule->places, out, bytes);
    } else {
        say_cap(s, rule, out, bytes);
    }
}
