/* U of the reference: products of weights with V, and how far a correct kernel's may lie from them. */
#include "engine/oracle/reference.h"

#include "engine/base/vector.h"
#include "engine/oracle/likely.h"
#include "engine/oracle/local.h"
#include "engine/oracle/magnitude.h"
#include "engine/oracle/product.h"
#include "engine/oracle/values.h"
#include "engine/oracle/weight.h"

void reference_late_u(const struct oracle_case *c, struct judge_scratch *s)
{
    const int head_dim_v = c->head_dim_v;
    const double factor = reference_offset(c);
    if (s->late_kv < 0)
        return;
    for (int i = 0; i < c->in_q.rows * head_dim_v; i++) {
        const int r = i / head_dim_v;
        const double shift = factor * s->reference.shift[r];
        const double decay = s->reference.decay[r], decay_error = s->reference.decay_error[r];
        const double error =
            (decay + decay_error) * s->reference.out_error[i] + decay_error * fabs(s->reference.out[i]);
        s->late.want[GLOBAL][i] = decay * s->reference.out[i] * shift;
        s->late.bound[GLOBAL][i] =
            (error + (s->reference.frame_loose[r] + BOUND_U) * (decay * fabs(s->reference.out[i]) + error)) * shift +
            BOUND_TINY;
    }
}

/* P.V may take a rounded P: that much more each weight may err by. */
static void add_rounding(const struct oracle_case *c, struct judge_scratch *s)
{
    enum dtype t;
    double unit = 0;
    double half_tiny = 0;
    if (!values_p_type(c, &t))
        return;
    bound_narrow(t, &unit, &half_tiny);
    for (int i = 0; i < c->in_q.rows * s->at.cols; i++) {
        const int r = i / s->at.cols;
        s->reference.weight_error[i] = weight_rounded(s->reference.weight[i], s->reference.weight_error[i], unit,
                                                      half_tiny * s->reference.p_unit[r]);
    }
}

/* A tensor core aligns a subnormal p like the smallest normal one, t, and a subnormal v likewise: both enter the bound
   with up to t more, p's in the kernel's frame. Adds the former to the weights' errors; what the latter adds to each u
   of a row is returned in lost[r]. */
static void add_subnormal(const struct oracle_case *c, struct judge_scratch *s, double relative, double *lost)
{
    const int rows = c->in_q.rows, cols = s->at.cols;
    const double least = product_size(c->conventions.acc_u, BOUND_TINY);
    for (int r = 0; r < rows; r++) {
        const double least_weight = least * s->reference.p_unit[r];
        lost[r] = 0;
        if (least <= BOUND_TINY)
            continue;
        for (int col = 0; col < cols; col++) {
            const size_t i = (size_t)r * (size_t)cols + (size_t)col;
            if (s->reference.weight[i] > 0 && s->reference.weight[i] < least_weight)
                s->reference.weight_error[i] += relative * least_weight;
        }
        lost[r] = relative * (least * s->reference.sum[r] + cols * least_weight);
    }
}

VECTOR_UNITS static void raise_row(int n, double times, const double *restrict x, double *restrict top)
{
    for (int i = 0; i < n; i++)
        top[i] = fabs(x[i]) * times > top[i] ? fabs(x[i]) * times : top[i];
}

/* Whether every p is its true weight in this run's frame but for 2^-16 of it. */
VECTOR_UNITS static bool weights_follow(const double *p, const double *want, int n)
{
    int64_t far = 0;
    for (int i = 0; i < n; i++)
        far |= !(fabs(p[i] - want[i]) <= 0x1p-16 * want[i]);
    return far == 0;
}

/* Fills weighed_sizes with sum w |v|, or leaves sum |p v| of the captured p there where that is as good: w is then at
   most (1 + 2^-15) times p in the frame of the maximum. Returns what its sums still have to be multiplied by. */
static double weigh_sizes(const struct oracle_case *c, struct judge_scratch *s, const struct magnitude_sums *sizes)
{
    const int n = c->in_q.rows * s->at.cols;
    if (s->weighed_p && s->at.size[asc_v] == s->input[asc_v].size &&
        weights_follow(s->at.pv_p.value, s->stage[asc_p].want[GLOBAL], n))
        return 1 + 0x1p-15;
    magnitude_sum(&s->room, c->in_q.rows, c->head_dim_v, s->at.cols, s->reference.weight, s->input[asc_v].size, sizes);
    s->weighed_p = false;
    return 1;
}

struct true_row {
    struct sum_terms terms;
    double loose;       /* uncertainty of the run's frame */
    double shift, tiny; /* from the frame of the maximum to the run's */
    struct magnitude_row size, error;
};

/* What sum_row() leaves for likely_values(). */
struct reaches {
    double *restrict moved, *restrict reach, *restrict product;
};

/* Takes the tile's products (in `want`) and their errors into the sums so far; U of one row in this run's frame. more:
   what the products may err by besides. */
static inline void sum_elements(int n, const struct true_row *row, double *restrict out, double *restrict error,
                                const double *restrict more, double *restrict want, double *restrict bound,
                                const struct reaches *reaches)
{
    const struct sum_terms terms = row->terms;
    const double loose = row->loose, shift = row->shift, tiny = row->tiny;
    const struct magnitude_row sizes = row->size, errors = row->error;
    for (int i = 0; i < n; i++) {
        double sum = out[i], all = error[i], fixed, reach;
        sum_element(&terms, want[i], (sizes.sums[i] + sizes.lost) * sizes.grown,
                    (errors.sums[i] + errors.lost) * errors.grown, more[i], &sum, &all, &fixed, &reach);
        out[i] = sum;
        error[i] = all;
        if (reaches) {
            reaches->moved[i] = fixed;
            reaches->reach[i] = reach;
            reaches->product[i] = want[i];
        }
        want[i] = sum * shift;
        bound[i] = (all + loose * (fabs(sum) + all)) * shift + tiny;
    }
}

VECTOR_UNITS static void sum_row(int n, const struct true_row *row, double *restrict out, double *restrict error,
                                 const double *restrict more, double *restrict want, double *restrict bound)
{
    sum_elements(n, row, out, error, more, want, bound, NULL);
}

VECTOR_UNITS static void sum_long_row(int n, const struct true_row *row, double *restrict out, double *restrict error,
                                      const double *restrict more, double *restrict want, double *restrict bound,
                                      const struct reaches *reaches)
{
    sum_elements(n, row, out, error, more, want, bound, reaches);
}

/* U of one row that was divided by l: out / sum, within what is said of u_norm in reference.h. However uncertain the
   weights, it is a mean of V. */
static void divide_row(const struct oracle_case *c, const struct judge_scratch *s, int r, double tiny, double *want,
                       double *bound)
{
    const int lanes = c->conventions.l_lanes;
    const size_t first = (size_t)r * (size_t)c->head_dim_v;
    const double sum = s->reference.sum[r],
                 off = s->reference.sum_error[r] + (lanes > 1 ? bound_gamma(lanes) * sum : 0);
    const double least = sum - off, l = reference_offset(c) * sum * s->reference.shift[r];
    for (int d = 0; d < c->head_dim_v; d++) {
        const double u = sum > 0 ? s->reference.out[first + (size_t)d] / sum : 0;
        const double moved = least > 0 ? (s->reference.out_error[first + (size_t)d] + fabs(u) * off) / least : INFINITY;
        want[d] = u;
        bound[d] = sum > 0 ? fmin(moved, fabs(u) + 2 * s->reference.out_top[d]) + tiny * (1 + 1 / l) : 0;
    }
}

double reference_accumulate_error(const struct oracle_case *c)
{
    const int is_tile = c->conventions.p_max == ASC_P_MAX_TILE, divides = c->conventions.u_norm == ASC_U_NORM_TILE;
    return product_accumulate(c) + (is_tile + 6 * divides) * product_rounding(c->conventions.acc_u) * BOUND_SLACK;
}

void reference_u(const struct oracle_case *c, struct judge_scratch *s)
{
    const int divides = c->conventions.u_norm == ASC_U_NORM_TILE;
    struct stage *stage = &s->stage[asc_u];
    const int rows = stage->rows, cols = s->at.cols, head_dim_v = c->head_dim_v;
    const double *v = s->input[asc_v].value, *size_v = s->input[asc_v].size;
    const double relative = reference_accumulate_error(c);
    const double factor = reference_offset(c), times = s->at.times_v;
    const struct magnitude_sums sizes = {s->room.weighed, s->room.weighed_unit}, errors = {s->room.c, s->room.unit};
    const struct reaches reaches = {s->reference.moved, s->reference.reach, s->reference.product};
    double *want = stage->want[GLOBAL], *bound = stage->bound[GLOBAL];
    const double *top = s->input[asc_v].top; /* the largest product is that of the largest: rounding is monotonic */
    for (int key = 0; key < (top ? 1 : cols); key++)
        raise_row(head_dim_v, times * dropout_of_weights(c), top ? top : size_v + (size_t)key * (size_t)head_dim_v,
                  s->reference.out_top);
    local_weigh_v(&s->room, &(struct weighed_v){rows, head_dim_v, cols, times, s->reference.weight, v}, want);
    const double as_weighed = weigh_sizes(c, s, &sizes);
    if (s->input[asc_v].lossy) {
        /* What converting V may have cost: w (size - |v|). */
        for (int i = 0; i < cols * head_dim_v; i++)
            s->room.k[i] = size_v[i] - fabs(v[i]);
        magnitude_multiply(&s->room, rows, head_dim_v, cols, times * BOUND_SLACK, s->reference.weight, s->room.k,
                           s->room.sum, 0);
    }
    likely_products(c, s);
    add_rounding(c, s);
    add_subnormal(c, s, relative, s->reference.lost);
    magnitude_sum(&s->room, rows, head_dim_v, cols, s->reference.weight_error, size_v, &errors);
    for (int r = 0; r < rows; r++) {
        const double shift = factor * s->reference.shift[r];
        const size_t first = (size_t)r * (size_t)head_dim_v;
        struct true_row row = {.terms = {.decay = s->reference.decay[r],
                                         .decay_error = s->reference.decay_error[r],
                                         .relative = relative,
                                         .lost = s->reference.lost[r] * times},
                               .loose = s->reference.frame_loose[r],
                               .shift = shift,
                               .tiny = fmax(1, factor) * fmax(1, times) * c->bc * BOUND_TINY,
                               .size = magnitude_row(&sizes, r, head_dim_v, cols),
                               .error = magnitude_row(&errors, r, head_dim_v, cols)};
        row.size.grown *= times * (s->weighed_p ? as_weighed * s->reference.p_unit[r] : 1);
        row.error.grown *= times;
        const double *more = s->input[asc_v].lossy ? s->room.sum + first : s->room.zero;
        double *out = s->reference.out + first, *error = s->reference.out_error + first;
        if (s->likely.on)
            sum_long_row(head_dim_v, &row, out, error, more, want + first, bound + first, &reaches);
        else
            sum_row(head_dim_v, &row, out, error, more, want + first, bound + first);
        likely_values(c, s, r, &row.size);
        s->reference.turned[r] += exponential_error(
            &s->reference.exponential, 0, exponential_folds(&s->reference.exponential, s->reference.frame[r]));
        if (divides)
            divide_row(c, s, r, row.tiny, want + first, bound + first);
    }
}
