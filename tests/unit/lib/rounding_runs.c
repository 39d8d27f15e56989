#include "tests/unit/lib/rounding_runs.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/fingerprint.h"

const struct rounding_cell *rounding_all(const struct rounding_result *r, enum asc_channel ch)
{
    return &r->cells[(int)ch * (r->kv_tiles + 1) + r->kv_tiles];
}

/* The largest number of type t that is not above x. */
static double round_down(enum dtype t, double x)
{
    double nearest = bound_round(t, x), below = x;
    while (nearest > x) {
        below -= fabs(x) * 0x1p-12 + 0x1p-30;
        nearest = bound_round(t, below);
    }
    return nearest;
}

static double exact_score(const struct kernel_run *run, int row, int key)
{
    const struct spec *s = &run->spec;
    const size_t D = (size_t)s->head_dim, q = (size_t)(s->q_tile * s->br + row) * D, k = (size_t)key * D;
    double sum = 0;
    for (size_t d = 0; d < D; d++)
        sum += dtype_load(s->dtype, run->q, q + d) * dtype_load(s->dtype, run->k, k + d);
    return sum * (s->conventions.s_unit == ASC_UNIT_SCALED ? (double)run->scale : 1);
}

static double quarter_ulp(double x)
{
    return x != 0 ? ldexp(0.25, ilogb(x) - 23) : 0;
}

static void spoil_s(const struct kernel_run *run, enum rounding_mistake mistake, int kv)
{
    const struct matrix *m = &run->captured[kv * ASC_CHANNELS + asc_s];
    for (int row = 0; row < m->rows; row++)
        for (int col = 0; col < m->cols; col++) {
            float *s = &((float *)run->arrays[kv * ASC_CHANNELS + asc_s])[row * m->row_stride + col];
            const double x = exact_score(run, row, kv * run->spec.bc + col);
            if (!isfinite(*s))
                continue;
            *s = (float)(x + (mistake == S_QUARTER_ULP ? quarter_ulp(x) : 0));
            if (mistake == S_ROUNDED_DOWN && (double)*s > x)
                *s = nextafterf(*s, -INFINITY);
        }
}

static void spoil_p(const struct kernel_run *run, int kv)
{
    const struct matrix *s = &run->captured[kv * ASC_CHANNELS + asc_s], *p = &run->captured[kv * ASC_CHANNELS + asc_p];
    const float *m = run->arrays[kv * ASC_CHANNELS + asc_m];
    const double natural = run->spec.conventions.s_unit == ASC_UNIT_SCALED ? 1 : (double)run->scale;
    for (int row = 0; row < p->rows; row++)
        for (int col = 0; col < p->cols; col++) {
            const double x = dtype_load(s->dtype, s->data, (size_t)(row * s->row_stride + col)) - (double)m[row];
            dtype_store(p->dtype, run->arrays[kv * ASC_CHANNELS + asc_p], (size_t)(row * p->row_stride + col),
                        round_down(p->dtype, exp(x * natural)));
        }
}

static void spoil_o(const struct kernel_run *run)
{
    const int last = run->order[run->c.n_visited - 1];
    const struct matrix *o = &run->captured[asc_o];
    const float *u = run->arrays[last * ASC_CHANNELS + asc_u], *l = run->arrays[last * ASC_CHANNELS + asc_l];
    for (int row = 0; row < o->rows; row++)
        for (int d = 0; d < o->cols; d++)
            dtype_store(o->dtype, run->arrays[asc_o], (size_t)(row * o->row_stride + d),
                        round_down(o->dtype, (double)u[row * o->cols + d] / (double)l[row]));
}

static void spoil_u(const struct kernel_run *run, int kv)
{
    const struct matrix *m = &run->captured[kv * ASC_CHANNELS + asc_u];
    for (int i = 0; i < m->rows * m->cols; i++) {
        float *u = &((float *)run->arrays[kv * ASC_CHANNELS + asc_u])[i];
        /* Before the last rounding, half of the values that lie between would have gone up: here every second one. */
        if (i % 2)
            *u = nextafterf(*u, INFINITY);
    }
}

static struct kernel_run *rounding_kernel_run(const struct rounding_run *r, int q_tile, unsigned negated)
{
    struct spec s = r->spec;
    s.q_tile = q_tile;
    s.negated = negated;
    if (r->mistake == S_LAST_PRODUCT_DROPPED)
        s.mistake = S_LAST_PRODUCT;
    struct kernel_run *run = kernel_run(&s);
    for (int kv = 0; kv < run->c.kv_tiles; kv++) {
        if (r->mistake == S_QUARTER_ULP || r->mistake == S_ROUNDED_DOWN)
            spoil_s(run, r->mistake, kv);
        if (r->mistake == P_ROUNDED_DOWN)
            spoil_p(run, kv);
        if (r->mistake == U_QUARTER_ULP)
            spoil_u(run, kv);
    }
    if (r->mistake == O_ROUNDED_DOWN)
        spoil_o(run);
    return run;
}

void rounding_judge(const struct rounding_run *r, struct judge_scratch *scratch, struct rounding_result *out)
{
    enum { MOST = 16 };
    struct kernel_run *run[MOST] = {0}, *q[MOST] = {0}, *v[MOST] = {0};
    struct fingerprint f = {0};
    const int n = r->q_tiles;
    if (n < 1 || n > MOST)
        abort();
    for (int i = 0; i < n; i++) {
        run[i] = rounding_kernel_run(r, i, 0);
        q[i] = r->negation ? rounding_kernel_run(r, i, 1) : NULL;
        v[i] = r->negation ? rounding_kernel_run(r, i, 2) : NULL;
        if (r->fingerprint && fingerprint_add(&f, &run[i]->c, scratch, i, (FINGERPRINT_BLOCKS + n - 1) / n) != 0)
            abort();
    }
    struct rounding_head *h = rounding_head_new(&run[0]->c);
    out->kv_tiles = run[0]->c.kv_tiles;
    for (int i = 0; h && i < n; i++) {
        const struct rounding_negated negated = {q[i] ? q[i]->captured : NULL, v[i] ? v[i]->captured : NULL};
        run[i]->c.fingerprint = r->fingerprint ? &f : NULL;
        if (rounding_head_add(h, &run[i]->c, r->negation ? &negated : NULL, scratch) != 0)
            abort();
    }
    if (!h)
        abort();
    rounding_head_finish(h, out->cells, out->drift);
    rounding_head_free(h);
    for (int i = 0; i < n; i++) {
        kernel_run_free(run[i]);
        if (r->negation) {
            kernel_run_free(q[i]);
            kernel_run_free(v[i]);
        }
    }
}

struct rounding_run rounding_correct_run(unsigned i)
{
    static const enum fill fills[] = {FILL_NORMAL,   FILL_POSITIVE, FILL_COMMON_MEAN, FILL_ARANGE, FILL_LARGE,
                                      FILL_OUTLIERS, FILL_ONE_HOT,  FILL_CONSTANT,    FILL_ZEROS};
    static const int cores[] = {TENSOR_CORE_H100, TENSOR_CORE_A100, TENSOR_CORE_V100, TENSOR_CORE_H100, -1, -1, -1};
    uint64_t state = i * UINT64_C(2654435761) + 1;
    const int core = cores[test_random(&state) % (sizeof cores / sizeof cores[0])];
    struct rounding_run r = {.q_tiles = 1 + (int)(test_random(&state) % 2)};
    struct spec *s = &r.spec;
    *s = (struct spec){.br = 64, .bc = 64, .seed = 1000 + i};
    s->fill = fills[i % (sizeof fills / sizeof fills[0])];
    s->head_dim = test_random(&state) % 4 ? 32 : 64;
    s->q_len = 64 * r.q_tiles - (int)(test_random(&state) % 3) * 5;
    s->kv_len = 128 - (int)(test_random(&state) % 3) * 7;
    s->causal = test_random(&state) % 4 ? ASC_CAUSAL_NONE : ASC_CAUSAL_BOTTOM_RIGHT;
    s->conventions.s_unit = s->conventions.m_unit = test_random(&state) % 2 ? ASC_UNIT_SCALED : ASC_UNIT_RAW;
    s->p_dtype = test_random(&state) % 2 ? DTYPE_F16 : DTYPE_F32;
    if (core >= 0) {
        s->core = 1 + core;
        s->conventions.acc_s = s->conventions.acc_u = ASC_ACC_MMA_F16;
        s->p_dtype = DTYPE_F16;
        s->conventions.l_from = ASC_L_ROUNDED;
        r.fingerprint = test_random(&state) % 2 == 0;
    } else {
        s->summing = (enum summing)(test_random(&state) % 3);
        if (s->p_dtype == DTYPE_F16)
            s->conventions.l_from = test_random(&state) % 2 ? ASC_L_ROUNDED : ASC_L_UNROUNDED;
    }
    r.negation = test_random(&state) % 8 == 0;
    return r;
}
