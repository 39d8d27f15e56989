"""What a monkey does at a terminal: keys, counts, commands, searches, clicks, drags, resizes, signals, nonsense. All of
it comes from one random generator, so that a seed says it whole."""

import re
import signal
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

NAMED = {
    "Left": "\x1bOD", "Right": "\x1bOC", "Up": "\x1bOA", "Down": "\x1bOB", "Home": "\x1bOH", "End": "\x1bOF",
    "PageUp": "\x1b[5~", "PageDown": "\x1b[6~", "S-Left": "\x1b[1;2D", "S-Right": "\x1b[1;2C", "S-Up": "\x1b[1;2A",
    "S-Down": "\x1b[1;2B", "S-Tab": "\x1b[Z", "Tab": "\t", "Enter": "\r", "Esc": "\x1b", "Backspace": "\x7f",
    "Space": " ", "Delete": "\x1b[3~", "F1": "\x1bOP", "F2": "\x1bOQ", "F3": "\x1bOR", "F4": "\x1bOS",
    "F5": "\x1b[15~", "F6": "\x1b[17~", "F7": "\x1b[18~", "F8": "\x1b[19~", "F9": "\x1b[20~", "F10": "\x1b[21~",
    "F11": "\x1b[23~", "F12": "\x1b[24~",
}
# Seldom: they end the session, or the work that makes it worth looking at.
SELDOM = {"quit": 0.03, "interrupt": 0.1, "suspend": 0.3, "cancel": 0.3, "profile": 0.3, "edit": 0.4}
SIZES = [(1, 1), (2, 1), (1, 2), (3, 3), (10, 3), (79, 24), (80, 23), (80, 24), (81, 24), (100, 30), (120, 40),
         (160, 50), (200, 60), (300, 100), (300, 1), (1, 100), (300, 24), (80, 100), (40, 12)]
STAGES = "q k v s m alpha p l u o lse".split()
WORDS = ["scale", "S", "off", "nan", "error", "got", "ASC", "k", ".", "attention", "é", "←"]
SETTINGS = ["shape.causal=top-left", "shape.causal=bottom-right", "shape.causal=none", "shape.q_len=70", "shape.q_len=1",
            "shape.kv_len=64", "shape.kv_len=129", "shape.heads=1", "shape.heads=2", "shape.kv_heads=3",
            "shape.batch=2", "shape.head_dim=64", "shape.window=16,0", "fill.seed=3", "capture.mem=1M", "capture.mem=64K",
            "capture.mem=64M", "scenario.kernel=nowhere.cu", "shape.dtype=bf16", "no.such=1", "shape.q_len=", "=", "scale=0"]
FORMATS = ["", "e4m3", "e5m2", "u8", "f16", "q=f16", "v=e4m3 p=e4m3", "e4m3 rows:16", "tensor", "head", "x0.5",
           "e4m3 offset:8", "e6m9", "rows:0", "x1e300", "rows:99999"]
CONDITIONS = ["bad", "off", "nan", "inf", "missing", "extra", "ratio > 1", "mean > 0", "falls", "rises", "> 0", "< -1e9",
              "off > 8", "nan = 0", "> nan", ">", "sideways"]


def keys():
    """(action, bytes) of every key in the page that is made from the program's own table."""
    found = []
    for line in (ROOT / "docs/keys.md").read_text(encoding="utf-8").splitlines():
        cells = re.match(r"\| (`.+`) \| ([a-z0-9-]+) \|", line)
        for key in re.findall(r"`` (.) ``|`([^`]+)`", cells.group(1)) if cells else ():
            key = key[0] or key[1]
            control = re.fullmatch(r"C-(.)", key)
            found.append((cells.group(2), chr(ord(control.group(1)) & 31) if control else NAMED.get(key, key)))
    assert len(found) > 50, "docs/keys.md reads otherwise than it did"
    return found


KEYS = keys()
VIEWS = re.findall(r'^VIEW\(\w+, "(\w+)"', (ROOT / "tui/views/views.def").read_text(encoding="utf-8"), re.M)
COMMANDS = re.findall(r'^COMMAND\("([\w-]+)"', (ROOT / "tui/keys/commands.def").read_text(encoding="utf-8"), re.M)
assert len(VIEWS) > 10 and len(COMMANDS) > 5


class Monkey:
    """A stream of steps. A step is (inputs it counts for, what): bytes to send, ("resize", cols, rows), ("signal", n) or
    ("wait", s)."""

    def __init__(self, random, cols, rows):
        self.random, self.cols, self.rows = random, cols, rows

    def key(self):
        while True:
            action, text = self.random.choice(KEYS)
            if self.random.random() < SELDOM.get(action, 1):
                # In a prompt `/` is part of a path, and what is saved must stay in this folder.
                return ("\x1b" if text == "/" else "") + text

    def place(self):
        r = self.random
        parts = [r.choice(STAGES) + " "] if r.random() < 0.7 else []
        parts += [f"{part}{r.choice((0, 1, 2, 3, 7, 63, 64, 99999))} " for part in "bhqkrc" if r.random() < 0.5]
        return "".join(parts)

    def command(self):
        r = self.random
        kind = r.randrange(11)
        if kind == 0:
            return "go " + self.place()
        if kind == 1:
            return "view " + r.choice(VIEWS)
        if kind == 2:
            return f"stop {r.choice(('', 'global '))}{r.choice(['', 'any ', *[s + ' ' for s in STAGES]])}{r.choice(CONDITIONS)}"
        if kind == 3:
            return "pin " + self.place()
        if kind == 4:
            return "set " + r.choice(SETTINGS)
        if kind == 5:
            return "whatif " + r.choice(FORMATS)
        if kind == 6:
            return r.choice(("save", f"save m{r.randrange(4)}.safetensors", "save .", "save tests"))
        if kind == 7:
            return "help " + r.choice(["", *VIEWS, *COMMANDS, "zzz", "nan", "n"])
        if kind == 8:
            return r.choice(("stops", "marks", "unstop 1", "unstop all", "unstop 77", "unpin", "unpin 1", "mark a"))
        if kind == 9:
            return f"{r.choice((1, 3, 200, 99999))} {r.choice([action for action, _ in KEYS if action != 'quit'])}"
        return "".join(r.choice("abcdefghijklmnopqrstuvwxyz0123456789 .=<>-") for _ in range(r.randrange(300)))

    def line(self):
        """A command as it is typed: cut short and completed, edited, recalled."""
        r = self.random
        text = self.command()
        if r.random() < 0.4:
            text = text[:r.randrange(len(text) + 1)] + "\t" * r.randrange(1, 4)
        for _ in range(r.choice((0, 0, 0, 1, 4))):
            at = r.randrange(len(text) + 1)
            text = text[:at] + r.choice(("\x01", "\x05", "\x17", "\x0b", "\x7f", "\x1bOD", "\x1bOC", "\x1bOA", "\x1bOB",
                                         "\x1bOH", "\x1bOF", "\x1b[3~", "\t", "\x1b[Z", "é", "\x15")) + text[at:]
        return ":" + text + r.choice(("\r", "\r", "\r", "\x1b", "\x03", ""))

    def search(self):
        r = self.random
        return "\x1b/" + r.choice(WORDS) + r.choice(("\r", "\r", "\x1b", "\x03")) + r.choice(("", "n", "N", "3n", "nnN"))

    def letter(self):
        r = self.random
        what = r.choice("m'Y")
        return what + r.choice("vpcc" if what == "Y" else "abzZ'" ) + r.choice(("", "\x1b", "\r"))

    def mouse(self):
        r = self.random
        x, y = r.randint(1, max(1, self.cols)), r.randint(1, max(1, self.rows))
        kind = r.random()
        if kind < 0.5:
            return f"\x1b[<0;{x};{y}M\x1b[<0;{x};{y}m" * r.choice((1, 1, 2))
        if kind < 0.7:
            return f"\x1b[<{r.choice((64, 65))};{x};{y}M" * r.randint(1, 5)
        if kind < 0.9:
            drags = "".join(f"\x1b[<32;{r.randint(1, self.cols + 3)};{r.randint(1, self.rows + 3)}M" for _ in range(r.randint(1, 6)))
            return f"\x1b[<0;{x};{y}M{drags}" + r.choice((f"\x1b[<0;{x};{y}m", ""))
        return r.choice(("\x1b[<", "\x1b[<0;", f"\x1b[<0;{x};{y}", "\x1b[<0;0;0M", "\x1b[<0;99999;99999M",
                         "\x1b[<2;3;4M", "\x1b[<999;1;1M", "\x1b[<-1;-1;-1M", "\x1b[<0;99999999999999;1M"))

    def nonsense(self):
        """Characters, cut UTF-8, cut sequences. Nothing that means something to a terminal which is not in raw mode,
        as while an editor is open: Ctrl-S would stop its output, Ctrl-backslash ends the program."""
        r = self.random
        text = bytes(r.randrange(256) for _ in range(r.randint(1, 12)))
        text = text.translate(None, b"\x13\x1c/:q")
        return text + r.choice((b"", b"\x1b[", b"\x1bO", "ü€😀".encode()))

    def step(self):
        r = self.random
        kind = r.random()
        if kind < 0.60:
            n = r.choice((1, 1, 1, 1, 2, 3, 10))
            return n, "".join(self.key() for _ in range(n)).encode()
        if kind < 0.66:
            return 2, f"{r.choice((2, 3, 10, 64, 999, 1000000000))}{self.key()}".encode()
        if kind < 0.78:
            text = self.mouse()
            return max(1, text.count("\x1b[<")), text.encode()
        if kind < 0.85:
            return 1, ("resize", *self.size())
        if kind < 0.92:
            text = self.line()
            return len(text), text.encode()
        if kind < 0.94:
            text = self.search()
            return len(text), text.encode()
        if kind < 0.96:
            return 2, self.letter().encode()
        if kind < 0.975:
            text = self.nonsense()
            return len(text), text
        if kind < 0.98:
            return 1, ("signal", r.choice((signal.SIGWINCH, signal.SIGCONT, signal.SIGTSTP, signal.SIGINT)))
        return 0, ("wait", r.choice((0.02, 0.1, 0.5)))

    def size(self):
        r = self.random
        # Half of the time a size at which there is something to see.
        usable = [size for size in SIZES if size[0] >= 80 and size[1] >= 24]
        self.cols, self.rows = r.choice(usable) if r.random() < 0.5 else r.choice(SIZES) if r.random() < 0.5 else (
            r.randint(1, 300), r.randint(1, 100))
        return self.cols, self.rows
