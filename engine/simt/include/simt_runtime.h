/* What the device headers ask of the executor's runtime. Plain C; kernels do not call these by name. */
#ifndef SIMT_RUNTIME_H
#define SIMT_RUNTIME_H

#include "engine/simt/simt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* const: they never change during the life of one CUDA thread, so a compiler may keep the results. */
struct simt_dim simt_thread_index(void) __attribute__((const));
struct simt_dim simt_block_index(void) __attribute__((const));
struct simt_dim simt_block_dim(void) __attribute__((const));
struct simt_dim simt_grid_dim(void) __attribute__((const));
unsigned simt_lane(void) __attribute__((const));

enum simt_barrier_op { SIMT_BARRIER, SIMT_BARRIER_COUNT, SIMT_BARRIER_AND, SIMT_BARRIER_OR, SIMT_BARRIER_OPS };
int simt_barrier(enum simt_barrier_op op, int predicate, const char *file, int line);

/* Barriers by number, 0 to 15: count threads come to it, some of them wait. aligned: a warp comes as a whole. */
enum simt_named_op { SIMT_NAMED_SYNC, SIMT_NAMED_ARRIVE, SIMT_NAMED_SYNC_BLOCK /* count is that of the block */ };
void simt_named_barrier(enum simt_named_op op, unsigned id, unsigned count, int aligned, const char *file, int line);

/* Clusters of blocks. A barrier of all their threads; one that neither releases nor acquires orders no memory. */
struct simt_dim simt_cluster_dim(void) __attribute__((const)); /* blocks of a cluster */
unsigned simt_cluster_rank(void) __attribute__((const));
void simt_cluster_arrive(bool releases, const char *file, int line);
void simt_cluster_wait(bool acquires, const char *file, int line);
/* What __cluster_dims__ says of the kernel that begins here. */
void simt_cluster_dims(unsigned x, unsigned y, unsigned z);

/* SIMT_WARP_OP(id, name): lanes of a warp meet only in the same operation. */
enum simt_warp_op {
#define SIMT_WARP_OP(id, name) id,
#include "engine/simt/include/simt_warp_ops.def"
#undef SIMT_WARP_OP
    SIMT_WARP_OPS
};

/* Computes the results of all lanes in the set from their arguments; runs once, on the last lane to arrive. */
typedef void simt_combine_fn(void *const args[32], uint32_t lanes);

/* Waits until every living lane of the mask has come to the same operation with the same mask. */
void simt_warp_meet(uint32_t mask, enum simt_warp_op op, simt_combine_fn *combine, void *arg, const char *file,
                    int line);
/* The lanes that run together here: lets every lane of the warp run until it waits somewhere, then returns those that
   wait at this line. */
uint32_t simt_active_mask(const char *file, int line);

/* In a shuffled order, now and then: the calling lane does its part of what comes now, before the others have come. */
bool simt_early(void);

/* Called from a combine function: lane `lane` did something whose result CUDA leaves undefined. */
void simt_shuffle_report(int lane, int source);

/* Every so many calls in a row another thread of the block runs: a loop that spins on memory makes progress. */
void simt_spin(void);
void simt_atomic(const void *address); /* the same, of an operation there: local memory has none */
void simt_yield(void);

/* cp.async of the calling thread. A wait makes every copy of the committed groups but the last `groups_left`. */
void simt_copy_async(void *to, const void *from, size_t bytes, size_t zeros, const char *file, int line);
void simt_copy_commit(void);
void simt_copy_wait(size_t groups_left);

/* Shared memory as PTX addresses it: an offset that fits 32 bits. An address that is not the block's ends the process.
 */
uint64_t simt_shared_address(const void *generic, const char *file, int line);
void *simt_shared_pointer(uint64_t address, size_t bytes, size_t align, const char *what, const char *file, int line);
/* The same of any block of the cluster; what mapa does to an address, and to a generic pointer; whose an address is. */
void *simt_cluster_pointer(uint64_t address, size_t bytes, size_t align, const char *what, const char *file, int line);
uint64_t simt_cluster_address(uint64_t address, uint32_t rank, const char *file, int line);
void *simt_cluster_generic(const void *generic, uint32_t rank, const char *file, int line);
uint32_t simt_cluster_rank_of(const void *generic, const char *file, int line);
uint32_t simt_cluster_rank_of_address(uint64_t address);
void simt_address_error(const char *what, const char *file, int line) __attribute__((noreturn));
void simt_misaligned_error(const char *what, const char *file, int line) __attribute__((noreturn));

/* A matrix product of a warp: d = c + a b', as the tensor cores of an H100, or those that were chosen, compute it. m
   and n are multiples of 8 up to 32, k is at most 32. */
enum simt_mma_type { SIMT_MMA_F16, SIMT_MMA_BF16, SIMT_MMA_E4M3, SIMT_MMA_E5M2 };
struct simt_mma {
    enum simt_mma_type type; /* of a and b */
    int f16_accumulator;     /* c and d hold f16 values */
    int m, n, k;
    const void *a;  /* [m][k] codes of type */
    const void *b;  /* [n][k] */
    const float *c; /* [m][n] */
    const char *file;
    int line;
    bool wgmma; /* its products of 8 bits are not those of mma.sync */
};
void simt_tensor_product(const struct simt_mma *mma, float *d); /* d [m][n]; from a combine function */

/* mbarrier (PTX ISA, Parallel Synchronization and Communication Instructions). Arrive gives the number of the phase it
   is of. Wait: true once the phase of that parity has completed; where it `waits`, it returns no sooner. */
void simt_mbarrier_init(uint64_t address, uint32_t count, const char *file, int line);
void simt_mbarrier_inval(uint64_t address, const char *file, int line);
uint64_t simt_mbarrier_arrive(uint64_t address, uint32_t count, uint32_t expected_bytes, const char *file, int line);
void simt_mbarrier_transactions(uint64_t address, int64_t bytes, const char *file, int line);
void simt_mbarrier_fence(void); /* what this thread has initialized, others and TMA see */
bool simt_mbarrier_wait(uint64_t address, uint32_t parity, bool waits, const char *file, int line);

/* Bulk copies: to shared memory they complete transactions of an mbarrier, from there they are waited for by groups of
   the thread. at: element coordinates, the one that is contiguous first. */
void simt_tma_load(uint64_t to, const void *map, int dims, const int32_t *at, uint64_t mbarrier, const char *file,
                   int line);
/* To the same place of each block of the cluster whose rank is in the mask. */
void simt_tma_multicast(uint64_t to, const void *map, int dims, const int32_t *at, uint64_t mbarrier, uint32_t ranks,
                        const char *file, int line);
void simt_bulk_multicast(uint64_t to, const void *from, uint32_t bytes, uint64_t mbarrier, uint32_t ranks,
                         const char *file, int line);
/* From shared memory of this block to another's; values, to another's. */
void simt_bulk_send(uint64_t to, uint64_t from, uint32_t bytes, uint64_t mbarrier, const char *file, int line);
void simt_store_async(uint64_t to, const void *values, uint32_t bytes, uint64_t mbarrier, const char *file, int line);
void simt_tma_store(const void *map, int dims, const int32_t *at, uint64_t from, bool adds, const char *file, int line);
void simt_bulk_load(uint64_t to, const void *from, uint32_t bytes, uint64_t mbarrier, const char *file, int line);
void simt_bulk_store(void *to, uint64_t from, uint32_t bytes, const char *file, int line);
void simt_bulk_commit(void);
void simt_bulk_wait(uint32_t groups_left);

/* What the thread knows to be written, the async proxy (TMA, wgmma) may read. */
void simt_proxy_fence(void);
/* setmaxnreg.inc or .dec: a thread of the warp has n registers from now on. */
void simt_set_registers(bool more, uint32_t n, const char *file, int line);

/* What a CUtensorMap holds here. */
struct simt_tensor_map {
    uint64_t magic, base, dims[5], strides[4]; /* elements; bytes, of dimensions 1 to 4 */
    uint16_t box[5];
    uint8_t rank, dtype, element_bytes, swizzle_bytes /* 0: none */, nan_outside;
};
#define SIMT_TENSOR_MAP UINT64_C(0x50414D2D4D495354)

/* wgmma: D (+)= A B of a warpgroup, of which a warp does its 16 rows. Its operands in shared memory are read, and d,
   4-byte registers, is written when it is waited for; until then d holds NaN. Finish, from a combine function, does
   that for all lanes of the warp but for the last `groups_left` groups. */
struct simt_wgmma {
    enum simt_mma_type type;
    int n, k;
    bool f16_accumulator, adds, negates, a_in_registers, a_transposed, b_transposed;
    uint64_t a, b; /* matrix descriptors */
    uint32_t a_registers[4];
    const char *file;
    int line;
};
void simt_wgmma_issue(const struct simt_wgmma *wgmma, void *const *d, int n_d);
void simt_wgmma_fence(void);
void simt_wgmma_commit(void);
void simt_wgmma_finish(uint32_t groups_left, uint32_t lanes);

/* Called from a combine function: a warp passes a matrix in a way that CUDA leaves undefined. */
void simt_matrix_report(const char *file, int line, const char *what, const char *why);

/* A launch that the executor cannot make: an event, and simt_error(). */
void simt_refuse_launch(const char *why);

/* Device memory of host code, never written, between guard zones; or the host's, which kernels cannot reach. NULL:
   there is none. Release: false where it is no such memory's beginning. */
void *simt_allocate(size_t bytes);
void *simt_allocate_host(size_t bytes);
bool simt_release(void *memory);

/* Which tile the calling thread works on, for reports. */
void simt_place(int batch, int head, int q_tile);

/* A tile of the trace, by its offset, of this kv tile (-1: of none), which the calling thread records: who did before
   it. SIMT_OTHER_LAUNCH: one of this run's earlier launches. SIMT_SAME_VISIT: this block, and since then the thread has
   come to no other kv tile. simt_copies: the same of a thread that has a copy and records nothing. */
enum { SIMT_OTHER_BLOCK = 1, SIMT_SAME_BLOCK = 2, SIMT_SAME_VISIT = 4, SIMT_OTHER_LAUNCH = 8 };
int simt_records(size_t offset, int kv);
int simt_copies(size_t offset, int kv);
/* Where that left another value (of this dtype): says so, the first time for each channel. recorders: of the two above.
 */
void simt_two_values(int channel, int recorders, int dtype, const void *there, const void *value);

/* Who records a tile, and an element of it (probes/abi.h). The first notes this block and returns where that is kept,
   NULL: nowhere; the second this thread, with the value's number in the probe of that line; writers may be NULL. */
struct asc_stamp_map;
uint32_t *simt_writers(unsigned char *stamps, const struct asc_stamp_map *map, int slot, int kv);
void simt_sign(uint32_t *writers, uint32_t element, uint32_t number, uint32_t line);

/* Of a kernel that is compiled with checks. Between the first and the second the calling thread's accesses are none of
   the kernel's: they are a probe's, of this kv tile (-1: of none). */
void simt_checks_pause(int kv_tile);
void simt_checks_resume(void);
/* From a combine function: what the warp as a whole reads, and what a lane reads. */
void simt_check_matrix(const void *first, size_t lines, size_t line_bytes, size_t stride_bytes, const char *file,
                       int line);
void simt_check_lane(int lane, const void *p, size_t bytes, const char *file, int line);
/* And what a lane writes, checked or not. */
void simt_write_lane(int lane, void *to, const void *from, size_t bytes, const char *file, int line);

void simt_trap(const char *file, int line) __attribute__((noreturn));
/* What the executor does not have was reached: ends the process. */
void simt_gpu_only(const char *what, const char *file, int line) __attribute__((noreturn));
/* Ends the process where a kernel calls a function that is not there; returns where host code does. */
void simt_not_linked(const char *sentence);

#ifdef __cplusplus
}
#endif
#endif
