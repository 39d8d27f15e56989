"""A kernel whose warps are specialised leaves the bits of itself without producers, however many of them there are."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ATTNSCOPE = os.environ.get("ATTNSCOPE", str(ROOT / "build/attnscope"))
KERNELS = ("fp16_mma", "fp8_sim")  # WS=0, if nothing is said


def attnscope(*arguments):
    done = subprocess.run([ATTNSCOPE, *arguments], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=250, check=False)
    return done.returncode, done.stdout


class SameBits(unittest.TestCase):
    """Each case is shape, keys and values of WS, on one backend."""

    backend = "cpu"

    def record(self, folder, kernel, shape, keys, *more):
        path = f"{folder}/{len(os.listdir(folder))}.safetensors"
        settings = [word for key in keys for word in ("--set", key)]
        status, text = attnscope("run", f"kernels/{kernel}.cu", "--backend", self.backend, "--shape", shape, "--save", path,
                                 *settings, *more)
        self.assertEqual((status, "CLEAN" in text), (0, True), text)
        return path

    def same_bits(self, kernel, shape, *keys, producers):
        with tempfile.TemporaryDirectory() as folder:
            without = self.record(folder, kernel, shape, keys)
            for ws in producers:
                path = self.record(folder, kernel, shape, keys, "-D", f"WS={ws}")
                status, text = attnscope("diff", "--exact", without, path)
                self.assertEqual(status, 0, text)
                self.assertIn("identical: the same bits in everything both runs recorded", text)
                self.assertIn(f"{kernel} WS={ws}, {self.backend}, complete", text)
