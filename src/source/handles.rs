//! Open files, a few at a time: a run may have dumped more files than a process may have open.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// Files that are kept open.
const OPEN: usize = 128;

/// The open files by number, the longest unused first.
static FILES: Mutex<Vec<(u64, Arc<File>)>> = Mutex::new(Vec::new());
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A file that is opened again when it is read after many others.
#[derive(Debug)]
pub(super) struct Handle {
    number: u64,
    path: PathBuf,
    /// Length and time of the last change when it was opened first.
    state: (u64, Option<SystemTime>),
}

impl Handle {
    /// Opens `path` for reading.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let handle = Self { number, path: path.to_owned(), state: state(&file)? };
        keep(number, Arc::new(file));
        Ok(handle)
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Length in bytes when it was opened.
    pub(super) fn len(&self) -> u64 {
        self.state.0
    }

    /// The open file.
    ///
    /// # Errors
    /// It cannot be opened again, or is no longer the same.
    pub(super) fn file(&self) -> io::Result<Arc<File>> {
        let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = files.iter().rposition(|(number, _)| *number == self.number) {
            let file = files.remove(place);
            let opened = Arc::clone(&file.1);
            files.push(file);
            return Ok(opened);
        }
        drop(files);
        let file = File::open(&self.path)?;
        if state(&file)? != self.state {
            return Err(io::Error::other("it has been changed since it was opened"));
        }
        let file = Arc::new(file);
        keep(self.number, Arc::clone(&file));
        Ok(file)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        FILES.lock().unwrap_or_else(PoisonError::into_inner).retain(|(number, _)| *number != self.number);
    }
}

fn state(file: &File) -> io::Result<(u64, Option<SystemTime>)> {
    let metadata = file.metadata()?;
    Ok((metadata.len(), metadata.modified().ok()))
}

fn keep(number: u64, file: Arc<File>) {
    let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    if files.len() >= OPEN {
        files.remove(0);
    }
    files.push((number, file));
}
