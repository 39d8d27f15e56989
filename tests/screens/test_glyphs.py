#!/usr/bin/env python3
"""Every character outside ASCII that the program's own texts hold has a stand-in: with --ascii a `?` says nothing."""

import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

FOLDERS = ("tui", "engine", "probes")
COMMENT_OR_STRING = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.S)
BRAILLE = range(0x2800, 0x2900)  # of curves, which are drawn otherwise


def characters(path):
    for found in COMMENT_OR_STRING.finditer(path.read_text(encoding="utf-8")):
        if found[0].startswith('"'):
            yield from (c for c in found[0] if ord(c) > 0x7F and ord(c) not in BRAILLE)


class Glyphs(unittest.TestCase):
    def test_every_character_has_a_stand_in(self):
        table = (ROOT / "tui/screen/glyphs.def").read_text(encoding="utf-8")
        known = {chr(int(code, 16)) for code in re.findall(r"^GLYPH\(0x([0-9A-F]+),", table, re.M)}
        seen = 0
        for folder in FOLDERS:
            for path in sorted([*(ROOT / folder).rglob("*.c"), *(ROOT / folder).rglob("*.def")]):
                found = set(characters(path))
                seen += len(found)
                self.assertEqual(found - known, set(), path)
        self.assertGreater(seen, 50)


if __name__ == "__main__":
    tap.main()
