"""What `make bench-gpu` measures: each step returns its figures as plain data, bench_report.py makes tables of them.

A step that cannot be measured raises NotMeasured; what only a part of it cannot give stands in that part as "error".
"""

import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ("fp16_mma", "v2c_wmma", "v2c_wmma_qk", "v2c_cpasync", "v2b_scalar")
SHAPES = ("2,8,2048,128", "2,8,2048,64", "1,8,512,64")
MISSION = "1,8,512,64"
LARGE = "2,8,2048,128"
SCENARIOS = ("scenarios/v2c-wmma-512.ini", "scenarios/v2b-512.ini", "scenarios/bugs/double-scale.ini")
BOUNDED = ("tests/gpu/bounded.ini", "tests/gpu/bounded-late.ini")


class NotMeasured(Exception):
    """Why a figure is missing."""


class Skipped(Exception):
    """Why a step is left out, and its section of the page as it was."""


class Bench:
    """Where programs are, how much time is left, and how commands are run."""

    def __init__(self, attnscope, limit_s, quick=False, nvcc=None):
        self.attnscope, self.quick, self.nvcc = Path(attnscope), quick, nvcc
        self.sm = "sm_90"
        self.ends = time.monotonic() + limit_s
        self.folder = tempfile.TemporaryDirectory(prefix="bench-gpu-")
        self.environment = dict(os.environ, ATTNSCOPE_BACKEND="gpu")

    def left(self):
        return self.ends - time.monotonic()

    def run(self, arguments, limit_s, environment=None):
        """(exit status, stdout, stderr) of a command; NotMeasured where it takes too long or does not start."""
        arguments = [str(argument) for argument in arguments]
        limit_s = min(limit_s, self.left())
        if limit_s < 1:
            raise NotMeasured("no time was left")
        try:
            process = subprocess.Popen(arguments, cwd=ROOT, env={**self.environment, **(environment or {})},
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       text=True, errors="replace", start_new_session=True)
        except OSError as error:
            raise NotMeasured(f"{Path(arguments[0]).name}: {error.strerror}") from error
        try:
            out, err = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired as error:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise NotMeasured(f"still running after {limit_s:.0f} s") from error
        return process.returncode, out, err

    def call(self, arguments, limit_s):
        """(stdout, stderr) of a command that ends well."""
        status, out, err = self.run(arguments, limit_s)
        if status != 0:
            raise NotMeasured(last_words(status, out, err))
        return out, err

    def ask(self, arguments, limit_s, environment=None):
        """The JSON object that a command prints on stdout, among whatever else. One that says in it what went wrong may
        exit with a failure."""
        status, out, err = self.run(arguments, limit_s, environment)
        figures = last_object(out)
        if figures is None:
            raise NotMeasured(last_words(status, out, err))
        return figures

    def compiled(self, name, source, *flags, limit_s=120):
        """A program of tests/gpu, built for this device."""
        program = Path(self.folder.name) / name
        if not self.nvcc:
            raise NotMeasured("no nvcc")
        if not program.exists():
            self.call([self.nvcc, "-O3", "-std=c++17", f"-arch={self.sm}", "-I.", "-Ibuild/include", "-lineinfo",
                       "--expt-relaxed-constexpr", "-diag-suppress=177", *flags, "-o", program, f"tests/gpu/{source}"],
                      limit_s)
        return program

    def phases(self):
        """bench_phases, which make builds beside attnscope."""
        for path in (os.environ.get("BENCH_PHASES"), self.attnscope.parent / "tests/bench_phases",
                     self.attnscope.parent / "bench_phases"):
            if path and Path(path).exists():
                return path
        raise NotMeasured("bench_phases is not built")


def last_words(status, out, err):
    """The last line that a command said."""
    said = [line.strip() for line in (out + "\n" + err).splitlines() if line.strip()]
    return said[-1][:300] if said else f"exit status {status}"


def last_object(text):
    """The last JSON object that begins a line; None: there is none."""
    for begin in reversed([match.start() for match in re.finditer(r"^\{", text, re.MULTILINE)]):
        try:
            return json.JSONDecoder().raw_decode(text[begin:])[0]
        except ValueError:
            continue
    return None


def attempt(function, *arguments):
    """What it returns, or {"error": why not}."""
    try:
        return function(*arguments)
    except NotMeasured as error:
        return {"error": str(error)}


def machine(bench):
    """Which device, driver and toolkit."""
    device = bench.attnscope.parent / "attnscope-device"
    if not device.exists():
        device = ROOT / "build/attnscope-device"
    try:
        said = subprocess.run([device], capture_output=True, text=True, check=False).stdout
        found = json.loads(said)
    except (OSError, ValueError):
        found = {"error": "attnscope-device did not answer"}
    if "error" in found:
        return found
    try:
        text = Path("/proc/driver/nvidia/version").read_text(encoding="utf-8", errors="replace")
        driver = re.search(r"Kernel Module(?: for \S+)?\s+([\d.]+)", text).group(1)
    except (OSError, AttributeError):
        driver = f"for CUDA {found['driver'] // 1000}.{found['driver'] % 1000 // 10}"
    try:
        cuda = re.search(r"release [\d.]+, V([\d.]+)", bench.call([bench.nvcc or "nvcc", "--version"], 20)[0]).group(1)
    except (NotMeasured, AttributeError):
        cuda = "not known"
    return {"gpu": found["name"], "sm": f"sm_{found['major']}{found['minor']}", "driver": driver, "cuda": cuda,
            "cores": len(os.sched_getaffinity(0)), "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())}


def plain_program(bench, kernel):
    """A kernel in a program of its own."""
    return bench.compiled(f"plain-{kernel}", "plain_main.cu", f'-DKERNEL="kernels/{kernel}.cu"')


def builds(bench):
    """Everything is compiled on all cores, so that no later step waits for it."""
    kernels = KERNELS[:1] + KERNELS[-1:] if bench.quick else KERNELS

    def build(kernel, d):
        return bench.ask([bench.attnscope, "bench", f"kernels/{kernel}.cu", "--shape", f"1,1,64,{d}", "--repeat", 3,
                          "--json"], 180)

    jobs = {f"{kernel} {d}": (build, kernel, d) for kernel in kernels for d in (128, 64)}
    jobs |= {f"plain {kernel}": (plain_program, bench, kernel) for kernel in (KERNELS[0], KERNELS[-1])}
    jobs |= {name: (bench.compiled, name, f"{name}.cu") for name in ("host_memory", "printf_values")}
    begin = time.monotonic()
    with ThreadPoolExecutor(len(jobs)) as pool:
        answers = dict(zip(jobs, pool.map(lambda job: attempt(*job), jobs.values())))
    return {"seconds": time.monotonic() - begin,
            "failed": {name: a["error"] for name, a in answers.items() if isinstance(a, dict) and "error" in a}}


def memory(bench):
    """Pinning, the copy engine, linear writes by a kernel."""
    sizes = (1 << 25, 1 << 30) if bench.quick else (1 << 25, 1 << 28, 1 << 30, 1 << 31)
    return bench.ask([bench.compiled("host_memory", "host_memory.cu"), *sizes], 90)


CAPTURE = ("--mem", "8GiB", "--set", "capture.channels=s,p,u")
BEYOND = "2,8,3072,128"  # where the default capture is not everything


def capture(bench):
    """`attnscope bench` of every kernel and shape: without probes, off, S P U, everything; into device memory, as the
    default is, and for the first and the last kernel into pinned memory too."""
    kernels = KERNELS[:1] + KERNELS[-1:] if bench.quick else KERNELS
    shapes = SHAPES[:1] if bench.quick else SHAPES

    def measure(kernel, shape, into, *options):
        answer = attempt(bench.ask, [bench.attnscope, "bench", f"kernels/{kernel}.cu", "--shape", shape, "--memory", into,
                                     *options, "--repeat", 7 if bench.quick else 11, "--json"], 60)
        return {"kernel": kernel, "shape": shape, "memory": into, **answer}

    return {"rows": [measure(kernel, shape, into, *CAPTURE) for shape in shapes for kernel in kernels
                     for into in ("device", "pinned") if into == "device" or kernel in (KERNELS[0], KERNELS[-1])],
            "beyond": {"error": "not part of --quick"} if bench.quick else measure(KERNELS[0], BEYOND, "device")}


def published(bench):
    """FlashAttention-2 and -3 as they are published, without probes and with probes that are off, where FLASH_ATTENTION,
    FLASH_ATTENTION3 and CUTLASS name their folders (tests/production)."""
    sys.path.insert(0, str(ROOT / "tests/production"))
    os.environ["FLASH_BACKEND"] = "gpu"
    import flash
    import test_flash2
    import test_flash3
    prepared = [(version, tests.Sources()) for version, tests in ((2, test_flash2), (3, test_flash3))
                if not getattr(tests.Sources, "__unittest_skip__", False)]
    if not prepared or bench.quick:
        raise Skipped("not part of --quick" if prepared else "FLASH_ATTENTION, FLASH_ATTENTION3 and CUTLASS name no folders")

    def prepare(version, sources):
        sources.setUp()
        if version == 2:  # of four instances the one that is launched
            launch = sources.copy / "flash_fwd_launch_template.h"
            flash.change(launch, "BOOL_SWITCH(is_even_MN, IsEvenMNConst, [&] {\n        EVENK_SWITCH(is_even_K, IsEvenKConst, [&] {\n"
                         "            LOCAL_SWITCH((params.window_size_left >= 0 || params.window_size_right >= 0) && !Is_causal, Is_local, [&] {\n"
                         "                BOOL_SWITCH(return_softmax,",
                         "ALWAYS(is_even_MN, IsEvenMNConst, [&] {\n        EVENK_SWITCH(is_even_K, IsEvenKConst, [&] {\n"
                         "            LOCAL_SWITCH((params.window_size_left >= 0 || params.window_size_right >= 0) && !Is_causal, Is_local, [&] {\n"
                         "                NEVER(return_softmax,")

    def library(version, sources, dim, mode):
        options = [f"-DFLASHATTENTION_DISABLE_{option}" for option in test_flash2.OPTIONS] if version == 2 else ["-DNDEBUG"]
        return bench.compiled(f"flash{version}-{dim}-{mode}.so", "published.cu", "-shared", "-Xcompiler", "-fPIC", "-cudart", "shared",
                              "--expt-extended-lambda", *([f"-arch={bench.sm}a"] if version == 3 else []), f"-DFLASH={version}", f"-DDIM={dim}", f"-DASC_MODE={mode}",
                              *options, "-Iprobes", "-Iengine/standin/include", f"-I{sources.copy}", *(f"-I{folder}" for folder in sources.includes),
                              limit_s=400)

    wanted = [(version, sources, dim, mode) for version, sources in prepared for dim in (64, 128) for mode in (0, 1)]
    try:
        for version, sources in prepared:
            prepare(version, sources)
        with ThreadPoolExecutor(len(wanted)) as pool:
            made = dict(zip([(version, dim, mode) for version, _, dim, mode in wanted],
                            pool.map(lambda one: attempt(library, *one), wanted)))
        main = bench.compiled("published_main", "published_main.cu", "-cudart", "shared", "-ldl")
        rows = []
        for version, dim in dict.fromkeys((version, dim) for version, dim, _ in made):
            both = [made[version, dim, mode] for mode in (0, 1)]
            failed = next((one for one in both if isinstance(one, dict)), None)
            rows.append({"kernel": f"FlashAttention-{version}", "shape": f"2,8,2048,{dim}",
                         **(failed or attempt(bench.ask, [main, dim, *both], 60))})
        return {"rows": rows, "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())}
    finally:
        for _, sources in prepared:
            sources.doCleanups()


def ladder(bench):
    """Every kernel of kernels/ without probes, and PyTorch's beside it."""
    rows = []
    for shape in SHAPES[-1:] if bench.quick else SHAPES:
        arguments = [bench.attnscope, "bench", "--all", "--shape", shape, "--json"]
        rows.append({"shape": shape, "kernels": attempt(lambda: json.loads(bench.call(arguments, 240)[0]))})
    try:
        torch = [json.loads(line) for line in bench.call([sys.executable, "tests/gpu/sdpa.py", *SHAPES], 90)[0].splitlines()
                 if line.startswith("{")]
    except NotMeasured as error:
        torch = {"error": str(error)}
    return {"rows": rows, "torch": torch}


def bursts(bench):
    """Hopper's rungs beside cuDNN and flash, in bursts in random turn."""
    if bench.quick:
        raise NotMeasured("not part of --quick")
    status, out, err = bench.run([sys.executable, "tests/gpu/bursts.py", "--rounds", 60], 120)
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    if not any("us" in line for line in lines):
        raise NotMeasured(last_words(status, out, err))
    return {"checked": [line for line in lines if "right" in line], "rows": [line for line in lines if "timed" in line],
            "torch": next((line["torch"] for line in lines if "torch" in line), "not known")}


def printf(bench):
    """Device printf, one for each value."""
    program = bench.compiled("printf_values", "printf_values.cu")
    figures = last_object(bench.call([program, 1 << 18 if bench.quick else 1 << 20], 60)[1])
    if figures is None:
        raise NotMeasured("it printed no figures")
    return figures


def sanitizer(bench):
    """A kernel in a program of its own under compute-sanitizer."""
    rows = []
    tool = Path(bench.nvcc or "nvcc").parent / "compute-sanitizer"
    tool = tool if tool.exists() else "compute-sanitizer"
    limit_s = 20 if bench.quick else 30
    for kernel in KERNELS[:1] if bench.quick else (KERNELS[0], KERNELS[-1]):
        program = attempt(plain_program, bench, kernel)
        if isinstance(program, dict):
            rows.append({"kernel": kernel, "shape": MISSION, **program})
            continue
        for shape in (MISSION,) if bench.quick else (MISSION, LARGE):
            row = {"kernel": kernel, "shape": shape, "plain": attempt(bench.ask, [program, shape, 21], 30)}
            row["memcheck"] = attempt(bench.ask, [tool, "--tool", "memcheck", program, shape, 3], limit_s)
            # Twelve thousand times slower: at the large shape each launch would take minutes.
            row["racecheck"] = ({"error": "left out: minutes a launch"} if shape == LARGE else
                                attempt(bench.ask, [tool, "--tool", "racecheck", program, shape, 1], limit_s))
            rows.append(row)
    return {"rows": rows, "limit": limit_s}


def rerun(bench):
    """From the key that reruns to the verdict: built anew, from the cache, and warm."""
    rows = []
    program = bench.phases()
    with tempfile.TemporaryDirectory(prefix="bench-gpu-cache-") as cache:
        for scenario in SCENARIOS[:1] if bench.quick else SCENARIOS:
            arguments = [program, scenario, 5 if bench.quick else 12]
            row = {"scenario": scenario, "command": f"build/tests/bench_phases {scenario} {arguments[2]}"}
            row["anew"] = attempt(bench.ask, [*arguments, bench.folder.name], 90, {"ATTNSCOPE_CACHE": cache})
            if "error" not in row["anew"] and scenario == SCENARIOS[0]:
                row["cached"] = attempt(bench.ask, arguments, 60, {"ATTNSCOPE_CACHE": cache})
            rows.append(row)
    return {"rows": rows}


# Kernel, (B,H,L,D), what is declared besides.
STAGES = (("kernels/fp16_mma.cu", (2, 8, 2048, 128)), ("kernels/fp16_mma.cu", (1, 8, 512, 64)),
          ("kernels/v2b_scalar.cu", (1, 8, 512, 64)))


def stages(bench):
    """All captured stages of a run, judged on the GPU, and each verdict compared with the CPU's; then the whole rerun."""
    rows = []
    for kernel, shape in STAGES[1:2] if bench.quick else STAGES:
        keys = [f"shape.{key}={n}" for key, n in zip(("batch", "heads", "q_len", "head_dim"), shape)] + ["capture.mem=4GiB"]
        arguments = [kernel, 6, *keys, "capture.judge=cpu"]
        row = {"kernel": kernel, "shape": shape, "command": " ".join(map(str, ("build/tests/bench_stages", *arguments)))}
        row["judge"] = attempt(bench.ask, [Path(bench.phases()).parent / "bench_stages", *arguments], 150)
        for who in ("auto", "cpu"):
            scenario = Path(bench.folder.name) / f"stages-{who}.ini"
            scenario.write_text(f"[scenario]\nkernel = {ROOT / kernel}\n[shape]\n" + "".join(
                f"{key} = {n}\n" for key, n in zip(("batch", "heads", "q_len", "head_dim"), shape)) +
                f"[capture]\nmem = 4GiB\njudge = {who}\n", encoding="utf-8")
            row[who] = attempt(bench.ask, [bench.phases(), scenario, 12], 120)
        rows.append(row)
    return {"rows": rows}


def bounded(bench):
    """A shape whose full trace would be terabytes."""
    if bench.quick:
        raise NotMeasured("not part of --quick")
    rows = []
    for scenario in BOUNDED:
        row = {"scenario": scenario, "command": f"build/tests/bench_phases {scenario} 1"}
        row.update(attempt(bench.ask, [bench.phases(), scenario, 1], 240))
        rows.append(row)
    return {"rows": rows}


IN_PROCESS = (("2,8,2048", 64), ("2,8,2048", 128), ("1,8,512", 64))  # (B,H,L), head_dim


def process(bench):
    """Capture in a process of its own: tests/capture/attention.cu without probes, with them, and recording."""
    flags = ["tests/capture/attention.cu", "-Iengine/capture", f"-L{ROOT}/build", "-lattnscope-capture", "-Xlinker",
             f"-rpath={ROOT}/build"]
    rows = []
    with tempfile.TemporaryDirectory(prefix="bench-gpu-") as folder:
        for shape, dim in IN_PROCESS[2:] if bench.quick else IN_PROCESS:
            row = {"shape": f"{shape},{dim}"}
            for name, mode in (("plain", 0), ("probes", 1)):
                program = bench.compiled(f"capture-{mode}-{dim}", "capture_times.cu", f"-DASC_MODE={mode}", f"-DHEAD_DIM={dim}", *flags)
                row[name] = attempt(bench.ask, [program, shape, folder], 60)
            rows.append(row)
    return {"rows": rows}


# In the order of what is most wanted, should the time run out.
STEPS = {"builds": builds, "memory": memory, "capture": capture, "ladder": ladder, "bursts": bursts, "printf": printf,
         "process": process, "rerun": rerun, "stages": stages, "bounded": bounded, "sanitizer": sanitizer, "published": published}


def medians(runs):
    """Of several runs: the median of the whole, of the kernel, and of each phase, in order."""
    names = []
    for run in runs:
        names += [name for name, _ in run["phases"] if name not in names]
    of_phase = {name: statistics.median(sum(s for n, s in run["phases"] if n == name) for run in runs)
                for name in names}
    return {"total": statistics.median(run["total"] for run in runs),
            "kernel": statistics.median(run["kernel"] for run in runs), "phases": of_phase}
