"""Runs the unittest cases of the calling script and writes TAP."""

import sys
import unittest


class TapResult(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.number = 0

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

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._line(test, "ok", f" # SKIP {reason}")


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
