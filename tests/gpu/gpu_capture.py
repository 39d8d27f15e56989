#!/usr/bin/env python3
"""Capture in the user's own process on a GPU: a PyTorch extension of two files, and a C++ program. SKIP without a GPU
or PyTorch."""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python")]
import tap  # noqa: E402

try:
    import torch
except ImportError:
    torch = None
HERE = ROOT / "tests/capture"
PROGRAM = ROOT / "build/attnscope"
CONVENTIONS = {"s_unit": "scaled", "m_unit": "scaled"}


def judge(trace):
    """(exit status, report) of a trace."""
    done = subprocess.run([PROGRAM, "run", trace], capture_output=True, text=True,
                          env=dict(os.environ, ATTNSCOPE_PROGRESS="no"))
    return done.returncode, done.stdout + done.stderr


@unittest.skipUnless(shutil.which("nvcc"), "nvcc is not installed")
class Program(unittest.TestCase):
    """Plain C++, linked with nvcc."""

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = Path(cls.temporary.name)
        subprocess.run(["nvcc", "-arch=native", "-O3", "-DASC_MODE=1", "-I", ROOT / "build/include", "-o", cls.folder / "program",
                        HERE / "program.cu", HERE / "attention.cu", "-L", ROOT / "build", "-lattnscope-capture",
                        "-Xlinker", f"-rpath={ROOT}/build"], check=True, capture_output=True)

    def run_program(self, *mistake):
        trace = self.folder / "trace.safetensors"
        trace.unlink(missing_ok=True)
        done = subprocess.run([self.folder / "program", trace, *mistake], capture_output=True, text=True)
        self.assertTrue(trace.exists(), done.stderr)
        return done, judge(trace)

    def test_clean(self):
        done, (status, report) = self.run_program()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(status, 0, report)

    def test_mistake(self):
        _, (status, report) = self.run_program("1")
        self.assertEqual(status, 1, report)
        self.assertIn("not rescaled to the new maximum", report)

    def test_crash(self):
        done, (status, report) = self.run_program("2")
        self.assertIn("the kernel stopped: an illegal memory access", done.stderr)
        self.assertEqual(status, 1, report)
        self.assertIn("illegal memory access", report)

    def test_library_loaded_inside(self):
        """With a CUDA runtime of its own."""
        flags = ["nvcc", "-arch=native", "-O3", "-DASC_MODE=1", "-I", ROOT / "build/include"]
        subprocess.run([*flags, "-cudart", "static", "-shared", "-Xcompiler", "-fPIC", "-o", self.folder / "late.so",
                        HERE / "attention.cu"], check=True, capture_output=True)
        subprocess.run([*flags, "-DLATE", "-o", self.folder / "late", HERE / "attention.cu", HERE / "program.cu", "-L", ROOT / "build",
                        "-lattnscope-capture", "-ldl", "-Xlinker", f"-rpath={ROOT}/build"], check=True, capture_output=True)
        trace = self.folder / "late.safetensors"
        done = subprocess.run([self.folder / "late", trace, "0", self.folder / "late.so"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        status, report = judge(trace)
        self.assertEqual(status, 0, report)
        self.assertIn("s ", report)


def load():
    from torch.utils.cpp_extension import load as build
    return build("attention", [str(HERE / "bindings.cpp"), str(HERE / "attention.cu")],
                 extra_cuda_cflags=["-O3", "-DASC_MODE=1", f"-I{ROOT}/build/include"])


def inputs(batch, heads, kv_heads, q_len, kv_len):
    torch.manual_seed(7)
    return tuple(torch.randn(batch, h, n, 64, device="cuda", dtype=torch.float16)
                 for h, n in ((heads, q_len), (kv_heads, kv_len), (kv_heads, kv_len)))


@unittest.skipUnless(torch and torch.cuda.is_available(), "PyTorch on a CUDA device is not there")
class Extension(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = Path(cls.temporary.name)
        os.environ["TORCH_EXTENSIONS_DIR"] = str(cls.folder)
        cls.extension = load()

    def capture(self, q, k, v, **options):
        import attnscope
        options = {"br": 16, "bc": 32, "threads": 512, "causal": True, "conventions": CONVENTIONS, **options}
        return attnscope.capture(q, k, v, **{"path": self.folder / "trace.safetensors", **options})

    def clean(self):
        status, report = judge(self.folder / "trace.safetensors")
        self.assertEqual(status, 0, report)
        return report

    def test_memories(self):
        q, k, v = inputs(2, 4, 2, 200, 300)
        plain = self.extension.forward(q, k, v, True, False, 0)
        for memory in ("guard", "device", "pinned", "auto"):
            with self.subTest(memory):
                with self.capture(q, k, v, memory=memory) as c:
                    o, lse = self.extension.forward(q, k, v, True, False, 0)
                    c.result(o, lse)
                self.assertTrue(torch.equal(o, plain[0]) and torch.equal(lse, plain[1]))
                self.clean()

    def test_mistake(self):
        q, k, v = inputs(1, 4, 4, 200, 200)
        with self.capture(q, k, v) as c:
            c.result(*self.extension.forward(q, k, v, True, False, 1))
        status, report = judge(c.path)
        self.assertEqual(status, 1, report)
        self.assertIn("not rescaled to the new maximum", report)

    def test_strides_and_stream(self):
        """Views of one packed qkv, on a stream of their own."""
        qkv = torch.randn(2, 150, 3, 4, 64, device="cuda", dtype=torch.float16)
        q, k, v = qkv.unbind(2)
        torch.cuda.synchronize()
        with torch.cuda.stream(torch.cuda.Stream()), self.capture(q, k, v, layout="BLHD") as c:
            c.result(*self.extension.forward(q, k, v, True, True, 0))
        self.clean()
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        with self.capture(q, k, v) as c:
            c.result(*self.extension.forward(q, k, v, True, False, 0))
        self.clean()

    @unittest.skipUnless(torch and torch.cuda.device_count() > 1, "there is one CUDA device alone")
    def test_two_devices(self):
        """A capture on each, one within the other: each has what ran on its own device."""
        near = inputs(1, 4, 2, 70, 130)
        far = tuple(t.to("cuda:1") for t in inputs(2, 2, 2, 150, 90))
        path = self.folder / "far.safetensors"
        for memory in ("guard", "device", "pinned"):
            with self.subTest(memory):
                with self.capture(*near, memory=memory) as a:
                    with self.capture(*far, memory=memory, path=path) as b:
                        with torch.cuda.device(1):
                            b.result(*self.extension.forward(*far, True, False, 1))
                    a.result(*self.extension.forward(*near, True, False, 0))
                self.clean()
                status, report = judge(path)
                self.assertEqual(status, 1, report)
                self.assertIn("not rescaled to the new maximum", report)
                self.assertIn("(2,2,", report)

    def values(self, q, k, v, given, **options):
        """The kernel multiplies q, k and v; it is told that they are what `given` stands for."""
        with self.capture(*given, types={"q": "f16", "k": "f16", "v": "f16", "o": "f16"}, **options) as c:
            c.result(*self.extension.forward(q, k, v, True, False, 0))
        return self.clean()

    def test_codes_and_their_scales(self):
        """int8 with a scale of each head, and NVFP4: two codes in a byte, scales of e4m3 for 16 of them, and one of the tensor."""
        codes = [torch.randint(-127, 128, (1, heads, n, 64), device="cuda", dtype=torch.int8) for heads, n in ((4, 70), (2, 130), (2, 130))]
        scales = [2.0 ** -torch.arange(5, 5 + heads, device="cuda") for heads in (4, 2, 2)]
        of_head = [scale.reshape(1, -1) for scale in scales]
        values = [(code.float() * scale.reshape(1, -1, 1, 1)).half() for code, scale in zip(codes, scales)]
        self.assertIn("s8", self.values(*values, codes, q_scale=of_head[0], k_scale=of_head[1], v_scale=of_head[2]))
        q = inputs(1, 4, 2, 70, 130)[0]
        table = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], device="cuda")
        packed = [torch.randint(0, 256, (1, 2, 130, 32), device="cuda", dtype=torch.uint8) for _ in range(2)]
        blocks = [(2.0 ** torch.randint(-2, 2, (1, 2, 130, 4), device="cuda")).to(torch.float8_e4m3fn) for _ in range(2)]
        k, v = ((table[torch.stack((code & 15, code >> 4), -1).flatten(-2).long()] * block.float().repeat_interleave(16, -1) / 4).half()
                for code, block in zip(packed, blocks))
        self.assertIn("e2m1", self.values(q, k, v, (q, *packed), k_dtype="e2m1", v_dtype="e2m1", k_scale=blocks[0], v_scale=blocks[1],
                                          tensor_scales={"k": 0.25, "v": 0.25}))

    def test_mask_and_rope(self):
        """A mask that happens to be causal; Q and K that are turned before the kernel reads them."""
        q, k, v = inputs(1, 4, 2, 70, 130)
        seen = torch.ones(70, 130, device="cuda", dtype=torch.bool).tril(60)
        self.values(q, k, v, (q, k, v), causal=False, mask=seen[None, None])
        self.values(q, k, v, (q, k, v), mask=seen[None, None].expand(1, 4, -1, -1))

        def turned(x, first):
            angles = (first + torch.arange(x.shape[2], device="cuda").double()).outer(10000.0 ** (-torch.arange(32, device="cuda").double() / 32))
            a, b = x.double().chunk(2, -1)
            return torch.cat((a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()), -1).half()

        self.values(turned(q, 60), turned(k, 0), v, (q, k, v), rope="half")

    def test_graph(self):
        q, k, v = inputs(1, 2, 2, 128, 128)
        graph = torch.cuda.CUDAGraph()
        self.extension.forward(q, k, v, True, False, 0)
        with torch.cuda.graph(graph):
            o, lse = self.extension.forward(q, k, v, True, False, 0)
        with self.capture(q, k, v) as c:
            graph.replay()
            c.result(o, lse)
        self.clean()

    def test_compiled(self):
        q, k, v = inputs(1, 2, 2, 128, 128)

        @torch.library.custom_op("attnscope_test::attention", mutates_args=())
        def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return tuple(self.extension.forward(q, k, v, True, False, 0))

        @attention.register_fake
        def _(q, k, v):
            return torch.empty_like(q), q.new_empty(q.shape[:3], dtype=torch.float32)

        compiled = torch.compile(lambda q, k, v: attention(q * 1.0, k, v), fullgraph=True, backend="aot_eager")
        with self.capture(q, k, v) as c:
            c.result(*compiled(q, k, v))
        self.clean()

    def test_tiles_and_channels(self):
        q, k, v = inputs(1, 4, 4, 128, 160)
        with self.capture(q, k, v, tiles=[(0, 1, 2), (0, 3, 7)], channels=("s", "m"), threads=1024) as c:
            c.result(self.extension.forward(q, k, v, True, False, 0)[0])
        self.clean()

    def test_nothing_bound(self):
        q, k, v = inputs(1, 2, 2, 64, 64)
        with self.capture(q, k, v) as c:
            c.result(*self.extension.forward(q, k, v, True, False, 0))
        before = (self.folder / "trace.safetensors").read_bytes()
        self.extension.forward(q + 1, k, v, True, False, 1)
        torch.cuda.synchronize()
        self.assertEqual((self.folder / "trace.safetensors").read_bytes(), before)

    def test_refused(self):
        import attnscope
        q, k, v = inputs(1, 2, 2, 64, 64)
        with self.assertRaisesRegex(attnscope.Error, "expected 4 dimensions"):
            self.capture(q[0], k, v)
        with self.assertRaisesRegex(attnscope.Error, "must be a tensor on a CUDA device"):
            self.capture(q.cpu(), k.cpu(), v.cpu())
        with self.assertRaisesRegex(attnscope.Error, "s_unit"), self.capture(q, k, v, conventions={"s_unit": "furlong"}):
            pass
        with self.capture(q, k, v):
            with self.assertRaisesRegex(attnscope.Error, "another capture"), self.capture(q, k, v):
                pass

    @unittest.skipUnless(importlib.util.find_spec("pytest"), "no pytest")
    def test_suite_of_pytest(self):
        for mistake, status, words in (("0", 0, "2 passed"), ("1", 1, "not rescaled to the new maximum")):
            done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
                                   f"--junit-xml={self.folder}/out.xml", HERE / "suite_attention.py"], cwd=self.folder,
                                  capture_output=True, text=True, timeout=300,
                                  env=dict(os.environ, MISTAKE=mistake, PYTHONPATH=os.pathsep.join(sys.path)))
            self.assertEqual(done.returncode, status, done.stdout + done.stderr)
            self.assertIn(words, done.stdout)
            self.assertEqual(words in (self.folder / "out.xml").read_text(), mistake == "1")

    def in_process(self, memory, mistake, kill=False):
        """A process of its own, which a fault ends."""
        script = f"""
import os, signal, sys
sys.path[:0] = [{str(ROOT / 'python')!r}, {str(ROOT / 'tests/gpu')!r}]
import gpu_capture as g, attnscope, torch
os.environ["TORCH_EXTENSIONS_DIR"] = {str(self.folder)!r}
extension = g.load()
q, k, v = g.inputs(2, 4, 2, 200, 300)
with attnscope.capture(q, k, v, br=16, bc=32, threads=512, causal=True, conventions=g.CONVENTIONS, memory={memory!r},
                       path={str(self.folder / 'fault.safetensors')!r}) as c:
    extension.forward(q, k, v, True, False, {mistake})
    if {kill}:
        os.kill(os.getpid(), signal.SIGKILL)
    torch.cuda.synchronize()
"""
        trace = self.folder / "fault.safetensors"
        trace.unlink(missing_ok=True)
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, -signal.SIGKILL if kill else 1, done.stderr)
        for _ in range(100):
            if trace.exists():
                break
            import time
            time.sleep(0.1)
        self.assertTrue(trace.exists(), done.stderr)
        return judge(trace)[1]

    def test_faults(self):
        for memory in ("guard", "pinned"):
            with self.subTest(memory):
                report = self.in_process(memory, 2)
                self.assertIn("illegal memory access", report)
                self.assertIn("s ", report)

    def test_killed(self):
        for mistake in (0, 3):
            with self.subTest(mistake):
                self.assertIn("the process ended while its kernel was captured", self.in_process("guard", mistake, True))


@unittest.skipUnless(shutil.which("nvcc"), "nvcc is not installed")
@unittest.skipUnless(torch is not None and torch.cuda.is_available(), "PyTorch with CUDA is not installed")
class Sequences(unittest.TestCase):
    """A library of CUDA code, called by ctypes: sequences one behind the other."""

    def test_varlen(self):
        import ctypes
        import attnscope
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder, "varlen.so")
            subprocess.run(["nvcc", "-arch=native", "-O3", "-DASC_MODE=1", "-cudart", "shared", "-shared", "-Xcompiler", "-fPIC",
                            "-I", ROOT / "build/include", "-o", library, ROOT / "tests/sequences/forward_varlen.cu"], check=True)
            forward = ctypes.CDLL(str(library))._Z14forward_varlenPKfS0_S0_PfS1_PKiS3_iiifb
            q_ends, k_ends = ([0, 100, 101, 165], [0, 200, 264, 271])
            cu = [torch.tensor(ends, dtype=torch.int32, device="cuda") for ends in (q_ends, k_ends)]
            q, k, v = (torch.randn(rows, 2, 64, device="cuda") for rows in (165, 271, 271))
            o, lse = torch.empty_like(q), torch.empty(3, 2, 100, device="cuda")
            with attnscope.capture(q, k, v, br=32, bc=32, layout="THD", cu_seqlens_q=cu[0], cu_seqlens_k=cu[1], causal=True,
                                   path=Path(folder, "t.st"), channels=("s",),  # others have probes in extensions that are loaded too
                                   conventions={"s_unit": "scaled", "empty_lse_negative": "-inf"}) as c:
                pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (q, k, v, o, lse, *cu)]
                forward(*pointers, 3, 2, 100, ctypes.c_float(0.125), ctypes.c_bool(True))
                c.result(o, lse)
            status, report = judge(c.path)
            self.assertEqual(status, 0, report)
            self.assertIn("varlen", report)


if __name__ == "__main__":
    tap.main()
