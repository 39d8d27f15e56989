#!/usr/bin/env python3
"""hopper_small, hopper_large and hopper_fp8 beside cuDNN and FlashAttention as PyTorch has them: right, and how fast.

First each output is compared with float64 on shapes that are odd, causal, grouped, of all types and widths: O begins as
NaN. hopper_fp8 gets codes and scales of a head, or of blocks of 128 rows, and is set beside hopper_large. Then a graph of 20 launches of each contender is
replayed in bursts, in random turn, with a pause before each, so that no order decides and no power limit is met.
With PDL=1 a launch may begin before the one ahead of it has ended, which cuDNN's and FlashAttention's do not: that it
waits where it must shows in chains of launches, each of which reads what the one before wrote. Prints a line of JSON for each case and row. Exit 1: an output is wrong. 77:
no PyTorch, no CUDA device below 9.0, or no nvcc. Goals are told, and are not what the exit status is about.

usage: bursts.py [--rounds N] [--libraries DIR]     DIR: where hopper_small.so and so on are, else they are built
"""

import argparse
import ctypes
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ("hopper_small", "hopper_large")
FP8 = {"hopper_fp8": 0, "hopper_fp8-BLOCKS=1": 128}  # rows that share a scale; 0: those of a head
PDL = {f"{kernel}-PDL=1": kernel for kernel in KERNELS}  # programmatic dependent launch
CHAINS = 50
FP8_GOAL = 0.75  # of hopper_large's time
LAUNCHES, PAUSE_S = 20, 0.002
# batch, heads, kv heads, queries, keys, head_dim, causal, bf16
CASES = [(1, 8, 8, 512, 512, d, causal, bf16) for d in (64, 128) for causal in (0, 1) for bf16 in (0, 1)]
CASES += [(1, 1, 1, 1, 1, 64, 0, 0), (1, 2, 2, 77, 77, 64, 0, 0), (2, 3, 3, 1000, 1000, 64, 0, 0), (1, 4, 2, 65, 259, 128, 2, 0),
          (2, 4, 1, 333, 333, 128, 1, 1), (3, 50, 50, 129, 129, 64, 0, 0), (1, 4, 4, 300, 100, 64, 2, 0), (1, 2, 2, 129, 2049, 128, 0, 1)]
# What is timed: shape, causal, who, and the goals of the first of them: ratio to cuDNN's, microseconds.
SMALL = ("hopper_small", "hopper_small-PDL=1", "hopper_large")
LARGE = ("hopper_large", "hopper_large-PDL=1", *FP8)
ROWS = (((1, 8, 512, 64), 0, SMALL, 0.5, 5.0), ((1, 8, 512, 64), 1, SMALL, None, None),
        ((2, 8, 2048, 64), 0, LARGE, 1.0, None), ((2, 8, 2048, 128), 0, LARGE, 1.0, None),
        ((2, 8, 2048, 64), 1, LARGE, 1.0, None), ((2, 8, 2048, 128), 1, LARGE, 1.0, None))


def skip(why):
    print(f"SKIP: {why}")
    return 77


def build(folder):
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if not nvcc:
        return None
    jobs = [subprocess.Popen([nvcc, "-O3", "-std=c++17", "-gencode=arch=compute_90a,code=sm_90a", "-Xcompiler", "-fPIC", "-shared",
                              "-I.", "-Ibuild/include", "-Ikernels", "--expt-relaxed-constexpr", "-diag-suppress=177",
                              "-DASC_MODE=0", f'-DKERNEL="kernels/{kernel.split("-")[0]}.cu"',
                              *(f"-D{define}" for define in kernel.split("-")[1:]), "-o", Path(folder) / f"{kernel}.so",
                              "tests/gpu/plain_library.cu"], cwd=ROOT) for kernel in (*KERNELS, *PDL, *FP8)]
    return folder if not any(job.wait() for job in jobs) else None


class Kernel:
    def __init__(self, torch, path):
        self.torch = torch
        self.launch = ctypes.CDLL(str(path)).plain_launch
        self.launch.restype = ctypes.c_char_p

    def __call__(self, shape, q, k, v, o, lse, scales=(), scale_rows=0):
        arrays = (ctypes.c_void_p(x.data_ptr()) for x in (q, k, v, o, lse))
        of_codes = (ctypes.c_void_p * 3)(*(x.data_ptr() for x in scales))
        why = self.launch((ctypes.c_int * 9)(*shape, scale_rows), *arrays, of_codes,
                          ctypes.c_void_p(self.torch.cuda.current_stream().cuda_stream))
        if why:
            raise RuntimeError(why.decode())


def inputs(torch, shape):
    batch, heads, kv_heads, q_len, kv_len, dim, _, bf16 = shape
    torch.manual_seed(1)
    dtype = torch.bfloat16 if bf16 else torch.float16
    q = torch.randn(batch, heads, q_len, dim, device="cuda", dtype=dtype)
    k, v = (torch.randn(batch, kv_heads, kv_len, dim, device="cuda", dtype=dtype) for _ in range(2))
    return q, k, v, torch.full_like(q, float("nan")), torch.full(q.shape[:3], float("nan"), device="cuda")


def codes(torch, x, scale_rows):
    """Codes of e4m3, the scales of each head's groups of rows, and the values that both are."""
    rows = scale_rows or x.shape[2]
    short = -x.shape[2] % rows
    groups = torch.nn.functional.pad(x.float(), (0, 0, 0, short)).unflatten(2, (-1, rows))
    scales = groups.abs().amax((3, 4)) / 448
    scales[scales == 0] = 1
    each = scales.repeat_interleave(rows, 2)[:, :, :x.shape[2], None]
    code = (x.float() / each).to(torch.float8_e4m3fn)
    return code, scales.contiguous(), code.double() * each.double()


def reference(torch, shape, q, k, v):
    """O and LSE, and what rounding P to e4m3 may make of O: 2^-4 of each weight, and what the sums of wgmma lose below
    that (2^-7), and where weights times 2^8 are subnormal 2^-10 of these."""
    _, heads, kv_heads, q_len, kv_len, dim, causal, _ = shape
    k, v = (x.double().repeat_interleave(heads // kv_heads, 1) for x in (k, v))
    s = q.double() @ k.transpose(-1, -2) / dim ** 0.5
    if causal:
        reach = 0 if causal == 1 else kv_len - q_len
        row, key = torch.arange(q_len, device="cuda")[:, None], torch.arange(kv_len, device="cuda")
        s = s.masked_fill(key > row + reach, float("-inf"))
    weights, lse = torch.softmax(s, -1).nan_to_num(0.0), torch.logsumexp(s, -1)
    largest = weights.amax(-1, keepdim=True)  # 1 / l, in the frame of m
    return weights @ v, lse, weights @ v.abs() * (2 ** -4 + 2 ** -7) + largest * 2 ** -18 * v.abs().sum(-2, keepdim=True) + 2 ** -9


def check(torch, name, kernel, shape):
    """Largest errors of O and LSE; NaN is wrong. 2^-9 of f16 and 2^-6 of bf16 at outputs of about 1: ten times what
    rounding of P and O costs."""
    q, k, v, o, lse = inputs(torch, shape)
    if name in FP8:
        all_codes, scales, values = zip(*(codes(torch, x, FP8[name]) for x in (q, k, v)))
        kernel((*shape[:7], 2), *all_codes, o, lse, scales, FP8[name])
    else:
        values = q, k, v
        kernel(shape, q, k, v, o, lse)
    torch.cuda.synchronize()
    o64, lse64, of_codes = reference(torch, shape, *values)
    error = (o.double() - o64).abs()
    empty = torch.isinf(lse64)
    of_lse = (lse.double() - lse64)[~empty].abs().max().item() if (~empty).any() else 0.0
    within = bool((error <= (of_codes if name in FP8 else 2 ** -6 if shape[7] else 2 ** -9)).all())
    right = within and of_lse <= (1e-2 if name in FP8 else 1e-3) and bool((lse[empty] == float("-inf")).all())
    error = error.max().item()
    print(json.dumps({"kernel": name, "shape": shape, "error": error, "lse_error": of_lse, "right": right}), flush=True)
    return right


def programmatic_edges(graph):
    """Of a graph of CUDA's, how many edges let a launch begin before the one ahead of it has ended (CUDA driver API,
    CUgraphEdgeData)."""
    edges_of = ctypes.CDLL("libcuda.so.1").cuGraphGetEdges_v2
    n = ctypes.c_size_t(0)
    if edges_of(ctypes.c_void_p(graph), None, None, None, ctypes.byref(n)):
        return None
    ends, data = [(ctypes.c_void_p * n.value)() for _ in range(2)], (ctypes.c_ubyte * 8 * n.value)()
    if edges_of(ctypes.c_void_p(graph), *ends, data, ctypes.byref(n)):
        return None
    return sum(edge[2] == 1 for edge in data)


def chain(torch, kernel):
    """The outputs of CHAINS chains of launches in a graph, each launch's O the next one's Q, and the graph's programmatic
    edges. Every O begins as NaN: who reads it too early has other bits."""
    shape = (1, 8, 8, 512, 512, 64, 0, 0)
    q, k, v, o, lse = inputs(torch, shape)
    steps = [q] + [torch.empty_like(q) for _ in range(LAUNCHES)]
    kernel(shape, q, k, v, o, lse)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.graph(graph):
        for x, y in zip(steps, steps[1:]):
            kernel(shape, x, k, v, y, lse)
    edges = programmatic_edges(graph.raw_cuda_graph())
    graph.instantiate()
    found = []
    for _ in range(CHAINS):
        for o in steps[1:]:
            o.fill_(float("nan"))
        graph.replay()
        torch.cuda.synchronize()
        found.append(torch.stack(steps[1:]))
    return found, edges


def check_chain(torch, name, kernel, plain):
    expected = chain(torch, plain)[0][0]
    found, edges = chain(torch, kernel)
    same = sum(torch.equal(x, expected) for x in found)
    line = {"chain": name, "launches": LAUNCHES, "chains": CHAINS, "same": same, "programmatic_edges": edges,
            "right": same == CHAINS and edges == LAUNCHES - 1 and not torch.isnan(expected).any().item()}
    print(json.dumps(line), flush=True)
    return line["right"]


def graph_of(torch, launch):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        launch()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(LAUNCHES):
            launch()
    return graph


def bursts(torch, kernels, row, rounds):
    from torch.nn.attention import SDPBackend, sdpa_kernel
    (batch, heads, length, dim), causal, mine, ratio, microseconds = row
    shape = (batch, heads, heads, length, length, dim, causal, 0)
    q, k, v, o, lse = inputs(torch, shape)

    def torch_by(backend):
        def launch():
            with sdpa_kernel(backend):
                torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=bool(causal))
        return launch

    who = {"cudnn": torch_by(SDPBackend.CUDNN_ATTENTION), "flash": torch_by(SDPBackend.FLASH_ATTENTION)}
    for name in mine:
        if name in FP8:
            all_codes, scales, _ = zip(*(codes(torch, x, FP8[name]) for x in (q, k, v)))
            who[name] = (lambda name=name, all_codes=all_codes, scales=scales:
                         kernels[name]((*shape[:7], 2), *all_codes, o, lse, scales, FP8[name]))
        else:
            who[name] = lambda name=name: kernels[name](shape, q, k, v, o, lse)
    graphs, times = {}, {name: [] for name in who}
    for name, launch in list(who.items()):
        try:
            graphs[name] = graph_of(torch, launch)
        except RuntimeError as error:
            print(json.dumps({"timed": [batch, heads, length, dim], "causal": causal, "who": name,
                              "error": str(error).splitlines()[0]}), flush=True)
            del times[name]
    for _ in range(rounds):
        for name in random.sample(list(graphs), len(graphs)):
            time.sleep(PAUSE_S)
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            if length <= 512:
                graphs[name].replay()  # so short that the clock has not risen in the first
            begin.record()
            graphs[name].replay()
            end.record()
            torch.cuda.synchronize()
            times[name].append(1e3 * begin.elapsed_time(end) / LAUNCHES)
    base = statistics.median(times["cudnn"]) if "cudnn" in times else None
    for name, all_of in times.items():
        low, median, high = statistics.quantiles(all_of, n=4)
        line = {"timed": [batch, heads, length, dim], "causal": causal, "who": name, "us": round(median, 3),
                "quartiles": [round(low, 3), round(high, 3)], "ratio": round(median / base, 3) if base else None}
        if name in PDL:
            line["launch"] = "programmatic"
        if PDL.get(name, name) == mine[0] and ratio and base:
            line |= {"goal_ratio": ratio, "goal_us": microseconds,
                     "met": median <= ratio * base and (microseconds is None or median <= microseconds)}
        if name in FP8 and "hopper_large" in times:
            of_f16 = median / statistics.median(times["hopper_large"])
            line |= {"of": "hopper_large", "of_ratio": round(of_f16, 3)}
            if (length, dim, causal) == (2048, 128, 0):
                line |= {"goal_ratio": FP8_GOAL, "goal_us": None, "met": of_f16 <= FP8_GOAL}
        print(json.dumps(line), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--libraries", type=Path)
    arguments = parser.parse_args()
    try:
        import torch
    except ImportError:
        return skip("no PyTorch")
    if not torch.cuda.is_available() or torch.cuda.get_device_capability()[0] != 9:
        return skip("no CUDA device of compute capability 9")
    print(json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": torch.version.cuda}), flush=True)
    with tempfile.TemporaryDirectory(prefix="bursts-") as folder:
        where = arguments.libraries or build(folder)
        if not where:
            return skip("no nvcc, or it does not build the kernels")
        kernels = {name: Kernel(torch, (Path(where) / f"{name}.so").resolve()) for name in (*KERNELS, *PDL, *FP8)}
        right = [check(torch, name, kernels[name], shape) for name in kernels for shape in CASES if name not in FP8 or not shape[7]]
        right += [check_chain(torch, name, kernels[name], kernels[PDL[name]]) for name in PDL]
        for row in ROWS:
            bursts(torch, kernels, row, arguments.rounds)
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
