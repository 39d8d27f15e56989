"""Tables of docs/gpu-report/ from the figures of bench_steps.py, and docs/gpu-report.md from all that is there."""

import math
import re
import statistics
from pathlib import Path

from bench_steps import CAPTURE, LARGE, medians

HEAD = """# On a GPU

What attnscope costs and what it reaches on a GPU, and what its verdicts take for granted of one. `make bench-gpu` measures
everything but the numerics anew; this page is made from the sections in [gpu-report/](gpu-report/).

"""
# Sections in their order; any other file of docs/gpu-report/ comes behind them.
ORDER = ("machine", "capture", "overhead", "published", "ladder", "bursts", "printf", "process", "rerun", "stages", "sanitizer", "bounded", "times", "numerics")


def seconds(x):
    """1.23 s, 4.5 ms, 67 us: three digits."""
    if x is None or not math.isfinite(x):
        return "-"
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
        if abs(x) * factor >= 0.9995 or unit == "µs":
            return f"{digits(x * factor)} {unit}"
    return "-"


def digits(x):
    """Three digits, without an exponent."""
    if x is None or not math.isfinite(x):
        return "-"
    places = max(0, 2 - math.floor(math.log10(abs(x)))) if x else 0
    return f"{x:,.{min(places, 3)}f}"


def size(n):
    """1.07 GB, 33.6 MB."""
    return f"{digits(n / 1e9)} GB" if n >= 1e9 else f"{digits(n / 1e6)} MB"


def percent(x):
    return "-" if x is None else f"{100 * x:.1f} %"


def table(heads, rows):
    """A row that says why it has no figures may be shorter."""
    lines = ["| " + " | ".join(heads) + " |", "| " + " | ".join("---" for _ in heads) + " |"]
    for row in rows:
        cells = [str(cell).replace("|", "\\|") for cell in row] + [""] * (len(heads) - len(row))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def build_of(row, name):
    """One build of a row of the capture step, or None where it has no times."""
    for build in row.get("builds", ()):
        if build["build"] == name and build.get("warm"):
            return build
    return None


def why_not(row, name):
    """Why build_of() is None."""
    for build in row.get("builds", ()):
        if build["build"] == name:
            return "not measured: " + build.get("message", "no times")
    return "not measured: " + row.get("error", "no such build")


def copy_rate(figures, build):
    """Bytes a second of the copy engine for as many bytes: into plain pinned memory, or into a trace's, if that is
    more."""
    rates = [build.get("copy_bytes_per_second") or 0]
    sizes = figures.get("memory", {}).get("sizes", ())
    if sizes:
        nearest = min(sizes, key=lambda s: abs(math.log(s["bytes"] / max(1, build["recorded_bytes"]))))
        rates.append(nearest["bytes"] / nearest["copy"])
    return max(rates) or None


def ratio(build, plain):
    return build["warm"]["median"] / plain["warm"]["median"] if build and plain else None


def error_section(title, figures, name):
    return f"## {title}\n\nNot measured: {figures[name]['error']}\n"


def machine_section(figures):
    m = figures["machine"]
    text = ("## Speed\n\nTimes are medians; a kernel's time is what CUDA events say of a launch whose data the L2 may hold.\n\n")
    rows = (("GPU", f"{m['gpu']}, {m['sm']}"), ("driver", m["driver"]), ("CUDA", m["cuda"]),
            ("CPU cores", m["cores"]), ("measured", m["date"]), ("command", "`make bench-gpu`"))
    return text + table(("", ""), rows)


def capture_section(figures):
    text = """## Capture rate

Probes write into device memory, which is copied out when the kernel has ended, or into pinned memory of the host
(`--memory`). `bytes` is what the trace holds of the recorded channels, `rate` those bytes over the time of the whole kernel;
of pinned memory beside what the copy engine moves: as many bytes from device memory into pinned memory, in the same run. Aim:
90 %.

""" + measured(figures) + "\n\n"
    rows = []
    for row in figures["capture"]["rows"]:
        if "error" in row:
            rows.append([row["kernel"], f"({row['shape']})", why_not(row, "")])
            continue
        for name, what in (("capture", "S, P, U"), ("full capture", "all")):
            build = build_of(row, name)
            start = [row["kernel"], f"({row['shape']})", row["memory"], what]
            if not build:
                rows.append([*start, why_not(row, name)])
                continue
            pinned = row["memory"] == "pinned"
            rate, copy = build["recorded_bytes"] / build["warm"]["median"], copy_rate(figures, build) if pinned else None
            rows.append([*start, size(build["recorded_bytes"]), seconds(build["warm"]["median"]),
                         f"{rate / 1e9:.1f} GB/s", f"{copy / 1e9:.1f} GB/s" if copy else "-",
                         percent(rate / copy) if copy else "-"])
    text += table(("kernel", "(B,H,L,D)", "memory", "channels", "bytes", "kernel", "rate", "copy engine", "of it"), rows)
    return text + commands(["attnscope bench kernels/KERNEL.cu --shape B,H,L,D --memory MEMORY " + " ".join(CAPTURE)])


def overhead_section(figures):
    text = """## What probes cost

Times of the kernel without probes, and how many times as long it takes with probes that are off (aim: at most 1.02, at
512 rows 1.05), recording S, P and U, and recording everything, which is the default where that fits 2 GiB, as it does here;
the time that copying out takes is not the kernel's. Aims in device memory: fp16_mma 6 times at (2,8,2048,64) with S, P and U,
10 times at (2,8,2048,128) with everything. It began at 163 and 227 times, into pinned memory, and with probes that cost up to
1.5 when off (FlashAttention-2 2.7, FlashAttention-3 3.5).

Each kernel is compiled with its probes and without them, and a launch takes the one it needs (`ASC_TWICE`,
docs/probes.md): probes that are off in one instance cost a comparison each, and more by what they forbid the compiler.

"""
    text += overheads(figures["capture"]["rows"]) + beyond(figures["capture"].get("beyond", {}))
    return text + "\nThe commands of the table above print these as well.\n"


def published_section(figures):
    text = f"""## FlashAttention as it is published

FlashAttention-2's and -3's forward, f16, dense, without probes and with those that tests/production puts into their headers,
compiled in and off (`ASC_TWICE`, four more lines): bursts of 20 launches by their own launch code in random turn, medians. Aim: at
most 1.02. Measured {figures['published']['date']} on an {figures['machine']['gpu']}.

"""
    rows = []
    for row in figures["published"]["rows"]:
        start = (row["kernel"], f"({row['shape']})")
        rows.append((*start, f"not measured: {row['error']}", "-", "-") if "error" in row else
                    (*start, seconds(row["plain"]), seconds(row["off"]), f"{row['ratio']:.3f}"))
    return text + table(("kernel", "(B,H,L,D)", "plain", "probes off", "of plain"), rows) + commands(
        ["FLASH_ATTENTION=DIR FLASH_ATTENTION3=DIR/hopper CUTLASS=DIR make bench-gpu"])


def overheads(of):
    """A table of the builds of each kernel by their times."""
    rows = []
    for row in of:
        plain, off = build_of(row, "plain"), build_of(row, "probes off")
        start = [row["kernel"], f"({row['shape']})", row["memory"]]
        if not plain:
            rows.append([*start, why_not(row, "plain")])
            continue
        factors = [ratio(build, plain) for build in (off, build_of(row, "capture"), build_of(row, "full capture"))]
        rows.append([*start, seconds(plain["warm"]["median"]), f"{factors[0]:.3f}" if factors[0] else "-",
                     digits(factors[1]), digits(factors[2])])
    return table(("kernel", "(B,H,L,D)", "memory", "plain", "probes off", "S, P, U", "all"), rows)


def beyond(row):
    """A sentence on a shape of which the default capture is a part."""
    plain, default, full = (build_of(row, name) for name in ("plain", "capture", "full capture"))
    if not plain or not default:
        return ""
    all_of_it = f", recording everything {digits(ratio(full, plain))} times" if full else ""
    return (f"\nAt ({row['shape']}) the default, 2 GiB, takes {default['slots']} of {default['places']} q tiles: "
            f"{row['kernel']} then takes {digits(ratio(default, plain))} times as long{all_of_it}.\n")


def ladder_section(figures):
    found = figures["ladder"]
    text = """## The ladder

The kernels of kernels/ without probes: a launch in a replayed CUDA graph (µs), registers a thread, shared memory and spills a
block and thread, the largest difference of the output from float64. PyTorch's scaled_dot_product_attention on the same shapes,
timed the same way, stands below.

"""
    rows = []
    for row in found["rows"]:
        if "error" in row["kernels"]:
            rows.append((f"({row['shape']})", "not measured: " + row["kernels"]["error"], *["-"] * 5))
            continue
        timed = [k for k in row["kernels"] if "error" not in k]
        for k in sorted(timed, key=lambda k: -time_of(k)):
            name = " ".join((Path(k["kernel"]).stem, k.get("define", ""))).strip()
            rows.append((f"({row['shape']})", name, f"{1e6 * time_of(k):.1f}", k["registers"], f"{k['shared_bytes']:,}",
                         k["spill_bytes"], f"{k['largest_error']:.2e}"))
    torch = found["torch"]
    for t in torch if isinstance(torch, list) else ():
        rows.append((f"({t['shape']})", f"PyTorch {t['torch']}, {t['backend']}", f"{1e6 * t['median']:.1f}", "-", "-", "-",
                     f"{t['largest_error']:.2e}"))
    text += table(("(B,H,L,D)", "kernel", "µs", "registers", "shared B", "spill B", "max error"), rows)
    if not isinstance(torch, list):
        text += f"\nPyTorch: not measured: {torch['error']}\n"
    return text + commands(("attnscope bench --all --shape B,H,L,D", "python3 tests/gpu/sdpa.py B,H,L,D"))


def bursts_section(figures):
    found = figures["bursts"]
    outputs = [line for line in found["checked"] if "kernel" in line]
    wrong = [line for line in outputs if not line["right"]]
    text = f"""## Hopper's rungs

On an {figures['machine']['gpu']}: hopper_small, hopper_large and hopper_fp8 without probes, and PyTorch {found['torch']}'s cuDNN and
FlashAttention, as graphs of 20 launches, replayed in random turn with a pause of 2 ms before each, so that no order and no
power limit decides; the median, in µs a launch, and its ratio to cuDNN's. {len(outputs)} outputs, of odd, causal and grouped
shapes, were compared with float64 before: {len(wrong)} are wrong.

"""
    chains = [line for line in found["checked"] if "chain" in line]
    if chains:
        edges = ", ".join(f"{line['programmatic_edges']} of {line['launches'] - 1}" for line in chains)
        same = ", ".join(f"{line['same']} of {line['chains']}" for line in chains)
        text += f"""PDL=1 is programmatic dependent launch: the same kernel, whose launch may begin before the one ahead of it has ended, as far
as its first access to memory. cuDNN and FlashAttention run without it. In graphs of launches each of which reads what the
one before wrote, edges are such ({edges}), and the outputs are bit for bit those without it ({same} times).

"""
    rows = []
    for line in found["rows"]:
        shape = f"({','.join(str(n) for n in line['timed'])}){' causal' if line['causal'] else ''}"
        if "error" in line:
            rows.append((shape, line["who"], "not measured: " + line["error"], *["-"] * 3))
            continue
        goal = "-"
        if "met" in line:
            us = f" and {line['goal_us']} µs" if line["goal_us"] else ""
            of = f" of {line['of']}'s" if "of" in line else ""
            goal = f"at most {line['goal_ratio']}{of}{us}: {'met' if line['met'] else '**not met**'}"
        if "of" in line:
            goal = f"{line['of_ratio']:.3f} of {line['of']}'s" + (f"; {goal}" if goal != "-" else "")
        who = line["who"] + (", programmatic dependent launch" if line.get("launch") == "programmatic" else "")
        rows.append((shape, who, f"{line['us']:.2f}", f"{line['quartiles'][0]:.2f} to {line['quartiles'][1]:.2f}",
                     f"{line['ratio']:.3f}" if line["ratio"] else "-", goal))
    return text + table(("(B,H,L,D)", "who", "µs", "quartiles", "of cuDNN", "goal"), rows) + commands(
        ("python3 tests/gpu/bursts.py",))


def time_of(kernel):
    """Of a launch in a graph, or of one by itself where the kernel cannot be captured."""
    return (kernel["graph"] or kernel["warm"])["median"]


def printf_section(figures):
    p = figures["printf"]
    if "error" in p:
        return error_section("Against printf", figures, "printf")
    rows = [["`printf(\"%d,%d,%f\\n\", row, col, s)`", f"{p['values']:,}", seconds(p["seconds"]),
             f"{p['values_per_second'] / 1e6:.2f} M/s", "1"]]
    for row in figures.get("capture", {}).get("rows", ()):
        build = build_of(row, "capture")
        if not build or row["shape"] != LARGE or row["memory"] != "device":
            continue
        values = build["recorded_bytes"] // 4  # S, P and U are f32; stamps are a thousandth of it
        rate = values / build["warm"]["median"]
        rows.append([f"{row['kernel']}, S P U of ({row['shape']})", f"{values:,}", seconds(build["warm"]["median"]),
                     f"{rate / 1e6:,.0f} M/s", f"{rate / p['values_per_second']:,.0f}"])
    return ("## Against printf\n\nOne printf for every value of a tile, its output thrown away, beside probes that record "
            "the same.\n\n" + table(("", "values", "time", "values per second", "times as many"), rows) +
            commands(["nvcc -O3 -o printf_values tests/gpu/printf_values.cu", f"./printf_values {p['values']} >/dev/null"]))


def measured(figures):
    """When and on what: sections of several runs make one page."""
    return f"Measured {figures['machine']['date']} on an {figures['machine']['gpu']}."


def process_section(figures):
    if "error" in figures["process"]:
        return error_section("In your own process", figures, "process")
    rows = []
    for row in figures["process"]["rows"]:
        start = [f"({row['shape']})"]
        if "error" in row["plain"] or "error" in row["probes"]:
            rows.append([*start, "not measured: " + row["plain"].get("error", row["probes"].get("error", ""))])
            continue
        plain = row["plain"]["kernel"]
        rows.append([*start, "plain", seconds(plain), "1"])
        for name, what in (("kernel", "probes, no capture yet"), ("after", "probes, after a capture")):
            rows.append([*start, what, seconds(row["probes"][name]), f"{row['probes'][name] / plain:.3f}"])
        for memory in ("device", "guard", "pinned"):
            runs = [c for c in row["probes"]["captures"] if c["memory"] == memory]
            best = min((c for c in runs if "error" not in c), key=lambda c: c["end"] - c["fsync"], default=None)
            if not best:
                rows.append([*start, memory, "not measured: " + runs[0]["error"]])
                continue
            rows.append([*start, memory, seconds(best["kernel"]), digits(best["kernel"] / plain), size(best["bytes"]),
                         seconds(best["begin"]), seconds(best["end"] - best["fsync"]), seconds(best["fsync"]),
                         seconds((best["end"] - best["fsync"]) / best["bytes"] * 1e9)])
    return ("## In your own process\n\n`tests/capture/attention.cu` with 6 probes, every value of every channel: `begin` copies the "
            "inputs and makes the\nmemory, `save` copies out and writes the trace into the page cache, `fsync` makes as many "
            "bytes durable. The better of two\ncaptures of each kind. Aims: probes off 1.02 of plain at 2048 rows, 1.05 at "
            "512; a GB in 350 ms\nfrom device memory, in 550 ms from a guardian's. " + measured(figures) + "\n\n" +
            table(("(B,H,L,D)", "", "kernel", "of plain", "bytes", "begin", "save", "fsync", "save a GB"), rows) +
            commands(["nvcc -O3 -std=c++17 -arch=native -I. -Ibuild/include -Iengine/capture -DASC_MODE=1 -o capture_times "
                      "tests/gpu/capture_times.cu tests/capture/attention.cu -Lbuild -lattnscope-capture",
                      "LD_LIBRARY_PATH=build ./capture_times 2,8,2048 /tmp"]))


def slow_down(row, tool):
    """Cell: how many times as long a launch takes under the tool, by the program's own clock."""
    if "error" in row.get(tool, {"error": ""}):
        return row.get(tool, {}).get("error", "-")
    return f"{digits(row[tool]['clock'] / row['plain']['clock'])} ({seconds(row[tool]['clock'])})"


def sanitizer_section(figures):
    if "error" in figures["sanitizer"]:
        return error_section("Against compute-sanitizer", figures, "sanitizer")
    by_place = {(row["kernel"], row["shape"]): row for row in figures.get("capture", {}).get("rows", ())
                if row["memory"] == "device"}
    rows = []
    for row in figures["sanitizer"]["rows"]:
        start = [row["kernel"], f"({row['shape']})"]
        if "error" in row or "error" in row["plain"]:
            rows.append([*start, "not measured: " + row.get("error", row.get("plain", {}).get("error", ""))])
            continue
        captured = by_place.get((row["kernel"], row["shape"]), {})
        factor = ratio(build_of(captured, "full capture"), build_of(captured, "plain"))
        rows.append([*start, seconds(row["plain"]["clock"]), digits(factor), slow_down(row, "memcheck"),
                     slow_down(row, "racecheck")])
    return ("## Against compute-sanitizer\n\nThe same kernel in a program of its own (`tests/gpu/plain_main.cu`): how "
            "many times as long a launch takes,\nfrom the launch to its end, under compute-sanitizer; and what recording "
            f"all of it takes. A run gets {figures['sanitizer']['limit']} s.\n\n" +
            table(("kernel", "(B,H,L,D)", "plain launch", "full capture", "memcheck", "racecheck"), rows) +
            commands(("nvcc -O3 -std=c++17 -arch=native -lineinfo -I. -Ibuild/include --expt-relaxed-constexpr "
                      "-DKERNEL='\"kernels/fp16_mma.cu\"' -o plain tests/gpu/plain_main.cu",
                      "compute-sanitizer --tool memcheck ./plain 1,8,512,64 3")))


PHASES = {"compiling": "build check", "filling inputs": "fill", "running": "run", "judging": "judge",
          "causes": "causes"}


def phase_cells(median):
    """The phases a user can tell apart; "run" is copying, launch and copying back."""
    return [seconds(median["phases"].get(name)) for name in PHASES]


def rerun_section(figures):
    if "error" in figures["rerun"]:
        return error_section("From rerun to verdict", figures, "rerun")
    rows = []
    for row in figures["rerun"]["rows"]:
        name = row["scenario"].rsplit("/", 1)[-1]
        if "error" in row["anew"]:
            rows.append([name, "not measured: " + row["anew"]["error"]])
            continue
        median = medians(row["anew"]["runs"][1:])
        rows.append([name, row["anew"]["verdict"], f"**{seconds(median['total'])}**", *phase_cells(median),
                     seconds(median["kernel"])])
    return ("## From rerun to verdict\n\nOne session, the key that reruns pressed, nothing changed: until everything is "
            "judged and causes are found. Aim: under 100 ms\nat (1,8,512,64). `run` is all between asking the debuggee "
            "and its answer, `kernel` the launch in it by CUDA events,\nrecording everything. " +
            measured(figures) + "\n\n" +
            table(("scenario", "verdict", "rerun", *PHASES.values(), "kernel"), rows) +
            commands(row["command"] for row in figures["rerun"]["rows"]))


def stages_section(figures):
    if "error" in figures["stages"]:
        return error_section("Captured stages on the GPU", figures, "stages")
    rows = []
    for row in figures["stages"]["rows"]:
        name = f"{Path(row['kernel']).stem} ({','.join(map(str, row['shape']))})"
        judge = row["judge"]
        if "error" in judge:
            rows.append([name, "not measured: " + judge["error"]])
            continue
        runs = judge["runs"][1:]
        totals = [seconds(medians(row[who]["runs"][1:])["total"]) if "error" not in row[who] else "not measured"
                  for who in ("auto", "cpu")]
        rows.append([name, size(judge["trace_bytes"]), f"{judge['agreed']} of {judge['slots']}",
                     f"**{seconds(statistics.median(run['total'] for run in runs))}**",
                     seconds(statistics.median(run["copying"] + run["judging"] for run in runs)),
                     seconds(judge["runs"][0]["total"]), *totals])
    return ("## Captured stages on the GPU\n\nEvery stage of every tile of a correct run, globally, locally and bit by "
            "bit, by `attnscope-judge` from pinned host memory; a q\ntile agrees if each of its verdicts is the CPU's. "
            "Aim: 100 ms at (2,8,2048,128). `rerun`: the key that reruns pressed, until all\nis judged, with the CPU's "
            "confirmations; aims: 50 ms and 300 ms. The first time a trace's memory is pinned. " + measured(figures) + "\n\n" +
            table(("run", "trace", "q tiles that agree", "judged", "on the device, with the copies", "the first time", "rerun",
                   "rerun, judged by the CPU"), rows) +
            commands(row["command"] for row in figures["stages"]["rows"]))


def bounded_section(figures):
    if "error" in figures["bounded"]:
        return error_section("Bounded capture", figures, "bounded")
    text = ("## Bounded capture\n\n(1,32,65536,128): a full trace would be some terabytes. A first pass leaves only O and "
            "LSE, of which every q tile is judged\non the GPU, or a sample on the CPU; a second pass records those that are off, then others, in full. Aim: every q tile judged\nwithin 10 s (`judging the output`).\n")
    for row in figures["bounded"]["rows"]:
        name = row["scenario"].rsplit("/", 1)[-1]
        text += f"\n### {name}\n\n"
        if "error" in row:
            text += f"Not measured: {row['error']}\n"
            continue
        first, facts = row.get("first_pass"), [("verdict", row["verdict"])]
        if row.get("finding"):
            facts.append(("finding", row["finding"]))
        if first:
            facts += [("q tiles", f"{first['wanted']:,}"),
                      ("judged in the first pass", f"{first['judged']:,}, of which {first['off']:,} are off" +
                       (f": {first['off_places']}" if first["off"] else "")),
                      ("judged by", f"{first['judge'] or 'the CPU'}; {first['by_gpu']:,} verdicts rest on the GPU's word"),
                      ("changed in the second pass", f"{first['differing']:,} q tiles")]
        facts += [("recorded in the second pass", f"{row['slots']:,} q tiles"),
                  ("trace", size(row["trace_bytes"])),
                  ("most memory", f"attnscope {size(1024 * row['attnscope_kib'])}, debuggee "
                                  f"{size(1024 * row['debuggee_kib'])}; both count the trace they share"),
                  ("the kernel, recording", seconds(row["runs"][0]["kernel"])),
                  ("whole run", seconds(row["runs"][0]["total"]))]
        text += table(("", ""), facts) + "\n"
        text += table(("phase", "time"), [(n, seconds(s)) for n, s in row["runs"][0]["phases"] if n != "start"])
    return text + commands([row["command"] for row in figures["bounded"]["rows"]] +
                           ["attnscope run kernels/v2c_wmma.cu --shape 1,32,65536,128 --mem 8GiB"])


def first_runs(row):
    """(what, seconds) of the run that comes first in a process: with an empty cache, and with a full one."""
    for key, what in (("anew", "nvcc, one instance of the kernel"), ("cached", "build from the cache")):
        runs = row.get(key, {}).get("runs")
        if runs:
            phases = medians(runs[:1])["phases"]
            name = row["scenario"].rsplit("/", 1)[-1]
            built = sum(s for n, s in phases.items() if n not in ("start", "starting", "filling inputs", "running",
                                                                  "judging", "causes"))
            yield f"{what} ({name})", built
            yield f"start of the debuggee with its context ({name}, {key})", phases.get("starting")


def times_section(figures):
    rows = []
    for row in figures.get("rerun", {}).get("rows", ()):
        rows += [(what, seconds(s)) for what, s in first_runs(row)]
        anew = row.get("anew", {})
        if "save" in anew:
            name = row["scenario"].rsplit("/", 1)[-1]
            rows += [(f"save a trace of {size(anew['saved_bytes'])} ({name})", seconds(anew["save"])),
                     (f"open it ({name})", seconds(anew["open"]))]
    memory = figures.get("memory", {})
    if "error" in memory:
        rows.append(("pinning", "not measured: " + memory["error"]))
    elif memory:
        rows.append(("CUDA context of an empty program", seconds(memory["context"])))
    for s in memory.get("sizes", ()):
        rows += [(f"{size(s['bytes'])}: first write by one thread", seconds(s["first_write"])),
                 (f"{size(s['bytes'])}: pin, unpin", f"{seconds(s['pin'])}, {seconds(s['unpin'])}"),
                 (f"{size(s['bytes'])}: copy engine, kernel that writes it from end to end",
                  f"{s['bytes'] / s['copy'] / 1e9:.1f} GB/s, {s['bytes'] / s['write'] / 1e9:.1f} GB/s")]
    return ("## Other times\n\n" + table(("", "time"), rows) +
            commands(("nvcc -O3 -o host_memory tests/gpu/host_memory.cu && ./host_memory 33554432 1073741824",)))


def commands(lines):
    lines = list(dict.fromkeys(lines))
    return "\n```sh\n" + "\n".join(lines) + "\n```\n" if lines else ""


# Section and the step whose figures it is made of.
SECTIONS = {"machine": ("machine", machine_section), "capture": ("capture", capture_section),
            "overhead": ("capture", overhead_section), "published": ("published", published_section), "ladder": ("ladder", ladder_section),
            "bursts": ("bursts", bursts_section), "printf": ("printf", printf_section),
            "process": ("process", process_section),
            "rerun": ("rerun", rerun_section), "stages": ("stages", stages_section), "sanitizer": ("sanitizer", sanitizer_section),
            "bounded": ("bounded", bounded_section), "times": ("memory", times_section)}


def write_sections(figures, folder):
    """A file for each section that has been measured."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (step, section) in SECTIONS.items():
        if step in figures:
            try:
                text = section(figures)
            except (KeyError, TypeError, ValueError) as error:  # figures of another version must not cost the others
                text = f"## {name}\n\nnot made: {type(error).__name__}: {error}\n"
            (folder / f"{name}.md").write_text(text, encoding="utf-8")


def below_the_title(text):
    """A section that begins with the heading of a page becomes one of this page."""
    if not text.startswith("# "):
        return text
    parts = re.split(r"(^```.*?^```[^\n]*$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else re.sub(r"^#", "##", part, flags=re.MULTILINE) for part in parts)


def assemble(folder):
    """The page, of the section files that are there."""
    names = [path.stem for path in folder.glob("*.md")]
    names.sort(key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name))
    parts = [below_the_title((folder / f"{name}.md").read_text(encoding="utf-8")).strip("\n") for name in names]
    return HEAD + "\n\n".join(parts) + "\n"
