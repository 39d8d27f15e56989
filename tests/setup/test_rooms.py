#!/usr/bin/env python3
"""Rooms keep to the table of docs/design.md: includes go where its arrows go, arrows never in a circle, no room is large.
Within a room no files call each other in a circle, as their objects' symbols show."""

import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

CODE = {".c", ".h", ".def", ".inc"}
LARGEST = 50  # files; a reader finds a name in two columns of a terminal
OBJECTS = Path(os.environ.get("BUILD", ROOT / "build")).resolve() / "obj"
# A table of functions of the files beside it, which call it back.
TABLES = {"engine/build": "build", "engine/oracle/causes": "cause"}


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


def symbols(objects):
    """Which object defines each symbol, and the symbols that each object asks for."""
    defined, wanted = {}, {path.stem: set() for path in objects}
    done = subprocess.run(["nm", "--format=posix", "--extern-only", "--print-file-name", *objects], capture_output=True,
                          text=True, check=True)
    for path, name, kind in re.findall(r"^(.*): (\S+) (\S)", done.stdout, re.M):
        if kind in "Uu":
            wanted[Path(path).stem].add(name)
        else:
            defined[name] = Path(path).stem
    return defined, wanted


def circles(objects, table):
    defined, wanted = symbols(objects)
    reached = {of: {defined[name] for name in names if name in defined} - {of} for of, names in wanted.items()}
    reached.pop(table, None)
    for via in reached:
        for of in reached:
            if via in reached[of]:
                reached[of] |= reached[via]
    return {" ".join(sorted(to for to in reached[of] if of in reached[to])) for of in reached if of in reached[of]}


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

    def test_no_files_of_a_room_in_a_circle(self):
        if not OBJECTS.is_dir():
            self.skipTest(f"no objects in {OBJECTS}: make")
        found = {}
        for room in self.rooms:
            objects = [path for path in sorted((OBJECTS / room).glob("*.o")) if (ROOT / room / f"{path.stem}.c").exists()]
            own = circles(objects, TABLES.get(room)) if objects else set()
            if own:
                found[room] = own
        self.assertEqual(found, {})


if __name__ == "__main__":
    tap.main()
