#!/usr/bin/env python3
"""docs/examples/sweep.sbatch on a cluster of one node that the test starts: an array of four shards, merged. SKIP where
Slurm or MUNGE is not installed, or the test is not run by root, as whom slurmctld and slurmd are started."""

import json
import os
import secrets
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
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "sinfo", "squeue")
CONF = """ClusterName=attnscope
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
MailProg=/bin/true
ReturnToService=2
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SchedulerParameters=batch_sched_delay=0,sched_interval=1
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=5 State=UP
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Slurm(unittest.TestCase):
    def setUp(self):
        missing = [name for name in PROGRAMS if not shutil.which(name, path="/usr/sbin:" + os.environ["PATH"])]
        if missing:
            self.skipTest(f"not installed: {', '.join(missing)} (packages slurm-wlm, munge)")
        if os.geteuid() != 0:
            self.skipTest("slurmctld and slurmd are started as root, which this is not")
        self.folder = Path(tempfile.mkdtemp(prefix="attnscope-slurm-", dir="/tmp"))
        self.daemons = []
        self.environment = dict(os.environ, PATH=f"{BUILD}:/usr/sbin:{os.environ['PATH']}", ATTNSCOPE_PROGRESS="no",
                                SLURM_CONF=str(self.folder / "slurm.conf"))

    def tearDown(self):
        for daemon in reversed(self.daemons):
            daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(timeout=10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, *command):
        log = open(self.folder / f"{command[0]}.out", "wb")
        with log:
            self.daemons.append(subprocess.Popen([str(word) for word in command], cwd=self.folder, env=self.environment,
                                                 stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def logs(self):
        return "".join(f"--- {path.name}\n{path.read_text(errors='replace')[-1500:]}\n"
                       for path in [*self.folder.glob("*.out"), *self.folder.glob("*.log")])

    def wait(self, what, condition, seconds):
        end = time.monotonic() + seconds
        while not condition():
            dead = [daemon.args[0] for daemon in self.daemons if daemon.poll() is not None]
            self.assertTrue(time.monotonic() < end and not dead, f"{what}: {dead}\n{self.logs()}")
            time.sleep(0.2)

    def say(self, *command):
        done = subprocess.run(command, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=60, check=False)
        return done.returncode, done.stdout, done.stderr

    def cluster(self):
        (self.folder / "state").mkdir()
        (self.folder / "spool").mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o600)
        self.folder.chmod(0o755)
        (self.folder / "slurm.conf").write_text(
            CONF.format(host=socket.gethostname().split(".")[0], folder=self.folder, ports=(free_port(), free_port())),
            encoding="utf-8")
        self.start("munged", "--foreground", "--force", "--num-threads=1", f"--socket={self.folder}/munge.socket",
                   f"--key-file={key}", f"--pid-file={self.folder}/munge.pid", f"--log-file={self.folder}/munge.log",
                   f"--seed-file={self.folder}/munge.seed")
        self.wait("munged", (self.folder / "munge.socket").exists, 20)
        self.start("slurmctld", "-D", "-i", "-f", self.folder / "slurm.conf")
        self.start("slurmd", "-D", "-f", self.folder / "slurm.conf")
        self.wait("the node is not idle", lambda: "idle" in self.say("sinfo", "-h", "-o", "%T")[1].split(), 60)

    def test_an_array_of_four_shards(self):
        self.cluster()
        shutil.copy(ROOT / "docs/examples/with_plan.cu", self.folder / "my_attention.cu")
        shutil.copy(ROOT / "docs/examples/sweep.sbatch", self.folder)
        status, out, err = self.say("sbatch", "--parsable", "--export=ALL,RUNS=24", "sweep.sbatch")
        self.assertEqual(status, 0, err + self.logs())
        job = out.strip()
        self.wait("the array does not end", lambda: self.say("squeue", "-h", "-j", job)[1] == "", 150)
        status, out, err = self.say("attnscope", "sweep", "--merge", *(f"sweep-{i}.json" for i in range(1, 5)), "--json")
        self.assertEqual(status, 0, err + self.logs())
        result = json.loads(out)
        self.assertEqual([point["number"] for point in result["points"]], list(range(24)))
        self.assertEqual(result["result"], "clean")


if __name__ == "__main__":
    tap.main()
