#include "engine/oracle/quantization/paths.h"

#include "engine/oracle/bound.h"
#include "engine/oracle/codes.h"
#include "engine/oracle/multiply.h"
#include "engine/oracle/quantization/flow.h"
#include "engine/oracle/schedule.h"
#include "engine/oracle/values.h"
#include <string.h>

double path_rms(const struct path_error *e)
{
    return e->n ? sqrt(e->squares / (double)e->n) : NAN;
}

void path_error_add(struct path_error *to, const struct path_error *from)
{
    to->n += from->n;
    to->bad += from->bad;
    to->largest = fmax(to->largest, from->largest);
    to->squares += from->squares;
}

static void add(struct path_error *e, double got, double want)
{
    const double off = got == want ? 0 : fabs(got - want); /* -inf where the key is masked */
    if (!isfinite(off)) {
        e->bad++;
        return;
    }
    e->n++;
    e->largest = fmax(e->largest, off);
    e->squares += off * off;
}

/* One of the three, all of it; float64's is path PATHS. */
struct way {
    double *s, *w; /* [rows][keys] */
    double *w_l;   /* [rows][keys] what l adds up, over the final l; w itself where that is not rounded apart */
    double *v;     /* [keys][dim] */
    double *u, *l; /* [rows][dim], [rows]: up to the tile at hand */
};

struct work {
    const struct oracle_case *given, *run;
    struct flow_shape n;
    struct way way[PATHS + 1];
    double *q, *k, *tile; /* owned; tile: [rows][dim] */
    double *room;         /* owned: all of the ways */
};

static void work_free(struct work *x)
{
    free(x->q);
    free(x->k);
    free(x->tile);
    free(x->room);
}

static int work_new(struct work *x)
{
    const size_t weights = (size_t)x->n.rows * (size_t)x->n.keys, values = (size_t)x->n.keys * (size_t)x->n.dim_v,
                 outputs = (size_t)x->n.rows * (size_t)x->n.dim_v, rows = (size_t)x->n.rows;
    x->q = calloc((size_t)x->n.rows * (size_t)x->n.dim, sizeof(double));
    x->k = calloc((size_t)x->n.keys * (size_t)x->n.dim, sizeof(double));
    x->tile = calloc(outputs, sizeof(double));
    x->room = calloc((PATHS + 1) * (3 * weights + values + outputs + rows), sizeof(double));
    if (!x->q || !x->k || !x->tile || !x->room)
        return -1;
    double *next = x->room;
    for (int i = 0; i <= PATHS; i++) {
        struct way *way = &x->way[i];
        way->s = next;
        way->w = way->s + weights;
        way->w_l = way->w + weights;
        way->v = way->w_l + weights;
        way->u = way->v + values;
        way->l = way->u + outputs;
        next = way->l + rows;
    }
    return 0;
}

static void round_all(enum dtype t, double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = isfinite(x[i]) ? bound_round(t, x[i]) : x[i];
}

static void compute(struct work *x)
{
    const size_t weights = (size_t)x->n.rows * (size_t)x->n.keys, values = (size_t)x->n.keys * (size_t)x->n.dim_v;
    const struct flow_rounding f16 = {.type = DTYPE_F16, .factor = 1, .sums = ASC_L_UNROUNDED};
    struct way *reference = &x->way[PATHS], *half = &x->way[PATH_F16], *run = &x->way[PATH_RUN];
    flow_load(x->given, asc_q, FLOW_INPUT, x->q);
    flow_load(x->given, asc_k, FLOW_INPUT, x->k);
    flow_load(x->given, asc_v, FLOW_INPUT, reference->v);
    flow_scores(x->given, x->q, x->k, reference->s);
    flow_weights(x->given, reference->s, reference->w);
    memcpy(reference->w_l, reference->w, weights * sizeof(double));

    memcpy(half->v, reference->v, values * sizeof(double));
    round_all(DTYPE_F16, half->v, values);
    round_all(DTYPE_F16, x->q, (size_t)x->n.rows * (size_t)x->n.dim);
    round_all(DTYPE_F16, x->k, (size_t)x->n.keys * (size_t)x->n.dim);
    flow_scores(x->given, x->q, x->k, half->s);
    for (size_t i = 0; i < weights; i++)
        half->s[i] = (double)(float)half->s[i];
    flow_round_weights(x->given, half->s, &f16, &(struct flow_weights){.w = half->w});
    flow_weights(x->given, half->s, half->w_l);

    flow_run_scores(x->run, reference->s, run->s);
    flow_run_weights(x->run, run->s, &(struct flow_weights){.w = run->w});
}

/* The share of the sink in l, where it is in there from the start. */
static double sink_share(const struct work *x, const double *w, int split)
{
    double sum = 0;
    if (!x->run->has_sink || x->run->conventions.l_sink != ASC_SINK_START || split != 0)
        return 0;
    for (int j = 0; j < x->n.keys; j++)
        sum += w[j];
    return sum > 0 ? 1 - sum : 1;
}

/* U and l of a way up to and with this tile. */
static void advance(struct work *x, struct way *way, int kv, int begins)
{
    int first;
    const int cols = flow_tile(x->run, kv, &first), split = schedule_split(x->run, kv);
    const size_t dim = (size_t)x->n.dim_v;
    matrix_multiply(x->n.rows, x->n.dim_v, cols, 1, way->w + first, x->n.keys, way->v + (size_t)first * dim, x->n.dim_v,
                    x->tile, 0);
    for (int r = 0; r < x->n.rows; r++) {
        const double *w = way->w_l + (size_t)r * (size_t)x->n.keys;
        if (begins)
            way->l[r] = sink_share(x, w, split);
        for (int j = 0; j < cols; j++)
            way->l[r] += w[first + j];
        for (size_t d = (size_t)r * dim; d < (size_t)(r + 1) * dim; d++)
            way->u[d] = (begins ? 0 : way->u[d]) + x->tile[d];
    }
}

static double captured_l(const struct matrix *m, int r)
{
    double sum = 0;
    for (int lane = 0; lane < m->cols; lane++)
        sum += values_element(m, (size_t)(r * m->row_stride + lane));
    return sum;
}

static void add_ul(const struct work *x, int kv, struct path_tile *tile)
{
    const struct matrix *u = &x->run->captured[kv * ASC_CHANNELS + asc_u],
                        *l = &x->run->captured[kv * ASC_CHANNELS + asc_l];
    const struct way *reference = &x->way[PATHS], *half = &x->way[PATH_F16];
    const bool own = u->data && l->data && tile->visited && x->run->conventions.u_phase == ASC_U_AFTER_PV;
    const double times = codes_o_times(x->run);
    for (int r = 0; r < x->n.rows; r++) {
        const double sum = !own ? 0 : x->run->conventions.u_norm == ASC_U_NORM_TILE ? 1 : captured_l(l, r);
        if (!(reference->l[r] > 0))
            continue;
        for (int d = 0; d < x->n.dim_v; d++) {
            const size_t i = (size_t)r * (size_t)x->n.dim_v + (size_t)d;
            const double want = reference->u[i] / reference->l[r];
            add(&tile->ul[PATH_F16], half->u[i] / half->l[r], want);
            if (own)
                add(&tile->ul[PATH_RUN], values_element(u, (size_t)(r * u->row_stride + d)) * times / sum, want);
        }
    }
}

static void add_scores(const struct work *x, int kv, struct path_tile *tile)
{
    int first;
    const int cols = flow_tile(x->run, kv, &first);
    const int has_s = tile->visited && x->run->captured[kv * ASC_CHANNELS + asc_s].data,
              has_p = tile->visited && x->run->captured[kv * ASC_CHANNELS + asc_p].data;
    for (int r = 0; r < x->n.rows; r++) {
        for (int j = first; j < first + cols; j++) {
            const size_t i = (size_t)r * (size_t)x->n.keys + (size_t)j;
            const struct way *reference = &x->way[PATHS];
            if (!schedule_shows(x->run, r, j))
                continue;
            add(&tile->s[PATH_F16], x->way[PATH_F16].s[i], reference->s[i]);
            add(&tile->p[PATH_F16], x->way[PATH_F16].w[i], reference->w[i]);
            if (has_s)
                add(&tile->s[PATH_RUN], x->way[PATH_RUN].s[i], reference->s[i]);
            if (has_p)
                add(&tile->p[PATH_RUN], x->way[PATH_RUN].w[i], reference->w[i]);
        }
    }
}

/* All tiles: in the order of the run's visits, then those it did not visit; these bring nothing to U. */
static void walk(struct work *x, struct paths *out)
{
    int split = -1;
    for (int i = 0; i < (x->run->n_visited > 0 ? x->run->n_visited : out->kv_tiles); i++) {
        const int kv = schedule_nth(x->run, i), own = schedule_split(x->run, kv);
        out->tile[kv].visited = x->run->n_visited > 0;
        for (int way = 0; way <= PATHS; way++)
            if (way != PATH_RUN)
                advance(x, &x->way[way], kv, own != split);
        split = own;
        add_ul(x, kv, &out->tile[kv]);
    }
    for (int kv = 0; kv < out->kv_tiles; kv++)
        add_scores(x, kv, &out->tile[kv]);
}

static void outputs(struct work *x, struct paths *out)
{
    flow_output(x->given, x->way[PATHS].w, x->way[PATHS].v, out->o_given);
    flow_output(x->given, x->way[PATH_F16].w, x->way[PATH_F16].v, out->o_path[PATH_F16]);
    round_all(DTYPE_F16, out->o_path[PATH_F16], (size_t)out->rows * (size_t)out->dim);
    const int own = flow_run_output(x->run, out->o_path[PATH_RUN]);
    for (int i = 0; i < out->rows * out->dim; i++) {
        add(&out->o[PATH_F16], out->o_path[PATH_F16][i], out->o_given[i]);
        if (own)
            add(&out->o[PATH_RUN], out->o_path[PATH_RUN][i], out->o_given[i]);
        else
            out->o_path[PATH_RUN][i] = NAN;
    }
}

int paths_make(const struct oracle_case *given, const struct oracle_case *run, struct paths *out)
{
    struct work x = {.given = given, .run = run, .n = flow_shape(run)};
    const size_t n = (size_t)x.n.rows * (size_t)x.n.dim_v;
    *out = (struct paths){.kv_tiles = run->kv_tiles, .rows = x.n.rows, .dim = x.n.dim_v};
    out->tile = calloc((size_t)run->kv_tiles, sizeof *out->tile);
    out->o_given = calloc(n, sizeof(double));
    for (int i = 0; i < PATHS; i++)
        out->o_path[i] = calloc(n, sizeof(double));
    const bool made = out->tile && out->o_given && out->o_path[0] && out->o_path[1] && work_new(&x) == 0;
    if (made) {
        compute(&x);
        walk(&x, out);
        outputs(&x, out);
    } else {
        paths_free(out);
    }
    work_free(&x);
    return made ? 0 : -1;
}

void paths_free(struct paths *p)
{
    if (!p)
        return;
    free(p->tile);
    free(p->o_given);
    for (int i = 0; i < PATHS; i++)
        free(p->o_path[i]);
    memset(p, 0, sizeof *p);
}
