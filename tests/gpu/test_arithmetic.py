#!/usr/bin/env python3
"""Whose products a GPU computes, measured by attnscope-device on a driver that is none (fake_cuda.c), and what is made of
it: kept beside the builds, and no bits are asked for where it is unknown. tests/gpu/gpu_arithmetic.py asks a device."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "tests/faults"))
import hostile  # noqa: E402
import tap  # noqa: E402
sys.path.insert(0, str(Path(__file__).resolve().parent))
import fake_driver  # noqa: E402

ATTNSCOPE = Path(os.environ.get("ATTNSCOPE", ROOT / "build/attnscope"))
RECORDED = ROOT / "tests/recorded/clean-wmma.safetensors"
H200 = "f32 h100 h100-f16 wgmma-e4m3 mma-e4m3 wgmma-e4m3-f16 wgmma-e4m3-fadd"


class Arithmetic(fake_driver.WithDriver):
    def measured(self, cores, sm="90"):
        done = subprocess.run([ROOT / "build/attnscope-device", "arithmetic"], check=False, stdout=subprocess.PIPE,
                              env=dict(os.environ, LD_LIBRARY_PATH=self.folder, FAKE_CORES=cores, FAKE_SM=sm,
                                       FAKE_PTX=self.folder / f"ptx-{sm}"))
        return json.loads(done.stdout)["cores"]

    def test_each_model_is_recognized(self):
        self.assertEqual(self.measured("h100 h100-f16 mma-e4m3"), H200)
        self.assertEqual(self.measured("h100 h100-f16 mma-e4m3", "89"), "f32 h100 h100-f16 mma-e4m3")
        self.assertEqual(self.measured("a100 h100-f16 ada-e4m3", "89"), "f32 a100 h100-f16 ada-e4m3")
        self.assertEqual(self.measured("a100 h100-f16", "80"), "f32 a100 h100-f16")
        self.assertEqual(self.measured("h100-f16 wgmma-e4m3", "90"), "f32 h100-f16 wgmma-e4m3")

    def test_an_unknown_one_is_unknown(self):
        self.assertEqual(self.measured("", "90"), "f32")
        self.assertEqual(self.measured("h100", "75"), "f32")  # has none of the instructions

    def test_the_instructions_are_ptx(self):
        ptxas = shutil.which("ptxas", path=os.environ["PATH"] + ":/usr/local/cuda/bin")
        if not ptxas:
            self.skipTest("no ptxas here")
        self.measured("", "90")
        modules = (self.folder / "ptx-90").read_text(encoding="ascii").split("\0")[:4]
        for module in modules:
            target = re.search(r"\.target (sm_\d+)", module)[1]
            for architecture in {target, "sm_90a"}:
                file = self.folder / "module.ptx"
                file.write_text(module, encoding="ascii")
                subprocess.run([ptxas, f"-arch={architecture}", "-o", self.folder / "module.cubin", file], check=True)

    def test_a_device_is_measured_once(self):
        """A tree whose device is a script, and whose nvcc makes nothing."""
        root = self.folder / "tree"
        for part in ("build", "cuda/bin"):
            (root / part).mkdir(parents=True)
        for name in ("engine", "probes", "VERSION", "build/include"):
            (root / name).symlink_to(ROOT / name)
        shutil.copy(ATTNSCOPE, root / "build/attnscope")
        (root / "build/libdebuggee_gpu.a").touch()
        device = {"name": "NVIDIA A100", "major": 8, "minor": 0, "driver": 13000, "multiprocessors": 108,
                  "memory_bytes": 1 << 35, "shared_per_block_bytes": 166912}
        scripts = {"cuda/bin/nvcc": "exit 1",
                   "build/attnscope-device": f"[ \"$1\" = guard ] && exit 1\n[ \"$1\" ] || exec echo '{json.dumps(device)}'\necho $1 >>'{root}/asked'\n"
                                             f"cat '{root}/answer'"}
        for name, body in scripts.items():
            (root / name).write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
            (root / name).chmod(0o755)
        for answer, times in (('{"error": "busy"}', 1), ('{"cores": "f32 a100"}', 2), ('{"cores": "f32 h100"}', 2)):
            (root / "answer").write_text(answer + "\n", encoding="utf-8")
            subprocess.run([root / "build/attnscope", "run", "kernels/v2b_scalar.cu", "--backend", "gpu"], cwd=ROOT, check=False,
                           capture_output=True, env=dict(os.environ, CUDA_HOME=root / "cuda"), timeout=60)
            self.assertEqual((root / "asked").read_text(encoding="utf-8"), "arithmetic\n" * times)
        kept = [path.read_text(encoding="utf-8") for path in (root / "build/cache").glob("arithmetic-*NVIDIA-A100-sm_80-*")]
        self.assertEqual(kept, ['{"cores": "f32 a100"}\n'])

    def shown(self, cores):
        """What is said of a trace of a WMMA kernel on an H200, as if the device had computed these."""
        header, data = hostile.read(RECORDED)
        hostile.set_entry(header, "run", dict(hostile.entry(header, "run"), cores=cores))
        path = self.folder / "trace.safetensors"
        hostile.write(path, header, data)
        done = subprocess.run([ATTNSCOPE, "show", path, "--size", "160x40"], cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout

    def test_bits_are_asked_for_where_they_are_known(self):
        known = self.shown(H200)
        self.assertIn("arithmetic of this GPU: as h100", known)
        self.assertIn("bit-equal to h100", known)
        self.assertNotIn("arithmetic of this GPU", self.shown(""))

    def test_bounds_decide_where_it_is_unknown(self):
        unknown = self.shown("f32")
        self.assertIn("arithmetic of this GPU: unknown: bounds decide", unknown)
        self.assertIn("S: the arithmetic of this GPU is unknown: judged by bounds", unknown)
        self.assertNotIn("bit-equal", unknown)
        self.assertNotIn("bit-equal", self.shown("f32 a100"))


if __name__ == "__main__":
    tap.main()
