/* What a sweep's points come to: rules, in words. */
#include "engine/sweep/sweep.h"

#include "engine/scenario/value.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const sweep_result_names[SWEEP_RESULTS] = {"ok", "fail", "declined", "not tried"};

/* What follows from two axes, and says more than either. */
static const struct {
    const char *name, *a, *b;
    bool divides;
} derived[] = {{"kv_len - q_len", "shape.kv_len", "shape.q_len", false},
               {"heads / kv_heads", "shape.heads", "shape.kv_heads", true}};
enum { DERIVED = sizeof derived / sizeof *derived };

/* A table of the points that ran, and what it is made of. */
struct made_table {
    struct rule_table t;
    struct rule_column columns[SWEEP_AXES + DERIVED];
    const struct sweep_point **of;         /* owned, [t.n_points] */
    int *at;                               /* owned, [columns][points] */
    bool *bad;                             /* owned */
    double *numbers[SWEEP_AXES + DERIVED]; /* owned */
    char **words[DERIVED];                 /* owned, each: of a derived column */
    int n_words[DERIVED];
    int divisors[2];
};

static void free_table(struct made_table *m)
{
    for (int i = 0; i < SWEEP_AXES + DERIVED; i++)
        free(m->numbers[i]);
    for (int d = 0; d < DERIVED; d++) {
        for (int i = 0; i < m->n_words[d]; i++)
            free(m->words[d][i]);
        free(m->words[d]);
    }
    free(m->of);
    free(m->at);
    free(m->bad);
}

static bool is_seed(const char *key)
{
    const size_t n = strlen(key);
    return n >= 4 && strcmp(key + n - 4, "seed") == 0;
}

/* The axis of a key; -1: there is none. */
static int axis_of(const struct sweep *s, const char *key)
{
    for (int i = 0; i < s->n_axes; i++)
        if (strcmp(s->axis[i].key, key) == 0)
            return i;
    return -1;
}

/* Numbers of a column's values where all are; *whole: and none has a fraction. false: no memory. */
static bool read_numbers(struct made_table *m, int column, char *const *value, int n, bool *whole)
{
    double *x = malloc((size_t)n * sizeof *x + 1);
    if (!x)
        return false;
    *whole = true;
    for (int i = 0; i < n; i++) {
        if (value_real(value[i], &x[i]) != 0) {
            free(x);
            *whole = false;
            return true;
        }
        *whole = *whole && x[i] == trunc(x[i]);
    }
    m->numbers[column] = x;
    m->columns[column].numbers = x;
    return true;
}

static int by_number(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double derive(const struct sweep *s, int d, const struct sweep_point *p)
{
    const int a = axis_of(s, derived[d].a), b = axis_of(s, derived[d].b);
    const double x = strtod(s->axis[a].value[p->at[a]], NULL), y = strtod(s->axis[b].value[p->at[b]], NULL);
    return derived[d].divides ? x / y : x - y;
}

/* Its values are those that the points have. -1: no memory. */
static int add_derived(const struct sweep *s, struct made_table *m, int d)
{
    const int column = m->t.n_columns;
    const size_t n = m->t.n_points;
    double *x = malloc(n * sizeof *x + 1);
    m->words[d] = calloc(n + 1, sizeof *m->words[d]);
    m->numbers[column] = x;
    if (!x || !m->words[d])
        return -1;
    for (size_t i = 0; i < n; i++)
        x[i] = derive(s, d, m->of[i]);
    qsort(x, n, sizeof *x, by_number);
    int values = 0;
    for (size_t i = 0; i < n; i++)
        if (values == 0 || x[i] != x[values - 1]) {
            x[values] = x[i];
            if (asprintf(&m->words[d][values], "%g", x[i]) < 0)
                return -1;
            m->n_words[d] = ++values;
        }
    int *at = m->at + (size_t)column * n;
    for (size_t i = 0; i < n; i++) {
        const double own = derive(s, d, m->of[i]);
        at[i] = (int)((double *)bsearch(&own, x, (size_t)values, sizeof *x, by_number) - x);
    }
    m->columns[column] = (struct rule_column){derived[d].name, (const char *const *)m->words[d], x, values, false, at};
    m->t.n_columns++;
    return 0;
}

static int make_table(const struct sweep *s, struct made_table *m)
{
    *m = (struct made_table){.divisors = {s->bc, s->br}};
    m->of = malloc((s->n + 1) * sizeof(void *));
    m->bad = malloc((s->n + 1) * sizeof *m->bad);
    m->at = malloc((s->n + 1) * (SWEEP_AXES + DERIVED) * sizeof *m->at);
    if (!m->of || !m->bad || !m->at)
        return -1;
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->point[i].result == SWEEP_OK || s->point[i].result == SWEEP_FAIL) {
            m->bad[n] = s->point[i].result == SWEEP_FAIL;
            m->of[n++] = &s->point[i];
        }
    m->t = (struct rule_table){.columns = m->columns,
                               .n_columns = s->n_axes,
                               .divisors = m->divisors,
                               .n_divisors = s->br == s->bc ? 1 : 2,
                               .bad = m->bad,
                               .n_points = n};
    for (int c = 0; c < s->n_axes; c++) {
        int *at = m->at + (size_t)c * n;
        bool whole;
        for (size_t i = 0; i < n; i++)
            at[i] = m->of[i]->at[c];
        m->columns[c] = (struct rule_column){
            sweep_axis_name(&s->axis[c]), (const char *const *)s->axis[c].value, NULL, s->axis[c].n, false, at};
        if (is_seed(s->axis[c].key))
            continue; /* one is as good as another: no threshold, no divisor */
        if (!read_numbers(m, c, s->axis[c].value, s->axis[c].n, &whole))
            return -1;
        m->columns[c].counts = whole;
    }
    for (int d = 0; d < DERIVED; d++) {
        const int a = axis_of(s, derived[d].a), b = axis_of(s, derived[d].b);
        if (n && a >= 0 && b >= 0 && m->numbers[a] && m->numbers[b] && add_derived(s, m, d) != 0)
            return -1;
    }
    return 0;
}

static void show_axis(struct sweep *s, int axis)
{
    if (axis < 0 || s->shown[0] == axis || s->shown[1] >= 0)
        return;
    s->shown[s->shown[0] >= 0] = axis;
}

/* The axes that the first rule names; then those of most values. */
static void choose_shown(struct sweep *s)
{
    s->shown[0] = s->shown[1] = -1;
    for (int r = 0; r < s->rules.n; r++)
        for (int i = 0; i < s->rules.rule[r].n; i++) {
            const int column = s->rules.rule[r].term[i].column;
            if (column < s->n_axes) {
                show_axis(s, column);
                continue;
            }
            /* Derived columns follow the axes, those that there are in their order. */
            int nth = column - s->n_axes;
            for (int d = 0; d < DERIVED; d++)
                if (axis_of(s, derived[d].a) >= 0 && axis_of(s, derived[d].b) >= 0 && nth-- == 0) {
                    show_axis(s, axis_of(s, derived[d].a));
                    show_axis(s, axis_of(s, derived[d].b));
                }
        }
    while (s->shown[1] < 0) {
        int most = -1;
        for (int i = 0; i < s->n_axes; i++)
            if (i != s->shown[0] && s->axis[i].n > 1 && (most < 0 || s->axis[i].n > s->axis[most].n))
                most = i;
        if (most < 0)
            break;
        show_axis(s, most);
    }
}

int sweep_find(struct sweep *s, struct err *err)
{
    struct made_table m;
    int failed = make_table(s, &m) != 0 || sweep_rules_find(&m.t, &s->rules) != 0;
    for (int i = 0; i < s->rules.n && !failed; i++)
        sweep_rule_words(&m.t, &s->rules.rule[i], s->rule_words[i], sizeof s->rule_words[i]);
    for (int i = 0; i < s->rules.n_same && !failed; i++)
        sweep_rule_words(&m.t, &s->rules.same[i], s->same_words[i], sizeof s->same_words[i]);
    free_table(&m);
    choose_shown(s);
    return failed ? err_no_memory(err, "", "the rules") : 0;
}

size_t sweep_count(const struct sweep *s, enum sweep_result result)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += s->point[i].result == result;
    return n;
}

void sweep_point_words(const struct sweep *s, const struct sweep_point *p, char *out, size_t bytes)
{
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < s->n_axes && used < bytes; i++)
        used += (size_t)snprintf(out + used, bytes - used, "%s%s=%s", i ? " " : "", sweep_axis_name(&s->axis[i]),
                                 s->axis[i].value[p->at[i]]);
}

double sweep_point_size(const struct sweep *s, const struct sweep_point *p)
{
    double size = 1, x;
    for (int i = 0; i < s->n_axes; i++)
        if (strncmp(s->axis[i].key, "shape.", 6) == 0 && value_real(s->axis[i].value[p->at[i]], &x) == 0 && x > 0)
            size *= x;
    return size;
}

const struct sweep_point *sweep_smallest(const struct sweep *s, enum sweep_result result)
{
    const struct sweep_point *least = NULL;
    for (size_t i = 0; i < s->n; i++)
        if (s->point[i].result == result && (!least || sweep_point_size(s, &s->point[i]) < sweep_point_size(s, least)))
            least = &s->point[i];
    return least;
}

int sweep_status(const struct sweep *s)
{
    if (sweep_count(s, SWEEP_FAIL))
        return 1;
    if (s->error)
        return s->error_status;
    if (sweep_count(s, SWEEP_NOT_TRIED))
        return 3;
    return sweep_count(s, SWEEP_OK) ? 0 : 1;
}

const char *sweep_verdict(const struct sweep *s)
{
    switch (sweep_status(s)) {
    case 0:
        return "clean";
    case 1:
        return sweep_count(s, SWEEP_FAIL) ? "fail" : "takes none";
    default:
        return s->error ? "error" : "unfinished";
    }
}

static void no_rule_words(const struct sweep *s, char *out, size_t bytes)
{
    const size_t bad = sweep_count(s, SWEEP_FAIL), all = bad + sweep_count(s, SWEEP_OK);
    const char *fails = s->compares ? "verdicts differ" : "fails";
    if (all == 0)
        snprintf(out, bytes, s->compares ? "no point ran in both" : "no point ran");
    else if (bad == 0 && s->compares)
        snprintf(out, bytes, "the verdicts are the same at all %zu points that ran in both", all);
    else if (bad == 0)
        snprintf(out, bytes, "all %zu points that ran are right", all);
    else if (bad == all)
        snprintf(out, bytes, "%s at all %zu points that ran", fails, all);
    else if (s->rules.best_needed > 0)
        snprintf(out, bytes,
                 "%s at %zu of %zu points, by no rule that these points can tell from chance: the best explains "
                 "%.0f bits and needs %.0f",
                 fails, bad, all, s->rules.best > 0 ? s->rules.best : 0, s->rules.best_needed);
    else
        snprintf(out, bytes, "%s at %zu of %zu points; nothing varies among them", fails, bad, all);
}

static bool rule_sentence(const struct sweep *s, int i, char *out, size_t bytes)
{
    static const char *const how[2][3] = {
        {"fails exactly", "always fails", "mostly fails"},
        {"verdicts differ exactly", "verdicts always differ", "verdicts mostly differ"}};
    out[0] = '\0';
    if (s->rules.n == 0) {
        if (i == 0)
            no_rule_words(s, out, bytes);
        return i == 0;
    }
    if (i < s->rules.n) {
        const struct sweep_rule *r = &s->rules.rule[i];
        const int exactly = sweep_rule_is_exact(r) ? 0 : r->in_bad == r->in ? 1 : 2;
        snprintf(out, bytes, "%s%s where %s: %zu of %zu %s there, %zu of %zu elsewhere", i ? "of the others " : "",
                 how[s->compares][exactly], s->rule_words[i], r->in_bad, r->in, s->compares ? "differ" : "fail",
                 r->out_bad, r->out);
        return true;
    }
    if (i > s->rules.n || !s->rules.n_same)
        return false;
    size_t used = (size_t)snprintf(out, bytes, "these points cannot tell the first from: ");
    for (int k = 0; k < s->rules.n_same && used < bytes; k++)
        used += (size_t)snprintf(out + used, bytes - used, "%s%s", k ? "; or " : "", s->same_words[k]);
    if (used < bytes && s->rules.more_same)
        snprintf(out + used, bytes - used, "; and %zu more", s->rules.more_same);
    return true;
}

bool sweep_sentence(const struct sweep *s, int i, char *out, size_t bytes)
{
    char words[SWEEP_LINE_BYTES];
    for (size_t k = 0; k < s->n; k++) {
        const struct sweep_point *p = &s->point[k];
        if (!p->runs)
            continue;
        if (i-- > 0)
            break;
        sweep_point_words(s, p, words, sizeof words);
        snprintf(out, bytes, "not deterministic: %s%s %d of %d runs fail; what follows is of one run each", words,
                 words[0] ? ":" : "", p->runs_failed, p->runs);
        return true;
    }
    return rule_sentence(s, i, out, bytes);
}

static int copy_axes(const struct sweep *from, struct sweep *out, struct err *err)
{
    for (int a = 0; a < from->n_axes; a++) {
        const struct sweep_axis *axis = &from->axis[a];
        struct sweep_axis *own = &out->axis[out->n_axes++];
        own->key = strdup(axis->key);
        own->value = calloc((size_t)axis->n, sizeof *own->value);
        for (int v = 0; v < axis->n && own->value; v++)
            if ((own->value[own->n] = strdup(axis->value[v])))
                own->n++;
        if (!own->key || !own->value || own->n < axis->n)
            return err_no_memory(err, "", "the axes");
    }
    return 0;
}

static bool is_same_place(const struct sweep *a, const struct sweep_point *p, const struct sweep *b,
                          const struct sweep_point *q)
{
    for (int i = 0; i < a->n_axes; i++)
        if (strcmp(a->axis[i].value[p->at[i]], b->axis[i].value[q->at[i]]) != 0)
            return false;
    return true;
}

/* Sweeps of one sample have it at the same number. */
static const struct sweep_point *point_of(const struct sweep *a, size_t i, const struct sweep *b)
{
    if (i < b->n && is_same_place(a, &a->point[i], b, &b->point[i]))
        return &b->point[i];
    for (size_t k = 0; k < b->n; k++)
        if (is_same_place(a, &a->point[i], b, &b->point[k]))
            return &b->point[k];
    return NULL;
}

static bool ran(const struct sweep_point *p)
{
    return p->result == SWEEP_OK || p->result == SWEEP_FAIL;
}

int sweep_compare(const struct sweep *a, const struct sweep *b, struct sweep *out, struct sweep_change *change,
                  struct err *err)
{
    sweep_init(out);
    *change = (struct sweep_change){.left_out = 0};
    bool same = a->n_axes == b->n_axes;
    for (int i = 0; i < a->n_axes && same; i++)
        same = strcmp(a->axis[i].key, b->axis[i].key) == 0;
    if (!same)
        return err_set(err, ERR_INPUT, "", "the sweeps vary other axes: sweep the second with --over FIRST.json");
    out->point = calloc(a->n + 1, sizeof *out->point);
    if (!out->point)
        return err_no_memory(err, "", "the points");
    out->br = a->br;
    out->bc = a->bc;
    out->compares = true;
    if (copy_axes(a, out, err) != 0)
        return -1;
    for (size_t i = 0; i < a->n; i++) {
        const struct sweep_point *p = &a->point[i], *q = point_of(a, i, b);
        if (!q || !ran(p) || !ran(q)) {
            change->left_out++;
            continue;
        }
        struct sweep_point *own = &out->point[out->n++];
        *own = (struct sweep_point){.number = i, .result = p->result == q->result ? SWEEP_OK : SWEEP_FAIL};
        memcpy(own->at, p->at, sizeof own->at);
        change->n[p->result == SWEEP_FAIL][q->result == SWEEP_FAIL]++;
    }
    return sweep_find(out, err);
}

int sweep_take_points(struct sweep *s, const struct sweep *from, struct err *err)
{
    if (copy_axes(from, s, err) != 0)
        return -1;
    s->point = calloc(from->n + 1, sizeof *s->point);
    if (!s->point)
        return err_no_memory(err, "", "the points");
    for (; s->n < from->n; s->n++) {
        struct sweep_point *own = &s->point[s->n];
        *own = (struct sweep_point){.number = s->n, .result = SWEEP_NOT_TRIED};
        memcpy(own->at, from->point[s->n].at, sizeof own->at);
    }
    s->whole = s->n;
    s->grid = from->grid;
    s->sample = from->sample;
    return 0;
}
