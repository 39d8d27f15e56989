#!/usr/bin/env python3
"""Foreign text reaches the terminal as text: whatever a trace, a scenario, a kernel, a compiler or a file name holds, no
command writes a control character but line feed and tab, none of C1, none that reorders text, and no byte that is not
UTF-8; and a line feed in a name begins no line."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unicodedata
import unittest
import xml.dom.minidom
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import hostile
import tap

BUILD = Path(os.environ.get("BUILD", ROOT / "build")).resolve()
PROGRAM = str(BUILD / "attnscope")
RECORDED = ROOT / "tests/recorded"
FORGED = "forged: CLEAN"
# ESC [ (clears the screen), BEL, CR, C1's CSI, overrides and isolates of direction, what is not seen, DEL, a new line.
HOSTILE = f"\x1b[2J\x07\r\u009b31m\u202e\u2066\u200b\u061c\x7f\n{FORGED}"
SHORT = "\x1b\u202e\n"  # of a field that holds few bytes
# As a file's name or a file's text: the same, C1's CSI as one byte, and what is no UTF-8.
RAW = os.fsdecode(HOSTILE.encode() + b"\x9b32m\xff\xc3(")
KERNEL = r'''
#include "attnscope.h"
#include <cstdio>
#include <cstdlib>
namespace {
#define HOSTILE "\x1b[2J\a\r\xc2\x9b" "31m\xe2\x80\xae\xe2\x81\xa6\x9b" "32m\xff\n" "forged: CLEAN"
__global__ void nothing(float *lse)
{
    if (threadIdx.x < 16)
        lse[threadIdx.x] = 0;
}
const char *plan(const asc_problem *problem, asc_plan *plan)
{
    printf("out " HOSTILE "\n");
    fprintf(stderr, "err " HOSTILE "\n");
    plan->br = plan->bc = 16;
    plan->threads = 32;
    return problem->head_dim == 64 ? "no " HOSTILE : NULL;
}
const char *launch(const asc_problem *problem, void *stream)
{
    return problem->head_dim == 32 ? "not " HOSTILE : ASC_LAUNCH(nothing, 1, 32, 0, stream, problem->lse);
}
} // namespace
ASC_KERNEL(hostile)
{
    kernel.plan = plan;
    kernel.launch = launch;
    kernel.dtypes = ASC_SUPPORTS(F16);
    kernel.layouts = ASC_SUPPORTS(BHLD);
}
'''


# Of a run, names of the format's choices: others are refused.
CHOICES = ("status", "backend", "probes", "checks", "stopped")


def texts(value, hostile_text):
    """The JSON value with other texts; what names a choice of the format stays."""
    if isinstance(value, dict):
        return {k: v if k in ("channel", "status") else texts(v, hostile_text) for k, v in value.items()}
    if isinstance(value, list):
        return [texts(v, hostile_text) for v in value]
    return hostile_text if isinstance(value, str) else value


class Terminal(unittest.TestCase):
    executions = failures = 0

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.temporary.name)
        header, data = hostile.read(RECORDED / "double-scale.safetensors")
        run = hostile.entry(header, "run")
        room = {"kernel": 64, "device": 96, "tensor_core": 16}
        for key, value in run.items():
            if isinstance(value, str) and key not in CHOICES:
                run[key] = HOSTILE if room.get(key, 128) > len(HOSTILE.encode()) else SHORT
        run["device"] = HOSTILE
        hostile.set_entry(header, "run", run)
        event = {"kind": "race", "text": HOSTILE, "file": HOSTILE, "line": 3, "batch": 0, "head": 0, "q_tile": 0,
                 "kv_tile": 0, "other_file": HOSTILE, "other_line": 4, "times": 2}
        hostile.set_entry(header, "events", [event, dict(event, kind="assert", batch=-1)])
        hostile.set_entry(header, "sites", texts(hostile.entry(header, "sites"), HOSTILE))
        header["__metadata__"]["attnscope.source"] = f"line\n{HOSTILE}\n" * 200
        header["__metadata__"]["attnscope.scenario"] = f"[kernel]\nname = {HOSTILE}\n"
        hostile.set_entry(header, "capture", {"wanted": 4, "judged": 3, "off": 2, "differing": 1,
                                              "off_places": HOSTILE})
        cls.trace = cls.folder / f"trace{RAW}.safetensors"
        hostile.write(cls.trace, header, data)
        run["status"], run["stopped"] = "crashed", "assert"
        hostile.set_entry(header, "run", run)
        cls.crashed = cls.folder / "crashed.safetensors"
        hostile.write(cls.crashed, header, data)
        cls.refused = [cls.folder / f"refused-{i}.safetensors" for i in range(len(CHOICES) + 2)]
        for key, path in zip(CHOICES, cls.refused):
            hostile.set_entry(header, "run", dict(run, **{key: HOSTILE}))
            hostile.write(path, header, data)
        hostile.set_entry(header, "run", run)
        hostile.set_entry(header, "events", [dict(event, kind=HOSTILE)])
        hostile.write(cls.refused[-2], header, data)
        hostile.set_entry(header, "events", [event])
        header["__metadata__"]["attnscope.format"] = HOSTILE
        hostile.write(cls.refused[-1], header, data)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()
        print(f"# harness: foreign text on the terminal; executions {cls.executions}; failures {cls.failures}")

    def run_it(self, *words):
        done = subprocess.run([PROGRAM, *words], capture_output=True, stdin=subprocess.DEVNULL, timeout=120,
                              cwd=self.folder, check=False)
        Terminal.executions += 1
        Terminal.failures += 1  # until it has passed
        self.assertIn(done.returncode, (0, 1, 2, 3), words)
        for name, raw in (("stdout", done.stdout), ("stderr", done.stderr)):
            text = raw.decode()  # UTF-8, or it fails
            bad = {f"U+{ord(c):04X}" for c in text if c not in "\n\t" and unicodedata.category(c) in
                   ("Cc", "Cf", "Zl", "Zp")}
            self.assertEqual(bad, set(), f"{words}: {name}: {text!r}")
        Terminal.failures -= 1
        return done

    def run_all(self, *words):
        """run_it(), and no name has begun a line."""
        done = self.run_it(*words)
        said = done.stdout + b"\n" + done.stderr
        self.assertNotIn(f"\n{FORGED}".encode(), said, said.decode())
        return done

    def test_commands_on_a_trace(self):
        for trace in (self.trace, self.crashed):
            self.assertIn("<U+202E>", self.run_all("run", str(trace)).stdout.decode())
            self.run_all("open", "--text", str(trace))
            self.run_all("run", "--bias", str(trace))
            self.run_all("diff", str(trace), str(self.crashed))
            for words in (("run", "--json", str(trace)), ("diff", "--json", str(trace), str(trace))):
                self.assertIsInstance(json.loads(self.run_it(*words).stdout), dict)
        for words in (("run", "x"), ("show", "x"), ("diff", "x", "y"), ("check", "x")):
            self.run_all(*words[:1], *(f"{RAW}{w}.ini" for w in words[1:]))
        for trace in self.refused:
            done = self.run_all("run", str(trace))
            self.assertEqual(done.returncode, 3 if trace is self.refused[-1] else 2, done.stderr)

    def test_json_says_the_text_itself(self):
        said = json.loads(self.run_it("run", "--json", str(self.crashed)).stdout)
        self.assertEqual([said["events"][0][k] for k in ("text", "file")], [HOSTILE, HOSTILE])

    def test_views(self):
        done = self.run_it("show", "--view", "none", str(self.trace))
        views = re.search(r"expected one of (.*), found", done.stderr.decode()).group(1).split(", ")
        self.assertGreater(len(views), 15)
        for view in views:
            self.run_all("show", "--view", view, "--size", "200x60", str(self.crashed))
        svg = self.folder / "picture.svg"
        for view in ("source", "log", "findings"):
            self.run_it("show", "--view", view, "--svg", str(svg), str(self.trace))
            shown = svg.read_text(encoding="utf-8")
            xml.dom.minidom.parseString(shown)
            self.assertEqual([c for c in shown if c != "\n" and unicodedata.category(c) in ("Cc", "Cf")], [])

    def test_arguments(self):
        for words in ((RAW,), ("run", f"--{RAW}"), ("run", "--set", f"{RAW}={RAW}", str(self.trace)),
                      ("run", "--set", f"problem.{RAW}={RAW}", "k.cu"), ("show", "--view", RAW, str(self.trace)),
                      ("show", "--at", RAW, str(self.trace)), ("show", "--size", RAW, str(self.trace)),
                      ("run", "--isolate", RAW, str(self.trace)), ("docs", RAW), ("run", "--shape", RAW, "k.cu"),
                      ("run", "--define", RAW, "k.cu"), ("run", "--mem", RAW, "k.cu"), ("run", "--backend", RAW, "k.cu"),
                      ("run", "--patch", RAW, "k.cu"), ("check", "--junit", f"{RAW}/x", "none.ini")):
            self.assertIn(self.run_all(*words).returncode, (2, 3), words)

    def test_scenarios(self):
        raw = os.fsencode(RAW.replace("\n", ""))
        (self.folder / "patch").write_bytes(b"--- a\n+++ " + raw + b"\n@@ -1 +1 @@\n-" + raw + b"\n+x\n")
        bodies = [b"[kernel]\n" + raw + b" = " + raw, b"[" + raw + b"]\nx = 1", raw, b"[problem]\nbatch = " + raw,
                  b"[problem]\ndtype = " + raw, b"[kernel]\nfile = " + raw + b".cu",
                  b"[kernel]\nfile = " + os.fsencode(ROOT / "kernels/v2b_scalar.cu") + b"\npatch = patch",
                  b"[expect]\nverdict = fail\ncause = " + raw, b"[inputs]\nq = " + raw]
        paths = []
        for i, body in enumerate(bodies):
            path = self.folder / f"{i}{RAW.replace('/', '')}.ini"
            path.write_bytes(body + b"\n")
            paths.append(str(path))
            self.assertIn(self.run_all("run", str(path)).returncode, (2, 3))
        self.run_all("check", *paths)
        self.run_all("check", "--table", *paths)
        junit = self.folder / "junit.xml"
        said = self.run_it("check", "--json", "--junit", str(junit), *paths)
        self.assertEqual(len(json.loads(said.stdout)), len(paths))
        self.assertEqual(len(xml.dom.minidom.parse(str(junit)).getElementsByTagName("error")), len(paths))

    def test_kernels_and_compilers(self):
        kernel = self.folder / f"k{RAW.replace(chr(10), '')}.cu"
        kernel.write_text(KERNEL, encoding="utf-8")
        for head_dim, status in ((64, 2), (32, 3), (16, 1)):
            done = self.run_it("run", str(kernel), "--shape", f"1,1,16,{head_dim}")
            self.assertIn(b"^[[2J", done.stdout + done.stderr)
            self.assertEqual(done.returncode, status, done.stderr)
        kernel.write_bytes(KERNEL.encode() + b'#error "' + os.fsencode(RAW.replace("\n", "")) + b'"\n')
        done = self.run_it("run", str(kernel), "--shape", "1,1,16,16")
        self.assertIn(b"^[[2J", done.stderr)

    def test_one_file_alone_writes_to_the_terminal(self):
        """Elsewhere the streams are not named. The debuggee and attnscope-device are read by attnscope, and term*.c is
        the terminal of the screen, which takes the cells of a canvas; json_memory.c, which a debuggee links too, writes one
        sentence of its own before it ends the process; the library of captures, in somebody else's process, one number."""
        direct = re.compile(r"\b(?:stdout|stderr)\b|(?<![\w.>])(?:v?printf|puts|putchar|putchar_unlocked|perror|psignal|"
                            r"v?dprintf|v?warnx?|v?errx?|error)\s*\(|\bwrite\s*\(\s*(?:1|2|STD\w+_FILENO)\b|/dev/tty")
        comment = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"', re.DOTALL)
        allowed = re.compile(r"engine/base/(text|json_memory)\.c|tui/screen/term(_signals)?\.c|engine/capture/capture\.c|engine/(child/debuggee|simt|gpu)/.*")
        seen, found = 0, []
        for folder in ("cli", "tui", "engine", "probes", "scenarios"):
            for path in sorted((ROOT / folder).rglob("*.[ch]")):
                name = path.relative_to(ROOT).as_posix()
                code = comment.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), path.read_text(encoding="utf-8"))
                seen += 1
                if not allowed.fullmatch(name) and name != "probes/attnscope.h":
                    found += [f"{name}:{n}: {line.strip()}" for n, line in enumerate(code.splitlines(), 1)
                              if direct.search(line)]
        self.assertGreater(seen, 300)
        self.assertEqual(found, [], "use engine/base/text.h")
        for line in ('fprintf(stderr, "%s", x);', "puts(x);", "    perror(x);", "write(STDOUT_FILENO, x, 1);"):
            self.assertRegex(line, direct)


if __name__ == "__main__":
    tap.main()
