"""Arrays on disk in the forms that the command line reads and writes, and exact conversion to and from float64."""

from pathlib import Path

import ml_dtypes
import numpy as np

NUMPY = {
    "f8e4m3": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "bool": np.bool_,
    **{f"{k}{n}": getattr(np, f"{'u' if k == 'u' else ''}int{n}") for k in "iu" for n in (8, 16, 32, 64)},
}

# types that numpy has no name for travel as raw bytes; two of them are bf16, of one the kernel's parameter says what it is
RAW = {"bf16": "V2", "f8e4m3": "V1", "f8e5m2": "V1"}


def rounded(values, dtype):
    """The values as an array of `dtype`, rounded to nearest even; u4 stays one number a byte here."""
    if dtype in ("u4", "i4"):
        return np.asarray(values).astype(np.int8 if dtype == "i4" else np.uint8)
    with np.errstate(over="ignore"):
        return np.asarray(values).astype(NUMPY[dtype])


def widened(array, dtype):
    """Floats exactly as float64, integers and bools as they are."""
    return np.asarray(array).astype(np.float64) if dtype[0] in "fb" and dtype != "bool" else np.asarray(array)


def save(path: Path, array, dtype):
    if dtype in ("u4", "i4"):
        # element 2i in the low nibble of byte i of the last axis
        low, high = array[..., 0::2].astype(np.uint8) & 15, array[..., 1::2].astype(np.uint8) & 15
        array = low | (high << 4)
    elif dtype in RAW:
        array = array.view(RAW[dtype])
    np.save(path, np.ascontiguousarray(array))


def load(path: Path, dtype):
    array = np.load(path)
    return array.view(NUMPY[dtype]) if dtype in RAW else array
