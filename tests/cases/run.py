#!/usr/bin/env python3
"""Runs the black-box cases: `pantile test` on every `*.tile` here and in `tests/numerics`, `pantile check` on those to refuse.

    run.py [--pantile PATH] [--target interp --target cpu] [FILE…]

Exit status: 0 right, 2 something is wrong.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# words of the implementation that no user should meet
INTERNAL = re.compile(r"panicked|assertion|unwrap|\bExpr\b|\bHandle\b|\bArena\b|\bElem::|\bOp::|src/\w+\.rs|RUST_BACKTRACE")


def call(pantile, *arguments):
    done = subprocess.run([str(pantile), *map(str, arguments)], capture_output=True, text=True, timeout=1200)
    return done.returncode, done.stdout + done.stderr


def offset(text, line, column):
    """The byte at a line and column, both from 1, columns in characters."""
    before = text.splitlines(keepends=True)[: line - 1]
    return len("".join(before).encode()) + len(text.splitlines()[line - 1][: column - 1].encode())


def refused(pantile, file):
    """None, or what is wrong with the refusal."""
    text = file.read_text()
    place = re.search(r"^// place: (.*)$", text, re.M).group(1)
    status, out = call(pantile, "check", "--error-format=json", file)
    if status != 1:
        return f"status {status}, not 1\n{out}"
    if INTERNAL.search(out):
        return f"words of the implementation\n{out}"
    errors = [e for line in out.splitlines() if line.startswith("{") and (e := json.loads(line)).get("level", "error") == "error"]
    if not 1 <= len(errors) <= 4:
        return f"{len(errors)} errors\n{out}"
    body = text.encode()
    at = body.index(place.encode(), body.index(b"kernel") if place.encode() in body[body.index(b"kernel") :] else 0)
    spans = [m.start() for m in re.finditer(re.escape(place.encode()), body) if body[: m.start()].count(b"\n") >= 2] or [at]
    first = errors[0]
    lo, hi = offset(text, first["line"], first["col"]), offset(text, first["end"]["line"], first["end"]["col"])
    if not any(lo < s + len(place.encode()) and s < hi for s in spans):
        return f"points at {body[lo:hi].decode()!r}, expected {place!r}\n{out}"
    return None


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--pantile", type=Path, default=ROOT / "target" / "debug" / "pantile")
    args.add_argument("--target", action="append")
    args.add_argument("files", nargs="*", type=Path)
    args = args.parse_args()
    files = args.files or sorted(HERE.glob("*.tile")) + sorted((HERE.parent / "numerics").glob("*.tile")) + sorted(HERE.glob("refused/*.tile"))
    wrong = 0
    for file in files:
        shown = file.resolve().relative_to(ROOT)
        if file.resolve().parent.name == "refused":
            fault = refused(args.pantile, file)
            wrong += fault is not None
            print(f"{'right' if fault is None else 'WRONG'} refused {shown}" + (f": {fault}" if fault else ""))
            continue
        for target in args.target or ["interp", "cpu"]:
            status, out = call(args.pantile, "test", file, "--target", target)
            wrong += status != 0
            print(f"{'right' if status == 0 else 'WRONG'} {target:6} {shown}" + (f"\n{out}" if status else ""))
    print(f"{wrong} wrong")
    return 2 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
