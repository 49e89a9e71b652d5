"""Packs recorded scaler trajectories (a folder of NAME.csv[.gz] and NAME.json) into testdata/scalers, or with
--fp8 the scale rules of FP8 recipes among them into testdata/fp8.

usage: pack_scalers.py FOLDER_OF_RECORDINGS testdata/scalers
       pack_scalers.py FOLDER_OF_RECORDINGS testdata/fp8 --fp8

Every CSV is gzipped without a time stamp, so that the same input gives the same bytes; what stood in the
JSON files goes into one index.json.
"""

import gzip
import json
import pathlib
import sys

# Scale rules of FP8 recipes: no loss scalers.
FP8 = ("te_", "fp8_")

source, target = map(pathlib.Path, sys.argv[1:3])
fp8 = sys.argv[3:] == ["--fp8"]
index = {}
for folder in sorted(path for path in source.iterdir() if path.is_dir()):
    if folder.name.startswith(FP8) != fp8:
        continue
    for path in sorted(folder.glob("*.csv*")):
        name = path.name.removesuffix(".gz").removesuffix(".csv")
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        packed = target / folder.name / f"{name}.csv.gz"
        packed.parent.mkdir(parents=True, exist_ok=True)
        packed.write_bytes(gzip.compress(text, 9, mtime=0))
        about = folder / f"{name}.json"
        index[f"{folder.name}/{name}"] = json.loads(about.read_text()) if about.exists() else {}
rows = (f"{json.dumps(name)}: {json.dumps(about, sort_keys=True)}" for name, about in index.items())
(target / "index.json").write_text("{\n" + ",\n".join(rows) + "\n}\n")
