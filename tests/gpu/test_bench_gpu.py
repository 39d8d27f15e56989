#!/usr/bin/env python3
"""The tables of docs/gpu-report.md, from figures of a machine that does not exist."""

import json
import math
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/gpu")]

import bench_gpu  # noqa: E402
import bench_report  # noqa: E402
import bench_steps  # noqa: E402
import tap  # noqa: E402

RUN = {"total": 0.08, "kernel": 0.001, "phases": [["start", 0.0], ["compiling", 0.001], ["filling inputs", 0.02],
                                                  ["running", 0.01], ["judging", 0.04], ["causes", 0.009]]}


def build(name, median, recorded=0, copy=None):
    return {"build": name, "warm": {"median": median, "min": median, "n": 15}, "recorded_bytes": recorded,
            "copy_bytes_per_second": copy, "slots": 3, "places": 4}


class Fake(bench_steps.Bench):
    """Answers as a device would; `broken` words of a command make it fail, `slow` ones never end."""

    def __init__(self, broken=(), slow=()):
        super().__init__("/nowhere/attnscope", 340, nvcc="/nowhere/nvcc")
        self.broken, self.slow, self.asked = broken, slow, []

    def phases(self):
        return "bench_phases"

    def compiled(self, name, source, *flags):
        self.call(["nvcc", source, *flags], 10)
        return name

    def run(self, arguments, limit_s, environment=None):
        line = " ".join(str(argument) for argument in arguments)
        self.asked.append(line)
        if any(word in line for word in self.slow):
            raise bench_steps.NotMeasured(f"still running after {limit_s:.0f} s")
        if any(word in line for word in self.broken):
            return 3, "noise\n", "attnscope: out of luck\n"
        printed = {"values": 1048576, "seconds": 0.5, "values_per_second": 2097152.0}
        answer = self.answer(line)
        if "bursts.py" in line:
            return 0, "".join(json.dumps(line) + "\n" for line in answer), ""
        plain = isinstance(answer, list) or "sdpa.py" in line
        out = (json.dumps(answer) + "\n" if plain else
               "========= COMPUTE-SANITIZER\n" + json.dumps(answer, indent=2) + "\n=========\n")
        return 0, out, json.dumps(printed) + "\n"

    @staticmethod
    def answer(line):
        if "sdpa.py" in line:
            return {"shape": "1,8,512,64", "backend": "flash", "torch": "9.9", "median": 1e-5, "largest_error": 1e-4}
        if "bursts.py" in line:
            row = {"timed": [1, 8, 512, 64], "causal": 0, "quartiles": [4.0, 4.5]}
            return [{"torch": "9.9"}, {"kernel": "hopper_small", "error": 1e-4, "right": True},
                    {"chain": "hopper_small-PDL=1", "launches": 20, "chains": 50, "same": 50, "programmatic_edges": 19, "right": True},
                    {**row, "who": "cudnn", "us": 9.0, "ratio": 1.0},
                    {**row, "who": "hopper_small", "us": 4.4, "ratio": 0.489, "goal_ratio": 0.5, "goal_us": 5.0, "met": True},
                    {**row, "who": "hopper_small-PDL=1", "us": 3.9, "ratio": 0.433, "goal_ratio": 0.5, "goal_us": 5.0, "met": True,
                     "launch": "programmatic"},
                    {**row, "who": "hopper_fp8", "us": 3.6, "ratio": 0.4, "of": "hopper_large", "of_ratio": 0.8, "goal_ratio": 0.75,
                     "goal_us": None, "met": False}]
        if " bench --all " in line:
            return [{"kernel": "kernels/k.cu", "graph": {"median": 2e-5}, "warm": {"median": 3e-5}, "registers": 64,
                     "shared_bytes": 27904, "spill_bytes": 0, "largest_error": 1.5e-4},
                    {"kernel": "kernels/no.cu", "error": "declined"}]
        if " bench " in line:
            return {"file": "k", "builds": [build("plain", 0.0006), build("probes off", 0.000606),
                                            build("capture", 0.02, 1_000_000_000, 50e9),
                                            build("full capture", 0.03, 1_600_000_000, 50e9)]}
        if "host_memory" in line:
            return {"context": 0.2, "sizes": [{"bytes": 1 << 30, "first_write": 1.0, "pin": 0.1, "unpin": 0.05,
                                               "copy": (1 << 30) / 55e9, "write": (1 << 30) / 52e9}]}
        if "bench_phases" in line:
            first = {"wanted": 32768, "judged": 64, "off": 3, "differing": 0, "off_places": "b0 h0 q9",
                     "by_gpu": 0, "judge": ""}
            return {"runs": [{**RUN, "total": 9.0}, RUN, RUN], "verdict": "FAIL", "finding": "a | b", "slots": 60,
                    "places": 32768, "trace_bytes": 8 << 30, "first_pass": first, "saved_bytes": 37_000_000,
                    "save": 0.08, "open": 0.0004, "attnscope_kib": 9 << 20, "debuggee_kib": 9 << 20}
        if line.startswith("capture-0"):
            return {"kernel": 0.001}
        if line.startswith("capture-1"):
            captures = [{"memory": memory, "begin": 0.1, "kernel": 0.003, "end": end, "fsync": 0.05, "bytes": 1_000_000_000}
                        for end in (0.9, 0.4) for memory in ("device", "guard", "pinned")]
            return {"kernel": 0.00101, "captures": captures, "after": 0.00102}
        return {"launches": 1, "clock": 0.035 if "memcheck" in line else 0.001, "events": 0.001}


MACHINE = {"gpu": "NVIDIA Nothing", "sm": "sm_90", "driver": "1.2", "cuda": "13.0", "cores": 2, "date": "2026-01-01"}


def measured(fake, steps=tuple(bench_steps.STEPS)):
    return bench_gpu.measure(fake, steps, MACHINE, lambda figures: None)


def page(figures):
    with tempfile.TemporaryDirectory() as folder:
        bench_gpu.write_docs(figures, Path(folder), Path(folder) / "figures.json")
        return (Path(folder) / "gpu-report.md").read_text(encoding="utf-8")


def row(text, *words):
    """The only line that holds all words, as its cells."""
    lines = [line for line in text.splitlines() if line.startswith("|") and all(word in line for word in words)]
    assert len(lines) == 1, (words, lines)
    return [cell.strip() for cell in lines[0].strip("|").split(" | ")]


class Report(unittest.TestCase):
    def test_all_is_well(self):
        text = page(measured(Fake()))
        self.assertEqual(row(text, "fp16_mma |", "(2,8,2048,128)", "S, P, U", "pinned |")[4:],
                         ["1.00 GB", "20.0 ms", "50.0 GB/s", "55.0 GB/s", "90.9 %"])
        self.assertEqual(row(text, "v2b_scalar |", "(1,8,512,64)", "1.010", "device |")[3:], ["600 µs", "1.010", "33.3", "50.0"])
        self.assertEqual(row(text, "| k |", "(1,8,512,64)")[2:], ["20.0", "64", "27,904", "0", "1.50e-04"])
        self.assertEqual(row(text, "PyTorch 9.9, flash")[2], "10.0")
        self.assertEqual(row(text, "| hopper_small |", "(1,8,512,64)")[2:],
                         ["4.40", "4.00 to 4.50", "0.489", "at most 0.5 and 5.0 µs: met"])
        self.assertEqual(row(text, "| hopper_small-PDL=1, programmatic dependent launch |", "(1,8,512,64)")[2], "3.90")
        self.assertIn(" 1 outputs, of odd", text)
        self.assertIn("edges are such (19 of 19)", text)
        self.assertEqual(row(text, "| hopper_fp8 |", "(1,8,512,64)")[5:],
                         ["0.800 of hopper_large's; at most 0.75 of hopper_large's: **not met**"])
        self.assertEqual(row(text, "fp16_mma, S P U")[1:], ["250,000,000", "20.0 ms", "12,500 M/s", "5,960"])
        self.assertEqual(row(text, "v2c-wmma-512.ini", "**")[1:3], ["FAIL", "**80.0 ms**"])
        self.assertEqual(row(text, "fp16_mma |", "(1,8,512,64)", "35.0")[3:],
                         ["50.0", "35.0 (35.0 ms)", "1.00 (1.00 ms)"])
        self.assertIn("64, of which 3 are off: b0 h0 q9", text)
        self.assertIn("takes 3 of 4 q tiles: fp16_mma then takes 33.3 times as long, recording everything 50.0", text)
        self.assertIn("| finding | a \\| b |", text)
        self.assertIn("NVIDIA Nothing", text)
        self.assertNotIn("ot measured:", text)

    def test_published(self):
        rows = [{"kernel": "FlashAttention-2", "shape": "2,8,2048,64", "plain": 60.3e-6, "off": 60.1e-6, "ratio": 0.9974},
                {"kernel": "FlashAttention-3", "shape": "2,8,2048,64", "error": "out of luck"}]
        text = page({"machine": MACHINE, "published": {"rows": rows, "date": "2026-01-01 00:00 UTC"}})
        self.assertEqual(row(text, "FlashAttention-2 |")[2:], ["60.3 µs", "60.1 µs", "0.997"])
        self.assertIn("out of luck", row(text, "FlashAttention-3 |")[2])

    def test_a_step_that_is_skipped(self):
        fake = Fake()
        self.assertEqual(measured(fake, ("published",)), {"machine": MACHINE})

    def test_nothing_works(self):
        fake = Fake(broken=("",))
        figures = measured(fake)
        text = page(figures)
        self.assertIn("not measured: attnscope: out of luck", text)
        for name in ("Against printf", "Bounded capture", "From rerun to verdict", "Against compute-sanitizer"):
            self.assertIn(f"## {name}", text)

    def test_one_is_too_slow(self):
        text = page(measured(Fake(slow=("racecheck",))))
        cells = row(text, "fp16_mma |", "(1,8,512,64)", "35.0")
        self.assertEqual(cells[5], "still running after 30 s")

    def test_one_build_fails(self):
        figures = measured(Fake(), ("capture",))
        figures["capture"]["rows"][0]["builds"][3] = {"build": "full capture", "error": "system", "message": "no room"}
        text = page(figures)
        self.assertEqual(row(text, "fp16_mma |", "(2,8,2048,128)", "no room")[4], "not measured: no room")
        self.assertEqual(row(text, "fp16_mma |", "(2,8,2048,128)", "1.010", "device |")[-1], "-")

    def test_a_mistake_in_a_step_costs_that_step(self):
        class Odd(Fake):
            @staticmethod
            def answer(line):
                if "host_memory" in line:
                    raise KeyError("copy")
                return Fake.answer(line)

        stderr, sys.stderr = sys.stderr, open(os.devnull, "w", encoding="utf-8")
        try:
            figures = measured(Odd(), ("memory", "printf"))
        finally:
            sys.stderr.close()
            sys.stderr = stderr
        self.assertEqual(figures["memory"], {"error": "KeyError: 'copy'"})
        self.assertEqual(figures["printf"]["values"], 1048576)
        page(figures)

    def test_no_time_left(self):
        fake = Fake()
        fake.ends = 0
        self.assertLess(fake.left(), 0)
        with self.assertRaises(bench_steps.NotMeasured):
            bench_steps.Bench.run(fake, ["true"], 10)

    def test_only_some_steps(self):
        with tempfile.TemporaryDirectory() as folder:
            docs, kept = Path(folder), Path(folder) / "figures.json"
            bench_gpu.write_docs(measured(Fake()), docs, kept)
            (docs / "gpu-report/numerics.md").write_text("# Numerics\n\n```sh\n# x\n```\n\n## a\n", encoding="utf-8")
            before = (docs / "gpu-report/bounded.md").read_text(encoding="utf-8")
            bench_gpu.write_docs(measured(Fake(broken=("printf",)), ("printf",)), docs, kept)
            self.assertEqual({"printf", "rerun", "bounded"} - set(json.loads(kept.read_text(encoding="utf-8"))), set())
            text = (docs / "gpu-report.md").read_text(encoding="utf-8")
        self.assertIn(before.strip(), text)
        self.assertIn("## Against printf\n\nNot measured", text)
        self.assertIn("## Numerics\n\n```sh\n# x\n```\n\n### a\n", text)
        self.assertEqual(text.count("\n# "), 1)

    def test_numbers(self):
        self.assertEqual([bench_report.seconds(x) for x in (12.34, 1.0, 0.01234, 4.5e-5, 1e-8, None, math.nan)],
                         ["12.3 s", "1.00 s", "12.3 ms", "45.0 µs", "0.010 µs", "-", "-"])
        self.assertEqual([bench_report.digits(x) for x in (0, 1234.5, 12.345, 0.5, None)],
                         ["0", "1,234", "12.3", "0.500", "-"])

    def test_commands_run(self):
        bench = bench_steps.Bench("/nowhere/attnscope", 20)
        self.assertEqual(bench.ask(["printf", "x\n{\"a\": [1,\n2]}\n=====\n"], 5), {"a": [1, 2]})
        for command, said in ((["sh", "-c", "echo bad >&2; exit 3"], "bad"), (["/nowhere/x"], "x: No such file"),
                              (["true"], "exit status 0")):
            with self.assertRaisesRegex(bench_steps.NotMeasured, said):
                bench.ask(command, 5)
        bench.ends = 0
        with self.assertRaisesRegex(bench_steps.NotMeasured, "no time"):
            bench.ask(["true"], 5)

    def test_no_device(self):
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
        done = subprocess.run([ROOT / "tests/gpu/bench_gpu.py"], env=environment, cwd=ROOT, capture_output=True,
                              text=True, check=False)
        self.assertEqual((done.returncode, done.stdout[:20]), (77, "SKIP: no CUDA device"), done.stderr)


if __name__ == "__main__":
    tap.main()
