"""What the tests of FlashAttention's published kernels share: a copy of its headers with probes, and runs of it."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402, F401

ATTNSCOPE = os.environ.get("ATTNSCOPE", str(ROOT / "build/attnscope"))


def indented(line, more):
    indent = line[:len(line) - len(line.lstrip())]
    return [indent + one for one in more]


def add_lines(text, before, behind):
    """Lines before and behind those that begin as the tables' keys say."""
    new = []
    for line in text.splitlines():
        begins = line.strip().startswith
        new += [one for start, more in before.items() if begins(start) for one in indented(line, more)]
        new.append(line)
        new += [one for start, more in behind.items() if begins(start) for one in indented(line, more)]
    return "\n".join(new) + "\n"


def change(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text, old
    path.write_text(text.replace(old, new), encoding="utf-8")


class Sources(unittest.TestCase):
    """kernel: the file beside the tests; backend: where it runs; includes: folders behind the copy of the headers."""
    kernel, backend, includes, flags = "", "cpu", (), ""

    def copy_headers(self, *patterns):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name)
        self.copy = self.path / "src"
        self.copy.mkdir()
        for pattern in patterns:
            for name in pattern.parent.glob(pattern.name):
                shutil.copy(name, self.copy)
        shutil.copy(ROOT / "tests/production" / self.kernel, self.path)

    def scenario(self, keys, defines="", planted=0):
        """The name of a scenario beside the kernel."""
        includes = " ".join(str(folder).replace(" ", "\\ ") for folder in ("src", *self.includes))
        if self.backend == "gpu" and planted:
            defines += f" FLASH_PLANTED={planted}"
        name = f"run{planted}.ini"
        (self.path / name).write_text(
            f"[scenario]\nkernel = {self.kernel}\ninclude = {includes}\n" + (f"flags = {self.flags}\n" if self.flags else "") +
            (f"define = {defines.strip()}\n" if defines else "") + keys + "\n", encoding="utf-8")
        return name

    def run_it(self, keys, *arguments, defines="", planted=0):
        done = subprocess.run([ATTNSCOPE, "run", self.scenario(keys, defines, planted), "--backend", self.backend, "--no-retry", *arguments],
                              cwd=self.path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              env={**os.environ, "FLASH_PLANTED": str(planted)})
        return done.returncode, done.stdout + done.stderr

    def clean(self, keys, *arguments, defines="", exact=True, marks=r"(ok +){11}|local +(ok +){9}- +ok", tensor_core="h100"):
        status, text = self.run_it(keys, *arguments, defines=defines)
        self.assertEqual(status, 0, text)
        self.assertRegex(text, rf"local +{marks}", text)
        for stage in ("S", "U") if exact else ():
            self.assertIn(f"{stage}: bit-equal to {tensor_core}", text)
        return text

    def plant(self, mistakes):
        """(header, what stands in it, what takes its place: # is whether this mistake is made, what is said of it)"""
        for number, (file, old, new, _) in enumerate(mistakes, 1):
            change(self.copy / file, old, new.replace("#", f"(planted == {number})"))

    def each_is_found(self, mistakes, run):
        """run(number) gives status and text. On a GPU each is a build of its own."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            said = pool.map(run, range(1, len(mistakes) + 1))
            for (_, old, _, stage), (status, text) in zip(mistakes, said):
                with self.subTest(old):
                    self.assertEqual(status, 1, text)
                    self.assertIn(f"{stage} is the first bad stage", text)
