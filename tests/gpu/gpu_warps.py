#!/usr/bin/env python3
"""Kernels with specialised warps on the GPU: the bits of the same kernel without producers, for 1 and 2 of them, and the same
ones in every run."""

import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import tap  # noqa: E402
import warps  # noqa: E402

RUNS = 10
SHAPES = {  # tails of q and kv, groups, both masks, rows without a key, one tile, both head dims and types
    "square": ("1,8,512,64",),
    "long": ("2,8,2048,64", "shape.causal=bottom-right", "capture.q_tiles=0,7,31"),
    "wide": ("2,8,2048,128", "capture.q_tiles=0,7,31"),
    "tails": ("1,4,130,200,64", "shape.kv_heads=2", "shape.causal=bottom-right"),
    "tails-wide": ("2,2,65,190,128", "shape.dtype=bf16", "shape.layout=BLHD", "shape.causal=top-left"),
    "no-key": ("1,2,200,70,64", "shape.causal=bottom-right"),
    "one-tile": ("1,2,70,40,128", "shape.dtype=bf16"),
}


class Warps(warps.SameBits):
    backend = "gpu"

    def test_runs_have_the_same_bits(self):
        for kernel in warps.KERNELS:
            with tempfile.TemporaryDirectory() as folder:
                first = self.record(folder, kernel, "1,8,512,64", (), "-D", "WS=2")
                for _ in range(RUNS - 1):
                    path = self.record(folder, kernel, "1,8,512,64", (), "-D", "WS=2")
                    status, text = warps.attnscope("diff", "--exact", first, path)
                    self.assertEqual(status, 0, text)


def case_of(kernel, shape, keys):
    return lambda self: self.same_bits(kernel, shape, *keys, producers=(1, 2))


for each in warps.KERNELS:
    for name, (size, *settings) in SHAPES.items():
        if not each.startswith("fp8_") or "shape.dtype=bf16" not in settings:  # codes are made of f16
            setattr(Warps, f"test_{each}_{name}", case_of(each, size, settings))

if __name__ == "__main__":
    tap.main()
