#!/usr/bin/env python3
"""Scales of codes, of blocks of any size: a scale for each page is one for so many rows, one for each token one for one
row; what they are made of decides the codes, not how rows lie. What does not combine is refused by name."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python")]
import tap  # noqa: E402
from in_folder import InFolder  # noqa: E402
from attnscope.safetensors import File  # noqa: E402

KERNEL = ROOT / "kernels/block_scales.cu"
BASE = ("shape.batch=2", "shape.heads=4", "shape.kv_heads=2", "shape.q_len=33", "shape.kv_len=70")


class Scales(InFolder):
    def run_with(self, *settings, kernel=KERNEL, words=()):
        return self.command("run", kernel, *words, *(f"--set={s}" for s in (*BASE, *settings)))

    def right(self, *settings, name="t.st"):
        status, out, err = self.run_with(*settings, words=("-o", name))
        self.assertEqual((status, err), (0, ""), out)
        self.assertIn("CLEAN", out)
        file = File(self.folder / name)
        self.addCleanup(file.close)
        return file

    @staticmethod
    def values(file, name):
        shape, n = file.tensors[name]["shape"], 1
        for length in shape:
            n *= length
        return shape, list(file.values(name, 0, n))

    def test_a_scale_is_the_largest_of_its_block(self):
        for scales, rows, dims in (("dims:16", 70, 16), ("rows:1,dims:24", 1, 24), ("rows:16", 16, 64), ("rows:32,dims:200", 32, 64)):
            with self.subTest(scales=scales):
                file = self.right(f"quant.scales={scales}")
                shape, got = self.values(file, "input.k_scale")
                _, given = self.values(file, "input.k_given")
                groups, parts = -(-70 // rows), -(-64 // dims)
                self.assertEqual(shape, [2, 2, groups] + ([parts] if "dims" in scales else []))
                for place in range(len(got)):
                    head, group, part = place // parts // groups, place // parts % groups, place % parts
                    block = [abs(given[(head * 70 + row) * 64 + d]) for row in range(group * rows, min(70, group * rows + rows))
                             for d in range(part * dims, min(64, part * dims + dims))]
                    self.assertAlmostEqual(got[place] * 448, max(block), delta=1e-6 * max(block))

    def test_pages_change_neither_codes_nor_scales(self):
        for scales in ("rows:16", "rows:1,dims:32", "rows:16,dims:16"):
            with self.subTest(scales=scales):
                plain = self.right(f"quant.scales={scales}", name="plain.st")
                paged = self.right(f"quant.scales={scales}", "shape.page_size=16", name="paged.st")
                for name in ("input.k_scale", "input.v_scale", "channel.s", "output.lse"):
                    self.assertEqual(self.values(plain, name), self.values(paged, name), name)

    def test_a_trace_of_blocks_is_an_input(self):
        self.right("quant.scales=rows:16,dims:24", "shape.k_dtype=e5m2", name="first.st").close()
        status, out, err = self.command("run", KERNEL, "--inputs", "first.st", "-o", "again.st")
        self.assertEqual((status, err), (0, ""), out)
        first, again = (File(self.folder / name) for name in ("first.st", "again.st"))
        for name in ("input.k_scale", "input.v_scale", "output.lse"):
            self.assertEqual(self.values(first, name), self.values(again, name))
        self.assertEqual(json.loads(again.texts["attnscope.problem"])["scale_dims"], 24)
        first.close()
        again.close()

    def test_views_and_studies_know_them(self):
        self.right("quant.scales=rows:16,dims:24").close()
        for words in (("show", "t.st", "--view", "formats"), ("show", "t.st", "--view", "whatif")):
            status, out, err = self.command(*words)
            self.assertEqual((status, err), (0, ""), out)
            self.assertIn("d24" if "formats" in words else "rows:16,dims:24", out)

    def test_smoothed_keys_lose_their_mean_and_move_no_weight(self):
        codes = ("shape.dtype=f16", "shape.k_dtype=s8", "quant.scales=rows:16")
        plain, smooth = self.right(*codes, name="p.st"), self.right(*codes, "quant.smooth_k=yes", name="s.st")
        (_, before), (_, after) = self.values(plain, "input.k_given"), self.values(smooth, "input.k_given")
        for head in range(2 * 2):
            for d in range(0, 64, 21):
                column = [(before[(head * 70 + row) * 64 + d], after[(head * 70 + row) * 64 + d]) for row in range(70)]
                mean = sum(x for x, _ in column) / 70
                self.assertTrue(all(abs(x - mean - y) < 2e-3 for x, y in column))
        (_, o), (_, smoothed_o) = self.values(plain, "output.o"), self.values(smooth, "output.o")
        self.assertLess(max(abs(x - y) for x, y in zip(o, smoothed_o)), 0.05)
        self.assertNotEqual(*(self.values(file, "output.lse") for file in (plain, smooth)))

    def test_what_does_not_combine_is_refused(self):
        for kernel, settings, expected in (
                (ROOT / "kernels/fp8_e4m3.cu", ("quant.scales=dims:16",), "does not accept scales of parts of a row"),
                (KERNEL, ("shape.v_dtype=e4m3", "shape.k_dtype=f16", "quant.smooth_k=yes"), "expected K to be of codes"),
                (KERNEL, ("quant.scales=dims:0",), "expected tensor, head, rows:N, dims:M or rows:N,dims:M"),
                (KERNEL, ("quant.scales=dims:4,rows:4",), "expected tensor, head, rows:N, dims:M or rows:N,dims:M")):
            with self.subTest(expected=expected):
                status, out, err = self.run_with(*settings, kernel=kernel)
                self.assertEqual((status, out, err.count("\n")), (2, "", 1), err)
                self.assertIn(expected, err)

    def test_random_correct_runs(self):
        for dtype, k_dtype in (("f16", "e4m3"), ("e5m2", "u8"), ("s8", "s8")):
            self.clean_runs("--small", "--sequences", "--blocks", "8", "11", "kernels/block_scales.cu", f"shape.dtype={dtype}",
                            f"shape.k_dtype={k_dtype}")


if __name__ == "__main__":
    tap.main()
