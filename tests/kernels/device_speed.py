#!/usr/bin/env python3
"""Times kernels of the library on a GPU beside PyTorch's: one run, in turn, random normal data, caches flushed, medians.

    device_speed.py DIR [--runs N]

DIR is what `device.py pack` wrote. A ratio is PyTorch's time over ours. Needs PyTorch, CuPy and what `device.py` needs.
"""

import argparse
import statistics
import sys
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parent))

from device import Module, Values, instance, key, launch  # noqa: E402

TYPES = {"f16": "float16", "f32": "float32", "i32": "int32"}


def rows(name, shape, theirs, dtype="f16", **more):
    return SimpleNamespace(file="rows.tile", name=name, inputs={"X": (dtype, shape)}, theirs=theirs, **more)


def kernels(torch):
    """Entry, inputs, outputs, scalars, PyTorch's way."""
    f = torch.nn.functional
    n, k = 16384, 16384
    gemv = {"x": ("f16", (k,)), "B": ("f16", (n, k))}
    for name in ("gemv_allreduce", "gemv_warp", "gemv_xcache", "gemv_block", "gemv_splitk"):
        yield SimpleNamespace(file="gemv.tile", name=name, inputs=gemv, outputs={"y": ("f16", (n,))}, theirs=lambda a: torch.mv(a["B"], a["x"]))
    out = {"Y": ("f16", (16384, 1024))}
    yield rows("softmax", (16384, 1024), lambda a: torch.softmax(a["X"], -1), outputs=out)
    yield rows("softmax", (4096, 8192), lambda a: torch.softmax(a["X"], -1), outputs={"Y": ("f16", (4096, 8192))})
    norm = rows("layernorm", (16384, 1024), lambda a: f.layer_norm(a["X"], (1024,), a["G"], a["B"], 1e-5), outputs=out, scalars={"eps": 1e-5})
    norm.inputs |= {"G": ("f16", (1024,)), "B": ("f16", (1024,))}
    yield norm
    norm = rows("rmsnorm", (8192, 4096), lambda a: f.rms_norm(a["X"], (4096,), a["G"], 1e-5), outputs={"Y": ("f16", (8192, 4096))}, scalars={"eps": 1e-5})
    norm.inputs |= {"G": ("f16", (4096,))}
    yield norm
    yield rows("variance", (8192, 4096), lambda a: a["X"].var(-1), "f32", outputs={"v": ("f32", (8192,))}, scalars={"ddof": 1.0})
    yield rows("argmax", (8192, 4096), lambda a: a["X"].argmax(1), outputs={"I": ("i32", (8192,))})
    yield rows("cumsum", (4096, 4096), lambda a: a["X"].cumsum(1), "f32", outputs={"Y": ("f32", (4096, 4096))})
    columns = {"X": ("f32", (8192, 8192))}
    yield SimpleNamespace(file="columns.tile", name="reduce_cols", inputs=columns, outputs={"y": ("f32", (8192,))}, theirs=lambda a: a["X"].sum(0))
    square = {"X": ("f16", (8192, 8192))}
    yield SimpleNamespace(file="transpose.tile", name="transpose", inputs=square, outputs={"Y": ("f16", (8192, 8192))}, theirs=lambda a: a["X"].t().contiguous())
    for name, dtype in (("gemm_register", "f32"), ("gemm", "f16")):
        ab = {"A": (dtype, (4096, 4096)), "B": (dtype, (4096, 4096))}
        yield SimpleNamespace(file="gemm.tile", name=name, inputs=ab, outputs={"C": (dtype, (4096, 4096))}, theirs=lambda a: a["A"] @ a["B"], flops=2 * 4096**3)


def median(torch, runs, run):
    flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    for _ in range(3):
        run()
    times = []
    for _ in range(runs):
        flush.zero_()
        start, end = torch.cuda.Event(True), torch.cuda.Event(True)
        start.record()
        run()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times)


def ours(cupy, module, spec, tensors):
    """Launches the steps of the contract; what the device holds is handed over by its address."""
    abi = module.abi
    handed, dims = [], {}
    for p in abi["params"]:
        if "scalar" in p:
            handed.append(spec.scalars[p["scalar"]["name"]])
            continue
        t = tensors[p["tensor"]["name"]]
        dims.update({d["dim"]: n for d, n in zip(p["tensor"]["dims"], t.shape) if "dim" in d})
        handed.append((SimpleNamespace(data=SimpleNamespace(ptr=t.data_ptr())), tuple(t.shape)))
    values = Values(dims, handed)

    def steps(todo):
        for step in todo:
            (kind, s), = step.items()
            if kind == "if":
                steps(s["then"] if values.of(s["cond"]) else s["other"])
            else:
                launch(module, s["kernel"], [handed[a["param"]] for a in s["args"]])

    return lambda: steps(abi["steps"])


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("dir", type=Path)
    args.add_argument("--runs", type=int, default=30)
    args = args.parse_args()
    try:
        import cupy
        import torch

        device = torch.cuda.get_device_name()
    except Exception as e:
        print(f"skipped: no GPU here ({e})")
        return 3
    torch.backends.cuda.matmul.allow_tf32 = False
    print(f"{device}, PyTorch {torch.__version__}, medians of {args.runs}")
    print(f"{'kernel':16} {'first input':14} {'ours':>10} {'PyTorch':>10} {'ratio':>6}   rate")
    with cupy.cuda.Stream.from_external(torch.cuda.current_stream()):
        for spec in kernels(torch):
            spec.params, spec.scalars = getattr(spec, "params", {}), getattr(spec, "scalars", {})
            shown = SimpleNamespace(
                file=spec.file,
                name=spec.name,
                params=spec.params,
                inputs={n: (d, SimpleNamespace(shape=s)) for n, (d, s) in spec.inputs.items()},
                outputs={n: d for n, (d, _) in spec.outputs.items()},
            )
            module = Module(cupy, args.dir, key(instance(shown)))
            make = lambda d, s: torch.randn(s, device="cuda").to(getattr(torch, TYPES[d]))  # noqa: E731
            tensors = {n: make(d, s) for n, (d, s) in {**spec.inputs, **spec.outputs}.items()}
            mine = median(torch, args.runs, ours(cupy, module, spec, tensors))
            theirs = median(torch, args.runs, lambda s=spec, t=tensors: s.theirs(t))
            moved = sum(t.numel() * t.element_size() for t in tensors.values())
            rate = f"{spec.flops / mine / 1e9:.1f} TFLOP/s" if hasattr(spec, "flops") else f"{moved / mine / 1e6:.0f} GB/s"
            shape = "x".join(map(str, next(iter(spec.inputs.values()))[1]))
            print(f"{spec.name:16} {shape:14} {mine * 1e3:8.1f}us {theirs * 1e3:8.1f}us {theirs / mine:6.2f}   {rate}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
