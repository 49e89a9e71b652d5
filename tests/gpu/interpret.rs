//! The kernels' own logic, run here: a small interpreter of the PTX that the tool writes. Which inputs a thread
//! takes, where it notes a change, which lane is which, how codes are packed and where vectors go is computed
//! from the very text that a driver would compile; only the conversions themselves are this tool's casts.

use std::collections::HashMap;

use amp_inspect::cast::Place;
use amp_inspect::cast::block::{BlockPlan, cast_block};
use amp_inspect::format::decode::decode;
use amp_inspect::format::find;
use amp_inspect::gpu::blocks::Blocks;
use amp_inspect::gpu::bulk::{Bulk, VALUES_PER_BLOCK};
use amp_inspect::gpu::hostile;
use amp_inspect::gpu::ptx::{self, BLOCK, WALK_LOG2, container};
use amp_inspect::gpu::steps::{Beside, cast_at};
use amp_inspect::gpu::table::CONVERSIONS;
use amp_inspect::gpu::target::TARGETS;
use amp_inspect::gpu::{Conversion, Job};

/// One conversion by the tool's cast: the code, or the bits of a float32. Stochastic rounding takes the random bits
/// that the lane may take, in their order, 8 of them where four lanes share.
fn convert(row: &Conversion, code: u32) -> u32 {
    lane(row, code, 0, 0)
}

fn lane(row: &Conversion, code: u32, lane: u32, operand: u32) -> u32 {
    let from = find(row.from).unwrap();
    let value = match row.from {
        "float32" => f64::from(f32::from_bits(code)),
        _ => decode(&from, code & (from.magnitude_mask() | from.sign_bit())),
    };
    let plan = row.plan().unwrap();
    match row.random {
        Some(random) if random.is_whole => {
            let mask = random.lanes[lane as usize];
            cast_at(&plan, mask.count_ones(), (operand & mask) >> mask.trailing_zeros(), code)
        }
        Some(_) => cast_at(&plan, 8, operand >> (8 * lane) & 0xff, code),
        None => plan.cast_f64(value, Place::default()).code,
    }
}

/// A kernel, cut into instructions: an optional predicate, the name, the operands.
struct Kernel<'a> {
    lines: Vec<(Option<&'a str>, &'a str, Vec<&'a str>)>,
    labels: HashMap<&'a str, usize>,
    parameters: Vec<&'a str>,
}

impl<'a> Kernel<'a> {
    fn new(text: &'a str, name: &str) -> Self {
        let start = text.find(&format!(".entry {name}(")).unwrap();
        let (head, body) = text[start..].split_once('{').unwrap();
        let parameters = head.lines().filter(|line| line.contains(".param"));
        let parameters = parameters.map(|line| line.split(' ').nth(2).unwrap().trim_end_matches([',', ')']));
        let mut kernel = Self { lines: Vec::new(), labels: HashMap::new(), parameters: parameters.collect() };
        for line in body.lines().map(|line| line.trim().trim_end_matches(';')) {
            if let Some(label) = line.strip_suffix(':') {
                kernel.labels.insert(label, kernel.lines.len());
                continue;
            }
            if line.is_empty() || line.starts_with('.') || line == "{" || line == "}" {
                continue;
            }
            let (predicate, line) = match line.strip_prefix('@') {
                Some(rest) => rest.split_once(' ').map(|(p, rest)| (Some(p), rest)).unwrap(),
                None => (None, line),
            };
            let (name, operands) = line.split_once(' ').unwrap_or((line, ""));
            let mut depth = 0;
            let cut = operands.split(|c| {
                depth += i32::from(c == '{') - i32::from(c == '}');
                c == ',' && depth == 0
            });
            kernel.lines.push((predicate, name, cut.map(str::trim).filter(|o| !o.is_empty()).collect()));
            if name == "ret" {
                break;
            }
        }
        kernel
    }

    /// Runs one thread.
    fn thread(&self, block: u32, thread: u32, arguments: &[u64], memory: &mut [u8]) {
        let mut registers: HashMap<&str, u64> =
            [("%ctaid.x", block.into()), ("%tid.x", thread.into()), ("%ntid.x", BLOCK.into())].into();
        let mut at = 0;
        loop {
            let (predicate, name, operands) = &self.lines[at];
            at += 1;
            let taken = predicate.is_none_or(|predicate| {
                let (name, wanted) = predicate.strip_prefix('!').map_or((predicate, 1), |name| (name, 0));
                registers[name] == wanted
            });
            if !taken {
                continue;
            }
            match *name {
                "ret" => return,
                "bra" => at = self.labels[operands[0]],
                _ => self.step(name, operands, &mut registers, arguments, memory),
            }
        }
    }

    /// Runs 32 threads without branches side by side, so that they can tell each other what they have.
    fn warp(&self, block: u32, first: u32, arguments: &[u64], memory: &mut [u8]) {
        let registers = |thread: u32| -> HashMap<&str, u64> {
            [("%ctaid.x", block.into()), ("%tid.x", thread.into()), ("%ntid.x", BLOCK.into())].into()
        };
        let mut lanes: Vec<_> = (first..first + 32).map(registers).collect();
        for (predicate, name, operands) in &self.lines {
            if *name == "shfl.sync.bfly.b32" {
                assert_eq!(operands[3..], ["31", "4294967295"], "all lanes of the warp");
                let distance: usize = operands[2].parse().unwrap();
                let held: Vec<u64> = lanes.iter().map(|lane| lane[operands[1]]).collect();
                for (index, lane) in lanes.iter_mut().enumerate() {
                    lane.insert(operands[0], held[index ^ distance]);
                }
                continue;
            }
            assert_ne!(*name, "bra");
            for lane in &mut lanes {
                if *name != "ret" && predicate.is_none_or(|predicate| lane[predicate] == 1) {
                    self.step(name, operands, lane, arguments, memory);
                }
            }
        }
    }

    fn step(
        &self,
        name: &str,
        operands: &[&'a str],
        registers: &mut HashMap<&'a str, u64>,
        arguments: &[u64],
        memory: &mut [u8],
    ) {
        let list = |text: &'a str| -> Vec<&'a str> {
            text.trim_matches(['{', '}']).split(',').map(str::trim).collect()
        };
        let get = |registers: &HashMap<&str, u64>, name: &str| -> u64 {
            name.parse()
                .unwrap_or_else(|_| *registers.get(name).unwrap_or_else(|| panic!("{name} is not set")))
        };
        let address = |registers: &HashMap<&str, u64>, text: &str| -> usize {
            let (base, offset) =
                text.trim_matches(['[', ']']).split_once('+').unwrap_or((text.trim_matches(['[', ']']), "0"));
            (registers[base] + offset.parse::<u64>().unwrap()) as usize
        };
        let parts: Vec<&str> = name.split('.').collect();
        let value = |index: usize| get(registers, operands[index]);
        let low = |x: u64| x & 0xffff_ffff;
        if let Some(row) = CONVERSIONS.iter().find(|row| row.instruction == name) {
            let (from, to) = (container(row.from), container(row.to));
            let sources: Vec<u32> = match row.lanes {
                1 => vec![value(1) as u32],
                4 => list(operands[1]).into_iter().map(|name| get(registers, name) as u32).collect(),
                _ if row.from == "float32" => vec![value(1) as u32, value(2) as u32],
                _ => {
                    let mask = ((1_u64 << from) - 1) as u32;
                    let packed = value(1) as u32;
                    vec![packed >> from & mask, packed & mask]
                }
            };
            let operand =
                if row.random.is_some() { get(registers, operands[operands.len() - 1]) as u32 } else { 0 };
            let result = sources
                .iter()
                .zip((0..row.lanes).rev())
                .fold(0_u64, |result, (x, place)| result << to | u64::from(lane(row, *x, place, operand)));
            let result = if row.to == "tf32" { result << 13 } else { result };
            registers.insert(operands[0], result);
            return;
        }
        let result = match (parts[0], parts[1]) {
            ("ld", "param") => {
                let name = operands[1].trim_matches(['[', ']']);
                arguments[self.parameters.iter().position(|parameter| *parameter == name).unwrap()]
            }
            ("cvta", _) | ("cvt", _) => value(1),
            ("mov", _) if operands[0].starts_with('{') => {
                let parts = list(operands[0]);
                let width = 32 / parts.len();
                for (index, part) in parts.iter().enumerate() {
                    registers
                        .insert(part, get(registers, operands[1]) >> (index * width) & ((1 << width) - 1));
                }
                return;
            }
            ("mov", _) if operands[1].starts_with('{') => {
                let parts = list(operands[1]);
                let width = 32 / parts.len();
                parts.iter().rev().fold(0, |word, part| word << width | get(registers, part))
            }
            ("mov", _) => value(1),
            ("mad", "lo") => low(value(1) * value(2) + value(3)),
            ("mad", "wide") => value(1) * value(2) + value(3),
            ("mul", "wide") => value(1) * value(2),
            ("mul", "rn") => {
                let [a, b] = [1, 2].map(|index| f32::from_bits(value(index) as u32));
                (a * b).to_bits().into()
            }
            ("max", "u32") => value(1).max(value(2)),
            ("max" | "min" | "div", _) => {
                let [a, b] = [1, 2].map(|index| f32::from_bits(value(index) as u32));
                let result = match parts[0] {
                    "max" => a.max(b),
                    "min" => a.min(b),
                    _ => a / b,
                };
                result.to_bits().into()
            }
            ("add", "u32") => low(value(1).wrapping_add(value(2))),
            ("add", "u64") => value(1).wrapping_add(value(2)),
            ("sub", "u32") => low(value(1).wrapping_sub(value(2))),
            ("shl", _) => low(value(1) << value(2)),
            ("shr", _) => value(1) >> value(2),
            ("and", _) => value(1) & value(2),
            ("or", _) => value(1) | value(2),
            ("selp", _) => {
                if value(3) != 0 {
                    value(1)
                } else {
                    value(2)
                }
            }
            ("setp", "ne") => u64::from(value(1) != value(2)),
            ("setp", "eq") => u64::from(value(1) == value(2)),
            ("setp", "ge") => u64::from(value(1) >= value(2)),
            ("atom" | "red", "global") => {
                let wide = parts[3] == "u64";
                let (target, added) = match parts[0] {
                    "atom" => (operands[1], value(2)),
                    _ => (operands[0], value(1)),
                };
                let at = address(registers, target);
                let bytes = if wide { 8 } else { 4 };
                let mut word = [0; 8];
                word[..bytes].copy_from_slice(&memory[at..at + bytes]);
                let old = u64::from_le_bytes(word);
                memory[at..at + bytes].copy_from_slice(&(old + added).to_le_bytes()[..bytes]);
                if parts[0] == "red" {
                    return;
                }
                old
            }
            ("ld" | "st", "global") => {
                let (place, data) = if parts[0] == "ld" { (1, 0) } else { (0, 1) };
                let bytes = [("u8", 1), ("u16", 2)].into_iter().find(|(kind, _)| parts.contains(kind));
                let bytes = bytes.map_or(4, |(_, bytes)| bytes);
                let at = address(registers, operands[place]);
                let names = list(operands[data]);
                let vector = parts.iter().find_map(|part| part.strip_prefix('v')).unwrap_or("1");
                assert_eq!(names.len().to_string(), vector, "{name}");
                assert_eq!(at % (names.len() * bytes), 0, "{name} at {at}: vectors are aligned");
                for (index, name) in names.iter().enumerate() {
                    let at = at + index * bytes;
                    if parts[0] == "ld" {
                        let mut word = [0; 8];
                        word[..bytes].copy_from_slice(&memory[at..at + bytes]);
                        registers.insert(name, u64::from_le_bytes(word));
                    } else {
                        let word = get(registers, name);
                        assert!(bytes > 1 || word < 256, "{word} is no byte");
                        memory[at..at + bytes].copy_from_slice(&word.to_le_bytes()[..bytes]);
                    }
                }
                return;
            }
            _ => panic!("{name} is not known here"),
        };
        registers.insert(operands[0], result);
    }
}

/// What a question must answer, written down from what it is.
fn answer(job: &Job, x: u32, Beside { partner, lane: at, random }: Beside) -> u32 {
    let rows = job.rows();
    let first = rows[0];
    let swap = at == 1;
    let packed = |row: &Conversion, upper: u32, lower: u32| {
        convert(row, upper) << container(row.to) | convert(row, lower)
    };
    match job {
        Job::One(row) if row.takes_pairs() => {
            let bits = container(row.from);
            packed(row, x >> bits & ((1 << bits) - 1), x & ((1 << bits) - 1))
        }
        Job::One(row) if row.random.is_some() => (0..row.lanes).fold(0, |result, place| {
            let value = if place == at { x } else { partner };
            result | lane(row, value, place, random) << (place * container(row.to))
        }),
        Job::One(row) if row.lanes == 2 && swap => packed(row, x, partner),
        Job::One(row) if row.lanes == 2 => packed(row, partner, x),
        _ => rows[1..].iter().fold(convert(first, x), |code, row| convert(row, code)),
    }
}

/// The newest target that has it.
fn target(job: &Job) -> &'static amp_inspect::gpu::target::Target {
    TARGETS.iter().rev().find(|target| job.is_on(target)).unwrap()
}

#[test]
fn walks_note_each_change_of_each_thread_and_no_other() {
    const CAPACITY: u64 = 6000;
    for job in Job::all(&[]).iter().filter(|job| job.walks()) {
        let text = ptx::job(target(job), job);
        let kernel = Kernel::new(&text, "walk");
        // The first thread, the last, those around 1, the largest e4m3 number, Inf and a negative number.
        for (turn, thread) in [0, 0xfffff, 0x3f800, 0x43e00, 0x7f800, 0xbfc01].into_iter().enumerate() {
            let partner = if turn % 3 == 0 { 0x7fff_ffff } else { 0x40e9_0fdb };
            let lane = turn as u32 % job.lanes();
            let beside = Beside { partner, lane, random: [0x9e37_79b9, 0, u32::MAX][turn / 2] };
            let mut memory = vec![0xa5; 16 + 8 * CAPACITY as usize];
            memory[..16].fill(0);
            let arguments = [16, 0, CAPACITY, partner.into(), lane.into(), beside.random.into()];
            kernel.thread(thread / BLOCK, thread % BLOCK, &arguments, &mut memory);
            let word = |at: usize| u32::from_le_bytes(memory[at..at + 4].try_into().unwrap());
            let inputs = 1_u32 << WALK_LOG2;
            let mut expected = Vec::new();
            for u in thread * inputs..=thread * inputs + (inputs - 1) {
                let now = answer(job, u, beside);
                if u == 0 || now != answer(job, u - 1, beside) {
                    expected.push((u, now));
                }
            }
            let listed: Vec<(u32, u32)> =
                (0..word(0) as usize).map(|slot| (word(16 + 8 * slot), word(20 + 8 * slot))).collect();
            assert_eq!(listed, expected, "{} thread {thread:#x}", job.name());
            assert_eq!(word(8), inputs, "inputs counted");
            assert!(
                memory[16 + 8 * listed.len()..].iter().all(|byte| *byte == 0xa5),
                "nothing behind the list"
            );
        }
    }
}

#[test]
fn a_full_list_is_counted_on_and_not_written_on() {
    let job = Job::One(&CONVERSIONS[0]);
    let text = ptx::job(&TARGETS[0], &job);
    let mut memory = vec![0xa5; 16 + 8 * 4];
    memory[..16].fill(0);
    // Six threads, two halves: a step every 2^13 inputs.
    for thread in 0x3f800..0x3f80c {
        Kernel::new(&text, "walk").thread(thread / BLOCK, thread % BLOCK, &[16, 0, 3, 0, 0, 0], &mut memory);
    }
    assert_eq!(memory[0], 6, "changes");
    assert!(memory[16 + 8 * 3..].iter().all(|byte| *byte == 0xa5));
}

#[test]
fn tables_write_the_result_of_every_code_in_its_place() {
    for job in Job::all(&[]).iter().filter(|job| !job.walks()) {
        let text = ptx::job(target(job), job);
        let kernel = Kernel::new(&text, "table");
        for (lane, partner) in (0..job.lanes()).zip([0x3c00, 0x7e01]) {
            let beside = Beside { partner, lane, random: 0 };
            let mut memory = vec![0xa5; 16 + (4 << 16)];
            memory[..16].fill(0);
            let inputs: Vec<u32> = (0..1 << 16).step_by(251).chain([0xffff]).collect();
            for x in &inputs {
                kernel.thread(x / BLOCK, x % BLOCK, &[16, 0, 0, partner.into(), lane.into(), 0], &mut memory);
            }
            for x in &inputs {
                let at = 16 + 4 * *x as usize;
                let found = u32::from_le_bytes(memory[at..at + 4].try_into().unwrap());
                let x = if job.rows()[0].from == "e2m1fn" { x & 0xff } else { *x };
                assert_eq!(found, answer(job, x, beside), "{} of {x:#x}", job.name());
            }
            assert_eq!(u64::from_le_bytes(memory[8..16].try_into().unwrap()), inputs.len() as u64);
        }
    }
}

#[test]
fn buffers_are_converted_and_packed_in_order() {
    let values = 2 * VALUES_PER_BLOCK as usize;
    let numbers = amp_inspect::gpu::cpu::numbers(values);
    let run = |text: &str, kernel: &str, source: &[u8], bytes: usize| -> Vec<u8> {
        let kernel = Kernel::new(text, kernel);
        let mut memory = source.to_vec();
        memory.resize(source.len() + bytes + 64, 0xa5);
        for thread in 0..2 * BLOCK {
            kernel.thread(thread / BLOCK, thread % BLOCK, &[0, source.len() as u64], &mut memory);
        }
        assert!(memory[source.len() + bytes..].iter().all(|byte| *byte == 0xa5), "nothing behind the buffer");
        memory[source.len()..source.len() + bytes].to_vec()
    };
    let floats: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
    for target in TARGETS {
        for format in Bulk::formats() {
            let Some(bulk) = Bulk::new(format, target) else { continue };
            let text = bulk.ptx(target);
            let codes: Vec<u32> = numbers.iter().map(|x| convert(bulk.encode, x.to_bits())).collect();
            let packed: Vec<u8> = match bulk.code_bits() {
                4 => codes.chunks(2).map(|two| (two[0] | two[1] << 4) as u8).collect(),
                8 => codes.iter().map(|code| *code as u8).collect(),
                16 => codes.iter().flat_map(|code| (*code as u16).to_le_bytes()).collect(),
                _ => codes.iter().flat_map(|code| (code << 13).to_le_bytes()).collect(),
            };
            assert_eq!(run(&text, "encode", &floats, packed.len()), packed, "{format} on {}", target.name);
            if bulk.decode.is_some() {
                let spec = find(format).unwrap();
                let back: Vec<u8> =
                    codes.iter().flat_map(|code| (decode(&spec, *code) as f32).to_le_bytes()).collect();
                assert_eq!(run(&text, "decode", &packed, back.len()), back, "{format} on {}", target.name);
                assert_eq!(run(&text, "roundtrip", &floats, back.len()), back, "{format} on {}", target.name);
            }
        }
    }
}

/// Runs a kernel for blocks on so many values in `source`; what it wrote, which is `bytes` long.
fn run_on_blocks(text: &str, name: &str, source: &[u8], values: usize, bytes: usize) -> Vec<u8> {
    let kernel = Kernel::new(text, name);
    let mut memory = source.to_vec();
    memory.resize(source.len() + bytes + 64, 0xa5);
    for warp in 0..values as u64 / VALUES_PER_BLOCK * 8 {
        kernel.warp(warp as u32 / 8, warp as u32 % 8 * 32, &[0, source.len() as u64], &mut memory);
    }
    assert!(memory[source.len() + bytes..].iter().all(|byte| *byte == 0xa5), "nothing behind the result");
    memory[source.len()..source.len() + bytes].to_vec()
}

#[test]
fn blocks_get_the_scales_and_codes_of_the_definition_and_come_back() {
    for target in TARGETS {
        let kernels = Blocks::on(target);
        let expected = match target.capability {
            ..89 => 0,
            89..100 => 6,
            _ => 7,
        };
        assert_eq!(kernels.len(), expected, "{}", target.name);
        for blocks in &kernels {
            // All values for one target; the others' kernels differ in their heads.
            let count = if target.name == "sm_100a" { hostile::COUNT } else { 8192 };
            let mut numbers = hostile::values(count, blocks.shared as usize);
            let finite = numbers.iter().filter(|x| x.is_finite()).count();
            assert!(
                finite < numbers.len()
                    && numbers.iter().any(|x| x.is_infinite())
                    && finite > numbers.len() / 2
            );
            // The magnitudes whose quotients by 448 and by 57344 are rounded to a power of two.
            for (at, bits) in [0x0460_0001, 0x8460_0002, 0x07e0_0001, 0x87e0_0002].into_iter().enumerate() {
                numbers[128 * (at + 1)..128 * (at + 2)].fill(f32::from_bits(bits));
            }
            for tensor in hostile::tensor_scales(blocks) {
                let what = format!("{} on {} {tensor:?}", blocks.spec.name, target.name);
                let text = blocks.ptx(target, count as u64, tensor);
                let floats: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
                let bytes = blocks.bytes(count as u64) as usize - floats.len();
                let coded = run_on_blocks(&text, "encode", &floats, count, bytes);
                let (codes, scales) = coded.split_at(blocks.bytes_of_codes(count as u64) as usize);
                let wanted = hostile::expected(blocks, tensor, &numbers).unwrap();
                assert!((codes, scales) == (&wanted.codes, &wanted.scales), "{what}");
                if blocks.comes_back() {
                    let back = run_on_blocks(&text, "decode", &coded, count, floats.len());
                    let back = back.chunks(4).map(|x| f32::from_le_bytes(x.try_into().unwrap()));
                    assert!(back.map(hostile::bits).eq(wanted.back), "{what}");
                }
            }
        }
    }
}

#[test]
fn what_is_expected_of_blocks_is_their_definition() {
    for blocks in Blocks::on(TARGETS.last().unwrap()) {
        let plan = BlockPlan { spec: blocks.spec, scale: 1.0 };
        let shared = blocks.shared as usize;
        let numbers = hostile::values(1 << 14, shared);
        let tensor = hostile::tensor_scales(&blocks)[0];
        let wanted = hostile::expected(&blocks, tensor, &numbers).unwrap();
        for (number, block) in numbers.chunks(shared).enumerate() {
            let (scale, elements) = cast_block(&plan, tensor, block);
            let bytes = blocks.scale_bytes() as usize;
            let stored = wanted.scales[number * bytes..(number + 1) * bytes].iter().rev();
            assert_eq!(stored.fold(0, |code, byte| code << 8 | u32::from(*byte)), scale.code);
            for (at, element) in elements.iter().enumerate() {
                let index = number * shared + at;
                let code = match blocks.code_bits() {
                    4 => wanted.codes[index / 2] >> (index % 2 * 4) & 15,
                    _ => wanted.codes[index],
                };
                // NVIDIA's NaN has no sign.
                let nan = find(blocks.spec.element.name)
                    .unwrap()
                    .nan_code(false)
                    .is_some_and(|_| decode(&blocks.spec.element, element.code).is_nan());
                assert_eq!(u32::from(code), if nan { 0x7f } else { element.code });
                let back = f32::from_bits(wanted.back[index]);
                let dequantised = element.dequantised as f32;
                assert!(back == dequantised || (back.is_nan() && dequantised.is_nan()));
            }
        }
    }
}
