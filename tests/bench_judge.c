/* How long verdicts take beside the products they stand on: bench_judge KERNEL B,H,L,D [KEY=VALUE...]. The kernel runs
   once, so that every round judges the same trace. The products are S = Q K' and P V of every recorded tile, one call
   for each, operands as float64 beforehand, on as many threads as the verdicts: by OpenBLAS's dgemm, with the kernel
   that it chooses for this machine (OPENBLAS_CORETYPE chooses another), and by the oracle's own. In each round they
   take turns at random, and their ratios are that round's. */
#include "engine/base/pool.h"
#include "engine/oracle/multiply.h"
#include "engine/session/session.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 5, THREADS = 2 };

/* BLAS's C interface (netlib.org/blas/blast-forum/cblas.tgz): C = alpha A B + beta C. */
enum { CBLAS_ROW_MAJOR = 101, CBLAS_PLAIN = 111, CBLAS_TRANSPOSED = 112 };
typedef void cblas_dgemm(int order, int turn_a, int turn_b, int n, int m, int k, double alpha, const double *a, int lda,
                         const double *b, int ldb, double beta, double *c, int ldc);

struct job {
    struct session *session;
    struct judgement *judgement;
    struct judge_scratch *scratch[THREADS];
    double *room[THREADS]; /* operands and results of the products */
    cblas_dgemm *dgemm;    /* OpenBLAS's; NULL: it is not installed */
    bool by_dgemm;
    atomic_int next, multiplied; /* the next slot; tiles whose products were computed in one round */
    double begin_ms, first_ms;
};

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double ms[ROUNDS])
{
    qsort(ms, ROUNDS, sizeof ms[0], ascending);
    return ms[ROUNDS / 2];
}

/* The slot under the cursor is judged first, as the session's queue does it. */
static int slot_of_turn(const struct job *job, int turn)
{
    const int cursor = job->judgement->n_slots / 2;
    return turn == 0 ? cursor : turn <= cursor ? turn - 1 : turn;
}

static int judge_step(void *ctx, int worker)
{
    struct job *job = ctx;
    const int turn = atomic_fetch_add(&job->next, 1);
    if (turn >= job->judgement->n_slots)
        return 0;
    judgement_slot(job->judgement, job->session->run.trace, slot_of_turn(job, turn), job->scratch[worker]);
    if (turn == 0)
        job->first_ms = now_ms() - job->begin_ms;
    return 1;
}

static int multiply_step(void *ctx, int worker)
{
    struct job *job = ctx;
    const struct trace *t = job->session->run.trace;
    const int R = t->plan.br, C = t->plan.bc, D = t->problem.head_dim;
    const ptrdiff_t q_values = (ptrdiff_t)R * D, k_values = (ptrdiff_t)C * D, scores = (ptrdiff_t)R * C;
    const int slot = atomic_fetch_add(&job->next, 1);
    double *q = job->room[worker], *k = q + q_values, *v = k + k_values, *p = v + k_values, *s = p + scores,
           *u = s + scores;
    if (slot >= t->layout.n_slots)
        return 0;
    for (int kv = 0; kv < t->layout.kv_tiles; kv++) {
        if (!trace_first_stamp(t, asc_s, slot, kv))
            continue;
        if (job->by_dgemm) {
            job->dgemm(CBLAS_ROW_MAJOR, CBLAS_PLAIN, CBLAS_TRANSPOSED, R, C, D, t->problem.scale, q, D, k, D, 0, s, C);
            job->dgemm(CBLAS_ROW_MAJOR, CBLAS_PLAIN, CBLAS_PLAIN, R, D, C, 1, p, C, v, D, 1, u, D);
        } else {
            matrix_multiply_transposed(R, C, D, t->problem.scale, q, D, k, D, s, 0);
            matrix_multiply(R, D, C, 1, p, C, v, D, u, 1);
        }
        atomic_fetch_add(&job->multiplied, 1);
    }
    return 1;
}

static double time_steps(struct job *job, struct pool *pool, int (*step)(void *, int))
{
    atomic_store(&job->next, 0);
    if (step == multiply_step)
        atomic_store(&job->multiplied, 0);
    job->begin_ms = now_ms();
    pool_start(pool, step, job);
    pool_wait(pool);
    return now_ms() - job->begin_ms;
}

/* Milliseconds of all verdicts; bits: with the sample that tells which tensor core it was, where one is declared, and
 *exact tiles of S and U asked for every bit. Negative: out of memory. */
static double judge_all(struct job *job, struct pool *pool, int bits, uint64_t *exact)
{
    const struct trace *t = job->session->run.trace;
    struct summary summary;
    if (judgement_new(t, &job->judgement) != 0)
        return -1;
    const double begin_ms = now_ms();
    int failed = bits && judgement_fingerprint(job->judgement, t, job->scratch, pool) != 0;
    time_steps(job, pool, judge_step);
    const double ms = now_ms() - begin_ms;
    failed = failed || atomic_load(&job->judgement->n_done) != job->judgement->n_slots;
    judgement_summarize(job->judgement, t, NULL, &summary);
    *exact = summary.stage[asc_s].exact.n + summary.stage[asc_u].exact.n;
    judgement_free(job->judgement);
    return failed ? -1 : ms;
}

enum contender { JUDGE, DGEMM, OWN, CONTENDERS };

static double contend(struct job *job, struct pool *pool, enum contender who, uint64_t *exact)
{
    if (who == JUDGE)
        return judge_all(job, pool, 1, exact);
    job->by_dgemm = who == DGEMM;
    return job->by_dgemm && !job->dgemm ? 0 : time_steps(job, pool, multiply_step);
}

static void print_products(const struct job *job, const char *by, double ms)
{
    const struct trace *t = job->session->run.trace;
    const double products = 2.0 * atomic_load(&job->multiplied) * t->plan.br * t->plan.bc * t->problem.head_dim;
    char name[60];
    snprintf(name, sizeof name, "the same products %s", by);
    printf("  %-39s %9.0f ms    %.1f 10^9 multiplications a second and thread\n", name, ms,
           products / ms / 1e6 / THREADS);
}

static int measure(struct job *job, struct pool *pool, const char *blas)
{
    double ms[CONTENDERS][ROUNDS] = {{0}}, first_ms[ROUNDS], bounds_ms[ROUNDS], to_dgemm[ROUNDS], to_own[ROUNDS];
    uint64_t exact = 0, none = 0;
    for (int i = 0; i < ROUNDS; i++) {
        const int begin = rand() % CONTENDERS, step = 1 + rand() % 2; /* each of the six orders */
        for (int turn = 0; turn < CONTENDERS; turn++) {
            const enum contender who = (enum contender)((begin + turn * step) % CONTENDERS);
            ms[who][i] = contend(job, pool, who, &exact);
        }
        first_ms[i] = job->first_ms;
        to_dgemm[i] = ms[JUDGE][i] / ms[DGEMM][i];
        to_own[i] = ms[JUDGE][i] / ms[OWN][i];
        bounds_ms[i] = exact ? judge_all(job, pool, 0, &none) : ms[JUDGE][i];
        if (ms[JUDGE][i] < 0 || bounds_ms[i] < 0)
            return -1;
    }
    const double judge = median(ms[JUDGE]);
    printf("  judge every recorded tile               %9.0f ms\n", judge);
    if (exact)
        printf("  of it, every bit of %6llu tiles of S, U %9.0f ms    aim: under 1000\n", (unsigned long long)exact,
               judge - median(bounds_ms));
    printf("  the tile under the cursor, with its row %9.1f ms\n", median(first_ms));
    if (job->dgemm) {
        print_products(job, blas, median(ms[DGEMM]));
        printf("  judging / OpenBLAS's dgemm              %9.2f    aim: at most 3\n", median(to_dgemm));
    } else {
        printf("  OpenBLAS's dgemm: not measured, libopenblas.so.0 is not installed (Debian: libopenblas0)\n");
    }
    print_products(job, "by our own kernel", median(ms[OWN]));
    printf("  judging / our own products              %9.2f\n", median(to_own));
    return 0;
}

/* One thread of its own for each that calls it. *by: whose it is and for which machine. */
static cblas_dgemm *find_dgemm(char *by, size_t size)
{
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    cblas_dgemm *dgemm = NULL;
    char *(*core)(void) = NULL;
    if (library) {
        *(void **)&dgemm = dlsym(library, "cblas_dgemm");
        *(void **)&core = dlsym(library, "openblas_get_corename");
    }
    snprintf(by, size, "by OpenBLAS (%s)", core ? core() : "?");
    return dgemm;
}

static int record(struct session *s, int argc, char **argv, struct err *err)
{
    if (scenario_parse_shape(argv[2], &s->subject.scenario.problem, err) != 0)
        return -1;
    for (int i = 3; i < argc; i++) {
        char *equals = strchr(argv[i], '=');
        if (!equals)
            return err_set(err, ERR_USAGE, argv[i], "expected KEY=VALUE");
        *equals = '\0';
        if (scenario_set(&s->subject.scenario, argv[i], equals + 1, err) != 0)
            return -1;
    }
    s->subject.scenario.limit_s = 600;
    if (scenario_check(&s->subject.scenario, err) != 0)
        return -1;
    if (session_start(s) != 0)
        return err_set(err, ERR_SYSTEM, "", "no thread could be started");
    if (session_finish(s, 0) != 0) {
        *err = s->job.err;
        return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct err err = {0};
    struct job job = {0};
    struct pool *pool = NULL;
    if (argc < 3) {
        fprintf(stderr, "usage: bench_judge KERNEL B,H,L,D [KEY=VALUE...]\n");
        return 2;
    }
    int failed = session_open(argv[1], &job.session, &err) != 0 || record(job.session, argc, argv, &err) != 0 ||
                 pool_new(THREADS, &pool, &err) != 0;
    if (!failed) {
        const struct trace *t = job.session->run.trace;
        const size_t R = (size_t)t->plan.br, C = (size_t)t->plan.bc, D = (size_t)t->problem.head_dim;
        for (int i = 0; i < THREADS && !failed; i++) {
            job.scratch[i] = judge_scratch_new();
            job.room[i] = calloc(2 * R * D + 2 * C * D + 2 * R * C, sizeof(double));
            failed = !job.scratch[i] || !job.room[i];
            for (size_t x = 0; !failed && x < 2 * R * D + 2 * C * D + 2 * R * C; x++)
                job.room[i][x] = (double)(x % 251) / 251;
        }
        printf("%s (%s), %d threads, %d slots of %d kv tiles, median of %d\n", argv[1], argv[2], THREADS,
               t->layout.n_slots, t->layout.kv_tiles, ROUNDS);
        char blas[40];
        job.dgemm = find_dgemm(blas, sizeof blas);
        failed = failed || measure(&job, pool, blas) != 0;
    }
    if (failed)
        fprintf(stderr, "bench_judge: %s: %s\n", err.where, err.code == ERR_NONE ? "no memory" : err.message);
    pool_free(pool);
    for (int i = 0; i < THREADS; i++) {
        judge_scratch_free(job.scratch[i]);
        free(job.room[i]);
    }
    session_free(job.session);
    return failed ? 3 : 0;
}
