"""Packs step lists (NAME.steps) into testdata/casts/NAME.steps.gz; the layout is in testdata/casts/README.md.

    python3 testdata/make/pack_steps.py FOLDER_OF_STEPS_FILES

Standard library only. The same input gives the same bytes (no name, no time in the gzip header).
"""

import gzip
import io
import struct
import sys
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "casts"


def pack(steps: bytes) -> bytes:
    records = list(struct.iter_unpack("<IH", steps))
    firsts = [first for first, _ in records]
    codes = [code for _, code in records]
    if not records or firsts[0] != 0:
        raise ValueError("the first step must start at input 0")
    if any(a >= b for a, b in zip(firsts, firsts[1:])):
        raise ValueError("the steps are not in ascending order")
    # Runs of equal differences compress far better than the values, and columns better than records.
    first_deltas = [b - a for a, b in zip([0] + firsts, firsts)]
    code_deltas = [(b - a) & 0xFFFF for a, b in zip([0] + codes, codes)]
    columns = struct.pack(f"<{len(records)}I", *first_deltas) + struct.pack(f"<{len(records)}H", *code_deltas)
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, compresslevel=9, mtime=0) as stream:
        stream.write(columns)
    return packed.getvalue()


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    files = sorted(Path(sys.argv[1]).glob("*.steps"))
    if not files:
        sys.exit(f"no .steps file in {sys.argv[1]}")
    OUT.mkdir(exist_ok=True)
    total = 0
    for file in files:
        packed = pack(file.read_bytes())
        (OUT / f"{file.name}.gz").write_bytes(packed)
        total += len(packed)
    print(f"{len(files)} lists, {total} bytes")


main()
