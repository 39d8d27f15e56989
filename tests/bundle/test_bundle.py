#!/usr/bin/env python3
"""Bundles: what is packed suffices to see and to repeat a failure; opening one runs nothing unasked, and a hostile one is
refused in one line before anything is written."""

import io
import json
import os
import pty
import stat
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BUILD", ROOT / "build")).resolve()
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/monkey"), str(ROOT / "tests/inputs")]
import arrays  # noqa: E402
import tap  # noqa: E402
from terminal import Terminal  # noqa: E402

PROGRAM = BUILD / "attnscope"
SCENARIO = """[scenario]
kernel = kernels/it's $(k).cu
include = headers
patch = fix.patch
[shape]
heads = 2
q_len = 128
kv_len = 64
"""
PATCH = (ROOT / "scenarios/bugs/double-scale.patch").read_text(encoding="utf-8")
FILES = ["manifest.json", "repro.sh", "scenario.ini", "verdict.json", "source/headers/ladder.cuh",
         "source/kernels/it's $(k).cu", "patch/fix.patch", "trace.safetensors"]


def tensor(path, name):
    """Its shape and bytes."""
    data = path.read_bytes()
    n = int.from_bytes(data[:8], "little")
    about = json.loads(data[8:8 + n])[name]
    return about["shape"], data[8 + n:][slice(*about["data_offsets"])]


class Bundles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        cls.folder = Path(holder.name)
        cls.cache = cls.folder / "cache"
        cls.env = {**os.environ, "ATTNSCOPE_BACKEND": "cpu", "ATTNSCOPE_PROGRESS": "no", "LC_ALL": "C.UTF-8",
                   "ATTNSCOPE_CACHE": str(cls.cache), "TERM": "xterm-256color", "ATTNSCOPE": str(PROGRAM)}
        for name in ("kernels", "headers"):
            (cls.folder / name).mkdir()
        (cls.folder / "kernels/it's $(k).cu").write_bytes((ROOT / "kernels/v2b_scalar.cu").read_bytes())
        (cls.folder / "headers/ladder.cuh").write_bytes((ROOT / "kernels/ladder.cuh").read_bytes())
        (cls.folder / "fix.patch").write_text(PATCH, encoding="utf-8")
        (cls.folder / "s.ini").write_text(SCENARIO, encoding="utf-8")
        cls.made = cls.command("bundle", "s.ini", "--yes")
        with zipfile.ZipFile(cls.folder / "s.bundle.zip") as bundle:
            bundle.extractall(cls.folder / "out")
        (cls.folder / "out/repro.sh").chmod(0o755)

    @classmethod
    def command(cls, *words, program=PROGRAM, **more):
        done = subprocess.run([program, *map(str, words)], cwd=cls.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=100, check=False, **{"env": cls.env, **more})
        return done.returncode, done.stdout, done.stderr

    def refused(self, expected, *words):
        status, out, err = self.command(*words)
        self.assertEqual((status, out, err.count("\n")), (2, "", 1), err)
        self.assertIn(expected, err)

    def nothing_unpacked(self):
        self.assertEqual([p.name for p in self.cache.glob("work.*")], [])

    def test_packs_what_another_person_needs(self):
        self.assertEqual((self.made[0], self.made[2]), (0, ""), self.made)
        with zipfile.ZipFile(self.folder / "s.bundle.zip") as bundle:
            self.assertEqual(bundle.namelist(), FILES)
            self.assertEqual({i.date_time for i in bundle.infolist()}, {(1980, 1, 1, 0, 0, 0)})
            manifest = json.loads(bundle.read("manifest.json"))
            self.assertEqual(json.loads(bundle.read("verdict.json"))["verdict"], "FAIL")
        self.assertEqual((manifest["version"], manifest["verdict"], manifest["source"]), (1, "FAIL", None))
        self.assertTrue(manifest["build"]["compiler"])
        for name in FILES:
            self.assertIn(name, self.made[1])
        status, out, _ = self.command("bundle", "--list", "s.bundle.zip")
        self.assertEqual(status, 0)
        self.assertTrue(all(name in out for name in FILES), out)

    def test_the_same_trace_gives_the_same_bytes(self):
        for name in ("1.zip", "2.zip"):
            self.assertEqual(self.command("bundle", "out/trace.safetensors", "--yes", "-o", name)[0], 0)
        self.assertEqual((self.folder / "1.zip").read_bytes(), (self.folder / "2.zip").read_bytes())

    def test_opening_builds_nothing(self):
        status, out, err = self.command("run", "s.bundle.zip", env={**self.env, "PATH": "/nowhere"})
        self.assertEqual((status, err), (1, ""), out)
        self.assertIn("scores are scaled twice", out)
        self.nothing_unpacked()

    def test_the_script_repeats_the_failure(self):
        status, out, err = self.command(program=self.folder / "out/repro.sh")
        self.assertEqual((status, err), (1, ""), out)
        self.assertIn("scores are scaled twice", out)

    def test_a_large_trace_is_packed_with_its_failing_slots(self):
        status, out, _ = self.command("bundle", "out/trace.safetensors", "--yes", "-o", "small.zip", "--limit", "200KiB")
        self.assertEqual(status, 0, out)
        with zipfile.ZipFile(self.folder / "small.zip") as bundle:
            slots = json.loads(bundle.read("manifest.json"))["slots"]
            bundle.extract("trace.safetensors", self.folder / "small")
        self.assertGreater(slots["recorded"], slots["packed"])
        self.assertEqual(tensor(self.folder / "small/trace.safetensors", "slot")[0], [slots["packed"], 3])
        status, out, _ = self.command("run", "small.zip")
        self.assertEqual(status, 1)
        self.assertIn("scores are scaled twice", out)

    def test_inputs_of_files_are_those_of_the_trace(self):
        q, k, v = (arrays.draw(seed, 1, 1, 70, 64) for seed in (1, 2, 3))
        given = {"q": q, "k": k, "v": v}
        (self.folder / "in.npz").write_bytes(
            arrays.npz({n: arrays.npy("<f2", s, arrays.pack(x, "e")) for n, (x, s) in given.items()}))
        (self.folder / "i.ini").write_text(SCENARIO.split("[shape]", maxsplit=1)[0] + "[inputs]\nfrom = in.npz\nq_rows = 0:64\n",
                                           encoding="utf-8")
        self.assertEqual(self.command("bundle", "i.ini", "--yes")[0], 0)
        with zipfile.ZipFile(self.folder / "i.bundle.zip") as bundle:
            self.assertIn("from = trace.safetensors", bundle.read("scenario.ini").decode())
            self.assertNotIn("q_rows", bundle.read("scenario.ini").decode())
            bundle.extractall(self.folder / "inputs")
        (self.folder / "inputs/repro.sh").chmod(0o755)
        status, out, _ = self.command("-o", "again.safetensors", program=self.folder / "inputs/repro.sh")
        self.assertEqual(status, 1, out)
        for name in ("input.q", "input.k", "output.o"):
            self.assertEqual(tensor(self.folder / "inputs/trace.safetensors", name),
                             tensor(self.folder / "inputs/again.safetensors", name))

    def test_a_run_that_does_not_build_is_packed_without_a_trace(self):
        (self.folder / "bad.cu").write_text('#include "attnscope.h"\nint x = y;\n', encoding="utf-8")
        status, _, err = self.command("bundle", "bad.cu", "--yes")
        self.assertEqual((status, err), (0, ""))
        with zipfile.ZipFile(self.folder / "bad.bundle.zip") as bundle:
            self.assertNotIn("trace.safetensors", bundle.namelist())
            self.assertIn("y", json.loads(bundle.read("manifest.json"))["error"])
        self.refused("holds no trace", "run", "bad.bundle.zip")

    def test_asks_first(self):
        self.refused("--yes", "bundle", "s.ini", "-o", "x.zip")
        self.refused("exists", "bundle", "s.ini", "--yes")
        self.refused("packed already", "bundle", "s.bundle.zip", "--yes")
        for answer, status in ((b"n\n", 1), (b"\x04", 1), (b"y\n", 0)):
            master, slave = pty.openpty()
            process = subprocess.Popen([PROGRAM, "bundle", "out/trace.safetensors", "-o", "asked.zip"], cwd=self.folder,
                                       env=self.env, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
            os.close(slave)
            said = b""
            while b"[y/N]" not in said:
                said += os.read(master, 4096)
            os.write(master, answer)
            self.assertEqual(process.wait(60), status, said)
            os.close(master)
            self.assertEqual((self.folder / "asked.zip").exists(), status == 0)

    def test_r_says_what_would_run(self):
        terminal = Terminal([PROGRAM, "s.bundle.zip"], self.env, self.folder, 160, 40)
        self.addCleanup(terminal.close)

        def see(*texts):
            for _ in range(600):
                terminal.drain(0.1)
                if all(terminal.has(text) for text in texts):
                    return
            self.fail(f"{texts} did not come")

        see("scaled twice")
        work = list(self.cache.glob("work.*"))
        self.assertEqual([stat.S_IMODE(w.stat().st_mode) for w in work], [0o700])
        programs = set(self.cache.iterdir())
        terminal.send(b"r")
        see("Enter builds it's $(k).cu", "Esc does not")
        terminal.send(b"\x1b")
        terminal.drain(0.5)
        self.assertEqual(set(self.cache.iterdir()), programs)
        terminal.send(b"r")
        see("Enter builds")
        terminal.forget()
        terminal.send(b"\r")
        see("since run 1")
        self.assertGreater(len(set(self.cache.iterdir())), len(programs))
        terminal.send(b"q")
        while not terminal.ended():
            terminal.drain(0.1)
        self.nothing_unpacked()


def entry(name, data=b"x", mode=stat.S_IFREG | 0o644, **more):
    info = zipfile.ZipInfo(name if name else "x", (1980, 1, 1, 0, 0, 0))
    info.create_system = 3
    info.external_attr = mode << 16
    for key, value in more.items():
        setattr(info, key, value)
    return info, data


def container(*entries, manifest=b'{"format": "attnscope bundle", "version": 1}'):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for info, data in ([entry("manifest.json", manifest)] if manifest else []) + list(entries):
            file.writestr(info, data)
    return out.getvalue()


def declared(data, size):
    """The last entry says that it unpacks to this size."""
    at = data.rindex(b"PK\1\2")
    return data[:at + 24] + struct.pack("<I", size) + data[at + 28:]


HOSTILE = {
    "dot-dot": (container(entry("../evil")), "plain path"),
    "dot-dot-inside": (container(entry("a/../../evil")), "plain path"),
    "absolute": (container(entry("/tmp/evil")), "plain path"),
    "dot": (container(entry("./a")), "plain path"),
    "empty-part": (container(entry("a//b")), "plain path"),
    "folder": (container(entry("a/", b"", stat.S_IFDIR | 0o755)), "plain path"),
    "backslash": (container(entry("..\\evil")), "plain path"),
    "escape": (container(entry("a\x1b[2Jb")), "plain path"),
    "line-feed": (container(entry("a\nb")), "plain path"),
    "turned": (container(entry("a\u202eb")), "plain path"),
    "link": (container(entry("a", b"/etc/passwd", stat.S_IFLNK | 0o777)), "is a link"),
    "device": (container(entry("a", b"", stat.S_IFCHR | 0o666)), "is a device"),
    "pipe": (container(entry("a", b"", stat.S_IFIFO | 0o666)), "is a device"),
    "file-and-folder": (container(entry("a"), entry("a.b"), entry("a/b")), "as a file and as a folder"),
    "many": (container(*(entry(f"f{i}", b"") for i in range(4097))), "more than 4096 files"),
    "bomb": (declared(container(entry("a", bytes(1000))), 0xF8000000 + (1 << 26)), "holds more than"),
    "no-manifest": (container(entry("a"), manifest=None), "no bundle"),
    "other-manifest": (container(manifest=b'{"format": "other"}'), "no bundle"),
    "version": (container(manifest=b'{"format": "attnscope bundle", "version": 2}'), "another version"),
    "manifest-no-json": (container(manifest=b"[["), "manifest.json"),
    "manifest-large": (container(manifest=b" " * (2 << 20)), "larger than"),
    "manifest-array": (container(manifest=b"[1]"), "no bundle"),
    "cut": (container(entry("a"))[:-8], "damaged"),
    "no-directory": (b"PK\3\4" + bytes(60), "damaged"),
}


class Hostile(unittest.TestCase):
    """Nothing of these is unpacked, wherever it would lie; each is one line."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name) / "a/b/c"
        self.folder.mkdir(parents=True)
        self.cache = self.folder / "cache"
        self.cache.mkdir(0o755)

    def refused(self, data, expected):
        path = self.folder / "x.zip"
        path.write_bytes(data)
        before = sorted(self.folder.parents[2].rglob("*"))
        for words in (["run"], ["bundle", "--list"]):
            done = subprocess.run([PROGRAM, *words, "x.zip"], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, timeout=60, check=False, env={**os.environ, "ATTNSCOPE_CACHE": str(self.cache)})
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
            self.assertIn(expected, done.stderr)
            self.assertTrue(done.stderr.isprintable() or done.stderr[:-1].isprintable(), done.stderr)
        self.assertEqual(sorted(self.folder.parents[2].rglob("*")), before)

    def test_is_refused_before_anything_is_written(self):
        for name, (data, expected) in HOSTILE.items():
            with self.subTest(name):
                self.refused(data, expected)

    def test_a_name_twice_is_refused(self):
        data = container(entry("aa"), entry("ab")).replace(b"ab", b"aa")
        self.refused(data, "twice")

    def test_a_name_with_a_nul_is_refused(self):
        self.refused(container(entry("aQ../b")).replace(b"aQ../b", b"a\0../b"), "NUL")

    def test_what_is_not_as_it_says_is_not_opened(self):
        """Damage that only unpacking can find leaves nothing behind either."""
        whole = container(entry("trace.safetensors", os.urandom(3000)))
        at = whole.index(b"trace.safetensors") + 100
        for data in (whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:], declared(whole, 100)):
            (self.folder / "x.zip").write_bytes(data)
            done = subprocess.run([PROGRAM, "run", "x.zip"], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, timeout=60, check=False, env={**os.environ, "ATTNSCOPE_CACHE": str(self.cache)})
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
            self.assertEqual(list(self.cache.iterdir()), [])


if __name__ == "__main__":
    tap.main()
