#!/usr/bin/env python3
"""Masks and scores by formula: right runs are clean, isolated, bounded and replayed too; a mask of a file is the same as that
of its formula; each mistake is said as what it is; what can not be is refused in one line."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python")]
import tap  # noqa: E402
from in_folder import InFolder  # noqa: E402

KERNEL = ROOT / "kernels/flex.cu"
SHAPE = ("--shape=2,4,100,200,64", "--set=shape.kv_heads=2")
MASK = "--set=shape.mask=j % (h + 2) != 0 || j == i"
SAID = {
    "mask-of-kv-head": "the mask has h / 2 in the place of h",
    "mask-of-batch-0": "the mask has 0 in the place of b",
    "mask-transposed": "the mask has j in the place of i and i in the place of j",
    "mask-by-row-of-tile": "the mask has i % 64 in the place of i",
    "mask-inverted": "the mask is inverted",
    "mask-not-read": "the mask is not applied",
    "tile-by-first-key": "kv tiles that rows should see were never visited",
    "score-mod-left-out": "the formula of scores is not applied",
    "score-mod-before-scale": "the formula of scores is applied to s times 8 (1 / softmax scale)",
    "score-mod-of-kv-head": "the formula of scores has h / 2 in the place of h",
    "score-mod-by-key-of-tile": "the formula of scores has j % 64 in the place of j",
    "score-mod-signed": "scores become s - 0.1 * (i - j), in the place of s - 0.1 * abs(i - j)",
}


class Masks(InFolder):
    def run_kernel(self, *words):
        return self.command("run", KERNEL, *SHAPE, *words)

    def right(self, result):
        status, out, err = result
        self.assertEqual((status, err), (0, ""), out)
        return out

    def test_isolated_bounded_and_replayed(self):
        mod = "--set=shape.score_mod=s - 0.1 * abs(i - j)"
        for stage in ("m", "u", "o"):
            self.assertIn("every stage is clean", self.right(self.run_kernel(MASK, mod, "--isolate", stage)))
        self.right(self.run_kernel(MASK, mod, "--set=capture.mem=2MiB"))
        self.right(self.run_kernel(MASK, mod, "-o", "a.st"))
        self.assertIn("CLEAN", self.right(self.command("run", "a.st")))
        self.right(self.command("run", KERNEL, "--inputs", "a.st", "-o", "b.st"))
        self.assertIn("identical", self.right(self.command("diff", "a.st", "b.st", "--exact")))

    def test_a_mask_of_a_file_is_explained_too(self):
        """Without a formula there is what the kernel reads: which row, key, head or sequence."""
        self.right(self.run_kernel(MASK, "-o", "a.st"))
        for old, new, said in (("batch, head);\n    ASC_AT", "batch, head / p.group);\n    ASC_AT", "h / 2 in the place of h"),
                               ("mask[i * of.stride.row + j]", "mask[i * (of.stride.row - 8) + j]", None),
                               ("mask[i * of.stride.row + j]", "mask[(i * of.stride.row + j) / 8] >> (i * of.stride.row + j) % 8 & 1",
                                "the mask is read as bits, eight keys in a byte: it has a byte for each key")):
            self.kernel_with(old, new)
            status, out, err = self.command("run", "k.cu", "--inputs", "a.st")
            self.assertEqual((status, err), (1, ""), out)
            self.assertIn(said or "S is wrong in", out)

    def kernel_with(self, old, new):
        text = KERNEL.read_text(encoding="utf-8")
        self.assertEqual(text.count(old), 1, old)
        (self.folder / "k.cu").write_text(text.replace(old, new), encoding="utf-8")
        (self.folder / "ladder.cuh").write_bytes((ROOT / "kernels/ladder.cuh").read_bytes())

    def test_a_warp_may_leave_out_what_its_rows_do_not_see(self):
        """Its rows go on with the state of before; one that leaves out what another row of it sees is found."""
        rows = "        for (int r = 0; r < ROWS_PER_WARP; r++) {\n            const int row = warp * ROWS_PER_WARP + r, i = q_tile * BR + row;\n            float s[2]"
        seen = """        bool mine = false;
        for (int i = lane; i < ROWS_PER_WARP * BC; i += 32)
            mine = mine || sees(p, of, mask, q_tile * BR + warp * ROWS_PER_WARP + i / BC, kt * BC + i % BC);
"""
        for vote, clean in (("__any_sync(0xffffffffu, mine)", True), ("__shfl_sync(0xffffffffu, mine, 0)", False)):
            self.kernel_with("#pragma unroll\n" + rows, seen + rows.replace("r < ROWS_PER_WARP", f"r < ROWS_PER_WARP * {vote}"))
            for mask in ("(i / 8 + j / 48) % 3 != 1", "i / 40 == j / 40"):
                status, out, err = self.command("run", "k.cu", "--shape=1,2,200,200,64", f"--set=shape.mask={mask}")
                self.assertEqual((status, err), (0 if clean else 1, ""), out)
                self.assertIn("every recorded stage is within its bound" if clean else "S was never written in", out)

    def test_mistakes_are_said(self):
        for name, sentence in tap.sampled(SAID.items(), 4):
            with self.subTest(name=name):
                status, out, err = self.command("run", ROOT / f"scenarios/bugs/flex-{name}.ini")
                self.assertEqual(err, "")
                self.assertIn(sentence, out)
                self.assertIn("found, as expected", out)

    def test_what_can_not_be(self):
        for setting, expected in (("shape.mask=j <= k", "column 6: expected i, j, h, b, q_len, kv_len, abs, min or max, found `k`"),
                                  ("shape.mask=i % (j - 5)", "shape.mask"),
                                  ("shape.mask=i <", "found the end"),
                                  ("shape.mask=i < 0.5", "expected a whole number"),
                                  ("shape.score_mod=s % 2", "% takes whole numbers"),
                                  ("shape.score_mod=s + 1", "this formula of the score is none of those in its code")):
            with self.subTest(setting=setting):
                status, out, err = self.run_kernel(f"--set={setting}")
                self.assertNotEqual(status, 0)
                self.assertEqual((out, err.count("\n")), ("", 1), out + err)
                self.assertIn(expected, err)

    def test_kernels_without_masks_decline_them(self):
        status, _, err = self.command("run", ROOT / "kernels/v2b_scalar.cu", *SHAPE, MASK)
        self.assertNotEqual(status, 0)
        self.assertIn("a mask of its own (shape.mask, kernel.biases)", err)

    def test_random_correct_runs(self):
        self.clean_runs("--small", "--masks", "16", "8", "kernels/flex.cu")


if __name__ == "__main__":
    tap.main()
