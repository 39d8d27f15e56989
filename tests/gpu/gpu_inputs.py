#!/usr/bin/env python3
"""Real tensors on a GPU: PyTorch's own as inputs, FP8 among them, and a capture of a PyTorch extension replayed in other
kernels on both backends. SKIP without a GPU or PyTorch."""

import os
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python")]
import tap  # noqa: E402

import attnscope  # noqa: E402

try:
    import torch
except ImportError:
    torch = None
HERE = ROOT / "tests/capture"
CONVENTIONS = {"s_unit": "scaled", "m_unit": "scaled"}


@unittest.skipUnless(torch and torch.cuda.is_available(), "PyTorch on a CUDA device is not there")
class Tensors(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(3)

    def draw(self, dtype, *shape):
        return torch.randn(*shape, device="cuda").to(dtype)

    def test_tensors_on_the_device(self):
        for dtype in (torch.float16, torch.bfloat16):
            q, k, v = self.draw(dtype, 2, 4, 200, 64), self.draw(dtype, 2, 2, 300, 64), self.draw(dtype, 2, 2, 300, 64)
            for backend in ("gpu", "cpu"):
                with self.subTest(f"{dtype} {backend}"):
                    run = attnscope.run(ROOT / "kernels/v2b_scalar.cu", q, k, v, backend=backend,
                                        settings={"shape.causal": "bottom-right"})
                    self.assertTrue(run.clean, run.clean)
                    self.assertTrue(torch.equal(torch.tensor(run["q"]), q.cpu().double()))
                    want = torch.nn.functional.scaled_dot_product_attention(
                        q.double(), k.double().repeat_interleave(2, 1), v.double().repeat_interleave(2, 1),
                        attn_mask=torch.ones(200, 300, dtype=torch.bool, device="cuda").tril(100))
                    self.assertLess((torch.tensor(run.want("o")) - want.cpu()).abs().max().item(), 1e-12)

    def test_strided_views(self):
        """Heads behind rows, and views of one packed tensor."""
        qkv = self.draw(torch.float16, 1, 130, 3, 4, 64)
        q, k, v = (tensor.transpose(1, 2) for tensor in qkv.unbind(2))
        run = attnscope.run(ROOT / "kernels/fp16_mma.cu", q, k, v, backend="gpu")
        self.assertTrue(run.clean, run.clean)
        self.assertTrue(torch.equal(torch.tensor(run["q"]), q.cpu().double()))

    def test_fp8(self):
        dtype = torch.float8_e4m3fn
        q, k, v = (self.draw(dtype, 1, 4, 256, 64) for _ in range(3))
        scales = {name: torch.rand(4, device="cuda") + 0.5 for name in ("q_scale", "k_scale", "v_scale")}
        run = attnscope.run(ROOT / "kernels/fp8_e4m3.cu", q, k, v, backend="gpu", **scales)
        self.assertTrue(run.clean, run.clean)
        self.assertEqual(run.report["problem"]["dtype"], "e4m3")
        values = [tensor.double() * scales[f"{name}_scale"].double().view(1, 4, 1, 1)
                  for name, tensor in zip("qkv", (q, k, v))]
        want = torch.nn.functional.scaled_dot_product_attention(*values)
        self.assertLess((torch.tensor(run.want("o")) - want.cpu()).abs().max().item(), 1e-10)

    def test_a_capture_is_replayed(self):
        from torch.utils.cpp_extension import load
        with tempfile.TemporaryDirectory() as folder:
            os.environ["TORCH_EXTENSIONS_DIR"] = folder
            extension = load("attention", [str(HERE / "bindings.cpp"), str(HERE / "attention.cu")],
                             extra_cuda_cflags=["-O3", "-DASC_MODE=1", f"-I{ROOT}/build/include"])
            q, k, v = self.draw(torch.float16, 1, 4, 150, 64), *(self.draw(torch.float16, 1, 2, 200, 64) for _ in "kv")
            trace = Path(folder) / "capture.safetensors"
            with attnscope.capture(q, k, v, path=trace, br=16, bc=32, threads=512, causal=True, conventions=CONVENTIONS) as c:
                c.result(*extension.forward(q, k, v, True, False, 1))
            self.assertFalse(attnscope.load(trace).clean)
            for kernel in ("v2b_scalar", "fp16_mma"):
                for backend in ("gpu", "cpu"):
                    with self.subTest(f"{kernel} {backend}"):
                        run = attnscope.run(ROOT / f"kernels/{kernel}.cu", inputs=trace, backend=backend)
                        self.assertTrue(run.clean, run.clean)
                        self.assertEqual(run.report["problem"]["causal"], "bottom-right")
                        self.assertEqual(run.report["inputs"]["hash"], attnscope.load(trace).report["inputs"]["hash"])


if __name__ == "__main__":
    tap.main()
