//! The card: whether there is one, what it is, and how kernels run on it. The only unsafe code of the layer.
//!
//! The driver is first asked by hand, with its codes taken as integers: cudarc panics where the library or
//! a function is missing, and takes each code for one of an enum, which a code that it does not know is not.
//! Once the library, its functions, the device and a context have answered, cudarc does the rest. A code
//! that is new in a driver and comes only from a later call is not guarded against.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::sync::Arc;

use cudarc::driver::sys::{CUdevice_attribute, CUevent_flags};
use cudarc::driver::{
    CudaContext, CudaModule, CudaSlice, CudaStream, DriverError, LaunchConfig, PushKernelArg,
};
use cudarc::nvrtc::{CompileError, CompileOptions, Ptx, compile_ptx_with_opts};
use libloading::{Library, Symbol};

use super::absent::{Absent, meaning};
use super::answer::{Answer, POISON};
use super::ptx::BLOCK;
use super::steps::Beside;
use super::target::{Target, Version, least_driver, newest_ptx};
use crate::error::{Error, Result, escape};

/// Functions of the driver that are called here or by cudarc.
const FUNCTIONS: &[&str] = &[
    "cuInit",
    "cuDriverGetVersion",
    "cuDeviceGetCount",
    "cuDeviceGet",
    "cuDeviceGetName",
    "cuDeviceGetAttribute",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2",
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuModuleLoadData",
    "cuModuleGetFunction",
    "cuModuleUnload",
    "cuMemAlloc_v2",
    "cuMemAllocAsync",
    "cuMemFree_v2",
    "cuMemFreeAsync",
    "cuMemsetD8Async",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyDtoDAsync_v2",
    "cuLaunchKernel",
    "cuStreamSynchronize",
    "cuEventCreate",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuEventElapsedTime",
    "cuEventDestroy_v2",
];

const INSTALL: &str = "install the NVIDIA driver, or use --cpu-only or --dry-run";

/// The least driver, by the CUDA version that it supports, that loads any PTX made here.
const LEAST: i32 = 11_000;

type Ask<A> = unsafe extern "C" fn(A) -> c_int;

/// Looks for a driver and for the device, and makes sure that nothing that cudarc asks can be missing. Returns
/// the CUDA version that the driver supports, as 13.0 is 13000.
///
/// # Errors
/// There is none that can be used.
pub(super) fn driver(ordinal: u32) -> std::result::Result<i32, Absent> {
    let library = ["cuda", "nvcuda"]
        .iter()
        .flat_map(|name| cudarc::get_lib_name_candidates(name))
        // SAFETY: the driver's library has initialisers that may run in any process.
        .find_map(|name| unsafe { Library::new(name) }.ok())
        .ok_or_else(|| Absent::new("no NVIDIA driver: libcuda.so.1 was not found", INSTALL))?;
    let missing = FUNCTIONS.iter().find(|name| {
        // SAFETY: the symbol is only looked for.
        unsafe { library.get::<*const c_void>(name.as_bytes()) }.is_err()
    });
    if let Some(name) = missing {
        return Err(Absent::new(format!("libcuda lacks {name}"), "update the NVIDIA driver"));
    }
    let check = |function: &str, code: c_int| match code {
        0 => Ok(()),
        code => Err(Absent::answered(function, code)),
    };
    let find = |name: &str| format!("{name}\0");
    macro_rules! ask {
        ($name:literal, $kind:ty, $($argument:expr),+) => {{
            // SAFETY: the function has this signature since CUDA 4, and the pointers are to live variables.
            let code = unsafe {
                let function: std::result::Result<Symbol<$kind>, _> = library.get(find($name).as_bytes());
                function.map_or(500, |function| function($($argument),+))
            };
            check($name, code)?;
        }};
    }
    let (mut version, mut count, mut device) = (0, 0, 0);
    let mut context: *mut c_void = std::ptr::null_mut();
    ask!("cuInit", Ask<u32>, 0);
    ask!("cuDriverGetVersion", Ask<*mut c_int>, &mut version);
    if version < LEAST {
        let what = format!("the driver supports CUDA {} only", cuda(version));
        return Err(Absent::new(what, "update the NVIDIA driver: CUDA 11.0 is the least"));
    }
    ask!("cuDeviceGetCount", Ask<*mut c_int>, &mut count);
    if count == 0 {
        return Err(Absent { code: Some(100), ..Absent::new("the driver sees no device", meaning(100).1) });
    }
    if ordinal >= count as u32 {
        let what = format!("there is no device {ordinal}: the driver sees {count}, counted from 0");
        return Err(Absent::new(what, meaning(101).1));
    }
    ask!("cuDeviceGet", unsafe extern "C" fn(*mut c_int, c_int) -> c_int, &mut device, ordinal as c_int);
    ask!(
        "cuDevicePrimaryCtxRetain",
        unsafe extern "C" fn(*mut *mut c_void, c_int) -> c_int,
        &mut context,
        device
    );
    // cudarc retains it again; this one stays until the program ends, as does the library.
    std::mem::forget(library);
    Ok(version)
}

/// The version that a number of the driver stands for.
fn cuda(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// What the card and its driver are.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Environment {
    /// Number of the device.
    pub device: u32,
    /// Name of the card.
    pub name: String,
    /// Compute capability.
    pub compute_capability: String,
    /// CUDA version that the driver supports.
    pub driver_cuda: String,
    /// What PTX is written for.
    pub ptx_target: &'static str,
    /// How the kernels came to be machine code.
    pub compiled: &'static str,
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Second-level cache in bytes.
    pub l2_bytes: u64,
    /// 2 · memory clock · bus width, in bytes a second; `None` if the driver does not tell.
    pub peak_bytes_per_second: Option<u64>,
}

/// An opened card.
pub struct Device {
    stream: Arc<CudaStream>,
    version: i32,
    /// What PTX is written for.
    pub target: &'static Target,
    /// What it is.
    pub environment: Environment,
}

/// A kernel on the card, ready to run.
pub struct Module(Arc<CudaModule>);

/// Elements in the card's memory.
pub struct Buffer(CudaSlice<u8>);

fn failed(doing: &str) -> impl Fn(DriverError) -> Error {
    let doing = doing.to_owned();
    move |error| {
        let code = error.0 as i32;
        let (name, remedy) = meaning(code);
        Error::new(format!("the card cannot {doing}: error {code} ({name}); {remedy}"))
    }
}

impl Device {
    /// Opens a card.
    ///
    /// # Errors
    /// There is none that can be used.
    pub fn open(ordinal: u32) -> std::result::Result<Self, Absent> {
        let version = driver(ordinal)?;
        let absent = |error: DriverError| Absent::answered("opening the device", error.0 as i32);
        let context = CudaContext::new(ordinal as usize).map_err(absent)?;
        // SAFETY: everything runs in the order of one stream.
        unsafe { context.disable_event_tracking() };
        let attribute = |which| context.attribute(which).map_err(absent);
        let (major, minor) = context.compute_capability().map_err(absent)?;
        let name = context.name().map_err(absent)?;
        let target = Target::of_capability(major as u32, minor as u32).ok_or_else(|| {
            let what = format!("{name} has compute capability {major}.{minor}");
            Absent::new(what, "7.5 (Turing) is the least that is supported")
        })?;
        let clock_khz = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE).unwrap_or(0);
        let bus = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH).unwrap_or(0);
        let peak = 2 * 1000 * clock_khz as u64 * (bus as u64 / 8);
        let environment = Environment {
            device: ordinal,
            compute_capability: format!("{major}.{minor}"),
            driver_cuda: cuda(version),
            ptx_target: target.name,
            compiled: "PTX, by the driver (JIT)",
            multiprocessors: attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as u32,
            l2_bytes: attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)? as u64,
            peak_bytes_per_second: (peak > 0).then_some(peak),
            name,
        };
        Ok(Self { stream: context.default_stream(), version, target, environment })
    }

    /// The newest PTX version that the driver takes.
    pub(super) fn newest_ptx(&self) -> Version {
        newest_ptx(self.version)
    }

    /// Whether the driver takes PTX of this version.
    pub fn takes(&self, ptx: Version) -> bool {
        self.version >= least_driver(ptx)
    }

    /// Compiles a module and finds its kernels.
    ///
    /// # Errors
    /// The driver rejects it.
    pub fn load(&self, ptx: String) -> Result<Module> {
        let module =
            self.stream.context().load_module(Ptx::from_src(ptx)).map_err(failed("load a kernel"))?;
        Ok(Module(module))
    }

    /// Runs `walk` or `table` on `threads` threads, with room for `words` words.
    ///
    /// # Errors
    /// The card fails.
    pub fn ask(
        &self,
        module: &Module,
        kernel: &str,
        (threads, words): (u32, usize),
        Beside { partner, lane, random }: Beside,
    ) -> Result<Answer> {
        let doing = failed("run a kernel");
        let function = module.0.load_function(kernel).map_err(&doing)?;
        let mut out = self.stream.clone_htod(&vec![POISON; words]).map_err(failed("hold the results"))?;
        let mut counters = self.stream.clone_htod(&[0_u64; 2]).map_err(&doing)?;
        let capacity = (words / 2) as u32;
        let shape =
            LaunchConfig { grid_dim: (threads / BLOCK, 1, 1), block_dim: (BLOCK, 1, 1), shared_mem_bytes: 0 };
        let mut launch = self.stream.launch_builder(&function);
        launch.arg(&mut out).arg(&mut counters).arg(&capacity);
        launch.arg(&partner).arg(&lane).arg(&random);
        // SAFETY: the kernel has these parameters, and writes no more than `capacity` pairs of words, or a
        // word a thread, of which the callers ask as many as there are words.
        unsafe { launch.launch(shape) }.map_err(&doing)?;
        let words = self.stream.clone_dtoh(&out).map_err(&doing)?;
        let counters = self.stream.clone_dtoh(&counters).map_err(&doing)?;
        self.stream.synchronize().map_err(&doing)?;
        Ok(Answer { words, steps: counters[0] as u32, inputs: counters[1] })
    }

    /// A buffer of so many bytes, all zero.
    ///
    /// # Errors
    /// There is not as much memory.
    pub fn buffer(&self, bytes: u64) -> Result<Buffer> {
        // SAFETY: every byte is written before it is read.
        let mut buffer =
            unsafe { self.stream.alloc::<u8>(bytes as usize) }.map_err(failed("hold a buffer"))?;
        self.stream.memset_zeros(&mut buffer).map_err(failed("clear a buffer"))?;
        Ok(Buffer(buffer))
    }

    /// Writes the start of a buffer.
    ///
    /// # Errors
    /// The card fails.
    pub fn write(&self, buffer: &mut Buffer, bytes: &[u8]) -> Result<()> {
        self.stream.memcpy_htod(bytes, &mut buffer.0).map_err(failed("be written to"))
    }

    /// Fills a buffer with these bytes, again and again.
    ///
    /// # Errors
    /// The card fails.
    pub fn fill(&self, buffer: &mut Buffer, bytes: &[u8]) -> Result<()> {
        let length = buffer.0.len();
        self.write(buffer, &bytes[..bytes.len().min(length)])?;
        let mut filled = bytes.len();
        while filled > 0 && filled < length {
            let (done, mut rest) = buffer.0.split_at_mut(filled);
            let more = filled.min(length - filled);
            let copied = self.stream.memcpy_dtod(&done.slice(..more), &mut rest.slice_mut(..more));
            copied.map_err(failed("be written to"))?;
            filled += more;
        }
        Ok(())
    }

    /// Reads bytes of a buffer, as far as it goes.
    ///
    /// # Errors
    /// The card fails.
    pub fn read(&self, buffer: &Buffer, bytes: Range<usize>) -> Result<Vec<u8>> {
        let end = bytes.end.min(buffer.0.len());
        let view = buffer.0.slice(bytes.start.min(end)..end);
        let read = self.stream.clone_dtoh(&view).map_err(failed("be read"))?;
        self.stream.synchronize().map_err(failed("be read"))?;
        Ok(read)
    }

    /// Milliseconds that each of `repeats` copies of so many bytes takes.
    ///
    /// # Errors
    /// The card fails.
    pub fn time_copy(
        &self,
        source: &Buffer,
        result: &mut Buffer,
        bytes: u64,
        repeats: usize,
    ) -> Result<Vec<f32>> {
        let doing = failed("copy");
        self.time(repeats, || {
            let source = source.0.slice(0..bytes as usize);
            let mut result = result.0.slice_mut(0..bytes as usize);
            self.stream.memcpy_dtod(&source, &mut result).map_err(&doing)
        })
    }

    /// Milliseconds that each of `repeats` runs of a buffer kernel on `blocks` blocks takes.
    ///
    /// # Errors
    /// The card fails.
    pub fn time_kernel(
        &self,
        (module, kernel): (&Module, &str),
        source: &Buffer,
        result: &mut Buffer,
        blocks: u32,
        repeats: usize,
    ) -> Result<Vec<f32>> {
        let doing = failed("run a kernel");
        let function = module.0.load_function(kernel).map_err(&doing)?;
        let shape = LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (BLOCK, 1, 1), shared_mem_bytes: 0 };
        self.time(repeats, || {
            let mut launch = self.stream.launch_builder(&function);
            launch.arg(&source.0).arg(&mut result.0);
            // SAFETY: the kernel has these parameters; the callers' buffers hold what so many blocks move.
            unsafe { launch.launch(shape) }.map(|_| ()).map_err(&doing)
        })
    }

    /// Times `work` between events, after three runs that do not count.
    fn time(&self, repeats: usize, mut work: impl FnMut() -> Result<()>) -> Result<Vec<f32>> {
        let doing = failed("be timed");
        for _ in 0..3 {
            work()?;
        }
        let event = || self.stream.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT)).map_err(&doing);
        let mut events = Vec::with_capacity(repeats);
        // All are queued before the first is waited for, so that the card does not wait for the host in between.
        for _ in 0..repeats {
            let start = event()?;
            work()?;
            events.push((start, event()?));
        }
        events.iter().map(|(start, end)| start.elapsed_ms(end).map_err(&doing)).collect()
    }
}

/// Machine-independent PTX from a program in CUDA C++, made by NVRTC if this machine has it; `name` is what its
/// messages call the file.
///
/// # Errors
/// NVRTC is not installed, or rejects the program: then its messages follow.
pub(super) fn compile(program: &str, name: &str, target: &Target) -> Result<String> {
    // SAFETY: libraries are only looked for.
    if !unsafe { cudarc::nvrtc::sys::is_culib_present() } {
        let what = "--kernel needs NVRTC, and no libnvrtc was found: pip install nvidia-cuda-nvrtc-cu12, and put the \
                    folder of its libnvrtc.so.12 into LD_LIBRARY_PATH";
        return Err(Error::new(what));
    }
    let options =
        CompileOptions { arch: Some(target.compute), name: Some(name.to_owned()), ..Default::default() };
    compile_ptx_with_opts(program, options).map(|ptx| ptx.to_src()).map_err(|error| match error {
        CompileError::CompileError { log, .. } => {
            let log = log.to_string_lossy();
            let lines =
                log.lines().filter(|line| !line.is_empty()).map(|line| format!("\n  {}", escape(line)));
            Error::new(format!("NVRTC rejects it:{}", lines.collect::<String>()))
        }
        other => Error::new(format!("NVRTC fails: {other}")),
    })
}
