#!/usr/bin/env python3
"""NVFP4, MXFP8 and MXFP4: codes and scales as CUDA's headers have them, what scales are made of, two codes in a byte in
the files of others, and what does not combine."""

import json
import re
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python")]
import tap  # noqa: E402
from in_folder import InFolder  # noqa: E402
from attnscope.safetensors import File, count, write  # noqa: E402

KERNEL = ROOT / "kernels/micro_scales.cu"
CUDA = Path("/usr/local/cuda/include")
E2M1 = [sign * x for sign in (1, -1) for x in (0, 0.5, 1, 1.5, 2, 3, 4, 6)]
SHAPE = ("shape.heads=2", "shape.q_len=33", "shape.kv_len=40", "shape.head_dim=64", "shape.head_dim_v=32")
NVFP4 = ("shape.k_dtype=e2m1", "quant.scales=rows:1,dims:16", "quant.scale_type=e4m3")
MXFP4 = ("shape.k_dtype=e2m1", "quant.scales=rows:1,dims:32", "quant.scale_type=e8m0")

HEADERS = r"""
#include <cuda_fp4.h>
#include <cuda_fp8.h>
#include <stdio.h>
#include "engine/base/format.h"
static int differ(float x)
{
    const int nan = x != x; /* CUDA's e8m0 of infinity and NaN is as it is told to saturate */
    return e2m1_from_f64(x) != __nv_cvt_float_to_fp4(x, __NV_E2M1, cudaRoundNearest) ||
           (!nan && x > 0 && e8m0_from_f32(x) != __nv_cvt_float_to_e8m0(x, __NV_SATFINITE, cudaRoundZero));
}
int main()
{
    int wrong = 0;
    for (int code = 0; code < 256; code++) {
        const __nv_bfloat16_raw scale = __nv_cvt_e8m0_to_bf16raw((__nv_fp8_storage_t)code);
        const float x = bf16_to_f32(scale.x), y = e8m0_to_f32((uint8_t)code);
        wrong += !(x == y || (x != x && y != y));
        wrong += code < 16 && f16_to_f32(__nv_cvt_fp4_to_halfraw((__nv_fp4_storage_t)code, __NV_E2M1).x) != e2m1_to_f32((uint8_t)code);
        const __half2_raw two = __nv_cvt_fp4x2_to_halfraw2((__nv_fp4x2_storage_t)code, __NV_E2M1);
        wrong += f16_to_f32(two.x) != e2m1_to_f32(code & 15) || f16_to_f32(two.y) != e2m1_to_f32(code >> 4);
    }
    for (uint32_t i = 0; i < 1u << 20; i++) /* every 4096th f32, and each beside a midpoint or a number of e2m1 */
        wrong += differ(format_f32_of(i << 12));
    for (int quarter = -32; quarter <= 32; quarter++)
        for (int32_t beside = -2; beside <= 2; beside++)
            wrong += quarter && differ(format_f32_of(format_f32_bits(quarter / 4.0f) + (uint32_t)beside));
    printf("%d\n", wrong);
    return wrong != 0;
}
"""


class Headers(unittest.TestCase):
    @unittest.skipUnless((CUDA / "cuda_fp4.h").is_file(), f"{CUDA} has no cuda_fp4.h")
    def test_codes_are_those_of_cuda(self):
        with tempfile.TemporaryDirectory() as folder:
            source, program = Path(folder) / "headers.cpp", Path(folder) / "headers"
            source.write_text(HEADERS)
            compiler = ("g++", "-O1", "-w", f"-I{ROOT}", f"-I{CUDA}")
            alone = subprocess.run([*compiler, "-fsyntax-only", "-xc++", "-include", "cuda_fp4.h", "/dev/null"], capture_output=True)
            if alone.returncode:
                self.skipTest("CUDA's headers do not compile on the host")
            subprocess.run([*compiler, source, "-o", program], check=True)
            done = subprocess.run([program], text=True, capture_output=True)
            self.assertEqual((done.returncode, done.stdout), (0, "0\n"))


class MicroScales(InFolder):
    def run_with(self, *settings, words=()):
        return self.command("run", KERNEL, *words, *(f"--set={s}" for s in settings))

    def right(self, *settings, name="t.st", words=()):
        status, out, err = self.run_with(*settings, words=("-o", name, *words))
        self.assertEqual((status, err), (0, ""), out)
        self.assertIn("CLEAN", out)
        file = File(self.folder / name)
        self.addCleanup(file.close)
        return file

    @staticmethod
    def values(file, name):
        return list(file.values(name, 0, count(file.tensors[name]["shape"])))

    def test_scales_are_made_by_the_rules(self):
        for settings, dims in ((NVFP4, 16), (MXFP4, 32)):
            with self.subTest(settings=settings):
                file = self.right(*SHAPE, *settings)
                problem = json.loads(file.texts["attnscope.problem"])
                given, codes, scales = (self.values(file, f"input.k{part}") for part in ("_given", "", "_scale"))
                own = problem.get("k_tensor_scale", 1)
                if dims == 16:
                    self.assertAlmostEqual(own * 6 * 448, max(map(abs, given)), delta=1e-6)
                    self.assertEqual(max(scales), 448)
                for block in range(0, len(given), dims):
                    scale, amax = scales[block // dims], max(abs(x) for x in given[block:block + dims])
                    if dims == 32:  # the largest power of two that leaves amax / scale at 4 or more
                        self.assertTrue(4 <= amax / scale < 8)
                    else:
                        self.assertLess(abs(scale * own * 6 / amax - 1), 1 / 15)
                    for i in range(block, block + dims):
                        x = given[i] / scale / own
                        best = min(abs(x - y) for y in E2M1)
                        self.assertLessEqual(abs(x - E2M1[codes[i]]), best + 1e-6)

    def test_files_of_packed_codes(self):
        """What another program has, two codes in a byte and scales as bytes, is the run that a trace has."""
        for settings, scale_type in ((NVFP4, "F8_E4M3"), (MXFP4, "F8_E8M0")):
            with self.subTest(settings=settings):
                first = self.right(*SHAPE, *settings)
                problem = json.loads(first.texts["attnscope.problem"])
                arrays = {"q": ("F16", first.tensors["input.q"]["shape"], first.raw("input.q", 0, count(first.tensors["input.q"]["shape"])))}
                for name in "kv":
                    shape, codes = list(first.tensors[f"input.{name}"]["shape"]), self.values(first, f"input.{name}")
                    arrays[name] = ("U8", [*shape[:3], shape[3] // 2], bytes(a | b << 4 for a, b in zip(codes[::2], codes[1::2])))
                    scales = self.values(first, f"input.{name}_scale")
                    shape = first.tensors[f"input.{name}_scale"]["shape"]
                    if scale_type == "F8_E8M0":
                        data = bytes((struct.unpack("<I", struct.pack("<f", x))[0] >> 23) for x in scales)
                    else:
                        data = bytes(self.e4m3().index(x) for x in scales)
                    arrays[f"{name}_scale"] = (scale_type, shape, data)
                write(str(self.folder / "in.safetensors"), arrays)
                own = [f"inputs.{name}_tensor_scale={problem[f'{name}_tensor_scale']!r}" for name in "kv" if scale_type == "F8_E4M3"]
                again = self.right("shape.k_dtype=e2m1", *own, name="u.st", words=("--inputs", "in.safetensors"))
                for name in ("input.k", "input.v", "input.k_scale", "output.o", "output.lse"):
                    self.assertEqual(self.values(first, name), self.values(again, name), name)
                trace = self.right(name="v.st", words=("--inputs", "t.st"))
                self.assertEqual(self.values(first, "output.o"), self.values(trace, "output.o"))
                self.assertEqual(json.loads(trace.texts["attnscope.problem"]), problem)

    @staticmethod
    def e4m3():
        return [2 ** ((c >> 3 or 1) - 7) * ((c >> 3 > 0) + (c & 7) / 8) for c in range(127)]

    def test_pages_and_strides_change_nothing(self):
        plain = self.right(*SHAPE, *NVFP4)
        for settings in (("shape.page_size=16",), ("shape.strides=padded",), ("shape.strides=v-transposed",), ("shape.layout=BLHD",)):
            other = self.right(*SHAPE, *NVFP4, *settings, name="u.st")
            self.assertEqual(self.values(plain, "output.lse"), self.values(other, "output.lse"), settings)

    def refused(self, *settings, words=()):
        status, out, err = self.run_with(*settings, words=words)
        self.assertEqual((status, out, err.count("\n")), (2, "", 1), out + err)
        return err

    def test_the_other_code_of_a_byte(self):
        """Bytes hold two elements that lie beside each other: of a V that lies by columns, two rows."""
        text = KERNEL.read_text(encoding="utf-8")
        for other, said in (("at % 2 ? 0 : 4", "of rows 2 i and 2 i + 1, are exchanged"), ("4", "of row 2 i + 1, is taken for row 2 i as well"),
                            ("0", "of row 2 i, is taken for row 2 i + 1 as well")):
            self.assertEqual(text.count("at % 2 ? 4 : 0"), 1)
            (self.folder / "k.cu").write_text(text.replace("at % 2 ? 4 : 0", other), encoding="utf-8")
            for header in (ROOT / "kernels").glob("*.cuh"):
                (self.folder / header.name).write_bytes(header.read_bytes())
            settings = (*SHAPE, *NVFP4, "shape.strides=v-transposed")
            out = self.command("run", "k.cu", *(f"--set={s}" for s in settings))[1]
            self.assertRegex(out, f"finding: V is wrong .* codes? of each byte of V, {re.escape(said)}")

    def test_what_does_not_combine_is_refused(self):
        self.assertIn("expected an even number of e2m1 codes", self.refused(*SHAPE, *NVFP4, "shape.head_dim=63"))
        self.assertIn("quant.scale_type: expected a tensor of codes", self.refused(*SHAPE, "shape.dtype=f16", "shape.k_dtype=f16", "quant.scale_type=e8m0"))
        self.assertIn("expected f32, e4m3 or e8m0", self.refused("quant.scale_type=e5m2"))
        self.assertIn("V in K", self.refused(*SHAPE, *MXFP4, "shape.v_in_k=yes"))
        self.assertIn("rope: expected Q and K of values, found codes", self.refused(*SHAPE, *MXFP4, "shape.rope=half"))
        self.assertIn("expected files of inputs beside it", self.refused(*SHAPE, *NVFP4, "inputs.k_tensor_scale=2"))
        self.right(*SHAPE, *MXFP4)
        self.assertIn("beside scales of e4m3", self.refused("inputs.k_tensor_scale=2", words=("--inputs", "t.st")))
        status, out, err = self.command("run", ROOT / "kernels/block_scales.cu", "--set=quant.scale_type=e8m0", "--set=shape.k_dtype=u8")
        self.assertEqual((status, out, err.count("\n")), (2, "", 1), err)
        self.assertIn("scales of e8m0 are those of e4m3, e5m2 or e2m1", err)
        status, out, err = self.command("run", ROOT / "kernels/block_scales.cu", "--set=quant.scale_type=e8m0", "--set=shape.k_dtype=e4m3")
        self.assertIn("scales of this type (quant.scale_type, kernel.tensors)", err)


    def test_random_correct_runs(self):
        self.clean_runs("--small", "--sequences", "--blocks", "--formats", "10", "17", "kernels/micro_scales.cu")


if __name__ == "__main__":
    tap.main()
