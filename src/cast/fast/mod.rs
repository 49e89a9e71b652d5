//! Runs plain loops compiled for the widest vectors that this processor has.
//!
//! A kernel is ordinary safe code over blocks of numbers; the compiler vectorises one copy of it for each
//! [`Level`]. Every copy does the same operations in the same order, so results are the same bytes on
//! every level. [`mod@slice`] has the casts themselves, [`slice_decode`] the way back, [`slice_blocks`] those of
//! blocks, [`block_scales`] their scales, [`hardware`] those that the processor brings along.

pub mod block_scales;
pub mod hardware;
pub mod nearest;
pub mod slice;
pub mod slice_blocks;
pub mod slice_decode;

use std::sync::OnceLock;

/// Instruction sets that kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What every processor of the architecture has.
    Portable,
    /// x86-64 with AVX2 and FMA, as of 2013.
    Avx2,
    /// x86-64 with AVX-512 F, BW, DQ and VL, as of 2017.
    Avx512,
}

impl Level {
    /// All levels, least first.
    pub const ALL: [Self; 3] = [Self::Portable, Self::Avx2, Self::Avx512];

    /// The best level of this processor, or the one that `AMP_INSPECT_SIMD` names if it is there too.
    pub fn best() -> Self {
        static BEST: OnceLock<Level> = OnceLock::new();
        *BEST.get_or_init(|| {
            let asked = std::env::var("AMP_INSPECT_SIMD").ok();
            let available = || Self::ALL.into_iter().filter(|level| level.is_available());
            let named = asked.and_then(|name| available().find(|level| level.name() == name));
            named.or_else(|| available().next_back()).unwrap_or(Self::Portable)
        })
    }

    /// The name in reports and in `AMP_INSPECT_SIMD`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    /// Whether it has an instruction for [`f32::mul_add`], which is a call of a slow function elsewhere.
    pub fn fuses(self) -> bool {
        self != Self::Portable
    }

    /// Whether this processor can run it.
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                Self::Avx2.is_available()
                    && std::is_x86_feature_detected!("avx512f")
                    && std::is_x86_feature_detected!("avx512bw")
                    && std::is_x86_feature_detected!("avx512dq")
                    && std::is_x86_feature_detected!("avx512vl")
            }
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2 | Self::Avx512 => false,
        }
    }
}

/// Work to be compiled for each level. `run` must be `#[inline(always)]`, else it is compiled once, for
/// the least.
pub trait Kernel {
    /// What the work gives.
    type Out;

    /// Does the work.
    fn run(self) -> Self::Out;
}

/// Runs `kernel` compiled for `level`, or for the least level if this processor lacks it.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
pub fn run<K: Kernel>(level: Level, kernel: K) -> K::Out {
    #[target_feature(enable = "avx2,fma")]
    fn avx2<K: Kernel>(kernel: K) -> K::Out {
        kernel.run()
    }
    #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
    fn avx512<K: Kernel>(kernel: K) -> K::Out {
        kernel.run()
    }
    match level {
        // SAFETY: the processor has the features that the function is compiled for.
        Level::Avx512 if level.is_available() => unsafe { avx512(kernel) },
        // SAFETY: as above.
        Level::Avx2 if level.is_available() => unsafe { avx2(kernel) },
        _ => kernel.run(),
    }
}

/// Runs `kernel`: there is one level on this architecture.
#[cfg(not(target_arch = "x86_64"))]
pub fn run<K: Kernel>(_: Level, kernel: K) -> K::Out {
    kernel.run()
}
