#!/usr/bin/env python3
"""A kernel in two translation units, tests/probes/units: both record, a change in either is another build, a mistake in
either is said at its line. On the CPU; tests/gpu/gpu_patterns.py has the GPU."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402
from release_code import find_nvcc  # noqa: E402

ATTNSCOPE = os.environ.get("ATTNSCOPE", str(ROOT / "build/attnscope"))
WRAPPED = re.sub(r'"\s*"', "", re.search(r'names\[\] =\s*"([^;]*)";', (ROOT / "engine/build/build_gpu.c").read_text()).group(1))
GPU_LIBRARY = ROOT / "build/libdebuggee_gpu.a"


class Units(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "units"
        shutil.copytree(ROOT / "tests/probes/units", self.path)

    def run_it(self, *arguments):
        done = subprocess.run([ATTNSCOPE, "run", "units/attention.cu", "--backend", "cpu", "--shape", "1,2,50,64", *arguments],
                              cwd=self.path.parent, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def change(self, name, old, new):
        text = (self.path / name).read_text(encoding="utf-8")
        self.assertIn(old, text)
        (self.path / name).write_text(text.replace(old, new), encoding="utf-8")

    def test_both_files_record(self):
        for arguments in ((), ("--checks",), ("--probes", "off")):
            status, text = self.run_it(*arguments)
            self.assertEqual(status, 0, text)
        status, text = self.run_it()
        local = text.splitlines()[3].split()
        self.assertEqual(local, "local - ok - ok ok ok ok ok ok ok ok".split(), text)

    def test_both_files_are_fed(self):
        status, text = self.run_it("--isolate", "u")
        self.assertEqual(status, 0, text)
        self.assertIn("every stage is clean, isolated and in the ordinary run", text)

    def test_a_change_in_the_other_file_is_seen_and_said_there(self):
        self.assertEqual(self.run_it()[0], 0)
        self.change("scores.cu", "s *= scale;", "s *= scale * scale;")
        status, text = self.run_it()
        self.assertEqual(status, 1, text)
        line = 1 + (self.path / "scores.cu").read_text(encoding="utf-8").split("ASC_RECORD(s,")[0].count("\n")
        self.assertIn("scores are scaled twice", text)
        self.assertIn(f"probe at units/scores.cu:{line}", text)

    def test_an_error_in_the_other_file_is_said_there(self):
        self.change("scores.cu", "s *= scale;", "s *= scales;")
        line = 1 + (self.path / "scores.cu").read_text(encoding="utf-8").split("s *= scales;")[0].count("\n")
        status, text = self.run_it()
        self.assertEqual(status, 3, text)
        self.assertIn(f"units/scores.cu:{line}", text)

    def test_what_only_a_gpu_can_run_is_said_there(self):
        self.change("scores.cu", "s *= scale;", 's *= scale; asm volatile("tcgen05.wait::ld.sync.aligned;");')
        line = 1 + (self.path / "scores.cu").read_text(encoding="utf-8").split("tcgen05")[0].count("\n")
        status, text = self.run_it()
        self.assertEqual(status, 3, text)
        self.assertIn(f"units/scores.cu:{line}", text)
        self.assertIn("GPU only", text)

    def test_a_file_that_is_not_there(self):
        self.change("attention.cu", '"scores.cu"', '"scores.cu", "nowhere.cu"')
        status, text = self.run_it()
        self.assertEqual(status, 3, text)
        self.assertIn("units/nowhere.cu", text)
        self.assertIn("ASC_SOURCES", text)

    def test_an_instance_that_is_in_no_file(self):
        """It links, since the call may never happen; where it does, its name is said. What a library has stays the library's.
        What is no instance is a link error."""
        self.change("attention.cu", "    const char *failed = ",
                    "    if (problem->q_len == 51)\n        nowhere<float, 3>(*problem);\n"
                    "    nowhere<float, 4>(*problem);\n    const char *failed = ")
        self.change("attention.cu", "static const char *plan", "template <class T, int N> void nowhere(const asc_problem &);\n"
                    "static const char *plan")
        (self.path / "here.cpp").write_text("struct asc_problem;\ntemplate <class T, int N> void nowhere(const asc_problem &) {}\n"
                                            "template void nowhere<float, 4>(const asc_problem &);\n", encoding="utf-8")
        subprocess.run(["g++", "-shared", "-fPIC", "-o", self.path / "libhere.so", self.path / "here.cpp"], check=True)
        library = [f"--flag={flag}" for flag in (f"-L{self.path}", "-lhere", f"-Wl,-rpath,{self.path}")]
        status, text = self.run_it(*library)
        self.assertEqual(status, 0, text)
        status, text = self.run_it("--set", "shape.q_len=51", *library)
        self.assertEqual(status, 3, text)
        self.assertIn("void nowhere<float, 3> is called, and no file that is linked has it", text)
        self.change("attention.cu", "template <class T, int N> void nowhere(const asc_problem &);", "extern int nowhere;")
        self.change("attention.cu", "nowhere<float, 3>(*problem)", "nowhere++")
        self.change("attention.cu", "    nowhere<float, 4>(*problem);\n", "")
        status, text = self.run_it()
        self.assertEqual(status, 3, text)
        self.assertIn("undefined reference to `nowhere'", text)

    def test_a_name_of_a_file_in_parts(self):
        self.change("attention.cu", '"scores.cu"', '"sco" ASC_TEXT(WHICH) ".cu"')
        self.assertEqual(self.run_it("-D", "WHICH=res")[0], 0)
        status, text = self.run_it("-D", "WHICH=pe")
        self.assertEqual(status, 3, text)
        self.assertIn("units/scope.cu", text)

    def test_a_copy_of_the_header(self):
        shutil.copy(ROOT / "build/include/attnscope.h", self.path)
        self.assertEqual(self.run_it()[0], 0)
        header = (self.path / "attnscope.h").read_text(encoding="utf-8")
        version = int(re.search(r"#define ASC_ABI_VERSION (\d+)", header)[1])
        self.change("attnscope.h", f"#define ASC_ABI_VERSION {version}", "#define ASC_ABI_VERSION 4242")
        status, text = self.run_it()
        self.assertEqual(status, 3, text)
        self.assertIn(f"an attnscope.h of ABI version 4242, this attnscope has version {version}", text)

    def test_with_nvcc(self):
        nvcc = find_nvcc()
        if not nvcc or not GPU_LIBRARY.exists():
            self.skipTest("no nvcc here")
        objects = []
        for name in ("attention", "scores"):
            objects.append(str(self.path / f"{name}.o"))
            self.tool(nvcc, "-std=c++17", "-arch=sm_90", "-rdc=false", "-DASC_MODE=1", "-DASC_BUILD=1", "-I",
                      str(ROOT / "build/include"), "-c", "-o", objects[-1], str(self.path / f"{name}.cu"))
        self.tool("ld", "-r", "--unique", "-o", str(self.path / "kernel.o"), *objects)
        self.tool(nvcc, "-arch=sm_90", "-o", str(self.path / "program"), str(self.path / "kernel.o"), "-Xlinker",
                  WRAPPED, str(GPU_LIBRARY), "-L", str(ROOT / "build"), "-ljansson", "-lpthread",
                  "-ldl", "-lm")
        symbols = self.tool("nm", str(self.path / "program"))
        self.assertEqual(symbols.count("asc_module_here"), 2)
        self.assertEqual(symbols.count("__sti____cudaRegisterAll"), 2)

    def tool(self, *command):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout


if __name__ == "__main__":
    tap.main()
