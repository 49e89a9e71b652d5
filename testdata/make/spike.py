"""Makes testdata/fp8/spike: 24 steps of two gradients, with a spike in one and an Inf in the other.

usage: spike.py testdata/gpt/grads_step01500.safetensors testdata/fp8/spike

The values are those of a real step, times a factor that wanders by less than a quarter of a binade. At step 8 the
first tensor is 1000 times as large; at step 12 one element of the second is Inf.
"""

import json
import math
import pathlib
import struct
import sys

NAMES = ("h.0.ln_1.weight", "h.0.fc.bias")

source, target = map(pathlib.Path, sys.argv[1:])
data = source.read_bytes()
(length,) = struct.unpack_from("<Q", data)
header = json.loads(data[8 : 8 + length])
tensors = {}
for name in NAMES:
    start, end = header[name]["data_offsets"]
    tensors[name] = struct.unpack(f"<{(end - start) // 4}f", data[8 + length + start : 8 + length + end])
target.mkdir(parents=True, exist_ok=True)
for step in range(24):
    factor = 2.0 ** (0.2 * math.sin(2.7 * step))
    entries, body = {"__metadata__": {"step": str(step)}}, b""
    for name, values in tensors.items():
        values = [factor * value for value in values]
        if step == 8 and name == NAMES[0]:
            values = [1000 * value for value in values]
        if step == 12 and name == NAMES[1]:
            values[17] = math.inf
        start = len(body)
        body += struct.pack(f"<{len(values)}f", *values)
        entries[name] = {"dtype": "F32", "shape": [len(values)], "data_offsets": [start, len(body)]}
    head = json.dumps(entries).encode()
    head += b" " * (-len(head) % 8)
    (target / f"grads_step{step:05}.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + body)
