#!/usr/bin/env python3
"""Sums and quotients that go wrong on their way are said as what they are, in whole runs of kernels."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python")]
import tap  # noqa: E402
from in_folder import InFolder  # noqa: E402

F16 = "__half2float(__float2half({}))".format
BF16 = "__bfloat162float(__float2bfloat16({}))".format


class Sums(InFolder):
    def said_of(self, kernel, shape, *edits, words=()):
        text = (ROOT / "kernels" / f"{kernel}.cu").read_text(encoding="utf-8")
        for old, new in edits:
            self.assertEqual(text.count(old), 1, old)
            text = text.replace(old, new)
        (self.folder / "k.cu").write_text(text, encoding="utf-8")
        for header in (ROOT / "kernels").glob("*.cuh"):
            (self.folder / header.name).write_bytes(header.read_bytes())
        return self.command("run", "k.cu", f"--shape={shape}", *words)[1]

    def test_quotients_that_become_codes(self):
        x, quotient = "__half2float(x[e])", "__half2float(x[e]) / scale"
        for new, said in (
            (F16(f"{x} / {F16('scale')}"),
             "are made in f16: the scale, and then what is divided by the scale, is rounded to it first"),
            (BF16(quotient), "are made in bf16: what is divided by the scale, is rounded to it first"),
            (f"{x} / {BF16('scale')}", "are made by a scale that is rounded to bf16, and stand for it as it was"),
        ):
            with self.subTest(said=said):
                out = self.said_of("fp8_sim", "1,2,70,100,64", (quotient, new))
                for stage in ("Q", "K", "V"):
                    self.assertIn(f"codes of {stage} {said}", out)

    def test_sums_that_lanes_exchange(self):
        for type_of, name in ((F16, "f16"), (BF16, "bf16")):
            with self.subTest(type=name):
                shuffles = [f"__shfl_xor_sync(0xffffffffu, l[r], {lane})" for lane in (1, 2)]
                out = self.said_of("fp16_mma", "1,2,70,150,64", *((old, type_of(old)) for old in shuffles))
                for stage in ("O", "LSE"):
                    self.assertIn(f"the lanes of l give each other their sums rounded to {name} on the way to {stage}", out)

    def test_a_sum_of_products_that_is_not_cleared(self):
        out = self.said_of("hopper_fp8", "1,2,70,300,64",
                           ("float of_tile[BLOCKS ? D / 2 : 1];", "float of_tile[BLOCKS ? D / 2 : 1] = {};"),
                           ("behind(sv, k * 32), k > 0);", "behind(sv, k * 32), true);"),
                           words=("-D", "BLOCKS=1", "--set=shape.dtype=e4m3", "--set=quant.scales=rows:128"))
        self.assertIn("U is wrong", out)
        self.assertIn("what a tile adds to U is summed on top of what the tile visited before added, as where it is not cleared", out)

    def test_a_sum_that_is_rescaled_in_steps(self):
        """Of keys as fragments have them."""
        add = "l[r] += s[j][2 * r] + s[j][2 * r + 1]"
        out = self.said_of("fp8_mma", "1,2,64,192,64", ("            l[r] *= alpha[r];\n", ""),
                           (add, "l[r] = l[r] * alpha[r] + s[j][2 * r] + s[j][2 * r + 1]"), words=("--set=shape.dtype=e4m3",))
        self.assertIn("l is rescaled by α before every 8 keys, not once for the tile, keys taken in the order of c with bits "
                      "1 and 3 exchanged", out)

    def test_what_explains_a_stage_is_tried_in_those_that_follow(self):
        """Of LSE one element is wrong: of itself it tells nothing."""
        carried = ("sm[row] = m;", "sm[row] = __half2float(__float2half(m));")
        run = "1,2,70,200,64", carried
        out = self.said_of("v2b_scalar", *run, words=("--set=fill.kind=normal", "--set=fill.seed=901"))
        self.assertIn("m_prev is rounded to f16 on the way to α", out)
        self.assertIn("LSE is wrong in 1 of 140 elements: m is rounded to f16 on the way to LSE", out)
        out = self.said_of("v2b_scalar", *run, ("const float lse = l > 0.0f ? sm[row] + __logf(l) : -INFINITY;",
                                                "const float lse = l > 0.0f ? sm[row] + __logf(l) + (row == 9 ? 1e-3f : 0.0f) "
                                                ": -INFINITY;"), words=("--set=fill.kind=normal", "--set=fill.seed=901"))
        self.assertIn("m_prev is rounded to f16 on the way to α", out)
        self.assertNotIn("m is rounded to f16 on the way to LSE", out)


if __name__ == "__main__":
    tap.main()
