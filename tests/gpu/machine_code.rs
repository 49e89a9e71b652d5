//! Every kernel through NVIDIA's assembler, for every target that it claims, and what comes out looked at: only
//! machine code shows that the chip converts, and not a program in its place.
//!
//! `AMP_INSPECT_PTXAS` names ptxas; cuobjdump or nvdisasm are looked for beside it. Without it the test says
//! that it was left out, and fails if `AMP_INSPECT_REQUIRE_PTXAS=1`. Get it with
//! `pip install nvidia-cuda-nvcc nvidia-cuda-nvdisasm`.

use std::path::{Path, PathBuf};
use std::process::Command;

use amp_inspect::gpu::bulk::Bulk;
use amp_inspect::gpu::ptx;
use amp_inspect::gpu::table::{CONVERSIONS, TARGETS, Target};
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
    /// The machine code of `text`, or what the assembler says.
    fn assemble(&self, folder: &Path, target: &str, text: &str) -> Result<String, String> {
        let (source, cubin) = (folder.join("kernel.ptx"), folder.join("kernel.cubin"));
        std::fs::write(&source, text).unwrap();
        let arch = format!("-arch={target}");
        let output =
            Command::new(&self.ptxas).arg(&arch).arg(&source).arg("-o").arg(&cubin).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() {
            return Err(said);
        }
        let output = Command::new(&self.nvdisasm).arg("-c").arg(&cubin).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout).unwrap())
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
        let jobs: Vec<Job> = Job::all(&[]).into_iter().filter(|job| job.is_on(target)).collect();
        for job in &jobs {
            let text = ptx::job(target, job);
            let machine = tools
                .assemble(folder, target.name, &text)
                .unwrap_or_else(|said| panic!("{} on {}:\n{said}\n{text}", job.name(), target.name));
            if let Some(row) = job.rows().into_iter().find(|row| !has(&machine, row)) {
                panic!("{} on {}: none of {:?}\n{machine}", row.instruction, target.name, row.machine);
            }
        }
        for format in Bulk::formats() {
            let Some(bulk) = Bulk::new(format, target) else { continue };
            let text = bulk.ptx(target);
            let machine = tools
                .assemble(folder, target.name, &text)
                .unwrap_or_else(|said| panic!("{format} on {}:\n{said}\n{text}", target.name));
            assert!(has(&machine, bulk.encode), "{format} on {}\n{machine}", target.name);
            assert!(machine.contains("LDG.E.") && machine.contains("STG.E"), "{machine}");
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
            if let Ok(machine) = tools.assemble(folder, target.name, &text) {
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
