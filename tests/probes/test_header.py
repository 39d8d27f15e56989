#!/usr/bin/env python3
"""The attnscope.h that is made, as a file of a user's repository: it stands alone, it takes the names that a user's own
code has, and it brings no name but asc_ and ASC_."""

import json
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

HEADER = ROOT / "build/include/attnscope.h"
SIMT = ROOT / "engine/simt/include"
ONE_THREAD = ("-include", ROOT / "tests/probes/one_thread.h")
EXECUTOR = ("-I", SIMT, "-I", ROOT, "-include", SIMT / "simt_device.h", "-Wno-unknown-pragmas")
STRICT = ("-std=c++17", "-Wall", "-Wextra", "-Werror")
# What kernels and their headers call their own, as macros.
MACROS = ("A B C D E F G H K L M N O P Q R S T U V X AT BR BC BM BN COL COLS CHANNEL CONVENTION DEVICE DTYPE E4M3 F16 BF16 F32 "
          "HEAD_DIM INLINE KERNEL KEY LAUNCH LD MODE PER_KV PER_SLOT ROW ROWS ROWS_Q SCALE SHARED STAGE STAGES THREADS TILE "
          "TYPE UNROLL UNWRITTEN_16 WARP WARPS WARP_SIZE WS m l alpha scores").split()
# CUDA's own types are declared, so that ASC_TYPE may name them before their header is there.
DECLARED = {"__half", "__nv_bfloat16", "__nv_fp8_e4m3", "__nv_fp8_e5m2"}

OWN = """
enum class dtype { half, single };
enum Class { dtype_bytes, fragment, record };
struct channel { int kernel; };
enum { UNWRITTEN = 1, POISON = 2 };
"""
KERNEL = """
__global__ void attention(const float *x, float *out)
{
    __shared__ float tile[4][8];
    ASC_AT(blockIdx.z, blockIdx.y, blockIdx.x);
    float mine[2] = {x[0], x[1]}, sum = 0;
    tile[threadIdx.x % 4][0] = x[0];
    ASC_RECORD_SHARED(k, 0, a, 4, b, 8, tile[a][b]);
    ASC_RECORD_SHARED_BY(v, 0, a, 4, b, 8, threadIdx.x, 32, (void)0, tile[a][b]);
    for (int i = 0; i < 2; i++)
        sum += mine[i] + tile[0][i];
    ASC_RECORD(s, 0, e, 2, threadIdx.x, e, mine[e]);
    ASC_RECORD_ROW(m, 0, threadIdx.x, threadIdx.x == 0, sum);
    ASC_RECORD_ROW(l, 0, threadIdx.x, true, sum);
    out[0] = sum;
}

static const char *plan(const asc_problem *problem, asc_plan *plan)
{
    plan->br = plan->bc = 4;
    plan->threads = problem->dtype == ASC_F16 ? 32 : 64;
    return nullptr;
}

static const char *launch(const asc_problem *problem, void *stream)
{
    return ASC_LAUNCH(attention, dim3(1), dim3(32), 0, stream, static_cast<const float *>(problem->q), problem->lse);
}

ASC_KERNEL(attention)
{
    kernel.plan = plan;
    kernel.launch = launch;
    kernel.dtypes = ASC_SUPPORTS(F16) | ASC_SUPPORTS(BF16);
    kernel.layouts = ASC_SUPPORTS(BHLD);
}
"""
HOST = """
int rows(const asc_problem &problem)
{
    ASC_AT(0, 0, 0);
    return problem.q_len + static_cast<int>(asc_strides_of(&problem, 1, 2).row);
}
"""
DEFINED = "".join(f"#define {name} (7 *)\n" for name in MACROS)
BEFORE = OWN + DEFINED + '#include "attnscope.h"\n'
AFTER = '#include "attnscope.h"\n' + OWN + DEFINED


def run(*command, cwd=None):
    done = subprocess.run([str(part) for part in command], cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}\n{done.stderr[-4000:]}")
    return done.stdout


def names(node):
    """Of the declarations of a clang AST that are seen outside: of enumerations their enumerators too."""
    found = set()
    for inner in node.get("inner", ()):
        kind = inner.get("kind", "")
        if kind in ("LinkageSpecDecl", "EnumDecl"):
            found |= names(inner)
        if kind.endswith("Decl") and inner.get("name") and not inner.get("isImplicit"):
            found.add(inner["name"])
    return found


class Header(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = Path(self.folder.name)

    def file(self, name, text):
        path = self.path / name
        path.write_text(text, encoding="utf-8")
        return path

    def compilers(self):
        found = [name for name in ("g++", "clang++") if shutil.which(name)]
        self.assertTrue(found)
        return found

    def test_it_includes_nothing(self):
        """But in attnscope's own builds, where the executor and nvcc have included it before."""
        path = self.file("all.cu", '#include "attnscope.h"\n')
        for mode in (0, 1, 2):
            for compiler in self.compilers():
                text = run(compiler, "-std=c++17", "-E", *ONE_THREAD, f"-DASC_MODE={mode}", "-I", HEADER.parent, "-x", "c++", path)
                read = text[text.index(f'"{HEADER}"'):]
                self.assertEqual(set(re.findall(r'^# \d+ "(/[^"]*)"', read, re.M)) - {str(HEADER), str(path)}, set())
        self.assertEqual(re.findall(r"#include.*?>", HEADER.read_text(encoding="utf-8")), ["#include <exception>"])

    def test_its_macros_are_its_own(self):
        code = re.sub(r"/\*.*?\*/", "", HEADER.read_text(encoding="utf-8"), flags=re.S)
        found = re.findall(r"^[ \t]*#[ \t]*(?:define|undef)[ \t]+(\w+)", code, re.M)
        self.assertIn("ASC_AT", found)
        self.assertEqual([name for name in found if not name.startswith("ASC_")], [])

    def test_its_names_are_its_own(self):
        if not shutil.which("clang++"):
            self.skipTest("no clang++ here, which says what is declared")
        dump = ("clang++", "-std=c++17", "-fsyntax-only", "-Xclang", "-ast-dump=json", "-x", "c++", *ONE_THREAD,
                "-include", "exception", "-DASC_BUILD=1", "-I", HEADER.parent)
        without = names(json.loads(run(*dump, self.file("empty.cu", ""))))
        for mode in (0, 2):
            found = names(json.loads(run(*dump, f"-DASC_MODE={mode}", self.file("all.cu", '#include "attnscope.h"\n')))) - without
            self.assertLess({"asc_problem", "ASC_F16", "asc_lse", "asc_launch"}, found)
            self.assertEqual({name for name in found if not name.startswith(("asc_", "ASC_"))} - DECLARED, set())

    def test_a_file_without_device_code(self):
        for compiler in self.compilers():
            for mode in (0, 1):
                for text in (BEFORE, AFTER):
                    run(compiler, *STRICT, "-Wpedantic", f"-DASC_MODE={mode}", "-fsyntax-only", "-I", HEADER.parent,
                        self.file("host.cpp", text + HOST))

    def test_beside_the_kernel_it_needs_no_folder(self):
        shutil.copy(HEADER, self.path)
        for compiler in self.compilers():
            for mode in (0, 1, 2):
                for text in (BEFORE, AFTER):
                    run(compiler, *STRICT, f"-DASC_MODE={mode}", *EXECUTOR, "-fsyntax-only", "-x", "c++",
                        self.file("attention.cu", text + KERNEL))

    def test_with_nvcc(self):
        nvcc = find_nvcc()
        if not nvcc:
            self.skipTest("no nvcc here")
        shutil.copy(HEADER, self.path)
        for mode, text in ((0, BEFORE), (1, AFTER), (2, BEFORE)):
            run(nvcc, "-std=c++17", "-arch=sm_90", f"-DASC_MODE={mode}", "-Xcompiler", "-Wall,-Werror", "-c", "-o", "x.o",
                self.file("attention.cu", text + KERNEL), cwd=self.path)

    def test_a_kernel_launched_twice(self):
        """In a program of the user's own it is there with its probes and without; without probes, once."""
        nvcc = find_nvcc()
        if not nvcc:
            self.skipTest("no nvcc here")
        for mode, instances in ((0, {"0"}), (1, {"0", "1"})):
            run(nvcc, "-std=c++17", "-arch=sm_90", f"-DASC_MODE={mode}", "-I", HEADER.parent, "-ptx", "-o", "x.ptx",
                ROOT / "tests/host_code/fragments.cu", cwd=self.path)
            ptx = (self.path / "x.ptx").read_text(encoding="utf-8")
            self.assertEqual(set(re.findall(r"\.entry _Z9fragmentsILi16ELb([01])E", ptx)), instances)


if __name__ == "__main__":
    tap.main()
