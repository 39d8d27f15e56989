/* The parts of the test kernel of causes, for each other. */
#ifndef TEST_CAUSE_PARTS_H
#define TEST_CAUSE_PARTS_H

#include "engine/base/tensor_core.h"
#include "engine/trace/layout.h"
#include "tests/unit/lib/cause_kernel.h"

#include <math.h>

#define ZERO_POINT 0.375f
enum { MAX_LANES = 16 };

struct tile {
    int kv, first, valid; /* which one, its first key, its keys */
    int before, before2;  /* kv tiles visited before, or -1 */
    int next, start;      /* the one visited next, or -1; the one visited first */
    float *k, *v;         /* [bc][D] as recorded */
    float *other;         /* [bc][D] what a mistake reads in place of K */
    float *other_v;       /* and of V */
    float *score, *p;     /* [bc] of a row */
    float *pv_p;          /* [bc] P as the product with V takes it */
};

struct state {
    int row0;      /* first query of the q tile */
    float *q;      /* [br][D] */
    float *m;      /* [br] */
    float *l;      /* [br][lanes] */
    float *u;      /* [br][D] */
    float *l_last; /* [br][lanes] l before the last tile */
    float *u_last; /* [br][D] */
};

void load_tile(const struct run *run, const uint16_t *from, int head, int first, float *to);
/* Zeros where there is no such tile. */
void load_next(const struct run *run, const uint16_t *from, const struct tile *t, float *to);
void transpose_blocks(const struct run *run, const float *from, float *to);

/* cause_conventions.c */
int lanes_of(const struct spec *s);
enum dtype pv_type(const struct spec *s);
struct asc_conventions conventions_of(const struct spec *s);
/* A score is so much times q.k, as q is used. */
float unit_factor(const struct run *run);
/* A raw score of 1, or a raw maximum, is so much in natural units. */
float raw_unit(const struct run *run);
/* The score of a product, in the run's unit, behind the soft cap. */
float capped(const struct run *run, float score);
/* exp(x - y) of two values in the run's unit. */
float exponential(const struct run *run, float x, float y);
/* What m becomes where the maximum so far is top. */
float lagging(const struct run *run, float m, float top);
/* start + a.b of n products of f16, 16 at a time. */
float tensor_product(enum tensor_core core, const float *a, const float *b, ptrdiff_t stride_b, int n, float start);
/* start + a.b in the run's arithmetic. */
float product(const struct run *run, const float *a, const float *b, ptrdiff_t stride_b, int n, float start);
/* The sum is rounded to bf16 after every so many products. */
float sum_in_bf16(const float *a, const float *b, ptrdiff_t stride_b, int n, int each, float start);
/* 1 if the mask, its causal edge moved by so many keys, hides a key from a row. */
int mask_hides(const struct spec *s, int row, int key, enum asc_causal causal, int moved);
int tile_is_seen(const struct run *run, int row0, int rows, int kv);

/* cause_mistakes.c */
int one_in(struct run *run, unsigned n);
float noise(struct run *run);
int odd(int i);
/* Column d of row r of the q tile that begins with row0. */
float mistaken_q(const struct run *run, int row0, int rows, int r, int d);
void mistaken_tile(const struct run *run, struct tile *t);
/* Eight elements of a row are a piece of 16 bytes; every other row has its pieces swapped in pairs. */
ptrdiff_t swizzled(ptrdiff_t row, ptrdiff_t d);
/* The K, then the V, that the products read where it is not the recorded one; in t->other and t->other_v. */
const float *other_k(const struct run *run, const struct tile *t);
float dot_product(struct run *run, const struct state *st, const struct tile *t, int r, int c);
int is_masked(const struct run *run, int row, int key, enum mistake mistake);
float mistaken_score(struct run *run, const struct state *st, const struct tile *t, int r, int c);
int in_part(const struct spec *s, enum asc_channel ch, int r, int c);
float mistaken_start(const struct run *run, float m);
float mistaken_maximum(struct run *run, const struct state *st, const struct tile *t, int r, float m);

/* cause_mistakes_sums.c */
float mistaken_alpha(const struct run *run, float m_prev, float m);
float mistaken_weight(struct run *run, const struct state *st, const struct tile *t, int r, int c, float m);
/* What each lane adds to l: every n-th weight. */
void mistaken_sum(const struct run *run, const struct tile *t, int r, float m, float sum[MAX_LANES]);
float mistaken_l(const struct run *run, const struct state *st, const struct tile *t, int r, int lane, float alpha,
                 float sum);
float mistaken_u_factor(const struct spec *s, float alpha, float m_prev, int r);
/* What is carried has been rescaled. */
void mistaken_u(struct run *run, const struct state *st, const struct tile *t, int r, float alpha);
float mistaken_lse(struct run *run, const struct state *st, int r);
float mistaken_o(struct run *run, const struct state *st, int r, int d);

#endif
