//! A kernel of the user's own, checked as the instructions are: a cast in CUDA C++, to which the walk over all
//! float32 is added here.

use super::driver;
use super::ptx::WALK_LOG2;
use super::table::Target;
use crate::error::Result;

/// What a file must define: the code of `x`, in the low bits.
pub const SIGNATURE: &str = "__device__ unsigned cast(float x)";

/// PTX of the cast with the walk around it, by NVRTC.
///
/// # Errors
/// NVRTC is not installed, or rejects the source.
pub fn compile(source: &str, target: &Target) -> Result<String> {
    Ok(with_version(&driver::compile(&program(source), target)?, target))
}

/// The PTX with the version that the target needs: NVRTC writes its own, which the driver may be too old for.
fn with_version(ptx: &str, target: &Target) -> String {
    let (major, minor) = target.version;
    let line = |line: &str| match line.starts_with(".version ") {
        true => format!(".version {major}.{minor}\n"),
        false => format!("{line}\n"),
    };
    ptx.lines().map(line).collect()
}

/// The whole program: the same walk as [`ptx::job`](super::ptx::job) writes, in CUDA C++.
pub fn program(source: &str) -> String {
    format!(
        "\
{SIGNATURE};
extern \"C\" __global__ void walk(
    uint2 *out, unsigned long long *counters, unsigned capacity, unsigned partner,
    unsigned lane, unsigned random)
{{
    unsigned first = (blockIdx.x * blockDim.x + threadIdx.x) << {WALK_LOG2};
    unsigned before = cast(__uint_as_float(first - 1));
    for (unsigned at = 0; at < (1u << {WALK_LOG2}); at++) {{
        unsigned x = first + at, y = cast(__uint_as_float(x));
        if (y != before || x == 0) {{
            unsigned slot = atomicAdd((unsigned *)counters, 1u);
            if (slot < capacity) out[slot] = make_uint2(x, y);
        }}
        before = y;
    }}
    atomicAdd(counters + 1, 1ull << {WALK_LOG2});
}}
#line 1
{source}
"
    )
}
