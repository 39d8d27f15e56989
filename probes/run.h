/* A kernel's own host code in the place of a plan and a launch:

     ASC_RUN(flash, run.o = forward(run.q, run.k, run.v), br = 64, bc = 32);

   or with pointers, in a registration that says more:

     kernel.run = [](auto &run) { forward(run.q, run.k, run.v, run.o, run.batch(), run.heads(), run.q_len()); };

   attnscope calls it once before a run, when no launch has an effect, to see how many threads a block has and what the
   call asks for; then for the run itself. A problem with something that the call did not ask for, causality say, is
   declined by its name, and so is one for which it throws, as TORCH_CHECK does. */
#ifndef ASC_RUN_H
#define ASC_RUN_H

#include "probes/abi.h"
#include "probes/types.h"
#include <exception> /* attnscope's builds alone: what a thrown one says */

/* Why the host code cannot go on: a sentence that outlives it. */
struct asc_refusal {
    const char *why;
};

inline asc_refusal asc_dealt_twice(int32_t batch, int32_t head, int32_t q_tile, int32_t tile, int32_t one,
                                   int32_t other)
{
    static char why[192];
    const char *const words[] = {
        "run.deal(): kv tile ",    " of batch ", ", head ", ", q tile ", " is dealt to two states, ", " and ",
        ": two work items have it"};
    const int32_t numbers[] = {tile, batch, head, q_tile, one, other};
    int n = 0;
    for (int i = 0; i < 7; i++) {
        for (const char *at = words[i]; *at; at++)
            why[n++] = *at;
        char digits[12];
        int used = 0;
        for (uint32_t left = i < 6 && numbers[i] > 0 ? static_cast<uint32_t>(numbers[i]) : 0; i < 6 && (left || !used);
             left /= 10)
            digits[used++] = static_cast<char>('0' + left % 10);
        while (used)
            why[n++] = digits[--used];
    }
    why[n] = '\0';
    return {why};
}

/* What a call may ask for, and where the problem has it otherwise than a call without it would take it. */
#define ASC_ASKED(ASK)                                                                                                 \
    ASK(batch, problem.batch > 1)                                                                                      \
    ASK(heads, problem.heads > 1)                                                                                      \
    ASK(kv_heads, problem.kv_heads != problem.heads)                                                                   \
    ASK(kv_len, problem.kv_len != problem.q_len)                                                                       \
    ASK(causal, problem.causal != ASC_CAUSAL_NONE)                                                                     \
    ASK(scale, asc_unusual_scale(problem))                                                                             \
    ASK(softcap, problem.softcap != 0)                                                                                 \
    ASK(window_left, problem.window_left >= 0)                                                                         \
    ASK(window_right, problem.window_right >= 0)                                                                       \
    ASK(q_lens, problem.has_q_lens)                                                                                    \
    ASK(kv_lens, problem.has_kv_lens)                                                                                  \
    ASK(page_table, problem.page_size > 0)                                                                             \
    ASK(head_dim_v, problem.head_dim_v != problem.head_dim)                                                            \
    ASK(v_in_k, problem.v_in_k)                                                                                        \
    ASK(strides, problem.lie != ASC_CONTIGUOUS)                                                                        \
    ASK(leftpad_k, problem.left_pad)                                                                                   \
    ASK(rope, problem.rope != ASC_ROPE_NONE)                                                                           \
    ASK(k_new, problem.new_keys > 0)
enum asc_asked {
#define ASC_ASK(what, matters) asc_asked_##what,
    ASC_ASKED(ASC_ASK)
#undef ASC_ASK
};

inline int32_t asc_dtype_bytes(int32_t dtype)
{
    constexpr int32_t all[ASC_DTYPES] = {
#define DTYPE(id, safetensors, bytes, name) bytes,
#include "engine/base/dtypes.def"
#undef DTYPE
    };
    return all[dtype];
}

/* Whether elements of a C++ type are of an element type: by its name, or, where that is not known, by its size. */
template <class T> bool asc_holds(int32_t dtype)
{
    return asc_code<T>::dtype >= 0 ? asc_code<T>::dtype == dtype : sizeof(T) == asc_dtype_bytes(dtype);
}
template <> inline bool asc_holds<void>(int32_t)
{
    return true;
}
template <class T> struct asc_is_const {
    using no = T;
};
template <class T> struct asc_is_const<const T> {
};
template <class T> struct asc_not_const {
    using type = T;
};
template <class T> struct asc_not_const<const T> {
    using type = T;
};

/* One of the run's arrays; converts to a pointer to its elements, and to torch's Tensor. Strides in elements. A Tensor
   that is assigned to it is copied into it. */
struct asc_array {
    void *at;
    int32_t dtype, dims;
    int64_t size[4], stride[4];
    uint32_t *asked; /* a bit for each enum asc_asked */

    template <class T> operator T *() const
    {
        if (!asc_holds<typename asc_not_const<T>::type>(dtype))
            throw asc_refusal{"its host code takes pointers to elements of another type than shape.dtype says"};
        return static_cast<T *>(at);
    }
    /* For functions that take a Tensor by reference, as outputs are; it lives until so many more were taken. */
    template <class Tensor, class = typename Tensor::asc_tensor, class = typename asc_is_const<Tensor>::no>
    operator Tensor &()
    {
        static Tensor taken[64];
        static int n;
        Tensor &tensor = taken[n++ % 64];
        tensor = Tensor(static_cast<const asc_array &>(*this));
        return tensor;
    }
    /* And by reference to a std::optional of it: without a value where the problem has no such array. */
    template <class Optional, class = typename Optional::value_type::asc_tensor,
              class = typename asc_is_const<Optional>::no, class = void>
    operator Optional &() const
    {
        static Optional taken[64];
        static int n;
        Optional &optional = taken[n++ % 64];
        optional = Optional();
        if (size[0] > 0)
            optional = typename Optional::value_type(*this);
        return optional;
    }
    template <class Tensor, class = typename Tensor::asc_tensor> asc_array &operator=(const Tensor &tensor)
    {
        tensor.asc_store(*this);
        return *this;
    }
    void ask_shape() const
    {
        *asked |= 1u << asc_asked_strides | 1u << asc_asked_batch | 1u << asc_asked_heads | 1u << asc_asked_kv_heads |
                  1u << asc_asked_kv_len;
    }
};

inline bool asc_unusual_scale(const asc_problem &p)
{
    const float usual = p.scale * p.scale * static_cast<float>(p.head_dim); /* 1, to rounding, of 1/sqrt(head_dim) */
    return !(usual > 0.999999f && usual < 1.000001f);
}

struct asc_run {
    asc_array q, k, v, o, lse;
    asc_plan plan; /* br, bc, kv_splits, ... may be set here where they depend on the problem */
    void *stream;
    const asc_problem &problem;
    uint32_t asked;

    int32_t q_len() const
    {
        return problem.q_len;
    }
    int32_t head_dim() const
    {
        return problem.head_dim;
    }
    int32_t head_dim_v() /* of v and o */
    {
        return ask(asc_asked_head_dim_v, problem.head_dim_v);
    }
    /* v is a part of k: the first elements of its rows, with its strides. */
    bool v_in_k()
    {
        return ask(asc_asked_v_in_k, problem.v_in_k != 0);
    }
    /* Whether the host code has to go by run.q.stride and the others: where the answer is false, arrays are contiguous.
     */
    bool strides()
    {
        return ask(asc_asked_strides, problem.lie != ASC_CONTIGUOUS);
    }
    int32_t batch()
    {
        return ask(asc_asked_batch, problem.batch);
    }
    int32_t heads()
    {
        return ask(asc_asked_heads, problem.heads);
    }
    int32_t bh() /* heads of all batches */
    {
        return batch() * heads();
    }
    int32_t kv_heads()
    {
        return ask(asc_asked_kv_heads, problem.kv_heads);
    }
    int32_t kv_len()
    {
        return ask(asc_asked_kv_len, problem.kv_len);
    }
    float scale()
    {
        return ask(asc_asked_scale, problem.scale);
    }
    float softcap()
    {
        return ask(asc_asked_softcap, problem.softcap);
    }
    int32_t window_left()
    {
        return ask(asc_asked_window_left, problem.window_left);
    }
    int32_t window_right()
    {
        return ask(asc_asked_window_right, problem.window_right);
    }
    /* i32 [batch]: the lengths of the sequences. NULL, as the next ones, where the problem has none. */
    asc_array q_lens()
    {
        return numbers(asc_asked_q_lens, problem.q_lens, problem.batch);
    }
    asc_array kv_lens()
    {
        return numbers(asc_asked_kv_lens, problem.kv_lens, problem.batch);
    }
    /* i32 [batch]: the row of a sequence's first key. */
    asc_array leftpad_k()
    {
        return numbers(asc_asked_leftpad_k, problem.leftpad_k, problem.batch);
    }
    /* Keys that the kernel appends to the cache, run.k and run.v, of each sequence:
       [batch][kv_heads][new_keys][head_dim] or BLHD; NULL, as the lengths that the cache has before, i32 [batch], where
       the problem has none. */
    int32_t new_keys()
    {
        return ask(asc_asked_k_new, problem.new_keys);
    }
    asc_array k_new()
    {
        return appended(problem.k_new, problem.k_dtype, problem.head_dim, 0);
    }
    asc_array v_new()
    {
        return appended(problem.v_new, problem.v_dtype, problem.head_dim_v, 1);
    }
    asc_array cache_lens()
    {
        return numbers(asc_asked_k_new, problem.cache_lens, problem.batch);
    }
    /* RoPE: enum asc_rope, ASC_ROPE_NONE: there is none. */
    int32_t rope()
    {
        return ask(asc_asked_rope, problem.rope);
    }
    int32_t rope_dim()
    {
        return ask(asc_asked_rope, problem.rope_dim);
    }
    /* f32 [heads], the slopes of ALiBi, or none; elements are there in the run alone. kernel.biases says that they are
       taken. */
    asc_array alibi()
    {
        const int64_t n = problem.has_alibi ? problem.heads : 0;
        return {const_cast<float *>(problem.alibi), ASC_F32, 1, {n}, {1}, &asked};
    }
    /* The position of query 0 of a sequence, of which key 0 has rope_offset: what FlashAttention calls seqlen_offsets.
     */
    int32_t rope_position(int32_t sequence, int32_t query = 0)
    {
        return ask(asc_asked_rope, asc_query_position(&problem, sequence, query));
    }
    int32_t rope_offset()
    {
        return ask(asc_asked_rope, problem.rope_offset);
    }
    /* f32 [positions][rope_dim / 2]; NULL without RoPE. */
    asc_array rotary_cos()
    {
        return table(problem.rope_cos);
    }
    asc_array rotary_sin()
    {
        return table(problem.rope_sin);
    }
    /* i32 [batch + 1], of the layout THD. */
    asc_array cu_seqlens_q()
    {
        return numbers(asc_asked_q_lens, problem.cu_seqlens_q, problem.batch + 1);
    }
    asc_array cu_seqlens_k()
    {
        return numbers(asc_asked_kv_lens, problem.cu_seqlens_k, problem.batch + 1);
    }
    /* i32 [batch][pages of the longest sequence]: asc_problem.page_size says what k and v are then. */
    asc_array page_table()
    {
        const int64_t n = asc_table_pages(&problem);
        asked |= 1u << asc_asked_page_table;
        return {const_cast<int32_t *>(problem.page_table), ASC_I32, 2, {problem.batch, n}, {n, 1}, &asked};
    }
    int32_t page_size()
    {
        return ask(asc_asked_page_table, problem.page_size);
    }
    /* corner: to which of them the kernel aligns the diagonal; it declines the other where they differ. */
    bool causal(int32_t corner = ASC_CAUSAL_BOTTOM_RIGHT)
    {
        need(problem.causal == ASC_CAUSAL_NONE || problem.causal == corner || problem.q_len == problem.kv_len,
             corner == ASC_CAUSAL_TOP_LEFT ? "causality begins at the top left" : "causality ends at the bottom right");
        return ask(asc_asked_causal, problem.causal != ASC_CAUSAL_NONE);
    }
    /* What the scheduler made: kv tiles first .. end - 1 of this place belong to state `state`, 0 to plan.kv_splits
       - 1. first == end: the state is empty.
       Called for each work item, when a launch has an effect and when none has; plan.kv_deal is then ASC_DEAL_MAP.
     */
    void deal(int32_t at_batch, int32_t head, int32_t q_tile, int32_t state, int32_t first, int32_t end)
    {
        const int64_t q_tiles = (problem.q_len - 1) / plan.br + 1, kv_tiles = (problem.kv_len - 1) / plan.bc + 1;
        plan.kv_deal = ASC_DEAL_MAP;
        need(at_batch >= 0 && at_batch < problem.batch && head >= 0 && head < problem.heads && q_tile >= 0 &&
                 q_tile < q_tiles && first >= 0 && end <= kv_tiles && state >= 0 &&
                 state < (plan.kv_splits > 1 ? plan.kv_splits : 1),
             "run.deal() is given a place, a kv tile or a state that does not exist");
        int32_t *of_place =
            states ? states + ((at_batch * (int64_t)problem.heads + head) * q_tiles + q_tile) * (kv_tiles + 1)
                   : nullptr;
        if (of_place && of_place[kv_tiles] <= state)
            of_place[kv_tiles] = state + 1;
        for (int32_t tile = first; tile < end && of_place; tile++) {
            if (of_place[tile] >= 0 && of_place[tile] != state)
                throw asc_dealt_twice(at_batch, head, q_tile, tile, of_place[tile], state);
            of_place[tile] = state;
        }
    }
    /* Declines a problem, in a sentence. */
    void need(bool condition, const char *sentence) const
    {
        if (!condition)
            throw asc_refusal{sentence};
    }

    asc_run(const asc_problem &p, int32_t *dealt, int32_t o_dtype, void *on)
        : plan(), stream(on), problem(p), asked(0), states(dealt)
    {
        q = tensor(p.q, p.dtype, p.heads, p.q_len, p.head_dim, p.q_strides, p.total_q);
        k = keys(p.k, p.k_dtype, p.head_dim, p.k_strides);
        v = keys(p.v, p.v_dtype, p.head_dim_v, p.v_strides);
        o = tensor(p.o, o_dtype >= 0 ? o_dtype : p.dtype, p.heads, p.q_len, p.head_dim_v, p.o_strides, p.total_q);
        const int64_t rows = p.q_len;
        lse = {p.lse, ASC_F32, 3, {p.batch, p.heads, rows}, {p.heads * rows, rows, 1}, &asked};
    }

    /* What the problem has and the call did not ask for; NULL: nothing. */
    const char *not_asked() const
    {
#define ASC_ASK(what, matters)                                                                                         \
    if (!(asked & 1u << asc_asked_##what) && (matters))                                                                \
        return "its host code does not take " #what;
        ASC_ASKED(ASC_ASK)
#undef ASC_ASK
        return nullptr;
    }

  private:
    int32_t *states; /* as live_states() has it; NULL: nobody asks */
    template <class T> T ask(asc_asked what, T value)
    {
        asked |= 1u << what;
        return value;
    }
    asc_array numbers(asc_asked what, const int32_t *at, int64_t n)
    {
        asked |= 1u << what;
        return {const_cast<int32_t *>(at), ASC_I32, 1, {at ? n : 0}, {1}, &asked};
    }
    asc_array table(const float *at)
    {
        const int64_t n = problem.rope_dim / 2;
        asked |= 1u << asc_asked_rope;
        return {const_cast<float *>(at), ASC_F32, 2, {asc_rope_rows(&problem), n}, {n, 1}, &asked};
    }
    asc_array appended(const void *at, int32_t dtype, int64_t d, int of_v)
    {
        const asc_strides s = asc_strides_of_new(&problem, of_v);
        asked |= 1u << asc_asked_k_new;
        return batches(at, dtype, problem.kv_heads, problem.new_keys, problem.batch, d, s);
    }
    asc_array keys(const void *at, int32_t dtype, int64_t d, const asc_strides &s)
    {
        if (problem.page_size > 0)
            return batches(at, dtype, problem.kv_heads, problem.page_size, problem.pages, d, s);
        return tensor(at, dtype, problem.kv_heads, problem.kv_len, d, s, problem.total_k);
    }
    asc_array tensor(const void *at, int32_t dtype, int64_t heads, int64_t rows, int64_t d, const asc_strides &s,
                     int64_t total)
    {
        if (problem.layout == ASC_THD)
            return {const_cast<void *>(at), dtype, 3, {total, heads, d}, {s.row, s.head, s.col}, &asked};
        return batches(at, dtype, heads, rows, problem.batch, d, s);
    }
    asc_array batches(const void *at, int32_t dtype, int64_t heads, int64_t rows, int64_t b, int64_t d,
                      const asc_strides &s)
    {
        void *elements = const_cast<void *>(at);
        if (problem.layout == ASC_BHLD)
            return {elements, dtype, 4, {b, heads, rows, d}, {s.batch, s.head, s.row, s.col}, &asked};
        return {elements, dtype, 4, {b, rows, heads, d}, {s.batch, s.row, s.head, s.col}, &asked};
    }
};

inline bool asc_say(const char *sentence, char *why, int size)
{
    int n = 0;
    for (; sentence[n] && n + 1 < size; n++)
        why[n] = sentence[n];
    why[n] = '\0';
    return false;
}

inline bool &asc_is_running() /* kernel.run */
{
    static bool running;
    return running;
}
struct asc_running {
    asc_running()
    {
        asc_is_running() = true;
    }
    ~asc_running()
    {
        asc_is_running() = false;
    }
};

/* Of the debuggee: a sentence about an instance that is called and stands in no file that is linked; the end of a
   launch function that calls it, which nothing is thrown out of. */
extern "C" const char *asc_missing_sentence(const char *mangled);
extern "C" void asc_missing_end(const char *sentence);

/* Declines the problem where such an instance is called, or, in a kernel that runs on the CPU, ends the run. */
inline void asc_decline_call(const char *mangled)
{
    const char *const why = asc_missing_sentence(mangled);
#ifdef SIMT_DEVICE_H
    simt_not_linked(why);
#endif
    if (!asc_is_running())
        asc_missing_end(why);
    throw asc_refusal{why};
}

/* Calls kernel.run: for the run itself, or, where `plan` is given, as a rehearsal that fills it but for the threads.
   states: what run.deal() fills, -1 before; or NULL. False: it declines, with a sentence in `why`. */
inline bool asc_call_run(const asc_kernel &kernel, const asc_problem &problem, asc_plan *plan, int32_t *states,
                         void *stream, char *why, int size)
{
    asc_run run(problem, states, kernel.o_dtype, stream);
    const char *sentence = nullptr;
    run.plan.br = kernel.br;
    run.plan.bc = kernel.bc;
    const asc_running running;
    try {
        kernel.run(run);
        if (plan) {
            sentence = run.not_asked();
            *plan = run.plan;
        }
        return sentence ? asc_say(sentence, why, size) : true;
    } catch (const asc_refusal &refusal) {
        return asc_say(refusal.why, why, size);
    } catch (const std::exception &exception) {
        return asc_say(exception.what(), why, size);
#ifdef SIMT_DEVICE_H
    } catch (const simt::left &left) {
        snprintf(why, static_cast<size_t>(size), "its host code called exit(%d)", left.status);
        return false;
#endif
#ifdef ASC_EXIT_H
    } catch (const asc_left &left) {
        return asc_say(left.why, why, size);
#endif
    } catch (...) {
        return asc_say("its host code threw an exception", why, size);
    }
}

#endif
