#!/usr/bin/env python3
"""`--on HOST`: what has changed goes there, the trace comes back, names are those of here; whatever is wrong with the way
is one line. First by way of a stand-in of ssh that hands the command to a shell, as sshd does; then by ssh and an sshd of
this test's own on the loopback address."""

import getpass
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BUILD", ROOT / "build")).resolve()
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/monkey")]
import tap  # noqa: E402
from terminal import Terminal  # noqa: E402

PROGRAM = BUILD / "attnscope"
KERNEL = "a dir/it's \"$(touch evil)\" & `x`.cu"
# $there: what sshd would run; attnscope is in PATH there.
SSH = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
echo "$2" > {folder}/destination
shift 2
export PATH={path} ATTNSCOPE_CACHE={folder}/there ATTNSCOPE_BACKEND=cpu
cd /
{body}
"""
PLAIN = 'exec sh -c "$*"'


class On(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory(prefix="attnscope-on-")
        cls.addClassCleanup(holder.cleanup)
        cls.folder = Path(holder.name)
        for name in ("bin", "there", "a dir", "headers"):
            (cls.folder / name).mkdir()
        text = (ROOT / "docs/examples/my_attention.cu").read_text(encoding="utf-8")
        cls.text = text.replace('#include "attnscope.h"', '#include "attnscope.h"\n#include "factor.h"').replace(
            "s *= scale;", "s *= scale * FACTOR;")
        assert cls.text.count("FACTOR") == 1
        (cls.folder / KERNEL).write_text(cls.text, encoding="utf-8")
        cls.factor("1.0f")
        cls.env = {**os.environ, "ATTNSCOPE_PROGRESS": "no", "LC_ALL": "C.UTF-8", "TERM": "xterm-256color",
                   "ATTNSCOPE_CACHE": str(cls.folder / "here"), "PATH": f"{cls.folder}/bin:{os.environ['PATH']}"}
        cls.way(PLAIN)

    @classmethod
    def factor(cls, value):
        (cls.folder / "headers/factor.h").write_text(f"#define FACTOR {value}\n", encoding="utf-8")

    @classmethod
    def way(cls, body, path=f"{BUILD}:/usr/local/bin:/usr/bin:/bin"):
        ssh = cls.folder / "bin/ssh"
        ssh.write_text(SSH.format(folder=cls.folder, path=path, body=body), encoding="utf-8")
        ssh.chmod(0o755)

    @classmethod
    def run_on(cls, *words, on="gpu.example", **more):
        done = subprocess.run([PROGRAM, "run", KERNEL, "-I", "headers", "--shape", "1,1,40,64", "--on", on, *words],
                              cwd=cls.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100,
                              check=False, **{"env": cls.env, **more})
        return done.returncode, done.stdout, done.stderr

    def fails(self, status, *texts, on="gpu.example"):
        code, out, err = self.run_on(on=on)
        self.assertEqual((code, out, err.count("\n")), (status, "", 1), err)
        for text in texts:
            self.assertIn(text, err)

    def goes_there_and_comes_back(self):
        """All sources once, then what has changed; the names of here in the report."""
        shutil.rmtree(self.folder / "there/sent", ignore_errors=True)
        before = {*self.folder.glob("there/work.*")}  # of connections that were cut
        self.factor("1.0f")
        status, out, err = self.run_on()
        self.assertEqual((status, err), (0, ""), out)
        self.assertRegex(out, r"gpu.example: sent 3 files, .*; .*s there; .* back")
        self.assertIn("CLEAN", out)
        self.assertRegex(self.run_on()[1], "sent 0 files")
        self.factor("2.0f")
        status, out, err = self.run_on("-o", "saved.safetensors")
        self.assertEqual((status, err), (1, ""), out)
        self.assertRegex(out, "sent 1 file,")
        self.assertIn(f"probe at {KERNEL}:", out)
        data = (self.folder / "saved.safetensors").read_bytes()
        texts = json.loads(data[8:8 + int.from_bytes(data[:8], "little")])["__metadata__"]
        self.assertEqual(json.loads(texts["attnscope.run"])["source_name"], KERNEL)
        self.assertFalse(list(self.folder.rglob("evil")))
        self.assertLessEqual({*self.folder.glob("*here/work.*")}, before)

    def test_goes_there_and_comes_back(self):
        self.way("echo a login that talks; echo '{'; " + PLAIN)
        self.goes_there_and_comes_back()

    def test_a_compilers_message_is_at_the_line_here(self):
        self.way(PLAIN)
        self.factor("nonsense")
        status, out, err = self.run_on()
        self.assertEqual((status, out), (3, ""), err)
        self.assertTrue(err.startswith(f"attnscope: {KERNEL}:"), err)
        self.assertIn("'nonsense' was not declared", err)

    def test_what_is_in_the_way_is_one_line(self):
        self.way(PLAIN, path="/nowhere:/bin")
        self.fails(3, "gpu.example", "no attnscope in PATH")
        self.way("""echo '{"attnscope": "0.0.7", "abi": 1}'; cat > /dev/null""")
        self.fails(3, "has attnscope 0.0.7")
        self.way("echo 'ssh: connect to host gpu.example port 22: Connection refused' >&2; exit 255")
        self.fails(3, "Connection refused")
        self.way("printf 'no \\033[2J route\\n' >&2; exit 255")
        self.fails(3, "no ^[[2J route")

    def test_a_connection_that_is_lost_loses_nothing(self):
        self.factor("1.0f")
        self.way(PLAIN)
        self.assertEqual(self.run_on()[0], 0)
        for count in (80, 20000):  # before it runs, and within the trace
            self.way('sh -c "$*" | { ' + f"dd bs=1 count={count} status=none; kill $$; " + "}")
            self.fails(3, "connection was lost", "r tries again")
        self.assertFalse(list(self.folder.glob("here/work.*")))

    def test_destinations_are_those_of_ssh(self):
        self.way("exit 255")
        for given, handed in (("me@host", "me@host"), ("me@host:2222", "ssh://me@host:2222"), ("ssh://h:1", "ssh://h:1"),
                              ("a b;c", "a b;c"), ("fe80::1", "fe80::1")):
            self.fails(3, on=given)
            self.assertEqual((self.folder / "destination").read_text(encoding="utf-8"), handed + "\n")
        self.fails(2, "destination of ssh", on="-oProxyCommand=x")

    def test_what_needs_more_than_a_run_is_refused(self):
        self.way(PLAIN)
        self.factor("1.0f")
        status, _, err = self.run_on("--isolate", "s")
        self.assertEqual((status, err.count("\n")), (2, 1), err)
        self.assertIn("start attnscope on that machine", err)

    def test_saving_runs_it_there(self):
        self.way(PLAIN)
        self.factor("1.0f")
        terminal = Terminal([str(PROGRAM), KERNEL, "-I", "headers", "--shape", "1,1,40,64", "--on", "gpu.example"], self.env,
                            self.folder, 160, 40)
        self.addCleanup(terminal.close)

        def see(*texts):
            for _ in range(600):
                terminal.drain(0.1)
                if all(terminal.has(text) for text in texts):
                    return
            self.fail(f"{texts} did not come")

        see("on gpu.example", "CLEAN")
        terminal.forget()
        self.factor("2.0f")
        see("FAIL", "sent ")
        self.way("exit 255")
        terminal.forget()
        terminal.send(b"r")
        see("nothing answers there")
        self.way(PLAIN)
        terminal.forget()
        terminal.send(b"r")
        see("sent 0 files")


class Sshd(On):
    """The same by way of the real programs."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.why = cls.start()

    @classmethod
    def start(cls):
        """Why there is none."""
        cls.sshd = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
        if not cls.sshd or not shutil.which("ssh-keygen") or not shutil.which("ssh"):
            return "sshd is not installed (openssh-server)"
        if os.getuid() == 0 and not Path("/run/sshd").is_dir():
            return "sshd of root needs /run/sshd, which its service makes"
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", cls.folder / name], check=True)
        shutil.copy(cls.folder / "user.pub", cls.folder / "authorized")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        f = cls.folder
        (f / "sshd_config").write_text(
            f"Port {port}\nListenAddress 127.0.0.1\nHostKey {f}/host\nAuthorizedKeysFile {f}/authorized\nPidFile none\n"
            f"StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\n"
            f"SetEnv PATH={BUILD}:/usr/local/bin:/usr/bin:/bin ATTNSCOPE_CACHE={f}/there ATTNSCOPE_BACKEND=cpu\n",
            encoding="utf-8")
        known = (f / "host.pub").read_text(encoding="utf-8").split()
        (f / "known").write_text(f"[127.0.0.1]:{port} {known[0]} {known[1]}\n", encoding="utf-8")
        (f / "ssh_config").write_text(
            f"Host gpu.example\n HostName 127.0.0.1\n Port {port}\n User {getpass.getuser()}\n IdentityFile {f}/user\n"
            f" IdentitiesOnly yes\n UserKnownHostsFile {f}/known\n", encoding="utf-8")
        real = shutil.which("ssh")
        (f / "bin/ssh").write_text(f'#!/bin/sh\nexec {real} -F {f}/ssh_config "$@"\n', encoding="utf-8")
        (f / "bin/ssh").chmod(0o755)
        cls.server = subprocess.Popen([cls.sshd, "-D", "-e", "-f", f / "sshd_config"], stdin=subprocess.DEVNULL,
                                      stdout=subprocess.DEVNULL, stderr=open(f / "sshd.log", "wb"))
        cls.addClassCleanup(cls.server.wait)
        cls.addClassCleanup(cls.server.kill)
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return ""
            if cls.server.poll() is not None:
                break
            time.sleep(0.1)
        return f"sshd did not start: {(f / 'sshd.log').read_text(errors='replace').strip()[-200:]}"

    @classmethod
    def way(cls, body, path=""):
        """There is but one."""

    def test_goes_there_and_comes_back(self):
        if self.why:
            self.skipTest(self.why)
        self.goes_there_and_comes_back()

    def test_what_is_interrupted_ends_there_too(self):
        if self.why:
            self.skipTest(self.why)
        process = subprocess.Popen([PROGRAM, "run", KERNEL, "-I", "headers", "--shape", "4,32,4096,64", "--on", "gpu.example"],
                                   cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(process.kill)

        def until(condition):
            for _ in range(300):
                if condition():
                    return
                time.sleep(0.1)
            self.fail("it did not come to that")

        until(lambda: list(self.folder.glob("there/work.*/source")))
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(20), -signal.SIGINT)
        until(lambda: not list(self.folder.glob("there/work.*")))


for name in dir(On):
    if name.startswith("test_") and name != "test_goes_there_and_comes_back":
        setattr(Sshd, name, None)

if __name__ == "__main__":
    tap.main()
