#!/usr/bin/env python3
"""What is computed in a narrow type on the way is said as what it is, of both types, in whole runs of kernels."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python")]
import tap  # noqa: E402
from in_folder import InFolder  # noqa: E402

F16 = "__half2float(__float2half({}))".format
BF16 = "__bfloat162float(__float2bfloat16({}))".format


class Halves(InFolder):
    def said_of(self, kernel, shape, *edits):
        text = (ROOT / "kernels" / f"{kernel}.cu").read_text(encoding="utf-8")
        for old, new in edits:
            self.assertEqual(text.count(old), 1, old)
            text = text.replace(old, new)
        (self.folder / "k.cu").write_text(text, encoding="utf-8")
        for header in (ROOT / "kernels").glob("*.cuh"):
            (self.folder / header.name).write_bytes(header.read_bytes())
        return self.command("run", "k.cu", f"--shape={shape}")[1]

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


if __name__ == "__main__":
    tap.main()
