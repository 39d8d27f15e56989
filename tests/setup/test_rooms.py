#!/usr/bin/env python3
"""Rooms keep to the table of docs/design.md: includes go where its arrows go, arrows never in a circle, no room is large."""

import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

CODE = {".c", ".h", ".def", ".inc"}
LARGEST = 50  # files; a reader finds a name in two columns of a terminal


def table():
    text = (ROOT / "docs/design.md").read_text(encoding="utf-8")
    rows = re.search(r"<!-- rooms -->(.*?)<!-- /rooms -->", text, re.S)[1]
    return {room: set(included.split()) for room, included in re.findall(r"^\| (\S+) \| .* \| ([^|]*)\|$", rows, re.M)
            if room not in ("room", "---")}


def room_of(path, rooms):
    """The deepest room that holds the path, or None."""
    return max((r for r in rooms if path.startswith(r + "/")), key=len, default=None)


def sources(rooms):
    for top in sorted({r.split("/")[0] for r in rooms}):
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix in CODE:
                yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


class Rooms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rooms = table()
        cls.files = dict(sources(cls.rooms))

    def test_every_include_follows_an_arrow(self):
        used = set()
        for path, text in self.files.items():
            here = room_of(path, self.rooms)
            self.assertIsNotNone(here, f"{path} is in no room of docs/design.md")
            for included in re.findall(r'#include "([^"]+/[^"]+)"', text):
                there = room_of(included, self.rooms)
                if there is None or there == here:
                    continue
                used.add((here, there))
                self.assertTrue(here == "cli" or there in self.rooms[here], f"{path} includes {included}")
        drawn = {(a, b) for a, of in self.rooms.items() for b in of}
        self.assertEqual(drawn - used, set(), "drawn, but nothing is included")

    def test_no_arrows_in_a_circle(self):
        left = dict(self.rooms)
        while left:
            free = [room for room, included in left.items() if not included & left.keys()]
            self.assertTrue(free, f"a circle in {sorted(left)}")
            for room in free:
                del left[room]

    def test_no_room_is_large(self):
        for room in self.rooms:
            own = [path for path in self.files if room_of(path, self.rooms) == room and "/include/" not in path]
            self.assertLessEqual(len(own), LARGEST, room)
            self.assertGreater(len(own), 0, room)


if __name__ == "__main__":
    tap.main()
