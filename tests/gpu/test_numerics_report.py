#!/usr/bin/env python3
"""The page of docs/gpu-report/numerics.md, from tables of a GPU that does not exist."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "tests/gpu"))

import numerics_report  # noqa: E402
import tap  # noqa: E402

HEADS = ("status section what setting elements equal equal_share largest_error log2_error error_is error_over_bound "
         "note").split()
FIRST = "# NVIDIA Nothing, sm_90, driver 1.2.3 for CUDA 13.0, runtime 13.1, 2026-01-01 00:00 UTC; of 2^32 arguments every "
LAST = "# 3 rows: 0 do not hold, 0 not on this device, 0 measured without an assumption: what the oracle assumes holds"


def product(name, elements, equal, ratio, note="emulator h100 (every bit is claimed)", status="ok"):
    return f"{status}\tproduct\t{name}\tnormal, chain 1, C\t{elements}\t{equal}\t-\t-\t-\t-\t{ratio}\t{note}"


def candidate(name, rank, elements, equal, note):
    return f"info\tcandidate\t{name}\trank {rank}\t{elements}\t{equal}\t{equal / elements:.6f}\t-\t-\t-\t-\t{note}"


def function(name, setting, error, log2, ratio, note, status="ok"):
    return f"{status}\tfunction\t{name}\t{setting}\t9\t-\t-\t{error}\t{log2}\trelative\t{ratio}\tbound 2 u |y|{note}"


def page(rows, step="1-th (1-th)", driver="", last=LAST):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.tsv"
        path.write_text("\n".join([FIRST + step, "\t".join(HEADS), *rows, last]) + "\n", encoding="utf-8")
        return numerics_report.page(*numerics_report.read(path), driver)


def cells(text, word):
    lines = [line for line in text.splitlines() if line.startswith("|") and word in line]
    assert len(lines) == 1, lines
    return [cell.strip() for cell in lines[0].strip("|").split(" | ")]


class Report(unittest.TestCase):
    def test_products(self):
        text = page([product("mma", 128, 128, 0.25), product("mma", 100, 99, 0.5), product("other", 10_000_000, 9_999_999, 1),
                     candidate("mma", 1, 50, 50, "(16,25,23) carried; at least 6 agree"), candidate("mma", 2, 50, 49, "x"),
                     candidate("other", 1, 50, 50, "a"), candidate("other", 2, 50, 50, "b")])
        self.assertEqual(cells(text, "`mma`")[1:], ["h100", "228", "99.561 %", "0.5", "(16,25,23) carried", "98.000 %"])
        self.assertEqual(cells(text, "`other`")[3:], ["99.999 %", "1", "a", "100 %"])

    def test_no_model(self):
        row = product("mma", 128, "-", "-", "no model of the emulator for sm_90", "info")
        self.assertEqual(cells(page([row]), "`mma`")[1:], ["none", "-", "-", "-", "none", "-"])

    def test_functions(self):
        text = page([function("f", "a", 0.25, -2, 0.4, "; largest error at 1.5 (3fc0); more"),
                     function("f", "b", 0.5, -1, 0.3, "; largest error at 2.5 (4020)"),
                     function("f", "c", 9, 3, 7, "", "info"), function("g", "a", 0.5, -1, "nan", "", "FAIL"),
                     "SKIP\tfunction\th\ta\t0\t-\t-\t-\t-\t-\t-\tnot on this architecture"])
        self.assertEqual(cells(text, "`f`")[1:], ["2 u \\|y\\|", "2^-1.00", "2.5", "0.4"])
        self.assertEqual(cells(text, "`g`")[4], "nan")
        self.assertEqual(cells(text, "`h`")[1], "not on this architecture")
        self.assertIn("What does not hold:\n\n- g, a: bound", text)

    def test_conversions(self):
        row = "FAIL\tconversion\tc\tall codes\t256\t255\t-\t-\t-\t-\t-\tfirst wrong argument 00000001"
        self.assertEqual(cells(page([row]), "| c |")[1:], ["256", "99.609 %: first wrong argument 00000001"])

    def test_where_it_comes_from(self):
        text = page([product("mma", 1, 1, 0)])
        self.assertEqual(cells(text, "| GPU")[1], "NVIDIA Nothing, sm_90")
        self.assertEqual(cells(text, "| driver")[1], "1.2.3 for CUDA 13.0")
        self.assertEqual(cells(text, "| CUDA")[1], "13.1")
        self.assertIn("what the oracle assumes holds", text)
        self.assertNotIn("What does not hold", text)
        self.assertIn("\nAll 2^32 arguments of f32.", text)
        text = page([product("mma", 1, 1, 0)], "61-th (61-th)", "4.5")
        self.assertEqual(cells(text, "| driver")[1], "4.5 for CUDA 13.0")
        self.assertIn("\nOf 2^32 arguments every 61-th (61-th).", text)

    def test_no_table(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "table.tsv"
            for text in ("", "# a\n# b\n", f"{FIRST}1-th\nstatus\twhat\nok\tx\n", f"{FIRST}\nstatus\twhat\nok\n{LAST}\n"):
                path.write_text(text, encoding="utf-8")
                with self.assertRaises(ValueError):
                    numerics_report.read(path)
            done = subprocess.run([ROOT / "tests/gpu/numerics_report.py", path], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("not a table of tests/gpu/numerics.sh", done.stderr)

    def test_findings_are_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            path, out = Path(folder) / "table.tsv", Path(folder) / "report/numerics.md"
            path.write_text("\n".join([FIRST + "1-th", "\t".join(HEADS), product("mma", 1, 1, 0), LAST]), encoding="utf-8")
            command = [ROOT / "tests/gpu/numerics_report.py", path, "-o", out]
            subprocess.run(command, check=True)
            first = out.read_text(encoding="utf-8")
            out.write_text("# old\n\n## Findings\n\nwords\n", encoding="utf-8")
            subprocess.run(command, check=True)
            self.assertEqual(out.read_text(encoding="utf-8"), first + "\n## Findings\n\nwords\n")


if __name__ == "__main__":
    tap.main()
