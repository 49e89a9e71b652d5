#!/usr/bin/env python3
"""Codes of 1.3 cast to e4m3fn with stochastic rounding, for three seeds: what tests/casts/options.rs expects.

Philox4x32-10 written out from the paper (Salmon et al., SC 2011); 16 random bits added to the first 16
discarded significand bits of 1.3f, as cvt.rs does. Needs nothing but Python.
"""
import struct


def philox(key, counter):
    k, c = list(key), list(counter)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & 0xFFFFFFFF, (p0 >> 32) ^ c[3] ^ k[1], p0 & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


bits = struct.unpack("<I", struct.pack("<f", 1.3))[0]
below, fraction = 0x38 + (bits >> 20 & 7), bits >> 4 & 0xFFFF
for seed in (0, 1, 2**64 - 1):
    draws = [philox((seed & 0xFFFFFFFF, seed >> 32), (i // 4, 0, 0, 0))[i % 4] for i in range(8)]
    print(hex(seed), [hex(below + (fraction + (d & 0xFFFF) >> 16)) for d in draws])
