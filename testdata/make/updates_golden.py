#!/usr/bin/env python3
"""Record what torch's optimizers make of weights: testdata/training/updates.npz.

Needs: pip install torch numpy.  Run: python updates_golden.py OUT.npz
Inputs are random numbers of the size that weights, gradients and moments have, from numpy's PCG64 with a fixed
seed, so a second run gives the same file. bfloat16 results are widened to float32, which is exact.
"""
import sys
import numpy as np
import torch

# A multiple of every vector's length: torch rounds elements that fill no vector otherwise (no fused operations).
N, STEP, LR, DECAY = 2048, 1501, 1e-3, 0.01
torch.set_num_threads(1)
random = np.random.default_rng(7)


def draw(scale, spread):
    """Log-normal magnitudes of both signs, one zero in fifty."""
    x = random.choice([-1.0, 1.0], N) * scale * 2.0 ** random.normal(0, spread, N)
    x[random.random(N) < 0.02] = 0
    return torch.tensor(x, dtype=torch.float32)


w, g, m = draw(0.02, 2), draw(1e-3, 4), draw(1e-3, 3)
v = (draw(1e-3, 3) ** 2).abs()
out = {"w": w, "g": g, "m": m, "v": v}


def adamw(dtype, fused, name, decay=DECAY, rule=torch.optim.AdamW):
    p = torch.nn.Parameter(w.to(dtype, copy=True))
    p.grad = g.to(dtype)
    optimizer = rule([p], lr=LR, weight_decay=decay, fused=fused, foreach=None if fused else False)
    optimizer.state[p] = {
        "step": torch.tensor(float(STEP)),
        "exp_avg": m.to(dtype, copy=True),
        "exp_avg_sq": v.to(dtype, copy=True),
    }
    optimizer.step()
    state = optimizer.state[p]
    out[name] = p.detach()
    out[name + ".exp_avg"] = state["exp_avg"]
    out[name + ".exp_avg_sq"] = state["exp_avg_sq"]
    # Not always the nearest number: torch takes its square roots from the vector library that it is built with.
    out[name + ".sqrt"] = state["exp_avg_sq"].sqrt()


adamw(torch.float32, False, "adamw_f32")
adamw(torch.float32, False, "adam_f32", 0.1, torch.optim.Adam)
adamw(torch.bfloat16, True, "adamw_bf16_fused")
adamw(torch.bfloat16, True, "adamw_bf16_fused_no_decay", 0.0)
adamw(torch.bfloat16, False, "adamw_bf16_plain")
for dtype, name in [(torch.float32, "add_f32"), (torch.bfloat16, "add_bf16"), (torch.float16, "add_f16")]:
    out[name] = w.to(dtype, copy=True).add_(g.to(dtype), alpha=-LR)
p = torch.nn.Parameter(w.clone())
p.grad = g.clone()
torch.optim.SGD([p], lr=LR, weight_decay=0.1, foreach=False).step()
out["sgd_f32_decay"] = p.detach()
# The same update a hundred times: stagnation.
p = w.to(torch.bfloat16)
for _ in range(100):
    p.add_(g.to(torch.bfloat16), alpha=-LR)
out["add_bf16_100"] = p
np.savez_compressed(sys.argv[1], **{name: x.float().numpy() for name, x in out.items()})
print("torch", torch.__version__, "numpy", np.__version__)
