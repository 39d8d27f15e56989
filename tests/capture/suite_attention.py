"""A suite of pytest as a user of the extension writes it: `pytest suite_attention.py`. MISTAKE is one of attention.h."""

import os
from pathlib import Path

import attnscope
import pytest
import torch
from torch.utils.cpp_extension import load

HERE = Path(__file__).resolve().parent
INCLUDE = os.environ.get("ATTNSCOPE_INCLUDE", str(HERE.parents[1] / "build/include"))


@pytest.fixture(scope="module")
def extension():
    return load("attention", [str(HERE / "bindings.cpp"), str(HERE / "attention.cu")],
                extra_cuda_cflags=["-O3", "-DASC_MODE=1", f"-I{INCLUDE}"])


@pytest.mark.parametrize("q_len, kv_len", [(64, 64), (100, 173)])
def test_forward(extension, tmp_path, q_len, kv_len):
    q = torch.randn(1, 4, q_len, 64, device="cuda", dtype=torch.float16)
    k, v = (torch.randn(1, 2, kv_len, 64, device="cuda", dtype=torch.float16) for _ in "kv")
    with attnscope.capture(q, k, v, path=tmp_path / "forward.safetensors", br=16, bc=32, threads=512, causal=True,
                           conventions={"s_unit": "scaled", "m_unit": "scaled"}) as c:
        c.result(*extension.forward(q, k, v, True, False, int(os.environ.get("MISTAKE", "0"))))
    assert c.run.clean
