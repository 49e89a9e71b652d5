//! A regular file read at given positions: shared by threads, and no buffer larger than the file.

use std::fs::File;
use std::io;
use std::path::Path;

use super::bytes::Bytes;
use super::handles::Handle;
use super::limits;
use crate::error::{Error, Result};

/// A dump file, open for reading at any position from any thread.
#[derive(Debug)]
pub(super) struct DumpFile {
    handle: Handle,
}

impl DumpFile {
    /// Opens the regular file `path`. Pipes and devices are refused before they are opened, since opening
    /// one can wait forever.
    ///
    /// # Errors
    /// What the operating system says, or that `path` is no regular file.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let failed = |error: io::Error| Error::io("cannot open the file", &error).in_file(path);
        let metadata = std::fs::metadata(path).map_err(failed)?;
        if metadata.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        if !metadata.is_file() {
            let what = "is a pipe, socket or device; only regular files can be read at any position";
            return Err(Error::new(what).in_file(path));
        }
        Ok(Self { handle: Handle::open(path).map_err(failed)? })
    }

    /// Where the file is.
    pub(super) fn path(&self) -> &Path {
        self.handle.path()
    }
}

impl Bytes for DumpFile {
    /// Length in bytes when the file was opened.
    fn len(&self) -> u64 {
        self.handle.len()
    }

    fn kind(&self) -> &'static str {
        "file"
    }

    fn read_exact_at(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        self.handle.file().and_then(|file| fill(&file, offset, bytes)).map_err(|error| {
            if error.kind() == io::ErrorKind::UnexpectedEof {
                let had = limits::bytes(self.len());
                Error::new(format!("the file has become shorter than the {had} it had"))
            } else {
                Error::io("cannot read the file", &error)
            }
            .at_byte(offset)
        })
    }
}

#[cfg(unix)]
fn fill(file: &File, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(windows)]
fn fill(file: &File, mut offset: u64, mut bytes: &mut [u8]) -> io::Result<()> {
    use std::os::windows::fs::FileExt;
    while !bytes.is_empty() {
        match file.seek_read(bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                bytes = &mut bytes[count..];
                offset += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
