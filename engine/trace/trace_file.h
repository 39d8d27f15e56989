/* What the makers of a trace share: trace_create, trace_save and trace_open. */
#ifndef TRACE_TRACE_FILE_H
#define TRACE_TRACE_FILE_H

#include "engine/base/safetensors.h"
#include "engine/trace/conventions.h"
#include "engine/trace/trace.h"

#define TRACE_FORMAT "3" /* metadata key attnscope.format; another one is refused */

enum { TRACE_TENSORS_MAX = 17 + 2 * ASC_CHANNELS, TRACE_TEXTS_MAX = 16 };

/* One tensor of a saved trace and where its values are: n_slots x n_kv pieces of piece_bytes each, at
   offset + slot * slot_stride + kv * kv_stride of the trace's bytes. */
struct trace_tensor_map {
    char name[32];
    enum dtype dtype;
    int n_dims;
    uint64_t shape[4];
    uint64_t n_slots, n_kv, piece_bytes;
    uint64_t *offset;                  /* borrowed: fields of the layout that the list was made from */
    uint64_t *slot_stride, *kv_stride; /* borrowed; NULL where there is one piece */
};

/* Lists the tensors of a trace with this layout, in the order a file holds them: falling element size, so that each is
   aligned. Returns how many. */
int trace_tensor_list(const struct asc_problem *p, struct layout *l, struct trace_tensor_map out[TRACE_TENSORS_MAX]);

/* Fills index [batch][heads][q_tiles] from a slot table; refuses places that do not exist or come twice. */
int trace_index_slots(const struct trace *t, const int32_t (*slots)[3], const char *where, int32_t *index,
                      struct err *err);

/* The metadata of a trace. The values are owned by the caller, the keys are literals. Returns how many, or -1. */
int trace_metadata_write(const struct trace *t, struct safetensors_text out[TRACE_TEXTS_MAX], struct err *err);
void trace_metadata_free(struct safetensors_text *texts, int n);
/* Reads it back into problem, plan, conventions and info; types are those of the layout that was saved. */
int trace_metadata_read(const struct safetensors *file, const char *path, struct trace *t, struct layout_types *types,
                        struct err *err);

#endif
