#!/usr/bin/env python3
"""libattnscope-capture and `attnscope keep`, on a driver that is none: the trace of a process that captures itself, what
is left of one that is killed, and what is refused. tests/gpu/gpu_capture.py asks a device."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/gpu"), str(ROOT / "python")]
import attnscope  # noqa: E402
import fake_driver  # noqa: E402
import tap  # noqa: E402
from read_trace import Trace  # noqa: E402

LIBRARY = ROOT / "build/libattnscope-capture.so"


class Capture(fake_driver.WithDriver):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        shutil.copy(ROOT / "tests/capture/probes.txt", cls.folder)
        build = ["g++", "-std=c++17", "-O1", "-Wall", "-Wextra", "-I", ROOT / "build/include", f'-DSOURCE="{cls.folder}/probes.txt"']
        source = ROOT / "tests/capture/host.cpp"
        for name, rows in (("host", 8), ("host-of-3-rows", 3)):
            subprocess.run([*build, f"-DBR={rows}", "-o", cls.folder / name, source, LIBRARY, f"-Wl,-rpath={ROOT}/build", "-ldl"],
                           check=True)
        subprocess.run([*build, "-shared", "-fPIC", "-s", "-fvisibility=hidden", "-o", cls.folder / "late.so", source, LIBRARY],
                       check=True)

    def setUp(self):
        self.trace = self.folder / "trace.safetensors"
        self.trace.unlink(missing_ok=True)

    def run_host(self, what, *more, host="host", **environment):
        return subprocess.run([self.folder / host, self.trace, what, *more], capture_output=True, text=True, cwd=self.folder,
                              env=dict(os.environ, LD_LIBRARY_PATH=str(self.folder), ATTNSCOPE_PROGRAM=str(ROOT / "build/attnscope"),
                                       **environment), timeout=60)

    def judge(self):
        done = subprocess.run([ROOT / "build/attnscope", "run", self.trace], capture_output=True, text=True,
                              env=dict(os.environ, ATTNSCOPE_PROGRESS="no"))
        return done.returncode, done.stdout + done.stderr

    def clean(self, what, *more):
        done = self.run_host(what, *more)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        status, report = self.judge()
        self.assertEqual(status, 0, report)
        return report

    def test_clean(self):
        self.assertIn("recorded in device memory", self.clean("clean"))
        run = Trace(self.trace).run
        self.assertEqual((run["kernel"], run["status"], run["memory"]), ("probes", "complete", "device"))
        self.assertIn("cannot be opened", run["memory_why"])

    def test_probe_lines(self):
        self.clean("clean")
        sites = Trace(self.trace).sites
        self.assertEqual([(site["channel"], site["line"]) for site in sites],
                         [("s", 2), ("m", 3), ("p", 4), ("l", 6), ("u", 7)])

    def test_memories(self):
        for memory in ("device", "pinned"):
            with self.subTest(memory):
                self.assertIn(f"recorded in {memory} memory", self.clean("clean", f', "memory": "{memory}"'))
        done = self.run_host("clean", ', "memory": "guard"')
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
        self.assertIn("guardian", done.stderr)

    def test_room_that_device_memory_lacks(self):
        done = self.run_host("clean", FAKE_FREE="1000")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("recorded in pinned memory", self.judge()[1])

    def test_strides(self):
        self.clean("strides")

    def test_sequences(self):
        for what in ("varlen", "paged"):
            with self.subTest(what):
                self.assertIn("varlen", self.clean(what))
                trace = Trace(self.trace)
                trace.check_all()
                self.assertEqual(trace.values("input.kv_lens", 0, 2), [24, 13])
        self.assertEqual(trace.values("input.page_table", 0, 10), [7, 2, 0, 9, 4, 1, 6, 3, 0, 0])
        self.assertIn("left_pad", self.clean("left-pad"))
        problem = '"problem": {"batch": 2, "heads": 2, "q_len": 24, "head_dim": 16, "dtype": "f32"%s}'
        rest = f'"plan": {{"br": 8, "bc": 8}}, "capture": {{"path": "{self.trace}"}}'
        self.trace.unlink()
        for words, of_problem, sequences in (
                ("q_lens: expected 1 numbers for each of 2 sequences", "", '"q_lens": [24]'),
                ("sequence 1 has 25 queries", "", '"q_lens": [24, 25]'),
                ("expected page_table and problem.page_size, or neither", ', "page_size": 8, "pages": 6', '"kv_lens": [9, 9]'),
                ("the page table names page 6; there are 6", ', "page_size": 8, "pages": 6', '"page_table": [[0, 1, 2], [3, 4, 6]]'),
                ("the layout THD: expected q_lens and kv_lens", ', "layout": "THD"', '"q_lens": [24, 9]'),
                ("strides are those of the tensors", ', "strides": "padded"', ""),
                ("left_pad: expected kv_lens beside it", ', "left_pad": 1', '"q_lens": [24, 9]'),
                ("dropout is not taken yet", ', "dropout": 0.5, "keep_kind": "full"', ""),
                ("keys that the kernel appends to its cache (new_keys) are not taken yet", ', "new_keys": 3', "")):
            with self.subTest(words):
                self.refused(words, "json", "{%s, %s, \"sequences\": {%s}}" % (problem % of_problem, rest, sequences))

    def test_codes_and_their_scales(self):
        self.clean("codes")
        trace = Trace(self.trace)
        self.assertEqual(trace.tensors["input.k"]["dtype"], "U8")
        self.assertEqual(trace.values("input.k_scale", 0, 2), [0.015625, 0.015625])

    def test_formats_masks_and_formulas(self):
        for what, said in (("s8", " s8 "), ("mxfp8", " e4m3 "), ("mxfp4", " e2m1 "), ("nvfp4", " e2m1 "), ("mask", " mask "),
                           ("score-mod", " score_mod "), ("rope", " rope half ")):
            with self.subTest(what):
                self.assertIn(said, self.clean(what).splitlines()[0] + " ")
        self.assertEqual(self.run_host("s8-as-u8").returncode, 0)
        status, report = self.judge()
        self.assertEqual(status, 1, report)
        self.assertIn("S is the first bad stage", report)
        self.trace.unlink()
        problem = '{"problem": {"batch": 1, "heads": 2, "q_len": 24, "head_dim": 16, %s}, "plan": {"br": 8, "bc": 8}, "capture": {"path": "t"}}'
        for words, of_problem in (
                ("scales of e8m0 are those of e4m3, e5m2 or e2m1", '"dtype": "u8", "scale_type": "e8m0"'),
                ("scale_type", '"dtype": "e4m3", "scale_type": "e5m2"'),
                ("found codes", '"dtype": "s8", "rope": "half", "rope_dim": 16, "rope_offset": 0, "rope_base": 10000'),
                ("score_mod", '"dtype": "f32", "score_mod": "s + x"'),
                ("mask", '"dtype": "f32", "mask_kind": "per-head"')):
            with self.subTest(of_problem):
                self.refused(words, "json", problem % of_problem)

    def test_bias_and_slopes(self):
        self.clean("terms")
        trace = Trace(self.trace)
        self.assertEqual(trace.values("input.alibi", 0, 2), [0.5, 0.125])
        self.assertEqual(trace.tensors["input.bias"]["shape"], [1, 2, 24, 24])

    def test_mistake(self):
        self.assertEqual(self.run_host("mistake").returncode, 0)
        status, report = self.judge()
        self.assertEqual(status, 1, report)
        self.assertIn("U is the first bad stage", report)

    def test_some_tiles_and_channels(self):
        self.clean("clean", ', "tiles": [[0, 1, 2], [0, 0, 0]], "channels": ["s", "m"]')
        trace = Trace(self.trace)
        self.assertEqual(trace.tensors["slot"]["shape"], [2, 3])
        self.assertNotIn("channel.u", trace.tensors)

    def test_no_lse(self):
        self.clean("no-lse")

    def test_tiles_that_lie_apart(self):
        """m and l of three rows have padding between their tiles: the file has none."""
        done = self.run_host("clean", host="host-of-3-rows")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        status, report = self.judge()
        self.assertEqual(status, 0, report)
        trace = Trace(self.trace)
        trace.check_all()
        self.assertEqual(trace.tensors["channel.m"]["shape"], [16, 3, 3, 1])

    def killed(self, what, *more, **environment):
        self.trace.unlink(missing_ok=True)
        self.assertEqual(self.run_host(what, *more, **environment).returncode, -signal.SIGKILL)
        for _ in range(300):
            if self.trace.exists():
                break
            time.sleep(0.1)
        status, report = self.judge()
        self.assertIn("the process ended while its kernel was captured", report)
        self.assertNotEqual(status, 0)
        return report

    def test_killed(self):
        self.assertNotIn("lost", self.killed("killed", ', "memory": "pinned"'))
        self.assertIn("what was recorded is lost", self.killed("killed"))
        self.assertIn("what was recorded is lost", self.killed("clean", FAKE_COPY="killed"))
        self.assertEqual([path.name for path in self.folder.glob("*.partial*")], [])

    def test_values_that_cannot_be_copied(self):
        self.clean("clean")
        before = self.trace.read_bytes()
        done = self.run_host("clean", FAKE_COPY="failed")
        self.assertEqual((done.returncode, done.stderr), (1, f"{self.trace}: the device's memory cannot be read: no words\n"))
        self.assertEqual(self.trace.read_bytes(), before)
        self.assertEqual([path.name for path in self.folder.glob("*.partial*")], [])

    def test_dropped(self):
        self.assertEqual(self.run_host("drop").returncode, 0)
        self.assertFalse(self.trace.exists())

    def test_loaded_inside(self):
        done = self.run_host("late", "", self.folder / "late.so")
        self.assertEqual((done.returncode, done.stdout), (0, "1\n"), done.stderr)
        self.assertIn("probes of 1 file loaded inside of the capture are not recorded", done.stderr)

    def refused(self, words, what, *more):
        done = self.run_host(what, *more)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
        self.assertIn(words, done.stderr)
        self.assertFalse(self.trace.exists())

    def test_refused(self):
        problem = '"problem": {"batch": 1, "heads": 2, "q_len": 24, "head_dim": 16, "dtype": "f32"}'
        plan = '"plan": {"br": 8, "bc": 8}'
        path = f'"capture": {{"path": "{self.trace}"}}'
        for words, text in (("batch must be a 32-bit integer", "{%s, %s}" % (plan, path)),
                            ("br must be", "{%s, %s}" % (problem, path)),
                            ("path", "{%s, %s}" % (problem, plan)),
                            ("heads (3) must be a multiple of kv_heads (2)",
                             "{%s, %s, %s}" % (problem.replace('"heads": 2', '"heads": 3, "kv_heads": 2'), plan, path)),
                            ("not auto, guard, device or pinned", "{%s, %s, %s}" % (problem, plan, path[:-1] + ', "memory": "ram"}')),
                            ("must be [batch, head, q tile]", "{%s, %s, %s}" % (problem, plan, path[:-1] + ', "tiles": [[1]]}')),
                            ("head 2, q tile 0 in this problem", "{%s, %s, %s}" % (problem, plan, path[:-1] + ', "tiles": [[0, 2, 0]]}')),
                            ("s_unit", "{%s, %s, %s, \"conventions\": {\"s_unit\": \"mile\"}}" % (problem, plan, path)),
                            ("element type", "{%s, %s, %s, \"types\": {\"channels\": {\"s\": \"f99\"}}}" % (problem, plan, path)),
                            ("zz is not the name of a channel", "{%s, %s, %s}" % (problem, plan, path[:-1] + ', "channels": ["s", "zz"]}')),
                            ("nope is not the name of a channel", "{%s, %s, %s, \"types\": {\"channels\": {\"nope\": \"f32\"}}}" % (problem, plan, path)),
                            ("nope is not the name of a convention", "{%s, %s, %s, \"conventions\": {\"nope\": 1}}" % (problem, plan, path)),
                            ("channels: expected a list of names", "{%s, %s, %s}" % (problem, plan, path[:-1] + ', "channels": "s"}')),
                            ("types: expected an object", "{%s, %s, %s, \"types\": {\"channels\": [\"s\"]}}" % (problem, plan, path)),
                            ("br must be positive", "{%s, %s, %s}" % (problem, plan.replace('"br": 8', '"br": 0'), path)),
                            ("capture", "nonsense"), ("path", "[]")):
            with self.subTest(text):
                self.refused(words, "json", text)
        self.refused("k: its last dimension has a stride of 2 elements; expected 1", "turned")
        self.refused("v is missing", "no-v")

    def test_installed(self):
        """Beside the library of an installation lies a folder that is called as the program is."""
        prefix = self.folder / "installed"
        (prefix / "lib/attnscope").mkdir(parents=True)
        (prefix / "bin").mkdir()
        shutil.copy(LIBRARY, prefix / "lib")
        (prefix / "bin/attnscope").symlink_to(ROOT / "build/attnscope")
        environment = dict(os.environ, LD_LIBRARY_PATH=f"{prefix}/lib:{self.folder}", PATH="/nonexistent")
        environment.pop("ATTNSCOPE_PROGRAM", None)
        done = subprocess.run([self.folder / "host", self.trace, "clean"], capture_output=True, text=True, env=environment, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(self.trace.exists())

    def test_no_program_no_driver(self):
        done = subprocess.run([self.folder / "host", self.trace, "clean"], capture_output=True, text=True,
                              env=dict(os.environ, LD_LIBRARY_PATH=str(self.folder), ATTNSCOPE_PROGRAM="/nonexistent/attnscope"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nonexistent/attnscope", done.stderr)
        done = subprocess.run([self.folder / "host", self.trace, "clean"], capture_output=True, text=True, env=dict(os.environ))
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)

    def test_what_cannot_be_saved(self):
        done = subprocess.run([self.folder / "host", self.folder / "no/such/folder.safetensors", "clean"], capture_output=True,
                              text=True, env=dict(os.environ, LD_LIBRARY_PATH=str(self.folder)))
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
        self.assertIn("folder.safetensors", done.stderr)

    def test_keep_is_for_the_library(self):
        done = subprocess.run([ROOT / "build/attnscope", "keep"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("libattnscope-capture", done.stderr)


class Tensor:
    """What attnscope.capture() asks of a tensor before it begins."""
    is_cuda, device, dtype = True, "cuda:0", "torch.float16"

    def __init__(self, *shape):
        self.shape, self.ndim = shape, len(shape)

    def unsqueeze(self, _):
        return Tensor(1, *self.shape)


class Page(unittest.TestCase):
    def test_what_was_added(self):
        """Line by line, and no more than 15."""
        source = (ROOT / "tests/capture/attention.cu").read_text(encoding="utf-8").splitlines()
        added = [line.strip() for line in source if "ASC_" in line or "attnscope.h" in line]
        self.assertLessEqual(len(added), 15)
        self.assertNotIn("ASC_", (ROOT / "tests/capture/bindings.cpp").read_text(encoding="utf-8"))
        self.assertIn(f"{len(added)} lines in the first one:\n\n" + "".join(f"    {line}\n" for line in added),
                      (ROOT / "docs/capture.md").read_text(encoding="utf-8"))


class Arguments(unittest.TestCase):
    def described(self, *shapes, **named):
        asked = json.loads(attnscope.capture(*(Tensor(*shape) for shape in shapes), br=16, bc=16, **named)._json)
        return asked["problem"], asked["sequences"]

    def test_sequences(self):
        problem, sequences = self.described((37, 4, 64), (50, 2, 64), (50, 2, 32), layout="THD", cu_seqlens_q=[0, 24, 37],
                                            cu_seqlens_k=[0, 30, 50])
        self.assertEqual([problem[name] for name in ("batch", "heads", "kv_heads", "q_len", "kv_len", "head_dim_v", "layout")],
                         [2, 4, 2, 24, 30, 32, "THD"])
        self.assertEqual(sequences, {"q_lens": [24, 13], "kv_lens": [30, 20]})
        problem, sequences = self.described((2, 1, 4, 64), (9, 16, 2, 64), (9, 16, 2, 64), layout="BLHD", kv_lens=[33, 5],
                                            page_table=[[7, 2, 8, -1], [3, -1, -1, -1]])
        self.assertEqual([problem[name] for name in ("batch", "q_len", "kv_len", "page_size", "pages", "kv_heads")],
                         [2, 1, 33, 16, 9, 2])
        self.assertEqual(sequences, {"kv_lens": [33, 5], "page_table": [[7, 2, 8], [3, 0, 0]]})
        self.assertEqual(self.described((2, 4, 8, 64), (2, 4, 8, 64), (2, 4, 8, 64))[1], {})
        problem, sequences = self.described((2, 4, 8, 64), (2, 4, 8, 64), (2, 4, 8, 64), leftpad_k=[0, 3])
        self.assertEqual((problem["left_pad"], sequences), (1, {"kv_lens": [8, 5]}))

    def test_refused(self):
        thd = ((37, 4, 64), (50, 2, 64), (50, 2, 64))
        for words, shapes, named in (
                ("the layout THD: how long", thd, dict(layout="THD", cu_seqlens_q=[0, 24, 37])),
                ("do not belong together", thd, dict(layout="THD", cu_seqlens_q=[0, 24, 37], cu_seqlens_k=[0, 30, 49])),
                ("there are 2 sequences of q, but 1 lengths of k", thd, dict(layout="THD", q_lens=[24, 13], kv_lens=[50])),
                ("lengths of q are given twice", thd, dict(layout="THD", q_lens=[24, 13], cu_seqlens_q=[0, 24, 37])),
                ("pages: how long", ((2, 1, 4, 64), (9, 16, 2, 64), (9, 16, 2, 64)), dict(layout="BLHD", page_table=[[0], [1]])),
                ("leftpad_k: the keys of sequence 1 end at row 7 of 8", ((2, 4, 8, 64),) * 3, dict(leftpad_k=[0, 3], kv_lens=[8, 4])),
                ("leftpad_k: expected the layout BHLD or BLHD", thd, dict(layout="THD", q_lens=[24, 13], kv_lens=[30, 20], leftpad_k=[0, 0])),
                ("expected 3 dimensions, THD", ((2, 1, 4, 64),) * 3, dict(layout="THD", q_lens=[1, 1], kv_lens=[1, 1]))):
            with self.subTest(words), self.assertRaisesRegex(attnscope.Error, words):
                self.described(*shapes, **named)
        for words, named in (("window is 3; expected two numbers", dict(window=3)), ("dropout is not taken", dict(dropout=0.1)),
                             (r"mask has shape \[1, 1, 3, 3\]; expected \[2 or 1, 4 or 1, 8, 8\]", dict(mask=Tensor(1, 1, 3, 3))),
                             (r"bias has shape \[1, 3, 8, 8\]", dict(bias=Tensor(1, 3, 8, 8))), (r"bias has shape \[8\]", dict(bias=Tensor(8))),
                             ("sink must be a tensor on a CUDA device", dict(sink=[0.1] * 4)), (r"window is \(1.5, 0\)", dict(window=(1.5, 0))),
                             (r"sink has shape \[1\]; expected \[4\]", dict(sink=Tensor(1)))):
            with self.subTest(words), self.assertRaisesRegex(attnscope.Error, words):
                self.described(*((2, 4, 8, 64),) * 3, **named)
        self.assertEqual(self.described(*((2, 4, 8, 64),) * 3, bias=Tensor(8, 8))[0]["bias_kind"], "shared")

    def test_outputs(self):
        """What a kernel returns has to be what the capture began with."""
        c = attnscope.capture(*(Tensor(2, 4, 8, 64),) * 3, br=16, bc=16)
        right, other = Tensor(2, 4, 8, 64), Tensor(2, 4, 8, 64)
        other.dtype = "torch.float32"
        self.assertIs(c.result(right, Tensor(2, 4, 8)), right)
        for words, outputs in ((r"o has shape \[2, 3, 8, 64\]; expected \[2, 4, 8, 64\]", (Tensor(2, 3, 8, 64),)),
                               ('types={"o": "f32"}', (other,)), (r"lse has shape \[1, 2, 10\]", (right, Tensor(1, 2, 10))),
                               ("o must be a tensor on a CUDA device", (object(),))):
            with self.subTest(words), self.assertRaisesRegex(attnscope.Error, words):
                c.result(*outputs)


if __name__ == "__main__":
    tap.main()
