#!/usr/bin/env python3
"""Runs the kernel library on a GPU and compares every result, componentwise, with a float64 reference.

    device.py pack DIR [--pantile PATH] [--target cuda:sm_90a] [--only NAME] [--jobs N]
    device.py run DIR [--only NAME] [--quick] [--most N]

`pack` writes the source and the launch contract of every instance that a case of `cases.py` needs; it needs the command and
no GPU. `run` compiles the sources by NVRTC, launches them as the contract says and judges the results with the bounds of
`compare.py`; it needs CuPy, numpy, ml_dtypes and the GPU, and nothing of Pantile but this folder and DIR. Exit status:
0 right, 2 wrong, 1 could not run, 3 no GPU here (skipped).
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from bounds import judge, unit  # noqa: E402
from cases import cases  # noqa: E402
from files import NUMPY, widened  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "kernels"
ARITHMETIC = {
    "ceil_div": lambda a, b: -(-a // b),
    "floor_div": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "min": min,
    "max": max,
    "eq": lambda a, b: int(a == b),
    "ne": lambda a, b: int(a != b),
    "lt": lambda a, b: int(a < b),
    "le": lambda a, b: int(a <= b),
    "gt": lambda a, b: int(a > b),
    "ge": lambda a, b: int(a >= b),
    "and": lambda a, b: int(bool(a) and bool(b)),
    "or": lambda a, b: int(bool(a) or bool(b)),
}


def head(file, name):
    """Generics and parameters of an entry: [(name, kind)], [(name, type, extents)]."""
    text = (KERNELS / file).read_text()
    m = re.search(rf"^(?:kernel|op) {name}\b(?:<(.*?)>)?\((.*?)\)\s*(?:where|deterministic|\{{|\n)", text, re.M | re.S)
    generics = [g.split(":", 1) for g in (m.group(1) or "").split(",") if ":" in g]
    generics = [(n.replace("const", "").strip(), k.split("=")[0].strip()) for n, k in generics]
    params = re.findall(r"(\w+):\s*(?:in |out |inout )?\s*(\w+)(?:\(\w+\))?\[(.*?)\]", m.group(2))
    return generics, [(n, t, [e.strip() for e in e.split(",")]) for n, t, e in params]


def instance(case):
    """What `--param` must say of the case: what `run` finds out from the arguments."""
    generics, params = head(case.file, case.name)
    given = {k: str(v) for k, v in case.params.items()}
    shapes = {n: (d, a.shape) for n, (d, a) in case.inputs.items()}
    for name, ty, extents in params:
        dtype = shapes[name][0] if name in shapes else case.outputs.get(name)
        for generic, _ in generics:
            if generic in given:
                continue
            if ty == generic and dtype:
                given[generic] = dtype
            if name in shapes and generic in extents and len(extents) == len(shapes[name][1]):
                given[generic] = str(shapes[name][1][extents.index(generic)])
    return (case.file, case.name, tuple(sorted(given.items())))


def key(inst):
    return f"{inst[1]}-{sha256(repr(inst).encode()).hexdigest()[:12]}"


def emit(args, inst):
    """Writes source and contract; what is refused gives the first line of why."""
    file, name, params = inst
    for stage in ("source", "abi"):
        command = [str(args.pantile), "emit", f"{KERNELS / file}::{name}", "--target", args.target, "--stage", stage]
        for k, v in params:
            command += ["-p", f"{k}={v}"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            return (done.stderr.strip().splitlines() or ["?"])[0]
        (args.dir / f"{key(inst)}.{stage}").write_text(done.stdout)
    return None


def pack(args):
    args.dir.mkdir(parents=True, exist_ok=True)
    todo = sorted({instance(c) for c in cases(args.only)})
    with ThreadPoolExecutor(args.jobs) as pool:
        refused = {key(i): why for i, why in zip(todo, pool.map(lambda i: emit(args, i), todo)) if why}
    (args.dir / "refused.json").write_text(json.dumps(refused, indent=1))
    for name, why in sorted(refused.items()):
        print(f"refused: {name} {why}")
    print(f"{len(todo) - len(refused)} of {len(todo)} instances in {args.dir}")
    return 0


class Values:
    """Dims by slot, and scalar arguments by position."""

    def __init__(self, dims, scalars=()):
        self.dims, self.scalars = dims, scalars

    def of(self, e):
        """An expression of the contract."""
        (kind, x), = e.items()
        if kind == "const":
            return x
        if kind == "dim":
            return self.dims[x]
        if kind == "scalar":
            return self.scalars[x]
        if kind == "not":
            return int(not self.of(x))
        if kind == "select":
            return self.of(x[1] if self.of(x[0]) else x[2])
        op, a, b = x
        return ARITHMETIC[op](self.of(a), self.of(b))


# CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
MOST_SHARED = 8


def machine_code(cupy, source):
    """By NVRTC itself: CuPy's own modules flush subnormal numbers to zero, whatever one asks."""
    nvrtc = cupy.cuda.nvrtc
    program = nvrtc.createProgram(source, "kernel.cu", [], [])
    capability = cupy.cuda.Device().compute_capability
    suffix = "a" if int(capability) >= 90 else ""
    try:
        nvrtc.compileProgram(program, [f"--gpu-architecture=sm_{capability}{suffix}", "--std=c++17"])
    except nvrtc.NVRTCError:
        raise RuntimeError(nvrtc.getProgramLog(program)) from None
    return nvrtc.getCUBIN(program)


class Module:
    """The kernels of one instance, compiled."""

    def __init__(self, cupy, folder, name):
        self.abi = json.loads((folder / f"{name}.abi").read_text())
        source = (folder / f"{name}.source").read_text()
        module = cupy.cuda.function.Module()
        module.load(machine_code(cupy, source))
        heads = re.finditer(r"__launch_bounds__\((\d+).*?\)\n(\w+)\((.*?)\) \{(.*?)\n\}", source, re.S)
        # in the order of the contract; their names may differ from it where two are alike or the target reserves them
        self.kernels = []
        for m in heads:
            shared = max((int(n) for n in re.findall(r"^ +// \w+: .* bytes \d+ to (\d+)$", m[4], re.M)), default=0)
            function = module.get_function(m[2])
            if shared > 48 * 1024:
                cupy.cuda.driver.funcSetAttribute(function.ptr, MOST_SHARED, shared)
            names = [p.rsplit(" ", 1)[1] for p in m[3].split(", ")]
            self.kernels.append((function, int(m[1]), shared, names))


def launch(module, number, args):
    """`args` are device arrays and numbers, in the order of the kernel's parameters."""
    dims, kernel = {}, module.abi["kernels"][number]
    for p, a in zip(kernel["params"], args):
        for i, d in enumerate(p.get("tensor", {}).get("dims", [])):
            if "dim" in d:
                dims[d["dim"]] = a[1][i]
    values = Values(dims, args)
    blocks = int(np.prod([values.of(e) for e in kernel["grid"]], dtype=np.int64))
    function, threads, shared, names = module.kernels[number]
    given = []
    for p, a in zip(kernel["params"], args):
        given.append(np.uint64(a[0].data.ptr) if isinstance(a, tuple) else scalar(p, a))
    for name in names[len(args) :]:
        given.append(np.int64(dims[kernel["dims"].index(name)]))
    if blocks:
        function((blocks,), (threads,), tuple(given), shared_mem=shared)


def scalar(abi, x):
    """A number as the kernel takes it; types that CuPy does not know go as their bits."""
    if isinstance(x, np.ndarray):
        value = x
    else:
        kind = abi["scalar"]["ty"]
        value = np.asarray(x).astype(np.int64 if kind == "index" else NUMPY[kind["typed"]])
    if value.dtype.kind not in "biuf" or value.dtype.name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        value = value.view(f"u{value.dtype.itemsize}")
    return value[()]


class Run:
    """One case on the device."""

    def __init__(self, cupy, module, case):
        self.cupy, self.module, self.case = cupy, module, case
        self.spaces, self.outputs = {}, {}
        abi = module.abi
        dims = {abi["dims"].index(k): v for k, v in case.dims.items()}
        for t in (p["tensor"] for p in abi["params"] if "tensor" in p):
            if t["name"] in case.inputs:
                shape = case.inputs[t["name"]][1].shape
                dims.update({d["dim"]: n for d, n in zip(t["dims"], shape) if "dim" in d})
        self.values = Values(dims, [case.scalars.get(p["scalar"]["name"]) if "scalar" in p else None for p in abi["params"]])
        self.args = [self.argument(p) for p in abi["params"]]

    def argument(self, p):
        if "scalar" in p:
            return self.case.scalars[p["scalar"]["name"]]
        t = p["tensor"]
        name, shape = t["name"], tuple(self.values.of(d) for d in t["dims"])
        if name in self.case.inputs:
            dtype, array = self.case.inputs[name]
            memory = self.memory(packed(array, dtype).tobytes())
        else:
            # what is never written must not look right
            memory = self.memory(b"\xa5" * size(shape, self.case.outputs[name]))
        if name in self.case.outputs:
            self.outputs[name] = (memory, shape)
        return memory, shape

    def memory(self, data):
        # some bytes more, so that memory of no elements has a place
        return self.cupy.asarray(np.frombuffer(data + bytes(64), np.uint8))

    def steps(self, steps):
        for step in steps:
            (kind, s), = step.items()
            if kind == "workspace":
                shape = tuple(self.values.of(d) for d in s["shape"])
                fill = b"\0" if s["zeroed"] else b"\xa5"
                self.spaces[s["slot"]] = (self.memory(fill * size(shape, s["dtype"])), shape)
            elif kind == "launch":
                launch(self.module, s["kernel"], [self.handed(a) for a in s["args"]])
            elif kind == "if":
                self.steps(s["then"] if self.values.of(s["cond"]) else s["other"])
            else:
                for i in range(self.values.of(s["lo"]), self.values.of(s["hi"])):
                    self.values.dims[s["var"]] = i
                    self.steps(s["body"])

    def handed(self, arg):
        (kind, a), = arg.items()
        return {
            "param": lambda: self.args[a],
            "workspace": lambda: self.spaces[a],
            "int": lambda: self.values.of(a),
            "bits": lambda: np.frombuffer(a[1].to_bytes(8, "little"), NUMPY[a[0]])[:1].reshape(()),
        }[kind]()

    def worst(self):
        """Worst ratio of error to allowance over all outputs, and where it is."""
        self.steps(self.module.abi["steps"])
        self.cupy.cuda.Device().synchronize()
        expected = self.case.expected()
        worst = (0.0, "")
        for name, (memory, shape) in self.outputs.items():
            dtype = self.case.outputs[name]
            got = np.frombuffer(self.cupy.asnumpy(memory).tobytes()[: size(shape, dtype)], NUMPY[dtype]).reshape(shape)
            want, error = expected[name]
            ratio, where = judge(widened(got, dtype), want, error(unit(self.case.acc)), dtype)
            worst = max(worst, (ratio, f"{name} {where}"), key=lambda w: w[0])
        return worst


def packed(array, dtype):
    if dtype in ("u4", "i4"):
        low, high = array[..., 0::2].astype(np.uint8) & 15, array[..., 1::2].astype(np.uint8) & 15
        return low | (high << 4)
    return np.ascontiguousarray(array)


def size(shape, dtype):
    """Bytes of a tensor."""
    return int(np.prod(shape, dtype=np.int64)) * np.dtype(NUMPY[dtype]).itemsize


def run(args):
    try:
        import cupy

        device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    except Exception as e:
        print(f"skipped: no GPU here ({e})")
        return 3
    np.seterr(all="ignore")
    refused = json.loads((args.dir / "refused.json").read_text())
    counts, worst, shown, modules = Counter(), {}, 0, {}
    todo = [(c, key(instance(c))) for c in cases(args.only)]
    names = sorted({k for _, k in todo} - set(refused))

    def compiled(name):
        try:
            return Module(cupy, args.dir, name)
        except Exception as e:
            return e

    with ThreadPoolExecutor(args.jobs) as pool:
        modules = dict(zip(names, pool.map(compiled, names)))
    for case, name in todo:
        if name in refused:
            counts["refused"] += 1
            continue
        try:
            if isinstance(modules[name], Exception):
                raise modules[name]
            ratio, where = Run(cupy, modules[name], case).worst()
            what = "right" if ratio <= 1 else "wrong"
        except Exception as e:
            ratio, where, what = float("inf"), f"{type(e).__name__}: {str(e)[:300]}", "failed"
        counts[what] += 1
        worst[case.name] = max(worst.get(case.name, 0.0), ratio)
        if what != "right" and shown < args.most:
            shown += 1
            print(f"{what}: {case.label()}\n  {where}", flush=True)
    for name, ratio in sorted(worst.items()):
        print(f"{name:24} worst error / allowance {ratio:.3f}")
    print(f"{device}: " + ", ".join(f"{n} {k}" for k, n in sorted(counts.items())) + f" of {sum(counts.values())}")
    return 1 if counts["failed"] else 2 if counts["wrong"] else 0


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("what", choices=["pack", "run"])
    args.add_argument("dir", type=Path)
    args.add_argument("--pantile", type=Path, default=ROOT / "target" / "release" / "pantile")
    args.add_argument("--target", default="cuda:sm_90a")
    args.add_argument("--only", default="", help="a group (gemv, rows, …) or part of a kernel's name")
    args.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    args.add_argument("--most", type=int, default=20, help="how many faults to print")
    args = args.parse_args()
    return pack(args) if args.what == "pack" else run(args)


if __name__ == "__main__":
    sys.exit(main())
