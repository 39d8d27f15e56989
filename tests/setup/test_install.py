#!/usr/bin/env python3
"""make install: what is installed runs by itself, with nothing of the source tree, and is gone after make uninstall.
make deb: the package holds the same, and says what it needs."""

import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VERSION = (ROOT / "VERSION").read_text(encoding="utf-8").strip()
BUILD = Path(os.environ.get("BUILD", ROOT / "build")).resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

COMPLETE = """. "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_attnscope
echo "${COMPREPLY[*]}"
"""


def run(*arguments, **options):
    return subprocess.run(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=200, check=False, **options)


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.dest = Path(cls.folder.name)
        cls.make("install")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def make(cls, target):
        done = run("make", target, f"B={BUILD.relative_to(ROOT)}", f"DESTDIR={cls.dest}", "PREFIX=/opt/a b", cwd=ROOT)
        if done.returncode != 0:
            raise AssertionError(done.stdout)

    def attnscope(self, *arguments, cwd=None):
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("ATTNSCOPE", "XDG_"))}
        environment.update(HOME=str(self.dest / "home"), ATTNSCOPE_BACKEND="cpu")
        (self.dest / "home").mkdir(exist_ok=True)
        return run(self.dest / "opt/a b/bin/attnscope", *arguments, env=environment, cwd=cwd or self.dest)

    def test_a_scenario_runs_from_there(self):
        data = self.dest / "opt/a b/share/attnscope"
        done = self.attnscope("run", data / "scenarios/bugs/double-scale.ini")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("probe at opt/a b/share/attnscope/kernels/v2b_scalar.cu:", done.stdout)
        self.assertNotIn(str(ROOT), done.stdout)
        self.assertTrue(any((self.dest / "home/.cache/attnscope").iterdir()))
        self.assertFalse((data / "build").exists())
        for name in ("writing-a-kernel.md", "examples/my_attention.cu"):
            written = (data / "docs" / name).read_text(encoding="utf-8")
            self.assertEqual(self.attnscope("docs", Path(name).name.removesuffix(".md")).stdout, written)
        example = self.attnscope("run", data / "docs/examples/my_attention.cu", "--shape", "1,1,32,64")
        self.assertEqual(example.returncode, 0, example.stdout)
        extension = self.attnscope("run", ROOT / "tests/host_code/extension.cu", "--shape", "1,1,32,32")
        self.assertEqual(extension.returncode, 0, extension.stdout)
        self.assertTrue((data / "engine/standin/exit.h").is_file())  # what is built for a GPU needs it
        listed = self.attnscope("list").stdout
        self.assertIn(f"Kernels, below {data}:", listed)
        self.assertIn("kernels/v2b_scalar.cu", listed)

    def test_bash_completes(self):
        script = self.dest / "opt/a b/share/bash-completion/completions/attnscope"
        for words, expected in ((("sho",), "show"), (("show", "--view", "ma"), "map mask"),
                                (("check", "--jun"), "--junit"), (("docs", "conf"), "config"), (("docs", "wri"), "writing-a-kernel"),
                                (("run", "--backend", ""), "auto gpu cpu"), (("run", "-o", "no-such"), ""),
                                (("run", "--isolate", "sof"), "softmax"), (("run", "--causal", "top"), "top-left"),
                                (("run", "--dtype", "bf"), "bf16"), (("sweep", "--over", "mas"), "mask"), (("run", "--set", "shape.kv_h"), "shape.kv_heads=")):
            done = run("bash", "-c", COMPLETE, "bash", script, "attnscope", *words, cwd=self.dest)
            self.assertEqual(done.stdout.strip(), expected)

    def test_the_manual_has_every_command_and_option(self):
        page = (self.dest / "opt/a b/share/man/man1/attnscope.1").read_text(encoding="utf-8")
        known = self.attnscope("--help").stdout
        self.assertTrue(page.startswith(f'.TH ATTNSCOPE 1 "" "attnscope {VERSION}" "User Commands"\n'))
        for line in known.splitlines():
            word = line.split()[0] if line.startswith("  ") and not line.startswith("    ") else ""
            if word.startswith("--"):
                self.assertIn(word.replace("-", "\\-"), page)
        for line in page.splitlines():
            self.assertTrue(not line.startswith(".") or line.split()[0] in (".TH", ".SH", ".TP", ".B"), line)

    def test_the_version_is_that_of_its_file(self):
        self.assertEqual(self.attnscope("--version").stdout, f"attnscope {VERSION}\n")

    def test_uninstall_leaves_nothing(self):
        self.make("uninstall")
        left = [path for path in (self.dest / "opt").rglob("*") if path.is_file()]
        self.assertEqual(left, [])
        self.make("install")


@unittest.skipUnless(shutil.which("dpkg-deb") and shutil.which("dpkg-shlibdeps"), "no dpkg-shlibdeps")
class Deb(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.root = Path(cls.folder.name)
        done = run("make", "deb", f"B={BUILD.relative_to(ROOT)}", cwd=ROOT)
        if done.returncode != 0:
            raise AssertionError(done.stdout)
        cls.package = BUILD / f"attnscope_{VERSION}_{run('dpkg', '--print-architecture').stdout.strip()}.deb"
        run("dpkg-deb", "--raw-extract", cls.package, cls.root)

    def test_the_control_fields(self):
        text = (self.root / "DEBIAN/control").read_text(encoding="utf-8")
        fields = dict(re.findall(r"^([A-Z][\w-]*): (.*)$", text, re.MULTILINE))
        self.assertEqual((fields["Package"], fields["Version"]), ("attnscope", VERSION))
        needs = {need.split(" ")[0] for need in fields["Depends"].split(", ")}
        self.assertLessEqual({"g++", "libc6", "libjansson4", "libncursesw6"}, {re.sub("t64$", "", n) for n in needs})
        self.assertFalse([need for need in needs if need.endswith("-dev")])

    def test_nothing_runs_at_its_installation_and_nothing_is_left(self):
        self.assertEqual({path.name for path in (self.root / "DEBIAN").iterdir()}, {"control", "md5sums"})

    def test_the_files_are_those_of_make_install(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run("make", "install", f"B={BUILD.relative_to(ROOT)}", f"DESTDIR={folder}", "PREFIX=/usr", cwd=ROOT)
            self.assertEqual(done.returncode, 0, done.stdout)
            expected = {str(path.relative_to(folder)) for path in Path(folder).rglob("*") if path.is_file()}
        expected = {path.replace("zsh/site-functions", "zsh/vendor-completions").replace("attnscope.1", "attnscope.1.gz")
                    for path in expected} | {"usr/share/doc/attnscope/copyright", "usr/share/doc/attnscope/changelog.gz"}
        listed = [line.split() for line in run("dpkg-deb", "--contents", self.package).stdout.splitlines()]
        self.assertEqual({path.removeprefix("./") for mode, *_, path in listed if mode[0] != "d"}, expected)
        for mode, owner, *_, path in listed:
            self.assertEqual((owner, mode[1:]), ("root/root", "rwxr-xr-x" if mode[0] == "d" or mode[3] == "x" else "rw-r--r--"),
                             path)

    def test_what_is_in_it(self):
        doc = self.root / "usr/share/doc/attnscope"
        self.assertEqual((doc / "copyright").read_bytes(), (ROOT / "LICENSE").read_bytes())
        self.assertEqual(gzip.decompress((doc / "changelog.gz").read_bytes()), (ROOT / "CHANGELOG.md").read_bytes())
        self.assertEqual(run(self.root / "usr/bin/attnscope", "--version").stdout, f"attnscope {VERSION}\n")


if __name__ == "__main__":
    tap.main()
