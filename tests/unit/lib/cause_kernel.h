/* A streaming-softmax kernel in plain C f32 that commits one mistake, in values it computes itself: what causes are
   tried on. A run is one head, all its q tiles; three other kv heads lie beside its own. */
#ifndef TEST_CAUSE_KERNEL_H
#define TEST_CAUSE_KERNEL_H

#include "engine/oracle/oracle.h"
#include "tests/unit/lib/kernel_data.h"

enum mistake {
    RIGHT,
#define LISTED(id, ...) id,
#include "tests/unit/lib/causes_listed.def"
#undef LISTED
#define ALIKE(id, ...) id,
#include "tests/unit/lib/causes_alike.def"
#undef ALIKE
    LISTED_END,
#define UNLISTED(id) id,
#include "tests/unit/lib/causes_unlisted.def"
#undef UNLISTED
    MISTAKES
};

enum { KV_HEADS = 4, OWN_HEAD = 1 };

struct spec {
    int q_len, kv_len, head_dim, br, bc;
    enum asc_causal causal;
    enum asc_unit unit; /* of s and m */
    enum dtype p_dtype; /* recorded P */
    enum fill fill;
    int backward;       /* visits kv tiles from the last to the first, and sums from the last term to the first */
    int skips_masked;   /* leaves out tiles that no row sees */
    float v_times;      /* of V */
    int p_offset;       /* P carries the factor 2^p_offset */
    int sums_unrounded; /* l sums P before it is rounded */
    int misdeclared;    /* 1: `declared` stands in for what the kernel does */
    struct asc_conventions declared;
    int has_window, window_left, window_right;
    float softcap;
    int lanes;                    /* partial sums of l in each row; 0: its complete sum */
    int late_u;                   /* U is recorded once the next tile has rescaled it */
    enum asc_p_rounded p_rounded; /* P on its way to V */
    int sums_rounded;             /* l sums that P */
    int tensor_cores;             /* products as those of an H100 compute them, P in f16 */
    int folds_scale;              /* Q holds the scale; unit scaled */
    int lse_base2;
    int alpha_one;      /* of a row without a maximum */
    float m_lag;        /* how far m may stay behind, in log2 units */
    float masked_value; /* the score of a masked key; 0: -inf */
    int shows_unmasked; /* S is recorded before it is masked */
    int isolated;       /* 1 + channel: everything up to it is fed what the right kernel has computed */
    unsigned seed;
    enum mistake mistake;
    enum mistake also;          /* a second one, or RIGHT */
    enum asc_channel also_from; /* the stage from which on that one is made, and the first one no more */
};

/* One q tile of a run. */
struct slot {
    struct oracle_case c;
    struct matrix *captured, *padding; /* owned */
    struct matrix *fed;                /* owned; NULL: nothing is fed */
    void **arrays;                     /* owned, [kv_tiles][ASC_CHANNELS] full tiles */
    int *order;                        /* owned */
    struct tile_verdicts *out;         /* owned */
};

struct run {
    struct spec spec;
    float scale;
    int n_slots;
    struct slot *slots;  /* owned */
    uint16_t *q, *k, *v; /* owned, f16: [q_len][D], [KV_HEADS][kv_len][D] */
    uint64_t random;
    struct run *feed;   /* owned: the run whose values are fed, or NULL */
    enum mistake first; /* spec.mistake is that of the stage at hand, where there are two */
};

struct run *run_kernel(const struct spec *s);
void run_free(struct run *run);

#endif
