#!/usr/bin/env python3
"""`make fuzz`: every fuzz target for FUZZ_TIME seconds, beginning with the corpus that `make test` replays.

With clang's libFuzzer, AddressSanitizer and UBSan; where that is missing, with the targets' own driver, which changes the
corpus at random and sees no coverage, under gcc's sanitizers. What ends a target is kept in its corpus as crash-HASH: it
fails `make test` from then on. --minimize puts the inputs that reach most with fewest bytes in the corpus's place, beside
every crash-*. Exits 1 where anything was found.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests/fuzz/corpus"
TARGETS = {"trace": 16384, "shape": 512, "text": 4096, "array": 4096, "bundle": 4096}  # most bytes of an input
CORPUS_BYTES = 400_000  # of each target


def has_libfuzzer():
    if not shutil.which("clang"):
        return False
    name = subprocess.run(["clang", "--print-file-name=libclang_rt.fuzzer-x86_64.a"], stdout=subprocess.PIPE, text=True,
                          check=False).stdout.strip()
    return os.path.isabs(name) and os.path.exists(name)


def keep(name, found):
    """A crash's input into the corpus, under a name of its own."""
    data = found.read_bytes()
    path = CORPUS / name / f"crash-{hashlib.sha256(data).hexdigest()[:12]}"
    path.write_bytes(data)
    print(f"{name}: kept as {path.relative_to(ROOT)}", flush=True)


def with_libfuzzer(name, seconds, work):
    """(executions, failures) of one target."""
    grown = work / name
    grown.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([ROOT / f"build/fuzz/tests/fuzz_{name}", f"-max_total_time={seconds}", "-timeout=60",
                               f"-max_len={TARGETS[name]}", f"-artifact_prefix={folder}/", "-print_final_stats=1", grown,
                               CORPUS / name], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        executions = re.search(r"^stat::number_of_executed_units: (\d+)$", done.stdout, re.MULTILINE)
        if done.returncode:
            print(done.stdout[-8000:])
            for found in sorted(Path(folder).glob("[clot]*-*")):  # crash, leak, oom, timeout
                keep(name, found)
    return int(executions[1]) if executions else 0, int(done.returncode != 0)


def with_driver(name, seconds, work):
    work.mkdir(parents=True, exist_ok=True)
    kept = work / f"{name}.last"
    kept.unlink(missing_ok=True)
    done = subprocess.run([ROOT / f"build/asan/tests/fuzz_{name}", "--seconds", str(seconds), "--kept", kept,
                           CORPUS / name], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    executions = re.search(r"^(\d+) inputs$", done.stdout, re.MULTILINE)
    if done.returncode:
        print(done.stdout[-8000:])
        if kept.exists():
            raw = kept.read_bytes()
            kept.write_bytes(raw[8:8 + int.from_bytes(raw[:8], sys.byteorder)])
            keep(name, kept)
    return int(executions[1]) if executions else 0, int(done.returncode != 0)


def minimize(name, work):
    """The corpus anew, of itself and what earlier runs have found: each input that reaches a branch which no shorter one
    does (libFuzzer goes through them by size), those that bring most first. Every crash-* stays."""
    with tempfile.TemporaryDirectory() as folder:
        control = Path(folder) / "control"
        taken = Path(folder) / "taken"
        taken.mkdir()
        subprocess.run([ROOT / f"build/fuzz/tests/fuzz_{name}", "-merge=1", f"-max_len={TARGETS[name]}",
                        f"-merge_control_file={control}", taken, CORPUS / name,
                        *([work / name] if (work / name).is_dir() else [])], cwd=ROOT, check=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        lines = control.read_text(encoding="utf-8").splitlines()
        files = [Path(line) for line in lines[2:2 + int(lines[0])]]
        new = sorted((-len(line.split()[2:]), line.split()[1]) for line in lines if line.startswith("COV "))
        inputs, left = {}, CORPUS_BYTES
        for branches, file in new:
            data = files[int(file)].read_bytes()
            if branches and len(data) <= left:
                inputs[file] = data
                left -= len(data)
        for old in (CORPUS / name).iterdir():
            if not old.name.startswith("crash-"):
                old.unlink()
        for data in inputs.values():
            (CORPUS / name / hashlib.sha256(data).hexdigest()[:12]).write_bytes(data)
        print(f"{name}: {len(inputs)} inputs, {sum(map(len, inputs.values()))} bytes", flush=True)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=int, default=600, help="for each target")
    options.add_argument("--minimize", action="store_true", help="only make the corpus smaller")
    options.add_argument("targets", nargs="*", metavar="TARGET", help=" ".join(TARGETS))
    asked = options.parse_args()
    if not set(asked.targets) <= set(TARGETS):
        options.error(f"targets are {' '.join(TARGETS)}")
    clang = has_libfuzzer()
    if not clang:
        print("fuzz: clang's libFuzzer is missing: inputs are changed at random, without coverage")
        if asked.minimize:
            return 3
    work = ROOT / "build/fuzz/work"
    for name in TARGETS:
        (CORPUS / name).mkdir(parents=True, exist_ok=True)
    make = subprocess.run(["make", "--no-print-directory", f"MODE={'fuzz' if clang else 'asan'}", "fuzz-targets"], cwd=ROOT,
                          check=False)
    if make.returncode:
        return 3
    failed = 0
    for name in asked.targets or TARGETS:
        if asked.minimize:
            minimize(name, work)
            continue
        executions, failures = (with_libfuzzer if clang else with_driver)(name, asked.seconds, work)
        print(f"# harness: fuzz {name}; executions {executions}; failures {failures}", flush=True)
        failed |= failures or executions == 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
