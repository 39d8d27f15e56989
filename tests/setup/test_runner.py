#!/usr/bin/env python3
"""tests/run, run on small trees of programs that pass, fail, skip, die, hang and fall silent."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402


class Runner(unittest.TestCase):
    def setUp(self):
        self.tree = Path(tempfile.mkdtemp(prefix="attnscope-runner-"))
        self.addCleanup(shutil.rmtree, self.tree)
        (self.tree / "tests/x").mkdir(parents=True)
        shutil.copy(ROOT / "tests/run", self.tree / "tests/run")

    def script(self, name, body):
        path = self.tree / f"tests/x/test_{name}.sh"
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def run_tests(self, *arguments):
        environment = {name: value for name, value in os.environ.items() if name != "MODE"}  # it stretches the limits
        done = subprocess.run([self.tree / "tests/run", *arguments], capture_output=True, text=True, timeout=60,
                              check=False, env=environment)
        return done.returncode, done.stdout, done.stdout.splitlines()[-1]

    def test_pass(self):
        self.script("a", "echo 1..2; echo ok 1 - one; echo chatter; echo ok 2 - two")
        self.assertEqual(self.run_tests()[0::2], (0, "2 passed, 0 failed"))

    def test_failed_case_shows_its_output(self):
        self.script("a", "echo 1..2; echo ok 1 - one; echo before; echo not ok 2 - two; echo '# after'; echo err >&2; exit 1")
        status, out, last = self.run_tests()
        self.assertEqual((status, last), (1, "1 passed, 1 failed"))
        self.assertIn("FAIL x/test_a: two\n     before\n     # after\n     err\n", out)

    def test_the_first_tier_is_a_list(self):
        self.script("a", "echo 1..1; echo ok 1 - one")
        self.script("b", "echo 1..1; echo not ok 1 - one")
        (self.tree / "tests/quick.list").write_text("# why\nx/test_a  0.1\n", encoding="utf-8")
        self.assertEqual(self.run_tests("--quick")[0::2], (0, "1 passed, 0 failed"))
        (self.tree / "tests/quick.list").write_text("x/test_a  0.1\nx/test_c  0.1\n", encoding="utf-8")
        self.assertEqual(self.run_tests("--quick")[0::2], (1, "tests/quick.list: no such test: x/test_c"))

    def test_comments_belong_to_the_failed_case_above(self):
        self.script("a", "echo 1..2; echo not ok 1 - one; echo '# of one'; echo not ok 2 - two; echo '# of two'; exit 2")
        self.assertIn("FAIL x/test_a: one\n     # of one\nFAIL x/test_a: two\n     # of two\n", self.run_tests()[1])

    def test_failed_case_counts_although_the_exit_status_is_zero(self):
        self.script("a", "echo 1..1; echo not ok 1 - one")
        self.assertEqual(self.run_tests()[0::2], (1, "0 passed, 1 failed"))

    def test_skips(self):
        self.script("a", "echo 1..3; echo ok 1 - one; echo 'ok 2 - two # SKIP no gpu'; echo '# no clang'; "
                         "echo 'not ok 3 # SKIP three'")
        self.script("b", "echo '1..0 # SKIP not today'")
        status, out, last = self.run_tests()
        self.assertEqual((status, last), (0, "1 passed, 0 failed, 3 skipped"))
        self.assertIn("SKIP x/test_a: two: no gpu\n", out)
        self.assertIn("SKIP x/test_a: three: no clang\n", out)
        self.assertIn("SKIP x/test_b: not today\n", out)

    def test_dying_half_way(self):
        self.script("a", "echo 1..3; echo ok 1 - one; kill -SEGV $$")
        status, out, last = self.run_tests()
        self.assertEqual((status, last), (1, "1 passed, 1 failed"))
        self.assertIn("killed by SIGSEGV, 3 cases planned, 1 reported (after one)", out)

    def test_planned_but_not_run(self):
        self.script("a", "echo 1..2; echo ok 1 - one")
        self.assertEqual(self.run_tests()[0::2], (1, "1 passed, 1 failed"))

    def test_more_than_planned(self):
        self.script("a", "echo 1..1; echo ok 1 - one; echo ok 2 - two")
        self.assertEqual(self.run_tests()[0::2], (1, "2 passed, 1 failed"))

    def test_no_plan_and_no_cases(self):
        self.script("a", "echo ok 1 - one")
        self.script("b", "true")
        self.script("c", "echo 1..0")
        self.assertEqual(self.run_tests()[0::2], (1, "1 passed, 3 failed"))

    def test_exit_status_without_a_failed_case(self):
        self.script("a", "echo 1..1; echo ok 1 - one; exit 7")
        status, out, last = self.run_tests()
        self.assertEqual((status, last), (1, "1 passed, 1 failed"))
        self.assertIn("exit status 7, yet no case failed", out)

    def test_a_failed_group_fixture_is_a_failure_outside_the_plan(self):
        self.script("a", "echo 1..1; echo ok 1 - one; echo 'not ok 0 - group [  FAILED  ] GROUP TEARDOWN'; exit 1")
        status, out, last = self.run_tests()
        self.assertEqual((status, last), (1, "1 passed, 1 failed"))
        self.assertIn("FAIL x/test_a: group: group teardown\n", out)

    def test_groups_add_up(self):
        self.script("a", "echo 1..1; echo ok 1 - one; echo '# ok - group'; echo 1..1; echo ok 1 - two")
        self.assertEqual(self.run_tests()[0::2], (0, "2 passed, 0 failed"))

    def test_time_limit_is_for_silence(self):
        self.script("a", "echo 1..3; for i in 1 2 3; do sleep 2; echo ok $i; done")
        status, out, last = self.run_tests("--limit", "5")
        self.assertEqual((status, last), (0, "3 passed, 0 failed"), out)

    def test_time_limit_kills_the_whole_group(self):
        self.script("a", f"echo 1..1; sh -c 'sleep 3; touch {self.tree}/alive' & sleep 30; echo ok 1 - late")
        began = time.monotonic()
        status, out, last = self.run_tests("--limit", "0.5")
        self.assertEqual((status, last), (1, "0 passed, 1 failed"))
        self.assertIn("nothing reported for 0.5 s", out)
        time.sleep(max(0, 3.5 - (time.monotonic() - began)))
        self.assertFalse((self.tree / "alive").exists())

    def test_nothing_ran(self):
        self.assertEqual(self.run_tests()[0::2], (1, "0 passed, 0 failed"))
        self.script("a", "echo '1..0 # SKIP nothing here'")
        self.assertEqual(self.run_tests()[0::2], (1, "0 passed, 0 failed, 1 skipped"))

    def test_unit_that_was_not_built(self):
        (self.tree / "tests/unit/base").mkdir(parents=True)
        (self.tree / "tests/unit/base/test_u.c").touch()
        status, out, last = self.run_tests()
        self.assertEqual((status, last), (1, "0 passed, 1 failed"))
        self.assertIn("FAIL unit/test_u: the program itself\n     build/tests/test_u is not built: make build/tests/test_u\n", out)

    def test_filter(self):
        self.script("a", "echo 1..1; echo ok 1 - one")
        self.script("b", "echo 1..1; echo not ok 1 - two")
        self.assertEqual(self.run_tests("test_a")[0::2], (0, "1 passed, 0 failed"))

    def test_what_a_program_sees(self):
        self.script("a", 'echo 1..1; [ "$PWD" = ' + os.path.realpath(self.tree) + ' ] && [ "$CMOCKA_MESSAGE_OUTPUT" = TAP ] '
                         '&& [ "$ATTNSCOPE" = "$PWD/build/attnscope" ] && ! read -r _ && echo ok 1 - one || echo not ok 1 - one')
        self.assertEqual(self.run_tests()[0::2], (0, "1 passed, 0 failed"))


if __name__ == "__main__":
    tap.main()
