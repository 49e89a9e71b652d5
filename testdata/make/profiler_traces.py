"""Writes testdata/profiler/{no_cache,recomputed}.json.gz: steps in which autocast casts a weight more than once.

    pip install torch==2.15.0
    python testdata/make/profiler_traces.py testdata/profiler
"""
import contextlib
import gzip
import pathlib
import sys
import tempfile

import torch
from torch import nn
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile
from torch.utils.checkpoint import checkpoint

out = pathlib.Path(sys.argv[1])
torch.set_num_threads(1)
torch.manual_seed(0)


def record(name, step):
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as recorded:
        step()
    # The trace names its own path.
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        recorded.export_chrome_trace("trace.json")
        trace = pathlib.Path("trace.json").read_bytes()
    (out / f"{name}.json.gz").write_bytes(gzip.compress(trace, mtime=0))


x = torch.randn(8, 16)
w, w2 = nn.Parameter(torch.randn(32, 16)), nn.Parameter(torch.randn(24, 32))


def no_cache():
    """One weight used six times in a region without the cache, and another once."""
    with torch.autocast("cpu", torch.bfloat16, cache_enabled=False):
        y = sum(F.linear(x, w).float().sum() for _ in range(5)) + F.linear(F.linear(x, w), w2).float().sum()
    y.backward()


block = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16))


def recomputed():
    """Two layers whose activations are computed again in the backward pass."""
    with torch.autocast("cpu", torch.bfloat16):
        y = checkpoint(block, x, use_reentrant=False)
    y.float().sum().backward()


record("no_cache", no_cache)
record("recomputed", recomputed)
