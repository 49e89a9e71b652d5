//! Every kernel through NVIDIA's assembler, for every target that it claims, and what comes out looked at: only
//! machine code shows that the chip converts, and not a program in its place.
//!
//! `AMP_INSPECT_PTXAS` names ptxas; cuobjdump or nvdisasm are looked for beside it. Without it the test says
//! that it was left out, and fails if `AMP_INSPECT_REQUIRE_PTXAS=1`. Get it with
//! `pip install nvidia-cuda-nvcc nvidia-cuda-nvdisasm`.

use std::path::{Path, PathBuf};
use std::process::Command;

use amp_inspect::cast::block::TensorScale;
use amp_inspect::gpu::blocks::Blocks;
use amp_inspect::gpu::bulk::Bulk;
use amp_inspect::gpu::ptx;
use amp_inspect::gpu::table::CONVERSIONS;
use amp_inspect::gpu::target::{TARGETS, Target};
use amp_inspect::gpu::{Conversion, Job};

use crate::common::say;

/// The assembler and the disassembler.
struct Tools {
    ptxas: PathBuf,
    nvdisasm: PathBuf,
}

fn tools() -> Option<Tools> {
    let required = std::env::var_os("AMP_INSPECT_REQUIRE_PTXAS").is_some_and(|value| value == "1");
    let found = std::env::var_os("AMP_INSPECT_PTXAS").map(PathBuf::from).map(|ptxas| {
        let nvdisasm = ptxas.with_file_name("nvdisasm");
        assert!(ptxas.is_file() && nvdisasm.is_file(), "{} and nvdisasm beside it", ptxas.display());
        Tools { ptxas, nvdisasm }
    });
    assert!(found.is_some() || !required, "AMP_INSPECT_PTXAS must name ptxas here");
    if found.is_none() {
        say("SKIPPED: kernels were not assembled: set AMP_INSPECT_PTXAS (see tests/gpu/machine_code.rs)");
    }
    found
}

impl Tools {
    /// Assembles `text`; on success the path of what comes out, else what the assembler says.
    fn assemble(&self, folder: &Path, target: &str, text: &str) -> Result<PathBuf, String> {
        let (source, cubin) = (folder.join("kernel.ptx"), folder.join("kernel.cubin"));
        std::fs::write(&source, text).unwrap();
        let arch = format!("-arch={target}");
        let output =
            Command::new(&self.ptxas).arg(&arch).arg(&source).arg("-o").arg(&cubin).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(cubin) } else { Err(said) }
    }

    fn disassemble(&self, cubin: &Path) -> String {
        let output = Command::new(&self.nvdisasm).arg("-c").arg(cubin).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

/// Modules of one target, each assembled on its own, and then all in one, as starting the disassembler takes
/// longer than all of its work.
struct Modules<'a> {
    tools: &'a Tools,
    folder: &'a Path,
    target: &'static Target,
    bodies: String,
    count: usize,
}

impl<'a> Modules<'a> {
    fn new(tools: &'a Tools, folder: &'a Path, target: &'static Target) -> Self {
        Self { tools, folder, target, bodies: String::new(), count: 0 }
    }

    /// Assembles a module of this name; gives its number.
    #[track_caller]
    fn add(&mut self, name: &str, text: &str) -> usize {
        let target = self.target.name;
        if let Err(said) = self.tools.assemble(self.folder, target, text) {
            panic!("{name} on {target}:\n{said}\n{text}");
        }
        let (_, body) = text.split_once(".address_size 64").unwrap();
        let renamed = body.replace(".entry ", &format!(".entry module{}_", self.count));
        self.bodies += &renamed;
        self.count += 1;
        self.count - 1
    }

    /// The machine code of each module, by number.
    fn machine_code(self) -> Vec<String> {
        // The version of the one that needs the highest.
        let text = format!(".version 9.2\n.target {}\n.address_size 64\n{}", self.target.name, self.bodies);
        let cubin = self.tools.assemble(self.folder, self.target.name, &text).unwrap();
        let mut modules = vec![String::new(); self.count];
        let whole = self.tools.disassemble(&cubin);
        for section in whole.split(".section\t.text.module").skip(1) {
            let number: usize = section.split('_').next().unwrap().parse().unwrap();
            modules[number] += section;
        }
        assert!(modules.iter().all(|code| code.contains("EXIT")), "{whole}");
        modules
    }
}

fn has(machine: &str, row: &Conversion) -> bool {
    row.machine.iter().any(|instruction| machine.contains(instruction))
}

/// Runs `work` on each target, on two threads at a time, in folders of their own.
fn on_each_target(work: impl Fn(&'static Target, &Path) + Sync) {
    std::thread::scope(|scope| {
        for target in TARGETS {
            let work = &work;
            scope.spawn(move || work(target, tempfile::tempdir().unwrap().path()));
        }
    });
}

#[test]
fn every_kernel_assembles_for_every_target_and_holds_the_instruction() {
    let Some(tools) = tools() else { return };
    on_each_target(|target, folder| {
        let mut modules = Modules::new(&tools, folder, target);
        let mut wanted: Vec<(usize, Vec<&Conversion>)> = Vec::new();
        for job in Job::all(&[]).iter().filter(|job| job.is_on(target)) {
            wanted.push((modules.add(&job.name(), &ptx::job(target, job)), job.rows()));
        }
        let questions = wanted.len();
        for bulk in Bulk::formats().into_iter().filter_map(|format| Bulk::new(format, target)) {
            wanted.push((modules.add(bulk.encode.to, &bulk.ptx(target)), vec![bulk.encode]));
        }
        for blocks in Blocks::on(target) {
            let text = blocks.ptx(target, 1 << 33, TensorScale::ONE);
            wanted.push((modules.add(blocks.spec.name, &text), vec![blocks.encode]));
        }
        let machine = modules.machine_code();
        for (number, rows) in wanted {
            let machine = &machine[number];
            if let Some(row) = rows.into_iter().find(|row| !has(machine, row)) {
                panic!("{} on {}: none of {:?}\n{machine}", row.instruction, target.name, row.machine);
            }
            // Buffers of float32 are read 16 bytes at a time.
            assert!(number < questions || machine.contains("LDG.E.128"), "{machine}");
        }
    });
}

#[test]
fn a_target_rejects_what_the_table_denies_it() {
    let Some(tools) = tools() else { return };
    // The assembler takes some instructions for chips that have them only as a program: those are left out.
    on_each_target(|target, folder| {
        for row in CONVERSIONS.iter().filter(|row| !row.is_on(target)) {
            let text = ptx::job(target, &Job::One(row));
            if let Ok(cubin) = tools.assemble(folder, target.name, &text) {
                let machine = tools.disassemble(&cubin);
                assert!(
                    !(row.is_one_instruction() && has(&machine, row)),
                    "{} has {}",
                    target.name,
                    row.instruction
                );
            }
        }
    });
}

#[test]
fn versions_of_the_table_are_the_least_that_the_assembler_takes() {
    let Some(tools) = tools() else { return };
    on_each_target(|target, folder| {
        let rows = CONVERSIONS.iter().filter(|row| row.is_on(target) && row.since.version > target.version);
        for row in rows {
            let (major, minor) = row.since.version;
            let text = ptx::job(target, &Job::One(row));
            let lower = text
                .replace(&format!(".version {major}.{minor}"), &format!(".version {major}.{}", minor - 1));
            assert_ne!(text, lower);
            assert!(
                tools.assemble(folder, target.name, &lower).is_err(),
                "{} in less than PTX {major}.{minor} on {}",
                row.instruction,
                target.name
            );
        }
    });
}
