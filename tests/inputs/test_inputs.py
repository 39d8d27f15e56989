#!/usr/bin/env python3
"""Inputs of files: every container gives the kernel the same bits, which the reference is of; traces are replayed and cut;
what does not fit is refused in one line; `attnscope shrink`."""

import json
import math
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BUILD", ROOT / "build")).resolve()
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python"), str(Path(__file__).resolve().parent)]
import arrays  # noqa: E402
import tap  # noqa: E402
from attnscope import safetensors  # noqa: E402
from attnscope.safetensors import File  # noqa: E402

KERNEL = ROOT / "kernels/v2b_scalar.cu"
BUGS = ROOT / "scenarios/bugs"
B, H, HKV, LQ, LKV, D = 2, 4, 2, 20, 37, 64


class Inputs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.q = arrays.draw(1, B, H, LQ, D)
        cls.k, cls.v = arrays.draw(2, B, HKV, LKV, D), arrays.draw(3, B, HKV, LKV, D)
        cls.given = {"q": cls.q, "k": cls.k, "v": cls.v}
        cls.write("in.npz", arrays.npz({n: arrays.npy("<f2", s, arrays.pack(x, "e")) for n, (x, s) in cls.given.items()}))
        cls.run_case = cls.command("run", KERNEL, "--inputs", "in.npz", "-o", "in.safetensors")

    @classmethod
    def write(cls, name, data):
        (cls.folder / name).write_bytes(data)
        return name

    @classmethod
    def command(cls, *words):
        done = subprocess.run([BUILD / "attnscope", *map(str, words)], cwd=cls.folder, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=100, check=False,
                              env={**os.environ, "ATTNSCOPE_BACKEND": "cpu", "ATTNSCOPE_PROGRESS": "no"})
        return done.returncode, done.stdout, done.stderr

    def right(self, *words):
        status, out, err = self.command(*words)
        self.assertEqual((status, err), (0, ""), out)
        return out

    def refused(self, expected, *words):
        status, out, err = self.command("run", KERNEL, *words)
        self.assertEqual((status, out, err.count("\n")), (2, "", 1), err)
        self.assertIn(expected, err)

    def same(self, *words, kernel=KERNEL):
        """A run of these has the bits of the first one."""
        out = self.right("run", kernel, "-o", "again.safetensors", *words)
        self.assertIn("identical", self.right("diff", "in.safetensors", "again.safetensors", "--exact"))
        return out

    def test_the_reference_is_of_these_values(self):
        self.assertEqual((self.run_case[0], self.run_case[2]), (0, ""), self.run_case[1])
        self.right("values", "in.safetensors", "s", "-o", "s.st")
        file = File(self.folder / "s.st")
        want = file.values("want", 0, B * H * LQ * LKV)
        file.close()
        for b, h, i, j in ((0, 0, 0, 0), (1, 3, 19, 36), (1, 1, 7, 20), (0, 2, 11, 5)):
            q = self.q[0][((b * H + h) * LQ + i) * D:][:D]
            k = self.k[0][((b * HKV + h // (H // HKV)) * LKV + j) * D:][:D]
            s = math.fsum(x * y for x, y in zip(q, k)) / math.sqrt(D)
            self.assertAlmostEqual(want[((b * H + h) * LQ + i) * LKV + j], s, delta=1e-12)

    def test_every_container(self):
        for name, (x, s) in self.given.items():
            self.write(f"{name}.npy", arrays.npy("<f2", s, arrays.pack(x, "e"), version=2))
            turned, _ = arrays.permuted(x, s, (3, 2, 1, 0))
            self.write(f"{name}-fortran.npy", arrays.npy("<f2", s, arrays.pack(turned, "e"), fortran=True))
        safetensors.write(str(self.folder / "all.st"),
                          {n: ("F16", s, arrays.pack(x, "e")) for n, (x, s) in self.given.items()})
        packed = {n: arrays.npy("<f2", s, arrays.pack(x, "e")) for n, (x, s) in self.given.items()}
        self.write("packed.npz", arrays.npz(packed, packed=True))
        blhd = {n: arrays.permuted(x, s, (0, 2, 1, 3)) for n, (x, s) in self.given.items()}
        self.write("blhd.npz", arrays.npz({n: arrays.npy("<f2", s, arrays.pack(x, "e")) for n, (x, s) in blhd.items()}))
        self.same("--q", "q.npy", "--k", "k.npy", "--v", "v.npy")
        self.same("--q", "q-fortran.npy", "--k", "k-fortran.npy", "--v", "v-fortran.npy")
        self.same("--q", "all.st:q", "--k", "packed.npz:k", "--v", "all.st:v")
        self.same("--inputs", "all.st")
        self.same("--inputs", "packed.npz")
        self.same("--inputs", "in.npz", "--q", "q.npy", "--shape", f"{B},{H},{LQ},{LKV},{D}", "--set", f"shape.kv_heads={HKV}")
        self.same("--inputs", "blhd.npz", "--set", "inputs.layout=BLHD", "--set", "shape.layout=BHLD")

    def test_values_of_other_types_are_rounded_and_that_is_said(self):
        wide = {n: arrays.npy("<f4", s, arrays.pack(x, "f")) for n, (x, s) in self.given.items()}
        out = self.same("--inputs", self.write("wide.npz", arrays.npz(wide)))
        self.assertIn("Q is f32 in wide.npz:q, and rounded to f16\n", out)
        self.assertEqual(json.loads(File(self.folder / "again.safetensors").texts["attnscope.inputs"])["from"],
                         "wide.npz; q rounded from f32 to f16; k rounded from f32 to f16; v rounded from f32 to f16")
        self.write("huge.npz", arrays.npz({**wide, "k": arrays.npy("<f4", self.k[1], arrays.pack([65520.0] * len(self.k[0]), "f"))}))
        self.refused("huge.npz:k: has values that overflow f16", "--inputs", "huge.npz")
        self.write("bits.npz", arrays.npz({n: arrays.npy("<u2", s, arrays.pack(x, "e")) for n, (x, s) in self.given.items()}))
        self.same("--inputs", "bits.npz", "--set", "shape.dtype=f16")
        self.refused("bits.npz:q is of type <u2", "--inputs", "bits.npz")

    def test_codes_of_another_format_are_not_taken_for_the_kernels(self):
        shape = [1, 1, 64, 64]
        codes = {n: arrays.npy("|u1", shape, bytes(i * 7 % 120 for i in range(4096))) for n in "qkv"}
        self.write("codes.npz", arrays.npz(codes))
        kernel = ROOT / "kernels/fp8_e4m3.cu"
        status, _, err = self.command("run", kernel, "--inputs", "codes.npz")
        self.assertEqual(status, 2, err)
        self.assertIn("codes.npz:q: is of type |u1; the kernel takes e4m3 for Q", err)
        self.right("run", kernel, "--inputs", "codes.npz", "--set", "shape.dtype=e4m3", "-o", "e4m3.st")
        self.write("f1.npz", arrays.npz({n: data.replace(b"|u1", b"<f1") for n, data in codes.items()}))
        self.right("run", kernel, "--inputs", "f1.npz", "--set", "shape.dtype=e4m3", "-o", "f1.st")
        self.assertIn("identical", self.right("diff", "e4m3.st", "f1.st", "--exact"))

    def test_what_is_said_of_the_problem_stands_beside_a_trace_in_any_order(self):
        for words in (("shape.causal=top-left", "inputs.from=in.safetensors"), ("inputs.from=in.safetensors", "shape.causal=top-left")):
            self.right("run", KERNEL, "--set", words[0], "--set", words[1], "-o", "order.st")
            self.assertEqual(json.loads(File(self.folder / "order.st").texts["attnscope.problem"])["causal"], "top-left")

    def test_bf16(self):
        """NumPy has no bf16: V2 is what ml_dtypes saves."""
        self.write("bf16.npz", arrays.npz({n: arrays.npy("|V2", s, arrays.bf16(x)) for n, (x, s) in self.given.items()}))
        safetensors.write(str(self.folder / "bf16.st"), {n: ("BF16", s, arrays.bf16(x)) for n, (x, s) in self.given.items()})
        kernel = ROOT / "tests/terms/split.cu"
        status, out, err = self.command("run", kernel, "--inputs", "bf16.npz", "--set", "shape.dtype=bf16", "-o", "a.st")
        if "does not" in err or "takes" in err:
            kernel = KERNEL
            self.right("run", kernel, "--inputs", "bf16.npz", "--set", "shape.dtype=bf16", "-o", "a.st")
        else:
            self.assertEqual((status, err), (0, ""), out)
        self.right("run", kernel, "--inputs", "bf16.st", "-o", "b.st")
        self.assertIn("identical", self.right("diff", "a.st", "b.st", "--exact"))

    def test_a_trace_is_replayed_whole_and_in_another_kernel(self):
        self.same("--inputs", "in.safetensors")
        self.right("run", ROOT / "kernels/v2c_wmma.cu", "--shape", "1,4,70,130,64", "--set", "shape.causal=bottom-right",
                   "--set", "shape.scale=0.25", "-o", "causal.st")
        self.right("run", KERNEL, "--inputs", "causal.st", "-o", "replay.st")
        first, again = (json.loads(File(self.folder / name).texts["attnscope.problem"]) for name in ("causal.st", "replay.st"))
        self.assertEqual(first, again)
        hashes = [json.loads(File(self.folder / name).texts["attnscope.inputs"]) for name in ("causal.st", "replay.st")]
        self.assertEqual((hashes[0]["hash"], hashes[1]["from"]), (hashes[1]["hash"], "causal.st"))
        self.assertRegex(hashes[0]["hash"]["q"], "^[0-9a-f]{16}$")
        self.right("run", KERNEL, "--shape", "1,4,70,130,64", "--set", "fill.v.seed=5", "-o", "other.st")
        self.assertIn("the inputs of both runs are the same\n", self.command("diff", "in.safetensors", "in.safetensors")[1])

    def test_codes_scales_and_what_they_were_made_from(self):
        scenario = ROOT / "tests/session/codes.ini"
        self.right("run", scenario, "-o", "codes.st")
        self.right("run", scenario, "--inputs", "codes.st", "-o", "codes-again.st")
        self.assertIn("identical", self.right("diff", "codes.st", "codes-again.st", "--exact"))
        first, again = File(self.folder / "codes.st"), File(self.folder / "codes-again.st")
        for name, tensor in first.tensors.items():
            if name.startswith("input."):
                n = safetensors.count(tensor["shape"])
                self.assertEqual(first.raw(name, 0, n), again.raw(name, 0, n), name)
        problem = json.loads(first.texts["attnscope.problem"])
        kernel = next(line.split("=")[1].strip() for line in scenario.read_text().splitlines() if line.startswith("kernel"))
        types = [word for name in ("dtype", "k_dtype", "v_dtype") for word in ("--set", f"shape.{name}={problem[name]}")]
        scales = [word for name in "qkv" for word in ("--set", f"inputs.{name}_scale=codes.st:input.{name}_scale")]
        if problem["scale_rows"]:
            types += ["--set", f"quant.scales=rows:{problem['scale_rows']}"]
        parts = [word for name in "qkv" for word in (f"--{name}", f"codes.st:input.{name}")]
        path = next(p for p in (scenario.parent / kernel, ROOT / kernel) if p.exists())
        terms = ["--set", f"shape.layout={problem['layout']}", "--set", f"shape.causal={problem['causal']}",
                 "--set", f"shape.scale={problem['scale']!r}"]
        self.right("run", path, *parts, *types, *scales, *terms, "--set", f"inputs.layout={problem['layout']}", "-o", "parts.st")
        self.assertIn("identical", self.right("diff", "codes.st", "parts.st", "--exact"))
        safetensors.write(str(self.folder / "zero.st"), {"s": ("F32", [1], b"\0\0\0\0")})
        self.assertIn("zero.st:s: holds the scale 0; expected finite numbers above 0",
                      self.command("run", path, *parts, *types, "--set", "inputs.k_scale=zero.st:s", "--set",
                                   f"inputs.layout={problem['layout']}")[2])
        """Floating-point values become codes where a type of codes is stated."""
        given = {n: ("F16", first.tensors[f"input.{n}_given"]["shape"],
                     first.raw(f"input.{n}_given", 0, safetensors.count(first.tensors[f"input.{n}_given"]["shape"])))
                 for n in "qkv"}
        safetensors.write(str(self.folder / "given.st"), given)
        self.right("run", scenario, "--inputs", "given.st", "--set", f"inputs.layout={problem['layout']}", "-o", "encoded.st")
        self.assertIn("identical", self.right("diff", "codes.st", "encoded.st", "--exact"))

    def test_rows_behind_each_other_and_pages(self):
        """cu_seqlens, and pages in any order with NaN in the unused ones: the kernel gets the same rows."""
        kernel, q_lens, kv_lens, page, heads, kv_heads = ROOT / "kernels/varlen_paged.cu", [5, 0, 17], [37, 20, 40], 16, 2, 1
        (q, q_shape), (k, k_shape), (v, _) = (arrays.draw(seed, sum(lens), n, D) for seed, lens, n in (
            (1, q_lens, heads), (2, kv_lens, kv_heads), (3, kv_lens, kv_heads)))

        def begins(lens):
            return [sum(lens[:b]) for b in range(len(lens) + 1)]

        rows = {"q": ("F16", q_shape, arrays.pack(q, "e")), "k": ("F16", k_shape, arrays.pack(k, "e")),
                "v": ("F16", k_shape, arrays.pack(v, "e")), "cu_seqlens_q": ("I32", [4], arrays.pack(begins(q_lens), "i")),
                "cu_seqlens_k": ("I64", [4], arrays.pack(begins(kv_lens), "q"))}
        table, pages, paged = [[4, 1, 7, -1], [6, 0, -1, -1], [2, 8, 5, 99]], 9, dict(rows)
        for name, values in (("k", k), ("v", v)):
            data = [math.nan] * (pages * page * kv_heads * D)
            for b, length in enumerate(kv_lens):
                for j in range(length):
                    to, at = (table[b][j // page] * page + j % page) * kv_heads * D, (begins(kv_lens)[b] + j) * kv_heads * D
                    data[to:to + kv_heads * D] = values[at:at + kv_heads * D]
            paged[name] = ("F16", [pages, page, kv_heads, D], arrays.pack(data, "e"))
        del paged["cu_seqlens_k"]
        paged["kv_lens"] = ("I64", [3], arrays.pack(kv_lens, "q"))
        paged["page_table"] = ("I32", [3, 4], arrays.pack(sum(table, []), "i"))
        safetensors.write(str(self.folder / "rows.st"), rows)
        safetensors.write(str(self.folder / "paged.st"), paged)
        blhd = ["--set", "inputs.layout=BLHD"]
        self.right("run", kernel, "--inputs", "rows.st", "-o", "of-rows.st")
        self.right("run", kernel, "--inputs", "paged.st", *blhd, "-o", "of-pages.st")
        files = [File(self.folder / name) for name in ("of-rows.st", "of-pages.st")]
        problems = [json.loads(file.texts["attnscope.problem"]) for file in files]
        self.assertEqual([(p["layout"], p.get("page_size", 0), p["kv_len"]) for p in problems], [("THD", 0, 40), ("THD", page, 40)])
        for file in files:
            for b, length in enumerate(kv_lens):
                self.assertEqual(file.values("input.v", b * 40 * D, length * D), v[begins(kv_lens)[b] * D:][:length * D])
            self.assertEqual(file.values("input.q", (2 * 17 * heads + 1) * D, D), q[(5 * heads + 1) * D:][:D])
        self.right("run", kernel, "--inputs", "paged.st", *blhd, "--set", "shape.page_size=8", "--set", "inputs.batches=2:3",
                   "--set", "inputs.kv_rows=30:40", "-o", "cut.st")
        cut = File(self.folder / "cut.st")
        self.assertEqual((cut.tensors["input.v"]["shape"], cut.values("input.v", 0, D)), ([1, 10, 1, D], v[(57 + 30) * D:][:D]))
        for words, expected in (
                (["--inputs", "paged.st"], "lies by pages of 1 rows"),
                ([*blhd, "--inputs", "paged.st", "--set", "inputs.kv_lens=rows.st:cu_seqlens_q"], "is of 3 sequences; expected 4"),
                ([*blhd, "--inputs", "paged.st", "--set", "inputs.kv_lens=rows.st:q"], "whole numbers, [batch]"),
                (["--inputs", "rows.st", "--set", "shape.kv_lens=37,21,40"], "gives sequence 1 20 rows; shape.kv_lens has 21 of it"),
                (["--q", "rows.st:q", "--k", "rows.st:k", "--v", "rows.st:v"], "rows.st:q: has shape [22, 2, 64]; expected [batch"),
                (["--inputs", "rows.st", "--k", "paged.st:k"], "[rows of all sequences, heads, head_dim]"),
                ([*blhd, "--q", "rows.st:q", "--k", "paged.st:k", "--v", "paged.st:v", "--set", "inputs.page_table=paged.st:page_table",
                  "--set", "inputs.cu_seqlens_q=rows.st:cu_seqlens_q"], "expected `inputs.kv_lens` or `shape.kv_lens` beside it")):
            status, out, err = self.command("run", kernel, *words)
            self.assertEqual((status, out, err.count("\n")), (2, "", 1), err)
            self.assertIn(expected, err)

    def test_sinks_slopes_and_bias(self):
        kernel = ROOT / "tests/terms/sink_start.cu"
        sink, bias = arrays.draw(5, H), arrays.draw(6, H, LQ, LKV)
        tensors = {n: ("F16", s, arrays.pack(x, "e")) for n, (x, s) in self.given.items()}
        tensors.update({n: ("F32", s, arrays.pack(x, "f")) for n, (x, s) in (("sink", sink), ("bias", bias))})
        tensors["alibi"] = ("F32", [H], arrays.pack([0.5, 0.25, 0.0, 0.125], "f"))
        safetensors.write(str(self.folder / "terms.st"), tensors)
        self.right("run", kernel, "--inputs", "terms.st", "-o", "terms-run.st")
        file = File(self.folder / "terms-run.st")
        self.assertEqual(file.values("input.sink", 0, H), sink[0])
        self.assertEqual(file.values("input.alibi", 0, H), [0.5, 0.25, 0.0, 0.125])
        self.assertEqual(file.values("input.bias", 0, H * LQ * LKV), bias[0])
        self.assertEqual(json.loads(file.texts["attnscope.problem"])["bias_kind"], "per-head")
        self.right("run", kernel, "--inputs", "terms-run.st", "--set", "inputs.heads=1:2", "--set", "inputs.q_rows=3:9",
                   "--set", "inputs.kv_rows=1:33", "-o", "cut.st")
        cut = File(self.folder / "cut.st")
        self.assertEqual((cut.values("input.sink", 0, 1), cut.values("input.alibi", 0, 1)), (sink[0][1:2], [0.25]))
        self.assertEqual(cut.values("input.bias", 0, 32), bias[0][(LQ + 3) * LKV + 1:][:32])
        self.right("run", kernel, "--inputs", "terms-run.st", "--set", "shape.bias=none", "--set", "shape.sink=no")
        tensors["sink"] = ("F64", [H], arrays.pack(sink[0], "d"))
        safetensors.write(str(self.folder / "wide.st"), tensors)
        self.assertIn("sink is f64 in wide.st:sink, and rounded to f32\n",
                      self.right("run", kernel, "--inputs", "wide.st", "-o", "wide-run.st"))
        self.assertEqual(json.loads(File(self.folder / "wide-run.st").texts["attnscope.inputs"])["from"],
                         "wide.st; sink rounded from f64 to f32")

    def test_a_cut_takes_the_values_of_its_place(self):
        self.right("run", KERNEL, "--inputs", "in.safetensors", "--set", "inputs.batches=1:2", "--set", "inputs.heads=3:4",
                   "--set", "inputs.q_rows=4:20", "--set", "inputs.kv_rows=30:37", "-o", "cut.st")
        file = File(self.folder / "cut.st")
        self.assertEqual(file.tensors["input.q"]["shape"], [1, 1, 16, D])
        self.assertEqual(file.values("input.q", 0, 16 * D), self.q[0][((H + 3) * LQ + 4) * D:][:16 * D])
        self.assertEqual(file.values("input.v", 0, 7 * D), self.v[0][((HKV + 1) * LKV + 30) * D:][:7 * D])

    def test_a_scenario_names_its_files_from_its_folder(self):
        (self.folder / "sub").mkdir()
        self.write("sub/in.npz", (self.folder / "in.npz").read_bytes())
        self.write("sub/real.ini", f"[scenario]\nkernel = {KERNEL}\n[inputs]\nq = in.npz:q\nk = in.npz:k\nv = ../in.npz:v\n".encode())
        out = self.right("run", "sub/real.ini", "-o", "again.safetensors")
        self.assertIn(f"({B},{H}/{HKV},{LQ},{LKV},{D})", out)
        self.assertIn("identical", self.right("diff", "in.safetensors", "again.safetensors", "--exact"))
        self.write("sub/bad.ini", f"[scenario]\nkernel = {KERNEL}\n[shape]\nheads = 3\n[inputs]\nfrom = in.npz\n".encode())
        status, _, err = self.command("run", "sub/bad.ini")
        self.assertEqual((status, err), (2, "attnscope: sub/bad.ini:6: inputs.from: sub/in.npz:q has shape [2, 4, 20, 64], which "
                                            "makes shape.heads 4; expected 3, which is stated\n"))

    def test_what_does_not_fit_is_refused_in_one_line(self):
        whole = (self.folder / "in.npz").read_bytes()
        q = arrays.pack(self.q[0], "e")
        files = {
            "short.npy": arrays.npy("<f2", self.q[1], q[:-2]), "big-endian.npy": arrays.npy(">f2", self.q[1], q),
            "records.npy": arrays.npy("", [1], q, head="{'descr': [('a', '<f2')], 'fortran_order': False, 'shape': (1,), }"),
            "complex.npy": arrays.npy("<c8", [1], q), "flat.npy": arrays.npy("<f2", [len(self.q[0])], q),
            "none.npy": arrays.npy("<f2", [0, 4, 20, 64], b""), "negative.npy": arrays.npy("<f2", [-1, 4, 20, 64], q),
            "vast.npy": arrays.npy("<f2", [1 << 40, 1 << 40, 20, 64], q), "many.npy": arrays.npy("<f2", [1] * 9, b"\0\0"),
            "header.npy": b"\x93NUMPY\1\0\xff\xff{", "cut.npz": whole[:len(whole) // 2], "torch.pt": arrays.npz({}) or b"",
            "words.txt": b"these are words, and not an array", "empty.npy": b"", "one.npy": arrays.npy("<i4", self.q[1], q * 2)}
        for name, data in files.items():
            self.write(name, data)
        import zipfile
        with zipfile.ZipFile(self.folder / "torch.pt", "w") as file:
            file.writestr("archive/data.pkl", b"")
        for name, words in {
                "short.npy": "is truncated", "big-endian.npy": "expected little-endian", "records.npy": "holds records",
                "complex.npy": "is of type <c8", "flat.npy": "expected [batch, heads, rows, head_dim]",
                "none.npy": "expected lengths of 1 and more", "negative.npy": "expected lengths of 1 and more",
                "vast.npy": "expected lengths of 1 and more", "many.npy": "more than 8 dimensions",
                "header.npy": "its .npy header is damaged", "cut.npz": "is a damaged .npz file", "torch.pt": "is a PyTorch file",
                "words.txt": "is not a .npy, .npz or .safetensors file", "empty.npy": "is empty", "one.npy": "is of type <i4",
                "nothing.npy": "no such file", "in.npz": "holds several arrays; expected FILE:ARRAY",
                "in.npz:w": "there is no array `w`", ".": "is not a regular file"}.items():
            with self.subTest(name):
                self.refused(words, "--q", name, "--k", "in.npz:k", "--v", "in.npz:v")
        for words, options in {
                "expected a file of v, as another input is of a file": ("--q", "in.npz:q", "--k", "in.npz:k"),
                "is a PyTorch file": ("--inputs", "torch.pt"),
                "4 heads; expected 2": ("--q", "in.npz:q", "--k", "in.npz:k", "--v", "in.npz:q"),
                "makes shape.batch 2; expected 1": ("--inputs", "in.npz", "--shape", "1,4,20,37,64"),
                "expected whole groups of 2 heads": ("--inputs", "in.npz", "--set", "inputs.heads=1:3"),
                "takes 15:21 of them": ("--inputs", "in.npz", "--set", "inputs.q_rows=15:21"),
                "with FIRST below END": ("--inputs", "in.npz", "--set", "inputs.q_rows=5:5"),
                "expected files of inputs beside it": ("--set", "inputs.heads=0:1"),
                "has no array `q`": ("--inputs", "words.st"), "is a damaged .npz file": ("--inputs", "cut.npz"),
                "expected FILE": ("--q", "x" * 500, "--k", "in.npz:k", "--v", "in.npz:v")}.items():
            safetensors.write(str(self.folder / "words.st"), {"x": ("F16", [1], b"\0\0")})
            with self.subTest(words):
                self.refused(words, *options)
        self.assertIn("is a saved trace", self.command("run", "in.safetensors", "--inputs", "in.npz")[2])

    def test_nan_in_a_file_is_found_where_it_begins(self):
        values = list(self.k[0])
        values[(LKV * 1 + 9) * D + 3] = math.nan
        tensors = {n: arrays.npy("<f2", s, arrays.pack(x, "e")) for n, (x, s) in {**self.given, "k": (values, self.k[1])}.items()}
        status, out, _ = self.command("run", KERNEL, "--inputs", self.write("nan.npz", arrays.npz(tensors)), "--json")
        report = json.loads(out)
        self.assertEqual(status, 1, out[:500])
        self.assertIn("NaN begins here, as the input contains it", report["findings"][0]["text"])
        self.assertEqual([report["findings"][0][name] for name in ("row", "col")], [9, 3])

    def test_shrink_cuts_files(self):
        scenario = BUGS / "kv-batch-ignored.ini"
        self.command("run", scenario, "-o", "wrong.st")
        out = self.right("shrink", scenario, "--inputs", "wrong.st", "-o", "small.ini")
        self.assertRegex(out, r"shrunk \(3,4/4,128,128,64\) to \(2,1/1,1,\d,64\) in \d+ runs: batches ")
        self.assertIn("found, as expected", self.right("check", "small.ini"))
        text = (self.folder / "small.ini").read_text()
        self.assertIn(f"from = {self.folder.resolve()}/wrong.st\n", text)
        self.assertIn("verdict = fail\nculprits = ", text)
        status, _, err = self.command("shrink", scenario, "-o", "small.ini")
        self.assertEqual((status, err), (2, "attnscope: small.ini: exists; it is not replaced\n"))
        self.assertIn("attnscope shrink KERNEL.cu --inputs wrong.st", self.command("shrink", "wrong.st")[2])

    def test_shrink_shortens_fills(self):
        out = self.right("shrink", BUGS / "double-scale.ini", "--save", "fill.ini")
        self.assertRegex(out, r"shrunk \(1,8/8,512,512,64\) to \(1,1/1,\d+,\d+,64\) in")
        self.assertIn("scores are scaled twice", out)
        self.assertIn("found, as expected", self.right("check", "fill.ini"))
        status, _, err = self.command("shrink", KERNEL, "--shape", "1,1,32,64")
        self.assertEqual((status, err.count("\n")), (2, 1))
        self.assertIn("there is nothing to shrink", err)
        status, _, err = self.command("shrink", BUGS / "double-scale.ini", "-o", "nowhere/x.ini", "--shape", "1,1,16,193,64")
        self.assertEqual(status, 3, err)

    def test_shrink_cuts_the_length_of_each_sequence(self):
        out = self.right("shrink", BUGS / "append-unseen.ini", "-o", "lens.ini")
        # At 6 keys, all of them new, no key is seen: other mistakes give the same, and no cause is said.
        self.assertRegex(out, r"to \(1,1/1,1,8,64\) in \d+ runs, q_lens 1, kv_lens 8\n")
        self.right("check", "lens.ini")

    def test_shrink_keeps_what_was_reported(self):
        out = self.right("shrink", BUGS / "ws-empty-before-v.ini", "-o", "race.ini")
        self.assertIn("shrunk", out)
        self.assertIn("event = race\n", (self.folder / "race.ini").read_text())
        self.right("check", "race.ini")


if __name__ == "__main__":
    tap.main()
