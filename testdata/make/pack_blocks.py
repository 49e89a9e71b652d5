"""Packs torchao's block casts (one .npz a case) into testdata/blocks; the layout is in its README.md.

    python3 testdata/make/pack_blocks.py FOLDER

FOLDER holds NAME.input.npy and NAME.CASE.npz with the arrays scale, codes and, for two-level NVFP4, global.
Standard library only. The same input gives the same bytes (no name, no time in the gzip header).
"""

import ast
import gzip
import io
import sys
import zipfile
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "blocks"


def data(npy: bytes) -> bytes:
    """The elements of a version 1 .npy file in C order."""
    if npy[:8] != b"\x93NUMPY\x01\x00":
        raise ValueError("not a version 1 .npy file")
    end = 10 + int.from_bytes(npy[8:10], "little")
    if ast.literal_eval(npy[10:end].decode())["fortran_order"]:
        raise ValueError("in Fortran order")
    return npy[end:]


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    OUT.mkdir(exist_ok=True)
    table = ["input,case,scale_bytes,code_bytes,global_bytes"]
    total = 0
    for source in sorted(folder.glob("*.input.npy")):
        name = source.name.removesuffix(".input.npy")
        content = data(source.read_bytes())
        for case in sorted(folder.glob(f"{name}.*.npz")):
            with zipfile.ZipFile(case) as arrays:
                names = arrays.namelist()
                parts = [
                    data(arrays.read(f"{part}.npy")) if f"{part}.npy" in names else b""
                    for part in ("scale", "codes", "global")
                ]
            sizes = ",".join(str(len(part)) for part in parts)
            table.append(f"{name},{case.name.removeprefix(name + '.').removesuffix('.npz')},{sizes}")
            content += b"".join(parts)
        packed = io.BytesIO()
        with gzip.GzipFile(filename="", mode="wb", fileobj=packed, compresslevel=9, mtime=0) as stream:
            stream.write(content)
        (OUT / f"{name}.gz").write_bytes(packed.getvalue())
        total += len(packed.getvalue())
    (OUT / "cases.csv").write_text("\n".join(table) + "\n")
    print(f"{len(table) - 1} cases, {total} bytes")


main()
