#include "engine/sweep/rules.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIVISORS_MOST = 24, BEAM = 64, EXACT_MOST = 300 };

/* A term with the set of points where it holds; of terms with one set the one of the fewest bits stands for all. */
struct literal {
    struct rule_term term;
    double bits;
    int same_as;   /* the literal that stands for it, or its own index */
    uint64_t *set; /* borrowed from struct search */
};

struct search {
    const struct rule_table *t;
    const bool *member; /* [points]: those it is about; NULL: all */
    struct literal *literal;
    int n, room;
    uint64_t *sets; /* owned: all, one behind the other */
    uint64_t *all, *bad;
    size_t words; /* of a set */
    size_t n_all, n_bad;
    double none; /* bits of which points fail, without a rule */
    double *lg;  /* [points + 1] log2 of factorials */
};

/* A conjunction on its way. */
struct found {
    int literal[SWEEP_TERMS];
    int n;
    double gain; /* bits beyond what it needs */
};

static double choose(const struct search *s, size_t n, size_t k)
{
    return s->lg[n] - s->lg[k] - s->lg[n - k];
}

static size_t count(const uint64_t *a, const uint64_t *b, size_t words)
{
    size_t n = 0;
    for (size_t i = 0; i < words; i++)
        n += (size_t)__builtin_popcountll(a[i] & b[i]);
    return n;
}

bool rule_term_holds(const struct rule_table *t, const struct rule_term *term, size_t point)
{
    const struct rule_column *c = &t->columns[term->column];
    const int at = c->at[point];
    switch (term->relation) {
    case TERM_IS:
        return at == term->value;
    case TERM_IS_NOT:
        return at != term->value;
    case TERM_FROM:
        return at >= term->value;
    case TERM_BELOW:
        return at < term->value;
    case TERM_DIVIDED:
        return fmod(c->numbers[at], term->value) == 0;
    case TERM_NOT_DIVIDED:
        return fmod(c->numbers[at], term->value) != 0;
    }
    return false;
}

/* Tile sizes, then the powers of two that are none. */
static int divisors_of(const struct rule_table *t, const struct rule_column *c, int out[DIVISORS_MOST], int *n_tiles)
{
    const double most = fmax(fabs(c->numbers[0]), fabs(c->numbers[c->n_values - 1]));
    int n = 0;
    for (int i = 0; i < t->n_divisors && n < DIVISORS_MOST; i++)
        if (t->divisors[i] > 1 && t->divisors[i] <= most)
            out[n++] = t->divisors[i];
    *n_tiles = n;
    for (int d = 2; d <= most && n < DIVISORS_MOST && d <= 1 << 20; d *= 2) {
        bool is_tile = false;
        for (int i = 0; i < *n_tiles; i++)
            is_tile = is_tile || out[i] == d;
        if (!is_tile)
            out[n++] = d;
    }
    return n;
}

static int add(struct search *s, const struct rule_term *term, double bits)
{
    if (s->n == s->room) {
        const int room = s->room ? 2 * s->room : 256;
        struct literal *more = realloc(s->literal, (size_t)room * sizeof *more);
        if (!more)
            return -1;
        s->literal = more;
        s->room = room;
    }
    s->literal[s->n++] = (struct literal){.term = *term, .bits = bits};
    return 0;
}

/* Values of the column that the points have: a value that none has is no constant. */
static int values_used(const struct search *s, const struct rule_column *c, bool *used)
{
    int n = 0;
    memset(used, 0, (size_t)c->n_values * sizeof *used);
    for (size_t p = 0; p < s->t->n_points; p++)
        if (!s->member || s->member[p])
            used[c->at[p]] = true;
    for (int v = 0; v < c->n_values; v++)
        n += used[v];
    return n;
}

static int add_column(struct search *s, int column, int columns)
{
    const struct rule_column *c = &s->t->columns[column];
    int divisors[DIVISORS_MOST], n_tiles = 0;
    bool *used = malloc((size_t)c->n_values * sizeof *used), first = true;
    if (!used)
        return -1;
    const int values = values_used(s, c, used),
              n_divisors = c->counts && c->numbers ? divisors_of(s->t, c, divisors, &n_tiles) : 0;
    const int kinds = 1 + (c->numbers != NULL) + (n_divisors > 0);
    const double own = log2(columns) + log2(kinds);
    int failed = 0;
    for (int v = 0; v < c->n_values && values > 1; v++) {
        if (!used[v])
            continue;
        for (int relation = TERM_IS; relation <= (values > 2 ? TERM_IS_NOT : TERM_IS); relation++)
            failed |= add(s, &(struct rule_term){column, (enum term_relation)relation, v}, own + log2(2.0 * values));
        for (int relation = TERM_FROM; relation <= TERM_BELOW && c->numbers && !first; relation++)
            failed |=
                add(s, &(struct rule_term){column, (enum term_relation)relation, v}, own + log2(2.0 * (values - 1)));
        first = false;
    }
    for (int d = 0; d < n_divisors && values > 1; d++)
        for (int relation = TERM_DIVIDED; relation <= TERM_NOT_DIVIDED; relation++)
            failed |= add(s, &(struct rule_term){column, (enum term_relation)relation, divisors[d]},
                          own + 1 + log2(2.0 * (d < n_tiles ? n_tiles : n_divisors - n_tiles)));
    free(used);
    return failed;
}

static bool varies(const struct search *s, const struct rule_column *c)
{
    int before = -1;
    for (size_t p = 0; p < s->t->n_points; p++)
        if (!s->member || s->member[p]) {
            if (before >= 0 && c->at[p] != before)
                return true;
            before = c->at[p];
        }
    return false;
}

/* Those of few bits first; terms of one set stand behind each other then, and one of them for all. */
static int by_bits(const void *a, const void *b)
{
    const struct literal *x = a, *y = b;
    if (x->bits != y->bits)
        return x->bits < y->bits ? -1 : 1;
    if (x->term.column != y->term.column)
        return x->term.column - y->term.column;
    if (x->term.relation != y->term.relation)
        return (int)x->term.relation - (int)y->term.relation;
    return x->term.value - y->term.value;
}

static int make_sets(struct search *s)
{
    const size_t points = s->t->n_points;
    s->words = points / 64 + 1;
    s->sets = calloc(((size_t)s->n + 2) * s->words, sizeof *s->sets);
    s->lg = malloc((points + 1) * sizeof *s->lg);
    if (!s->sets || !s->lg)
        return -1;
    s->all = s->sets + (size_t)s->n * s->words;
    s->bad = s->all + s->words;
    s->lg[0] = 0;
    for (size_t p = 0; p < points; p++) {
        s->lg[p + 1] = s->lg[p] + log2((double)(p + 1));
        if (s->member && !s->member[p])
            continue;
        s->all[p / 64] |= UINT64_C(1) << p % 64;
        s->n_all++;
        if (s->t->bad[p]) {
            s->bad[p / 64] |= UINT64_C(1) << p % 64;
            s->n_bad++;
        }
    }
    s->none = choose(s, s->n_all, s->n_bad);
    if (s->n)
        qsort(s->literal, (size_t)s->n, sizeof *s->literal, by_bits);
    for (int i = 0; i < s->n; i++) {
        struct literal *l = &s->literal[i];
        l->set = s->sets + (size_t)i * s->words;
        l->same_as = i;
        for (size_t p = 0; p < points; p++)
            if ((!s->member || s->member[p]) && rule_term_holds(s->t, &l->term, p))
                l->set[p / 64] |= UINT64_C(1) << p % 64;
        for (int k = 0; k < i && l->same_as == i; k++)
            if (s->literal[k].same_as == k && memcmp(s->literal[k].set, l->set, s->words * sizeof *l->set) == 0)
                l->same_as = k;
    }
    return 0;
}

static int begin(struct search *s, const struct rule_table *t, const bool *member)
{
    int columns = 0;
    *s = (struct search){.t = t, .member = member};
    for (int c = 0; c < t->n_columns; c++)
        columns += varies(s, &t->columns[c]);
    for (int c = 0; c < t->n_columns; c++)
        if (varies(s, &t->columns[c]) && add_column(s, c, columns) != 0)
            return -1;
    return make_sets(s);
}

static void end(struct search *s)
{
    free(s->literal);
    free(s->sets);
    free(s->lg);
}

static void intersect(const struct search *s, const struct found *f, uint64_t *out)
{
    memcpy(out, s->all, s->words * sizeof *out);
    for (int i = 0; i < f->n; i++)
        for (size_t w = 0; w < s->words; w++)
            out[w] &= s->literal[f->literal[i]].set[w];
}

/* Counts and bits of the conjunction. */
static struct sweep_rule weigh(const struct search *s, const struct found *f, const uint64_t *set)
{
    struct sweep_rule r = {.n = f->n, .needed = log2(SWEEP_TERMS) + SWEEP_BITS_MORE};
    for (int i = 0; i < f->n; i++) {
        r.term[i] = s->literal[f->literal[i]].term;
        r.needed += s->literal[f->literal[i]].bits;
    }
    r.in = count(set, s->all, s->words);
    r.in_bad = count(set, s->bad, s->words);
    r.out = s->n_all - r.in;
    r.out_bad = s->n_bad - r.in_bad;
    const size_t least = r.in < s->n_bad ? r.in : s->n_bad;
    r.bits = s->none - choose(s, r.in, r.in_bad) - choose(s, r.out, r.out_bad) - log2((double)least + 1);
    /* It is to say where points fail, not where they do not. */
    if (r.in_bad * s->n_all <= s->n_bad * r.in)
        r.bits = 0;
    return r;
}

bool sweep_rule_is_exact(const struct sweep_rule *rule)
{
    return rule->in == rule->in_bad && rule->out_bad == 0;
}

static bool passes(const struct sweep_rule *r)
{
    return r->bits >= r->needed;
}

static bool is_cheaper(const struct sweep_rule *a, const struct sweep_rule *b)
{
    return a->needed < b->needed;
}

/* Rules of one set of points: the cheapest is the rule, the next ones are said beside it. */
static void offer(struct sweep_rules *out, const struct sweep_rule *r)
{
    struct sweep_rule moved = *r;
    if (out->n == 0) {
        out->rule[out->n++] = *r;
        return;
    }
    if (is_cheaper(&moved, &out->rule[0])) {
        const struct sweep_rule before = out->rule[0];
        out->rule[0] = moved;
        moved = before;
    }
    for (int i = 0; i < out->n_same; i++)
        if (is_cheaper(&moved, &out->same[i])) {
            const struct sweep_rule before = out->same[i];
            out->same[i] = moved;
            moved = before;
        }
    if (out->n_same < SWEEP_SAME)
        out->same[out->n_same++] = moved;
    else
        out->more_same++;
}

static int by_index(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* A conjunction in all the words for it: each of its sets may be that of several terms. Those of few bits come first.
 */
static void offer_all(const struct search *s, const struct found *conjunction, const uint64_t *set,
                      struct sweep_rules *out)
{
    struct found own = *conjunction, *f = &own;
    qsort(own.literal, (size_t)own.n, sizeof *own.literal, by_index);
    struct found words = own;
    struct sweep_rule r = weigh(s, f, set);
    if (passes(&r))
        offer(out, &r);
    for (int i = 0; i < f->n; i++)
        for (int l = f->literal[i] + 1; l < s->n; l++) {
            if (s->literal[l].same_as != f->literal[i])
                continue;
            words.literal[i] = l;
            r = weigh(s, &words, set);
            if (passes(&r))
                offer(out, &r);
            words.literal[i] = f->literal[i];
        }
}

/* A literal that holds at all bad points, and at how many others. */
struct covering {
    size_t others;
    int literal;
};

static int by_others(const void *a, const void *b)
{
    const struct covering *x = a, *y = b;
    return x->others != y->others ? (x->others > y->others) - (x->others < y->others) : x->literal - y->literal;
}

/* All conjunctions of so many terms, from literal `from` on, that hold at just the bad points. */
static void exact(const struct search *s, const struct covering *covering, int n_covering, int from, struct found *f,
                  int terms, uint64_t *room, struct sweep_rules *out)
{
    const uint64_t *before = f->n ? room : s->all;
    uint64_t *set = f->n ? room + s->words : room;
    for (int i = from; i < n_covering; i++) {
        const uint64_t *own = s->literal[covering[i].literal].set;
        for (size_t w = 0; w < s->words; w++)
            set[w] = before[w] & own[w];
        if (f->n && memcmp(set, before, s->words * sizeof *set) == 0)
            continue; /* it says nothing more */
        f->literal[f->n++] = covering[i].literal;
        if (f->n == terms) {
            if (memcmp(set, s->bad, s->words * sizeof *set) == 0)
                offer_all(s, f, set, out);
        } else {
            exact(s, covering, n_covering, i + 1, f, terms, set, out);
        }
        f->n--;
    }
}

/* Of conjunctions, those of the EXACT_MOST literals that leave out most other points: triples of thousands would take
   hours. */
static int find_exact(const struct search *s, struct sweep_rules *out)
{
    struct covering *covering = malloc(((size_t)s->n + 1) * sizeof *covering);
    int n = 0;
    uint64_t *room = malloc((SWEEP_TERMS + 1) * s->words * sizeof *room);
    if (covering && room) {
        for (int i = 0; i < s->n; i++)
            if (s->literal[i].same_as == i && count(s->literal[i].set, s->bad, s->words) == s->n_bad)
                covering[n++] = (struct covering){count(s->literal[i].set, s->all, s->words) - s->n_bad, i};
        if (n)
            qsort(covering, (size_t)n, sizeof *covering, by_others);
        for (int terms = 1; terms <= SWEEP_TERMS && out->n == 0; terms++)
            exact(s, covering, terms > 1 && n > EXACT_MOST ? EXACT_MOST : n, 0, &(struct found){.n = 0}, terms, room,
                  out);
    }
    const int failed = covering && room ? 0 : -1;
    free(covering);
    free(room);
    return failed;
}

/* Keeps the best BEAM in order, each once. */
static void keep(struct found *beam, int *n, const struct found *f)
{
    int at = *n;
    while (at > 0 && f->gain > beam[at - 1].gain)
        at--;
    for (int i = at; i-- > 0 && beam[i].gain == f->gain;)
        if (memcmp(beam[i].literal, f->literal, (size_t)f->n * sizeof *f->literal) == 0)
            return;
    if (at == BEAM)
        return;
    if (*n < BEAM)
        ++*n;
    memmove(&beam[at + 1], &beam[at], (size_t)(*n - at - 1) * sizeof *beam);
    beam[at] = *f;
}

/* The one that explains most beyond what it needs, of conjunctions that grow from the best of fewer terms. */
static int find_best(const struct search *s, struct sweep_rules *out)
{
    struct found beam[2][BEAM];
    uint64_t *set = malloc(2 * s->words * sizeof *set);
    struct sweep_rule best = {.n = 0};
    struct found which = {.n = 0};
    int n = 1;
    if (!set)
        return -1;
    uint64_t *both = set + s->words;
    beam[0][0] = (struct found){.n = 0};
    for (int terms = 1; terms <= SWEEP_TERMS; terms++) {
        const struct found *from = beam[(terms - 1) % 2];
        struct found *to = beam[terms % 2];
        int n_to = 0;
        for (int i = 0; i < n; i++) {
            intersect(s, &from[i], set);
            for (int l = 0; l < s->n; l++) {
                if (s->literal[l].same_as != l)
                    continue;
                for (size_t w = 0; w < s->words; w++)
                    both[w] = set[w] & s->literal[l].set[w];
                if (memcmp(both, set, s->words * sizeof *both) == 0)
                    continue;
                struct found f = from[i];
                int place = f.n++;
                for (; place > 0 && f.literal[place - 1] > l; place--)
                    f.literal[place] = f.literal[place - 1];
                f.literal[place] = l;
                const struct sweep_rule r = weigh(s, &f, both);
                f.gain = r.bits - r.needed;
                keep(to, &n_to, &f);
                if (r.bits > 0 && (!best.n || f.gain > best.bits - best.needed)) {
                    best = r;
                    which = f;
                }
            }
        }
        n = n_to;
    }
    out->best = best.n ? best.bits : 0;
    out->best_needed = best.n ? best.needed : 0;
    if (best.n && passes(&best)) {
        intersect(s, &which, set);
        offer_all(s, &which, set, out);
    }
    free(set);
    return 0;
}

static int find(const struct rule_table *t, const bool *member, struct sweep_rules *out)
{
    struct search s;
    *out = (struct sweep_rules){.n = 0};
    int failed = begin(&s, t, member);
    if (!failed && s.n_bad && s.n_bad < s.n_all) {
        failed = find_exact(&s, out);
        if (!failed && !out->n)
            failed = find_best(&s, out);
    }
    end(&s);
    return failed;
}

static bool holds(const struct rule_table *t, const struct sweep_rule *rule, size_t point)
{
    for (int i = 0; i < rule->n; i++)
        if (!rule_term_holds(t, &rule->term[i], point))
            return false;
    return true;
}

int sweep_rules_find(const struct rule_table *t, struct sweep_rules *out)
{
    if (find(t, NULL, out) != 0)
        return -1;
    if (!out->n || !out->rule[0].out_bad)
        return 0;
    struct sweep_rules rest;
    bool *outside = malloc(t->n_points * sizeof *outside);
    if (!outside)
        return -1;
    for (size_t p = 0; p < t->n_points; p++)
        outside[p] = !holds(t, &out->rule[0], p);
    const int failed = find(t, outside, &rest);
    if (!failed && rest.n)
        out->rule[out->n++] = rest.rule[0];
    free(outside);
    return failed;
}

void sweep_rule_words(const struct rule_table *t, const struct sweep_rule *rule, char *out, size_t bytes)
{
    static const char *const between[] = {" = ", " != ", " >= ", " < "};
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < rule->n && used < bytes; i++) {
        const struct rule_term *term = &rule->term[i];
        const struct rule_column *c = &t->columns[term->column];
        const char *and = i ? " and " : "";
        int n;
        if (term->relation < TERM_DIVIDED)
            n = snprintf(out + used, bytes - used, "%s%s%s%s", and, c->name, between[term->relation],
                         c->words[term->value]);
        else
            n = snprintf(out + used, bytes - used, "%s%s %% %d %s 0", and, c->name, term->value,
                         term->relation == TERM_DIVIDED ? "=" : "!=");
        used += (size_t)n;
    }
}
