#!/usr/bin/env python3
"""Tiles whose rows belong to several heads (PackGQA): however they are packed, each row is recorded, judged and fed where
its head and query are."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python")]
import tap  # noqa: E402
from in_folder import BUILD, InFolder  # noqa: E402
from attnscope import safetensors  # noqa: E402
from attnscope.safetensors import File  # noqa: E402

KERNEL = ROOT / "tests/packed/decode_packed.cu"
SHAPE = ("dtype=f32", "batch=2", "heads=8", "kv_heads=2", "q_len=10", "kv_len=89", "causal=bottom-right")


class Packed(InFolder):
    def run_it(self, kernel, *words, shape=SHAPE):
        status, out, err = self.command("run", kernel, *words, *(f"--set=shape.{s}" for s in shape))
        return status, out + err

    def changed(self, *pairs):
        """The kernel with other texts in some places."""
        source = KERNEL.read_text(encoding="utf-8")
        for old, new in pairs:
            self.assertIn(old, source)
            source = source.replace(old, new)
        path = self.folder / "k.cu"
        path.write_text(source, encoding="utf-8")
        return path

    def clean(self, kernel, *words, shape=SHAPE):
        status, out = self.run_it(kernel, *words, shape=shape)
        self.assertEqual(status, 0, out)
        self.assertIn("CLEAN", out)
        self.assertNotIn("were not recorded", out)

    def channels(self, name):
        file = File(self.folder / name)
        self.addCleanup(file.close)
        return {key: file.raw(key, 0, safetensors.count(file.tensors[key]["shape"])) for key in file.tensors
                if key.startswith("channel.")}

    def test_groups(self):
        """Of 1, 3, 4 and 20 heads: what divides a tile's rows, and what does not."""
        for heads, kv_heads in ((2, 2), (6, 2), (8, 2), (20, 1)):
            with self.subTest(heads=heads, kv_heads=kv_heads):
                self.clean(KERNEL, shape=(*SHAPE, f"heads={heads}", f"kv_heads={kv_heads}", "alibi=yes", "sink=yes"))

    def test_sequences(self):
        for layout in ("BHLD", "BLHD", "THD"):
            with self.subTest(layout=layout):
                self.clean(KERNEL, shape=("dtype=f32", "heads=6", "kv_heads=2", f"layout={layout}", "q_lens=5,0,9",
                                          "kv_lens=70,10,20", "causal=bottom-right"))

    def test_query_fastest(self):
        """A tile holds so many queries of its first head, then those of the next; the same values stand in the trace."""
        by_query = self.changed(("first = blockIdx.x * BR;", "first = 0, tile = blockIdx.x * (BR / 4);"),
                                ("if (first >= q_len * group)", "if (tile >= q_len)"),
                                ("(first + r) % group, (first + r) / group", "r / 4, tile + r % 4"),
                                ("row = first + e / DIM, query = row / group, head = kv_head * group + row % group",
                                 "row = e / DIM, query = tile + row % 4, head = kv_head * group + row / 4"),
                                ("query[i] = (first + row[i]) / group", "query[i] = tile + row[i] % 4"),
                                ("(first + row[i]) % group", "row[i] / 4"),
                                ("min((first + BR - 1) / group, q_len - 1)", "min(tile + 3, q_len - 1)"))
        self.clean(KERNEL, "-o", "a.st")
        self.clean(by_query, "-o", "b.st")
        self.assertEqual(self.channels("a.st"), self.channels("b.st"))

    def test_every_fragment(self):
        """Rows of one head, said row by row, are recorded and fed as they are behind ASC_AT."""
        shape = ("heads=4", "kv_heads=2", "q_len=150", "kv_len=130", "causal=bottom-right", "head_dim=64")
        for name in ("ladder.cuh", "wmma.cuh"):
            (self.folder / name).write_text((ROOT / "kernels" / name).read_text(encoding="utf-8"), encoding="utf-8")
        for name in ("fp16_mma", "v2c_wmma"):
            with self.subTest(name=name):
                source = (ROOT / f"kernels/{name}.cu").read_text(encoding="utf-8")
                self.assertEqual(source.count("ASC_AT(batch, head, q_tile)"), 1)
                by_rows = self.folder / "k.cu"
                by_rows.write_text(source.replace("ASC_AT(batch, head, q_tile)",
                                                  "ASC_AT_ROWS(batch, r, BR, head, q_tile * BR + r)"), encoding="utf-8")
                self.clean(ROOT / f"kernels/{name}.cu", "-o", "a.st", shape=shape)
                self.clean(by_rows, "-o", "b.st", shape=shape)
                self.assertEqual(self.channels("a.st"), self.channels("b.st"))
                status, out = self.run_it(by_rows, "--isolate=p", shape=shape)
                self.assertEqual((status, "every stage is clean" in out), (0, True), out)

    def test_one_q_tile(self):
        """Of a packed tile with four heads one is recorded: nothing of the others is written, or counted as lost."""
        status, out = self.run_it(KERNEL, "--set=capture.heads=5", "--set=capture.q_tiles=1", "--isolate=v")
        self.assertEqual(status, 0, out)
        self.assertNotIn("were not recorded", out)

    def test_isolation(self):
        """What is fed reaches every row: a wrong stage of the group's second head heals where it is fed, and nowhere else."""
        wrong = self.changed(("sum = sum * d.scale", "sum = sum * (head[half] % group == 1 ? 0.5f : d.scale)"))
        status, out = self.run_it(wrong, "--isolate=s")
        self.assertEqual(status, 1, out)
        self.assertRegex(out, r"m +wrong upstream +ok +healed")
        for stage in ("q", "k", "v", "p", "u"):
            with self.subTest(stage=stage):
                status, out = self.run_it(KERNEL, f"--isolate={stage}")
                self.assertEqual(status, 0, out)
                self.assertIn("every stage is clean", out)
        status, out = self.run_it(self.changed(("d.k[k_first", "2 * d.k[k_first")), "--isolate=k")
        self.assertRegex(out, r"s +wrong upstream +ok +healed")

    def test_a_wrong_map_is_said(self):
        status, out = self.run_it(self.changed(("(first + r) % group, (first + r) / group",
                                                "(first + r) % group, 1000 + (first + r) / group")))
        self.assertNotEqual(status, 0)
        self.assertIn("12288 values of q were not recorded: column, row or kv tile out of range", out)

    def test_mistakes_are_explained(self):
        for name, sentence in tap.sampled((
                ("distance-by-row", "i being the diagonal of row r * 4 + g, g being the head's number in its group"),
                ("mask-by-row", "the last key that row r of the head sees is that of row n, n being r * 4 + g"),
                ("o-interleaved", "head h is stored where head h mod 4 * 2 + h / 4 belongs"),
                ("q-by-rows", "Q holds rows with their number and their head's exchanged"),
                ("sink-of-first-head", "the sink is that of head h - h mod 4 where it should be h"),
                ("slope-of-first-head", "ALiBi has the slope of head h - h mod 4 where it should be h")), 3):
            with self.subTest(name=name):
                done = subprocess.run([BUILD / "attnscope", "run", f"scenarios/bugs/packed-{name}.ini"], cwd=ROOT,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=100, check=False,
                                      env={**os.environ, "ATTNSCOPE_BACKEND": "cpu", "ATTNSCOPE_PROGRESS": "no"})
                self.assertIn(sentence, done.stdout)

    def test_a_tail_that_is_not_cut(self):
        _, out = self.run_it(self.changed(("        if (query[i] >= q_len)\n            continue;\n", "")))
        self.assertRegex(out, r"write to address \d+ bytes past the end of O .*\(k\.cu:\d+\)")

    def test_random_correct_runs(self):
        for seed, words in enumerate((("shape.page_size=none",), ("shape.sink=yes", "shape.alibi=yes"))):
            sequences = ["--sequences"] if "shape.page_size=none" in words else []
            self.clean_runs("--small", *sequences, "8", str(30 + seed),
                            "tests/packed/decode_packed.cu", "shape.dtype=f32", "shape.head_dim=64",
                            "shape.causal=bottom-right", *words)


if __name__ == "__main__":
    tap.main()
