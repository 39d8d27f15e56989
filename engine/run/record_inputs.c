#include "engine/run/record_parts.h"

#include "engine/trace/trace_store.h"

#include <math.h>
#include <stdlib.h>

/* Sinks, slopes and bias as far as the problem has them; owned by the caller: terms_free. */
static int make_terms(const struct scenario *scenario, struct asc_problem *p, struct err *err)
{
    const size_t n = asc_bias_count(p);
    float *sink = p->has_sink ? malloc((size_t)p->heads * sizeof *sink) : NULL;
    float *alibi = p->has_alibi ? malloc((size_t)p->heads * sizeof *alibi) : NULL;
    float *bias = n ? malloc(n * sizeof *bias) : NULL;
    p->sink = sink;
    p->alibi = alibi;
    p->bias = bias;
    if ((p->has_sink && !sink) || (p->has_alibi && !alibi) || (n && !bias))
        return err_no_memory(err, "", "sinks and bias");
    if (sink)
        fill_sink(p, &scenario->fill_sink, sink);
    if (alibi)
        fill_alibi(p, alibi);
    if (bias)
        fill_bias(p, &scenario->fill_bias, bias);
    for (int h = 0; sink && h < p->heads; h++)
        if (!isfinite(sink[h]))
            return err_set(err, ERR_INPUT, scenario->path, "fill.sink.sigma: the sinks have values that overflow f32");
    for (size_t i = 0; i < n; i++)
        if (!isfinite(bias[i]))
            return err_set(err, ERR_INPUT, scenario->path, "fill.bias.sigma: the bias has values that overflow f32");
    return 0;
}

static void terms_free(const struct asc_problem *p)
{
    free((void *)(uintptr_t)p->sink);
    free((void *)(uintptr_t)p->alibi);
    free((void *)(uintptr_t)p->bias);
}

/* Q, K and V with the scales of those that are codes. Zero-initialize; owned by the caller: tensors_free. */
struct tensors {
    void *values[3]; /* in the problem's layout, of fill_dtype() */
    void *codes[3];  /* where the tensor holds codes */
    float *scales[3];
};

static int make_tensor(const struct recorder *r, const struct scenario *scenario, int i, struct tensors *out,
                       struct err *err)
{
    static const char *const names[3] = {"Q", "K", "V"};
    const struct fill *fills[3] = {&scenario->fill_q, &scenario->fill_k, &scenario->fill_v};
    const struct asc_problem *p = &scenario->problem;
    const size_t bytes = fill_tensor_bytes(p, i);
    out->values[i] = malloc(bytes);
    if (!out->values[i])
        return err_no_memory(err, "", "the inputs");
    /* It would make NaN out of a correct kernel. */
    if (fill_tensor(p, i, fills[i], r->pool, out->values[i]) != 0)
        return err_set(err, ERR_INPUT, scenario->path, "fill.sigma: %s has values that overflow %s", names[i],
                       dtype_name(fill_dtype(p, i)));
    const int32_t types[3] = {p->dtype, p->k_dtype, p->v_dtype};
    if (!dtype_is_code((enum dtype)types[i]))
        return 0;
    out->codes[i] = malloc(bytes / dtype_bytes(fill_dtype(p, i)));
    out->scales[i] = malloc(encode_scales_bytes(p, i));
    if (!out->codes[i] || !out->scales[i])
        return err_no_memory(err, "", "the inputs");
    encode_tensor(p, i, (enum scenario_scales)scenario->scales, out->values[i], out->codes[i], out->scales[i]);
    return 0;
}

static void tensors_free(struct tensors *tensors)
{
    for (int i = 0; i < 3; i++) {
        free(tensors->values[i]);
        free(tensors->codes[i]);
        free(tensors->scales[i]);
    }
}

int record_inputs(const struct recorder *r, const struct scenario *scenario, const struct record_selection *selection,
                  struct trace **out, struct err *err)
{
    struct asc_problem p = scenario->problem;
    struct tensors tensors = {0};
    struct trace_inputs inputs = {0};
    int result = make_terms(scenario, &p, err);
    for (int i = 0; i < 3 && result == 0; i++) {
        result = make_tensor(r, scenario, i, &tensors, err);
        inputs.of[i] = tensors.codes[i] ? tensors.codes[i] : tensors.values[i];
        inputs.given[i] = tensors.codes[i] ? tensors.values[i] : NULL;
    }
    p.q_scale = tensors.scales[0];
    p.k_scale = tensors.scales[1];
    p.v_scale = tensors.scales[2];
    if (result == 0)
        result = trace_create_in(r->store, &p, &selection->plan, &child_hello(r->child)->conventions, &selection->types,
                                 (const int32_t(*)[3])selection->slots, selection->n, &inputs, out, err);
    tensors_free(&tensors);
    terms_free(&p);
    return result;
}
