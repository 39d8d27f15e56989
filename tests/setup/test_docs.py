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

CODE = re.compile(r"^    .*$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#]+)[^)]*\)")
NAMED = re.compile(r"`((?:[\w.-]+/)+[\w.-]+)`")

SPAN = re.compile(r"``\s?(.+?)\s?``|`([^`\n]+)`")

# Letters and marks that the pages have between backquotes and that are no keys.
NO_KEYS = {"◆", "▲", "▼", "^", "=", ";"}
# Options of other programs.
FOREIGN_OPTIONS = {"--wait": "an editor's", "--expt-relaxed-constexpr": "nvcc's", "--tool": "compute-sanitizer's",
                   "--small": "tests/random's", "--sequences": "tests/random's",
                   "--values": "tests/random's", "--rope": "tests/random's", "--masks": "tests/random's", "--blocks": "tests/random's",
                   "--formats": "tests/random's", "--build": "tests/run's",
                   "--update": "the tests'", "--junit-xml": "pytest's",
                   "--job-name": "sbatch's", "--array": "sbatch's", "--output": "sbatch's"}
# What docs/editing.md says a key does, by the names of the key table.
EDITING_KEYS = {"A": "findings", "W": "watch", "r": "rerun", "x": "cancel", "c": "checks", "p": "profile", "i": "isolate", "B": "bias",
                "a": "name-run", "s": "save", "R": "runs", "D": "changes", "E": "errors", "e": "edit", "j": "q-next",
                "k": "q-previous"}


# Words of headings, legends and labels that say what they say everywhere.
PLAIN = set("""address against all and at are barrier batch before begin best better block both bottom build but by chain choose cores
    cursor cycles declared do does each element else error exclusive explain exp fail finite first float for found from give grid
    has head heads in if infinity input is its keys known largest late latest left len line list local main mark match matches more most
    name next no none not nothing of off on one only op or other out over page place point problem product race reach reached
    read recorded rerun rounded row same seconds set sgn shared show since so source space states stop tab take tensor than
    that the their them there these they this tile time to top tried true type unknown use value values was were what where
    which who whole with without worse worst would wrong wrongly line lines mask masking scale scores sum prev
    """.split())
WORD = r"[a-z]+/[a-z]+|(?<![\w./])[a-z]{2,}(?![\w.])|[^\w\s\x00-\x7f]"
NUMBER = re.compile(r"[×±+<-]?(?:\.?\d[\d.,e+-]*|nan|inf)[%✗·~N]?")


def headings(screen):
    """Texts in the rules of a screen, heads of tables, and labels that a number follows, set apart by two blanks."""
    lines = screen.split("\n")
    for line, below in zip(lines, lines[1:] + [""]):
        if "─" in line:
            yield from (part.strip(" ─") for part in re.split("[│┬┼┴├┤]|─ | ─", line) if not re.search(r"\w *─+ *\w|[;(]|\.cu", part))
            continue
        panels = [] if "─" in below else below.split("│")
        for part, under in zip(line.split("│"), panels + [""] * 9):
            if len(part.split()) > 1 and not any(map(NUMBER.fullmatch, part.split())) and "  " in part.strip() and \
                    sum(map(bool, map(NUMBER.fullmatch, under.split()))) > 1 and ":" not in part:
                yield part
            yield from re.findall(rf"(?:^ ?|  )([^\W\d][\w/]*(?: [a-z]+)?) {NUMBER.pattern}(?=  |$)", part)


def rows(text):
    """(what stands between backquotes in the first cell, the second cell) of every row of the tables in a page."""
    for line in text.splitlines():
        cells = line.split(" | ")
        if line.startswith("| `") and len(cells) > 1:
            yield [double or single for double, single in SPAN.findall(cells[0])], cells[1].strip()


class Names:
    """What the program says there is: keys, commands behind `:`, keys of a scenario, options."""

    def __init__(self):
        keys, prompt, scenarios, commands = (
            subprocess.run([f"{BUILD}/attnscope", "docs", page], capture_output=True, text=True, timeout=100,
                           check=True).stdout
            for page in ("keys", "prompt", "scenarios", "commands"))
        table = keys.split("\n## ")[0]
        self.keys = {key: action for named, action in rows(table) for key in named}
        self.commands = {span[1:].split()[0] for named, _ in rows(prompt) for span in named if span[0] == ":"}
        self.commands |= {action for _, action in rows(table)}
        self.sections = {section.split("]")[0]: {named[0] for named, _ in rows(section)}
                         for section in re.split(r"^## \[|^## ", scenarios, flags=re.MULTILINE)[1:] if "]" in section[:20]}
        self.options = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", commands)) | set(FOREIGN_OPTIONS)
        self.scenario_key = re.compile(rf"(?<![\w./-])({'|'.join(self.sections)})\.([a-z]\w*)(?![\w(/])")

    def unknown(self, text):
        """Names in a page that the program has not."""
        spans = [double or single for double, single in SPAN.findall(re.sub(r"```.*?```", "", text, flags=re.DOTALL))]
        found = [option for option in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", text) if option not in self.options]
        for span in spans:
            if re.fullmatch(r"\D|F\d+|[CS]-\w+", span) and span not in self.keys and span not in NO_KEYS:
                found.append(span)
            command = re.match(r":(?:\d+ )?([a-z][\w-]*)", span)
            if command and command[1] not in self.commands:
                found.append(span)
        found += [key[0] for key in self.scenario_key.finditer(text)
                  if key[2] not in self.sections[key[1]] and key[2] not in ("c", "h", "def", "ini")]
        return found


class Docs(unittest.TestCase):
    def pages(self):
        return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]

    def test_names_are_those_of_the_program(self):
        names = Names()
        self.assertGreater(min(map(len, [names.keys, names.commands, names.sections, names.options])), 5)
        for text, wrong in (("`ü` `n`", ["ü"]), ("`:view map` `:vieww map`", [":vieww map"]), ("`:10 next-bad`", []),
                            ("set shape.causal, shape.casual", ["shape.casual"]), ("--shape --shapes", ["--shapes"]),
                            ("`C-o` `C-u`", ["C-u"]), ("`` ` ``", [])):
            self.assertEqual(names.unknown(text), wrong)
        self.assertEqual([f"{page.name}: {name}" for page in self.pages()
                          for name in names.unknown(page.read_text(encoding="utf-8"))], [])

    def test_help_explains_the_words_of_the_screens(self):
        known = set()
        for page in ("keys", "prompt", "scenarios", "channels"):
            text = subprocess.run([f"{BUILD}/attnscope", "docs", page], capture_output=True, text=True, timeout=100, check=True).stdout
            for spans, second in rows(text):
                known |= set(re.findall(WORD, " ".join([*spans, second if page in ("keys", "channels") else ""])))
        for path in ("tui/keys/words.def", "tui/views/views.def", "engine/trace/events.def", "engine/oracle/statuses.def"):
            for row in re.findall(r'^[A-Z]+\((?:\w+, )?("[^"]*"(?:, "[^"]*")*)', (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE):
                named = re.findall('"([^"]*)"', row)[:3 if "statuses" in path else 1]
                known |= {word for name in named for word in re.findall(WORD, name)}

        def unknown(text):
            return [word for word in re.findall(WORD, text)
                    if not known & {word, word.removesuffix("s")} and word.removesuffix("s") not in PLAIN | {"a"} and word not in PLAIN
                    and not "▁" <= word <= "█" and not "⠀" <= word <= "⣿"]
        self.assertEqual(unknown("got   want   blorps ¤"), ["blorps", "¤"])
        found = {}
        for path in sorted((ROOT / "tests/screens").glob("*.txt")):
            for text in headings(path.read_text(encoding="utf-8")):
                for word in unknown(text):
                    found.setdefault(word, f"{path.stem}: {text.strip()[:60]}")
        self.assertEqual(found, {}, "\n".join(f"{word}: {where}" for word, where in found.items()))

    def test_generated_pages_are_up_to_date(self):
        done = subprocess.run([ROOT / "docs/generate", "--check", "--build", BUILD], capture_output=True, text=True,
                              timeout=100, check=False)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_links_lead_somewhere(self):
        dead = [f"{page.name}: {link}" for page in self.pages()
                for link in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8")))
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

    def test_code_in_the_kernel_guides_is_in_the_examples(self):
        for page, fewest in (("writing-a-kernel", 4), ("probes", 5)):
            guide = (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
            blocks = re.findall(r"<!-- from (\w+\.cu) -->\n+((?:    .*\n|\n)+)", guide)
            self.assertGreaterEqual(len(blocks), fewest)
            for name, block in blocks:
                example = " ".join((ROOT / "docs/examples" / name).read_text(encoding="utf-8").split())
                for piece in re.split(r"\n\s*\.\.\.\n", block):
                    self.assertIn(" ".join(piece.split()), example)


if __name__ == "__main__":
    tap.main()
