#!/usr/bin/env python3
"""Array files against numpy: what numpy writes is read, what is written numpy reads, through `pantile run`.

    numpy_check.py [--pantile PATH]

Exit status: 0 right, 2 something is wrong.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
TYPES = {
    "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8",
    "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8",
    "f16": "f2", "f32": "f4", "f64": "f8",
}


def call(pantile, kernel, dtype, source, result):
    command = [str(pantile), "run", f"{ROOT / 'kernels' / kernel}", "--target", "interp", "--param", f"T={dtype}"]
    done = subprocess.run([*command, f"X={source}", f"Y=@{result}"], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}")


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--pantile", type=Path, default=ROOT / "target" / "debug" / "pantile")
    args = args.parse_args()
    passed = failed = 0

    def check(what, go):
        nonlocal passed, failed
        try:
            go()
            passed += 1
        except (AssertionError, RuntimeError) as e:
            failed += 1
            print(f"wrong: {what}: {e}")

    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        rng = np.random.default_rng(1)

        def flat(dtype, code, n, order):
            values = rng.integers(0, 100, n).astype(np.dtype(code).newbyteorder(order))
            np.save(folder / "x.npy", values)
            call(args.pantile, "elementwise.tile::copy_flat", dtype, folder / "x.npy", folder / "y.npy")
            back = np.load(folder / "y.npy")
            assert back.dtype == np.dtype(code) and back.shape == values.shape and (back == values).all(), back

        def matrix(dtype, code, fortran, suffix):
            values = rng.integers(0, 100, (7, 33)).astype(code)
            values = np.asfortranarray(values) if fortran else values
            if suffix == "npy":
                np.save(folder / "m.npy", values)
                source, result = folder / "m.npy", folder / "t.npy"
            else:
                np.savez_compressed(folder / "m.npz", other=values[:1], key=values)
                source, result = f"{folder / 'm.npz'}:key", f"{folder / 't.npz'}:done"
            call(args.pantile, "transpose.tile::transpose", dtype, source, result)
            back = np.load(folder / "t.npy") if suffix == "npy" else np.load(folder / "t.npz")["done"]
            assert back.shape == (33, 7) and (back == values.T).all(), back

        for dtype, code in TYPES.items():
            for n in (1, 33, 1000):
                for order in "<>":
                    check(f"{dtype} {n} {order}", lambda: flat(dtype, code, n, order))
        for fortran in (False, True):
            for suffix in ("npy", "npz"):
                check(f"matrix {fortran} {suffix}", lambda: matrix("f32", "f4", fortran, suffix))

    print(f"{passed} passed, {failed} failed")
    return 2 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
