#!/usr/bin/env python3
"""RoPE: Q and K are turned by their positions, whatever else the problem has; the reference is that of the definition; what
goes wrong with it is found and explained; what does not go with it, and what a kernel does not take, is refused by name."""

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

KERNEL = ROOT / "kernels/rope.cu"
HOSTED = """
#include "attnscope.h"
__global__ void plain(const float *q, const float *k, const float *v, float *o, float *lse, const float *cosines,
                      const float *sines, int q_len, int kv_len, int d, int dim, int q_position, int k_position, float scale)
{
    const int row = blockIdx.x, of = blockIdx.y;
    ASC_AT(0, of, row);
    float m = -INFINITY, l = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int j = 0; j < kv_len; j++) {
            const float *x = q + (of * q_len + row) * d, *y = k + (of * kv_len + j) * d;
            float s = 0;
            for (int i = 0; i < d; i++) {
                const float *c = cosines, *n = sines;
                const int a = (q_position + row) * (dim / 2) + i / 2, b = (k_position + j) * (dim / 2) + i / 2, at = i ^ 1;
                const float sign = i % 2 ? 1 : -1;
                s += i < dim ? (x[i] * c[a] + sign * x[at] * n[a]) * (y[i] * c[b] + sign * y[at] * n[b]) : x[i] * y[i];
            }
            if (pass == 0) {
                ASC_RECORD(s, j / 16, z, 1, 0, j % 16, s * scale);
                m = fmaxf(m, s * scale);
                continue;
            }
            const float p = expf(s * scale - m);
            l += p;
            for (int i = 0; i < d; i++) {
                float *to = o + (of * q_len + row) * d + i;
                *to = (j ? *to : 0) + p * v[(of * kv_len + j) * d + i];
            }
        }
    for (int i = 0; i < d; i++)
        o[(of * q_len + row) * d + i] /= l;
    lse[of * q_len + row] = m + logf(l);
}
ASC_KERNEL(hosted)
{
    kernel.br = 1;
    kernel.bc = 16;
    kernel.dtypes = ASC_SUPPORTS(F32);
    kernel.run = [](auto &run) {
        run.need(ROPE, "pairs are interleaved");
        plain<<<dim3(run.q_len(), run.heads()), 1>>>(run.q, run.k, run.v, run.o, run.lse, run.rotary_cos(), run.rotary_sin(),
                                                     run.q_len(), run.kv_len(), run.head_dim(), run.rope_dim(),
                                                     run.rope_position(0), run.rope_offset(), run.scale());
    };
    kernel.s_unit = ASC_UNIT_SCALED;
}
"""


def turned(row, pairing, dim, base, position):
    """A row as the definition has it."""
    out = list(row)
    for i in range(dim // 2):
        a, b = (i, i + dim // 2) if pairing == "half" else (2 * i, 2 * i + 1)
        angle = position * base ** (-2 * i / dim)
        out[a] = row[a] * math.cos(angle) - row[b] * math.sin(angle)
        out[b] = row[b] * math.cos(angle) + row[a] * math.sin(angle)
    return out


class Rope(InFolder):
    def run_shape(self, kernel, *shape, words=()):
        base = ("heads=4", "kv_heads=2", "q_len=40", "kv_len=70")
        return self.command("run", kernel, *words, *(f"--set=shape.{s}" for s in (*base, *shape)))

    def clean(self, *args, **named):
        status, out, err = self.run_shape(*args, **named)
        self.assertEqual((status, err), (0, ""), out)
        self.assertIn("CLEAN", out)
        return out

    def test_with_everything_else(self):
        for rope in (("rope=half",), ("rope=interleaved", "rope_dim=32", "rope_offset=1000", "rope_base=500000")):
            for other in ((), ("kv_heads=1", "causal=bottom-right", "dtype=bf16"), ("layout=BLHD", "softcap=5"),
                          ("layout=THD", "q_lens=40,7", "kv_lens=70,20"), ("page_size=16", "kv_lens=43,70"),
                          ("window=9,3", "strides=padded"), ("mask=j % 3 != 1", "head_dim=128")):
                with self.subTest(rope=rope, other=other):
                    self.clean(KERNEL, *rope, *other)

    def test_isolation_and_bounded_capture(self):
        for stage in ("q", "k", "s"):
            self.clean(KERNEL, "rope=half", words=(f"--isolate={stage}",))
        self.clean(KERNEL, "rope=half", words=("--set=capture.mem=1MiB",))
        self.clean(KERNEL, "rope=half", words=("--probes=off",))

    def test_the_definition(self):
        """What was recorded is, to half a unit of f16, what the definition makes of the inputs."""
        for pairing, dim, base, offset, causal in (("half", 64, 10000, 0, "none"), ("interleaved", 64, 10000, 3, "none"),
                                                   ("half", 20, 500, 77, "top-left"), ("interleaved", 2, 7, 9, "bottom-right")):
            shape = (f"rope={pairing}", f"rope_dim={dim}", f"rope_base={base}", f"rope_offset={offset}", f"causal={causal}")
            self.clean(KERNEL, *shape, words=("-o", "t.st"))
            file = File(self.folder / "t.st")
            self.addCleanup(file.close)
            for name, head_rows, first in (("q", 40, offset + (0 if causal == "top-left" else 30)), ("k", 70, offset)):
                for row in (0, 17, 39):
                    want = turned(list(file.values(f"input.{name}", row * 64, 64)), pairing, dim, base, first + row)
                    got = list(file.values(f"channel.{name}", row * 64, 64))
                    for x, y in zip(want, got):
                        self.assertLessEqual(abs(x - y), abs(x) * 2 ** -11 + 2 ** -16, (name, row, shape))

    def test_a_trace_is_an_input(self):
        self.clean(KERNEL, "rope=interleaved", "rope_dim=32", "rope_offset=12", "rope_base=100", words=("-o", "t.st"))
        status, out, err = self.command("run", KERNEL, "--inputs", "t.st", "-o", "again.st", "--json")
        self.assertEqual((status, err), (0, ""), out)
        problem = json.loads(out)["problem"]
        self.assertEqual([problem[key] for key in ("rope", "rope_dim", "rope_offset", "rope_base")],
                         ["interleaved", 32, 12, 100])
        self.assertIn("identical", self.command("diff", "t.st", "again.st", "--exact")[1])
        self.clean(KERNEL, "rope=none", words=("--inputs", "t.st"))

    def test_host_code(self):
        def write(condition):
            (self.folder / "k.cu").write_text(HOSTED.replace("ROPE", condition, 1), encoding="utf-8")
            return "k.cu"
        kernel = write("run.rope() == ASC_ROPE_INTERLEAVED")
        for shape in ((), ("rope_dim=32", "rope_offset=50")):
            self.clean(kernel, "kv_heads=4", "rope=interleaved", *shape)
        self.assertIn("pairs are interleaved", self.run_shape(kernel, "kv_heads=4", "rope=half")[2])

    TURN = ("second ? x * of.cosines[at] + y * of.sines[at] : x * of.cosines[at] - y * of.sines[at];")
    K = "load_turned<T, D>(sk, of, k, kt * BC, kv_len, of.rope_offset);"
    Q = "of.rope_offset + corner);"
    MISTAKES = (
        ("half = of.rope == ASC_ROPE_HALF", "half = 0", "Q", "turned in pairs (2 i, 2 i + 1) where they are (i, i + 16)"),
        ("d % pairs : d / 2, second", "d / 2 : d % pairs, second", "Q", "with the angles of the other pairing"),
        (K, "load_tile<T, D>(sk, k, kt * BC, kv_len);", "K", "K is not turned by RoPE"),
        (K, K.replace("of.rope_offset", "of.rope_offset - kt * BC"), "K",
         "by the position of key j mod 64 where that of key j is wanted"),
        (Q, "of.rope_offset);", "Q", "by position i + 5, i being the query, and not by its own"),
        (Q, "of.rope_offset + corner + 1);", "Q", "by position p + 1 where p is its own"),
        (TURN, TURN.replace("+ y", "- y").replace("x * of.cosines[at] - y * of.sines[at];", "x * of.cosines[at] + y * of.sines[at];"), "Q",
         "turned the other way"),
        ("* pairs + pair;", "* pairs + (pairs - 1 - pair);", "Q", "with the angle of pair 15 - i where that of pair i is wanted"),
        ("* pairs + pair;", "* pairs + (pair ^ 1);", "Q", "with the angle of pair i ^ 1 where that of pair i is wanted"),
        ("(position) * pairs", "(position) * 2 * pairs", "Q", "turned twice"),
        (f"return {TURN}", "const float a = position * powf(500000.0f, -2.0f * pair / of.rope_dim), c = cosf(a), s = sinf(a);"
                           "return second ? x * c + y * s : x * c - y * s;", "Q", "by angles of base 500000, not 10000"),
        (f"return {TURN}", "const float a = position * powf(10000.0f, -2.0f * pair / 64), c = cosf(a), s = sinf(a);"
                           "return second ? x * c + y * s : x * c - y * s;", "Q", "by angles that go by head_dim (64), not rope_dim (32)"))

    def mistake(self, old, new, probes, *more):
        """What is found in a kernel with another text in a place, and with probes of Q and K or without."""
        source = KERNEL.read_text(encoding="utf-8")
        self.assertEqual(source.count(old), 1, old)
        source = source.replace(old, new)
        if not probes:
            source = "".join(line for line in source.splitlines(True) if "SHARED(q," not in line and "SHARED(k," not in line)
        (self.folder / "k.cu").write_text(source, encoding="utf-8")
        (self.folder / "ladder.cuh").write_text((ROOT / "kernels/ladder.cuh").read_text(encoding="utf-8"), encoding="utf-8")
        status, out, _ = self.run_shape("k.cu", "heads=2", "kv_heads=1", "q_len=150", "kv_len=200", "rope=half", "rope_dim=32",
                                        "rope_offset=5", *more)
        self.assertEqual(status, 1, out)
        return out

    def test_mistakes(self):
        for old, new, stage, words in tap.sampled(self.MISTAKES, 5):
            with self.subTest(new=new):
                out = self.mistake(old, new, True)
                self.assertIn(f"RoPE turns {stage} otherwise than it should", out)
                self.assertIn(words, out)

    def test_mistakes_that_only_scores_show(self):
        for old, new, _, words in tap.sampled(self.MISTAKES, 4):
            with self.subTest(new=new):
                out = self.mistake(old, new, False)
                self.assertIn("S is made of a Q or K that RoPE turns otherwise than it should", out)
                self.assertIn(words, out)

    def test_rows_from_the_wrong_place(self):
        """Are told from rows that were turned otherwise."""
        out = self.mistake("pages[i / page_size] *", "pages[i / page_size + 1] *", True, "page_size=16", "q_lens=70,100",
                           "kv_lens=200,170")
        for tensor in ("K", "V"):
            self.assertIn(f"{tensor} comes from the wrong place in memory: the page table is read at [batch][i + 1]", out)

    def test_tables_of_f16(self):
        """Are what a kernel may have, if it says so."""
        for declared in ("", "kernel.rope_error = 0x1p-12f;"):
            source = KERNEL.read_text(encoding="utf-8")
            for table in ("cosines", "sines"):
                source = source.replace(f"of.{table}[at]", f"__half2float(__float2half(of.{table}[at]))")
            (self.folder / "k.cu").write_text(source.replace("kernel.plan = plan;", f"kernel.plan = plan; {declared}"), encoding="utf-8")
            (self.folder / "ladder.cuh").write_text((ROOT / "kernels/ladder.cuh").read_text(encoding="utf-8"), encoding="utf-8")
            self.assertEqual(self.run_shape("k.cu", "rope=half")[0], 0 if declared else 1)

    def test_refusals(self):
        plain = ROOT / "kernels/v2b_scalar.cu"
        for kernel, shape, expected in (
                (plain, ("rope=half",), "RoPE (shape.rope, kernel.tensors)"),
                (KERNEL, ("rope_dim=32",), "expected `rope` beside it, found none"),
                (KERNEL, ("rope=half", "rope_dim=66"), "it must be even, from 2 to head_dim (64)"),
                (KERNEL, ("rope=half", "rope_dim=33"), "expected an even whole number from 2 to head_dim, found `33`"),
                (KERNEL, ("rope=llama",), "expected none, interleaved or half, found `llama`"),
                (KERNEL, ("rope=half", "kv_len=30"), "the first query of sequence 0 has the position -10"),
                (ROOT / "kernels/mla.cu", ("rope=half", "v_in_k=yes"), "expected a V of its own"),
                (ROOT / "kernels/fp8_e4m3.cu", ("rope=half", "dtype=e4m3"), "expected Q and K of values, found codes")):
            with self.subTest(shape=shape):
                status, out, err = self.run_shape(kernel, *shape)
                self.assertEqual((status, out, err.count("\n")), (2, "", 1), err)
                self.assertIn(expected, err)

    def test_random_correct_runs(self):
        self.clean_runs("--small", "--rope", "8", "7", "kernels/rope.cu")
        self.clean_runs("--small", "--sequences", "--rope", "8", "7", "kernels/rope.cu")


if __name__ == "__main__":
    tap.main()
