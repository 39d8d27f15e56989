"""Runs the unittest cases of the calling script and writes TAP."""

import os
import sys
import time
import unittest


class TapResult(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.number = 0
        self.told = time.monotonic()

    def _line(self, test, word, detail="", comment=""):
        self.number += 1
        name = test.id().split(".", 1)[-1]
        print(f"{word} {self.number} - {name}{detail}")
        for line in comment.splitlines():
            print(f"# {line}")
        sys.stdout.flush()

    def addSuccess(self, test):
        super().addSuccess(test)
        self._line(test, "ok")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._line(test, "not ok", comment=self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        self._line(test, "not ok", comment=self.errors[-1][1])

    def addSubTest(self, test, subtest, err):
        """A case of which a part has failed gets no addSuccess(): its line stands here, at the first such part."""
        failed_before = any(case is test or getattr(case, "test_case", None) is test
                            for case, _ in self.failures + self.errors)
        super().addSubTest(test, subtest, err)
        if err is None:
            if time.monotonic() - self.told > 30:  # a sign of life: tests/run ends who is silent for long
                self.told = time.monotonic()
                print(f"# {subtest._subDescription()}", flush=True)
            return
        said = (self.failures if issubclass(err[0], test.failureException) else self.errors)[-1][1]
        if failed_before:
            print("".join(f"# {line}\n" for line in f"{subtest}\n{said}".splitlines()), end="", flush=True)
        else:
            self._line(test, "not ok", comment=f"{subtest}\n{said}")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._line(test, "ok", f" # SKIP {reason}")


def takes_all():
    """Whether nothing is sampled: `make test TESTS=all`."""
    return os.environ.get("TESTS") == "all"


def sampled(items, most):
    """At most so many of these, evenly spaced; all of them where nothing is sampled."""
    items = list(items)
    return items if takes_all() else items[::max(1, -(-len(items) // most))]


def main():
    """Runs all cases of __main__, or those whose name contains a word of the command line."""
    words = sys.argv[1:]
    suite = unittest.TestSuite()
    for group in unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"]):
        for test in group:
            if not words or any(word in test.id() for word in words):
                suite.addTest(test)
    print(f"1..{suite.countTestCases()}", flush=True)
    result = TapResult()
    suite.run(result)
    sys.exit(0 if result.wasSuccessful() else 1)
