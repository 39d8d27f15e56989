/* RULE_FORMULA: the mask, which weights dropout keeps, or the formula of scores takes another query, key, head or
   sequence, is read elsewhere, or is another formula: one operator or number of it is another. */
#include "engine/oracle/search/rule.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/local.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/search/constant.h"
#include "engine/oracle/values.h"
#include "engine/oracle/weight.h"
#include "engine/trace/expression.h"
#include "engine/trace/layout.h"
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = 4 * ASC_FORMULA_BYTES };

/* What stands there, of numbers of the case: once less 1, and as it is. */
enum number { NO_NUMBER, TILE_ROWS, TILE_COLS, GROUP, HEADS, BATCHES, WIDTH, NUMBERS };

static const struct {
    const char *words;
    enum number of;
    int less;
} insteads[INSTEADS] = {[ROW_OF_TILE] = {"i %% %d", TILE_ROWS, 0},
                        [FIRST_ROW] = {"i / %d * %d", TILE_ROWS, 0},
                        [TILE_OF_QUERY] = {"i / %d", TILE_ROWS, 0},
                        [DIAGONAL] = {"i + kv_len - q_len", NO_NUMBER, 0},
                        [PACKED_ROW] = {"i * %d + h %% %d", GROUP, 0},
                        [ROW_BEFORE] = {"i - 1", NO_NUMBER, 0},
                        [ROW_BEHIND] = {"i + 1", NO_NUMBER, 0},
                        [KEY_FOR_QUERY] = {"j", NO_NUMBER, 0},
                        [COLUMN_OF_TILE] = {"j %% %d", TILE_COLS, 0},
                        [FIRST_COLUMN] = {"j / %d * %d", TILE_COLS, 0},
                        [TILE_OF_KEY] = {"j / %d", TILE_COLS, 0},
                        [LANE] = {"j %% 32", NO_NUMBER, 0},
                        [KEY_BEFORE] = {"j - 1", NO_NUMBER, 0},
                        [KEY_BEHIND] = {"j + 1", NO_NUMBER, 0},
                        [KEY_PADDED] = {"j + %d - kv_len", WIDTH, 0},
                        [KEY_PADDED_WITHIN] = {"min(j + %2$d - kv_len, %1$d)", WIDTH, 1},
                        [KEY_UNPADDED] = {"j + kv_len - %d", WIDTH, 0},
                        [KEY_UNPADDED_WITHIN] = {"max(j + kv_len - %d, 0)", WIDTH, 0},
                        [QUERY_FOR_KEY] = {"i", NO_NUMBER, 0},
                        [HEAD_0] = {"0", NO_NUMBER, 0},
                        [KV_HEAD] = {"h / %d", GROUP, 0},
                        [HEAD_OF_GROUP] = {"h %% %d", GROUP, 0},
                        [HEAD_BEFORE] = {"(h + %d) %% %d", HEADS, 1},
                        [HEAD_BEHIND] = {"(h + 1) %% %d", HEADS, 0},
                        [BATCH_FOR_HEAD] = {"b", NO_NUMBER, 0},
                        [BATCH_0] = {"0", NO_NUMBER, 0},
                        [BATCH_BEFORE] = {"(b + %d) %% %d", BATCHES, 1},
                        [BATCH_BEHIND] = {"(b + 1) %% %d", BATCHES, 0},
                        [HEAD_FOR_BATCH] = {"h", NO_NUMBER, 0}};

static const char names[] = "ijhb";

static void say_instead(const struct oracle_case *c, const struct formula_edit *f, int variable, char *out,
                        size_t bytes)
{
    const int width = (int)(f->of_keep ? c->keeps_at.row : c->masks_at.row);
    const int numbers[NUMBERS] = {0, c->br, c->bc, f->group, f->heads, f->batches, width},
              instead = f->instead[variable];
    const int n = numbers[insteads[instead].of];
    if (instead == OWN)
        snprintf(out, bytes, "%c", names[variable]);
    else
        snprintf(out, bytes, insteads[instead].words, n - insteads[instead].less, n);
}

/* Text that grows at its end, and is not whole where it did not fit. */
struct text {
    char at[TEXT_BYTES];
    size_t n;
};

static void put(struct text *t, const char *from, size_t n)
{
    for (size_t i = 0; i < n; i++, t->n++)
        if (t->n < TEXT_BYTES)
            t->at[t->n] = from[i];
    if (t->n < TEXT_BYTES)
        t->at[t->n] = '\0';
}

static bool fits(const struct text *t)
{
    return t->n < TEXT_BYTES;
}

static bool in_name(char c)
{
    return (c >= 'a' && c <= 'z') || c == '_' || (c >= '0' && c <= '9') || c == '.';
}

/* The formula with other words in the place of the names i, j, h, b and s; NULL: the name stays. */
static void put_renamed(struct text *out, const char *formula, const char *const by[5])
{
    static const char all[] = "ijhbs";
    while (*formula) {
        size_t n = 0;
        while (in_name(formula[n]))
            n++;
        const char *found = n == 1 ? strchr(all, *formula) : NULL;
        if (found && by[found - all]) {
            put(out, "(", 1);
            put(out, by[found - all], strlen(by[found - all]));
            put(out, ")", 1);
        } else {
            put(out, formula, n ? n : 1);
        }
        formula += n ? n : 1;
    }
}

/* What an operator is mistaken for, A, B and C being its operands. */
static const char *const changes[][FORMULA_CHANGES] = {[EXPRESSION_MINUS] = {"A"},
                                                       [EXPRESSION_NOT] = {"A"},
                                                       [EXPRESSION_ABS] = {"A", "-A", "-abs(A)"},
                                                       [EXPRESSION_EXP] = {"A"},
                                                       [EXPRESSION_LOG] = {"A"},
                                                       [EXPRESSION_TANH] = {"A"},
                                                       [EXPRESSION_SQRT] = {"A"},
                                                       [EXPRESSION_ADD] = {"A - B", "A", "B"},
                                                       [EXPRESSION_SUBTRACT] = {"A + B", "A", "B - A"},
                                                       [EXPRESSION_TIMES] = {"A / B", "A", "B"},
                                                       [EXPRESSION_DIVIDE] = {"A % B", "A", "A * B", "0"},
                                                       [EXPRESSION_REST] = {"A / B", "A"},
                                                       [EXPRESSION_LESS] = {"A <= B", "B < A", "B <= A"},
                                                       [EXPRESSION_LESS_EQUAL] = {"A < B", "B <= A", "B < A"},
                                                       [EXPRESSION_EQUAL] = {"A == B", "A != B", "A <= B", "B <= A"},
                                                       [EXPRESSION_AND] = {"A || B", "A", "B"},
                                                       [EXPRESSION_OR] = {"A && B", "A", "B"},
                                                       [EXPRESSION_MIN] = {"max(A, B)", "A", "B"},
                                                       [EXPRESSION_MAX] = {"min(A, B)", "A", "B"},
                                                       [EXPRESSION_CHOICE] = {"A ? C : B", "B", "C"}};

bool formula_has_change(const struct expression_node *n, int change)
{
    if (n->op == EXPRESSION_VARIABLE)
        return false;
    return n->op == EXPRESSION_NUMBER ? !n->real && change < 2 : changes[n->op][change] != NULL;
}

static void put_changed(struct text *out, const struct expression *e, const char *formula, int node, int change)
{
    const struct expression_node *n = &e->node[node];
    char number[160];
    put(out, formula, n->first);
    put(out, "(", 1);
    if (n->op == EXPRESSION_NUMBER) {
        snprintf(number, sizeof number, "%lld", (long long)n->whole + (change ? -1 : 1));
        put(out, number, strlen(number));
    } else {
        for (const char *c = changes[n->op][change]; *c; c++) {
            const struct expression_node *of = *c >= 'A' && *c <= 'C' ? &e->node[n->operand[*c - 'A']] : NULL;
            if (of)
                put(out, formula + of->first, (size_t)(of->end - of->first));
            else
                put(out, c, 1);
        }
    }
    put(out, ")", 1);
    put(out, formula + n->end, strlen(formula + n->end));
}

/* The formula as the rule has it; of scores, s being the score that it gets and gives. */
static bool edited_formula(const struct oracle_case *c, const struct rule *rule, struct text *out)
{
    const struct formula_edit *f = &rule->formula;
    const char *formula = f->of_mask ? c->mask_formula : c->score_formula;
    struct text changed = {.n = 0}, s = {.n = 0}, first = {.n = 0};
    char words[4][64], number[32];
    const char *by[5] = {NULL};
    if (f->changed) {
        struct expression e;
        char why[EXPRESSION_WHY_BYTES];
        if (expression_parse(formula, !f->of_mask, &e, why) != 0)
            return false;
        put_changed(&changed, &e, formula, f->node, f->change);
        if (!fits(&changed))
            return false;
        formula = changed.at;
    }
    for (int v = 0; v < 4; v++) {
        say_instead(c, f, v, words[v], sizeof words[v]);
        by[v] = f->instead[v] ? words[v] : NULL;
    }
    snprintf(number, sizeof number, "%.17g", rule->factor);
    if (f->twice) {
        put_renamed(&s, formula, by);
        by[4] = s.at;
    } else if (rule->factor != 1) {
        put(&s, "s * ", 4);
        put(&s, number, strlen(number));
        by[4] = s.at;
    }
    if (!fits(&s))
        return false;
    put_renamed(&first, formula, by);
    if (!fits(&first))
        return false;
    const bool scaled = rule->factor != 1, weighed = rule->weight != 1;
    char weight[48];
    snprintf(weight, sizeof weight, "s + (%.17g) * (", rule->weight);
    if (weighed)
        put(out, weight, strlen(weight));
    if (!scaled && !weighed) {
        put(out, first.at, first.n);
        return fits(out);
    }
    put(out, "(", 1);
    put(out, first.at, first.n);
    put(out, ")", 1);
    if (scaled) {
        put(out, " / ", 3);
        put(out, number, strlen(number));
    }
    if (weighed)
        put(out, " - s)", 5);
    return fits(out);
}

/* The byte that is read at a query, key, head and sequence. Keys beyond a row's end are in no mask of a kernel that
   compares them with kv_len; which weights are kept is looked up wherever that leads to. */
static bool byte_at(const struct oracle_case *c, const struct formula_edit *f, const int64_t place[4])
{
    const uint8_t *all = f->of_keep ? c->keeps : c->masks;
    const struct asc_strides at = f->of_keep ? c->keeps_at : c->masks_at;
    const bool inside = place[2] >= 0 && place[2] < f->heads && place[3] >= 0 && place[3] < f->batches &&
                        (f->of_keep || (place[0] >= 0 && place[0] < c->q_len && place[1] >= 0 && place[1] < at.row));
    const int64_t head = place[3] * at.batch + place[2] * at.head, flat = place[0] * at.row + place[1];
    const int64_t of_bit = f->bits == AS_BITS ? flat / 8 : place[0] * ((at.row + 7) / 8) + place[1] / 8;
    const int64_t from = head + (f->bits ? of_bit : flat);
    const int64_t last =
        (f->batches - 1) * at.batch + (f->heads - 1) * at.head + (int64_t)(c->q_len - 1) * at.row + at.row - 1;
    if (!inside || from < 0 || from > last)
        return false;
    return f->bits ? all[from] >> (f->bits == AS_BITS ? flat : place[1]) % 8 & 1 : all[from] != 0;
}

/* Bytes of the mask, or of which weights are kept, as the rule reads them, or as its formula has them, in place of the
   operand. */
static const uint8_t *edited_mask(struct search *search, const struct rule *rule, const struct sample_tile *t)
{
    const struct oracle_case *c = t->c;
    const struct formula_edit *f = &rule->formula;
    struct expression e[4];
    char why[EXPRESSION_WHY_BYTES], words[64];
    uint8_t *out = (uint8_t *)search->operand;
    struct text text = {.n = 0};
    if (f->changed && (!edited_formula(c, rule, &text) || expression_parse(text.at, false, &e[0], why) != 0))
        return NULL;
    for (int v = 0; v < 4 && !f->changed; v++) {
        say_instead(c, f, v, words, sizeof words);
        if (expression_parse(words, false, &e[v], why) != 0)
            return NULL;
    }
    for (int r = 0; r < c->in_q.rows; r++)
        for (int col = 0; col < t->x.cols; col++) {
            const int64_t at[EXPRESSION_WHOLE] = {(int64_t)c->q_tile * c->br + r,
                                                  (int64_t)t->kv * c->bc + col,
                                                  c->place[1],
                                                  c->place[0],
                                                  c->q_len,
                                                  c->kv_len};
            int64_t place[4] = {0}, whole = 0;
            bool known = !f->changed || expression_whole(&e[0], e[0].n - 1, at, &whole);
            for (int v = 0; v < 4 && !f->changed; v++)
                known = known && expression_whole(&e[v], e[v].n - 1, at, &place[v]);
            if (f->pitch) {
                const int64_t flat = place[0] * f->pitch + place[1],
                              row = f->of_keep ? c->keeps_at.row : c->masks_at.row;
                place[0] = flat / row;
                place[1] = flat % row;
            }
            if (!f->changed)
                whole = known && byte_at(c, f, place);
            *out++ = known && (whole != 0) != f->inverted;
        }
    return (const uint8_t *)search->operand;
}

static bool mask_forward(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                         double *bound)
{
    struct operands x = t->x;
    const int first = t->kv * t->c->bc;
    if (values_mask_later(t->c) || !t->c->masks)
        return false;
    x.mask = rule->formula.ignored ? NULL : edited_mask(search, rule, t);
    if (!x.mask && !rule->formula.ignored)
        return false;
    x.mask_row = x.cols;
    for (int r = 0; r < t->c->in_q.rows; r++) {
        const struct key_range seen = schedule_range(t->c, r);
        rule_sees(search, &x, r, seen.first - first, seen.last - first);
    }
    search_formula(search, t, &x, want, bound);
    return true;
}

/* The weights before dropout, as P.V or l would take them: those of a P that is recorded behind it follow from S. */
static void all_weights(const struct search *search, const struct sample_tile *t, double *value, double *loose)
{
    const size_t n = query_rows(t) * (size_t)t->x.cols;
    struct operands x = t->x;
    const struct operand *from = search->sample->channel == asc_l ? &x.l_p : &x.of[asc_p];
    x.keep = NULL;
    if (search->sample->channel != asc_l && t->c->conventions.p_dropout == ASC_P_DROPPED) {
        local_p(t->c, &x, (struct expected){value, loose});
        return;
    }
    memcpy(value, from->value, n * sizeof *value);
    memcpy(loose, from->loose, n * sizeof *loose);
}

/* P, l and U with other weights kept. */
static bool keep_forward(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                         double *bound)
{
    const struct oracle_case *c = t->c;
    const bool is_l = search->sample->channel == asc_l;
    const size_t n = query_rows(t) * (size_t)t->x.cols;
    struct operands x = t->x;
    double *value = search->sizes[0], *loose = search->sizes[1], unit = 0, half_tiny = 0;
    enum dtype type;
    if (!c->keeps || !x.keep || !(is_l ? x.l_p : x.of[asc_p]).value)
        return false;
    if (!is_l && rule->formula.ignored) {
        memset(search->operand, 1, n);
        x.keep = (const uint8_t *)search->operand;
        x.keep_row = x.cols;
    } else if (!is_l) {
        x.keep = edited_mask(search, rule, t);
        x.keep_row = x.cols;
    }
    if (!x.keep)
        return false;
    if (search->sample->channel == asc_p) {
        search_formula(search, t, &x, want, bound);
        return c->conventions.p_dropout == ASC_P_DROPPED;
    }
    all_weights(search, t, value, loose);
    if (!is_l)
        dropout_apply(c, &x, value, loose);
    for (size_t i = 0; i < n && is_l; i++) {
        const double by = dropout_keeps(&x, (int)(i / (size_t)x.cols), (int)(i % (size_t)x.cols)) * rule->factor;
        value[i] *= by;
        loose[i] = loose[i] * by + (by == 1 ? 0 : DROPOUT_ROUNDINGS * BOUND_U * fabs(value[i]));
    }
    if (!is_l && values_p_type(c, &type) && bound_narrow(type, &unit, &half_tiny))
        for (size_t i = 0; i < n; i++)
            loose[i] += unit * (fabs(value[i]) + loose[i]) + half_tiny;
    *(is_l ? &x.l_p : &x.pv_p) = (struct operand){value, loose, false};
    search_formula(search, t, &x, want, bound);
    return true;
}

bool formula_forward(struct search *search, const struct rule *rule, const struct sample_tile *t, double *want,
                     double *bound)
{
    struct oracle_case c = *t->c;
    struct sample_tile edited = *t;
    struct expression e;
    struct text text = {.n = 0};
    char why[EXPRESSION_WHY_BYTES];
    if (rule->formula.of_keep)
        return keep_forward(search, rule, t, want, bound);
    if (search->sample->channel != asc_s)
        return false;
    if (rule->formula.of_mask)
        return mask_forward(search, rule, t, want, bound);
    if (!c.score_mod || values_biased_later(&c) || !edited_formula(&c, rule, &text) ||
        expression_parse(text.at, true, &e, why) != 0)
        return false;
    c.score_mod = &e;
    edited.c = &c;
    search_formula(search, &edited, &t->x, want, bound);
    return true;
}

/* What stands in the place of i, j, h and b: "0 in the place of b". */
static void say_insteads(const struct oracle_case *c, const struct formula_edit *f, char *out, size_t bytes)
{
    char words[96];
    size_t n = 0;
    for (int v = 0, any = 0; v < 4; v++)
        if (f->instead[v] && n < bytes) {
            say_instead(c, f, v, words, sizeof words);
            n += (size_t)snprintf(out + n, bytes - n, "%s%s in the place of %c", any++ ? " and " : "", words, names[v]);
        }
}

static void keep_say(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    const struct oracle_case *c = s->tiles[0].c;
    const struct formula_edit *f = &rule->formula;
    const char *stage = channel_label(s->channel);
    char words[200];
    if (s->channel == asc_l) {
        snprintf(out, bytes, "l sums the weights that dropout keeps alone%s: it should sum all of them",
                 rule->factor == 1 ? "" : ", times 1 / (1 - dropout)");
    } else if (f->ignored) {
        snprintf(out, bytes, "dropout drops no weight of %s", stage);
    } else if (f->inverted) {
        snprintf(out, bytes, "dropout is inverted: %s has the weights that it should drop, and not those that it keeps",
                 stage);
    } else if (f->pitch) {
        snprintf(out, bytes, "rows of dropout's kept weights are read %d elements apart, they lie %lld apart", f->pitch,
                 (long long)c->keeps_at.row);
    } else {
        say_insteads(c, f, words, sizeof words);
        snprintf(out, bytes, "dropout looks up which weights are kept with %s", words);
    }
}

void formula_say(const struct sample *s, const struct rule *rule, char *out, size_t bytes)
{
    const struct oracle_case *c = s->tiles[0].c;
    const struct formula_edit *f = &rule->formula;
    const char *what = f->of_mask ? "the mask" : "the formula of scores";
    char words[200], number[96];
    struct text text = {.n = 0};
    if (f->of_keep) {
        keep_say(s, rule, out, bytes);
    } else if (f->changed && edited_formula(c, rule, &text)) {
        snprintf(out, bytes,
                 f->of_mask ? "keys are seen where %s, in the place of %s" : "scores become %s, in the place of %s",
                 text.at, f->of_mask ? c->mask_formula : c->score_formula);
    } else if (f->ignored) {
        snprintf(out, bytes, "the mask is not applied: keys that it hides are seen");
    } else if (f->inverted) {
        snprintf(out, bytes, "the mask is inverted: keys are seen where it hides them");
    } else if (f->bits) {
        snprintf(out, bytes, "the mask is read as bits, eight keys in a byte%s: it has a byte for each key",
                 f->bits == AS_BITS_OF_ROWS ? " and each row from a byte of its own on" : "");
    } else if (f->pitch) {
        snprintf(out, bytes, "rows of the mask are read %d elements apart, they lie %lld apart", f->pitch,
                 (long long)c->masks_at.row);
    } else if (f->twice) {
        snprintf(out, bytes, "the formula of scores is applied twice");
    } else if (rule->weight != 1) {
        constant_say(c, rule->weight, number, sizeof number);
        snprintf(out, bytes,
                 rule->weight == 0    ? "the formula of scores is not applied"
                 : rule->weight == -1 ? "what the formula of scores adds to s has the wrong sign"
                                      : "what the formula of scores adds to s is multiplied by %s",
                 number);
    } else if (rule->factor != 1) {
        constant_say(c, rule->factor, number, sizeof number);
        snprintf(out, bytes, "the formula of scores is applied to s times %s", number);
    } else {
        say_insteads(c, f, words, sizeof words);
        snprintf(out, bytes, "%s has %s", what, words);
    }
}
