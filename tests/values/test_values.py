#!/usr/bin/env python3
"""V of its own width, V in K, strides, left padding: whatever else the problem has, the run is judged by the right values; what a kernel does
not take is refused by name; a trace of them is an input like any other."""

import json
import math
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python")]
import tap  # noqa: E402
from in_folder import InFolder  # noqa: E402
from attnscope.safetensors import File  # noqa: E402

KERNEL = ROOT / "kernels/mla.cu"
WIDE, IN_K = ("head_dim=192", "head_dim_v=128"), ("head_dim=96", "head_dim_v=64", "v_in_k=yes")
HOSTED = """
#include "attnscope.h"
__global__ void plain(const float *q, const float *k, const float *v, float *o, float *lse, int q_len, int kv_len, int d,
                      int d_v, int ld_v, float scale)
{
    const int row = blockIdx.x, of = blockIdx.y;
    ASC_AT(0, of, row);
    float m = -INFINITY, l = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int j = 0; j < kv_len; j++) {
            float s = 0;
            for (int i = 0; i < d; i++)
                s += q[(of * q_len + row) * d + i] * k[(of * kv_len + j) * d + i];
            if (pass == 0) {
                ASC_RECORD(s, j / 16, x, 1, 0, j % 16, s * scale);
                m = fmaxf(m, s * scale);
                continue;
            }
            const float p = expf(s * scale - m);
            l += p;
            for (int i = 0; i < d_v; i++) {
                float *to = o + (of * q_len + row) * d_v + i;
                *to = (j ? *to : 0) + p * v[(of * kv_len + j) * ld_v + i];
            }
        }
    for (int i = 0; i < d_v; i++)
        o[(of * q_len + row) * d_v + i] /= l;
    lse[of * q_len + row] = m + logf(l);
}
ASC_KERNEL(hosted)
{
    kernel.br = 1;
    kernel.bc = 16;
    kernel.dtypes = ASC_SUPPORTS(F32);
    kernel.run = [](auto &run) {
        plain<<<dim3(run.q_len(), run.heads()), 1>>>(run.q, run.k, run.v, run.o, run.lse, run.q_len(), run.kv_len(),
                                                     run.head_dim(), WIDTH, PITCH, run.scale());
    };
    kernel.s_unit = ASC_UNIT_SCALED;
}
"""


class Values(InFolder):
    def run_shape(self, kernel, *shape, words=()):
        base = ("heads=4", "q_len=40", "kv_len=70")
        return self.command("run", kernel, *words, *(f"--set=shape.{s}" for s in (*base, *shape)))

    def clean(self, *args, **named):
        status, out, err = self.run_shape(*args, **named)
        self.assertEqual((status, err), (0, ""), out)
        self.assertIn("CLEAN", out)
        return out

    def test_with_everything_else(self):
        for values in (WIDE, IN_K, ("head_dim=64", "head_dim_v=128")):
            for other in ((), ("kv_heads=1", "causal=bottom-right", "dtype=bf16"), ("layout=BLHD", "kv_heads=2"),
                          ("layout=THD", "q_lens=40,7", "kv_lens=70,20"), ("page_size=16", "kv_lens=33,70")):
                with self.subTest(values=values, other=other):
                    self.clean(KERNEL, *values, *other)

    def test_isolation_and_bounded_capture(self):
        self.clean(KERNEL, *IN_K, words=("--isolate=s",))
        self.clean(KERNEL, *WIDE, words=("--set=capture.mem=1MiB",))

    def test_however_rows_lie_no_bit_changes(self):
        def same_as(shape, *others):
            self.clean(KERNEL, *shape, words=("-o", "plain.st"))
            for other in others:
                with self.subTest(shape=shape, other=other):
                    self.clean(KERNEL, *shape, *other, words=("-o", "other.st"))
                    plain, file = (File(self.folder / name) for name in ("plain.st", "other.st"))
                    for name in ("input.v", "channel.s", "channel.u", "output.lse"):
                        self.assertEqual(*(f.raw(name, 0, math.prod(f.tensors[name]["shape"])) for f in (plain, file)), name)
                    plain.close()
                    file.close()
        same_as(("kv_heads=2", *WIDE), ("strides=padded",), ("strides=v-transposed",))
        same_as(("kv_lens=70,33", "kv_heads=2"), ("left_pad=yes",), ("left_pad=yes", "strides=padded"),
                ("left_pad=yes", "strides=v-transposed"), ("page_size=16", "strides=padded"))
        same_as(("kv_len=40", "layout=BLHD"), ("strides=packed-qkv",), ("strides=padded",))
        same_as(("q_lens=40,9", "kv_lens=40,9", "kv_len=40", "layout=THD"), ("strides=packed-qkv",), ("strides=padded",))

    def mistake(self, old, new, *shape):
        """What is found in a kernel with another text in a place."""
        source = KERNEL.read_text(encoding="utf-8")
        self.assertEqual(source.count(old), 1)
        (self.folder / "k.cu").write_text(source.replace(old, new), encoding="utf-8")
        (self.folder / "ladder.cuh").write_text((ROOT / "kernels/ladder.cuh").read_text(encoding="utf-8"), encoding="utf-8")
        status, out, _ = self.run_shape("k.cu", "kv_heads=2", *shape)
        self.assertNotEqual(status, 0, out)
        return out

    def test_strides_that_are_not_taken(self):
        q, k, v = (f"= problem->{name}_strides;" for name in "qkv")
        for old, new, shape, words in (
                (q, "= asc_strides_of(problem, problem->heads, problem->q_len);", "strides=padded", "read as if it were contiguous"),
                (v, "= problem->q_strides;", "strides=padded", "read with the strides of Q"),
                (k, k + " x.p.kv_strides.row = 256;", "strides=packed-qkv", "goes through rows by 256 where they lie 512 apart"),
                (v, v + " x.v_strides.col = problem->kv_len;", "strides=v-transposed", "goes through columns by 70 where they lie 72 apart"),
                ("+ pad * p.kv_strides.row;", ";", "left_pad=yes", "the left padding is not added to its rows")):
            more = {"strides=packed-qkv": ("layout=BLHD", "q_len=70"), "left_pad=yes": ("kv_lens=70,33",)}.get(shape, ())
            with self.subTest(new=new):
                self.assertIn("comes from the wrong place in memory: ", out := self.mistake(old, new, shape, *more))
                self.assertIn(words, out)

    def test_strides_that_codes_are_read_without(self):
        """Each keeps its own scale, whichever code it is of: powers of two, and any others."""
        source = (ROOT / "kernels/micro_scales.cu").read_text(encoding="utf-8")
        for old, new, lie, scales, words in (
                ("at + d * of->strides.col)", "at + d)", "v-transposed", "e8m0", "columns by 1 where they lie 72 apart"),
                ("there * of->strides.row", "there * 64", "padded", "f32", "rows by 64 where they lie 80 apart")):
            with self.subTest(new=new):
                self.assertEqual(source.count(old), 1)
                (self.folder / "k.cu").write_text(source.replace(old, new), encoding="utf-8")
                for header in (ROOT / "kernels").glob("*.cuh"):
                    (self.folder / header.name).write_bytes(header.read_bytes())
                _, out, _ = self.run_shape("k.cu", f"strides={lie}", "dtype=f16", "k_dtype=e4m3", words=(
                    "--set=quant.scales=rows:1,dims:32", f"--set=quant.scale_type={scales}"))
                self.assertIn("V is wrong", out)
                self.assertIn("V comes from the wrong place in memory: it ", out)
                self.assertIn(words, out)

    def test_between_the_rows_of_o(self):
        out = self.mistake("= problem->o_strides;", "= asc_strides_of_o(problem, problem->heads, problem->q_len);", "strides=padded")
        self.assertIn("the kernel wrote outside O", out)

    def test_v_in_k_is_k(self):
        self.clean(KERNEL, *IN_K, words=("-o", "t.st"))
        file = File(self.folder / "t.st")
        self.addCleanup(file.close)
        self.assertEqual([file.tensors[name]["shape"][-1] for name in ("input.q", "input.v", "channel.u", "output.o")],
                         [96, 64, 64, 64])
        for row in (0, 69, 3 * 70 + 5):
            self.assertEqual(list(file.values("input.k", row * 96, 64)), list(file.values("input.v", row * 64, 64)))

    def test_a_trace_is_an_input(self):
        for values in (WIDE, IN_K):
            self.clean(KERNEL, *values, words=("-o", "t.st"))
            status, out, err = self.command("run", KERNEL, "--inputs", "t.st", "-o", "again.st", "--json")
            self.assertEqual((status, err), (0, ""), out)
            problem = json.loads(out)["problem"]
            self.assertEqual((problem["head_dim_v"], problem.get("v_in_k", 0)), (int(values[1][11:]), int(values == IN_K)))
            self.assertIn("identical", self.command("diff", "t.st", "again.st", "--exact")[1])

    def test_host_code(self):
        def write(width, pitch):
            (self.folder / "k.cu").write_text(HOSTED.replace("WIDTH", width).replace("PITCH", pitch), encoding="utf-8")
            return "k.cu"
        self.clean(write("run.head_dim_v()", "run.v.stride[2]"), *WIDE)
        status, out, err = self.run_shape(write("run.head_dim()", "run.head_dim()"), *WIDE)
        self.assertEqual((status, out), (2, ""))
        self.assertIn("its host code does not take head_dim_v", err)
        self.clean(write("run.head_dim_v()", "(run.v_in_k() ? run.head_dim() : run.head_dim_v())"), *IN_K)
        self.assertIn("its host code does not take v_in_k",
                      self.run_shape(write("run.head_dim_v()", "run.v.stride[2]"), *IN_K)[2])

    def test_refusals(self):
        plain = ROOT / "kernels/v2b_scalar.cu"
        for kernel, shape, expected in (
                (plain, ("head_dim_v=128",), "a head_dim of V's own (shape.head_dim_v, kernel.tensors)"),
                (plain, ("v_in_k=yes",), "V in K (shape.v_in_k, kernel.tensors)"),
                (KERNEL, ("head_dim_v=0",), "expected"),
                (KERNEL, ("head_dim_v=128", "v_in_k=yes"), "expected a head_dim_v up to head_dim (64), found 128"),
                (plain, ("strides=padded",), "such strides (shape.strides, kernel.tensors)"),
                (plain, ("left_pad=yes", "kv_lens=9"), "does not accept"),
                (KERNEL, ("left_pad=yes",), "left_pad: expected kv_lens beside it"),
                (KERNEL, ("strides=packed-qkv",), "packed-qkv: expected as many keys as queries"),
                (KERNEL, ("strides=v-transposed", "page_size=16"), "v-transposed: expected the layout BHLD or BLHD"),
                (KERNEL, ("strides=loose",), "expected contiguous, padded, packed-qkv or v-transposed"),
                (KERNEL, ("v_in_k=yes", "v_dtype=bf16"), "V is a part of K, but has 64 elements a row of type bf16")):
            with self.subTest(shape=shape):
                status, out, err = self.run_shape(kernel, *shape)
                self.assertEqual((status, out, err.count("\n")), (2, "", 1), err)
                self.assertIn(expected, err)

    def test_random_correct_runs(self):
        self.clean_runs("--small", "--sequences", "--values", "8" if tap.takes_all() else "4", "7", "kernels/mla.cu")


if __name__ == "__main__":
    tap.main()
