// What the two files of the extension share: raw pointers and strides, as extensions have them.
#pragma once
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdint.h>

#ifndef HEAD_DIM
#define HEAD_DIM 64
#endif
constexpr int BR = 16, BC = 32, D = HEAD_DIM;

struct Strides {
    int64_t batch, head, row;
};
struct Attention {
    const __half *q, *k, *v;
    __half *o;
    float *lse; // [batch][heads][q_len]
    Strides sq, sk, sv, so;
    int batch, heads, kv_heads, q_len, kv_len;
    bool causal;
    int mistake; // 1: U of odd tiles is not rescaled; 2: a store to nowhere; 3: no end
};
void attention(const Attention &a, cudaStream_t stream);
