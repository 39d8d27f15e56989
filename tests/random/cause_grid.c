/* cause_grid [SEEDS [MISTAKE]]: every mistake of the test kernel on every shape, under every convention, on every kind
   of input, SEEDS times (3), those that tell little once. A listed mistake must be named right or not at all, an
   unlisted one must have no name, and the right kernel no culprit. Prints each run that is named wrong and a line of
   sums; exits 1 on any. */
#include "engine/base/pool.h"
#include "tests/unit/lib/cause_grade.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES = SHAPES + CONVENTIONS };

struct grid {
    int seeds;
    const char *only; /* a part of the mistake's name */
    atomic_int next, failed;
    struct judge_scratch **scratch; /* owned, [pool threads] */
    pthread_mutex_t lock;           /* of what follows, and of stdout */
    long listed[3];                 /* named wrong, not at all, right */
    long unlisted[2];               /* no name, a name */
    long without_effect, right_blamed;
};

static const char *mistake_name(enum mistake mistake)
{
    /* cppcheck-suppress arrayIndexOutOfBoundsCond ; every mistake below MISTAKES has its place */
    const char *name = mistake < LISTED_END ? listed[mistake].name : unlisted[mistake];
    return name ? name : "RIGHT";
}

/* The n-th run of the grid, its mistake LISTED_END where it is left out. 0: there is none. */
static int run_of(const struct grid *g, int n, struct spec *s, const char **where)
{
    const int mistake = n % MISTAKES, fill = n / MISTAKES % CAUSE_FILLS, place = n / MISTAKES / CAUSE_FILLS % PLACES;
    const int seed = n / MISTAKES / CAUSE_FILLS / PLACES;
    *where = place < SHAPES ? "shape" : convention_cases[place - SHAPES].name;
    *s = spec_of(place < SHAPES ? &shapes[place] : &convention_cases[place - SHAPES].spec, (enum mistake)mistake,
                 cause_fills[fill], (unsigned)(1000 * seed + 7 * place + mistake));
    s->mistake = seed > 0 && fill >= TELLING_FILLS ? LISTED_END : s->mistake;
    return seed < g->seeds;
}

static void count(struct grid *g, const struct spec *s, const char *where, const struct outcome *o)
{
    const int is_listed = s->mistake > RIGHT && s->mistake < LISTED_END;
    int wrong = 0;
    pthread_mutex_lock(&g->lock);
    if (s->mistake == RIGHT) {
        wrong = o->culprits != 0;
        g->right_blamed += wrong;
    } else if (!o->culprits) {
        g->without_effect++;
    } else if (is_listed) {
        const int is = grade(o, s);
        g->listed[is + 1]++;
        wrong = is < 0;
    } else {
        wrong = is_misnamed(o, s);
        g->unlisted[wrong]++;
    }
    if (wrong)
        print_case(s, where, o);
    pthread_mutex_unlock(&g->lock);
}

static int step(void *ctx, int worker)
{
    struct grid *g = ctx;
    struct spec s;
    struct outcome o;
    const char *where;
    if (!run_of(g, atomic_fetch_add(&g->next, 1), &s, &where))
        return 0;
    if (s.mistake == LISTED_END || !strstr(mistake_name(s.mistake), g->only) ||
        (s.mistake < LISTED_END && listed[s.mistake].needs & ~offers(&s)))
        return 1;
    if (run_outcome(&s, g->scratch[worker], &o) != 0)
        g->failed = 1;
    else
        count(g, &s, where, &o);
    return 1;
}

int main(int argc, char **argv)
{
    static struct grid g = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct pool *pool;
    struct err err = {0};
    g.seeds = argc > 1 ? atoi(argv[1]) : 3;
    g.only = argc > 2 ? argv[2] : "";
    if (argc > 3 || g.seeds < 1 || g.seeds > 100) {
        fprintf(stderr, "usage: cause_grid [SEEDS [MISTAKE]], 1 to 100 seeds\n");
        return 2;
    }
    if (pool_new(0, &pool, &err) != 0) {
        fprintf(stderr, "%s\n", err.message);
        return 2;
    }
    g.scratch = calloc((size_t)pool_threads(pool), sizeof(struct judge_scratch *));
    for (int i = 0; i < pool_threads(pool) && g.scratch; i++)
        if (!(g.scratch[i] = judge_scratch_new()))
            g.failed = 1;
    if (g.scratch && !g.failed) {
        pool_start(pool, step, &g);
        pool_wait(pool);
    }
    for (int i = 0; i < pool_threads(pool) && g.scratch; i++)
        judge_scratch_free(g.scratch[i]);
    free(g.scratch);
    pool_free(pool);
    printf("listed mistakes: right %ld, none %ld, wrong %ld; unlisted ones: none %ld, named %ld; right kernels blamed "
           "%ld; without effect %ld\n",
           g.listed[2], g.listed[1], g.listed[0], g.unlisted[0], g.unlisted[1], g.right_blamed, g.without_effect);
    return g.failed || g.listed[0] || g.unlisted[1] || g.right_blamed || !g.listed[2];
}
