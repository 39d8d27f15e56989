#!/usr/bin/env python3
""".ci/setup in every situation: root or not, terminal or not, sudo or not. PATH holds stand-ins only, and a table whose
packages are commands, so that nothing outside a temporary folder is asked for or changed. And what make does with it."""

import os
import pty
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BUILD", ROOT / "build")).resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

TABLE = """# comment
build,test | tool-one-dev | command tool-one
build,test | tool-two     | command tool-two
test       | tool-three   | command tool-three
"""
REAL = ["sh", "cat", "cksum", "dirname", "env", "grep", "mkdir", "rm", "sed", "stat", "tail", "tr", "touch", "chmod"]
APT = """#!/bin/sh
echo "apt-get $*" >>"$LOG"
[ "$DEBIAN_FRONTEND" = noninteractive ] && echo "noninteractive" >>"$LOG"
[ "$1" = update ] && exit "${UPDATE_STATUS:-0}"
echo "words of apt-get"
[ "${INSTALL_STATUS:-0}" -eq 0 ] || exit "$INSTALL_STATUS"
for package; do
    case $package in
    tool-*) tool=${package%-dev}; [ "$BROKEN" = "$tool" ] || { touch "$BIN/$tool"; chmod +x "$BIN/$tool"; } ;;
    esac
done
"""
SUDO = """#!/bin/sh
echo "sudo $*" >>"$LOG"
if [ "$1" = -n ]; then shift; [ "$SUDO_FREE" = 1 ] || exit 1; fi
"$@"
"""
INSTALL = "apt-get install -y --no-install-recommends"


class Setup(unittest.TestCase):
    def setUp(self):
        self.tree = Path(tempfile.mkdtemp(prefix="attnscope-setup-"))
        self.addCleanup(shutil.rmtree, self.tree)
        (self.tree / ".ci").mkdir()
        shutil.copy(ROOT / ".ci/setup", self.tree / ".ci/setup")
        (self.tree / ".ci/packages").write_text(TABLE)
        self.bin = self.tree / "bin"
        self.bin.mkdir()
        for name in REAL:
            (self.bin / name).symlink_to(shutil.which(name, path="/usr/bin:/bin"))
        self.log = self.tree / "log"
        self.log.touch()
        self.environment = {"PATH": str(self.bin), "LOG": str(self.log), "BIN": str(self.bin), "LC_ALL": "C.UTF-8"}
        self.tool("apt-get", APT)

    def tool(self, name, text="#!/bin/sh\n"):
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def user(self, uid):
        self.tool("id", f"#!/bin/sh\necho {uid}\n")

    def setup(self, *arguments, **environment):
        """Without a terminal. Returns exit status, stderr, and what was called."""
        self.log.write_text("")
        done = subprocess.run([".ci/setup", *(arguments or ("build",))], cwd=self.tree, env={**self.environment, **environment},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, check=False)
        self.assertEqual(done.stdout, "")
        return done.returncode, done.stderr, self.log.read_text()

    def setup_on_terminal(self, answer, target="build", **environment):
        self.log.write_text("")
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.tree)
            os.execve(".ci/setup", [".ci/setup", target], {**self.environment, **environment})
        screen, answered, end = "", False, time.monotonic() + 20
        while time.monotonic() < end:
            if not select.select([terminal], [], [], 0.2)[0]:
                continue
            try:
                data = os.read(terminal, 4096)
            except OSError:  # the other side has closed
                break
            if not data:
                break
            screen += data.decode()
            if "[Y/n]" in screen and not answered:
                os.write(terminal, answer)
                answered = True
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.close(terminal)
        return status, screen.replace("\r\n", "\n"), self.log.read_text()

    def test_nothing_missing(self):
        self.user(1000)
        self.tool("tool-one")
        self.tool("tool-two")
        self.assertEqual(self.setup(), (0, "", ""))

    def test_root_installs_only_what_is_missing(self):
        self.user(0)
        self.tool("tool-one")
        status, err, calls = self.setup()
        self.assertEqual((status, err), (0, "attnscope: installing tool-two\n"))
        self.assertEqual(calls, f"apt-get update -qq\n{INSTALL} tool-two\nnoninteractive\n")
        self.assertEqual(self.setup(), (0, "", ""))

    def test_targets_differ(self):
        self.user(0)
        self.assertIn(f"{INSTALL} tool-one-dev tool-two\n", self.setup("build")[2])
        self.assertIn(f"{INSTALL} tool-three\n", self.setup("test")[2])
        self.assertEqual(self.setup("lint"), (0, "", ""))

    def test_root_on_a_terminal_is_not_asked(self):
        self.user(0)
        status, screen, calls = self.setup_on_terminal(b"n\n")
        self.assertEqual((status, screen), (0, "attnscope: installing tool-one-dev tool-two\n"))
        self.assertIn(f"{INSTALL} tool-one-dev tool-two\n", calls)

    def test_terminal_yes(self):
        self.user(1000)
        self.tool("sudo", SUDO)
        command = f"sudo apt-get update -qq; sudo env DEBIAN_FRONTEND=noninteractive {INSTALL} tool-one-dev tool-two"
        for answer in (b"\n", b"y\n", b"Yes\n"):
            for name in ("tool-one", "tool-two"):
                (self.bin / name).unlink(missing_ok=True)
            shutil.rmtree(self.tree / "build", ignore_errors=True)
            status, screen, calls = self.setup_on_terminal(answer)
            self.assertEqual(status, 0, screen)
            self.assertIn(command + "\n", screen)
            self.assertIn(f"sudo apt-get update -qq\napt-get update -qq\nsudo env DEBIAN_FRONTEND=noninteractive {INSTALL} "
                          f"tool-one-dev tool-two\n{INSTALL} tool-one-dev tool-two\nnoninteractive\n", calls)

    def test_terminal_no(self):
        self.user(1000)
        self.tool("sudo", SUDO)
        for answer in (b"n\n", b"what\n", b"\x04"):
            status, screen, calls = self.setup_on_terminal(answer)
            self.assertEqual((status, calls), (3, ""), screen)
            self.assertIn("nothing was installed", screen)

    def test_no_terminal_sudo_without_password(self):
        self.user(1000)
        self.tool("sudo", SUDO)
        status, err, calls = self.setup(SUDO_FREE="1")
        self.assertEqual((status, err), (0, "attnscope: installing tool-one-dev tool-two\n"))
        self.assertIn(f"sudo -n env DEBIAN_FRONTEND=noninteractive {INSTALL} tool-one-dev tool-two\n", calls)

    def test_no_terminal_sudo_wants_a_password(self):
        self.user(1000)
        self.tool("sudo", SUDO)
        status, err, calls = self.setup()
        self.assertEqual((status, calls), (3, "sudo -n true\n"))
        self.assertEqual(err, "attnscope: make build needs more packages; run: sudo apt-get update -qq; sudo env "
                              f"DEBIAN_FRONTEND=noninteractive {INSTALL} tool-one-dev tool-two\n")

    def test_no_sudo(self):
        self.user(1000)
        for status, said, calls in (self.setup(), self.setup_on_terminal(b"y\n")):
            self.assertEqual((status, calls), (3, ""))
            self.assertIn("run as root: apt-get update", said)

    def test_no_apt(self):
        self.user(0)
        (self.bin / "apt-get").unlink()
        status, err, calls = self.setup()
        self.assertEqual((status, calls), (3, ""))
        self.assertIn("no apt-get to install them: tool-one-dev tool-two\n", err)

    def test_failed_update_does_not_stop_the_installation(self):
        self.user(0)
        self.assertEqual(self.setup(UPDATE_STATUS="100")[0], 0)

    def test_failed_installation(self):
        self.user(0)
        status, err, _ = self.setup(INSTALL_STATUS="100")
        self.assertEqual(status, 3)
        self.assertIn("words of apt-get\nattnscope: apt-get failed (100)", err)
        self.assertNotEqual(self.setup(INSTALL_STATUS="100")[0], 0)  # and no stamp says otherwise

    def test_installed_yet_not_there(self):
        self.user(0)
        status, err, _ = self.setup(BROKEN="tool-two")
        self.assertEqual(status, 3)
        self.assertIn("still not there: tool-two\n", err)

    def test_usage(self):
        self.user(0)
        for target in ("", "all", "../x"):
            status, err, calls = self.setup(target)
            self.assertEqual((status, err, calls), (2, "usage: .ci/setup [--check] build|run|test|lint|deb\n", ""))

    def test_a_check_installs_nothing(self):
        self.user(0)
        self.tool("tool-one")
        status, err, calls = self.setup("--check", "test")
        self.assertEqual((status, calls), (3, ""))
        self.assertIn("are missing, by the names of Debian's packages: tool-two tool-three (`make setup-test`", err)
        self.tool("tool-two")
        self.assertEqual(self.setup("--check", "build"), (0, "", ""))

    def test_make_names_what_is_missing_and_installs_nothing(self):
        self.user(0)
        environment = {**os.environ, **self.environment, "PATH": f"{self.bin}:{os.environ['PATH']}"}
        done = subprocess.run(["make", "all", f"B={BUILD.relative_to(ROOT)}", "CPPFLAGS=-nostdinc"], cwd=ROOT, env=environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout, self.log.read_text()), (2, "", ""))
        said, error = done.stderr.splitlines()
        self.assertIn("libc6-dev libncurses-dev libjansson-dev libinih-dev libxxhash-dev libminizip-dev (`make setup-build` installs them)", said)
        self.assertRegex(error, r"^make: \*\*\* \[Makefile:\d+: needs-build\] Error 3$")

    def test_the_compiler_that_is_asked_for(self):
        self.user(0)
        (self.tree / ".ci/packages").write_text("build | gcc | compiler\nbuild | here | c stdio.h\n")
        self.assertIn(f"{INSTALL} gcc here\n", self.setup(CC="not-there")[2])
        path = f"{self.bin}:/usr/bin:/bin"
        for flags, missing in (({}, ""), ({"CPPFLAGS": "-nostdinc"}, "here"), ({"LDFLAGS": "-lnot-there"}, "here")):
            said = self.setup("--check", "build", PATH=path, CC="env gcc", **flags)[1]
            self.assertIn(f"packages: {missing} (" if missing else "", said)
            self.assertEqual(bool(said), bool(missing))

    def test_stamp_notices_a_changed_table(self):
        self.user(0)
        self.setup()
        self.assertEqual(self.setup(), (0, "", ""))
        with open(self.tree / ".ci/packages", "a", encoding="utf-8") as table:
            table.write("build | tool-four | command tool-four\n")
        self.assertIn(f"{INSTALL} tool-four\n", self.setup()[2])

    def test_compiler_probe(self):
        if not shutil.which("gcc", path="/usr/bin") or not shutil.which("as", path="/usr/bin"):
            self.skipTest("no gcc in /usr/bin")
        self.user(0)
        path = f"{self.bin}:/usr/bin:/bin"
        (self.tree / ".ci/packages").write_text("build | right | c stdio.h -lm\nbuild | no-header | c not-there.h\n"
                                                "build | no-library | c stdio.h -lnot-there\n")
        self.assertIn(f"{INSTALL} no-header no-library\n", self.setup(PATH=path)[2])

    def test_without_a_compiler_dpkg_is_asked(self):
        self.user(0)
        (self.tree / ".ci/packages").write_text("build | gcc | command gcc\nbuild | here | c stdio.h\n"
                                                "build | gone | c stdio.h\n")
        self.tool("dpkg-query", '#!/bin/sh\n[ "$4" = here ] && echo install ok installed || echo deinstall ok config-files\n')
        self.assertIn(f"{INSTALL} gcc gone\n", self.setup()[2])

    def test_the_table_itself(self):
        rows = [line.split("|") for line in (ROOT / ".ci/packages").read_text().splitlines() if not line.startswith("#")]
        for row in rows:
            self.assertEqual(len(row), 3, row)
            self.assertLessEqual(set(row[0].strip().split(",")), {"build", "run", "test", "lint", "deb"}, row)
            self.assertIn(row[2].split()[0], ("compiler", "command", "python", "c", "c++"), row)
        self.assertEqual(len({row[1].strip() for row in rows}), len(rows))


if __name__ == "__main__":
    tap.main()
