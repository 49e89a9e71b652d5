"""Writes testdata/autocast/lists.tsv: which ops the installed PyTorch handles under autocast, by its own dispatcher,
and with which policy, where its header says that (the lists that CUDA shares with other backends).

    pip install torch==2.15.0
    python testdata/make/autocast_lists.py > testdata/autocast/lists.tsv
"""
import pathlib
import re

import torch

POLICIES = {
    "LOWER_PRECISION_FP": "lower",
    "FP32": "fp32",
    "FP32_SET_OPT_DTYPE": "fp32_result",
    "PROMOTE": "promote",
}

header = (pathlib.Path(torch.__file__).parent / "include/ATen/autocast_mode.h").read_text()
policies = {}
for macro, policy in POLICIES.items():
    body = re.search(rf"#define AT_FORALL_{macro}\(_\)(.*?[^\\])\n", header, re.S)[1]
    policies.update({op: policy for op in re.findall(r"_\((\w+)", body)})

kernels = {}
for name in torch._C._dispatch_get_all_op_names():
    if name.startswith("aten::"):
        for device, key in (("cuda", "AutocastCUDA"), ("cpu", "AutocastCPU")):
            if torch._C._dispatch_has_kernel_for_dispatch_key(name, key):
                kernels.setdefault(name[6:].split(".")[0], set()).add(device)

print(f"# PyTorch {torch.__version__}")
print("op\tcuda\tcpu\tpolicy_in_header")
for op in sorted(kernels):
    print(op, *("x" if d in kernels[op] else "-" for d in ("cuda", "cpu")), policies.get(op, "-"), sep="\t")
