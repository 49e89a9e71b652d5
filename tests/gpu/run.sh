#!/usr/bin/env bash
# The whole proof on a machine with an NVIDIA card: every conversion compared over all its inputs, then buffers timed,
# then, if the machine has NVRTC, a kernel in CUDA C++ compared. Runs the release binary that is there (AMP_INSPECT
# names another), and builds and installs nothing. Writes gpu.json, gpu.csv, gpu.md, gpu.png, gpu_kernel.json and
# gpu.txt, the log of all of it, into $OUT (the current folder, if unset). Takes less than four minutes, and is
# stopped then. Arguments go to the first run: --quick, say.
# Exit code: 0 all equal, 1 something differs, 2 no card or nothing to run, 124 too slow.
set -uo pipefail
cd "$(dirname "$0")/../.."
out=${OUT:-.}
binary=${AMP_INSPECT:-target/release/amp-inspect}
mkdir -p "$out"

# A folder with an NVRTC under a name that the tool looks for, wherever the machine has one.
nvrtc_folder() {
    local found
    found=$(timeout 20 find /usr/local /usr/lib /usr/lib64 /opt /root /home /tmp "${VIRTUAL_ENV:-/opt}" \
        -name 'libnvrtc.so*' -not -path '*/stubs/*' 2>/dev/null | sort -V | tail -1)
    [ -n "$found" ] || return 1
    ln -sf "$found" "$1/libnvrtc.so" && dirname "$found"
}

run() {
    date -u +"%Y-%m-%d %H:%M UTC"
    "$binary" --version || { echo "$binary does not run here"; return 2; }
    nvidia-smi --query-gpu=name,driver_version,clocks.max.memory,clocks.max.sm,power.limit --format=csv || true
    local start=$SECONDS code links libraries
    COLUMNS=120 timeout 180 "$binary" bench-gpu --quiet --no-color "$@" \
        --save "$out/gpu.json" --save "$out/gpu.csv" --save "$out/gpu.md" --save "$out/gpu.png"
    code=$?
    echo "exit code $code after $((SECONDS - start)) s"
    [ "$code" -le 1 ] || return "$code"
    links=$(mktemp -d)
    if libraries=$(nvrtc_folder "$links"); then
        LD_LIBRARY_PATH="$links:$libraries:${LD_LIBRARY_PATH:-}" COLUMNS=120 timeout 30 "$binary" bench-gpu --quiet \
            --no-color --kernel testdata/kernels/e4m3.cu --formats e4m3fn --save "$out/gpu_kernel.json"
        local kernel=$?
        echo "kernel in CUDA C++: exit code $kernel after $((SECONDS - start)) s in all"
        [ "$kernel" -ne 1 ] || code=1
    else
        echo "kernel in CUDA C++: not tried, this machine has no NVRTC"
    fi
    rm -r "$links"
    return "$code"
}

run "$@" 2>&1 | tee "$out/gpu.txt"
exit "${PIPESTATUS[0]}"
