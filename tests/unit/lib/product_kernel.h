/* One head of a kernel made of the emulator of a tensor core, correct or with one fault, and its verdicts. */
#ifndef TEST_PRODUCT_KERNEL_H
#define TEST_PRODUCT_KERNEL_H

#include "engine/oracle/fingerprint.h"
#include "engine/oracle/oracle.h"

enum { BR = 64, BC = 64, D = 64, KV = 256, TILES = KV / BC, CASES = 4 };

enum fault {
    NO_FAULT,
    S_ONE_BIT, /* of one element of one tile */
    U_ONE_BIT,
    S_LAST_PRODUCT,    /* dropped in one tile */
    S_QUARTER_ULP,     /* added before the last rounding, in one tile */
    S_TRUNCATED_SCALE, /* the scaled score is cut instead of rounded, in one tile */
    S_ALL_QUARTER_ULP,
    S_NAN,
    P_TRUNCATED,
    S_CUT,                    /* the last three bits of one tile are zero */
    SCALAR_TAIL,              /* no fault: the last tile is computed in f32, element by element */
    SCALAR_COLUMNS,           /* no fault: the last eight columns of its scores are */
    SCALAR_TAIL_LAST_PRODUCT, /* the last tile is, and the last product of its scores is dropped */
    SCALAR_TAIL_ONE_FAR       /* the last tile is, and one of its scores is 1e-3 too large */
};

struct setup {
    enum tensor_core core;
    enum dtype type; /* of Q, K, V and P */
    int acc, unit, fold, join, causal;
    int rounds; /* enum product_rounds: around an f16 sum */
    int f16_u;  /* U is recorded as f16 */
    int f32_p;  /* P is recorded before it is rounded */
    int positive;
    int dyadic;   /* sums are exact whatever adds them */
    int permuted; /* products are added in another order than they lie in memory */
    enum fault fault;
    unsigned seed;
};

/* One q tile of one head, all of it captured. */
struct run {
    struct setup setup;
    struct oracle_case c;
    struct matrix captured[TILES * ASC_CHANNELS];
    int order[TILES];
    uint16_t q[BR * D], k[KV * D], v[KV * D], p16[TILES][BR * BC]; /* codes; e4m3 in bytes */
    float s[TILES][BR * BC], p[TILES][BR * BC], m[TILES][BR], l[TILES][BR], alpha[TILES][BR], u[TILES][BR * D];
    uint16_t u16[TILES][BR * D];
    struct tile_verdicts out[TILES * ASC_CHANNELS];
};

uint64_t next(uint64_t *state);
float half(float x);
int sums_in_f16(const struct setup *s);
struct run *run_new(const struct setup *s);
/* Fingerprint over cases of other seeds, this one among them; then its verdicts. */
void judge(struct run *run, struct fingerprint *f);
uint32_t bad(const struct run *run, enum asc_channel ch, int global);
int exact(const struct run *run, enum asc_channel ch);
void expect_exact(const struct setup *s, int core_s, int core_u);

#endif
