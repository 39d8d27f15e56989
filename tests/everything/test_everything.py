#!/usr/bin/env python3
"""Features of a problem together: what combines runs clean in a kernel that has all of them, what does not is refused in one
line; keys that a kernel appends to its cache, and what it leaves there."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python")]
import tap  # noqa: E402
from in_folder import InFolder  # noqa: E402
from read_trace import Trace  # noqa: E402

KERNEL = ROOT / "tests/everything/everything.cu"
ROPE = ROOT / "kernels/rope.cu"
HOSTED = """
#include "attnscope.h"
__global__ void plain(const float *q, float *k, float *v, const float *k_new, const float *v_new, const int *cache_lens,
                      float *o, float *lse, int q_len, int kv_len, int added, int d, float scale)
{
    const int row = blockIdx.x, of = blockIdx.y, old = cache_lens[0];
    ASC_AT(0, of, row);
    for (int i = 0; i < added * d; i++) {
        k[(of * kv_len + old) * d + i PLUS] = k_new[of * added * d + i];
        v[(of * kv_len + old) * d + i] = v_new[of * added * d + i];
    }
    float m = -INFINITY, l = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int j = 0; j < kv_len; j++) {
            float s = 0;
            for (int i = 0; i < d; i++)
                s += q[(of * q_len + row) * d + i] * k[(of * kv_len + j) * d + i];
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
        run.need(run.new_keys() > 0, "no new keys");
        plain<<<dim3(run.q_len(), run.heads()), 1>>>(run.q, run.k, run.v, run.k_new(), run.v_new(), run.cache_lens(), run.o,
                                                     run.lse, run.q_len(), run.kv_len(), run.new_keys(), run.head_dim(),
                                                     run.scale());
    };
    kernel.s_unit = ASC_UNIT_SCALED;
}
"""


DROPOUT = {
    "no-factor": "as if kept weights did not get 1 / (1 - dropout)",
    "of-batch-0": "dropout looks up which weights are kept with 0 in the place of b",
    "inverted": "dropout is inverted",
    "before-sum": "l sums the weights that dropout keeps alone",
}


class Everything(InFolder):
    def run_shape(self, kernel, *shape, words=()):
        return self.command("run", kernel, *words, *(f"--set=shape.{s}" for s in shape))

    def test_random_runs(self):
        self.clean_runs("--small", "--all", 20, 7, "tests/everything/everything.cu")

    def test_what_does_not_combine(self):
        lens = ("q_lens=5,3", "kv_lens=70,40")
        for shape, expected in (
                (("new_keys=3", "layout=THD", *lens), "expected a cache, of pages or in the layout BHLD or BLHD, found THD without pages"),
                (("new_keys=3", "layout=BLHD", "strides=packed-qkv"), "found packed-qkv"),
                (("new_keys=3", "k_dtype=e2m1"), "expected K and V whose elements have bytes of their own, found e2m1"),
                (("new_keys=41", *lens), "expected 41 keys or more of each sequence (new_keys), found 40 of sequence 1"),
                (("new_keys=600",), "must be 0 to kv_len (512)"),
                (("dropout=0.5", "v_dtype=e4m3"), "dropout where there are codes"),
                (("rope=half", "v_in_k=yes"), "expected a V of its own"),
                (("rope=half", "k_dtype=s8"), "expected Q and K of values"),
                (("left_pad=yes", "page_size=16", *lens), "left_pad: expected kv_lens beside it"),
                (("strides=v-transposed", "layout=THD", *lens), "v-transposed: expected the layout BHLD or BLHD"),
                (("strides=padded", "v_in_k=yes"), "expected contiguous strides")):
            with self.subTest(shape=shape):
                status, out, err = self.run_shape(KERNEL, *shape)
                self.assertEqual((status, out, err.count("\n")), (2, "", 1), err)
                self.assertIn(expected, err)
        self.assertIn("keys that it has to append (shape.new_keys", self.run_shape(ROOT / "kernels/v2b_scalar.cu", "new_keys=3")[2])

    def test_new_keys(self):
        """Are in the trace as the others are, which runs again with them."""
        shape = ("heads=2", "q_lens=5,3", "kv_lens=70,40", "new_keys=6", "rope=half", "page_size=16")
        status, out, err = self.run_shape(ROPE, *shape, words=("-o", "t.st"))
        self.assertEqual((status, err), (0, ""), out)
        self.assertIn(" new_keys 6 ", out)
        trace = Trace(self.folder / "t.st")
        trace.check_all()
        status, out, err = self.command("run", ROPE, "--inputs", "t.st", "-o", "again.st", "--json")
        self.assertEqual((status, err), (0, ""), out)
        self.assertEqual(json.loads(out)["problem"]["new_keys"], 6)
        self.assertIn("identical", self.command("diff", "t.st", "again.st", "--exact")[1])
        for words in (("--probes=off",), ("--isolate=s",)):
            self.assertEqual(self.run_shape(ROPE, *shape, words=words)[0], 0)

    def test_dropout_mistakes_are_said(self):
        for name, sentence in tap.sampled(DROPOUT.items(), 3):
            with self.subTest(name=name):
                status, out, err = self.command("run", ROOT / f"scenarios/bugs/dropout-{name}.ini")
                self.assertEqual((status, err), (0, ""), out)
                self.assertIn(sentence, out)
                self.assertIn("found, as expected", out)

    def test_host_code(self):
        shape = ("heads=2", "q_len=3", "kv_len=40")
        for plus, new, status, words in (("", 5, 0, "CLEAN"), ("", 0, 2, "no new keys"),
                                        ("- 1", 5, 1, "10 of 10 new rows are not in the cache of K as they should be")):
            (self.folder / "k.cu").write_text(HOSTED.replace("PLUS", plus), encoding="utf-8")
            got, out, err = self.run_shape("k.cu", *shape, f"new_keys={new}")
            self.assertEqual(got, status, out + err)
            self.assertIn(words, out + err)


if __name__ == "__main__":
    tap.main()
