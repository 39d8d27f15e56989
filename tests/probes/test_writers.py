#!/usr/bin/env python3
"""Who recorded an element: of a kernel whose fragments are those of mma.m16n8, held against the PTX ISA."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python")]
import tap  # noqa: E402
from in_folder import InFolder  # noqa: E402
from attnscope.safetensors import File, count  # noqa: E402

KERNEL = ROOT / "kernels/fp16_mma.cu"
SHARED = 0xFFF
LINE = next(i for i, line in enumerate(KERNEL.read_text().splitlines(), 1) if "ASC_RECORD(s," in line)


class Writers(InFolder):
    @staticmethod
    def all_of(trace, name):
        return trace.values(name, 0, count(trace.tensors[name]["shape"]))

    def test_fragments(self):
        status, out, err = self.command("run", KERNEL, "--shape", "1,2,100,64", "--set", "shape.kv_heads=1", "-o", "t.safetensors")
        self.assertEqual(status, 0, out + err)
        trace = File(self.folder / "t.safetensors")
        s = trace.tensors["writer.s"]["shape"]
        self.assertEqual(s[0], 1)  # all tiles alike
        rows, cols = s[1:]
        planes = self.all_of(trace, "writer.s")
        for row in range(rows):
            for col in range(cols):
                thread = row // 16 * 32 + row % 8 * 4 + col % 8 // 2
                number = col // 8 * 4 + row % 16 // 8 * 2 + col % 2
                self.assertEqual(planes[row * cols + col], (number + 1) << 20 | (LINE & 1023) << 10 | thread, (row, col))
        self.assertEqual({value >> 20 & 0xFFF for value in self.all_of(trace, "writer.q")}, {SHARED})
        # Each (head, q tile) is a block's.
        blocks = self.all_of(trace, "writer_of.o")
        heads = {tuple(blocks[4 * i + 1:4 * i + 4]) for i in range(len(blocks) // 4)}
        self.assertEqual(len(heads), len(blocks) // 4)


if __name__ == "__main__":
    tap.main()
