#!/usr/bin/env python3
"""Kv tiles that are dealt to splits as a scheduler's list says: right runs are clean, isolated, bounded and replayed too; a
trace keeps the map and its numbers are checked; each mistake is said as what it is."""

import struct
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python")]
import tap  # noqa: E402
from in_folder import InFolder  # noqa: E402
from attnscope.safetensors import File  # noqa: E402

KERNEL = ROOT / "kernels/work_list.cu"
SHAPE = ("heads=2", "q_len=40", "kv_lens=500,900,130", "causal=bottom-right")
Q_TILES, KV_TILES, BLOCKS = 3, 15, 12
SAID = {
    "two-splits-at-most": "the merge takes 2 splits at most: those behind them are left out",
    "last-split-left-out": "the last split of each q tile is left out of the merge",
    "weight-of-the-split-before": "the splits' weights are those of the previous split of the q tile, where there is one",
    "slot-of-another-item": "the splits' outputs are those of the previous work item, counted q tile by q tile",
    "state-not-reset": "m goes on from what the work item before has left: the state is not reset between them",
    "item-begins-late": "kv tiles that rows should see were never visited",
    "item-begins-early": "is recorded by two blocks, first in kv tile",
    "empty-split-counted": "a split without any key counts, as if its LSE were 0",
}


class Splits(InFolder):
    def run_kernel(self, kernel, *words):
        return self.command("run", kernel, *(f"--set=shape.{s}" for s in SHAPE), *words)

    def right(self, result):
        status, out, err = result
        self.assertEqual((status, err), (0, ""), out)
        return out

    def changed(self, *edits):
        text = KERNEL.read_text(encoding="utf-8")
        for old, new in edits:
            self.assertEqual(text.count(old), 1, old)
            text = text.replace(old, new)
        (self.folder / "k.cu").write_text(text, encoding="utf-8")
        (self.folder / "ladder.cuh").write_text((ROOT / "kernels/ladder.cuh").read_text(encoding="utf-8"), encoding="utf-8")
        return "k.cu"

    def states(self, trace):
        """Of each (batch, head, q tile) the states of its kv tiles and their number."""
        file = File(trace)
        row = KV_TILES + 1
        self.assertEqual(file.tensors["state"]["shape"], [3, 2, Q_TILES, row])
        all_of_them = [int(x) for x in file.values("state", 0, 3 * 2 * Q_TILES * row)]
        file.close()
        return [(all_of_them[i:i + KV_TILES], all_of_them[i + KV_TILES]) for i in range(0, len(all_of_them), row)]

    def test_stream_k(self):
        self.assertIn("splits 12 map", self.right(self.run_kernel(KERNEL, "-o", "t.st")))
        cut = 0
        for tiles, n in self.states(self.folder / "t.st"):
            dealt = [state for state in tiles if state >= 0]
            self.assertEqual(dealt, sorted(dealt))
            self.assertEqual(sorted(set(dealt)), list(range(n)))
            self.assertEqual(set(tiles[len(dealt):]), {-1} if len(dealt) < KV_TILES else set())
            cut += n - 1
        self.assertEqual(cut, 9)  # of the 11 borders between 12 blocks two lie between q tiles

    def test_per_batch(self):
        self.right(self.run_kernel(KERNEL, "-D", "PER_BATCH=1", "-o", "t.st"))
        self.assertEqual([n for _, n in self.states(self.folder / "t.st")], [4] * 12 + [2] * 6)

    def test_isolated_bounded_and_replayed(self):
        for stage in ("m", "u", "o"):
            self.assertIn("every stage is clean", self.right(self.run_kernel(KERNEL, "--isolate", stage)))
        self.right(self.run_kernel(KERNEL, "--set=capture.mem=2MiB"))
        self.right(self.run_kernel(KERNEL, "-o", "a.st"))
        self.right(self.run_kernel(KERNEL, "-o", "b.st"))
        self.assertIn("identical", self.right(self.command("diff", "a.st", "b.st", "--exact")))
        self.assertIn("CLEAN", self.right(self.command("run", "a.st")))
        self.right(self.command("run", KERNEL, "--inputs", "a.st"))

    def test_other_splits_are_not_compared(self):
        self.right(self.run_kernel(KERNEL, "-o", "a.st"))
        other = self.changed(("int left = piece;", "int left = piece - 1;"))
        self.right(self.run_kernel(other, "-o", "b.st"))
        status, _, err = self.command("diff", "a.st", "b.st")
        self.assertEqual((status, err.count("\n")), (2, 1))
        self.assertIn("its kv tiles are dealt to other splits", err)

    def test_a_hostile_map(self):
        self.right(self.run_kernel(KERNEL, "-o", "t.st"))
        bytes_of = bytearray((self.folder / "t.st").read_bytes())
        header = struct.unpack("<Q", bytes_of[:8])[0]
        file = File(self.folder / "t.st")
        begin = 8 + header + file.tensors["state"]["data_offsets"][0]
        file.close()
        for at, value in ((0, BLOCKS), (3, -2), (KV_TILES, BLOCKS + 1), (7, 1 << 30)):
            broken = bytearray(bytes_of)
            broken[begin + 4 * at:begin + 4 * at + 4] = struct.pack("<i", value)
            (self.folder / "broken.st").write_bytes(broken)
            status, out, err = self.command("run", "broken.st")
            self.assertEqual((status, out, err.count("\n")), (2, "", 1))
            self.assertIn(f"tensor 'state' holds {value}; expected -1 to 11", err)

    def test_mistakes_are_said(self):
        for name, sentence in tap.sampled(SAID.items(), 4):
            with self.subTest(name=name):
                status, out, err = self.command("run", ROOT / f"scenarios/bugs/work-{name}.ini")
                self.assertEqual(err, "")
                self.assertIn(sentence, out)
                self.assertIn("found, as expected", out)

    def test_weights_of_another_row(self):
        """All but the first split's, which who merges has in registers."""
        text, old = (ROOT / "kernels/split_kv.cu").read_text(encoding="utf-8"), "merged[i] += weight * split_o"
        self.assertEqual(text.count(old), 1)
        of_pair = "(split ? __expf(split_lse[split - row % 2 * p.splits] - base) : weight)"
        (self.folder / "k.cu").write_text(text.replace(old, f"merged[i] += {of_pair} * split_o"), encoding="utf-8")
        (self.folder / "ladder.cuh").write_bytes((ROOT / "kernels/ladder.cuh").read_bytes())
        _, out, _ = self.command("run", "k.cu", "--shape=1,1,32,256,64")
        self.assertIn("the splits' weights, divided by the sum of row r, are, but for the first split, those of row r - 1 "
                      "where row r is merged in odd rows", out)

    def said_of(self, kernel, shape, *edits):
        text = (ROOT / "kernels" / kernel).read_text(encoding="utf-8")
        for old, new in edits:
            self.assertEqual(text.count(old), 1, old)
            text = text.replace(old, new)
        (self.folder / "k.cu").write_text(text, encoding="utf-8")
        for header in ("ladder.cuh", "hopper.cuh"):
            (self.folder / header).write_bytes((ROOT / "kernels" / header).read_bytes())
        return self.command("run", "k.cu", f"--shape={shape}")[1]

    def test_merged_in_a_narrow_type(self):
        output, weight = "split_o[split * D + lane + 32 * i]", "__expf(split_lse[split] - base)"
        step, bf16 = f"merged[i] += weight * {output}", "__bfloat162float(__float2bfloat16({}))".format
        for edits, culprits, said in (
            ([(step, "merged[i] = " + bf16(f"merged[i] + weight * {output}"))], ["O"],
             "the output so far is rounded to bf16 at every step"),
            ([("sum += weight", "sum = " + bf16("sum + weight"))], ["O", "LSE"],
             "the sum of weights so far is rounded to bf16 at every step"),
            ([(weight, bf16(weight))], ["O", "LSE"], "each split's weight is rounded to bf16"),
            ([(weight, bf16(weight)), (step, "merged[i] = " + bf16(f"merged[i] + weight * {bf16(output)}"))], ["O", "LSE"],
             "each split's output, its weight and the output so far are rounded to bf16 at every step"),
        ):
            with self.subTest(said=said):
                out = self.said_of("split_kv.cu", "1,2,40,300,64", *edits)
                self.assertIn(f"where splits are merged {said}", out)
                for culprit in culprits:
                    self.assertIn(f"{culprit} is wrong", out)
                self.assertNotIn("no known cause", out)

    def test_m_and_l_are_exchanged(self):
        """Of the splits of the other block, and of all."""
        sent = "store_there(in_block(base + ends(2 + warpgroup) + r * 64, peer), m[r], l[r], got_there)"
        out = self.said_of("hopper_small.cu", "1,2,64,390,64", (sent, sent.replace("m[r], l[r]", "l[r], m[r]")))
        words = "m and l of a split are exchanged, each taken for the other, where splits are merged"
        self.assertIn(f"{words}, but for the splits i with i / 2 = c / 32 in column c", out)
        self.assertIn(f"{words}, but for the first 2 splits", out)

    def test_weights_lack_the_scale(self):
        out = self.said_of("hopper_small.cu", "1,2,64,390,64",
                           ("exp2_fast((all[i].x - frame) * p.scale_log2)", "exp2_fast(all[i].x - frame)"))
        self.assertIn("splits are weighed by exp(5.54518 (1 / (softmax scale · log2(e))) m + ln l)", out)
        self.assertIn("; the largest m is taken off with that factor, and added without it", out)

    def test_weights_of_another_split(self):
        text, old = (ROOT / "kernels/split_kv.cu").read_text(encoding="utf-8"), "__expf(split_lse[split] - base)"
        self.assertEqual(text.count(old), 1)
        (self.folder / "k.cu").write_text(text.replace(old, "__expf(split_lse[split ^ 1] - base)"), encoding="utf-8")
        (self.folder / "ladder.cuh").write_bytes((ROOT / "kernels/ladder.cuh").read_bytes())
        _, out, _ = self.command("run", "k.cu", "--shape=1,1,16,256,64")
        self.assertIn("the weight of split i ^ 1 meets the output of split i where splits are merged", out)

    def test_what_no_plan_can_be(self):
        deal = "run.deal(item.batch, item.head, item.q_tile, static_cast<int>(state), item.first, item.end);"
        for edits, expected in (
                ((("list.items.push_back({b, h, q, first, end});", "list.items.push_back({b, h, q, std::max(first - 1, 0), end});"),),
                 "run.deal(): kv tile 4 of batch 0, head 0, q tile 1 is dealt to two states, 0 and 1: two work items have it"),
                (((deal, deal.replace("item.end", "item.end + 99")),),
                 "run.deal() is given a place, a kv tile or a state that does not exist"),
        ):
            status, out, err = self.run_kernel(self.changed(*edits))
            self.assertNotEqual(status, 0)
            self.assertIn(expected, out + err)
        mapped = (ROOT / "tests/terms/mapped.cu").read_text(encoding="utf-8")
        (self.folder / "attention.h").write_bytes((ROOT / "tests/terms/attention.h").read_bytes())
        for old, new, expected in (
                ("    kernel.state = ", "    [[maybe_unused]] auto none = ", "plans ASC_DEAL_MAP: expected kernel.state"),
                ("return STATE(", "return 4 + STATE(", "mapped: kernel.state gives kv tile 0 of batch 0, head 0, q tile 0 to "
                                                      "state 4: expected 0..3")):
            self.assertEqual(mapped.count(old), 1)
            (self.folder / "m.cu").write_text(mapped.replace(old, new), encoding="utf-8")
            status, out, err = self.command("run", "m.cu", "--shape=1,1,16,64,64")
            self.assertNotEqual(status, 0)
            self.assertIn(expected, out + err)

    def test_random_correct_runs(self):
        for define in (0, 1):
            self.clean_runs("--sequences", "8" if tap.takes_all() else "4", "7", "kernels/work_list.cu",
                            f"scenario.define=PER_BATCH={define}")


if __name__ == "__main__":
    tap.main()
