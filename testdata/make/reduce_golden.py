#!/usr/bin/env python3
"""Record what torch's all-reduce makes of four ranks: testdata/training/reduce.npz.

Needs: pip install torch numpy.  Run: python reduce_golden.py OUT.npz
Four processes with the gloo backend on this machine; random inputs from numpy's PCG64 with a fixed seed. Results
are widened to float32, which is exact.
"""
import os
import sys
import tempfile

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

RANKS, N = 4, 1000
TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


def inputs():
    random = np.random.default_rng(3)
    x = random.choice([-1.0, 1.0], (RANKS, N)) * 2.0 ** random.normal(-8, 3, (RANKS, N))
    return x.astype(np.float32)


def worker(rank, folder, out):
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=RANKS)
    x = torch.tensor(inputs()[rank])
    results = {}
    for name, dtype in TYPES.items():
        total = x.to(dtype, copy=True)
        dist.all_reduce(total)
        results["sum_" + name] = total.float().numpy()
        # As DDP does: divided before, summed.
        mean = x.to(dtype, copy=True).div_(RANKS)
        dist.all_reduce(mean)
        results["mean_" + name] = mean.float().numpy()
    if rank == 0:
        np.savez_compressed(out, **{f"rank{r}": row for r, row in enumerate(inputs())}, **results)
        print("torch", torch.__version__, "numpy", np.__version__)
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(worker, args=(folder, os.path.abspath(sys.argv[1])), nprocs=RANKS)
