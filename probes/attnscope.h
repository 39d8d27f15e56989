/* All that a kernel includes; it includes nothing itself, and defines nothing but asc_ and ASC_ names. The file is
   compiled by nvcc (CUDA 12.4 or later, C++17) for the GPU, and by a C++ compiler behind the CPU executor's
   simt_device.h for the CPU. Probes may stand in several files of one program.

     ASC_AT(b, h, qt);        this block works on batch b, head h, q tile qt
     ASC_AT(bh, qt);          the same, of heads counted through the batches
     ASC_AT_ROWS(b, r, rows, head, query);
                              this block's tile has rows of several heads: row r, 0 .. rows - 1, is query `query` of
                              head `head`
     ASC_RECORD(ch, kv_tile, i, n, row, col, value);
                              each thread has n values; row, col and value are those of value i, 0 .. n - 1
     ASC_RECORD_ROW(ch, kv_tile, row, records, value);
                              each thread has the value of a row, or a copy of it; the one where `records` is true
                              records it
     ASC_RECORD_SHARED(ch, kv_tile, r, rows, c, cols, value);
                              the block's threads share the work; value is that of row r, 0 .. rows - 1, and column c,
                              0 .. cols - 1
     ASC_RECORD_SHARED_BY(ch, kv_tile, r, rows, c, cols, thread, threads, barrier, value);
                              the same by a part of the block, whose threads are 0 .. threads - 1; barrier is an
                              expression in which they wait for each other
     ASC_RECORD_FRAGMENT(ch, kv_tile, row0, col0, fragment);
                              each warp has an accumulator that begins at (row0, col0)
     ASC_RECORD_ROWS(ch, kv_tile, row0, values);
                              each thread has the values of its two rows of mma.m16n8: the four lanes of a row have
                              copies
     ASC_RECORD_LANES(ch, kv_tile, row0, values);
                              the same, but they have partial sums (l_lanes = 4)

     ASC_TWICE(launch);       on the host: the launch of a kernel that has a template parameter `bool asc_probed`, given
                              as asc_probed in the launch. It is compiled with its probes and without them, and each
                              launch takes the one that it needs: probes that are off cost nothing

     ASC_VALUES((name, cols), (name, cols, type));          values of the kernel's own, declared outside of functions
     ASC_VALUE(name, kv_tile, row, col, value);             this thread has one of them
     ASC_VALUE(name, row, col, value);                      the same, of a value without a kv tile: it is kv tile 0's

   A fragment is one of WMMA, 16x16, or T acc[4] of mma.m16n8, or an array of them, side by side; of T acc[m][n][4] each
   of the m stands 16 rows below the one before. values is T values[2], or T values[m][2].

   ch is a name of channels.def or of ASC_VALUES, bare: ASC_RECORD(s, j, i, 4, row0 + i / 2, col0 + i % 2, acc[i]). i, r
   and c are names of yours, known in row, col and value alone. row and col count within the tile. kv_tile is the index
   of the kv tile, and ignored (pass 0) for channels that exist once per q tile. value is an lvalue of float, double,
   __half,
   __nv_bfloat16, __nv_fp8_e4m3, __nv_fp8_e5m2, uint8_t, int32_t or int64_t (ASC_TYPE adds a name for one of them); its
   bits are recorded as they are.

   Keys are counted as the mask counts them: kv_tile, row and col are positions in the sequence, whatever page of memory
   the key was read from.

   What a probe is given may be evaluated several times: it has no side effects.

   A persistent kernel writes ASC_AT again for every work item, in the scope of that item; so does a device function
   that holds probes of its own.

   Recording never synchronizes: a probe with a barrier hides the missing barrier that it should show. ASC_RECORD_SHARED
   reads what other threads wrote, so it stands where the kernel itself may read it: behind the barrier that publishes
   the tile and before the one that frees it.

   Whatever a probe is given, it writes nowhere but into its own tile of the trace: values beyond the tile are counted
   as dropped, values of another type than the channel's as mistyped.

   ASC_MODE 0 (default): every probe is gone. ASC_MODE 1: probes record. ASC_MODE 2: probes record, and those of the
   channels that are fed then overwrite `value` in place with that element of a second trace; an element that the second
   trace does not hold, and a value that is const, stay as they are. The kernel must go on with `value` itself: a copy
   made before the probe is not fed. Of a row's value that several threads hold, ASC_RECORD_ROW feeds every copy.

   Feeding, and nothing else, synchronizes: in an ASC_RECORD_SHARED whose channel is fed all threads of the block pass
   two __syncthreads(), before the tile changes and before it is used; those of an ASC_RECORD_SHARED_BY evaluate
   `barrier` instead. The other probes change what the calling thread alone has in hand; a value of theirs in shared
   memory is published by the kernel's own barrier behind the probe. */
#ifndef ASC_ATTNSCOPE_H
#define ASC_ATTNSCOPE_H

#include "probes/abi.h"

/* A file without device code: it gets the types alone, and its probes are gone. */
#if !defined(__CUDACC__) && !defined(SIMT_HOST)
#define ASC_HOST
#endif

/* simt_device.h defines __CUDACC__ too, for the user's code. */
#if defined(__CUDACC__) && !defined(SIMT_HOST)
#define ASC_NVCC
#endif

#ifndef ASC_MODE
#define ASC_MODE 0
#endif

/* 1, in attnscope's own builds: ASC_KERNEL exports its registration, and the debuggee binds the probes. Off elsewhere,
   where several kernels share one program. */
#ifndef ASC_BUILD
#define ASC_BUILD 0
#endif
/* 1: kernels that are launched by ASC_TWICE are compiled twice. A debugger's build records, and takes half the time
   without that. */
#ifndef ASC_SWITCHED
#define ASC_SWITCHED (!ASC_BUILD)
#endif
/* 1: launches make room in shared memory for the window of probes/staging.h. */
#ifndef ASC_STAGING
#define ASC_STAGING ASC_BUILD
#endif

/* attnscope builds for one run, and recompiles at every change: a kernel that asks which of its instances that run can
   need is built several times faster.

     if constexpr (asc_built_for(ASC_F16, 64))
         if (problem->dtype == ASC_F16 && problem->head_dim == 64)
             return run<__half, 64>(problem, stream);

   Everywhere else than in such a build it is true for all. */
#ifndef ASC_ONLY_DTYPE
#define ASC_ONLY_DTYPE (-1)
#endif
#ifndef ASC_ONLY_HEAD_DIM
#define ASC_ONLY_HEAD_DIM 0
#endif
constexpr bool asc_built_for(int dtype, int head_dim)
{
    return (ASC_ONLY_DTYPE < 0 || ASC_ONLY_DTYPE == dtype) && (!ASC_ONLY_HEAD_DIM || ASC_ONLY_HEAD_DIM == head_dim);
}

/* What a kernel leaves to its build, at namespace scope behind its default:

     #ifndef WS
     #define WS 0
     #endif
     ASC_CHOICES(WS, 0, 1, 2);

   Macro WS, which scenario.define or -D WS=1 sets, is one of these numbers. */
template <class... Number> constexpr bool asc_one_of(long long value, Number... choices)
{
    return ((value == choices) || ...);
}
#define ASC_CHOICES(name, ...) static_assert(::asc_one_of(name, __VA_ARGS__), #name " must be one of " #__VA_ARGS__)

#if (ASC_MODE || ASC_BUILD) && !defined(ASC_HOST)
#include "probes/types.h"
#endif
#if ASC_BUILD && !defined(ASC_HOST)
#include "probes/run.h"
#endif

/* Whether the probes of a kernel are there; a template parameter of this name hides it, see ASC_TWICE. */
static constexpr bool asc_probed = ASC_MODE != 0;
#if defined(ASC_NVCC) && ASC_MODE && ASC_SWITCHED
#define ASC_TWICE(...)                                                                                                 \
    (::asc_is_bound() ? [&] {                                                                                          \
        constexpr bool asc_probed = true;                                                                              \
        return __VA_ARGS__;                                                                                            \
    }() : [&] {                                                                                                        \
        constexpr bool asc_probed = false;                                                                             \
        return __VA_ARGS__;                                                                                            \
    }())
#else
#define ASC_TWICE(...) __VA_ARGS__
#endif

#if ASC_MODE == 0 || defined(ASC_HOST)

#define ASC_AT(...) ((void)0)
#define ASC_AT_ROWS(...) ((void)0)
#define ASC_RECORD(...) ((void)0)
#define ASC_RECORD_ROW(...) ((void)0)
#define ASC_RECORD_SHARED(...) ((void)0)
#define ASC_RECORD_SHARED_BY(...) ((void)0)
#define ASC_RECORD_FRAGMENT(...) ((void)0)
#define ASC_RECORD_ROWS(...) ((void)0)
#define ASC_RECORD_LANES(...) ((void)0)
#define ASC_VALUE(...) ((void)0)
#define ASC_VALUES(...) static_assert(true, "")
#ifndef ASC_TYPE /* types.h */
#define ASC_TYPE(type, code)
#endif

#else /* ASC_MODE */

#include "probes/packed.h"

/* The channel's name is pasted in each macro itself: passed on, it would be expanded first, and names as short as `m`
   or `l` may well be macros of the kernel's. value is the variadic part, since it may hold commas. */
#define ASC_AT(...)                                                                                                    \
    [[maybe_unused]] const ::asc_place asc_here = asc_probed ? ::asc_place_of(__VA_ARGS__) : ::asc_place               \
    {                                                                                                                  \
        -1                                                                                                             \
    }
#define ASC_AT_ROWS(batch, r, rows, head, ...)                                                                         \
    [[maybe_unused]] const auto asc_here = ::asc_rows_of(                                                              \
        (batch), asc_probed ? (rows) : 0, [=]([[maybe_unused]] const int r, int &asc_head, int &asc_query) {           \
            asc_head = (head);                                                                                         \
            asc_query = (__VA_ARGS__);                                                                                 \
        })

#define ASC_RECORD(ch, kv_tile, i, n, row, col, ...)                                                                   \
    do {                                                                                                               \
        constexpr int asc_ch = ::asc_site(::asc_named::asc_##ch, __LINE__);                                            \
        if (::asc_is_recorded(asc_here, asc_ch)) {                                                                     \
            const int32_t asc_kv = (kv_tile);                                                                          \
            auto asc_now = ::asc_open(asc_ch, asc_here, asc_kv, __LINE__);                                             \
            ::asc_record_all(                                                                                          \
                asc_now, (n), [&]([[maybe_unused]] const int i) { return (row); },                                     \
                [&]([[maybe_unused]] const int i) { return (col); },                                                   \
                [&]([[maybe_unused]] const int i) -> decltype(auto) { return (__VA_ARGS__); });                        \
            ::asc_close(asc_ch, asc_here, asc_kv, asc_now);                                                            \
        }                                                                                                              \
    } while (0)

#define ASC_RECORD_ROW(ch, kv_tile, row, records, ...)                                                                 \
    do {                                                                                                               \
        constexpr int asc_ch = ::asc_site(::asc_named::asc_##ch, __LINE__);                                            \
        const bool asc_records = (records);                                                                            \
        if ((asc_records || ASC_COPIES) && ::asc_is_recorded(asc_here, asc_ch)) {                                      \
            const int32_t asc_kv = (kv_tile);                                                                          \
            if (ASC_MODE == 1 && !asc_records) {                                                                       \
                ::asc_compare(asc_ch, asc_here, asc_kv, (row), __VA_ARGS__);                                           \
            } else {                                                                                                   \
                auto asc_now = ::asc_open(asc_ch, asc_here, asc_kv, __LINE__);                                         \
                if (asc_records) {                                                                                     \
                    ::asc_probe(asc_now, (row), 0, __VA_ARGS__);                                                       \
                    ::asc_close(asc_ch, asc_here, asc_kv, asc_now);                                                    \
                } else {                                                                                               \
                    ::asc_feed(asc_now, (row), 0, __VA_ARGS__);                                                        \
                    ::asc_checks_resume();                                                                             \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)

#define ASC_RECORD_SHARED(ch, kv_tile, r, rows, c, cols, ...)                                                          \
    do {                                                                                                               \
        constexpr int asc_ch = ::asc_site(::asc_named::asc_##ch, __LINE__);                                            \
        if (::asc_is_recorded(asc_here, asc_ch)) {                                                                     \
            const int32_t asc_kv = (kv_tile);                                                                          \
            auto asc_now = ::asc_open(asc_ch, asc_here, asc_kv, __LINE__);                                             \
            ::asc_sync_for_feed(asc_now, [] { __syncthreads(); });                                                     \
            ::asc_record_shared(asc_now, (rows), (cols), ::asc_thread(), ::asc_threads(),                              \
                                [&]([[maybe_unused]] const int r, [[maybe_unused]] const int c) -> decltype(auto) {    \
                                    return (__VA_ARGS__);                                                              \
                                });                                                                                    \
            ::asc_close(asc_ch, asc_here, asc_kv, asc_now);                                                            \
            ::asc_sync_for_feed(asc_now, [] { __syncthreads(); });                                                     \
        }                                                                                                              \
    } while (0)

#define ASC_RECORD_SHARED_BY(ch, kv_tile, r, rows, c, cols, thread, threads, barrier, ...)                             \
    do {                                                                                                               \
        constexpr int asc_ch = ::asc_site(::asc_named::asc_##ch, __LINE__);                                            \
        if (::asc_is_recorded(asc_here, asc_ch)) {                                                                     \
            const int32_t asc_kv = (kv_tile);                                                                          \
            auto asc_now = ::asc_open(asc_ch, asc_here, asc_kv, __LINE__);                                             \
            ::asc_sync_for_feed(asc_now, [&]() { (barrier); });                                                        \
            ::asc_record_shared(asc_now, (rows), (cols), (thread), (threads),                                          \
                                [&]([[maybe_unused]] const int r, [[maybe_unused]] const int c) -> decltype(auto) {    \
                                    return (__VA_ARGS__);                                                              \
                                });                                                                                    \
            ::asc_close(asc_ch, asc_here, asc_kv, asc_now);                                                            \
            ::asc_sync_for_feed(asc_now, [&]() { (barrier); });                                                        \
        }                                                                                                              \
    } while (0)

#define ASC_RECORD_FRAGMENT(ch, kv_tile, row0, col0, ...)                                                              \
    do {                                                                                                               \
        constexpr int asc_ch = ::asc_site(::asc_named::asc_##ch, __LINE__);                                            \
        if (::asc_is_recorded(asc_here, asc_ch)) {                                                                     \
            const int32_t asc_kv = (kv_tile);                                                                          \
            auto asc_now = ::asc_open(asc_ch, asc_here, asc_kv, __LINE__);                                             \
            ::asc_record_fragment(asc_now, (row0), (col0), __VA_ARGS__);                                               \
            ::asc_close(asc_ch, asc_here, asc_kv, asc_now);                                                            \
        }                                                                                                              \
    } while (0)

#define ASC_RECORD_ROWS(ch, kv_tile, row0, ...)                                                                        \
    do {                                                                                                               \
        constexpr int asc_ch = ::asc_site(::asc_named::asc_##ch, __LINE__);                                            \
        const int asc_lane = static_cast<int>(::asc_thread() % 32), asc_row0 = (row0) + asc_lane / 4;                  \
        if (::asc_is_recorded(asc_here, asc_ch))                                                                       \
            ::asc_record_rows(                                                                                         \
                asc_ch, asc_here, (kv_tile), __LINE__, ::asc_row_values(__VA_ARGS__), asc_lane % 4 == 0,               \
                [&](int asc_i) { return asc_row0 + 8 * asc_i; },                                                       \
                [&](int asc_i) -> decltype(auto) { return (::asc_row_value(__VA_ARGS__, asc_i)); });                   \
    } while (0)

#define ASC_RECORD_LANES(ch, kv_tile, row0, ...)                                                                       \
    ASC_RECORD(ch, kv_tile, asc_i, ::asc_row_values(__VA_ARGS__),                                                      \
               (row0) + static_cast<int>(::asc_thread() % 32 / 4) + 8 * asc_i, static_cast<int>(::asc_thread() % 4),   \
               ::asc_row_value(__VA_ARGS__, asc_i))

/* value is no variadic part here: with three of them behind the name the value has no kv tile. */
#define ASC_VALUE(name, ...)                                                                                           \
    ASC_PICK_VALUE(__VA_ARGS__, ASC_VALUE_OF_KV, ASC_VALUE_OF_SLOT, 0)(::asc_named::asc_##name, __VA_ARGS__)
#define ASC_PICK_VALUE(a, b, c, d, macro, ...) macro
#define ASC_VALUE_OF_SLOT(channel, row, col, value) ASC_VALUE_OF_KV(channel, 0, row, col, value)
#define ASC_VALUE_OF_KV(channel, kv_tile, row, col, value)                                                             \
    do {                                                                                                               \
        constexpr int asc_ch = ::asc_site(channel, __LINE__);                                                          \
        if (::asc_is_recorded(asc_here, asc_ch)) {                                                                     \
            const int32_t asc_kv = (kv_tile);                                                                          \
            auto asc_now = ::asc_open(asc_ch, asc_here, asc_kv, __LINE__);                                             \
            ::asc_record_value(asc_now, asc_ch, (row), (col), (value));                                                \
            ::asc_close(asc_ch, asc_here, asc_kv, asc_now);                                                            \
        }                                                                                                              \
    } while (0)

/* Declares values of the kernel's own, at most ASC_OWN_CHANNELS, once in a file, outside of all functions and
   namespaces:

     ASC_VALUES((raw, bc), (factor, 1), (scaled, head_dim, F16));

   each with what its columns are, bc, head_dim, head_dim_v or 1, and its type where that is not F32. Its rows are those
   of the q tile. Every probe takes these names like those of channels. */
#define ASC_VALUES(...)                                                                                                \
    namespace asc_named                                                                                                \
    {                                                                                                                  \
    enum asc_values { asc_before_values = ASC_CHANNELS - 1, ASC_EACH_VALUE(__VA_ARGS__) asc_behind_values };           \
    static_assert(int(asc_behind_values) <= ASC_ALL_CHANNELS, "ASC_VALUES takes at most 8 values");                    \
    static_assert(::asc_values_are(#__VA_ARGS__), "");                                                                 \
    }                                                                                                                  \
    ASC_NOTE_VALUES(#__VA_ARGS__)
#define ASC_VALUE_ID(name, ...) asc_##name,
#define ASC_EACH_VALUE(...)                                                                                            \
    ASC_TENTH(__VA_ARGS__, ASC_VALUES_9, ASC_VALUES_8, ASC_VALUES_7, ASC_VALUES_6, ASC_VALUES_5, ASC_VALUES_4,         \
              ASC_VALUES_3, ASC_VALUES_2, ASC_VALUES_1, 0)                                                             \
    (__VA_ARGS__)
#define ASC_TENTH(a, b, c, d, e, f, g, h, i, macro, ...) macro
#define ASC_VALUES_1(a) ASC_VALUE_ID a
#define ASC_VALUES_2(a, ...) ASC_VALUE_ID a ASC_VALUES_1(__VA_ARGS__)
#define ASC_VALUES_3(a, ...) ASC_VALUE_ID a ASC_VALUES_2(__VA_ARGS__)
#define ASC_VALUES_4(a, ...) ASC_VALUE_ID a ASC_VALUES_3(__VA_ARGS__)
#define ASC_VALUES_5(a, ...) ASC_VALUE_ID a ASC_VALUES_4(__VA_ARGS__)
#define ASC_VALUES_6(a, ...) ASC_VALUE_ID a ASC_VALUES_5(__VA_ARGS__)
#define ASC_VALUES_7(a, ...) ASC_VALUE_ID a ASC_VALUES_6(__VA_ARGS__)
#define ASC_VALUES_8(a, ...) ASC_VALUE_ID a ASC_VALUES_7(__VA_ARGS__)
#define ASC_VALUES_9(a, ...) ASC_VALUE_ID a ASC_VALUES_8(__VA_ARGS__)

#endif /* ASC_MODE */

/* Registration, once per debuggee, at the bottom of the file:

     ASC_KERNEL(my_attention)
     {
         kernel.plan = plan;
         kernel.launch = launch;
         kernel.dtypes = ASC_SUPPORTS(F16) | ASC_SUPPORTS(BF16);
     }

   Fields that are not set keep the defaults of abi.h. A kernel with host code of its own sets kernel.run in the place
   of plan and launch, see run.h; in attnscope's builds alone is that compiled. */
#if ASC_BUILD
#define ASC_KERNEL(name)                                                                                               \
    extern "C" {                                                                                                       \
    extern const char asc_kernel_name[];                                                                               \
    const char asc_kernel_name[] = #name;                                                                              \
    extern const uint32_t asc_kernel_abi;                                                                              \
    const uint32_t asc_kernel_abi = ASC_ABI_VERSION;                                                                   \
    }                                                                                                                  \
    extern "C" bool asc_run_host(const struct ::asc_kernel *kernel, const struct ::asc_problem *problem,               \
                                 struct ::asc_plan *plan, int32_t *states, void *stream, char *why, int size)          \
    {                                                                                                                  \
        return ::asc_call_run(*kernel, *problem, plan, states, stream, why, size);                                     \
    }                                                                                                                  \
    extern "C" void asc_not_linked(const char *mangled)                                                                \
    {                                                                                                                  \
        ::asc_decline_call(mangled);                                                                                   \
    }                                                                                                                  \
    extern "C" void asc_describe(struct ::asc_kernel &kernel)
#else
#define ASC_KERNEL(name) [[maybe_unused]] static void asc_describe_##name(struct ::asc_kernel &kernel)
#endif

/* The same in one statement, where it is a call and what is set:

     ASC_RUN(my_attention, run.o = forward(run.q, run.k, run.v), br = 64, bc = 32, s_unit = ASC_UNIT_SCALED);

   is an ASC_KERNEL with kernel.run of this expression, and with kernel.br = 64 and so on: 1 to 15 of them. An
   expression with a comma outside of parentheses, as in forward<64, 32>(run.q), stands in parentheses. */
#if ASC_BUILD
#define ASC_RUN(name, call, ...)                                                                                       \
    ASC_KERNEL(name)                                                                                                   \
    {                                                                                                                  \
        kernel.run = [](struct ::asc_run &run) { call; };                                                              \
        ASC_16TH(__VA_ARGS__, ASC_SET_15, ASC_SET_14, ASC_SET_13, ASC_SET_12, ASC_SET_11, ASC_SET_10, ASC_SET_9,       \
                 ASC_SET_8, ASC_SET_7, ASC_SET_6, ASC_SET_5, ASC_SET_4, ASC_SET_3, ASC_SET_2, ASC_SET_1, 0)            \
        (__VA_ARGS__);                                                                                                 \
    }                                                                                                                  \
    static_assert(true, "")
#define ASC_16TH(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, macro, ...) macro
#define ASC_SET_1(a) kernel.a
#define ASC_SET_2(a, ...) kernel.a, ASC_SET_1(__VA_ARGS__)
#define ASC_SET_3(a, ...) kernel.a, ASC_SET_2(__VA_ARGS__)
#define ASC_SET_4(a, ...) kernel.a, ASC_SET_3(__VA_ARGS__)
#define ASC_SET_5(a, ...) kernel.a, ASC_SET_4(__VA_ARGS__)
#define ASC_SET_6(a, ...) kernel.a, ASC_SET_5(__VA_ARGS__)
#define ASC_SET_7(a, ...) kernel.a, ASC_SET_6(__VA_ARGS__)
#define ASC_SET_8(a, ...) kernel.a, ASC_SET_7(__VA_ARGS__)
#define ASC_SET_9(a, ...) kernel.a, ASC_SET_8(__VA_ARGS__)
#define ASC_SET_10(a, ...) kernel.a, ASC_SET_9(__VA_ARGS__)
#define ASC_SET_11(a, ...) kernel.a, ASC_SET_10(__VA_ARGS__)
#define ASC_SET_12(a, ...) kernel.a, ASC_SET_11(__VA_ARGS__)
#define ASC_SET_13(a, ...) kernel.a, ASC_SET_12(__VA_ARGS__)
#define ASC_SET_14(a, ...) kernel.a, ASC_SET_13(__VA_ARGS__)
#define ASC_SET_15(a, ...) kernel.a, ASC_SET_14(__VA_ARGS__)
#else
#define ASC_RUN(...) static_assert(true, "")
#endif

/* Other files of the same program, by their paths from this one, at namespace scope in the file that registers:

     ASC_SOURCES("merge.cu", "../common/copy.cu");

   attnscope compiles and links them with it. Elsewhere this is nothing: your own build knows them. A macro chooses the
   file of an instance: "fwd_" ASC_TEXT(INSTANCE) ".cu". */
#define ASC_TEXT_OF(macro) #macro
#define ASC_TEXT(macro) ASC_TEXT_OF(macro)
template <class... Path> constexpr bool asc_sources(Path...)
{
    return true;
}
#if ASC_BUILD
#define ASC_SOURCES(...) static_assert(::asc_sources(__VA_ARGS__), "")
#else
#define ASC_SOURCES(...) static_assert(true, "")
#endif

/* ASC_LAUNCH((kernel<64, true>), grid, block, shared_bytes, stream, arguments...) launches, and is NULL or a sentence
   that says what failed. */
#ifdef ASC_NVCC
template <class... Parameter, class... Argument>
const char *asc_launch(const char *, void (*kernel)(Parameter...), dim3 grid, dim3 block, size_t shared_bytes,
                       void *stream, Argument... args)
{
    /* More than 48 KiB must be asked for (CUDA C++ Programming Guide, "Shared Memory" of each compute capability).
       Where that is refused, so is the launch. */
    if (shared_bytes > 48 * 1024)
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
    cudaGetLastError();
    kernel<<<grid, block, shared_bytes, static_cast<cudaStream_t>(stream)>>>(args...);
    const cudaError_t status = cudaGetLastError();
    if (status == cudaSuccess)
        return nullptr;
#if ASC_BUILD
    return asc_launch_failure(static_cast<int>(status));
#else
    return cudaGetErrorString(status);
#endif
}
#elif defined(SIMT_HOST)
template <class Kernel, class... Argument>
const char *asc_launch(const char *name, Kernel *kernel, dim3 grid, dim3 block, size_t shared_bytes, void *,
                       Argument... args)
{
    return simt_launch_kernel(name, kernel, grid, block, shared_bytes, args...) == 0 ? nullptr : simt_error();
}
#endif
#define ASC_LAUNCH(kernel, grid, block, ...) ::asc_launch(#kernel, kernel, grid, block, __VA_ARGS__)

#endif
