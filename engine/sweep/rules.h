/* Where points of a sweep fail, as a rule over their axes: "kv_len % 64 != 0 and causal = none". Arrays in, rules out.
 */
#ifndef SWEEP_RULES_H
#define SWEEP_RULES_H

#include <stdbool.h>
#include <stddef.h>

/* One axis, or what follows from two of them. */
struct rule_column {
    const char *name;         /* borrowed */
    const char *const *words; /* borrowed, [n_values]: each value as it is said */
    const double *numbers;    /* borrowed, [n_values] ascending; NULL: its values have no order */
    int n_values;
    bool counts;   /* whole numbers that something may divide */
    const int *at; /* borrowed, [points]: which value each point has */
};

struct rule_table {
    const struct rule_column *columns;
    int n_columns;
    const int *divisors; /* borrowed, [n_divisors], beside the powers of two: tile sizes */
    int n_divisors;
    const bool *bad; /* borrowed, [n_points] */
    size_t n_points;
};

enum term_relation {
    TERM_IS,
    TERM_IS_NOT,
    TERM_FROM,  /* its value or more */
    TERM_BELOW, /* less than its value */
    TERM_DIVIDED,
    TERM_NOT_DIVIDED
};

struct rule_term {
    int column;
    enum term_relation relation;
    int value; /* index of a value; of the last two relations the divisor */
};

enum { SWEEP_TERMS = 3, SWEEP_SAME = 3, SWEEP_RULES = 2 };

struct sweep_rule {
    struct rule_term term[SWEEP_TERMS];
    int n;
    size_t in, in_bad, out, out_bad; /* points where it holds and does not, and how many of them fail */
    double bits, needed;             /* that it explains of which points fail, and that it has to */
};

struct sweep_rules {
    struct sweep_rule rule[SWEEP_RULES]; /* [n]: the second one is of the points outside of the first */
    int n;
    struct sweep_rule same[SWEEP_SAME]; /* [n_same]: hold at just the points of the first, of as many terms */
    int n_same;
    size_t more_same;         /* of which there are so many more */
    double best, best_needed; /* bits of what came nearest, where n is 0; best_needed 0: nothing did */
};

/* A rule is said where it explains SWEEP_BITS_MORE bits more than its own description takes. The bits it explains are
   those that it saves in saying which points fail: with N points, F of which fail, and n of N inside, a of which fail,

       log2 C(N, F) - log2 C(n, a) - log2 C(N - n, F - a) - log2(min(n, F) + 1),

   the last for saying a. Its description: log2 of how many numbers of terms there are, and for each term log2 of
   columns, of kinds of relations and of constants of that kind: log2 of the hypotheses, as a code. Where labels are
   drawn by chance, a given rule explains g bits with a chance of at most 2^-g (at most min(n, F) + 1 values of a, none
   of which is likelier than 2^-g / (min(n, F) + 1)), and the descriptions are a prefix code (Kraft: their 2^-bits sum
   up to at most 1): so some rule is said with a chance of at most 2^-SWEEP_BITS_MORE. Rules are far from independent,
   and a second one is looked for where a first one was said alone: of draws by chance no rule comes near that. Of those
   that hold exactly (all inside fail, none outside) one of the fewest terms is said; else the one that explains most
   beyond what it needs. -1: no memory. */
enum { SWEEP_BITS_MORE = 10 };
int sweep_rules_find(const struct rule_table *t, struct sweep_rules *out);

bool sweep_rule_is_exact(const struct sweep_rule *rule);
bool rule_term_holds(const struct rule_table *t, const struct rule_term *term, size_t point);
/* "kv_len % 64 != 0 and causal = none" */
void sweep_rule_words(const struct rule_table *t, const struct sweep_rule *rule, char *out, size_t bytes);

#endif
