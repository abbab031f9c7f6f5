"""What every kernel of the library computes, in float64 and from its definition, with a bound on the error of honest arithmetic.

A reference takes the inputs widened exactly to float64 (integers stay integers) and returns, for each output,
`(value, error)`; `error(u)` bounds the arithmetic in an accumulate type of unit roundoff u, componentwise and in any order.
Nothing here shares code or structure with the kernels.
"""

import math

import numpy as np

from bounds import APPROX, FLOATS, MATH, gamma

REFERENCES = {}


def reference(*names):
    def register(f):
        for name in names:
            REFERENCES[name] = f
        return f

    return register


def exact(value):
    return value, lambda u: np.zeros(np.shape(value))


# ---- element by element -------------------------------------------------------------------------------------------

_erf = np.vectorize(math.erf, otypes=[np.float64])


def gelu(x):
    return 0.5 * x * (1 + _erf(x / math.sqrt(2)))


def gelu_tanh(x):
    return x * sigmoid(tanh_argument(x))


def tanh_argument(x):
    """Twice the argument of the tanh in gelu's tanh form: (1 + tanh t)/2 = σ(2t)."""
    return 2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)


def sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1.0) / (1 + e)


# x·σ(v) from h = e^(-|v|/2), |v|/2 being exact: h² is off by 2·MATH + 1 roundings, the numerator x·h·h by 2·MATH + 2,
# the denominator 1 + h² (h² ≤ 1) by MATH + 2, the quotient is one more; 2 to spare
GATED = 3 * MATH + 7


def gated(x, v):
    """x·σ(v), with an error relative to the result but for the underflow of x·h·h."""
    # the wider exponent of long double keeps e^v where float64 would underflow before the product with x
    value = (x * sigmoid(np.asarray(v, np.longdouble))).astype(np.float64)
    return value, lambda u: gamma(GATED, u) * np.abs(value) + smallest(u)


def smallest(u):
    """The smallest positive number of the accumulate type whose unit roundoff is u: one underflow loses no more."""
    return next((tiny for roundoff, tiny, _ in FLOATS.values() if roundoff == u), 0.0)


def pointwise(value, scale, roundings):
    return value, lambda u: gamma(roundings, u) * scale


@reference("add")
def _(X, Y):
    return {"Z": exact(X + Y)}


@reference("scale")
def _(X, s):
    return {"Y": exact(s * X)}


@reference("axpy")
def _(X, Y, a):
    return {"Y": pointwise(a * X + Y, np.abs(a * X) + np.abs(Y), 3)}


@reference("copy_flat", "copy_threads", "cast")
def _(X):
    return {"Y": exact(X)}


@reference("cast_sat")
def _(X, to):
    lo, hi = ends(to)
    x = np.rint(X) if to[0] in "iu" and X.dtype.kind == "f" else X
    return {"Y": exact(np.clip(x, lo, hi))}


def ends(dtype):
    """The least and the greatest number of a type."""
    if dtype in FLOATS:
        return -FLOATS[dtype][2], FLOATS[dtype][2]
    bits, signed = int(dtype[1:]), dtype[0] == "i"
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)


@reference("fill")
def _(value, N):
    return {"Y": exact(np.full(N, value))}


@reference("gelu_erf")
def _(X):
    # 1 + erf(x) cancels for negative x: the error is that of the sum, not of the result
    return {"Y": pointwise(gelu(X), np.abs(X), MATH + 6)}


@reference("map")
def _(X, activation="gelu_tanh"):
    if activation == "sigmoid":
        return {"Y": gated(np.ones_like(X), X)}
    if activation == "silu":
        return {"Y": gated(X, X)}
    # σ's argument v is off by 7 roundings of its own size (its terms do not cancel); σ changes by |v|·(1 - σ) times that
    v = tanh_argument(X)
    moved = np.where(np.abs(v) < 1e3, np.abs(v) * sigmoid(-v), 0.0)
    value, error = gated(X, v)
    return {"Y": (value, lambda u: error(u) + gamma(8, u) * moved * np.abs(value))}


@reference("silu_mul")
def _(G, U):
    value, error = gated(G, G)
    return {"Y": (value * U, lambda u: error(u) * np.abs(U) + gamma(1, u) * np.abs(value * U))}


@reference("absolute")
def _(X):
    return {"Y": exact(np.abs(X))}


@reference("signs")
def _(X):
    return {"Y": exact(np.sign(X))}


# ---- products -----------------------------------------------------------------------------------------------------


def product(A, B, extra=0):
    """A·B with Higham's componentwise bound γ_K |A||B|."""
    weight = np.abs(A) @ np.abs(B)
    return A @ B, lambda u: gamma(A.shape[-1] + 2 + extra, u) * weight


@reference("gemm_naive", "gemm_tiled", "gemm_register", "gemm", "gemm_splitk")
def _(A, B):
    return {"C": product(A, B, extra=8)}


@reference("linear")
def _(A, W, b, activation=None):
    value, error = product(A, W.T)
    weight = np.abs(A) @ np.abs(W.T) + np.abs(b)
    z = value + b
    if activation is None:
        return {"C": (z, lambda u: error(u) + gamma(2, u) * weight)}
    # gelu's slope is below 1.13; its own error as in gelu_erf
    return {"C": (gelu(z), lambda u: 1.13 * (error(u) + gamma(2, u) * weight) + gamma(MATH + 6, u) * np.abs(z))}


@reference(*[f"gemv_{k}" for k in "naive splitk splitk_tiled vectorized allreduce warp xcache reducer block".split()])
def _(x, B):
    return {"y": product(B, x, extra=8)}


@reference("gemv_alpha_beta")
def _(x, B, y, alpha, beta):
    value, error = product(B, x)
    weight = np.abs(alpha) * (np.abs(B) @ np.abs(x))
    if beta == 0:
        return {"y": (alpha * value, lambda u: gamma(B.shape[1] + 6, u) * weight)}
    weight = weight + np.abs(beta * y)
    return {"y": (alpha * value + beta * y, lambda u: gamma(B.shape[1] + 6, u) * weight)}


@reference("gated_mlp")
def _(A, G, U):
    (g, eg), (u_, eu) = product(A, G), product(A, U)
    s, es = gated(g, g)

    def error(u):
        # |silu'| < 1.1
        of_s = 1.1 * eg(u) + es(u) + gamma(GATED, u) * 1.1 * eg(u)
        return of_s * (np.abs(u_) + eu(u)) + np.abs(s) * eu(u) + gamma(1, u) * (np.abs(s) + of_s) * (np.abs(u_) + eu(u))

    return {"H": (s * u_, error)}


@reference("conv3x3")
def _(X, F):
    B, H, W, CI = X.shape
    padded = np.zeros((B, H + 2, W + 2, CI))
    padded[:, 1 : H + 1, 1 : W + 1] = X
    value, weight = np.zeros((B, H, W, F.shape[3])), np.zeros((B, H, W, F.shape[3]))
    for dy in range(3):
        for dx in range(3):
            part = padded[:, dy : dy + H, dx : dx + W]
            value += part @ F[dy, dx]
            weight += np.abs(part) @ np.abs(F[dy, dx])
    return {"Y": (value, lambda u: gamma(9 * CI + 10, u) * weight)}


def dequantized(W, S, Z=None):
    """Weights in float64; W one number an element, S and Z one a group."""
    group = W.shape[1] // S.shape[1] if S.shape[1] else 1
    z = 0 if Z is None else np.repeat(Z.astype(np.float64), group, axis=1)
    return (W.astype(np.float64) - z) * np.repeat(S, group, axis=1)


@reference("dequant_gemv", "dequant_gemv_threads")
def _(x, W, S, Z):
    return {"y": product(dequantized(W, S, Z), x, extra=8)}


@reference("dequant_gemv_i8")
def _(x, W, S):
    return {"y": product(dequantized(W, S), x, extra=8)}


@reference("dequant_gemm")
def _(A, W, S, Z):
    return {"C": product(A, dequantized(W, S, Z).T, extra=8)}


# ---- rows -----------------------------------------------------------------------------------------------------------


@reference("softmax", "softmax_rows", "softmax_streamed")
def _(X):
    with np.errstate(invalid="ignore"):
        d = X - X.max(axis=1, keepdims=True)
        e = np.exp(d)
        value = e / e.sum(axis=1, keepdims=True)
    # a rounding of the exponent d is a relative error |d|·u of e^d; the weighted mean of |d| is what the sum sees
    finite = np.where(np.isfinite(d), np.abs(d), 0)
    spread = (value * finite).sum(axis=1, keepdims=True)
    return {"Y": (value, lambda u: value * (gamma(X.shape[1] + 4 * MATH + 4, u) + gamma(4, u) * (finite + spread)))}


def moments(X):
    mean = X.mean(axis=1, keepdims=True)
    d = X - mean
    return mean, d, (d * d).mean(axis=1, keepdims=True)


def moment_errors(X, d, var, u):
    """Errors of the deviations and of the variance when both come from two passes (or Welford's equivalent)."""
    n = X.shape[1]
    e_mean = gamma(n + 4, u) * np.abs(X).mean(axis=1, keepdims=True)
    e_d = e_mean + u * np.abs(d)
    e_var = gamma(n + 8, u) * var + 2 * e_mean * np.abs(d).mean(axis=1, keepdims=True) + e_mean**2
    return e_d, e_var


@reference("layernorm", "layernorm_rows", "layernorm_streamed")
def _(X, G, B, eps):
    _, d, var = moments(X)
    rstd = 1 / np.sqrt(var + eps)

    def error(u):
        e_d, e_var = moment_errors(X, d, var, u)
        relative = 0.5 * e_var / (var + eps) + gamma(MATH + 6, u)
        return np.abs(G) * rstd * (e_d + np.abs(d) * relative) * 1.01 + gamma(2, u) * np.abs(B)

    return {"Y": (d * rstd * G + B, error)}


@reference("rmsnorm", "rmsnorm_rows", "rmsnorm_streamed")
def _(X, G, eps):
    value = X / np.sqrt((X * X).mean(axis=1, keepdims=True) + eps) * G
    return {"Y": (value, lambda u: np.abs(value) * gamma(X.shape[1] / 2 + MATH + 8, u))}


@reference("reduce_rows")
def _(X):
    return {"y": (X.sum(axis=1), lambda u: gamma(X.shape[1] + 1, u) * np.abs(X).sum(axis=1))}


@reference("reduce_rows_int")
def _(X):
    return {"y": exact(X.sum(axis=1, dtype=X.dtype))}


@reference("max_rows")
def _(X):
    return {"y": exact(X.max(axis=1, initial=-np.inf))}


@reference("min_rows")
def _(X):
    return {"y": exact(X.min(axis=1, initial=np.inf))}


@reference("product")
def _(X):
    value = X.prod(axis=1)
    return {"y": (value, lambda u: gamma(X.shape[1] + 1, u) * np.abs(value))}


@reference("variance", "variance_rows")
def _(X, ddof):
    _, d, var = moments(X)
    n = X.shape[1]

    def error(u):
        # Welford's single pass: Chan et al. bound its error by that of the condition number |x|/σ
        kappa = np.sqrt((X * X).mean(axis=1) / np.maximum(var[:, 0], 1e-300))
        return (gamma(4 * n, u) * kappa + gamma(n + 8, u)) * var[:, 0] * n / (n - ddof) + moment_errors(X, d, var, u)[1][:, 0] * n / (n - ddof)

    return {"v": (var[:, 0] * n / (n - ddof), error)}


@reference("logsumexp", "logsumexp_rows", "logsumexp_streamed")
def _(X):
    with np.errstate(invalid="ignore", divide="ignore"):
        m = X.max(axis=1, initial=-np.inf)
        d = X - np.where(np.isfinite(m), m, 0)[:, None]
        e = np.exp(d)
        value = np.where(np.isfinite(m), m, 0) + np.log(e.sum(axis=1))
        p = e / e.sum(axis=1, keepdims=True)
    spread = np.nansum(np.where(np.isfinite(d), np.abs(d) * p, 0), axis=1)
    size = np.where(np.isfinite(m), np.abs(m), 0) + np.where(np.isfinite(value), np.abs(value), 0)
    return {"y": (value, lambda u: gamma(X.shape[1] + 3 * MATH, u) + gamma(4, u) * spread + gamma(MATH, u) * (size + 1))}


@reference("argmax")
def _(X):
    return {"I": exact(X.argmax(axis=1))}


@reference("argmin_rows")
def _(X):
    return {"I": exact(X.argmin(axis=1))}


def running(X, axis, reverse):
    flip = (lambda a: np.flip(a, axis)) if reverse else (lambda a: a)
    value = flip(np.cumsum(flip(X), axis=axis))
    weight = flip(np.cumsum(flip(np.abs(X)), axis=axis))
    return value, lambda u: gamma(X.shape[axis] + 4, u) * weight


@reference("cumsum")
def _(X):
    return {"Y": running(X, 1, False)}


@reference("cumsum_reverse")
def _(X):
    return {"Y": running(X, 1, True)}


@reference("cumsum_cols")
def _(X):
    return {"Y": running(X, 0, False)}


@reference("cumsum_cols_reverse")
def _(X):
    return {"Y": running(X, 0, True)}


@reference("cummax")
def _(X):
    return {"Y": exact(np.maximum.accumulate(X, axis=1))}


@reference("scan_all")
def _(X):
    value, error = running(X, 0, False)
    # the start of a piece is (inclusive - own): one cancellation of the size of the running total
    return {"Y": (value, lambda u: 3 * error(u))}


@reference("linear_recurrence")
def _(F, X):
    value, weight, h, w = np.zeros_like(X), np.zeros_like(X), 0.0, 0.0
    for c in range(X.shape[1]):
        h, w = F[:, c] * h + X[:, c], np.abs(F[:, c]) * w + np.abs(X[:, c])
        value[:, c], weight[:, c] = h, w
    return {"H": (value, lambda u: gamma(3 * X.shape[1] + 3, u) * weight)}


# ---- columns, everything --------------------------------------------------------------------------------------------


@reference("reduce_cols")
def _(X):
    return {"y": (X.sum(axis=0), lambda u: gamma(X.shape[0] + 1, u) * np.abs(X).sum(axis=0))}


@reference("max_cols")
def _(X):
    return {"y": exact(X.max(axis=0, initial=-np.inf))}


@reference("reduce_middle", "reduce_middle_batched")
def _(X):
    return {"Y": (X.sum(axis=1), lambda u: gamma(X.shape[1] + 1, u) * np.abs(X).sum(axis=1))}


@reference("reduce_all")
def _(X):
    return {"y": (X.sum()[None], lambda u: gamma(X.size + 64, u) * np.abs(X).sum()[None])}


@reference("transpose", "transpose_shared")
def _(X):
    return {"Y": exact(X.T)}


@reference("transpose_stack")
def _(X):
    return {"Y": exact(X.transpose(0, 2, 1))}


# ---- attention ------------------------------------------------------------------------------------------------------


def attend(q, k, v, scale, keep, u_value, tiny=2.0**-24):
    """One head: softmax(scale·q·kᵀ masked)·v with its error. `u_value` is the rounding of p before the second product,
    `tiny` a bound on the smallest step of p's type."""
    D, L = q.shape[1], k.shape[0]
    s = scale * (q @ k.T)
    size = np.abs(scale) * (np.abs(q) @ np.abs(k.T))
    s = np.where(keep, s, -np.inf)
    m = s.max(axis=1, keepdims=True)
    e = np.exp(s - m)
    l = e.sum(axis=1, keepdims=True)
    p = e / l
    value = p @ v

    def error(u):
        # an error δ of a score is a relative error δ of its weight, in numerator and in denominator
        delta = gamma(D + 8, u) * np.where(keep, size, 0) + gamma(4, u) * np.where(keep, np.abs(s - m), 0)
        relative = np.expm1(np.minimum(delta + gamma(APPROX + 2 * L + 8, u), 1.0)) + u_value
        mean = (p * relative).sum(axis=1, keepdims=True)
        # a weight below the normal range of its type loses up to half a step of it
        lost = tiny * np.abs(v).sum(axis=0) / l if u_value else 0.0
        return (p * (relative + mean)) @ np.abs(v) * 1.05 + lost

    def error_lse(u):
        delta = gamma(D + 8, u) * np.where(keep, size, 0) + gamma(4, u) * np.where(keep, np.abs(s - m), 0)
        top = np.abs(m[:, 0])
        return (p * delta).sum(axis=1) * 1.05 + gamma(L + APPROX + 8, u) + gamma(8, u) * (top + np.abs(np.log(l[:, 0])))

    return (value, error), (m[:, 0] + np.log(l[:, 0]), error_lse)


def heads(Q, K, V, scale, keep, u_value):
    B, H = Q.shape[:2]
    G = K.shape[1]
    out = [[attend(Q[b, h], K[b, h * G // H], V[b, h * G // H], scale, keep, u_value) for h in range(H)] for b in range(B)]

    def stack(which, shape):
        value = np.array([[o[which][0] for o in row] for row in out]).reshape(shape)
        return value, lambda u: np.array([[o[which][1](u) for o in row] for row in out]).reshape(shape)

    return stack(0, Q.shape), stack(1, Q.shape[:3])


def causal_mask(S, L):
    return np.arange(S)[:, None] + L - S >= np.arange(L)[None, :]


@reference("attention", "attention_lse")
def _(Q, K, V, scale, CAUSAL, u_value=0.0):
    S, L = Q.shape[2], K.shape[2]
    keep = causal_mask(S, L) if CAUSAL else np.ones((S, L), bool)
    o, e = heads(Q, K, V, scale, keep, u_value)
    return {"O": o, "E": e}


@reference("attention_window")
def _(Q, K, V, scale, w, u_value=0.0):
    S = Q.shape[2]
    ahead = np.arange(S)[:, None] - np.arange(S)[None, :]
    return {"O": heads(Q, K, V, scale, (ahead >= 0) & (ahead < w), u_value)[0]}


@reference("flash_decode")
def _(Q, KP, VP, table, len, scale, u_value=0.0):
    B, H, D = Q.shape
    PAGE, G = KP.shape[1], KP.shape[2]
    value, errors = np.zeros_like(Q), {}
    for b in range(B):
        n = int(len[b])
        at = [(int(table[b, t // PAGE]), t % PAGE) for t in range(n)]
        for h in range(H):
            k = np.array([KP[p, o, h * G // H] for p, o in at])
            v = np.array([VP[p, o, h * G // H] for p, o in at])
            (out, error), _ = attend(Q[b, h][None], k, v, scale, np.ones((1, n), bool), u_value)
            value[b, h], errors[b, h] = out[0], error

    def error(u):
        e = np.zeros_like(Q)
        for (b, h), f in errors.items():
            e[b, h] = f(u)[0]
        return e * 1.1

    return {"O": (value, error)}


# ---- atomics, gathers, random numbers ---------------------------------------------------------------------------------


@reference("histogram", "histogram_shared")
def _(X, H):
    inside = X[(X >= 0) & (X < H.size)]
    return {"H": exact(H + np.bincount(inside, minlength=H.size))}


@reference("add_column_sums")
def _(X, Y):
    weight = np.abs(Y) + np.abs(X).sum(axis=0)
    return {"Y": (Y + X.sum(axis=0), lambda u: gamma(X.shape[0] + 2, u) * weight)}


@reference("add_everything")
def _(X, Y):
    return {"Y": exact(Y + X.sum(dtype=X.dtype))}


@reference("extremes")
def _(X, Y):
    return {"Y": exact(np.array([max([Y[0], *X]), min([Y[1], *X])]))}


@reference("tickets")
def _(n, S):
    return {"n": exact(n + S.size), "S": exact(S + 1)}


@reference("scatter_add")
def _(X, I, Y):
    value, weight = Y.copy(), np.abs(Y)
    np.add.at(value, I, X)
    np.add.at(weight, I, np.abs(X))
    return {"Y": (value, lambda u: gamma(X.shape[0] + 1, u) * weight)}


@reference("embedding")
def _(E, I):
    return {"Y": exact(E[I])}


@reference("embed_tokens")
def _(E, I, P, s):
    return {"Y": pointwise(s * E[I] + P, np.abs(s * E[I]) + np.abs(P), 3)}


@reference("rope")
def _(X, C, S, pos):
    half = C.shape[1]
    a, b, c, s = X[:, :half], X[:, half:], C[pos], S[pos]
    value = np.concatenate([a * c - b * s, b * c + a * s], axis=1)
    weight = np.concatenate([np.abs(a * c) + np.abs(b * s), np.abs(b * c) + np.abs(a * s)], axis=1)
    return {"Y": pointwise(value, weight, 3)}


def philox4x32(counter, key):
    """Ten rounds (Salmon et al. 2011, section 3.3) on columns of counters; returns four arrays of words."""
    x = [np.asarray(c, dtype=np.uint64) for c in counter]
    k = [int(key[0]), int(key[1])]
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        a, b = x[0] * np.uint64(0xD2511F53), x[2] * np.uint64(0xCD9E8D57)
        x = [
            (b >> np.uint64(32)) ^ x[1] ^ np.uint64(k[0]),
            b & low,
            (a >> np.uint64(32)) ^ x[3] ^ np.uint64(k[1]),
            a & low,
        ]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return x


def stream(seed, offset, n):
    i = np.arange(n, dtype=np.uint64)
    low = np.uint64(0xFFFFFFFF)
    o = np.full(n, offset, np.uint64)
    return philox4x32([i & low, i >> np.uint64(32), o & low, o >> np.uint64(32)], [seed & 0xFFFFFFFF, seed >> 32])


@reference("dropout")
def _(X, p, seed, offset):
    u = (stream(seed, offset, X.size)[0] >> np.uint64(8)).astype(np.float64) * 2.0**-24
    value = np.where(u >= p, X / (1 - p), 0)
    return {"Y": pointwise(value, np.abs(value), 3)}


@reference("uniform_fill")
def _(seed, offset, N):
    return {"Y": exact((stream(seed, offset, N)[0] >> np.uint64(8)).astype(np.float64) * 2.0**-24)}


@reference("normal_fill")
def _(seed, offset, N):
    w = stream(seed, offset, N)
    u = (w[0] >> np.uint64(8)).astype(np.float64) * 2.0**-24 + 2.0**-24
    angle = 2 * math.pi * ((w[1] >> np.uint64(8)).astype(np.float64) * 2.0**-24)
    r = np.sqrt(-2 * np.log(u))
    # the angle's rounding turns the point; the logarithm near 1 is small and exact to its own roundoff
    return {"Y": (r * np.cos(angle), lambda v: r * (gamma(2 * MATH + 8, v) + gamma(4, v) * (1 + angle)))}


@reference("philox_words")
def _(X):
    rows = [philox4x32([np.array([c]) for c in row[:4]], row[4:6]) for row in X]
    return {"W": exact(np.array([[int(w[0]) for w in r] for r in rows], dtype=np.uint32).reshape(-1, 4))}


# counter, key, words (the generator's published test vectors: zeros, ones, digits of pi)
KNOWN = [
    ([0] * 4, [0] * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0], "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


@reference("philox_known", "philox_answers")
def _():
    return {"W": exact(np.array([[int(w, 16) for w in words.split()] for _, _, words in KNOWN], dtype=np.uint32))}


if __name__ == "__main__":
    for counter, key, answer in KNOWN:
        words = " ".join(f"{int(w[0]):08x}" for w in philox4x32([np.array([c]) for c in counter], key))
        assert words == answer, (words, answer)
    print("philox: 3 known answers right")
