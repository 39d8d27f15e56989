/* A trace: what one run was asked and what its probes wrote. Every view, check and test reads a trace and nothing else,
   and reads live (memfd) and saved (safetensors) ones through trace_tile(). */
#ifndef TRACE_TRACE_H
#define TRACE_TRACE_H

#include "engine/trace/event.h"
#include "engine/trace/expression.h"
#include "engine/trace/launch.h"
#include "engine/trace/layout.h"
#include <stdbool.h>
#include <stddef.h>

/* One probe line of the kernel. */
struct trace_site {
    enum asc_channel channel;
    int line;
    char file[256]; /* as the user names it */
};

/* A place in a function of the user's. */
struct trace_frame {
    char function[64]; /* without namespaces and arguments; "": unknown */
    char file[256];    /* as the user names it */
    int line;
};
/* Where something was done by a function that the kernel called: innermost first, the kernel's body last. Where there
   are more, those next to the body are left out. */
#define TRACE_FRAMES 8
struct trace_stack {
    int n; /* 0: in the kernel's body, or unknown; else from 2 */
    struct trace_frame at[TRACE_FRAMES];
};

/* Something that happened during the run: a floating-point trap, a diverged barrier, an assert, a crash, a race. */
struct trace_event {
    enum event_kind kind;
    char text[1024]; /* with block and thread; of a collision both threads; a deadlock's has a line for each group */
    char file[256];
    int line; /* 0: unknown */
    struct trace_stack stack, other_stack;
    char other_file[256];    /* of the access that it collides with, or the cp.async that is under way; "": none */
    int other_line;          /* 0: none, or unknown */
    char recorder_file[256]; /* the probe that has recorded the very bytes that it is of; "": none, or unknown */
    int recorder_line;       /* 0: none, or unknown */
    /* The tile that the thread worked on: of its ASC_AT, and of its last probe. -1: unknown. */
    int batch, head, q_tile, kv_tile;
    int times; /* how often at this place, or these two; 1 where that is not counted */
};
void trace_event_init(struct trace_event *event); /* nothing is known of it */

/* Of a run whose wanted values did not all fit: a first pass that recorded nothing had o and lse of a sample judged,
   the second pass, which this trace is of, recorded what was off and others. */
struct trace_capture {
    int64_t wanted;       /* (batch, head, q tile)s that were to be recorded; 0: one pass recorded them all */
    int64_t judged, off;  /* in the first pass: o and lse judged, and beyond their bounds */
    int64_t unusual;      /* within them, with errors that are not of the size of roundings */
    int64_t differing;    /* o or lse not the same bits in both passes; -1: not known */
    int64_t by_gpu;       /* of the judged ones: a GPU's judge alone has looked at them */
    char off_places[192]; /* the first of those that were off: "b0 h3 q17, ..." */
    char unusual_places[192];
    char judge[192]; /* who judged, a GPU or why not; "": the CPU, nobody asked for another one */
};

/* How a run ended. */
enum run_status {
    RUN_OPEN, /* it did not yet */
    RUN_COMPLETE,
    RUN_CRASHED,
    RUN_HUNG,
    RUN_CANCELLED,
    RUN_REFUSED /* by the system */
};
extern const char *const run_status_names[]; /* "", "complete", "crashed"; NULL ends them */

/* Facts about the run that are not arrays; nearly all of it goes into the saved file's metadata as JSON. */
struct trace_info {
    char kernel[64];         /* registered name */
    char source_name[256];   /* the user's path of the .cu */
    char compiled_path[600]; /* of the file that was compiled in its place, "": unknown; not saved: the run is over then
                              */
    char *source;            /* owned, the text that was compiled (patched); NULL if unknown */
    struct trace_source *sources; /* owned */
    size_t n_sources;
    char *scenario;          /* owned, the scenario file's text; NULL for an ad-hoc run */
    char *settings;          /* owned, all that was said of the run, as scenario_settings() has it; NULL: not known */
    char scenario_name[128]; /* "double-scale" */
    char patch_name[128];    /* "" without a patch */
    char inputs[512];  /* the files that the inputs are of, "q.npy, k.npy, v.npy"; "": they are fills, or not known */
    char define[1300]; /* "NAME=VALUE NAME -O1": macros and flags it was built with */
    enum backend backend;
    char device[96];      /* "NVIDIA H200, sm_90"; "" on the CPU */
    char tensor_core[16]; /* of a run on the CPU: whose products it was given, "h100"; "": the default's */
    char cores[128];      /* of a run on a GPU: the tensor cores whose products it computes, "f32 h100 mma-e4m3"; "": no
                             tensor core is declared, or not known */
    enum memory_kind memory; /* where the probes of a run on a GPU wrote; MEMORY_AUTO: not known, or nowhere */
    char memory_why[280];    /* why not where they would rather, or what was lost there; "": as it should be */
    char lanes[24];          /* the order of lanes and warps on the CPU, docs/checks.md; not saved; "": the default's */
    bool probes_off;         /* a build without probes: nothing is recorded */
    bool checked;            /* a build with access checks on the CPU */
    struct trace_capture capture;
    int workers;
    double seconds;           /* of the launch */
    int32_t status;           /* enum run_status */
    char status_text[512];    /* the run's own words where it is not complete */
    enum event_kind stopped;  /* what ended it, said or not; EVENT_NONE: it came to its end, or was cancelled */
    struct trace_site *sites; /* owned */
    size_t n_sites;
    struct trace_event *events; /* owned */
    size_t n_events;
    struct trace_launches launches; /* on a GPU: of this run and, where that was measured too, without probes */
};

/* A file of the user's beside the .cu, in which a probe stands or something happened. */
struct trace_source {
    char file[256]; /* as the user names it */
    char *text;     /* owned */
};

/* To which states kv tiles were dealt, in the place of what the plan says. */
struct trace_dealt {
    int32_t splits;
    int32_t states[]; /* as trace_states() has them, of all places */
};

struct trace {
    struct asc_problem problem;   /* pointers NULL but q_lens, kv_lens and page_table, which are owned */
    struct expression *score_mod; /* owned: the problem's, parsed; NULL: there is none */
    struct asc_plan plan;
    struct asc_conventions conventions;
    struct layout layout; /* offsets are into `bytes`, live or saved */
    struct trace_info info;
    const unsigned char *bytes; /* owned: the mapping, read-only */
    size_t n_bytes;
    const int32_t *slot_index; /* [batch][heads][q_tiles] slot or -1; owned */
    const int32_t *slots;      /* [n_slots][3] batch, head, q tile; owned */
    /* What trace_lse() and case_alpha_left_out() found in a complete run; 0: they were not asked yet. */
    int lse_found, alpha_found;
    struct trace_dealt *dealt;     /* owned; NULL: as the plan says, or nobody has looked (engine/verdict/dealt.h) */
    struct trace_writers *writers; /* owned: of a saved trace, who recorded what; NULL: it does not say (writers.h) */
    float *turned[2];              /* owned: what trace_turned() made of q and k; NULL: it was not asked yet */
    int fd;                        /* owned: memfd of a live trace, -1 for a saved one */
    bool live;                     /* in a memfd; false: in a file */
    bool values_later;             /* trace_fill_values() has not filled them */
    struct trace_store
        *store; /* a reference of its own: where the memfd goes after it (trace_store.h); NULL: nowhere */
    /* An isolated run: the live trace of the same layout that the probes of fed_channels (a set of 1u << enum
       asc_channel) overwrote their values with, after recording them here. Owned; NULL: nothing was fed. */
    struct trace *fed;
    uint32_t fed_channels;
};

/* The caller's arrays of q, k and v, in the problem's layout. */
struct trace_inputs {
    const void *of[3];    /* of their own types; NULL: written later, never-written until then */
    const void *given[3]; /* where that is codes, the f16 values they were made from; NULL: not known */
    bool values_later;    /* nothing is written where the recorded values go: see trace_fill_values() */
};

/* A live trace: makes a memfd of the layout's size, writes header, slot table and inputs (q, k, v: the caller's arrays
   in the problem's layout and their types, what codes were made from not being known; sink, alibi, bias and scales from
   p itself, where it has them), fills what will be
   recorded with the never-written pattern, maps it shared. slots: [n][3] (batch, head, q tile). Fails with ERR_SYSTEM
   where there is no space. */
int trace_create(const struct asc_problem *p, const struct asc_plan *plan, const struct asc_conventions *conventions,
                 const struct layout_types *types, const int32_t (*slots)[3], int n_slots, const void *q, const void *k,
                 const void *v, struct trace **out, struct err *err);

/* What trace_inputs.values_later left, never-written values: before they are recorded in the memory file itself, or
   once they are lost elsewhere. Nothing where they are filled. Nobody else writes meanwhile. ERR_SYSTEM: there is no
   space. */
int trace_fill_values(struct trace *t, struct err *err);

/* The child's side: maps fd read-write, checks the ABI version, and fills *problem (with pointers into the mapping) and
 *device. *mapping and *n_bytes are for munmap. */
int trace_attach(int fd, struct asc_problem *problem, struct asc_plan *plan, struct asc_device *device, void **mapping,
                 size_t *n_bytes, struct err *err);

/* Whether a file is a trace of any version: a safetensors file whose metadata says so. -1: it cannot be read. */
int trace_is(const char *path, bool *is, struct err *err);

/* Opens a saved trace read-only. Every number in the file is checked before it is used: ERR_INPUT names what is wrong.
 */
int trace_open(const char *path, struct trace **out, struct err *err);

/* Writes a safetensors file: temporary name beside path, fsync, rename; on failure nothing is left behind. */
int trace_save(const struct trace *t, const char *path, struct err *err);
/* The same of some slots, slots[n], n at least 1, ascending; inputs and outputs are whole. */
int trace_save_slots(const struct trace *t, const int *slots, int n, const char *path, struct err *err);

void trace_free(struct trace *t); /* NULL is legal; unmaps, closes, frees */

/* One tile of one channel. */
struct tile {
    const void *data; /* NULL: this channel is not recorded */
    enum dtype dtype;
    int rows, cols;             /* as laid out, padding included; element (r, c) is data[r * cols + c] */
    int valid_rows, valid_cols; /* what exists in the problem */
};

/* Whether the trace can say anything about a channel: a probe recorded it, or, for o and lse, the run completed and
   left its output. Of an lse that was never written it says nothing: see trace_lse(). */
bool trace_has(const struct trace *t, enum asc_channel ch);
bool trace_complete(const struct trace *t); /* the run came to its end */

/* What a complete run left of LSE. */
enum trace_lse {
    TRACE_LSE_WRITTEN = 1, /* any of it, or a probe saw some on its way there; the same of a run that ended early */
    TRACE_LSE_DECLARED,    /* none, and the kernel says so (convention no_lse) */
    TRACE_LSE_UNDECLARED   /* none, though nothing says that the kernel has none */
};
enum trace_lse trace_lse(const struct trace *t);

/* kv is ignored for channels that exist once per slot. */
struct tile trace_tile(const struct trace *t, enum asc_channel ch, int slot, int kv);

/* Full tensors: 'q', 'k', 'v', 'o' in the problem's layout, 'L' for lse. 's' sink, 'a' alibi, 'b' bias, 'm' mask, 'd'
   the weights that dropout keeps: NULL where the problem has none. */
const void *trace_tensor(const struct trace *t, char which, enum dtype *dtype);
/* 'q' or 'k' as RoPE leaves it, f32, where trace_tensor() has it; NULL where memory ran out. Of a trace with RoPE whose
   inputs are there. */
const float *trace_turned(const struct trace *t, char which);
/* Of 'q', 'k' or 'v'. Scales of its codes, where asc_scale_at() says; NULL: it holds none. */
const float *trace_scales(const struct trace *t, char which);
/* What its codes were made from (f16; NULL: not known); of a tensor without codes the tensor itself. */
const void *trace_given(const struct trace *t, char which, enum dtype *dtype);

/* XXH3 (64 bits) of an input as it lies in the trace, in 16 digits; "": there is none. The i-th input's name; NULL:
   there are no more. */
enum { TRACE_HASH_BYTES = 17 };
const char *trace_input_name(int i);
void trace_input_hash(const struct trace *t, int i, char out[TRACE_HASH_BYTES]);

/* How many q and kv tiles a sequence has: those behind them hold nothing of it. */
int trace_q_tiles(const struct trace *t, int batch);
int trace_kv_tiles(const struct trace *t, int batch);
int64_t trace_places(const struct trace *t); /* (batch, head, q tile)s, recorded or not */

/* Stamps of one (channel, slot, kv tile), [layout.warps]; NULL where the channel is not recorded. */
const uint64_t *trace_stamps(const struct trace *t, enum asc_channel ch, int slot, int kv);
uint64_t trace_first_stamp(const struct trace *t, enum asc_channel ch, int slot, int kv); /* smallest non-zero, or 0 */
uint64_t trace_last_stamp(const struct trace *t, enum asc_channel ch, int slot, int kv);  /* largest, or 0 */

/* The slot of (batch, head, q tile), or -1: not recorded. And back. */
int trace_slot(const struct trace *t, int batch, int head, int q_tile);
const int32_t *trace_slot_place(const struct trace *t, int slot); /* [3] batch, head, q tile */
/* [kv_tiles + 1] what asc_state_of() is given there, then how many states there are; NULL: kv tiles are not dealt by a
   map. The debuggee fills it for each run, so that its numbers may be any. */
const int32_t *trace_states(const struct trace *t, const int32_t place[3]);
size_t trace_states_at(const struct trace *t, const int32_t place[3]); /* where a place's are in all of them */
/* The plan's, but where tiles were dealt otherwise; and how many states there are at most. */
enum asc_kv_deal trace_deal(const struct trace *t);
int32_t trace_splits(const struct trace *t);
/* Whether the kv tiles of both, which have the same problem and tiles, are dealt to the same states. */
bool trace_same_states(const struct trace *a, const struct trace *b);
/* The state that kv tile `kv` of a slot belongs to. */
int trace_state(const struct trace *t, int slot, int kv);

uint64_t trace_dropped(const struct trace *t, enum asc_channel ch);  /* values without a place */
uint64_t trace_mistyped(const struct trace *t, enum asc_channel ch); /* values of another type than declared */
/* Those in words, the same on the screen and in text: "114688 values of k are not bf16, the declared type", "49600
   values of l were not recorded: ..."; false, and "": there are none. */
#define LOST_WORDS_BYTES 192
bool trace_mistyped_words(const struct trace *t, enum asc_channel ch, char out[LOST_WORDS_BYTES]);
bool trace_dropped_words(const struct trace *t, enum asc_channel ch, char out[LOST_WORDS_BYTES]);

/* Values of this fed channel that could not be overwritten, being const (live traces only). */
uint64_t trace_unfed(const struct trace *t, enum asc_channel ch);
/* What the kernel went on with after a probe of this tile: an element is the fed one where the fed trace holds it, else
   the recorded one. data NULL: the tile was not fed. */
struct tile trace_fed_tile(const struct trace *t, enum asc_channel ch, int slot, int kv);

/* The text of a file, the .cu or one that it includes; NULL: not known. */
const char *trace_source(const struct trace *t, const char *file);
/* Takes over a file's text as it is now at `path`, unless it is known, cannot be read, is larger than TRACE_SOURCE_MAX,
   or there are TRACE_SOURCES_MAX others. */
#define TRACE_SOURCE_MAX (1u << 20)
#define TRACE_SOURCES_MAX 16u
void trace_add_source(struct trace *t, const char *file, const char *path);

/* The probe line of a channel, or NULL. */
const struct trace_site *trace_site(const struct trace *t, enum asc_channel ch);

#endif
