//! A libcuda that is made up: a library that the tests build with rustc and put before the real one. Device
//! memory is memory of the process; a launch does what the kernel's PTX says that it converts, by arithmetic of
//! its own in float64. The environment says what goes wrong:
//!
//! * `FAKE_CUDA_ERRORS=cuInit=35,cuLaunchKernel=700`: these functions give these codes
//! * `FAKE_CUDA_DEVICES`, `FAKE_CUDA_CAPABILITY` (90), `FAKE_CUDA_DRIVER` (13000), `FAKE_CUDA_MEMORY` in bytes
//! * `FAKE_CUDA_FAULT=e4m3x2.f32@3f800000`: kernels with this in an instruction err in the last bit at this input
//! * `FAKE_CUDA_RANDOM`: which random bits the lanes of a stochastic rounding get, see `Stage::rounded`
//! * `FAKE_CUDA_LOSES=1`: walks lose a thousand inputs; `FAKE_CUDA_FLICKERS=1`: every second walk errs
#![allow(non_snake_case, unused_unsafe)]

use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_uint, c_void, CStr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};

fn setting(name: &str) -> Option<String> {
    std::env::var(format!("FAKE_CUDA_{name}")).ok()
}

/// Those that are asked for at each conversion.
fn often() -> &'static (Option<(String, u32)>, String) {
    static OFTEN: OnceLock<(Option<(String, u32)>, String)> = OnceLock::new();
    OFTEN.get_or_init(|| {
        let fault = setting("FAULT").and_then(|fault| {
            let (instruction, input) = fault.split_once('@')?;
            Some((instruction.to_owned(), u32::from_str_radix(input, 16).ok()?))
        });
        (fault, setting("RANDOM").unwrap_or_default())
    })
}

fn number(name: &str, otherwise: u64) -> u64 {
    setting(name).and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// The code that a function shall give.
fn code(function: &str) -> c_int {
    let errors = setting("ERRORS").unwrap_or_default();
    let found = errors.split(',').filter_map(|error| error.split_once('=')).find(|(name, _)| *name == function);
    found.map_or(0, |(_, code)| code.parse().unwrap())
}

// ---- Numbers ----

#[derive(Clone, Copy)]
struct Format {
    bits: u32,
    trailing: u32,
    bias: i32,
    max: u32,
    nan: u32,
}

fn format(name: &str) -> Format {
    let new = |bits, trailing, bias, max, nan| Format { bits, trailing, bias, max, nan };
    match name.trim_end_matches("x2").trim_end_matches("x4") {
        "f32" => new(32, 23, 127, 0x7f7f_ffff, 0x7fff_ffff),
        "tf32" => new(19, 10, 127, 0x3fbff, 0x3ffff),
        "f16" => new(16, 10, 15, 0x7bff, 0x7fff),
        "bf16" => new(16, 7, 127, 0x7f7f, 0x7fff),
        "e5m2" => new(8, 2, 15, 0x7b, 0x7f),
        "e4m3" => new(8, 3, 7, 0x7e, 0x7f),
        "e3m2" => new(6, 2, 3, 0x1f, 0x1f),
        "e2m3" => new(6, 3, 1, 0x1f, 0x1f),
        "e2m1" => new(4, 1, 1, 0x7, 0x7),
        "ue8m0" => new(8, 0, 127, 0xfe, 0xff),
        other => panic!("no format {other}"),
    }
}

/// 2^exponent, a normal float64.
fn pow2(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

impl Format {
    fn container(self) -> u32 {
        [4, 8, 16].into_iter().find(|width| self.bits <= *width).unwrap_or(32)
    }

    fn has_inf(self) -> bool {
        self.nan > self.max + 1
    }

    /// Powers of two alone, without a sign.
    fn is_powers(self) -> bool {
        self.bits == 8 && self.trailing == 0
    }

    fn value(self, code: u32) -> f64 {
        if self.is_powers() {
            return if code == self.nan { f64::NAN } else { pow2(code as i32 - self.bias) };
        }
        let sign = code >> (self.bits - 1) & 1;
        let magnitude = code & ((1 << (self.bits - 1)) - 1);
        let field = (magnitude >> self.trailing) as i32;
        let fraction = f64::from(magnitude & ((1 << self.trailing) - 1));
        let unit = pow2(1 - self.bias - self.trailing as i32);
        let x = match field {
            _ if magnitude > self.max && !(self.has_inf() && magnitude == self.max + 1) => f64::NAN,
            _ if magnitude > self.max => f64::INFINITY,
            0 => fraction * unit,
            _ => (fraction + f64::from(1 << self.trailing)) * unit * pow2(field - 1),
        };
        if sign == 1 { -x } else { x }
    }

    fn code(self, x: f64, mode: &str, saturates: bool) -> u32 {
        self.code_at(x, mode, saturates, 0.0)
    }

    /// `random` is what stochastic rounding adds, in units of the last place.
    fn code_at(self, x: f64, mode: &str, saturates: bool, random: f64) -> u32 {
        if x.is_nan() {
            return self.nan;
        }
        if self.is_powers() {
            // The first power that is not exceeded, or that is exceeded by the next.
            let reached = |code: &u32| match mode {
                "rp" => x.abs() <= self.value(*code),
                _ => x.abs() < self.value(code + 1) || code + 1 == self.nan,
            };
            return (0..=self.max).find(reached).unwrap_or(self.max);
        }
        let sign = u32::from(x.is_sign_negative()) << (self.bits - 1);
        let most = if self.has_inf() && !saturates { self.max + 1 } else { self.max };
        if x.is_infinite() {
            return sign | most;
        }
        // The exponent by comparison, the place by division, the rounding by the library.
        let x = x.abs();
        let mut exponent = ((x.to_bits() >> 52) as i32 - 1025).max(1 - self.bias);
        while x >= pow2(exponent + 1) {
            exponent += 1;
        }
        let place = x / pow2(exponent - self.trailing as i32);
        let up = (mode == "rp") == (sign == 0);
        let rounded = match mode {
            "rn" => place.round_ties_even(),
            "rna" => place.round(),
            "rz" => place.trunc(),
            "rs" => (place + random).trunc(),
            _ if up => place.ceil(),
            _ => place.floor(),
        };
        let code = ((exponent - 1 + self.bias) as u64) << self.trailing;
        let code = code + rounded as u64;
        if code > u64::from(self.max) {
            let stops = mode == "rz" || (matches!(mode, "rm" | "rp") && !up);
            return sign | if stops { self.max } else { most };
        }
        sign | code as u32
    }
}

/// One conversion of a kernel.
struct Stage {
    mode: String,
    saturates: bool,
    from: Format,
    to: Format,
    shifts: bool,
    lanes: u32,
}

impl Stage {
    fn one(&self, code: u32) -> u32 {
        if self.shifts {
            return code << 16;
        }
        self.to.code(self.from.value(code), &self.mode, self.saturates)
    }

    /// A float32 in a lane of a stochastic rounding. `RANDOM` says who gets which bits of four lanes: each its byte, or,
    /// if it is `reversed`, the upper and the reversed lower byte of a half (of FP4, of all upper and all lower bytes).
    fn rounded(&self, x: u32, lane: u32, rbits: u32) -> u32 {
        let half = if lane < 2 { rbits & 0xffff } else { rbits >> 16 };
        let bytes = if self.to.bits == 4 { [rbits >> 16, rbits].map(|r| r >> (lane / 2 * 8)) } else { [half >> 8, half] };
        let random = often().1.as_str();
        let reversed = random == "reversed";
        let (draw, bits) = match (self.to.bits, self.to.trailing) {
            (16, 10) => (rbits >> (16 * lane) & 0x1fff, 13),
            (16, _) => (rbits >> (16 * lane) & 0xffff, 16),
            _ if reversed && lane % 2 == 1 => ((bytes[1] as u8).reverse_bits().into(), 8),
            _ if reversed => (bytes[0] & 0xff, 8),
            (4, _) => (bytes[(lane % 2) as usize] & 0xff, 8),
            _ => (rbits >> (8 * lane) & 0xff, 8),
        };
        let draw = if random == "foreign" && lane == 2 { rbits & 0xff } else { draw };
        self.to.code_at(self.from.value(x), "rs", self.saturates, f64::from(draw) / f64::from(1 << bits))
    }
}

struct Kernel {
    name: String,
    stages: Vec<Stage>,
    text: String,
    /// Where the scales of blocks are, behind the codes; how many values share one; whether scales are rounded up, and
    /// whether they are quotients, of which only powers of two are taken.
    scales: usize,
    shared: usize,
    rounds_up: bool,
    is_quotient: bool,
    is_power: bool,
    /// What the largest magnitude and the scale of NVFP4 are multiplied by.
    factors: Option<(f32, f32)>,
}

/// The conversions in the body of a kernel, those of the first vector only.
fn kernel(ptx: &str, name: &str) -> Kernel {
    let start = ptx.find(&format!(".entry {name}(")).unwrap();
    let body = &ptx[start..];
    let body = &body[..body.find("\n}\n").unwrap()];
    let body = body.find("next:").map_or(body, |at| &body[at..]);
    let mut stages: Vec<Stage> = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for line in body.lines().map(str::trim).filter(|line| line.starts_with("cvt.")) {
        let instruction = line.split(' ').next().unwrap();
        let parts: Vec<&str> = instruction.split('.').collect();
        let (to, from) = (parts[parts.len() - 2], parts[parts.len() - 1]);
        if matches!(to, "u16" | "u32" | "u64") || to == "to" || parts.contains(&"global") || seen.contains(&instruction) {
            continue;
        }
        seen.push(instruction);
        stages.push(Stage {
            mode: parts[1].to_owned(),
            saturates: parts.contains(&"satfinite"),
            from: format(from),
            to: format(to),
            shifts: (to, from) == ("f32", "bf16"),
            lanes: if to.ends_with("x4") { 4 } else { 1 + u32::from(to.ends_with("x2")) },
        });
    }
    let after = |start: &str| body.lines().find_map(|line| line.trim().trim_end_matches(';').strip_prefix(start));
    let behind = after("add.u64 %scales, %result, ").or(after("add.u64 %scales, %source, "));
    let scales = behind.map_or(0, |number| number.parse().unwrap());
    let mut constants: Vec<u32> = Vec::new();
    for line in body.lines().filter_map(|line| line.trim().strip_prefix("mov.b32 %other, ")) {
        let constant = line.trim_end_matches(';').parse().unwrap();
        if !constants.contains(&constant) {
            constants.push(constant);
        }
    }
    let factors = match constants[..] {
        [scale, back] => Some((f32::from_bits(scale), f32::from_bits(back))),
        _ => None,
    };
    Kernel {
        factors,
        name: name.to_owned(),
        stages,
        text: seen.join(" "),
        scales,
        shared: after("shr.u32 %thread, %first, ").map_or(0, |log2| 4 << log2.parse::<u32>().unwrap()),
        rounds_up: body.contains(", 2097151;"),
        is_quotient: body.contains("div.rn.f32"),
        is_power: body.contains(", 4286578688;"),
    }
}

impl Kernel {
    /// The result for `x` in a lane, `partner` in the other one.
    fn convert(&self, x: u32, (partner, at, rbits): (u32, u32, u32)) -> u32 {
        let first = &self.stages[0];
        let swap = at == 1;
        let mut result = if first.mode == "rs" {
            (0..first.lanes).fold(0, |result, lane| {
                let code = first.rounded(if lane == at { x } else { partner }, lane, rbits);
                result | code << (lane * first.to.container())
            })
        } else if first.lanes == 1 {
            first.one(x)
        } else if first.from.bits <= 8 {
            let bits = first.from.container();
            let mask = (1 << first.from.bits) - 1;
            first.one(x >> bits & mask) << first.to.container() | first.one(x & mask)
        } else {
            let (upper, lower) = if swap { (x, partner) } else { (partner, x) };
            first.one(upper) << first.to.container() | first.one(lower)
        };
        for stage in &self.stages[1..] {
            let bits = stage.from.container();
            let mask = ((1_u64 << stage.from.bits) - 1) as u32;
            result = if stage.lanes == 2 {
                stage.one(result >> bits & mask) << stage.to.container() | stage.one(result & mask)
            } else {
                let lane = if first.lanes == 2 && swap { result >> 16 } else { result & 0xffff };
                stage.one(lane)
            };
        }
        let hit = |(instruction, input): &(String, u32)| *input == x && self.text.contains(&**instruction);
        result ^ u32::from(often().0.as_ref().is_some_and(hit))
    }

    /// One value to one code, or back.
    fn single(&self, code: u32, stages: std::ops::Range<usize>) -> u32 {
        self.stages[stages].iter().fold(code, |code, stage| stage.one(code))
    }
}

fn walk(kernel: &Kernel, beside: (u32, u32, u32)) -> Vec<(u32, u32)> {
    let convert = |x: u32| kernel.convert(x, beside);
    fn halve(steps: &mut Vec<(u32, u32)>, convert: &dyn Fn(u32) -> u32, low: (u32, u32), high: (u32, u32)) {
        if low.1 == high.1 {
            return;
        }
        if high.0 - low.0 == 1 {
            return steps.push(high);
        }
        let middle = low.0 + (high.0 - low.0) / 2;
        let middle = (middle, convert(middle));
        halve(steps, convert, low, middle);
        halve(steps, convert, middle, high);
    }
    // Where no result comes back: up to Inf, and NaN, of either sign; and beside the fault.
    let mut edges = vec![0, 0x7f80_0000, 0x7f80_0001, 0x7fff_ffff, 0x8000_0000, 0xff80_0000, 0xff80_0001, u32::MAX];
    if let Some((_, x)) = often().0 {
        edges.extend([x.wrapping_sub(1), x, x.wrapping_add(1)]);
    }
    edges.sort_unstable();
    edges.dedup();
    let mut steps = vec![(0, convert(0))];
    for pair in edges.windows(2) {
        halve(&mut steps, &convert, (pair[0], convert(pair[0])), (pair[1], convert(pair[1])));
    }
    steps
}

// ---- The driver ----

static KERNELS: Mutex<Vec<Kernel>> = Mutex::new(Vec::new());
static MODULES: Mutex<Vec<String>> = Mutex::new(Vec::new());
static SIZES: Mutex<Option<HashMap<u64, usize>>> = Mutex::new(None);
static LAUNCHES: AtomicU64 = AtomicU64::new(0);

macro_rules! driver {
    ($($name:ident($($argument:ident: $kind:ty),*) $body:block)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $kind),*) -> c_int {
            match code(stringify!($name)) {
                0 => unsafe { $body },
                code => code,
            }
        }
    )*};
}

unsafe fn put<T>(place: *mut T, value: T) -> c_int {
    unsafe { place.write(value) };
    0
}

fn allocate(bytes: usize) -> Option<u64> {
    let mut sizes = SIZES.lock().unwrap();
    let sizes = sizes.get_or_insert_default();
    let held: usize = sizes.values().sum();
    if (held + bytes) as u64 > number("MEMORY", 1 << 34) {
        return None;
    }
    let memory = Box::leak(vec![0_u64; bytes.div_ceil(8) + 1].into_boxed_slice());
    let address = memory.as_mut_ptr() as u64;
    sizes.insert(address, bytes);
    Some(address)
}

/// The newest PTX version that came with the driver's CUDA: that of 12.6 is 12.5's.
fn newest_ptx() -> f64 {
    const CUDA: [u64; 17] = [
        11000, 11010, 11020, 11030, 11040, 11050, 11060, 11070, 11080, 12000, 12010, 12020, 12030, 12040, 12050, 12060,
        12070,
    ];
    const PTX: [f64; 17] =
        [7.0, 7.1, 7.2, 7.3, 7.4, 7.5, 7.6, 7.7, 7.8, 8.0, 8.1, 8.2, 8.3, 8.4, 8.5, 8.5, 8.6];
    let driver = number("DRIVER", 13000);
    let newer = [(12080, 8.7), (12090, 8.8), (13000, 9.0), (13010, 9.1), (13020, 9.2)];
    let known = CUDA.into_iter().zip(PTX).chain(newer);
    known.filter(|(cuda, _)| *cuda <= driver).last().unwrap().1
}

driver! {
    cuInit(_flags: c_uint) { 0 }
    cuDriverGetVersion(version: *mut c_int) { put(version, number("DRIVER", 13000) as c_int) }
    // NVRTC looks for it, and falls if it is missing.
    cuGetExportTable(_table: *mut *const c_void, _id: *const c_void) { 500 }
    cuDeviceGetCount(count: *mut c_int) { put(count, number("DEVICES", 1) as c_int) }
    cuDeviceGet(device: *mut c_int, ordinal: c_int) { put(device, ordinal) }
    cuDeviceGetName(name: *mut c_char, _length: c_int, _device: c_int) {
        for (at, byte) in b"Fake GPU\0".iter().enumerate() {
            name.add(at).write(*byte as c_char);
        }
        0
    }
    cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, _device: c_int) {
        let capability = number("CAPABILITY", 90) as c_int;
        put(value, match attribute {
            16 => 132,
            36 => 3_201_000,
            37 => 6144,
            38 => 1 << 20,
            75 => capability / 10,
            76 => capability % 10,
            _ => 0,
        })
    }
    cuDevicePrimaryCtxRetain(context: *mut *mut c_void, _device: c_int) { put(context, 0x10 as *mut c_void) }
    cuDevicePrimaryCtxRelease_v2(_device: c_int) { 0 }
    cuCtxGetCurrent(context: *mut *mut c_void) { put(context, 0x10 as *mut c_void) }
    cuCtxSetCurrent(_context: *mut c_void) { 0 }
    cuModuleLoadData(module: *mut u64, image: *const c_char) {
        let mut modules = MODULES.lock().unwrap();
        let text = CStr::from_ptr(image).to_str().unwrap().to_owned();
        let version = text.lines().find_map(|line| line.strip_prefix(".version ")).unwrap();
        if version.parse::<f64>().unwrap() > newest_ptx() {
            return 222;
        }
        modules.push(text);
        put(module, modules.len() as u64)
    }
    cuModuleGetFunction(function: *mut u64, module: u64, name: *const c_char) {
        let kernel = kernel(&MODULES.lock().unwrap()[module as usize - 1], CStr::from_ptr(name).to_str().unwrap());
        let mut kernels = KERNELS.lock().unwrap();
        kernels.push(kernel);
        put(function, kernels.len() as u64)
    }
    cuModuleUnload(_module: u64) { 0 }
    cuMemAlloc_v2(address: *mut u64, bytes: usize) {
        allocate(bytes).map_or(2, |memory| put(address, memory))
    }
    cuMemAllocAsync(address: *mut u64, bytes: usize, _stream: u64) {
        allocate(bytes).map_or(2, |memory| put(address, memory))
    }
    cuMemFree_v2(address: u64) {
        let bytes = SIZES.lock().unwrap().as_mut().and_then(|sizes| sizes.remove(&address)).unwrap();
        let words = std::ptr::slice_from_raw_parts_mut(address as *mut u64, bytes.div_ceil(8) + 1);
        drop(Box::from_raw(words));
        0
    }
    cuMemFreeAsync(_address: u64, _stream: u64) { 801 }
    cuMemsetD8Async(address: u64, byte: u8, bytes: usize, _stream: u64) {
        std::ptr::write_bytes(address as *mut u8, byte, bytes);
        0
    }
    cuMemcpyHtoDAsync_v2(to: u64, from: *const u8, bytes: usize, _stream: u64) {
        std::ptr::copy_nonoverlapping(from, to as *mut u8, bytes);
        0
    }
    cuMemcpyDtoHAsync_v2(to: *mut u8, from: u64, bytes: usize, _stream: u64) {
        std::ptr::copy_nonoverlapping(from as *const u8, to, bytes);
        0
    }
    cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, _stream: u64) {
        std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, bytes);
        0
    }
    cuStreamSynchronize(_stream: u64) { 0 }
    cuEventCreate(event: *mut u64, _flags: c_uint) { put(event, 1) }
    cuEventRecord(_event: u64, _stream: u64) { 0 }
    cuEventSynchronize(_event: u64) { 0 }
    cuEventDestroy_v2(_event: u64) { 0 }
    cuLaunchKernel(
        function: u64, x: c_uint, _y: c_uint, _z: c_uint, block: c_uint, _by: c_uint, _bz: c_uint,
        _shared: c_uint, _stream: u64, parameters: *mut *mut c_void, _extra: *mut *mut c_void
    ) {
        let kernels = KERNELS.lock().unwrap();
        let kernel = &kernels[function as usize - 1];
        let word = |at: usize| (*parameters.add(at)).cast::<u32>().read();
        let address = |at: usize| (*parameters.add(at)).cast::<u64>().read();
        match &*kernel.name {
            "walk" => {
                let (out, counters) = (address(0) as *mut u32, address(1) as *mut u64);
                let capacity = word(2);
                let mut steps = walk(kernel, (word(3), word(4), word(5)));
                if setting("FLICKERS").is_some() && LAUNCHES.fetch_add(1, Relaxed) % 2 == 1 {
                    steps[1].0 += 1;
                }
                // In no order that can be relied on.
                for (at, (u, code)) in steps.iter().rev().enumerate().take(capacity as usize) {
                    out.add(2 * at).write(*u);
                    out.add(2 * at + 1).write(*code);
                }
                counters.write(steps.len() as u64);
                let inputs = u64::from(x) * u64::from(block) << 12;
                counters.add(1).write(if setting("LOSES").is_some() { inputs - 1000 } else { inputs });
            }
            "table" => {
                let (out, counters) = (address(0) as *mut u32, address(1) as *mut u64);
                for u in 0..x * block {
                    out.add(u as usize).write(kernel.convert(u, (word(3), word(4), word(5))));
                }
                counters.add(1).write(u64::from(x * block));
            }
            "encode" if kernel.scales > 0 => {
                blocks(kernel, address(0) as *const f32, address(1) as *mut u8, x as usize * block as usize * 16)
            }
            "decode" if kernel.scales > 0 => {
                unblock(kernel, address(0) as *const u8, address(1) as *mut f32, x as usize * block as usize * 16)
            }
            name => buffers(kernel, name, address(0), address(1), x as usize * block as usize * 16),
        }
        0
    }
}

/// Whole buffers of codes, and of float32.
unsafe fn buffers(kernel: &Kernel, name: &str, source: u64, result: u64, values: usize) {
    let stages = kernel.stages.len();
    // The first few alone, as the host looks at no more.
    for at in 0..values.min(1 << 16) {
        unsafe {
            match name {
                "encode" => {
                    let to = kernel.stages[0].to;
                    let code = kernel.single((source as *const u32).add(at).read(), 0..1);
                    let code = if to.bits == 19 { code << 13 } else { code };
                    match to.container() {
                        4 if at % 2 == 0 => (result as *mut u8).add(at / 2).write(code as u8),
                        4 => *(result as *mut u8).add(at / 2) |= (code as u8) << 4,
                        8 => (result as *mut u8).add(at).write(code as u8),
                        16 => (result as *mut u16).add(at).write(code as u16),
                        _ => (result as *mut u32).add(at).write(code),
                    }
                }
                "decode" => {
                    let code = match kernel.stages[0].from.container() {
                        4 => u32::from((source as *const u8).add(at / 2).read() >> (at % 2 * 4) & 15),
                        8 => (source as *const u8).add(at).read().into(),
                        16 => (source as *const u16).add(at).read().into(),
                        _ => (source as *const u32).add(at).read(),
                    };
                    (result as *mut u32).add(at).write(kernel.single(code, 0..stages));
                }
                _ => {
                    let x = (source as *const u32).add(at).read();
                    (result as *mut u32).add(at).write(kernel.single(x, 0..stages));
                }
            }
        }
    }
}

/// Blocks: codes, and behind them scales. `FAULT=block@3` makes the scale of block 3 wrong.
unsafe fn blocks(kernel: &Kernel, source: *const f32, result: *mut u8, values: usize) {
    let Some(to) = kernel.stages.iter().map(|stage| stage.to).min_by_key(|to| to.bits) else { return };
    let largest_code = to.value(to.max);
    let places = 32 - (largest_code as u32).leading_zeros() as i32;
    for block in 0..values.min(1 << 17) / kernel.shared {
        let at = block * kernel.shared;
        let xs: Vec<f64> = (0..kernel.shared).map(|lane| unsafe { source.add(at + lane).read() }.into()).collect();
        let bad = xs.iter().any(|x| !x.is_finite());
        let largest = xs.iter().filter(|x| !x.is_nan()).fold(0.0_f64, |largest, x| largest.max(x.abs()));
        let hit = often().0.as_ref() == Some(&("block".to_owned(), block as u32));
        let (factor, bad) = if let Some((scale, back)) = kernel.factors {
            let e4m3 = format("e4m3");
            let code = e4m3.code((largest as f32 * scale).min(f32::MAX).into(), "rn", true);
            unsafe { result.add(kernel.scales + block).write(code as u8 ^ u8::from(hit)) };
            (f64::from((1.0 / (e4m3.value(code) as f32 * back)).min(f32::MAX)), false)
        } else if kernel.is_quotient {
            let usable = largest > 0.0 && largest.is_finite();
            let factor = if usable { (largest_code as f32 / largest as f32).min(f32::MAX) } else { 1.0 };
            let factor = if kernel.is_power { pow2(((factor.to_bits() >> 23) as i32) - 127) as f32 } else { factor };
            let scale = (1.0 / factor).to_bits() ^ u32::from(hit);
            unsafe { result.add(kernel.scales + 4 * block).cast::<u32>().write(scale) };
            (f64::from(factor), false)
        } else {
            // The first power of two, from the least on, that is large enough.
            let enough = |exponent: i32| match kernel.rounds_up {
                false => largest < pow2(exponent + places),
                true => f64::from(largest as f32 / largest_code as f32) <= pow2(exponent),
            };
            let exponent = if bad { 128 } else { (-127..128).find(|exponent| enough(*exponent)).unwrap() };
            unsafe { result.add(kernel.scales + block).write((exponent + 127) as u8 ^ u8::from(hit)) };
            (pow2(-exponent), bad)
        };
        for (lane, x) in xs.iter().enumerate() {
            let x = if bad { f64::NAN } else { f64::from((x * factor) as f32) };
            let code = to.code(x, "rn", true) as u8;
            unsafe {
                match (to.bits, lane % 2) {
                    (4, 0) => result.add((at + lane) / 2).write(code),
                    (4, _) => *result.add((at + lane) / 2) |= code << 4,
                    _ => result.add(at + lane).write(code),
                }
            }
        }
    }
}

/// Codes and powers of two to float32. `FAULT=back@3` errs in the last bit of the value 3.
unsafe fn unblock(kernel: &Kernel, source: *const u8, result: *mut f32, values: usize) {
    let from = kernel.stages[0].from;
    for at in 0..values.min(1 << 17) {
        let (code, scale) =
            unsafe { (source.add(at).read(), source.add(kernel.scales + at / kernel.shared).read()) };
        let unit = if scale == 255 { f64::NAN } else { pow2(i32::from(scale) - 127) };
        let value = (from.value(code.into()) * unit) as f32;
        let hit = often().0.as_ref() == Some(&("back".to_owned(), at as u32));
        unsafe { result.add(at).write(f32::from_bits(value.to_bits() ^ u32::from(hit))) };
    }
}

#[cfg(not(lacks_elapsed_time))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventElapsedTime(milliseconds: *mut f32, _start: u64, _end: u64) -> c_int {
    match code("cuEventElapsedTime") {
        0 => unsafe { put(milliseconds, 0.25) },
        code => code,
    }
}
