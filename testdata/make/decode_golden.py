"""Writes testdata/formats: what every code of every format up to 16 bits means to ml_dtypes and NumPy.

    pip install ml_dtypes==0.6.0 numpy==2.4.6
    python3 testdata/make/decode_golden.py

The layout is in testdata/formats/README.md. The same versions give the same bytes.
"""

import gzip
import io
from pathlib import Path

import ml_dtypes
import numpy as np

OUT = Path(__file__).resolve().parent.parent / "formats"

NAMES = [
    "float16",
    "bfloat16",
    "float8_e5m2",
    "float8_e4m3fn",
    "float8_e4m3",
    "float8_e3m4",
    "float8_e5m2fnuz",
    "float8_e4m3fnuz",
    "float8_e4m3b11fnuz",
    "float6_e3m2fn",
    "float6_e2m3fn",
    "float4_e2m1fn",
    "float8_e8m0fnu",
]


def dtype_and_info(name):
    if name == "float16":
        return np.dtype(np.float16), np.finfo(np.float16)
    return np.dtype(getattr(ml_dtypes, name)), ml_dtypes.finfo(getattr(ml_dtypes, name))


def bits_of(number) -> int:
    return int(np.asarray(number).astype(np.float64).reshape(1).view(np.uint64)[0])


def main() -> None:
    OUT.mkdir(exist_ok=True)
    table = ["# f64 bits in hexadecimal, from ml_dtypes 0.6.0's finfo (float16: NumPy 2.4.6's)"]
    table.append("name,bits,max,smallest_normal,smallest_subnormal,eps")
    for name in NAMES:
        dtype, info = dtype_and_info(name)
        unsigned = np.uint16 if dtype.itemsize == 2 else np.uint8
        with np.errstate(invalid="ignore"):  # converting a signalling NaN raises the flag, rightly
            values = np.arange(2**info.bits, dtype=unsigned).view(dtype).astype(np.float64)
        planes = values.view(np.uint8).reshape(-1, 8).T.tobytes()
        packed = io.BytesIO()
        with gzip.GzipFile(filename="", mode="wb", fileobj=packed, compresslevel=9, mtime=0) as stream:
            stream.write(planes)
        (OUT / f"{name}.f64.gz").write_bytes(packed.getvalue())
        constants = (info.max, info.smallest_normal, info.smallest_subnormal, info.eps)
        table.append(",".join([name, str(info.bits)] + [f"{bits_of(c):016x}" for c in constants]))
    (OUT / "finfo.csv").write_text("\n".join(table) + "\n")


main()
