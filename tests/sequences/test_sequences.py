#!/usr/bin/env python3
"""Sequences of their own lengths and keys in pages: however they lie in memory, the run is judged by the same values; what
a kernel does not take is refused by name; a trace of them is an input like any other."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python")]
import tap  # noqa: E402
from in_folder import InFolder  # noqa: E402
from attnscope import safetensors  # noqa: E402
from attnscope.safetensors import File  # noqa: E402

KERNEL = ROOT / "kernels/varlen_paged.cu"
HOSTED = Path(__file__).resolve().parent / "forward_varlen.cu"
Q_LENS, KV_LENS = (130, 1, 64, 0), (200, 64, 0, 7)
LENGTHS = (f"q_lens={','.join(map(str, Q_LENS))}", f"kv_lens={','.join(map(str, KV_LENS))}")


class Sequences(InFolder):
    def run_shape(self, kernel, *shape, words=()):
        return self.command("run", kernel, *words, "--set=shape.heads=2", *(f"--set=shape.{s}" for s in shape))

    def right(self, *words):
        status, out, err = self.command(*words)
        self.assertEqual((status, err), (0, ""), out)
        return out

    def test_how_rows_lie_changes_no_bit(self):
        base = (*LENGTHS, "kv_heads=1", "causal=bottom-right")
        self.assertEqual(self.run_shape(KERNEL, *base, words=("-o", "padded.st"))[0], 0)
        for layout in ("BHLD", "BLHD", "THD"):
            for pages in ("none", "1", "16", "48", "256"):
                with self.subTest(layout=layout, pages=pages):
                    status, out, err = self.run_shape(KERNEL, *base, f"layout={layout}", f"page_size={pages}",
                                                      words=("-o", "other.st"))
                    self.assertEqual((status, err), (0, ""), out)
                    self.assertIn("CLEAN", out)
                    self.assertNotIn("are recorded", out)
                    padded, other = (File(self.folder / name) for name in ("padded.st", "other.st"))
                    for name in ("channel.s", "channel.l", "channel.u", "output.lse"):
                        self.assertEqual(*(f.raw(name, 0, safetensors.count(f.tensors[name]["shape"])) for f in (padded, other)), name)
                    padded.close()
                    other.close()

    def test_rows_behind_a_sequence_are_nan_and_pages_are_shuffled(self):
        self.assertEqual(self.run_shape(KERNEL, *LENGTHS, "page_size=16", words=("-o", "t.st"))[0], 0)
        file = File(self.folder / "t.st")
        self.addCleanup(file.close)
        self.assertEqual(tuple(file.values("input.q_lens", 0, 4)), Q_LENS)
        self.assertEqual(tuple(file.values("input.kv_lens", 0, 4)), KV_LENS)
        table = [int(x) for x in file.values("input.page_table", 0, 4 * 13)]
        used = [table[b * 13 + i] for b in range(4) for i in range(-(-KV_LENS[b] // 16))]
        self.assertEqual(len(set(used)), len(used))
        self.assertNotEqual(used, sorted(used))
        behind = {table[b * 13 + i] for b in range(4) for i in range(-(-KV_LENS[b] // 16), 13)}
        self.assertFalse(behind & set(used))
        row = file.values("input.k", (1 * 2 * 200 + 64) * 64, 64)  # [batch 1][head 0][row 64]
        self.assertTrue(all(x != x for x in row))

    def test_a_trace_of_sequences_is_an_input(self):
        shape = (*LENGTHS, "layout=THD", "page_size=16")
        self.assertEqual(self.run_shape(KERNEL, *shape, words=("-o", "t.st"))[0], 0)
        self.right("run", KERNEL, "--inputs", "t.st", "-o", "again.st")
        self.assertIn("identical", self.right("diff", "t.st", "again.st", "--exact"))
        out = self.right("run", KERNEL, "--inputs", "t.st", "--set=inputs.batches=1:3", "--set=inputs.kv_rows=0:48", "--json")
        problem = json.loads(out)["problem"]
        self.assertEqual([problem[name] for name in ("batch", "q_len", "kv_len", "page_size")], [2, 130, 48, 16])

    def mistake(self, old, new, *shape):
        """What is found in a kernel with another text in a place."""
        source = KERNEL.read_text(encoding="utf-8")
        self.assertEqual(source.count(old), 1)
        (self.folder / "k.cu").write_text(source.replace(old, new), encoding="utf-8")
        (self.folder / "ladder.cuh").write_text((ROOT / "kernels/ladder.cuh").read_text(encoding="utf-8"), encoding="utf-8")
        status, out, _ = self.run_shape("k.cu", "q_lens=130,150,90", "kv_lens=100,120,90", *shape)
        self.assertNotEqual(status, 0, out)
        return out

    def test_queries_that_begin_where_keys_do(self):
        out = self.mistake("{p.q + q_first", "{p.q + of.cu_seqlens_k[batch] * p.q_strides.row", "layout=THD")
        self.assertIn("Q comes from the wrong place in memory: a sequence is read from cu_seqlens_k[batch] on, where that "
                      "of the keys begins", out)

    def test_a_page_table_that_is_read_with_another_pitch(self):
        out = self.mistake("of.page_table + batch * of.table_pages", "of.page_table + batch", "page_size=16")
        self.assertIn("the page table is read at entry batch + i; its rows have 8 entries", out)
        out = self.mistake("batch * of.table_pages", "batch * ((kv_len - 1) / of.page_size + 1)", "page_size=16")
        self.assertIn("K comes from the wrong place in memory: the page table is read at entry batch * n + i, n being the pages "
                      "of the sequence itself (6 of sequence 2); a row of the table has 8 entries", out)
        self.assertRegex(out, r"NaN begins at K b2 h0 q0 k0 .*: it reads memory that holds no row of any sequence")

    def test_masks_by_the_first_sequence(self):
        out = self.mistake("kv_len = of.kv_lens ? of.kv_lens[batch]", "kv_len = of.kv_lens ? of.kv_lens[0]", "page_size=16")
        self.assertIn("the mask goes by other lengths than the sequence's own: the kv_len of sequence 0", out)

    def test_diagonals_by_other_differences(self):
        for corner, said in (("q_len - kv_len", "its diagonal by q_len - kv_len, in the place of kv_len - q_len"),
                             ("max(kv_len - q_len, 0)", "its diagonal by kv_len - q_len where that is above 0, and by 0 else")):
            out = self.mistake("ASC_CAUSAL_TOP_LEFT ? 0 : kv_len - q_len", f"ASC_CAUSAL_TOP_LEFT ? 0 : {corner}", "causal=bottom-right")
            self.assertIn(said, out)

    def test_a_last_page_that_is_taken_whole(self):
        length = "of.kv_lens ? of.kv_lens[batch] : p.kv_len"
        out = self.mistake(f"kv_len = {length}", f"kv_len = (({length}) + of.page_size - 1) / of.page_size * of.page_size", "page_size=16")
        self.assertIn("the mask goes by other lengths than the sequence's own: the end of its last page, kv_len rounded up to a "
                      "multiple of 16", out)
        self.assertIn("NaN begins at keys beyond the last one, and is first met at l b0 h0 q0 k1 [0, 0]: keys beyond the last one "
                      "are not masked, and their weights are NaN or infinite", out)

    def test_tiles_left_out_by_another_length(self):
        """A loop that ends elsewhere: the rule that leaves out these tiles and no other is said, and no other rule."""
        for end, words in (("of.kv_lens[0]", "the loop ends with the keys of sequence 0"),
                           ("of.kv_lens[max(batch - 1, 0)]", "the loop ends with the keys of the sequence before"),
                           ("kv_len / BC * BC", "the number of tiles is rounded down, without the one that the last row's keys end in, "
                                                "or the last tile that a q tile sees is missing")):
            with self.subTest(end=end):
                out = self.mistake("min(kv_len, last_row + reach + 1)", f"min(min(kv_len, {end}), last_row + reach + 1)",
                                   "kv_lens=70,200,130")
                self.assertRegex(out, f"never visited; {words}\n")

    def test_isolation(self):
        out = self.right("run", KERNEL, "--isolate=s", *(f"--set=shape.{s}" for s in (*LENGTHS, "page_size=16")))
        self.assertIn("every stage is clean", out)

    def test_host_code(self):
        status, out, err = self.run_shape(HOSTED, *LENGTHS, "causal=bottom-right")
        self.assertEqual((status, err), (0, ""), out)
        status, out, err = self.run_shape(HOSTED, *LENGTHS, "page_size=16")
        self.assertEqual((status, out), (2, ""))
        self.assertIn("its host code does not take page_table", err)

    def test_refusals(self):
        plain = ROOT / "kernels/v2b_scalar.cu"
        for kernel, shape, expected in (
                (plain, "q_lens=5,6", "a number of queries for each sequence (shape.q_lens, kernel.sequences)"),
                (plain, "kv_lens=5", "a number of keys for each sequence (shape.kv_lens, kernel.sequences)"),
                (plain, "page_size=16", "pages (shape.page_size, kernel.sequences)"),
                (plain, "layout=THD", "accepts the layout BHLD and BLHD, not THD"),
                (KERNEL, "q_lens=0,0", "expected a query in one of the sequences"),
                (KERNEL, "q_lens=5,x", "expected none, or whole numbers"),
                (KERNEL, "page_size=0", "expected none, or a whole number"),
        ):
            with self.subTest(shape=shape):
                status, out, err = self.run_shape(kernel, shape)
                self.assertEqual((status, out, err.count("\n")), (2, "", 1), err)
                self.assertIn(expected, err)
        for shape, expected in ((("q_lens=5,6", "batch=3"), "expected a length for each of 3 sequences, found 2"),
                                (("q_lens=5,6", "kv_lens=7"), "expected a length for each of 2 sequences, found 1"),
                                (("q_lens=5,6", "q_len=5"), "expected lengths up to q_len (5), found 6")):
            status, out, err = self.run_shape(KERNEL, *shape)
            self.assertEqual((status, out), (2, ""))
            self.assertIn(expected, err)

    def test_random_correct_runs(self):
        self.clean_runs("--sequences", "15", "7", "kernels/varlen_paged.cu")


if __name__ == "__main__":
    tap.main()
