#!/usr/bin/env bash
# The whole proof on a machine with an NVIDIA card: every conversion compared over all its inputs, then timed.
# Runs the release binary that is there (AMP_INSPECT names another), and builds nothing. Writes gpu.json, gpu.csv,
# gpu.md, gpu.png and gpu.txt into $OUT (the current folder, if unset). Takes less than four minutes, and is
# stopped then. Exit code: 0 all equal, 1 something differs, 2 no card, 124 too slow.
set -uo pipefail
cd "$(dirname "$0")/../.."
out=${OUT:-.}
binary=${AMP_INSPECT:-target/release/amp-inspect}
mkdir -p "$out"
{
    date -u +"%Y-%m-%d %H:%M UTC"
    "$binary" --version
    nvidia-smi --query-gpu=name,driver_version,clocks.max.memory,clocks.max.sm,power.limit --format=csv || true
    start=$SECONDS
    COLUMNS=120 timeout 230 "$binary" bench-gpu --quiet --no-color "$@" \
        --save "$out/gpu.json" --save "$out/gpu.csv" --save "$out/gpu.md" --save "$out/gpu.png"
    code=$?
    echo "exit code $code after $((SECONDS - start)) s"
    exit "$code"
} 2>&1 | tee "$out/gpu.txt"
exit "${PIPESTATUS[0]}"
