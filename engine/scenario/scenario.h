/* A scenario: what is run and what must be found. Read from an INI file; docs/scenarios.md is generated from keys.def.
 */
#ifndef SCENARIO_SCENARIO_H
#define SCENARIO_SCENARIO_H

#include "engine/base/array_file.h"
#include "engine/base/dtype.h"
#include "engine/base/err.h"
#include "engine/trace/event.h"
#include "engine/trace/launch.h"
#include "probes/abi.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum fill_kind {
#define FILL(id, name, meaning) id,
#include "engine/scenario/fills.def"
#undef FILL
    FILL_COUNT
};

struct fill {
    enum fill_kind kind;
    double sigma; /* scale of the random fills */
    uint64_t seed;
};

/* What of the inputs may come of a file, in the order of the keys of [inputs]. */
enum input_id {
    INPUT_Q,
    INPUT_K,
    INPUT_V,
    INPUT_SINK,
    INPUT_ALIBI,
    INPUT_BIAS,
    INPUT_MASK,
    INPUT_KEEP,
    INPUT_Q_SCALE,
    INPUT_K_SCALE,
    INPUT_V_SCALE,
    INPUT_Q_LENS,
    INPUT_KV_LENS,
    INPUT_CU_SEQLENS_Q,
    INPUT_CU_SEQLENS_K,
    INPUT_PAGE_TABLE,
    INPUT_COUNT
};

/* first .. end - 1; end 0: all. */
struct cut {
    int first, end;
};

/* Inputs of files; which files: scenario_input(). */
struct inputs {
    int layout; /* enum asc_layout, of the files */
    struct cut batches, heads, q_rows, kv_rows;
    /* As scenario_take_inputs() found the files. */
    unsigned found; /* set of 1u << enum input_id: what the common file has */
    bool from_trace;
    int from_layout;             /* of that trace */
    int32_t from_types[3];       /* enum dtype, of its q, k and v: codes lie there as bytes */
    int all_heads, all_kv_heads; /* before they are cut */
};

enum scenario_judge { SCENARIO_JUDGE_AUTO, SCENARIO_JUDGE_CPU, SCENARIO_JUDGE_GPU }; /* of o and lse in a first pass */

/* Which (batch, head, q tile)s are recorded: each list is ascending; n = 0 means all. */
struct capture {
    int n_batches, n_heads, n_q_tiles;
    int *batches, *heads, *q_tiles; /* owned */
    unsigned channels;              /* set of 1u << enum asc_channel; default all */
    uint64_t mem_bytes;             /* most the live trace may take; default 2 GiB */
    int judge;                      /* enum scenario_judge: of o and lse in a first pass */
    int memory;                     /* enum memory_kind: where the probes write on a GPU */
    int writers;                    /* enum: whether who recorded each element is kept */
};
enum { WRITERS_AUTO, WRITERS_ON, WRITERS_OFF };

/* What must be found; status EXPECT_NOTHING where the scenario says nothing. */
enum expect_verdict { EXPECT_NOTHING, EXPECT_CLEAN, EXPECT_FAIL };

struct expect {
    enum expect_verdict verdict;
    int first_channel;  /* enum asc_channel or CULPRIT_LOOP, -1: not stated */
    int first[4];       /* batch, head, q tile, kv tile; -1: not stated */
    unsigned culprits;  /* set of 1u << enum asc_channel and of CULPRIT_LOOP; 0: not stated */
    int no_culprits;    /* 1: no stage may be wrong by its own fault */
    unsigned bias;      /* set of 1u << enum asc_channel: whose rounding is found biased; 0: not stated */
    int no_bias;        /* 1: none may be */
    char cause[256];    /* names of causes, "a,b"; "" not stated */
    event_set events;   /* 0: not stated */
    bool no_event;      /* none may be */
    char event_at[128]; /* a piece of the source line of the first of them; "" not stated */
    event_set stopped;  /* one of which ends the run early; 0: not stated */
    int line_of_expect; /* where [expect] stands in the file */
};

/* Beside the channels a culprit may be the kernel's loop over the kv tiles: it left tiles out that rows should see. */
enum { CULPRIT_LOOP = ASC_CHANNELS };
const char *culprit_name(int culprit); /* a channel's, or "loop" */
int culprit_from_name(const char *name);

/* What of the kernel without probes is measured on a GPU, beside the run: nothing but what [budget] limits, or its time
   and hardware counters as well. */
enum scenario_profile { SCENARIO_PROFILE_NO, SCENARIO_PROFILE_YES };

enum scenario_backend { SCENARIO_BACKEND_AUTO, SCENARIO_BACKEND_GPU, SCENARIO_BACKEND_CPU };
enum scenario_debug { SCENARIO_DEBUG_LINEINFO, SCENARIO_DEBUG_FULL };
enum scenario_probes { SCENARIO_PROBES_ON, SCENARIO_PROBES_OFF };

/* What shares a scale in a tensor of codes; SCALES_BLOCKS: problem.scale_rows rows of a head, and
   problem.scale_dims elements of each. */
enum scenario_scales { SCALES_HEAD, SCALES_TENSOR, SCALES_BLOCKS };

struct pool;

#define SCENARIO_KEYS_MAX 120
#define INPUT_PATH_BYTES 480 /* of a file of inputs, and its array */

struct scenario {
    char path[512];             /* as given; "" for an ad-hoc run */
    char name[128];             /* file name without .ini */
    char kernel[512];           /* path of the .cu, resolved against the scenario's folder, then the root */
    char patch[512];            /* "" none; path of a unified diff */
    char define[256];           /* "NAME=VALUE NAME", "" none: macros of the kernel's build */
    char include[1024];         /* value_next() reads it: folders of headers, found as the kernel is */
    char flags[1024];           /* the same: of the compiler */
    struct asc_problem problem; /* pointers NULL, but lengths, which are those below */
    int32_t *lens[2];           /* owned, [n_lens]: of q and of k and v, as they are stated; NULL: they are not */
    int n_lens[2];
    struct fill fill_q, fill_k, fill_v, fill_sink, fill_bias,
        fill_keep; /* of what is of no file; of the last the seed */
    struct inputs inputs;
    struct capture capture;
    struct expect expect;
    struct launch_budget budget;
    int scales;      /* enum scenario_scales */
    int smooth_k;    /* 1: codes of K are made of K less its mean over the keys of its head */
    int profile;     /* enum scenario_profile */
    int backend;     /* enum scenario_backend */
    int debug;       /* enum scenario_debug, of a GPU build */
    int probes;      /* enum scenario_probes */
    int checks;      /* 1: with access checks, on the CPU */
    int tensor_core; /* enum tensor_core: whose products the CPU executor computes */
    char lanes[24];  /* the order of lanes and warps on the CPU; no key sets it; "": the default's */
    char on[256];    /* the destination of ssh that it runs at; no key sets it; "": here */
    double limit_s;  /* wall-clock limit of the launch, from block to block; default 30 */
    /* By enum scenario_key_id (keys.h): what was said. Defaults that follow from another key (kv_heads from heads,
       scale from head_dim, ...) follow it only where they were not stated. */
    bool stated[SCENARIO_KEYS_MAX];
    char *text; /* owned: the file as read */
    /* Owned: the value of each stated key (keys.h) as it was written; NULL: not stated. */
    char *said[SCENARIO_KEYS_MAX];
};

/* Defaults of an ad-hoc run: 1,8,512,64 f16, normal inputs, scale 1/sqrt(head_dim), everything recorded. */
void scenario_init(struct scenario *s);
/* Reads a file. ERR_INPUT with "file:line: key" and what was expected; *s is then empty. root: attnscope's own folder.
 */
int scenario_read(const char *path, const char *root, struct scenario *s, struct err *err);
/* inih cuts longer lines silently: its buffer of 200 holds the line, "\r\n" and NUL. */
#define SCENARIO_LINE_MAX 197
/* Writes what is stated as a file, with absolute paths. The file appears when it is complete. */
int scenario_write(const struct scenario *s, const char *path, struct err *err);
/* The same of what decides a run, all but [expect], as a trace keeps it: {"shape.q_len": "200"}. Owned; NULL: no
   memory. */
char *scenario_settings(const struct scenario *s);
/* The same for a trace that is saved as this file: what lies in its folder, or with it in the working folder, is named
   from there, so that the folder may be moved. */
char *scenario_settings_near(const char *settings, const char *trace);
/* And back. ERR_INPUT where it is none, or a file that it names is gone; *out is then empty. path: whose it is. */
int scenario_from_settings(const char *settings, const char *path, struct scenario *out, struct err *err);
/* "shape.q_len=77, fill.kind=normal": what the second says otherwise, of what decides a run; "": nothing. */
void scenario_difference(const struct scenario *before, const struct scenario *now, char *out, size_t bytes);
/* "B,H,L,D" or "B,H,Lq,Lkv,D", H or "H/Hkv", in parentheses or not, into the problem; the scale becomes 1/sqrt(D). */
int scenario_parse_shape(const char *text, struct asc_problem *p, struct err *err);
/* The same into a scenario, in the place of what was stated of its lengths and its scale. */
int scenario_set_shape(struct scenario *s, const char *text, struct err *err);
/* Sets one key as if it stood in the file ("shape.causal", "top-left"): command-line options use it. Paths are kept as
   given. Files of inputs come with their shape, in the place of the lengths that are stated; a trace with its whole
   problem. Only the value itself is checked; scenario_check() after the last one. */
int scenario_set(struct scenario *s, const char *key, const char *value, struct err *err);
/* Adds NAME or NAME=VALUE to scenario.define, in the place of an earlier one of that name. */
int scenario_define(struct scenario *s, const char *macro, struct err *err);
/* Looks at the files of inputs again, whose shape is the scenario's; then what no single key can be wrong about: a
   kernel is named, heads fit kv_heads, captured and expected places lie within the shape, sizes do not overflow.
   scenario_read() has done it. */
int scenario_check(struct scenario *s, struct err *err);
/* That scales are stated where a tensor holds codes: scenario_check() knows only where a type is stated too. */
int scenario_check_scales(const struct scenario *s, struct err *err);
/* A copy that owns what it holds. -1: no memory, and *out is empty. */
int scenario_copy(const struct scenario *from, struct scenario *out);
void scenario_free(struct scenario *s); /* frees what it owns and empties it; NULL and an empty one are legal */
/* docs/scenarios.md, from keys.def, fills.def and features.def. 0, or -1 where out could not be written. */
int scenario_write_docs(FILE *out);
/* The part of docs/conventions.md from features.def: how each is declared, and what goes wrong with it. */
int scenario_write_features(FILE *out);

/* The i-th name of a list in struct expect. 0: there are no more. */
int scenario_listed(const char *list, int i, char name[64]);

/* The table of the pages that K and V lie in, the caller's; NULL: memory ran out. Shuffled by the seed of K. */
int32_t *scenario_page_table(const struct scenario *s);

extern const char *const scenario_input_names[INPUT_COUNT];
bool scenario_has_inputs(const struct scenario *s); /* of files */
/* Where input i comes from, as array_open() takes it; false: from its fill, or there is none. */
bool scenario_input(const struct scenario *s, enum input_id i, char spec[ARRAY_NAME_BYTES]);
/* What the elements of one of q, k and v (0, 1, 2) are, enum dtype; -1: bits of none of ours. */
int scenario_input_type(const struct scenario *s, int tensor, const struct array *a);
bool scenario_states_type(const struct scenario *s, int tensor); /* itself, or a type that it follows */
/* Where the values may stand that codes of q, k or v (0, 1, 2) were made from. */
bool scenario_given(const struct scenario *s, int tensor, char spec[ARRAY_NAME_BYTES]);
/* What the run takes of an array, by batch, head, row and column: element (b, h, r, c) is at offset + the strides times
   these. A stride is 0 where one value stands for all. Of scales a row is a group of rows. ERR_INPUT: its shape is
   none that this input has. */
struct input_view {
    int64_t offset, stride[4];
    int length[4];
};
/* Opens the array that an input is of, with its values or without, and says what is taken of it. */
int scenario_open_input(const struct scenario *s, enum input_id i, const char *spec, bool values, struct array *a,
                        struct input_view *out, struct err *err);

/* Fills q, k or v (tensor 0, 1, 2): [batch][heads][rows][head_dim] in the problem's layout and the type that
   fill_dtype() says: the tensor's, f16 where that holds codes. -1: some value does not fit the type, and is infinite.
   pool: whose threads do it; NULL: the calling one does. The same bits on every machine and thread count: element
   (b,h,row,d) depends on (seed, tensor, b,h,row,d) alone. */
int fill_tensor(const struct asc_problem *p, int tensor, const struct fill *fill, struct pool *pool, void *out);
enum dtype fill_dtype(const struct asc_problem *p, int tensor);
size_t fill_tensor_bytes(const struct asc_problem *p, int tensor);
/* Sinks [heads], slopes [heads], bias as asc_bias_strides() lays it out: f32, on the same terms. */
void fill_sink(const struct asc_problem *p, const struct fill *fill, float *out);
void fill_alibi(const struct asc_problem *p, float *out);
/* The bytes of the mask that the problem's formula says. */
int fill_mask(const struct asc_problem *p, uint8_t *out, struct err *err);
/* 1 with the probability 1 - dropout. */
void fill_keep(const struct asc_problem *p, const struct fill *fill, uint8_t *out);
void fill_bias(const struct asc_problem *p, const struct fill *fill, float *out);

/* Codes of such a tensor, in the problem's layout and the tensor's type, from its f16 values, none of which is NaN or
   infinite; and their scales, where asc_scale_at() says, as f32 whatever their type is. Returns
   the scale of the tensor, 1 where its scales are not e4m3. */
float encode_tensor(const struct asc_problem *p, int tensor, enum scenario_scales by, const uint16_t *values,
                    uint8_t *codes, float *scales);
size_t encode_scales_bytes(const struct asc_problem *p, int tensor);

#endif
