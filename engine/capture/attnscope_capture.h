/* libattnscope-capture: a trace of kernels with probes, from the process that launches them. The kernels are compiled
   with -DASC_MODE=1 and include attnscope.h; no plan, no registration. The library links no CUDA; it writes to the
   probes of every loaded object, in the CUDA context that is current.

     struct asc_tensors tensors = {.q = {q}, .k = {k}, .v = {v}};
     asc_capture_begin("{\"problem\": {...}, \"plan\": {\"br\": 64, \"bc\": 64}, \"capture\": {\"path\":
   \"t.safetensors\"}}", &tensors, &capture, why, sizeof why);
     ... launches, on any stream; a CUDA graph may be replayed ...
     asc_capture_end(capture, &o, &lse, why, sizeof why);

   The JSON has the keys of a saved trace's metadata without "attnscope." (docs/trace-format.md): problem and plan, of
   which kv_heads, kv_len, causal, window, layout, scale, threads and kv_splits have defaults; conventions, types and
   run, of which nothing must be said. Sequences of their own lengths are "sequences": {"q_lens": [..], "kv_lens": [..],
   "page_table": [[..], ..]}, each where there is one, with problem.page_size and pages for the table; with the layout
   THD, in which both lengths are needed, q, k, v and o are [rows of all][heads][head_dim], and with pages k and v have
   a page in the place of a batch. problem.left_pad 1: the keys of a sequence are the last rows of its part of k and v.
   Dropout, keys that the kernel appends and splits by a map are refused. And capture: path; memory (auto, guard,
   device, pinned); tiles, a list of [batch, head, q tile]; channels, a list of names. Without tiles and channels all
   that have a probe are recorded.

   One capture at a time on each device. Functions return 0, or -1 with one sentence in why[size]. */
#ifndef ATTNSCOPE_CAPTURE_H
#define ATTNSCOPE_CAPTURE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

struct asc_capture;

/* Memory of the device or the host. stride: in elements, of each dimension of the tensor, the last one 1; all 0: dense.
   data NULL: there is none. */
struct asc_tensor {
    const void *data;
    int64_t stride[4];
};

/* Of the shapes and types that problem says, docs/trace-format.md, "Tensors". All but q, k and v may be missing;
   scales, sink, alibi, bias and mask are dense, the mask of bytes, 0 or 1. */
struct asc_tensors {
    struct asc_tensor q, k, v, q_scale, k_scale, v_scale, sink, alibi, bias, mask;
};

/* Waits for the device, copies the inputs, and binds the probes. */
int asc_capture_begin(const char *json, const struct asc_tensors *tensors, struct asc_capture **capture, char *why,
                      size_t size);
/* Waits for the device, unbinds the probes, and saves: with o as q is and lse [batch][heads][q_len]; NULL, or without
   data: as the probes of o and lse saw them. A kernel that failed is saved as that: 0, and why says what it was. The
   capture is freed in any case. */
int asc_capture_end(struct asc_capture *capture, const struct asc_tensor *o, const struct asc_tensor *lse, char *why,
                    size_t size);
/* Ends it without a trace. NULL is legal. */
void asc_capture_drop(struct asc_capture *capture);

/* How many translation units with probes were loaded since it began, whose probes record nothing; bind: from now on
   they do. -1: they cannot be bound. Those that are not bound asc_capture_end() counts on stderr. */
int asc_capture_late(struct asc_capture *capture, int bind);
/* Translation units with probes in this process, and the file of each. */
int asc_capture_modules(void);
const char *asc_capture_module(int i);

#pragma GCC visibility pop

#ifdef __cplusplus
}

/* The same for C++: records until end(), or to the end of its block. why() is "" or what failed. */
class asc_captured
{
  public:
    asc_captured(const char *json, const asc_tensors &tensors)
    {
        asc_capture_begin(json, &tensors, &capture, said, sizeof said);
    }
    asc_captured(const asc_captured &) = delete;
    asc_captured &operator=(const asc_captured &) = delete;
    ~asc_captured()
    {
        end(asc_tensor{}, asc_tensor{});
    }
    /* True: the trace is saved. */
    bool end(const asc_tensor &o, const asc_tensor &lse)
    {
        asc_capture *const ended = capture;
        capture = nullptr;
        return ended && !asc_capture_end(ended, &o, &lse, said, sizeof said);
    }
    /* Translation units with probes that were loaded inside; bind: their probes record from now on. */
    int late(bool bind)
    {
        return capture ? asc_capture_late(capture, bind) : 0;
    }
    const char *why() const
    {
        return said;
    }

  private:
    asc_capture *capture = nullptr;
    char said[1280] = "";
};
#endif
#endif
