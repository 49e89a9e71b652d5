//! A kernel of the user's own, checked as the instructions are: a cast in CUDA C++, to which the walk over all
//! float32 is added here.

use super::driver::{self, Device};
use super::ptx::WALK_LOG2;
use super::target::Version;
use crate::error::{Error, Result};

/// What a file must define: the code of `x`, in the low bits.
pub const SIGNATURE: &str = "__device__ unsigned cast(float x)";
/// Its name in PTX.
const MANGLED: &str = "_Z4castf";

/// PTX of the cast in a file of this name, with the walk around it, by NVRTC.
///
/// # Errors
/// NVRTC is not installed, or rejects the source; or that defines no such cast.
pub fn compile(source: &str, name: &str, device: &Device) -> Result<String> {
    let ptx = driver::compile(&program(source), name, device.target)?;
    if ptx.contains(".extern .func") && ptx.contains(MANGLED) {
        return Err(Error::new(format!("it does not define  {SIGNATURE}")));
    }
    Ok(with_version(&ptx, device.newest_ptx()))
}

/// The PTX in a version that the driver takes, if that is older than what NVRTC writes.
fn with_version(ptx: &str, newest: Version) -> String {
    let lowered = |line: &str| -> Option<String> {
        let (major, minor) = line.strip_prefix(".version ")?.trim().split_once('.')?;
        let version = (major.parse().ok()?, minor.parse().ok()?);
        (version > newest).then(|| format!(".version {}.{}", newest.0, newest.1))
    };
    ptx.lines().map(|line| lowered(line).unwrap_or(line.to_owned()) + "\n").collect()
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
