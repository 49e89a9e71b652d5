//! From the paths of a command line to the files to open.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use super::bytes::Bytes as _;
use super::file::DumpFile;
use super::{Reader, distributed, known, raw, sharded};
use crate::error::{Error, Result};

/// The files that a list of paths stands for.
#[derive(Debug, Default)]
pub struct Discovery {
    /// Files to open, in the order of the paths; those of a directory in the order of their names.
    pub files: Vec<PathBuf>,
    /// Number of files in the given directories that are no dumps, by extension.
    pub skipped: BTreeMap<String, u64>,
    /// Paths that stand for nothing, and directories or files that cannot be read.
    pub problems: Vec<Error>,
    /// Number of files that were found more than once and are taken once.
    pub repeated: u64,
    /// Whether raw files can be read.
    raw: bool,
    /// Where the files really are.
    real_paths: HashSet<PathBuf>,
}

/// Finds the dumps that `paths` stand for.
///
/// A file is taken as it is. A directory is searched to any depth, and symbolic links are followed
/// (not in circles, and no file twice); a file is taken if its first bytes are those of a dump, or if it is named like one,
/// so that damaged dumps are reported and not passed over. A path that does not exist and contains
/// `*`, `?` or `[` is a pattern: `run/step*/grads.npy`, and `**` for any depth.
/// Tables (.csv) are taken if they are named, not from directories, where most are logs.
/// An index of a model in several files stands for these files, which are then not taken again. With `raw`,
/// what is called like a raw file is taken too; without, only if a JSON file beside it describes it.
pub fn discover(paths: &[PathBuf], raw: bool) -> Discovery {
    let mut found = Discovery { raw, ..Discovery::default() };
    for path in paths {
        let pattern = path.to_str().filter(|text| text.contains(['*', '?', '[']));
        match (std::fs::metadata(path), pattern) {
            (Err(error), Some(pattern)) if error.kind() == std::io::ErrorKind::NotFound => {
                found.expand(pattern);
            }
            (Err(error), _) => {
                found.problems.push(Error::io("cannot open the file", &error).in_file(path));
            }
            (Ok(metadata), _) if metadata.is_dir() => found.walk(path),
            (Ok(_), _) => found.take(path.clone()),
        }
    }
    found.drop_shards();
    found
}

impl Discovery {
    fn expand(&mut self, pattern: &str) {
        let matches = match glob::glob(pattern) {
            Ok(matches) => matches,
            Err(error) => {
                let what = format!("is no file, nor a pattern: {} at character {}", error.msg, error.pos);
                return self.problems.push(Error::new(what).in_file(pattern));
            }
        };
        let mut any = false;
        for entry in matches {
            any = true;
            match entry {
                Ok(path) if path.is_dir() => self.walk(&path),
                Ok(path) => self.take(path),
                Err(error) => {
                    self.problems
                        .push(Error::io("cannot read the directory", error.error()).in_file(error.path()));
                }
            }
        }
        if !any {
            self.problems.push(Error::new("matches no file").in_file(pattern));
        }
    }

    fn walk(&mut self, directory: &Path) {
        let raw = self.raw;
        let found = |found: &Self| (found.files.len(), found.repeated, found.problems.len());
        let (before, skipped) = (found(self), self.skipped());
        for entry in WalkDir::new(directory).follow_links(true).sort_by_file_name() {
            match entry {
                Ok(entry) if entry.file_type().is_dir() => {}
                Ok(entry) if !entry.file_type().is_file() => self.skip(entry.path()),
                Ok(entry) => match is_dump(entry.path(), raw) {
                    Ok(true) => self.take(entry.into_path()),
                    Ok(false) => self.skip(entry.path()),
                    Err(error) => self.problems.push(error.in_file(entry.path())),
                },
                // A link back up the tree leads to files that are visited anyway.
                Err(error) if error.loop_ancestor().is_some() => {}
                Err(error) => {
                    let what = error.io_error().map(|io| Error::io("cannot read the directory", io));
                    let what = what.unwrap_or_else(|| Error::new(error.to_string()));
                    self.problems.push(what.in_file(error.path().unwrap_or(directory)));
                }
            }
        }
        if found(self) == before {
            let others = self.skipped() - skipped;
            let what = known::by_files(directory).map_or_else(
                || format!("contains no dump that can be read; other files there: {others}"),
                str::to_owned,
            );
            self.problems.push(Error::new(what).in_file(directory));
        }
    }
}

impl Discovery {
    /// Takes a file, unless it has been taken already under this or another name: neither overlapping
    /// arguments nor a link such as `latest` may make it count twice.
    fn take(&mut self, path: PathBuf) {
        if path.canonicalize().is_ok_and(|real| !self.real_paths.insert(real)) {
            self.repeated += 1;
        } else {
            self.files.push(path);
        }
    }

    /// Counts a file that is no dump.
    fn skip(&mut self, path: &Path) {
        let extension = path.extension().unwrap_or_default().to_string_lossy().into_owned();
        *self.skipped.entry(extension).or_default() += 1;
    }

    /// Number of files that are no dumps.
    fn skipped(&self) -> u64 {
        self.skipped.values().sum()
    }

    /// Leaves out the files that an index or a checkpoint's metadata among the others stand for.
    fn drop_shards(&mut self) {
        let parts = |path: &PathBuf| match path.file_name().map(|name| name.to_string_lossy()) {
            Some(name) if name.ends_with(".index.json") => sharded::shards(path),
            Some(name) if name == ".metadata" => distributed::data_files(path),
            _ => Vec::new(),
        };
        let shards: HashSet<PathBuf> =
            self.files.iter().flat_map(parts).filter_map(|path| path.canonicalize().ok()).collect();
        if !shards.is_empty() {
            self.files.retain(|path| path.canonicalize().map_or(true, |real| !shards.contains(&real)));
        }
    }
}

fn is_dump(path: &Path, raw: bool) -> Result<bool> {
    let described = || raw::is_named(path) && (raw || raw::sidecar(path).is_some());
    if Reader::by_extension(path).is_some() || described() {
        return Ok(true);
    }
    let file = DumpFile::open(path)?;
    let first = file.first_bytes(known::FIRST_BYTES)?;
    Ok(Reader::by_content(&first, file.len()).is_some())
}
