//! Checkpoints whose tensors are in several files, and the dumps of other tools.

use std::fs;
use std::path::Path;

use amp_inspect::source::{TensorSource, discover, open};

use super::{assert_values, values};

fn tensor(source: &dyn TensorSource, name: &str) -> Vec<f64> {
    let index =
        source.tensors().iter().position(|info| info.name == name).unwrap_or_else(|| panic!("no {name}"));
    values(source, index, &source.tensors()[index]).unwrap()
}

#[test]
fn chunks_of_a_distributed_checkpoint_are_put_together() {
    let counted = |count: u32| (0..count).map(f64::from).collect::<Vec<_>>();
    let single = open(Path::new("testdata/checkpoints/single/.metadata")).unwrap();
    assert_values(&tensor(&*single, "model.w"), &counted(6), "model.w");
    assert_values(&tensor(&*single, "model.v"), &counted(4), "model.v");
    assert_values(&tensor(&*single, "opt.state.0.exp_avg"), &[1.0, 1.0], "exp_avg");
    // Cut by rows and by columns.
    let two = open(Path::new("testdata/checkpoints/two_ranks/.metadata")).unwrap();
    assert_values(&tensor(&*two, "model.w"), &counted(15), "model.w");
    assert_values(&tensor(&*two, "model.col"), &counted(15), "model.col");
    assert_values(&tensor(&*two, "model.rep"), &[1.0, 2.0], "model.rep");
    assert_values(&tensor(&*two, "plain"), &[3.5], "plain");
    let mut some = [0; 9];
    two.read_at(1, 6, &mut some).unwrap();
    let all: Vec<u8> = (0..15_u8).flat_map(|x| f32::from(x).to_le_bytes()).collect();
    assert_eq!(some, all[6..15]);
    let found = discover(&["testdata/checkpoints".into()], false);
    let names: Vec<_> = found.files.iter().map(|path| path.file_name().unwrap().to_owned()).collect();
    assert_eq!(names, [".metadata", ".metadata"]);
}

#[test]
fn a_checkpoint_says_which_chunks_it_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let from = Path::new("testdata/checkpoints/two_ranks");
    for name in [".metadata", "__0_0.distcp", "__1_0.distcp"] {
        fs::copy(from.join(name), at(name)).unwrap();
    }
    let problems = || -> Vec<String> {
        let source = open(&at(".metadata")).unwrap();
        let whats = source.problems().iter().map(|problem| problem.what().to_owned());
        whats.map(|what| what.replace(&folder.path().display().to_string(), "")).collect()
    };
    assert_eq!(problems(), [""; 0]);
    fs::write(at("__1_0.distcp"), &fs::read(from.join("__1_0.distcp")).unwrap()[..1600]).unwrap();
    assert_eq!(problems()[0], "its chunk at (3, 0) lies beyond the end of '__1_0.distcp'");
    fs::remove_file(at("__1_0.distcp")).unwrap();
    let missing =
        "its chunk at (3, 0) is missing: /__1_0.distcp: cannot open the file: no such file or directory";
    assert_eq!(problems()[0], missing);
    // A byte of the data.
    let mut bytes = fs::read(from.join("__1_0.distcp")).unwrap();
    let data = bytes.windows(4).position(|four| four == 9.0_f32.to_le_bytes()).unwrap();
    bytes[data] ^= 1;
    fs::write(at("__1_0.distcp"), bytes).unwrap();
    let source = open(&at(".metadata")).unwrap();
    let error = values(&*source, 0, &source.tensors()[0]).unwrap_err();
    assert_eq!(error.what(), "the data are damaged: their CRC-32 is not the one that was recorded");
}

#[test]
fn dumps_of_other_tools_have_their_values() {
    let open = |path: &str| open(&Path::new("testdata/dumps").join(path)).unwrap();
    let te = open("te_dump_tensors/tensor_dumps/rank_0/iter_000100/decoder_layers_0_mlp_fc1_activation.pt");
    assert_values(&tensor(&*te, "high_precision"), &[1.0, 2.0, 448.0, -0.5], "te");
    assert_values(&tensor(&*te, "quantized.args.2"), &[1.0], "te");
    assert!(te.notices()[0].what().contains("'transformer_engine.pytorch.tensor.float8"));
    let megatron = open("megatron_legacy/iter_0000100/mp_rank_00/model_optim_rng.pt");
    assert_values(&tensor(&*megatron, "model.language_model.encoder.layers.0.w"), &[1.0, 2.0], "megatron");
    let paddle = open("paddle/model.pdparams");
    assert_values(&tensor(&*paddle, "linear.weight"), &[1.0, 2.0], "paddle");
}
