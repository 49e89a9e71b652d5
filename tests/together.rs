//! Tensors read side by side: the same elements meet, whatever their types and orders in the files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::num::NonZero;
use std::path::Path;

use amp_inspect::pipeline::{Task, run_together};
use amp_inspect::source::{TensorSource, open};
use amp_inspect::stats::{AccumulateTogether, Merge};
use amp_inspect::tensor::Chunk;

/// All elements, each with those that it met.
#[derive(Default)]
struct Met(Vec<Vec<f64>>);

impl AccumulateTogether for Met {
    fn observe(&mut self, first: u64, chunks: &[Chunk<'_>]) {
        let seen = self.0.first().map_or(0, Vec::len) as u64;
        assert_eq!(first % (1 << 22), seen, "segments are read from their start, piece by piece");
        self.0.resize(chunks.len(), Vec::new());
        for (met, chunk) in self.0.iter_mut().zip(chunks) {
            match chunk {
                Chunk::F32(values) => met.extend(values.iter().map(|&x| f64::from(x))),
                Chunk::F64(values) => met.extend_from_slice(values),
            }
        }
    }
}

impl Merge for Met {
    type Out = Vec<Vec<f64>>;

    fn merge(&mut self, next: Self) {
        self.0.iter_mut().zip(next.0).for_each(|(met, next)| met.extend(next));
    }

    fn finish(self) -> Vec<Vec<f64>> {
        self.0
    }
}

/// Writes a NumPy file of version 1.0.
fn write_npy(path: &Path, descr: &str, fortran: &str, shape: &str, data: &[u8]) {
    let header = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}");
    let header = format!("{header:<117}\n");
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn the_same_elements_meet() {
    let folder = tempfile::tempdir().unwrap();
    // More than a segment of 2^22 elements.
    let (rows, columns) = (2_100_u32, 2_003_u32);
    let shape = format!("({rows}, {columns})");
    let c_order = |index: u32| index as f32;
    let in_fortran = |place: u32| place % rows * columns + place / rows;
    let total = rows * columns;
    let paths = ["c.npy", "fortran.npy", "double.npy"].map(|name| folder.path().join(name));
    let bytes: Vec<u8> = (0..total).flat_map(|index| c_order(index).to_le_bytes()).collect();
    write_npy(&paths[0], "<f4", "False", &shape, &bytes);
    let bytes: Vec<u8> = (0..total).flat_map(|place| c_order(in_fortran(place)).to_be_bytes()).collect();
    write_npy(&paths[1], ">f4", "True", &shape, &bytes);
    let bytes: Vec<u8> = (0..total).flat_map(|index| f64::from(index).to_le_bytes()).collect();
    write_npy(&paths[2], "<f8", "False", &shape, &bytes);

    let sources: Vec<_> = paths.iter().map(|path| open(path).unwrap()).collect();
    let task = |number: usize| {
        let source: &dyn TensorSource = &*sources[number];
        Task { source, index: 0, info: source.tensors()[0].clone(), path: &paths[number] }
    };
    for threads in [1, 3] {
        let groups = [vec![task(0), task(1), task(2)], vec![task(1), task(1)], vec![]];
        let threads = NonZero::new(threads).unwrap();
        let mut results = run_together(&groups, threads, |_| Met::default(), |_| {});
        assert!(results.pop().unwrap().unwrap().is_empty());
        let alone = results.pop().unwrap().unwrap();
        let together = results.pop().unwrap().unwrap();
        let wanted: Vec<f64> = (0..total).map(f64::from).collect();
        assert!(together.iter().all(|met| *met == wanted), "put in row-major order");
        let stored: Vec<f64> = (0..total).map(|place| f64::from(in_fortran(place))).collect();
        assert!(alone.iter().all(|met| *met == stored), "all alike: as they are stored");
    }
}

#[test]
fn other_shapes_and_damage_are_told_with_file_and_tensor() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a.npy", "b.npy"].map(|name| folder.path().join(name));
    write_npy(&paths[0], "<f4", "False", "(2, 3)", &[0; 24]);
    write_npy(&paths[1], "<f4", "False", "(3, 2)", &[0; 24]);
    let sources: Vec<_> = paths.iter().map(|path| open(path).unwrap()).collect();
    let task = |number: usize| {
        let source: &dyn TensorSource = &*sources[number];
        Task { source, index: 0, info: source.tensors()[0].clone(), path: &paths[number] }
    };
    std::fs::write(&paths[0], b"short").unwrap();
    let mut same_shape = vec![task(1), task(0)];
    same_shape[1].info.shape = vec![3, 2];
    let groups = [vec![task(1), task(0)], same_shape, vec![task(1)]];
    let results = run_together(&groups, NonZero::<usize>::MIN, |_| Met::default(), |_| {});
    let texts: Vec<String> = results
        .iter()
        .map(|result| result.as_ref().err().map(ToString::to_string).unwrap_or_default())
        .collect();
    assert!(
        texts[0].ends_with(
            "a.npy: tensor 'a': has shape [2, 3], which cannot be read beside [3, 2] of tensor 'b'"
        ),
        "{}",
        texts[0]
    );
    assert!(texts[1].contains("a.npy: tensor 'a': "), "{}", texts[1]);
    assert_eq!(texts[2], "");
}
