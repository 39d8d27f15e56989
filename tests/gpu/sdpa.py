#!/usr/bin/env python3
"""How long PyTorch's scaled_dot_product_attention takes, by backend: what `attnscope bench --all` is set beside.

Median and min of replayed CUDA graphs of ten launches each, f16, as attnscope bench times its graphs. A line of JSON
for each shape and backend; SKIP on stderr and status 77 without PyTorch or a CUDA device.

usage: sdpa.py [B,H,L,D[,causal]...]
"""

import json
import statistics
import sys

LAUNCHES, REPLAYS, WARM_UP = 10, 50, 3
DEFAULT = ("1,8,512,64", "1,8,512,64,causal", "2,8,2048,64", "2,8,2048,128", "2,8,2048,128,causal")


def skip(why):
    print(f"SKIP: {why}", file=sys.stderr)
    return 77


def parse(text):
    words = text.split(",")
    causal = words[-1] == "causal"
    shape = [int(word) for word in (words[:-1] if causal else words)]
    if len(shape) != 4:
        sys.exit(f"sdpa.py: expected B,H,L,D or B,H,L,D,causal, found '{text}'")
    return shape, causal


def time_graph(torch, launch):
    """Seconds of one launch, of each replay."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(WARM_UP):
            launch()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(LAUNCHES):
            launch()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    seconds = []
    for i in range(WARM_UP + REPLAYS):
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        if i >= WARM_UP:
            seconds.append(1e-3 * begin.elapsed_time(end) / LAUNCHES)
    return seconds


def measure(torch, attention, backend, text):
    (batch, heads, length, dim), causal = parse(text)
    torch.manual_seed(0)
    q, k, v = (torch.randn(batch, heads, length, dim, device="cuda", dtype=torch.float16) for _ in range(3))
    scaled_dot_product_attention = torch.nn.functional.scaled_dot_product_attention
    with attention.sdpa_kernel(backend), torch.no_grad():
        seconds = time_graph(torch, lambda: scaled_dot_product_attention(q, k, v, is_causal=causal))
        got = scaled_dot_product_attention(q, k, v, is_causal=causal)
    with attention.sdpa_kernel(attention.SDPBackend.MATH), torch.no_grad():
        want = scaled_dot_product_attention(q.double(), k.double(), v.double(), is_causal=causal)
    return {"median": statistics.median(seconds), "min": min(seconds), "n": len(seconds),
            "largest_error": (got.double() - want).abs().max().item()}


def main():
    try:
        import torch
        from torch.nn import attention
    except ImportError:
        return skip("no PyTorch")
    if not torch.cuda.is_available():
        return skip("PyTorch has no CUDA device")
    backends = {"flash": attention.SDPBackend.FLASH_ATTENTION, "cudnn": attention.SDPBackend.CUDNN_ATTENTION,
                "efficient": attention.SDPBackend.EFFICIENT_ATTENTION}
    about = {"torch": torch.__version__, "cuda": torch.version.cuda, "device": torch.cuda.get_device_name()}
    for text in sys.argv[1:] or DEFAULT:
        for name, backend in backends.items():
            line = {"shape": text, "backend": name, **about}
            try:
                line.update(measure(torch, attention, backend, text))
            except RuntimeError as error:  # this backend does not take the shape, or is not built in
                line["error"] = str(error).splitlines()[0]
            print(json.dumps(line), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
