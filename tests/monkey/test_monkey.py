#!/usr/bin/env python3
"""A short walk of the monkey, always the same one: `make monkey` is the long one, under the sanitizers."""

import os
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(HERE))

import inputs  # noqa: E402
import monkey  # noqa: E402
import tap  # noqa: E402

BUILD = os.environ.get("BUILD", str(ROOT / "build"))
SUBJECTS = "^(hung|illegal-address|double-scale|small|edited|no file|fixture (plain|busy|commands))$"
SESSIONS, INPUTS = 9, 450


class Walk(unittest.TestCase):
    def test_the_walk(self):
        options = monkey.arguments(["--build", BUILD, "--seed", "1", "--subject", SUBJECTS, "--each", str(INPUTS)])
        for number in range(SESSIONS):
            with self.subTest(session=number):
                session, said = monkey.run_session(options, number)
                self.assertEqual(said, [], "\n".join(said))
                self.assertGreaterEqual(session.inputs, INPUTS)

    def test_a_seed_says_the_whole_walk(self):
        def steps(seed):
            chance = monkey.random.Random(seed)
            one = inputs.Monkey(chance, 80, 24)
            return [one.step() for _ in range(3000)]
        self.assertEqual(steps("1/2"), steps("1/2"))
        self.assertNotEqual(steps("1/2"), steps("1/3"))

    def test_every_view_is_reached_by_a_key(self):
        actions = {action for action, _ in inputs.KEYS}
        # That of a sweep takes a file: `:sweep` opens it.
        self.assertEqual([view for view in inputs.VIEWS if view not in actions], ["sweep"])


if __name__ == "__main__":
    tap.main()
