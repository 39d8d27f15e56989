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


# What needs no explanation on a screen: plain English, units, names of the user's.
PLAIN = set("""against and are as bad batch begin begins better bits both build by cycles declared elements error errors exp first float
for from gib help if in infinity inputs its kept known largest line lines lost matches mib next no none one not nvidia of over path place
prev problem products reached read recorded rerun right scores seen since sm softmax steps sum tab takes the their this to tried type
was what where with worse worst wrongly esc cu scalar ln cursor head heads kernels/v top left bottom""".split())


class Words(unittest.TestCase):
    def test_headings_are_explained(self):
        """Every word of a heading on a screen is one that :help explains."""
        def rows(path, pattern):
            return re.findall(pattern, (ROOT / path).read_text(encoding="utf-8"), re.M)
        known = {word for term in rows("tui/keys/words.def", r'^WORD\("([^"]+)"') for word in term.lower().split()}
        known |= {name for name in rows("tui/views/views.def", r'^VIEW\(\w+, "(\w+)"')}
        known |= {name.lower() for name in rows("probes/channels.def", r"^CHANNEL\((\w+)")}
        known |= {word for name in rows("engine/scenario/keys.def", r'^KEY\(.*?"(\w+)"') for word in name.split("_")}
        known |= {name for name in rows("engine/trace/events.def", r'^EVENT\(\w+, "([\w-]+)"')}
        known |= {name for name in rows("engine/oracle/statuses.def", r'^(?:CLASS|STATUS)\(\w+, "([^"]+)"')}
        for path in sorted((ROOT / "tests/screens").glob("*.txt")):
            for line in path.read_text(encoding="utf-8").splitlines():
                for title in re.findall(r"─ ([^─│┬]+?) (?=─|$)", line):
                    words = {word.lower() for word in re.findall(r"[A-Za-z/]{2,}", title)}
                    words -= PLAIN | known | {word for word in words if word[:-1] in known}
                    self.assertEqual(words, set(), f"{path.name}: {title}")


if __name__ == "__main__":
    tap.main()
