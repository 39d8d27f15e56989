/* A kernel of long rows, in plain C: some rows of a q tile against any number of keys, as kernels/fp16_mma computes
   them, to the bit of a tensor core. Correct, or with one mistake; and what is said of its O and LSE, which are all
   that is captured of it. */
#ifndef TESTS_LONG_KERNEL_H
#define TESTS_LONG_KERNEL_H

#include "engine/base/tensor_core.h"
#include "engine/oracle/oracle.h"

enum { LONG_BC = 64 };

enum long_fill {
    LONG_NORMAL,
    LONG_POSITIVE, /* V lies in [0, 1) */
    LONG_PEAKED,   /* scores four times as large */
    LONG_REPEATED, /* rows of K and V come again after 64 keys */
    LONG_CONSTANT, /* K is one row, V another */
    LONG_ONE_HOT,  /* Q is: scores are single elements of K */
    LONG_ALIKE,    /* a hundred keys have the largest score of all */
    LONG_FILLS
};

enum long_mistake {
    LONG_RIGHT,
    LONG_TILE_LEFT_OUT,
    LONG_V_EXCHANGED, /* two rows of V */
    LONG_WEIGHT_LOST, /* of the row's weights the rank-th largest, in the first row */
    LONG_O_SCALED,    /* by 1 + 2^-10 */
    LONG_MISTAKES
};

struct long_spec {
    int keys, rows, dim;
    enum long_fill fill;
    enum tensor_core core; /* TENSOR_CORE_F32 and the f16 ones */
    bool known;            /* the judge is told which core it was */
    bool reversed;         /* the last kv tile comes first */
    bool folds_alpha;      /* alpha is exp2(fma(m_prev, c, -m c)), which is not 1 where m stays */
    bool exp_low;          /* exponentials lie 2^-22.8 below */
    enum long_mistake mistake;
    int rank;
    double at_bounds; /* not 0: the first element of O and of LSE is put so many bounds away from its reference */
    unsigned seed;
};

/* Inputs for rows of any spec of so many keys; [keys][dim] f16. */
struct long_data {
    uint16_t *k, *v; /* owned */
};
/* false: no memory. */
bool long_data_make(struct long_data *data, const struct long_spec *s);
void long_data_free(struct long_data *data);

struct long_result {
    uint32_t bad_o, bad_lse; /* elements beyond their bounds */
    bool likely_o, likely_lse;
    double worst;       /* error / bound, of O and LSE */
    double bound, size; /* of O: median bound, root mean square */
    double share;       /* of the row: of the weight that was lost */
    struct output_noise noise;
};
int long_judge(const struct long_spec *s, const struct long_data *data, struct judge_scratch *scratch,
               struct long_result *out);

#endif
