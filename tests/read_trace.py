#!/usr/bin/env python3
"""Reads a saved trace with nothing but the Python standard library and docs/trace-format.md, checks every rule of that
page, and prints what it holds. An independent reader: it shares no code with the program. Exit 0: all rules hold."""
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
from attnscope import Error  # noqa: E402
from attnscope.safetensors import BYTES, STRUCT, File, parse  # noqa: E402, F401
from attnscope.safetensors import count as product  # noqa: E402

CHANNELS = {  # name: (rows, cols, once per kv tile)
    "q": ("br", "d", False), "k": ("bc", "d", True), "v": ("bc", "dv", True), "s": ("br", "bc", True),
    "m": ("br", "1", True), "alpha": ("br", "1", True), "p": ("br", "bc", True), "l": ("br", "1", True),
    "u": ("br", "dv", True), "o": ("br", "dv", False), "lse": ("br", "1", False)}
TYPES = {  # name in the metadata: (type in the file, bytes)
    "f16": ("F16", 2), "bf16": ("BF16", 2), "f32": ("F32", 4), "f64": ("F64", 8), "e4m3": ("U8", 1), "e5m2": ("U8", 1),
    "u8": ("U8", 1), "s8": ("I8", 1), "i32": ("I32", 4), "i64": ("I64", 8)}


def check(fact, words):
    if not fact:
        sys.exit(f"{sys.argv[1]}: {words}")


class Trace(File):
    def __init__(self, path):
        super().__init__(path)
        for name, t in self.tensors.items():
            check((self.begin + t["data_offsets"][0]) % BYTES[t["dtype"]] == 0, f"alignment of {name}")
        for key in ("problem", "plan", "conventions", "types", "run", "sites", "events"):
            setattr(self, key, parse(self.texts["attnscope." + key]))

    def expect(self, name, dtype, shape):
        t = self.tensors.get(name)
        check(t is not None, f"{name} is missing")
        check(t["dtype"] == dtype and t["shape"] == shape, f"{name} is {t['dtype']} {t['shape']}, not {dtype} {shape}")

    def check_all(self):
        p, plan = self.problem, self.plan
        check(self.texts["attnscope.format"] == "3", "format")
        wide = p.get("head_dim_v", p["head_dim"])
        matrix = lambda heads, rows, cols: [p["batch"]] + ([heads, rows] if p["layout"] == "BHLD" else [rows, heads]) + [cols]
        known = {"input.q", "input.k", "input.v", "output.o", "output.lse", "slot", "dropped", "mistyped"}
        for name, heads, rows, cols in (("q", p["heads"], p["q_len"], p["head_dim"]), ("k", p["kv_heads"], p["kv_len"], p["head_dim"]),
                                        ("v", p["kv_heads"], p["kv_len"], wide)):
            dtype = p["dtype"] if name == "q" else p.get(name + "_dtype", p["dtype"])
            self.expect("input." + name, TYPES[dtype][0], matrix(heads, rows, cols))
            if dtype in ("e4m3", "e5m2", "u8", "s8"):
                span, dims = p.get("scale_rows", 0), p.get("scale_dims", 0)
                self.expect(f"input.{name}_scale", "F32", [p["batch"], heads, -(-rows // span) if span else 1,
                                                           *([-(-cols // dims)] if dims else [])])
                self.expect(f"input.{name}_given", "F16", matrix(heads, rows, cols))
                known |= {f"input.{name}_scale", f"input.{name}_given"}
        self.expect("output.o", TYPES[self.types["o"]][0], matrix(p["heads"], p["q_len"], wide))
        self.expect("output.lse", "F32", [p["batch"], p["heads"], p["q_len"]])
        n_slots = self.tensors["slot"]["shape"][0]
        self.expect("slot", "I32", [n_slots, 3])
        self.expect("dropped", "I64", [len(CHANNELS)])
        self.expect("mistyped", "I64", [len(CHANNELS)])
        q_tiles, kv_tiles = -(-p["q_len"] // plan["br"]), -(-p["kv_len"] // plan["bc"])
        size = {"br": plan["br"], "bc": plan["bc"], "d": p["head_dim"], "dv": wide, "1": 1}
        heads, batch = p["heads"], p["batch"]
        bias = {"none": None, "shared": [1, 1], "per-head": [1, heads], "per-batch": [batch, 1], "full": [batch, heads]}
        for name, shape in (("sink", [heads] if p["has_sink"] else None), ("alibi", [heads] if p["has_alibi"] else None),
                            ("bias", bias[p["bias_kind"]] and bias[p["bias_kind"]] + [p["q_len"], p["kv_len"]]),
                            ("mask", bias[p.get("mask_kind", "none")] and bias[p["mask_kind"]] + [p["q_len"], p["kv_len"]]),
                            ("keep", bias[p.get("keep_kind", "none")] and bias[p["keep_kind"]] + [p["q_len"], p["kv_len"]])):
            if shape:
                self.expect("input." + name, "U8" if name in ("mask", "keep") else "F32", shape)
                known.add("input." + name)
        pages = -(-p["kv_len"] // p["page_size"]) if p.get("page_size") else 0
        for name, shape in (("q_lens", [batch] if p.get("has_q_lens") else None),
                            ("kv_lens", [batch] if p.get("has_kv_lens") else None), ("page_table", [batch, pages] if pages else None)):
            if shape:
                self.expect("input." + name, "I32", shape)
                known.add("input." + name)
        check(plan["kv_splits"] >= 0, "kv_splits")
        if plan.get("kv_deal") == "map" and plan["kv_splits"] > 1:
            self.expect("state", "I32", [batch, heads, q_tiles, kv_tiles + 1])
            known.add("state")
        check(plan.get("kv_deal", "ranges") in ("ranges", "round-robin", "map"), "kv_deal")
        for channel, dtype in self.types["channels"].items():
            rows, cols, per_kv = CHANNELS[channel]
            tiles = [n_slots] + ([kv_tiles] if per_kv else [])
            columns = self.conventions.get("l_lanes", 0) or 1 if channel == "l" else size[cols]
            self.expect("channel." + channel, TYPES[dtype][0], tiles + [size[rows], columns])
            self.expect("stamp." + channel, "I64", tiles + [-(-plan["threads"] // 32)])
            known |= {"channel." + channel, "stamp." + channel}
            if "writer." + channel in self.tensors:
                planes = self.tensors["writer." + channel]["shape"][0]
                self.expect("writer." + channel, "I32", [planes] + self.tensors["channel." + channel]["shape"][-2:])
                self.expect("writer_of." + channel, "I32", tiles + [4])
                of = self.values("writer_of." + channel, 0, product(tiles) * 4)
                check(all(0 <= plane < planes for plane in of[::4]), f"writer_of.{channel} names no tile of writers")
                known |= {"writer." + channel, "writer_of." + channel}
        check(set(self.tensors) == known, f"unknown tensors {set(self.tensors) - known}")
        places = self.values("slot", 0, 3 * n_slots)
        places = [tuple(places[i:i + 3]) for i in range(0, len(places), 3)]
        check(len(set(places)) == len(places), "a slot comes twice")
        for b, h, q in places:
            check(0 <= b < p["batch"] and 0 <= h < p["heads"] and 0 <= q < q_tiles, f"slot ({b}, {h}, {q})")
        for site in self.sites:
            check(site["channel"] in CHANNELS and site["line"] > 0, f"site {site}")
        return places

    def visited(self, channel):
        """How many of a channel's tiles any warp stamped, of how many."""
        shape = self.tensors["stamp." + channel]["shape"]
        stamps = self.values("stamp." + channel, 0, product(shape))
        warps = shape[-1]
        return sum(any(stamps[i:i + warps]) for i in range(0, len(stamps), warps)), len(stamps) // max(warps, 1)


def main():
    if len(sys.argv) not in (2, 5):
        sys.exit("usage: read_trace.py TRACE [TENSOR FIRST COUNT]")
    trace = Trace(sys.argv[1])
    places = trace.check_all()
    if len(sys.argv) == 5:
        print(*trace.values(sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
        return
    p = trace.problem
    print("problem", *(p[k] for k in ("batch", "heads", "kv_heads", "q_len", "kv_len", "head_dim", "causal", "dtype")))
    print("run", trace.run["kernel"], trace.run["status"], "slots", len(places))
    for channel in trace.types["channels"]:
        visited, tiles = trace.visited(channel)
        print("channel", channel, *trace.tensors["channel." + channel]["shape"], f"visited {visited} of {tiles}")


if __name__ == "__main__":
    try:
        main()
    except Error as error:
        sys.exit(str(error))
