#!/usr/bin/env python3
"""The Python package: what it says of runs and traces, its errors, the examples of docs/python.md, pytest's plugin; and the
wheel, installed into an empty environment, with g++ alone."""

import ctypes
import doctest
import importlib.util
import math
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BUILD", ROOT / "build")).resolve()
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python")]
os.environ.update(ATTNSCOPE_BACKEND="cpu", PYTHONDONTWRITEBYTECODE="1")
import attnscope  # noqa: E402
import tap  # noqa: E402
from attnscope import arrays, programs, safetensors  # noqa: E402

programs._candidates = lambda: [BUILD / "attnscope"]
TRACE = ROOT / "tests/recorded/double-scale.safetensors"
KERNEL = ROOT / "kernels/v2b_scalar.cu"


def command(*words, **options):
    return subprocess.run(list(map(str, words)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=200, check=False, **options)


class Half:
    """float16 values with __array_interface__, as numpy has them."""

    def __init__(self, data, shape):
        self.kept = ctypes.create_string_buffer(data, len(data))
        self.__array_interface__ = {"version": 3, "typestr": "<f2", "shape": shape, "strides": None,
                                    "data": (ctypes.addressof(self.kept), False)}


def needs(module):
    """A test that imports a module: here, or in the distribution's Python where that alone has it."""
    def decorate(test):
        if importlib.util.find_spec(module):
            return test
        other = "/usr/bin/python3"
        if not os.access(other, os.X_OK) or command(other, "-c", f"import {module}").returncode != 0:
            return unittest.skip(f"no {module}")(test)

        def elsewhere(self):
            done = command(other, __file__, f"{type(self).__name__}.{test.__name__}")
            self.assertRegex(done.stdout, r"(?m)^ok 1 - [^#]*$", done.stdout)
        return elsewhere
    return decorate


def flat(array):
    values = array.tolist()
    while values and isinstance(values[0], list):
        values = [value for part in values for value in part]
    return values


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.run_of_trace = attnscope.load(TRACE)

    def refused(self, words, call, *arguments, **options):
        with self.assertRaises(attnscope.Error) as caught:
            call(*arguments, **options)
        self.assertIn(words, str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))

    def test_own_arrays(self):
        values = [math.sin(i * i) for i in range(2 * 50 * 64)]
        q = memoryview(struct.pack(f"<{len(values)}f", *values)).cast("B").cast("f", [1, 2, 50, 64])
        half = Half(struct.pack(f"<{64 * 30}e", *values[:64 * 30]), (1, 1, 30, 64))
        kernel = ROOT / "tests/terms/paged.cu"
        run = attnscope.run(kernel, q, half, half, bias=memoryview(struct.pack("<1500f", *values[:1500])).cast("B").cast(
            "f", [50, 30]), settings={"shape.causal": "bottom-right"})
        self.assertEqual(bool(run.clean), True, run.clean)
        s = run.want("q")
        self.assertEqual([flat(s)[i] for i in (0, 777)],
                         [struct.unpack("<e", struct.pack("<e", values[i]))[0] for i in (0, 777)])
        again = attnscope.run(kernel, inputs=run.trace)
        self.assertEqual(again.report["inputs"]["hash"], run.report["inputs"]["hash"])
        self.assertEqual(again.report["problem"]["bias_kind"], "shared")
        self.refused("2 heads; expected 1", attnscope.run, KERNEL, half, half, q)

    def test_a_trace_says_what_is_wrong(self):
        run = self.run_of_trace
        self.assertEqual((run.verdict, run.first.channel, bool(run.clean)), ("FAIL", "s", False))
        self.assertEqual([(f.channel, f.cause) for f in run.findings], [("s", "scaled-twice")])
        self.assertIn("scores are scaled twice", repr(run.clean))

    def test_values_agree_with_the_verdict(self):
        run = self.run_of_trace
        for channel in run.channels:
            for local in (False, True):
                stage = run.report["stages"][channel]["local" if local else "global"]
                want, bound = flat(run.want(channel, local)), flat(run.bound(channel, local))
                off = sum(not (g == w or abs(g - w) <= b) for g, w, b in zip(flat(run[channel]), want, bound) if not
                          (math.isnan(w) or math.isnan(g)))
                if channel in ("m", "s", "lse"):
                    self.assertEqual(off, stage["bad"], (channel, local))
                self.assertEqual(off == 0, stage["bad"] == 0, (channel, local))

    def test_values_are_where_the_trace_has_them(self):
        trace = safetensors.File(TRACE)
        self.addCleanup(trace.close)
        slots, kv_tiles, br, bc = trace.tensors["channel.s"]["shape"]
        places = trace.values("slot", 0, 3 * slots)
        s = self.run_of_trace["s"]
        for slot in range(slots):
            b, h, q = places[3 * slot:3 * slot + 3]
            for kv in range(kv_tiles):
                for r, c in ((0, 0), (br - 1, 3), (7, bc - 1)):
                    if q * br + r >= s.shape[2] or kv * bc + c >= s.shape[3]:
                        continue
                    here, = trace.values("channel.s", ((slot * kv_tiles + kv) * br + r) * bc + c, 1)
                    self.assertEqual(s[b, h, q * br + r, kv * bc + c], here)

    def test_what_was_not_recorded_is_nan(self):
        run = attnscope.load(ROOT / "tests/recorded/illegal-address.safetensors")
        self.assertEqual((run.verdict, bool(run.clean)), ("CRASHED", False))
        self.assertTrue(any(map(math.isnan, flat(run["s"]))))
        self.assertIn("illegal", repr(run.clean))

    def test_a_clean_kernel(self):
        run = attnscope.run(KERNEL, shape=(1, 1, 64, 64), settings={"shape.causal": "top-left"})
        self.assertEqual((run.verdict, run.findings, run.first, repr(run.clean)), ("CLEAN", [], None, "clean"))
        self.assertTrue(run.clean)
        self.assertEqual(run.report["problem"]["causal"], "top-left")
        kept = run.save(os.path.join(self.folder.name, "kept.safetensors"))
        trace = run.trace
        del run
        self.assertFalse(os.path.exists(trace))
        self.assertTrue(attnscope.load(kept).clean)

    def test_screens(self):
        self.assertIn("scores are scaled twice", self.run_of_trace.screen())
        self.assertTrue(self.run_of_trace._repr_mimebundle_()["image/svg+xml"].startswith("<svg"))

    def test_bad_input_is_one_line(self):
        self.refused("/no/such: No such file", attnscope.load, "/no/such")
        self.refused("is not a safetensors file", attnscope.load, __file__)
        self.refused("cannot read the kernel", attnscope.run, "none.cu")
        self.refused("shape", attnscope.run, KERNEL, shape=(1, 2))
        self.refused("no channel is named 'x'", self.run_of_trace.__getitem__, "x")
        self.refused("expected one of overview", self.run_of_trace.screen, view="x")
        self.refused("cannot be written", self.run_of_trace.save, "/no/such/folder")
        self.refused("q: expected an array", attnscope.run, KERNEL, [1], [1], [1])
        self.refused("inputs.k: expected a file of k", attnscope.run, KERNEL, memoryview(b"1"))
        self.refused("cannot be started", attnscope.run, "a\0b.cu")

    def test_damaged_files_are_one_line(self):
        whole = TRACE.read_bytes()[:4096]
        path = Path(self.folder.name, "damaged.safetensors")
        for text in (b"", whole[:5], whole, b"\x02" + 7 * b"\0" + b"[]", b"\x0b" + 7 * b"\0" + b'{"a":"bcd"}',
                     b"\x02" + 7 * b"\0" + b"{}x"):
            path.write_bytes(text)
            self.refused("is not a safetensors file", attnscope.load, path)

    def test_arrays_of_any_kind_are_taken(self):
        numbers = (ctypes.c_float * 6)(*range(6))
        expected = bytes(numbers)
        self.assertEqual(arrays.take("q", memoryview(numbers).cast("B").cast("f", [2, 3])), ("F32", [2, 3], expected))

        class Interface:
            __array_interface__ = {"typestr": "<f4", "shape": (3, 2), "strides": (4, 12), "version": 3,
                                   "data": (ctypes.addressof(numbers), False)}

        dtype, shape, data = arrays.take("q", Interface())
        self.assertEqual((dtype, shape), ("F32", [3, 2]))
        self.assertEqual(memoryview(data).cast("f").tolist(), [0, 3, 1, 4, 2, 5])
        Interface.__array_interface__ = dict(Interface.__array_interface__, typestr="<i4")
        self.refused("elements of type <i4", arrays.take, "q", Interface())

    @needs("numpy")
    def test_arrays_of_numpy_are_taken(self):
        import numpy
        array = numpy.arange(24).reshape(2, 3, 4)
        for kind, dtype in (("f2", "F16"), ("f4", "F32"), ("f8", "F64"), ("u1", "U8")):
            for view in (array.astype(kind), array.astype(kind).T, array.astype(kind)[:, ::2]):
                self.assertEqual(arrays.take("q", view), (dtype, list(view.shape), view.tobytes()))
        self.refused("elements of type", arrays.take, "q", array.astype("i4"))
        self.refused("elements of type", arrays.take, "q", array.astype(">f4"))
        self.assertEqual(self.run_of_trace["s"].dtype, numpy.float64)

    @needs("numpy")
    def test_a_kernel_runs_on_arrays_of_numpy(self):
        import numpy
        random = numpy.random.default_rng(5)
        q, k, v = (random.standard_normal((1, heads, rows, 64)).astype("f2") for heads, rows in ((2, 70), (1, 90), (1, 90)))
        run = attnscope.run(KERNEL, q, numpy.asfortranarray(k), v[:, :, ::1])
        self.assertTrue(run.clean, run.clean)
        self.assertTrue(numpy.array_equal(run["q"], q.astype("f8")))
        s = q.astype("f8") @ k.astype("f8").repeat(2, 1).transpose(0, 1, 3, 2) / 8
        weights = numpy.exp(s - s.max(-1, keepdims=True))
        want = weights @ v.astype("f8").repeat(2, 1) / weights.sum(-1, keepdims=True)
        self.assertLess(numpy.abs(run.want("o") - want).max(), 1e-12)
        numpy.savez(os.path.join(self.folder.name, "in.npz"), q=q, k=k, v=v)
        again = attnscope.run(KERNEL, inputs=os.path.join(self.folder.name, "in.npz"))
        self.assertEqual(again.report["inputs"]["hash"], run.report["inputs"]["hash"])

    @needs("numpy")
    def test_sequences_and_pages_of_numpy(self):
        import numpy
        random = numpy.random.default_rng(6)
        q, pages_k, pages_v = (random.standard_normal(shape).astype("f2") for shape in ((7, 2, 64), (6, 16, 1, 64), (6, 16, 1, 64)))
        table = [[5, 2], [0, -1]]
        run = attnscope.run(ROOT / "kernels/varlen_paged.cu", q, pages_k, pages_v, cu_seqlens_q=numpy.array([0, 3, 7], "i4"),
                            kv_lens=[20, 9], page_table=table, layout="BLHD")
        self.assertTrue(run.clean, run.clean)
        k = numpy.concatenate([pages_k[5], pages_k[2]])[:20, 0].astype("f8")
        self.assertLess(numpy.abs(run.want("s")[0, 1, :3, :20] - q[:3, 1].astype("f8") @ k.T / 8).max(), 1e-12)
        with self.assertRaisesRegex(attnscope.Error, "page_table: expected whole numbers"):
            attnscope.run(KERNEL, q, pages_k, pages_v, page_table=[[1], [2, 3]])

    @needs("torch")
    def test_arrays_of_torch_are_taken(self):
        import torch
        tensor = torch.arange(24.).reshape(2, 3, 4).to(torch.bfloat16)
        dtype, shape, data = arrays.take("q", tensor.transpose(0, 1))
        self.assertEqual((dtype, shape, len(data)), ("BF16", [3, 2, 4], 48))

    def test_files_are_read_as_they_were_written(self):
        path = os.path.join(self.folder.name, "written.safetensors")
        safetensors.write(path, {"a": ("U8", [3], b"abc"), "b": ("F64", [1, 2], bytes(16))})
        file = safetensors.File(path)
        self.addCleanup(file.close)
        self.assertEqual((file.values("a", 1, 2), file.values("b", 0, 2)), ([98, 99], [0.0, 0.0]))
        self.refused("has no elements", file.values, "a", 2, 2)
        self.refused("no tensor c", file.values, "c", 0, 1)

    def test_a_kernel_runs_with_the_callers_arrays(self):
        numbers = memoryview((ctypes.c_float * (64 * 64))(*[i % 7 / 8 for i in range(64 * 64)])).cast("B")
        values = numbers.cast("f", [1, 1, 64, 64])
        run = attnscope.run(KERNEL, values, values, values)
        self.assertEqual(run["q"][0, 0, 0, 3], 0.375)
        self.assertTrue(run.clean, run.clean)

    def test_the_examples_of_the_page(self):
        here = os.getcwd()
        os.chdir(self.folder.name)
        self.addCleanup(os.chdir, here)
        failed, tried = doctest.testfile(str(ROOT / "docs/python.md"), module_relative=False)
        self.assertEqual(failed, 0)
        self.assertGreater(tried, 10)

    def test_the_example_of_the_package(self):
        os.chdir(ROOT)
        self.assertEqual(doctest.testmod(attnscope)[0], 0)

    @needs("pytest")
    def test_a_failed_test_says_the_finding(self):
        folder = Path(self.folder.name, "suite")
        folder.mkdir()
        (folder / "test_it.py").write_text(f"def test_bad(attnscope):\n    assert attnscope.load({str(TRACE)!r}).clean\n")
        done = command(sys.executable, "-m", "pytest", "-p", "attnscope.pytest_plugin", "-p", "no:cacheprovider",
                       "--junit-xml=out.xml", cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertRegex(done.stdout, r"AssertionError: assert .*scores are scaled twice")
        self.assertIn("trace: ", done.stdout)
        for said in ("scores are scaled twice", "first bad S", "trace: "):
            self.assertIn(said, (folder / "out.xml").read_text(encoding="utf-8"))


@unittest.skipUnless(BUILD == ROOT / "build", "the wheel is of a release build")
@unittest.skipUnless(importlib.util.find_spec("ensurepip"), "no ensurepip")
@unittest.skipUnless(shutil.which("dpkg-query"), "no dpkg-query")
class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        done = command("make", "wheel", cwd=ROOT)
        if done.returncode != 0:
            raise AssertionError(done.stdout)
        cls.wheel = ROOT / re.search(r"WHEEL (\S+)", done.stdout).group(1)
        for step in ((sys.executable, "-m", "venv", cls.folder / "venv"),
                     (cls.folder / "venv/bin/python", "-m", "pip", "install", "--no-index", "--no-deps", cls.wheel)):
            done = command(*step)
            if done.returncode != 0:
                raise AssertionError(done.stdout)
        tools = cls.folder / "tools"  # what g++ starts is beside it or in PATH
        tools.mkdir()
        for tool in ("g++", "as", "ld"):
            (tools / tool).symlink_to(shutil.which(tool))
        cls.environment = {"PATH": f"{cls.folder}/venv/bin:{tools}", "HOME": str(cls.folder / "home"), "LANG": "C.UTF-8"}

    def here(self, *words):
        empty = Path(tempfile.mkdtemp(dir=self.folder))
        return command(*words, cwd=empty, env=self.environment)

    def test_a_scenario_runs_in_an_empty_folder(self):
        done = self.here(self.folder / "venv/bin/attnscope", "scenarios/bugs/double-scale.ini")
        self.assertIn("S: scores are scaled twice", done.stdout)
        self.assertNotIn(str(ROOT), done.stdout)

    def test_the_package_finds_its_program(self):
        done = self.here(self.folder / "venv/bin/python", "-c", "import attnscope; print(attnscope.program()); "
                         "print(attnscope.run('scenarios/bugs/double-scale.ini', shape=(1, 1, 64, 64)).findings[0].cause)")
        self.assertEqual(done.stdout.split(), [str(self.folder / "venv/bin/attnscope"), "scaled-twice"])

    def test_only_the_system_is_linked_dynamically(self):
        for program in ("bin/attnscope", "lib/attnscope/attnscope-device"):
            linked = set(re.findall(r"^\s*(?:/\S*/)?([a-z+-]+[\w+-]*)\.so", command("ldd", self.folder / "venv" / program).stdout,
                                    re.MULTILINE))
            self.assertLessEqual({"libc"}, linked)
            self.assertLessEqual(linked, {"libc", "libm", "libstdc++", "libgcc_s", "libpthread", "libdl", "linux-vdso",
                                          "ld-linux-x86-64", "ld-linux-aarch"})

    def test_licences_and_header_are_there(self):
        info, = self.folder.glob("venv/lib/python3*/site-packages/attnscope-*.dist-info")
        for name in ("LICENSE", "ncursesw.txt", "tinfo.txt", "jansson.txt", "inih.txt", "xxhash.txt", "minizip.txt", "z.txt"):
            self.assertIn("opyright", (info / "licenses" / name).read_text(encoding="utf-8"), name)
        self.assertTrue((self.folder / "venv/include/attnscope.h").is_file())
        self.assertTrue((info.parent / "attnscope/py.typed").is_file())


if __name__ == "__main__":
    tap.main()
