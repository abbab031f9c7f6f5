"""Every kernel of the library with shapes, types, inputs and its reference: what `compare.py` runs.

Shapes are odd on purpose: 0, 1, 2, primes, one off a tile, 100, 1000, 1152.
"""

from dataclasses import dataclass, field

import numpy as np

from bounds import ACC, unit
from files import rounded, widened
from reference import REFERENCES

FLOAT = ("f16", "bf16", "f32", "f64")
SHORT = ("f16", "bf16", "f32")
F8 = ("f8e4m3", "f8e5m2")
INT = ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64")


# from, to, and a size of numbers of which some lie beyond the second type
SATURATED = [
    *[("f16", "i8", 300), ("bf16", "u16", 1e5), ("f32", "i8", 300), ("f32", "i32", 1e10), ("f64", "u8", 300)],
    *[("f32", "f8e4m3", 400), ("f32", "f8e5m2", 5e4), ("f32", "f16", 1e5), ("f64", "bf16", 1e38), ("f64", "f32", 1e38)],
    *[("i32", "i8", 300), ("i32", "u8", 300), ("i64", "u32", 2**33), ("u64", "i16", 10**5), ("i32", "f16", 10**5)],
]


@dataclass
class Case:
    file: str
    name: str
    inputs: dict  # name -> (dtype, array in that dtype); also what `inout` tensors hold before
    outputs: dict  # name -> dtype
    scalars: dict = field(default_factory=dict)
    params: dict = field(default_factory=dict)  # --param: types, const generics, tuning parameters
    dims: dict = field(default_factory=dict)  # --dim: dims that no input fixes
    acc: str = "f32"
    extra: dict = field(default_factory=dict)  # arguments of the reference alone

    def label(self):
        shapes = " ".join(f"{n}={'x'.join(map(str, a.shape)) or '.'}:{d}" for n, (d, a) in self.inputs.items())
        rest = " ".join(f"{k}={v}" for k, v in {**self.params, **self.dims, **self.scalars}.items())
        return f"{self.name} {shapes} {rest}".strip()

    def types(self):
        return {d for d, _ in self.inputs.values()} | set(self.outputs.values())

    def expected(self):
        arguments = {n: widened(a, d) for n, (d, a) in self.inputs.items()}
        return REFERENCES[self.name](**arguments, **self.scalars, **self.extra)


def rng(*key):
    return np.random.default_rng(list(key))


def normal(shape, dtype, seed, scale=1.0, shift=0.0):
    return dtype, rounded(rng(seed, *shape).standard_normal(shape) * scale + shift, dtype)


def uniform(shape, dtype, seed, lo=0.0, hi=1.0):
    return dtype, rounded(rng(seed, *shape).uniform(lo, hi, shape), dtype)


def ints(shape, dtype, seed, lo, hi):
    return dtype, rounded(rng(seed, *shape).integers(lo, hi, shape), dtype)


def spread(n, dtype, seed, info):
    """Integers over the whole range of their type, its ends among them."""
    x = rng(seed, n).integers(info.min, info.max, n, dtype=info.dtype, endpoint=True)
    x[: min(n, 2)] = [info.min, info.max][: min(n, 2)]
    return dtype, x


def value(x, dtype):
    """A scalar argument as the kernel sees it: rounded to its type."""
    return float(widened(rounded(x, dtype), dtype))


def elementwise():
    f = "elementwise.tile"
    for n in (0, 1, 2, 33, 1000, 1023, 1152):
        for t in FLOAT:
            x, y = normal((n,), t, 1), normal((n,), t, 2)
            # one rounding of exact inputs: the arithmetic itself is exact in float64 (f64: compare within one rounding)
            yield Case(f, "add", {"X": x, "Y": y}, {"Z": t}, acc=t)
            yield Case(f, "scale", {"X": x}, {"Y": t}, scalars={"s": value(0.37, t)}, acc=t)
            yield Case(f, "axpy", {"X": x, "Y": y}, {"Y": t}, scalars={"a": -1.5}, acc=ACC[t])
            yield Case(f, "gelu_erf", {"X": normal((n,), t, 1, 3)}, {"Y": t}, acc=ACC[t])
            yield Case(f, "map", {"X": normal((n,), t, 1, 3)}, {"Y": t}, params={"E": "gelu_tanh"}, acc=ACC[t])
            yield Case(f, "silu_mul", {"G": normal((n,), t, 1, 3), "U": y}, {"Y": t}, acc=ACC[t])
            yield Case(f, "absolute", {"X": x}, {"Y": t})
            yield Case(f, "signs", {"X": ints((n,), t, 1, -2, 3)}, {"Y": t})
        for t in (*FLOAT, *INT, "bool", "f8e4m3", "f8e5m2"):
            x = ints((n,), t, 1, 0, 2)
            given = {"T": t} if t.startswith("f8") else {}  # a raw byte does not say which it is
            yield Case(f, "copy_flat", {"X": x}, {"Y": t}, params=given)
            yield Case(f, "copy_threads", {"X": x}, {"Y": t}, params={"RT": 31, **given})
    for n in (0, 1, 33, 1023):
        for t in (*FLOAT, *INT, *F8):
            yield Case(f, "fill", {}, {"Y": t}, scalars={"value": 7}, params={"T": t}, dims={"N": n}, extra={"N": n})
        for t in INT:
            # sums, products and the least number's absolute value wrap
            info = np.iinfo(t.replace("u", "uint") if t[0] == "u" else t.replace("i", "int"))
            x, y = spread(n, t, 1, info), spread(n, t, 2, info)
            yield Case(f, "add", {"X": x, "Y": y}, {"Z": t})
            yield Case(f, "scale", {"X": x}, {"Y": t}, scalars={"s": 3})
            yield Case(f, "absolute", {"X": x}, {"Y": t})
        for t in (*FLOAT, *F8, "i8", "u8", "i32", "u64"):
            for to in (*FLOAT, *F8, "i8", "u8", "i32", "i64"):
                if t == to:
                    continue
                # numbers that both types hold to within a rounding; fractions and halves of steps among floats
                x = normal((n,), t, 1, 20) if t[0] in "fb" and to[0] in "fb" else ints((n,), t, 1, 0, 100)
                given = {"U": to, **({"T": t} if t in F8 else {})}
                yield Case(f, "cast", {"X": x}, {"Y": to}, params=given)
        for t, to, size in SATURATED:
            x = normal((n,), t, 1, size) if t[0] in "fb" else ints((n,), t, 1, 0 if t == "u64" else -size, size)
            yield Case(f, "cast_sat", {"X": x}, {"Y": to}, params={"U": to}, extra={"to": to})


def gemv():
    f = "gemv.tile"
    steps = "naive splitk splitk_tiled vectorized allreduce warp xcache reducer block".split()
    shapes = [(0, 5), (5, 0), (1, 1), (2, 33), (7, 13), (33, 100), (100, 1000), (13, 1152), (129, 1025)]
    for n, k in shapes:
        for t in FLOAT:
            x, b = normal((k,), t, 1), normal((n, k), t, 2)
            for step in steps:
                yield Case(f, f"gemv_{step}", {"x": x, "B": b}, {"y": t}, acc=ACC[t])
            y = normal((n,), t, 3)
            for beta in (0.0, -2.0):
                yield Case(f, "gemv_alpha_beta", {"x": x, "B": b, "y": y}, {"y": t}, {"alpha": 0.5, "beta": beta}, acc=ACC[t])
    nan = ("f16", np.full(33, np.nan, np.float16))
    x, b = normal((100,), "f16", 1), normal((33, 100), "f16", 2)
    yield Case(f, "gemv_alpha_beta", {"x": x, "B": b, "y": nan}, {"y": "f16"}, {"alpha": 1.0, "beta": 0.0})
    for rows in (2, 8, 32):
        for rt in (4, 8, 32):
            yield Case(f, "gemv_allreduce", {"x": x, "B": b}, {"y": "f16"}, params={"ROWS": rows, "RT": rt})
    x, b = normal((2049,), "f16", 1), normal((9, 2049), "f16", 2)
    for tv in (512, 1024, 2048):
        yield Case(f, "gemv_xcache", {"x": x, "B": b}, {"y": "f16"}, params={"TV": tv})


def gemm():
    f = "gemm.tile"
    shapes = [(0, 3, 2), (3, 0, 2), (3, 2, 0), (1, 1, 1), (2, 33, 1), (33, 67, 65), (100, 130, 33), (129, 127, 97), (1, 1000, 100)]
    for m, n, k in shapes:
        for t in FLOAT:
            a, b = normal((m, k), t, 1), normal((k, n), t, 2)
            for name in ("gemm_naive", "gemm_tiled", "gemm_register", "gemm"):
                yield Case(f, name, {"A": a, "B": b}, {"C": t}, acc=ACC[t])
            for ways in (1, 3, 4):
                yield Case(f, "gemm_splitk", {"A": a, "B": b}, {"C": t}, params={"WAYS": ways}, acc=ACC[t])
            w, bias = normal((n, k), t, 2), normal((n,), t, 3)
            yield Case(f, "linear", {"A": a, "W": w, "b": bias}, {"C": t}, acc=ACC[t])
            yield Case(f, "linear", {"A": a, "W": w, "b": bias}, {"C": t}, params={"E": "gelu"}, acc=ACC[t], extra={"activation": "gelu"})
    a, b = normal((65, 70), "f16", 1), normal((70, 129), "f16", 2)
    for bn in (16, 48, 80, 128, 256):
        yield Case(f, "gemm", {"A": a, "B": b}, {"C": "f16"}, params={"BN": bn})
    for tm in (8, 16):
        for bk in (8, 16, 32):
            yield Case(f, "gemm_register", {"A": a, "B": b}, {"C": "f16"}, params={"TM": tm, "TN": 16, "BK": bk, "BM": 64, "BN": 256})


def rows():
    f = "rows.tile"
    widths = [(0, 3), (1, 1), (3, 2), (7, 33), (2, 1000), (3, 1152), (2, 4097)]
    for r, c in widths:
        for t in FLOAT:
            acc = ACC[t]
            x = normal((r, c), t, 1, 4)
            g, b = normal((c,), t, 2), normal((c,), t, 3)
            yield Case(f, "softmax", {"X": x}, {"Y": t}, acc=acc)
            yield Case(f, "softmax_streamed", {"X": x}, {"Y": t}, params={"BC": 512}, acc=acc)
            eps = value(1e-5, acc)
            yield Case(f, "layernorm", {"X": x, "G": g, "B": b}, {"Y": t}, {"eps": eps}, acc=acc)
            yield Case(f, "layernorm_streamed", {"X": x, "G": g, "B": b}, {"Y": t}, {"eps": eps}, {"BC": 512}, acc=acc)
            yield Case(f, "rmsnorm", {"X": x, "G": g}, {"Y": t}, {"eps": eps}, acc=acc)
            yield Case(f, "rmsnorm_streamed", {"X": x, "G": g}, {"Y": t}, {"eps": eps}, {"BC": 512}, acc=acc)
            if c <= 1152:
                wide = {"NB": 2304}  # twice as wide as the widest row, or much more
                yield Case(f, "softmax_rows", {"X": x}, {"Y": t}, params=wide, acc=acc)
                yield Case(f, "layernorm_rows", {"X": x, "G": g, "B": b}, {"Y": t}, {"eps": eps}, wide, acc=acc)
                yield Case(f, "rmsnorm_rows", {"X": x, "G": g}, {"Y": t}, {"eps": eps}, wide, acc=acc)
                yield Case(f, "logsumexp_rows", {"X": x}, {"y": t}, params=wide, acc=acc)
                if c > 1:
                    yield Case(f, "variance_rows", {"X": x}, {"v": t}, {"ddof": 1.0}, wide, acc=acc)
                if t != "f64":
                    yield Case(f, "argmin_rows", {"X": ints((r, c), t, 1, -3, 4)}, {"I": "i32"}, params=wide)
            if t != "f64":
                yield Case(f, "argmax", {"X": ints((r, c), t, 1, -3, 4)}, {"I": "i32"})
                if c > 1:
                    yield Case(f, "variance", {"X": x}, {"v": t}, {"ddof": 1.0})
    for r, c in [(3, 0), *widths]:
        for t in FLOAT:
            acc = ACC[t]
            x = normal((r, c), t, 1)
            yield Case(f, "reduce_rows", {"X": x}, {"y": t}, acc=acc)
            yield Case(f, "max_rows", {"X": x}, {"y": t})
            yield Case(f, "min_rows", {"X": x}, {"y": t})
            yield Case(f, "product", {"X": uniform((r, c), t, 1, 0.99, 1.01)}, {"y": t}, acc=acc)
            yield Case(f, "logsumexp", {"X": x}, {"y": t}, acc=acc)
            yield Case(f, "logsumexp_streamed", {"X": x}, {"y": t}, params={"BC": 512}, acc=acc)
            yield Case(f, "cumsum", {"X": x}, {"Y": t}, acc=acc)
            yield Case(f, "cumsum_reverse", {"X": x}, {"Y": t}, acc=acc)
            yield Case("scan.tile", "cummax", {"X": x}, {"Y": t}) if c else Case(f, "reduce_rows", {"X": x}, {"y": t}, acc=acc)
        for t in INT:
            yield Case(f, "reduce_rows_int", {"X": ints((r, c), t, 1, 0, 100)}, {"y": t})


def columns():
    f = "columns.tile"
    for r, c in [(0, 5), (5, 0), (1, 1), (2, 33), (33, 100), (100, 1000), (1000, 7)]:
        for t in FLOAT:
            x = normal((r, c), t, 1)
            yield Case(f, "reduce_cols", {"X": x}, {"y": t}, acc=ACC[t])
            yield Case(f, "max_cols", {"X": x}, {"y": t})
            yield Case("scan.tile", "cumsum_cols", {"X": x}, {"Y": t}, acc=ACC[t])
            yield Case("scan.tile", "cumsum_cols_reverse", {"X": x}, {"Y": t}, acc=ACC[t])
        for t in (*FLOAT, *INT, *F8, "bool"):
            given = {"params": {"T": t}} if t in F8 else {}
            x = normal((r, c), t, 1) if t[0] in "fb" and t != "bool" else ints((r, c), t, 1, 0, 2 if t == "bool" else 100)
            yield Case("transpose.tile", "transpose", {"X": x}, {"Y": t}, **given)
            yield Case("transpose.tile", "transpose_shared", {"X": x}, {"Y": t}, **given)
    for a, b, c in [(2, 8, 16), (1, 1, 1), (3, 33, 100), (0, 4, 4), (2, 0, 3), (5, 7, 11)]:
        for t in FLOAT:
            x = normal((a, b, c), t, 1)
            yield Case(f, "reduce_middle", {"X": x}, {"Y": t}, acc=ACC[t])
            yield Case(f, "reduce_middle_batched", {"X": x}, {"Y": t}, acc=ACC[t])
        for t in (*FLOAT, *INT):
            yield Case("transpose.tile", "transpose_stack", {"X": ints((a, b, c), t, 1, 0, 100)}, {"Y": t})
    for n in (0, 1, 33, 1000, 100003):
        for t in FLOAT:
            x = uniform((n,), t, 1)
            yield Case(f, "reduce_all", {"X": x}, {"y": t}, acc=ACC[t])
            yield Case("scan.tile", "scan_all", {"X": x}, {"Y": t}, acc=ACC[t])
    for r, c in [(1, 1), (3, 300), (2, 1000)]:
        yield Case("scan.tile", "linear_recurrence", {"F": uniform((r, c), "f32", 1), "X": normal((r, c), "f32", 2)}, {"H": "f32"})


def attention():
    f = "attention.tile"
    shapes = [(1, 2, 1, 1, 1, 64), (1, 2, 1, 33, 33, 64), (2, 2, 2, 65, 130, 64), (1, 4, 2, 100, 129, 80), (1, 1, 1, 129, 129, 128), (1, 12, 12, 7, 7, 32)]
    for b, h, g, s, l, d in shapes:
        for t in SHORT:
            q, k, v = normal((b, h, s, d), t, 1), normal((b, g, l, d), t, 2), normal((b, g, l, d), t, 3)
            scale = value(d**-0.5, "f32")
            u = {"u_value": unit(t)}
            for causal in (False, True):
                extra = {"CAUSAL": causal, **u}
                params = {"CAUSAL": str(causal).lower()}
                yield Case(f, "attention", {"Q": q, "K": k, "V": v}, {"O": t}, {"scale": scale}, params, extra=extra)
                yield Case(f, "attention_lse", {"Q": q, "K": k, "V": v}, {"O": t, "E": "f32"}, {"scale": scale}, params, extra=extra)
            if s == l:
                for w in (1, 17, 1000):
                    yield Case(f, "attention_window", {"Q": q, "K": k, "V": v}, {"O": t}, {"scale": scale, "w": w}, extra=u)
    for b, h, g, pages, most, page, d in [(3, 6, 2, 7, 5, 16, 64), (1, 16, 1, 3, 2, 32, 128), (2, 2, 2, 4, 4, 64, 64)]:
        for t in SHORT:
            ins = {
                "Q": normal((b, h, d), t, 1),
                "KP": normal((pages, page, g, d), t, 2),
                "VP": normal((pages, page, g, d), t, 3),
                "table": ints((b, most), "i32", 4, 0, pages),
                "len": ints((b,), "i32", 5, 1, most * page + 1),
            }
            for splits in (1, 8):
                yield Case("flash_decode.tile", "flash_decode", ins, {"O": t}, {"scale": value(d**-0.5, "f32")}, {"SPLITS": splits}, extra={"u_value": unit(t)})


def quantized():
    for n, k, gs in [(0, 64, 32), (1, 32, 32), (33, 128, 32), (100, 640, 64), (67, 0, 32)]:
        for t in FLOAT:
            w, z = ints((n, k), "u4", 2, 0, 16), ints((n, k // gs), "u4", 4, 0, 16)
            if (k // gs) % 2 == 1:
                continue  # a packed axis has an even extent
            x, s = normal((k,), t, 1), uniform((n, k // gs), t, 3, 0.01, 0.1)
            ins = {"x": x, "W": w, "S": s, "Z": z}
            yield Case("dequant_gemv.tile", "dequant_gemv", ins, {"y": t}, params={"GS": gs}, acc=ACC[t])
            yield Case("dequant_gemv.tile", "dequant_gemv_threads", ins, {"y": t}, params={"GS": gs}, acc=ACC[t])
            for m in (1, 17):
                ins = {"A": normal((m, k), t, 1), "W": w, "S": s, "Z": z}
                yield Case("dequant_gemm.tile", "dequant_gemm", ins, {"C": t}, params={"GS": gs}, acc=ACC[t])
    for n, k, gs in [(0, 33, 33), (1, 3, 3), (33, 330, 33), (100, 0, 3)]:
        for t in FLOAT:
            ins = {"x": normal((k,), t, 1), "W": ints((n, k), "i8", 2, -128, 128), "S": uniform((n, k // gs), t, 3, 0.001, 0.01)}
            yield Case("dequant_gemv.tile", "dequant_gemv_i8", ins, {"y": t}, params={"GS": gs}, acc=ACC[t])


def networks():
    for m, n, k in [(0, 3, 3), (1, 1, 1), (33, 100, 67), (2, 129, 0)]:
        for t in FLOAT:
            ins = {"A": normal((m, k), t, 1), "G": normal((k, n), t, 2, 0.3), "U": normal((k, n), t, 3, 0.3)}
            yield Case("gated_mlp.tile", "gated_mlp", ins, {"H": t}, acc=ACC[t])
    for b, h, w, ci, co in [(1, 1, 1, 1, 1), (2, 5, 33, 3, 5), (1, 3, 67, 40, 67), (1, 2, 2, 33, 1), (0, 2, 2, 1, 1)]:
        for t in FLOAT:
            yield Case("conv3x3.tile", "conv3x3", {"X": normal((b, h, w, ci), t, 1), "F": normal((3, 3, ci, co), t, 2)}, {"Y": t}, acc=ACC[t])


def others():
    f = "atomics.tile"
    for n in (0, 1, 33, 1000, 5003):
        x = ints((n,), "i32", 1, -2, 105)
        yield Case(f, "histogram", {"X": x, "H": ints((7,), "i32", 2, 0, 5)}, {"H": "i32"})
        yield Case(f, "histogram_shared", {"X": x, "H": ints((100,), "i32", 2, 0, 5)}, {"H": "i32"})
        yield Case(f, "tickets", {"n": ints((1,), "i32", 1, 0, 1), "S": ints((n,), "i32", 1, 0, 1)}, {"n": "i32", "S": "i32"})
        for t in ("i32", "u32", "i64", "u64", "f32", "f64"):
            yield Case(f, "add_everything", {"X": ints((n,), t, 1, 0, 3), "Y": ints((1,), t, 2, 0, 3)}, {"Y": t})
        for t in (*FLOAT, "i32", "u32", "i64", "u64"):
            yield Case(f, "extremes", {"X": ints((n,), t, 1, 3, 90), "Y": ints((2,), t, 2, 50, 51)}, {"Y": t})
    for n, d, v in [(0, 3, 2), (1, 1, 1), (100, 33, 7), (57, 130, 1000)]:
        for t in SHORT:
            ids = ints((n,), "i32", 2, 0, v)
            yield Case(f, "scatter_add", {"X": normal((n, d), t, 1), "I": ids, "Y": normal((v, d), "f32", 3)}, {"Y": "f32"})
            yield Case(f, "add_column_sums", {"X": normal((n, d), t, 1), "Y": normal((d,), "f32", 3)}, {"Y": "f32"})
        for t in (*FLOAT, *INT):
            yield Case("gather.tile", "embedding", {"E": ints((v, d), t, 1, 0, 100), "I": ints((n,), "i32", 2, 0, v)}, {"Y": t})
        for t in FLOAT:
            ins = {"E": normal((v, d), t, 1), "I": ints((n,), "i32", 2, 0, v), "P": normal((n, d), t, 3)}
            yield Case("gather.tile", "embed_tokens", ins, {"Y": t}, {"s": 1.5}, acc=ACC[t])
    for n, half in [(0, 4), (1, 1), (33, 32), (17, 40)]:
        for t in SHORT:
            tables = {"C": uniform((64, half), "f32", 2, -1, 1), "S": uniform((64, half), "f32", 3, -1, 1)}
            ins = {"X": normal((n, 2 * half), t, 1), **tables, "pos": ints((n,), "i32", 4, 0, 64)}
            yield Case("gather.tile", "rope", ins, {"Y": t})
    f = "random.tile"
    for n in (0, 1, 33, 1000, 3001):
        keys = {"seed": 1234567890123, "offset": 7}
        for t in SHORT:
            yield Case(f, "dropout", {"X": normal((n,), t, 1)}, {"Y": t}, {"p": 0.25, **keys})
        yield Case(f, "uniform_fill", {}, {"Y": "f32"}, keys, dims={"N": n}, extra={"N": n})
        for t in FLOAT:
            yield Case(f, "normal_fill", {}, {"Y": t}, keys, params={"T": t}, dims={"N": n}, extra={"N": n})
        if n < 100:
            words = rng(n).integers(0, 2**32, (n, 6), dtype=np.uint64).astype(np.uint32)
            yield Case(f, "philox_words", {"X": ("u32", words)}, {"W": "u32"})
    for name in ("philox_known", "philox_answers"):
        yield Case(f, name, {}, {"W": "u32"})


GROUPS = [elementwise, gemv, gemm, rows, columns, attention, quantized, networks, others]


def cases(pattern=""):
    for group in GROUPS:
        for case in group():
            if pattern in case.name or pattern == group.__name__:
                yield case
