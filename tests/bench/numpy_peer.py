"""What `cargo bench --bench histogram -- numpy` compares with: the eight formats by NumPy and ml_dtypes, in one process.

Careful, as one writes it for files that are larger than memory: the file is mapped, and everything is done
chunk by chunk in the caches. tf32 is not in ml_dtypes and is rounded by integer operations here.

    python tests/bench/numpy_peer.py FILE.npy
"""

import json
import sys

import ml_dtypes
import numpy as np

CHUNK = 1 << 18


def tf32(x):
    bits = x.view(np.uint32)
    rounded = (bits + (0xFFF + ((bits >> 13) & 1))) & np.uint32(0xFFFFE000)
    return rounded.view(np.float32)


FORMATS = {
    "float16": (lambda x: x.astype(np.float16).astype(np.float32), 65520.0, 2.0**-14),
    "bfloat16": (lambda x: x.astype(ml_dtypes.bfloat16).astype(np.float32), float(np.finfo(np.float32).max), 2.0**-126),
    "tf32": (tf32, float(np.finfo(np.float32).max), 2.0**-126),
    "e5m2": (lambda x: x.astype(ml_dtypes.float8_e5m2).astype(np.float32), 61440.0, 2.0**-14),
    "e4m3fn": (lambda x: np.clip(x, -448, 448).astype(ml_dtypes.float8_e4m3fn).astype(np.float32), 464.0, 2.0**-6),
    "e3m2fn": (lambda x: x.astype(ml_dtypes.float6_e3m2fn).astype(np.float32), 30.0, 2.0**-2),
    "e2m3fn": (lambda x: x.astype(ml_dtypes.float6_e2m3fn).astype(np.float32), 7.75, 1.0),
    "e2m1fn": (lambda x: x.astype(ml_dtypes.float4_e2m1fn).astype(np.float32), 7.0, 1.0),
}


class Totals:
    def __init__(self):
        self.underflow = self.subnormal = self.overflow = self.nonzero = 0
        self.noise = self.signal = self.relative = self.max_abs = self.max_rel = 0.0

    def add(self, x, magnitude, nonzero, q, overflow, min_normal):
        size = np.abs(q)
        lost = (size == 0) & nonzero
        self.underflow += int(np.count_nonzero(lost))
        self.subnormal += int(np.count_nonzero((size > 0) & (size < min_normal)))
        self.overflow += int(np.count_nonzero(magnitude >= overflow))
        kept = np.isfinite(q)
        error = np.abs(x[kept].astype(np.float64) - q[kept])
        of = magnitude[kept].astype(np.float64)
        self.noise += float(np.dot(error, error))
        self.signal += float(np.dot(of, of))
        self.max_abs = max(self.max_abs, float(error.max(initial=0)))
        some = of > 0
        ratio = error[some] / of[some]
        self.nonzero += ratio.size
        self.relative += float(ratio.sum())
        self.max_rel = max(self.max_rel, float(ratio.max(initial=0)))


def main(path):
    data = np.load(path, mmap_mode="r").reshape(-1)
    source = dict(zeros=0, nan=0, inf=0, amax=0.0, amin=np.inf, sum=0.0)
    binades = np.zeros(256, np.int64)
    totals = {name: Totals() for name in FORMATS}
    for start in range(0, data.size, CHUNK):
        chunk = np.array(data[start : start + CHUNK])
        finite = np.isfinite(chunk)
        source["nan"] += int(np.count_nonzero(np.isnan(chunk)))
        source["inf"] += int(np.count_nonzero(np.isinf(chunk)))
        x = chunk[finite]
        magnitude = np.abs(x)
        nonzero = magnitude > 0
        source["zeros"] += int(x.size - np.count_nonzero(nonzero))
        source["amax"] = max(source["amax"], float(magnitude.max(initial=0)))
        source["amin"] = min(source["amin"], float(magnitude[nonzero].min(initial=np.inf)))
        source["sum"] += float(x.sum(dtype=np.float64))
        binades += np.bincount(magnitude[nonzero].view(np.uint32) >> 23, minlength=256)
        with np.errstate(all="ignore"):
            for name, (cast, overflow, min_normal) in FORMATS.items():
                totals[name].add(x, magnitude, nonzero, cast(x), overflow, min_normal)
    formats = {name: vars(total) for name, total in totals.items()}
    json.dump({"source": source, "binades": binades.tolist(), "formats": formats}, sys.stdout)


main(sys.argv[1])
