/* What making, saving and opening a trace share. */
#ifndef TRACE_TRACE_FILE_H
#define TRACE_TRACE_FILE_H

#include "engine/base/guardian.h"
#include "engine/base/replace.h"
#include "engine/base/safetensors.h"
#include "engine/trace/conventions.h"
#include "engine/trace/trace.h"

#define TRACE_FORMAT "3" /* metadata key attnscope.format; another one is refused */

enum { TRACE_TEXTS_MAX = 16 };

/* Fills index [batch][heads][q_tiles] from a slot table; refuses places that do not exist or come twice. */
int trace_index_slots(const struct trace *t, const int32_t (*slots)[3], const char *where, int32_t *index,
                      struct err *err);

/* Copies what the problem says of its sequences, parses its formula, and checks it; NULL: there is none. */
int trace_take_sequences(struct trace *t, const int32_t *q_lens, const int32_t *kv_lens, const int32_t *page_table,
                         const char *where, struct err *err);

/* What may be replaced: nothing, an empty file, or a safetensors file (a length of 8 bytes, then JSON). A mistyped path
   must not cost somebody a kernel. */
int trace_may_replace(const char *path, struct err *err);

/* A trace whose values lie elsewhere, as it is saved: all of the file but them. They are to be written to file.file's
   descriptor, before replace_commit() or replace_drop(). */
struct trace_saving {
    struct replacement file;
    struct values_piece piece[ASC_ALL_CHANNELS]; /* from: behind the layout's values_offset */
    uint32_t n;
};
bool trace_saves_apart(const struct trace *t); /* tiles lie one behind the other, as in the file */
/* path stays the caller's until then. */
int trace_save_begin(const struct trace *t, const char *path, struct trace_saving *out, struct err *err);

/* The metadata of a trace. The values are owned by the caller, the keys are literals. Returns how many, or -1. */
int trace_metadata_write(const struct trace *t, struct safetensors_text out[TRACE_TEXTS_MAX], struct err *err);
void trace_metadata_free(struct safetensors_text *texts, int n);
/* Reads it back into problem, plan, conventions and info; types are those of the layout that was saved. */
int trace_metadata_read(const struct safetensors *file, const char *path, struct trace *t, struct layout_types *types,
                        struct err *err);

#endif
