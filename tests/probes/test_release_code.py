#!/usr/bin/env python3
"""Probes that are off leave nothing in a kernel's machine code: of kernels that come along, some or with `make test TESTS=all`
each, the instance of f16 (of e4m3, where it takes no f16) for head_dim 64, for sm_90. `make acceptance` takes every instance,
and sm_80 and sm_89 as well."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import tap  # noqa: E402
from kernels import choices, dtype_of  # noqa: E402
from release_code import KERNELS, Different, blanked, compare, find_nvcc  # noqa: E402

SMALL = '#include "attnscope.h"\n__global__ void small(float *x)\n{\n    ASC_AT(0, 0, 0);\n    x[0] = 1;\n}\n'


@unittest.skipUnless(find_nvcc(), "no nvcc here, so no machine code to compare")
class ReleaseCode(unittest.TestCase):
    def file(self, name, text):
        path = Path(self.folder.name) / name
        path.write_text(text, encoding="utf-8")
        return path

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def test_a_compiler_that_does_not_run_is_no_success(self):
        small = self.file("small.cu", SMALL)
        for body in ("exit 1", "exit 0", "echo nothing >small.cubin"):
            nvcc = self.file("nvcc", f"#!/bin/sh\n{body}\n")
            nvcc.chmod(0o755)
            with self.assertRaises(Different):
                compare(small, "sm_90a", nvcc=nvcc)
        compare(small, "sm_90a")

    def test_what_a_probe_leaves_behind_is_seen(self):
        left = SMALL.replace("ASC_AT(0, 0, 0)", "ASC_AT(0, 0, x[2] = 2)")
        with self.assertRaisesRegex(Different, "left something behind"):
            compare(self.file("small.cu", left), "sm_90a", ["-DASC_MODE=1"])
        with self.assertRaisesRegex(Different, "not all found"):
            compare(self.file("small.cu", SMALL.replace("ASC_AT(0, 0, 0);", "")), "sm_90a")

    def test_lines_stay_where_they_were(self):
        self.assertEqual(blanked("a;\nASC_RECORD(s, 1,\n  i, 2, x[i]);\nb;\n"), "a;\n;\n\nb;\n")


def case_of(kernel, define):
    one_instance = (f"-DASC_ONLY_DTYPE=ASC_{dtype_of(kernel.stem, define).upper()}", "-DASC_ONLY_HEAD_DIM=64",
                    *((f"-D{define}",) if define else ()))

    def run(self):
        try:
            compare(kernel, "sm_90a", one_instance, recording=kernel == KERNELS[0])
        except Different as reason:
            self.fail(str(reason))
    return run


for each, choice in tap.sampled(((each, choice) for each in KERNELS for choice in choices(each)), 8):
    setattr(ReleaseCode, f"test_{each.stem}_{choice}".rstrip("_"), case_of(each, choice))

if __name__ == "__main__":
    tap.main()
