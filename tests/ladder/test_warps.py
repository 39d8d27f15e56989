#!/usr/bin/env python3
"""Kernels with specialised warps in the CPU executor: the bits of the same kernel without producers, for 1 and 2 of them."""

import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import tap  # noqa: E402
import warps  # noqa: E402


class Warps(warps.SameBits):
    def test_tails_and_groups(self):
        self.same_bits("fp16_mma", "1,4,130,200,64", "shape.kv_heads=2", "shape.causal=bottom-right", producers=(1, 2))

    def test_one_tile_and_less(self):
        """No tile comes after Q's place, or none at all: rows without a key."""
        self.same_bits("fp16_mma", "1,2,70,40,64", producers=(1, 2))
        self.same_bits("fp16_mma", "1,2,200,70,64", "shape.causal=bottom-right", producers=(1, 2))

    def test_wide_heads(self):
        self.same_bits("fp16_mma", "2,2,65,190,128", "shape.dtype=bf16", "shape.layout=BLHD", "shape.causal=top-left",
                       producers=(2,))

    def test_codes(self):
        self.same_bits("fp8_sim", "1,4,130,200,64", "shape.kv_heads=2", "shape.causal=bottom-right", producers=(1, 2))
        self.same_bits("fp8_sim", "1,1,200,70,64", "shape.causal=bottom-right", producers=(1,))

    def test_isolated(self):
        """What is fed to the consumers alone is met for by the consumers alone."""
        for kernel in warps.KERNELS:
            status, text = warps.attnscope("run", f"kernels/{kernel}.cu", "-D", "WS=1", "--backend", "cpu", "--shape",
                                           "1,1,100,150,64", "--isolate", "softmax")
            self.assertEqual((status, "CLEAN" in text), (0, True), text)
            self.assertNotIn("could not be fed", text)

    def test_choices(self):
        status, text = warps.attnscope("run", "kernels/fp16_mma.cu", "-D", "WS=3", "--backend", "cpu")
        self.assertEqual((status, "WS must be one of 0, 1, 2" in text), (3, True), text)


if __name__ == "__main__":
    tap.main()
