#include "engine/child/debuggee/debuggee.h"
#include "engine/trace/layout.h"
#include "engine/trace/live.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define TILE_MAX 1024    /* rows or columns: no block of 1024 threads works on more */
#define THREADS_MAX 1024 /* per block, CUDA C++ Programming Guide, compute capabilities */

/* "f16, bf16": the names of a set. */
static void name_dtypes(uint32_t set, char *text, size_t size)
{
    text[0] = '\0';
    for (int t = 0; t < DTYPE_COUNT; t++) {
        size_t used = strlen(text);
        if (set & 1u << t)
            snprintf(text + used, size - used, "%s%s", used ? ", " : "", dtype_name((enum dtype)t));
    }
}

/* What the problem has and the kernel does not know of, or NULL. Host code is asked itself. */
static const char *term_not_taken(const struct asc_kernel *kernel, const struct asc_problem *problem)
{
    if (problem->has_sink && kernel->conventions.l_sink == ASC_SINK_NONE)
        return "attention sinks (convention l_sink)";
    if (problem->has_alibi && !(kernel->biases & ASC_SUPPORTS(ALIBI)))
        return "ALiBi (kernel.biases)";
    if (problem->bias_kind != ASC_BIAS_NONE && !(kernel->biases & ASC_SUPPORTS(BIAS)))
        return "bias (kernel.biases)";
    if (problem->mask_kind != ASC_BIAS_NONE && !(kernel->biases & ASC_SUPPORTS(MASK)))
        return "a mask of its own (shape.mask, kernel.biases)";
    if (problem->dropout > 0 && !(kernel->biases & ASC_SUPPORTS(DROPOUT)))
        return "dropout (shape.dropout, kernel.biases)";
    if (problem->dropout > 0 && (kernel->conventions.quantized != ASC_QUANTIZED_GIVEN || problem_has_codes(problem) ||
                                 kernel->conventions.l_from != ASC_L_UNROUNDED))
        return "dropout where there are codes, or where l sums rounded weights (conventions quantized, l_from)";
    if (problem->score_mod[0] && !(kernel->biases & ASC_SUPPORTS(SCORE_MOD)))
        return "a formula of the score (shape.score_mod, kernel.biases)";
    const uint32_t sequences = kernel->run ? ~0u : kernel->sequences;
    if (problem->has_q_lens && !(sequences & ASC_SUPPORTS(Q_LENS)))
        return "a number of queries for each sequence (shape.q_lens, kernel.sequences)";
    if (problem->has_kv_lens && !(sequences & ASC_SUPPORTS(KV_LENS)))
        return "a number of keys for each sequence (shape.kv_lens, kernel.sequences)";
    if (problem->page_size > 0 && !(sequences & ASC_SUPPORTS(PAGES)))
        return "pages (shape.page_size, kernel.sequences)";
    const uint32_t tensors = kernel->run ? ~0u : kernel->tensors;
    if (problem->head_dim_v != problem->head_dim && !(tensors & ASC_SUPPORTS(HEAD_DIM_V)))
        return "a head_dim of V's own (shape.head_dim_v, kernel.tensors)";
    if (problem->left_pad && !(sequences & ASC_SUPPORTS(LEFT_PAD)))
        return "keys behind a left padding (shape.left_pad, kernel.sequences)";
    if (problem->new_keys && !(sequences & ASC_SUPPORTS(NEW_KEYS)))
        return "keys that it has to append (shape.new_keys, kernel.sequences)";
    if (problem->lie != ASC_CONTIGUOUS &&
        !(tensors & (problem->lie == ASC_V_TRANSPOSED ? ASC_SUPPORTS(TRANSPOSED_V) : ASC_SUPPORTS(STRIDES))))
        return "such strides (shape.strides, kernel.tensors)";
    if (problem->scale_dims > 0 && !(tensors & ASC_SUPPORTS(SCALE_DIMS)))
        return "scales of parts of a row (quant.scales, kernel.tensors)";
    if (problem->scale_type != ASC_SCALE_F32 && !(tensors & ASC_SUPPORTS(SCALE_TYPES)))
        return "scales of this type (quant.scale_type, kernel.tensors)";
    if (problem->v_in_k && !(tensors & ASC_SUPPORTS(V_IN_K)))
        return "V in K (shape.v_in_k, kernel.tensors)";
    if (problem->rope && !(tensors & ASC_SUPPORTS(ROPE)))
        return "RoPE (shape.rope, kernel.tensors)";
    if (problem->rope && kernel->conventions.quantized != ASC_QUANTIZED_GIVEN)
        return "RoPE where it quantizes itself (convention quantized)";
    return NULL;
}

static const char *type_word(int dtype)
{
    return dtype >= 0 && dtype < DTYPE_COUNT ? dtype_name((enum dtype)dtype) : "an unknown type";
}

static bool takes(uint32_t set, int dtype)
{
    return dtype >= 0 && dtype < DTYPE_COUNT && set & 1u << dtype;
}

/* False: the sentence is in why. */
static bool takes_types(const struct asc_kernel *kernel, const struct asc_problem *p, char *why, size_t size)
{
    const struct {
        const char *tensor;
        uint32_t set;
        int dtype;
    } others[] = {{"K", kernel->k_dtypes, p->k_dtype}, {"V", kernel->v_dtypes, p->v_dtype}};
    char names[128];
    if (!takes(kernel->dtypes, p->dtype)) {
        name_dtypes(kernel->dtypes, names, sizeof names);
        snprintf(why, size, "%s takes %s, not %s", kernel->name, names[0] ? names : "no type", type_word(p->dtype));
        return false;
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (others[i].set ? takes(others[i].set, others[i].dtype) : others[i].dtype == p->dtype)
            continue;
        name_dtypes(others[i].set, names, sizeof names);
        snprintf(why, size, "%s takes %s of %s%s, not %s", kernel->name, others[i].tensor,
                 others[i].set ? names : "Q's type, ", others[i].set ? "" : type_word(p->dtype),
                 type_word(others[i].dtype));
        return false;
    }
    if (kernel->conventions.quantized != ASC_QUANTIZED_GIVEN && problem_has_codes(p)) {
        snprintf(why, size, "%s quantizes Q, K and V itself (convention quantized): it accepts values, not codes",
                 kernel->name);
        return false;
    }
    return true;
}

int debuggee_plan(const struct asc_kernel *kernel, const struct asc_problem *problem, struct asc_plan *plan, char *why,
                  size_t size)
{
    if (!kernel->plan || !kernel->launch) {
        snprintf(why, size, "%s registers no %s function", kernel->name, kernel->plan ? "launch" : "plan");
        return -1;
    }
    if (!takes_types(kernel, problem, why, size))
        return -1;
    if (problem->layout < ASC_BHLD || problem->layout > ASC_THD || !(kernel->layouts & 1u << problem->layout)) {
        char names[32] = "";
        for (int i = ASC_BHLD; i <= ASC_THD; i++)
            if (kernel->layouts & 1u << i)
                snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", *names ? " and " : "",
                         problem_layout_names[i]);
        snprintf(why, size, "%s accepts the layout %s, not %s", kernel->name, names,
                 problem->layout >= ASC_BHLD && problem->layout <= ASC_THD ? problem_layout_names[problem->layout]
                                                                           : "that is asked for");
        return -1;
    }
    const char *term = term_not_taken(kernel, problem);
    if (term) {
        snprintf(why, size, "%s does not accept %s", kernel->name, term);
        return -1;
    }
    *plan = (struct asc_plan){0};
    const char *sentence = kernel->plan(problem, plan);
    if (sentence) {
        snprintf(why, size, "%s", sentence);
        return -1;
    }
    if (plan->br < 1 || plan->br > TILE_MAX || plan->bc < 1 || plan->bc > TILE_MAX || plan->threads < 1 ||
        plan->threads > THREADS_MAX) {
        snprintf(why, size, "%s plans %d x %d tiles with %d threads: expected 1..%d rows and columns, 1..%d threads",
                 kernel->name, (int)plan->br, (int)plan->bc, (int)plan->threads, TILE_MAX, THREADS_MAX);
        return -1;
    }
    if (plan->packed)
        plan->br = asc_packed_br(problem, plan->br);
    if (plan->kv_splits < 0 || plan->kv_splits > ASC_SPLITS_MAX) {
        snprintf(why, size, "%s plans %d kv splits: expected 0..%d", kernel->name, (int)plan->kv_splits,
                 ASC_SPLITS_MAX);
        return -1;
    }
    if (plan->kv_deal < ASC_DEAL_RANGES || plan->kv_deal > ASC_DEAL_MAP) {
        snprintf(why, size, "%s plans a kv_deal of %d: expected a member of enum asc_kv_deal", kernel->name,
                 (int)plan->kv_deal);
        return -1;
    }
    if (plan->kv_deal == ASC_DEAL_MAP && !kernel->run && !kernel->state) {
        snprintf(why, size, "%s plans ASC_DEAL_MAP: expected kernel.state, which says what state a kv tile belongs to",
                 kernel->name);
        return -1;
    }
    if (plan->workspace_bytes > ASC_WORKSPACE_MAX) {
        snprintf(why, size, "%s plans a workspace of %llu bytes: expected 0..%llu", kernel->name,
                 (unsigned long long)plan->workspace_bytes, (unsigned long long)ASC_WORKSPACE_MAX);
        return -1;
    }
    if (!(plan->error_limit >= 0) || !isfinite(plan->error_limit)) {
        snprintf(why, size, "%s plans an error limit of %g: expected 0 or more", kernel->name,
                 (double)plan->error_limit);
        return -1;
    }
    return 0;
}

int debuggee_deal(const struct asc_kernel *kernel, const struct asc_problem *problem, const struct asc_plan *plan,
                  void *live, struct err *err)
{
    const struct asc_problem *p = problem;
    const int q_tiles = (p->q_len - 1) / plan->br + 1, kv_tiles = (p->kv_len - 1) / plan->bc + 1;
    int32_t *to = live_states(live);
    if (kernel->run)
        debuggee_host_deals(to);
    if (kernel->run || !to)
        return 0;
    for (int batch = 0; batch < p->batch; batch++)
        for (int head = 0; head < p->heads; head++)
            for (int q = 0; q < q_tiles; q++, to += kv_tiles + 1)
                for (int kv = 0; kv < kv_tiles; kv++) {
                    const bool inside =
                        (int64_t)q * plan->br < asc_q_len(p, batch) && (int64_t)kv * plan->bc < asc_kv_len(p, batch);
                    const int32_t state = inside ? kernel->state(p, plan, batch, head, q, kv) : -1;
                    if (inside && (state < 0 || state >= plan->kv_splits))
                        return err_set(err, ERR_INPUT, "",
                                       "%s: kernel.state gives kv tile %d of batch %d, head %d, q tile %d to state %d: "
                                       "expected 0..%d",
                                       kernel->name, kv, batch, head, q, (int)state, (int)plan->kv_splits - 1);
                    to[kv] = state;
                    if (to[kv_tiles] <= state)
                        to[kv_tiles] = state + 1;
                }
    return 0;
}
