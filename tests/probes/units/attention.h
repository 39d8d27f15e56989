// What the two files of this kernel share: the partial sums of a row, from one kernel to the next.
#pragma once

#include <cuda_fp16.h>
#include <math.h>

#include "attnscope.h"

constexpr int BR = 8;  // rows of a q tile: one warp each
constexpr int BC = 32; // keys of a kv tile: one lane each
constexpr int D = 64, COLS = D / 32;

struct Row {
    float m, l, u[D];
};

const char *launch_scores(const asc_problem *problem, void *stream); // scores.cu
