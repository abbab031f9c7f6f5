#!/usr/bin/env python3
"""Runs the kernel library through `pantile run` and compares every result, componentwise, with a float64 reference.

    compare.py [--pantile PATH] [--target interp --target cpu] [--only NAME] [--keep DIR] [--list]

Inputs go to `.npy` files, outputs come from them; nothing of Pantile is imported. Exit status: 0 right, 2 wrong, 1 could not run.
Needs numpy and ml_dtypes.
"""

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from bounds import judge, unit  # noqa: E402
from cases import cases  # noqa: E402
from files import load, save, widened  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]


class Failed(Exception):
    pass


def run_kernel(pantile, target, file, name, inputs, outputs, folder, params=(), dims=(), scalars=()):
    """Runs `file::name`; `inputs` maps names to (dtype, array), `outputs` names to dtypes; returns arrays by name."""
    command = [str(pantile), "run", f"{ROOT / 'kernels' / file}::{name}", "--target", target]
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


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--pantile", type=Path, default=ROOT / "target" / "debug" / "pantile")
    args.add_argument("--target", action="append", help="interp, cpu (both by default)")
    args.add_argument("--only", default="", help="a group (gemv, rows, …) or part of a kernel's name")
    args.add_argument("--keep", type=Path, help="leave the arrays of the last case here")
    args.add_argument("--list", action="store_true", help="print the cases and stop")
    args.add_argument("--most", type=int, default=20, help="how many faults to print")
    args = args.parse_args()
    todo = list(cases(args.only))
    if args.list:
        print(*(c.label() for c in todo), sep="\n")
        return 0
    if not todo:
        print(f"no case has `{args.only}` in its name", file=sys.stderr)
        return 1
    counts, shown, worst = Counter(), 0, {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for target in args.target or ["interp", "cpu"]:
            for case in todo:
                try:
                    ratio, where = run_case(args.pantile, target, case, folder)
                    outcome = "right" if ratio <= 1 else "wrong"
                except (Failed, subprocess.TimeoutExpired, FileNotFoundError) as e:
                    ratio, where, outcome = float("inf"), str(e), "failed"
                counts[outcome] += 1
                key = (target, case.name)
                worst[key] = max(worst.get(key, 0.0), ratio)
                if outcome != "right" and shown < args.most:
                    shown += 1
                    print(f"{outcome}: {target} {case.label()}\n  {where}")
    for (target, name), ratio in sorted(worst.items()):
        print(f"{target:7} {name:24} worst error / allowance {ratio:.3f}")
    print(", ".join(f"{n} {k}" for k, n in sorted(counts.items())))
    return 1 if counts["failed"] else 2 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
