"""What attnscope reads in a saved trace and judges of it, as far as it must stay the same from version to version: facts
and counts, no sentences, times or bounds."""

import json
import subprocess

COUNTS = ("mark", "elements", "unjudged", "bad", "classes")
TENSOR_CORE = ("declared", "tiles", "exact_tiles", "off", "unequal")


def chosen(object, keys):
    return {key: object[key] for key in keys}


def stage(json):
    kept = {which: chosen(json[which], COUNTS) for which in ("local", "global")}
    kept["first"] = json["first"]
    if "tensor_core" in json:
        kept["tensor_core"] = chosen(json["tensor_core"], TENSOR_CORE)
    return kept


def judged(attnscope, trace):
    """(a dictionary, None), or (None, what was said) where the trace could not be judged."""
    done = subprocess.run([attnscope, "run", "--json", trace], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        return None, f"exit status {done.returncode}: {done.stdout}{done.stderr}"
    result = json.loads(done.stdout)
    kept = chosen(result, ("verdict", "problem", "plan", "run", "events", "slots", "lost", "first", "culprits",
                           "suspicious"))
    kept["exit_status"] = done.returncode
    kept["stages"] = {name: stage(value) for name, value in result["stages"].items()}
    kept["findings"] = [chosen(finding, ("channel", "first", "row", "col", "cause")) for finding in result["findings"]]
    kept["stamps"] = last_stamps(attnscope, trace)
    return kept, None


def last_stamps(attnscope, trace):
    """How far the blocks of a run that ended early came."""
    done = subprocess.run([attnscope, "run", trace], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                          timeout=120, check=False)
    return [line for line in done.stdout.splitlines() if line.startswith("last probe: ") or " had begun and " in line]


def changes(expected, got, where=""):
    """What of `expected` is otherwise in `got`, one line each. Keys that a later version adds are no change."""
    if isinstance(expected, dict) and isinstance(got, dict):
        return [line for key, value in expected.items()
                for line in (changes(value, got[key], f"{where}.{key}") if key in got else [f"{where}.{key} is gone"])]
    if isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        return [line for i, pair in enumerate(zip(expected, got)) for line in changes(*pair, f"{where}[{i}]")]
    return [] if type(expected) is type(got) and expected == got else [f"{where}: {got!r}, not {expected!r}"]
