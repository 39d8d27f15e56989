#!/usr/bin/env python3
"""The docs say what the program says: generated pages are up to date, links lead somewhere, code is what is built."""

import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = os.environ.get("BUILD", str(ROOT / "build"))
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

LINK = re.compile(r"\]\(([^)#]+)[^)]*\)")
NAMED = re.compile(r"`((?:[\w.-]+/)+[\w.-]+)`")

# What docs/editing.md says a key does, by the names of the key table.
EDITING_KEYS = {"W": "watch", "r": "rerun", "x": "cancel", "c": "checks", "p": "profile", "i": "isolate", "B": "bias",
                "a": "name-run", "s": "save", "R": "runs", "D": "changes", "E": "errors", "e": "edit", "j": "q-next",
                "k": "q-previous"}


class Docs(unittest.TestCase):
    def pages(self):
        return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]

    def test_generated_pages_are_up_to_date(self):
        done = subprocess.run([ROOT / "docs/generate", "--check", "--build", BUILD], capture_output=True, text=True,
                              timeout=100, check=False)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_links_lead_somewhere(self):
        dead = [f"{page.name}: {link}" for page in self.pages() for link in LINK.findall(page.read_text(encoding="utf-8"))
                if not link.startswith("http") and not (page.parent / link).exists()]
        self.assertEqual(dead, [])

    def test_files_that_are_named_exist(self):
        dead = [f"{page.name}: {name}" for page in self.pages() for name in NAMED.findall(page.read_text(encoding="utf-8"))
                if name.split("/")[0] in ("cli", "docs", "engine", "kernels", "probes", "scenarios", "tests", "tui")
                and not (ROOT / name).exists()]
        self.assertEqual(dead, [])

    def test_the_changes_begin_with_this_version(self):
        text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
        self.assertEqual(re.search(r"^## ([^ ,\n]+)", text, re.MULTILINE).group(1),
                         (ROOT / "VERSION").read_text(encoding="utf-8").strip())

    def test_keys_do_what_editing_says(self):
        text = (ROOT / "docs/editing.md").read_text(encoding="utf-8")
        bound = {key: row.split("|")[2].strip()
                 for row in (ROOT / "docs/keys.md").read_text(encoding="utf-8").splitlines() if row.startswith("| `")
                 for key in re.findall(r"`([^`]+)`", row.split("|")[1])}
        named = set(re.findall(r"`([A-Za-z0-9])`", text)) - {"v"}  # the mark of a line that follows, and no key
        self.assertEqual({key: bound.get(key) for key in named}, EDITING_KEYS)

    def test_code_in_the_kernel_guide_is_in_the_example(self):
        guide = (ROOT / "docs/writing-a-kernel.md").read_text(encoding="utf-8")
        example = " ".join((ROOT / "docs/examples/my_attention.cu").read_text(encoding="utf-8").split())
        blocks = re.findall(r"<!-- from my_attention.cu -->\n+((?:    .*\n|\n)+)", guide)
        self.assertTrue(blocks)
        for block in blocks:
            for piece in re.split(r"\n\s*\.\.\.\n", block):
                self.assertIn(" ".join(piece.split()), example)


if __name__ == "__main__":
    tap.main()
