#!/usr/bin/env python3
"""Kernels with sinks, biases, split KV and paged keys, as they are built and run: right ones are clean, in random runs and
isolated too; each mistake is found at its stage."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BUILD", ROOT / "build")).resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

RUNS = 6
TERMS = ("shape.alibi=yes", "shape.bias=full", "shape.bias=per-batch", "shape.bias=shared")


def run(*arguments):
    done = subprocess.run([BUILD / "attnscope", *arguments], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=100, check=False)
    return done.returncode, done.stdout


def settings(*pairs):
    return [word for pair in pairs for word in ("--set", pair)]


class Terms(unittest.TestCase):
    def random_runs(self, kernel, seed, *pairs):
        done = subprocess.run([BUILD / "tests/random_runs", str(RUNS), str(seed), f"tests/terms/{kernel}.cu",
                               "shape.head_dim=64", "shape.dtype=f16", *pairs], cwd=ROOT, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, text=True, timeout=200, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_sinks(self):
        for i, kernel in enumerate(("sink_start", "sink_end", "split", "split_start")):
            self.random_runs(kernel, i, "shape.sink=yes", "fill.sink.sigma=4", TERMS[i])

    def test_windows(self):
        for i, kernel in enumerate(("sink_end", "split", "split_start")):
            self.random_runs(kernel, 10 + i, "shape.sink=yes", "shape.window=20,3", "shape.causal=none", TERMS[i])

    def test_pages(self):
        self.random_runs("paged", 20, "shape.alibi=yes", "shape.bias=per-head")
        self.random_runs("paged", 21, "shape.kv_len=200")

    def test_dealt_round_robin(self):
        """Of blocks and of warps; kv tiles no multiple of the states, fewer than them, states without a key."""
        self.random_runs("dealt", 40, "shape.sink=yes", "shape.alibi=yes")
        self.random_runs("dealt", 41, "shape.window=20,3", "shape.causal=none")
        self.random_runs("warps", 42, "shape.layout=BHLD")

    def test_dealt_by_a_map(self):
        self.random_runs("mapped", 43, "shape.sink=yes", "shape.alibi=yes")
        self.random_runs("mapped", 44, "shape.window=20,3", "shape.causal=none")

    def test_dealt_shapes(self):
        for kernel in ("dealt", "warps", "mapped"):
            for shape in ("1,1,40,16,64", "1,1,40,65,64", "1,1,200,50,64"):
                for pair in ("shape.causal=none", "shape.causal=bottom-right", "fill.q.kind=large-logits"):
                    status, text = run("run", f"tests/terms/{kernel}.cu", "--shape", shape, *settings(pair))
                    self.assertEqual((status, "CLEAN" in text), (0, True), text)

    def test_dealt_otherwise_than_declared(self):
        """Ranges where it is a round robin: there is something to find, so what is declared counts."""
        status, text = run("run", "tests/terms/warps.cu", "-D", "DEAL=ASC_DEAL_RANGES", "--shape", "1,1,40,130,64")
        self.assertEqual((status, "FAIL" in text), (1, True), text)

    def test_flash_attention_1(self):
        """Its two recurrences, both and each alone: clean as declared, isolated too, wrong where neither is."""
        self.random_runs("fa1", 50, "shape.layout=BHLD")
        for define in ((), ("-D", "U_TILE=0"), ("-D", "P_TILE=0")):
            for shape in ("1,1,40,100,64", "1,1,100,50,64"):
                for pair in ("shape.causal=none", "shape.causal=bottom-right", "fill.q.kind=large-logits"):
                    status, text = run("run", "tests/terms/fa1.cu", *define, "--shape", shape, *settings(pair))
                    self.assertEqual((status, "CLEAN" in text), (0, True), text)
        for stage in ("m", "l", "u"):
            status, text = run("run", "tests/terms/fa1.cu", "--shape", "1,1,60,50,64", "--isolate", stage,
                               *settings("shape.causal=bottom-right"))
            self.assertEqual((status, "CLEAN" in text, "stays wrong" in text), (0, True, False), text)
        status, text = run("run", "tests/terms/fa1.cu", "-D", "DECLARED=0", "--shape", "1,1,40,100,64")
        self.assertEqual(status, 1, text)

    def test_mistakes_of_flash_attention_1(self):
        for mistake, define, stage in (("OLD_O_NOT_RESCALED", (), "u"), ("DIVIDED_BY_PREVIOUS_L", (), "u"),
                                       ("MAX_NOT_CARRIED", (), "m"), ("PV_NOT_RESCALED", ("-D", "U_TILE=0"), "u")):
            status, text = run("run", "tests/terms/fa1.cu", *define, "-D", f"MISTAKE={mistake}", "--shape",
                               "1,1,40,100,64")
            self.assertEqual(status, 1, text)
            found = next(line for line in text.splitlines() if line.startswith("local")).split()[1:]
            stages = ("q", "k", "v", "s", "m", "alpha", "p", "l", "u", "o", "lse")
            self.assertEqual([name for name, mark in zip(stages, found) if mark == "bad"], [stage], text)
            self.assertIn("is the first bad stage, from batch 0, head 0, q tile 0, kv tile 1 on", text)
        status, text = run("run", "tests/terms/fa1.cu", "-D", "MISTAKE=UNGUARDED", "--shape", "1,1,100,50,64",
                           *settings("shape.causal=bottom-right"))
        self.assertIn("NaN begins at U", text)
        self.assertIn("0 is divided by 0", text)

    def test_without_terms(self):
        """None of it: what takes sinks and biases does without."""
        self.random_runs("split", 30)
        self.random_runs("sink_start", 31)

    def test_isolated(self):
        """The fed values are those of these very terms: what follows them is right."""
        for kernel in ("split_start", "sink_end", "dealt"):
            for stage in ("softmax", "o"):
                terms = settings("shape.sink=yes", "shape.alibi=yes", "shape.bias=per-head", "shape.causal=bottom-right")
                status, text = run("run", f"tests/terms/{kernel}.cu", "--shape", "1,2,50,130,64", "--isolate", stage,
                                   *terms)
                self.assertEqual((status, "CLEAN" in text), (0, True), text)
                self.assertNotIn("could not be fed", text)
        for stage in ("softmax", "o"):
            status, text = run("run", "tests/terms/warps.cu", "--shape", "1,2,50,130,64", "--isolate", stage)
            self.assertEqual((status, "CLEAN" in text), (0, True), text)
            self.assertNotIn("could not be fed", text)

    def test_saved(self):
        """A saved trace holds the terms, and is judged as the run was."""
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/terms.safetensors"
            terms = settings("shape.sink=yes", "shape.alibi=yes", "shape.bias=per-head")
            status, text = run("run", "tests/terms/split.cu", "--shape", "1,2,40,100,64", "--save", path, *terms)
            self.assertEqual(status, 0, text)
            self.assertIn("(1,2,40,100,64) f16 sink alibi attention bias splits 3", text)
            status, text = run("show", "--view", "overview", "--size", "120x40", path)
            self.assertEqual(status, 0, text)
            self.assertIn("D64 f16 dense sink alibi attention bias splits 3", text)
            self.assertIn("CLEAN", text)
            dealt = f"{folder}/dealt.safetensors"
            status, text = run("run", "tests/terms/warps.cu", "--shape", "1,2,40,100,64", "--save", dealt)
            self.assertIn("splits 4 round-robin", text)
            status, text = run("show", "--view", "overview", "--size", "120x40", dealt)
            self.assertIn("splits 4 round-robin", text)
            self.assertIn("CLEAN", text)
            status, text = run("run", "tests/terms/warps.cu", "--shape", "1,2,40,100,64", "--isolate", "o", "--feed",
                               dealt)
            self.assertEqual((status, "CLEAN" in text), (0, True), text)
            done = subprocess.run([sys.executable, ROOT / "tests/read_trace.py", dealt], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout)
            done = subprocess.run([sys.executable, ROOT / "tests/read_trace.py", path], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout)

    def mistake(self, kernel, mistake, culprits, *pairs, shape="1,2,50,100,64"):
        status, text = run("run", f"tests/terms/{kernel}.cu", "-D", f"MISTAKE={mistake}", "--shape", shape,
                           *settings(*pairs))
        self.assertEqual(status, 1, text)
        found = next(line for line in text.splitlines() if line.startswith("local")).split()[1:]
        stages = ("q", "k", "v", "s", "m", "alpha", "p", "l", "u", "o", "lse")
        self.assertEqual([stage for stage, mark in zip(stages, found) if mark == "bad"], culprits.split(), text)
        return text

    def test_mistakes(self):
        self.mistake("split_start", "SINK_IN_EVERY_SPLIT", "m alpha l", "shape.sink=yes", shape="1,2,50,130,64")
        self.mistake("sink_end", "BIAS_OF_HEAD_0", "s", "shape.sink=yes", "shape.bias=per-head")
        self.mistake("split", "MERGE_UNGUARDED", "o lse", "shape.causal=bottom-right", shape="1,1,100,50,64")
        self.mistake("paged", "PAGES_IN_ORDER", "s u")
        self.mistake("paged", "PROBES_BY_PAGE", "s u")
        for mistake in ("LAST_WARP_LEFT_OUT", "MERGED_UNSCALED"):
            self.mistake("warps", mistake, "o lse", shape="1,1,50,130,64")
        # The second tile of the first warp, which is the fifth.
        text = self.mistake("warps", "U_NOT_RESCALED", "u", shape="1,1,50,130,64")
        self.assertIn("U is the first bad stage, from batch 0, head 0, q tile 0, kv tile 4 on", text)

    def test_what_a_kernel_does_not_take_is_declined(self):
        for pair, word in (("shape.sink=yes", "attention sinks"), ("shape.alibi=yes", "ALiBi"),
                           ("shape.bias=shared", "bias")):
            status, text = run("run", "kernels/v2b_scalar.cu", "--shape", "1,1,64,64", *settings(pair))
            self.assertNotEqual(status, 0, text)
            self.assertIn(f"v2b_scalar does not accept {word}", text)


if __name__ == "__main__":
    tap.main()
