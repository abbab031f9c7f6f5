#!/usr/bin/env python3
"""The library's kernels on inputs on which careless arithmetic fails, against float64 with componentwise bounds.

    check.py [--pantile PATH] [--target interp --target cpu] [--only NAME]

Large means with small variances, logits of ±10⁴, rows of -inf and rows with some, numbers below the normal range, long sums,
cancellation, overflow of the result's type. The bounds are those of `tests/kernels/bounds.py`. Exit status: 0, 2 wrong, 1 not run.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "kernels"))

from bounds import ACC, FLOATS, judge, unit  # noqa: E402
from cases import FLOAT, SHORT, Case, normal, rng, uniform, value  # noqa: E402
from compare import ROOT, Failed, run_kernel  # noqa: E402
from files import rounded, widened  # noqa: E402


def array(values, dtype):
    return dtype, rounded(np.asarray(values, dtype=np.float64), dtype)


def large_means():
    """Standard deviation 2^-6 of the mean's ulp spacing and more: the mean must be found before the squares."""
    for dtype, mean, sd in [("f32", 1e4, 1e-1), ("f32", 1e3, 1.0), ("f64", 1e8, 1e-3), ("f16", 1000, 3), ("bf16", 100, 3)]:
        for c in (33, 1000, 1152, 20000):
            x = normal((3, c), dtype, 5, sd, mean)
            g, b = normal((c,), dtype, 6), normal((c,), dtype, 7)
            acc = ACC[dtype]
            eps = {"eps": value(1e-5, acc)}
            yield Case("rows.tile", "layernorm", {"X": x, "G": g, "B": b}, {"Y": dtype}, eps, acc=acc)
            yield Case("rows.tile", "layernorm_streamed", {"X": x, "G": g, "B": b}, {"Y": dtype}, eps, {"BC": 1024}, acc=acc)
            if dtype != "f64":
                yield Case("rows.tile", "variance", {"X": x}, {"v": dtype}, {"ddof": 1.0})
            if c <= 1152:
                yield Case("rows.tile", "variance_rows", {"X": x}, {"v": dtype}, {"ddof": 0.0}, {"NB": 2304}, acc=acc)


def huge_logits():
    for dtype in FLOAT:
        for c in (1, 33, 1000, 5000):
            x = uniform((3, c), dtype, 5, -1e4, 1e4)
            acc = ACC[dtype]
            yield Case("rows.tile", "softmax", {"X": x}, {"Y": dtype}, acc=acc)
            yield Case("rows.tile", "softmax_streamed", {"X": x}, {"Y": dtype}, params={"BC": 512}, acc=acc)
            yield Case("rows.tile", "logsumexp", {"X": x}, {"y": dtype}, acc=acc)
            yield Case("rows.tile", "logsumexp_streamed", {"X": x}, {"y": dtype}, params={"BC": 512}, acc=acc)
    for dtype in SHORT:
        # scores of about ±10⁴: nearly one key takes all
        q, k, v = normal((1, 2, 33, 64), dtype, 1, 40), normal((1, 2, 70, 64), dtype, 2, 40), normal((1, 2, 70, 64), dtype, 3)
        for causal in (False, True):
            extra = {"CAUSAL": causal, "u_value": unit(dtype)}
            yield Case("attention.tile", "attention", {"Q": q, "K": k, "V": v}, {"O": dtype}, {"scale": 1.0}, {"CAUSAL": str(causal).lower()}, extra=extra)


def minus_infinity():
    for dtype in FLOAT:
        acc = ACC[dtype]
        for c in (1, 33, 1000, 5000):
            some = rng(c).standard_normal((4, c))
            some[0] = -np.inf
            some[1, : c // 2] = -np.inf
            some[2, c // 2 :] = -np.inf
            x = array(some, dtype)
            yield Case("rows.tile", "logsumexp", {"X": x}, {"y": dtype}, acc=acc)
            yield Case("rows.tile", "logsumexp_streamed", {"X": x}, {"y": dtype}, params={"BC": 512}, acc=acc)
            yield Case("rows.tile", "softmax", {"X": x}, {"Y": dtype}, acc=acc)
            yield Case("rows.tile", "softmax_streamed", {"X": x}, {"Y": dtype}, params={"BC": 512}, acc=acc)
            yield Case("rows.tile", "max_rows", {"X": x}, {"y": dtype})
            yield Case("scan.tile", "cummax", {"X": x}, {"Y": dtype})
            if dtype != "f64":
                yield Case("rows.tile", "argmax", {"X": x}, {"I": "i32"})


def tiny_numbers():
    """Below the normal range: gradual underflow, never a flush to zero."""
    for dtype in FLOAT:
        step = FLOATS[dtype][1]
        small = rng(3).integers(-300, 300, (5, 77)) * step
        x = array(small, dtype)
        flat, other = (dtype, x[1].reshape(-1)), array(np.roll(small, 1).reshape(-1), dtype)
        acc = ACC[dtype]
        yield Case("elementwise.tile", "add", {"X": flat, "Y": other}, {"Z": dtype}, acc=dtype)
        yield Case("elementwise.tile", "scale", {"X": flat}, {"Y": dtype}, {"s": 0.5}, acc=dtype)
        yield Case("elementwise.tile", "absolute", {"X": flat}, {"Y": dtype})
        yield Case("rows.tile", "reduce_rows", {"X": x}, {"y": dtype}, acc=acc)
        yield Case("rows.tile", "max_rows", {"X": x}, {"y": dtype})
        yield Case("transpose.tile", "transpose", {"X": x}, {"Y": dtype})
        ones = array(np.ones((77, 3)), dtype)
        yield Case("gemm.tile", "gemm", {"A": x, "B": ones}, {"C": dtype}, acc=acc)
        yield Case("gemv.tile", "gemv_allreduce", {"x": array(np.ones(77), dtype), "B": x}, {"y": dtype}, acc=acc)
        if dtype != "f64":
            yield Case("elementwise.tile", "cast", {"X": flat}, {"Y": "f64"}, params={"U": "f64"})
    # results below the range: e^x far left, squares of small numbers
    for dtype in FLOAT:
        # gates far left and far right, where e^x leaves the range on either side; f64's own ends as well
        for lo, hi in [(-110, -80), (-20, 20), (80, 110)] + ([(-750, -690), (690, 750)] if dtype == "f64" else []):
            x = uniform((100,), dtype, 1, lo, hi)
            for name in ("sigmoid", "silu", "gelu_tanh"):
                case = {"params": {"E": name}, "acc": ACC[dtype], "extra": {"activation": name}}
                yield Case("elementwise.tile", "map", {"X": x}, {"Y": dtype}, **case)
            yield Case("elementwise.tile", "silu_mul", {"G": x, "U": uniform((100,), dtype, 2)}, {"Y": dtype}, acc=ACC[dtype])
    ends = array([-np.inf, -1e30, -1e4, -0.0, 0.0, 1e4, 1e30, np.inf, np.nan], "f32")
    yield Case("elementwise.tile", "map", {"X": ends}, {"Y": "f32"}, params={"E": "sigmoid"}, extra={"activation": "sigmoid"})
    yield Case("rows.tile", "product", {"X": uniform((4, 30), "f32", 1, 0.02, 0.08)}, {"y": "f32"})


def long_sums():
    for dtype in FLOAT:
        acc = ACC[dtype]
        for k in (10000, 70001):
            b, x = normal((3, k), dtype, 1), normal((k,), dtype, 2)
            positive = uniform((3, k), dtype, 3)
            # pairs that cancel: the sum is small, its terms are not
            half = rng(k).standard_normal((3, k // 2)) * 100
            cancelling = array(np.concatenate([half, -half[:, ::-1]], axis=1), dtype)
            for name in ("gemv_allreduce", "gemv_block", "gemv_xcache", "gemv_reducer"):
                yield Case("gemv.tile", name, {"x": x, "B": b}, {"y": dtype}, acc=acc)
            yield Case("rows.tile", "reduce_rows", {"X": positive}, {"y": dtype}, acc=acc)
            yield Case("rows.tile", "reduce_rows", {"X": cancelling}, {"y": dtype}, acc=acc)
            yield Case("columns.tile", "reduce_all", {"X": (dtype, positive[1].reshape(-1))}, {"y": dtype}, acc=acc)
            a = normal((3, k), dtype, 1)
            w = normal((k, 5), dtype, 2)
            yield Case("gemm.tile", "gemm", {"A": a, "B": w}, {"C": dtype}, acc=acc)
            yield Case("gemm.tile", "gemm_splitk", {"A": a, "B": w}, {"C": dtype}, params={"WAYS": 4}, acc=acc)


def beyond_the_range():
    """Sums that leave the result's type: infinity, not a wrapped or saturated number; and sums that only pass beyond it."""
    big = array(np.full((3, 200), 60000.0), "f16")
    yield Case("rows.tile", "reduce_rows", {"X": big}, {"y": "f16"})
    there_and_back = array(np.concatenate([np.full((3, 100), 60000.0), np.full((3, 100), -60000.0)], axis=1), "f16")
    yield Case("rows.tile", "reduce_rows", {"X": there_and_back}, {"y": "f16"})
    yield Case("gemm.tile", "gemm", {"A": big, "B": array(np.full((200, 2), 600.0), "f16")}, {"C": "f16"})
    yield Case("elementwise.tile", "scale", {"X": ("f16", big[1].reshape(-1))}, {"Y": "f16"}, {"s": 2.0}, acc="f16")
    yield Case("elementwise.tile", "cast", {"X": normal((500,), "f32", 1, 1e5)}, {"Y": "f16"}, params={"U": "f16"})
    mixed = rng(1).standard_normal((4, 100))
    mixed[0, 3], mixed[1, 5], mixed[2, 7], mixed[2, 8] = np.inf, -np.inf, np.nan, np.inf
    for dtype in FLOAT:
        yield Case("rows.tile", "max_rows", {"X": array(mixed, dtype)}, {"y": dtype})
        yield Case("rows.tile", "min_rows", {"X": array(mixed, dtype)}, {"y": dtype})
        yield Case("elementwise.tile", "gelu_erf", {"X": array([-1e30, -40, -10, 0, 10, 40, 1e30], "f32")}, {"Y": "f32"})
        if dtype != "f64":
            yield Case("rows.tile", "argmax", {"X": array(mixed, dtype)}, {"I": "i32"})


GROUPS = [large_means, huge_logits, minus_infinity, tiny_numbers, long_sums, beyond_the_range]


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--pantile", type=Path, default=ROOT / "target" / "debug" / "pantile")
    args.add_argument("--target", action="append")
    args.add_argument("--only", default="")
    args.add_argument("--self-check", action="store_true", help="only the references: what they expect, rounded, must pass")
    args = args.parse_args()
    wrong = failed = done = 0
    np.seterr(all="ignore")
    with tempfile.TemporaryDirectory() as scratch:
        for target in ["numpy"] if args.self_check else args.target or ["interp", "cpu"]:
            for group in GROUPS:
                worst = 0.0
                for case in group():
                    if args.only not in case.name and args.only != group.__name__:
                        continue
                    expected = case.expected()
                    try:
                        if args.self_check:
                            got = {n: rounded(expected[n][0], d) for n, d in case.outputs.items()}
                        else:
                            got = run_kernel(args.pantile, target, case.file, case.name, case.inputs, case.outputs, Path(scratch), case.params, case.dims, case.scalars)
                    except Failed as e:
                        failed += 1
                        print(f"failed: {target} {group.__name__} {case.label()}\n  {e}")
                        continue
                    for name, dtype in case.outputs.items():
                        v, error = expected[name]
                        ratio, where = judge(widened(got[name], dtype), v, error(unit(case.acc)), dtype)
                        done += 1
                        worst = max(worst, ratio)
                        if not ratio <= 1:
                            wrong += 1
                            print(f"wrong: {target} {group.__name__} {case.label()}\n  {name} {where}")
                print(f"{target:7} {group.__name__:18} worst error / allowance {worst:.3f}")
    print(f"{done} results, {wrong} wrong, {failed} not run")
    return 1 if failed else 2 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
