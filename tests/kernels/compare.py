#!/usr/bin/env python3
"""Runs the kernel library through `pantile run` and compares every result, componentwise, with a float64 reference.

    compare.py [--pantile PATH] [--target interp --target cpu] [--quick] [--only NAME] [--keep DIR] [--list]

Inputs go to `.npy` files, outputs come from them; nothing of Pantile is imported. `--quick` runs, of each kernel and set of
types, the one case that the seed picks (the commit's name, or `--seed`). Exit status: 0 right, 2 wrong, 1 could not run, or
a kernel of the library has no case. Needs numpy and ml_dtypes.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from bounds import judge, unit  # noqa: E402
from cases import cases  # noqa: E402
from files import load, save, widened  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "kernels"
# they hold functions and plain references, no kernel of the library
NOT_KERNELS = ("std.tile", "ref.tile")


class Failed(Exception):
    pass


def run_kernel(pantile, target, file, name, inputs, outputs, folder, params=(), dims=(), scalars=()):
    """Runs `file::name`; `inputs` maps names to (dtype, array), `outputs` names to dtypes; returns arrays by name."""
    command = [str(pantile), "run", f"{KERNELS / file}::{name}", "--target", target]
    for key, number in dict(params).items():
        command += ["--param", f"{key}={number}"]
    for key, number in dict(dims).items():
        command += ["--dim", f"{key}={number}"]
    for key, (dtype, array) in inputs.items():
        save(folder / f"{key}.in.npy", array, dtype)
        where = f"{key}={folder / f'{key}.in.npy'}"
        # a tensor that is read and written: where from, where to
        command.append(f"{where},@{folder / f'{key}.out.npy'}" if key in outputs else where)
    command += [f"{key}={folder / f'{key}.out.npy'}".replace("=", "=@", 1) for key in outputs if key not in inputs]
    command += [f"{key}={number!r}" for key, number in dict(scalars).items()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        shown = " ".join(command)
        raise Failed(f"status {done.returncode}\n  {shown}\n{(done.stderr or done.stdout).strip()}")
    return {key: load(folder / f"{key}.out.npy", dtype) for key, dtype in outputs.items()}


def run_case(pantile, target, case, folder):
    """Worst ratio of error to allowance over all outputs, and where it is."""
    got = run_kernel(
        pantile, target, case.file, case.name, case.inputs, case.outputs, folder, case.params, case.dims, case.scalars
    )
    expected = case.expected()
    worst = (0.0, "")
    for name, dtype in case.outputs.items():
        value, error = expected[name]
        ratio, where = judge(widened(got[name], dtype), value, error(unit(case.acc)), dtype)
        worst = max(worst, (ratio, f"{name} {where}"), key=lambda w: w[0])
    return worst


def outcome(pantile, target, case, keep):
    """(right | wrong | failed, ratio, where, seconds)"""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        try:
            ratio, where = run_case(pantile, target, case, keep or Path(scratch))
            what = "right" if ratio <= 1 else "wrong"
        except (Failed, subprocess.TimeoutExpired, FileNotFoundError) as e:
            ratio, where, what = float("inf"), str(e), "failed"
    return what, ratio, where, time.monotonic() - start


def without_case(named):
    """Kernels and ops of the library that no case names and that no op with a case launches."""
    missing = []
    for file in sorted(KERNELS.glob("*.tile")):
        if file.name in NOT_KERNELS:
            continue
        text = file.read_text()
        entries = re.split(r"^(?=(?:kernel|op|test|fn) )", text, flags=re.M)
        heads = [(m.group(1), m.group(2), e) for e in entries if (m := re.match(r"(kernel|op) (\w+)", e))]
        reached = {n for kind, name, body in heads if kind == "op" and name in named for n in re.findall(r"launch (\w+)", body)}
        missing += [f"{file.name}::{name}" for _, name, _ in heads if name not in named and name not in reached]
    return missing


def head():
    """The commit's name, so that each commit runs another selection; a constant outside a repository."""
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "0"


def selection(todo, seed):
    """Of each kernel and set of types one case."""
    best = {}
    for case in todo:
        rank = sha256(f"{seed} {case.label()}".encode()).digest()
        key = (case.name, *sorted(case.types()))
        best[key] = min(best.get(key, (rank, case)), (rank, case), key=lambda b: b[0])
    return [case for _, case in best.values()]


def arguments():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--pantile", type=Path, default=ROOT / "target" / "debug" / "pantile")
    args.add_argument("--target", action="append", help="interp, cpu (both by default)")
    args.add_argument("--only", default="", help="a group (gemv, rows, …) or part of a kernel's name")
    args.add_argument("--quick", action="store_true", help="one case for each kernel and set of types")
    args.add_argument("--seed", help="what `--quick` picks by, instead of the commit")
    args.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="cases at a time")
    args.add_argument("--keep", type=Path, help="leave the arrays of the last case here; one case at a time")
    args.add_argument("--list", action="store_true", help="print the cases and stop")
    args.add_argument("--times", type=Path, help="write seconds, target and case here, slowest first")
    args.add_argument("--most", type=int, default=20, help="how many faults to print")
    return args.parse_args()


def main():
    args = arguments()
    np.seterr(all="ignore")
    missing = without_case({c.name for c in cases()})
    for name in missing:
        print(f"no case for {name}")
    todo = list(cases(args.only))
    if args.quick:
        seed = args.seed or head()
        print(f"one of each kernel and set of types, seed {seed}")
        todo = selection(todo, seed)
    if args.list:
        print(*(c.label() for c in todo), sep="\n")
        return 0
    if not todo:
        print(f"no case has `{args.only}` in its name", file=sys.stderr)
        return 1
    if args.keep:
        args.keep.mkdir(parents=True, exist_ok=True)
    counts, shown, worst, times = Counter(), 0, {}, []
    for target in args.target or ["interp", "cpu"]:
        with ThreadPoolExecutor(1 if args.keep else args.jobs) as pool:
            results = pool.map(lambda c, t=target: outcome(args.pantile, t, c, args.keep), todo)
            for case, (what, ratio, where, seconds) in zip(todo, results):
                counts[what] += 1
                key = (target, case.name)
                worst[key] = max(worst.get(key, 0.0), ratio)
                times.append((seconds, target, case))
                if what != "right" and shown < args.most:
                    shown += 1
                    print(f"{what}: {target} {case.label()}\n  {where}", flush=True)
    for (target, name), ratio in sorted(worst.items()):
        print(f"{target:7} {name:24} worst error / allowance {ratio:.3f}")
    if args.times:
        times.sort(key=lambda t: -t[0])
        args.times.write_text("".join(f"{s:8.3f} {t} {c.label()}\n" for s, t, c in times))
    print(", ".join(f"{n} {k}" for k, n in sorted(counts.items())) + f" of {sum(counts.values())}")
    return 1 if counts["failed"] or missing else 2 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
