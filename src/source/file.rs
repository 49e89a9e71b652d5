//! A regular file read at given positions: shared by threads, and no buffer larger than the file.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::tensor::TensorInfo;

/// A dump file, open for reading at any position from any thread.
#[derive(Debug)]
pub(super) struct DumpFile {
    file: File,
    path: PathBuf,
    len: u64,
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
        let file = File::open(path).map_err(failed)?;
        let len = file.metadata().map_err(failed)?.len();
        Ok(Self { file, path: path.to_owned(), len })
    }

    /// Where the file is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Length in bytes when the file was opened.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Up to `limit` bytes from the start.
    pub(super) fn first_bytes(&self, limit: u64) -> Result<Vec<u8>> {
        self.bytes(0, self.len.min(limit))
    }

    /// The `len` bytes from `offset` on, which `what` is said to take.
    ///
    /// # Errors
    /// More bytes than `cap` or than the file has; nothing is allocated then.
    pub(super) fn header(&self, what: &str, offset: u64, len: u64, cap: u64) -> Result<Vec<u8>> {
        let left = self.len.saturating_sub(offset);
        if len > cap {
            let what = format!("{what} claims a length of {len} bytes, more than the {cap} that are read");
            return Err(Error::new(what).at_byte(offset));
        }
        if len > left {
            let what = format!("the file ends {left} bytes into {what}, which takes {len} bytes");
            return Err(Error::new(what).at_byte(self.len));
        }
        self.bytes(offset, len)
    }

    /// Fills `bytes` from byte `offset` of a tensor whose data begin at byte `start` of the file.
    pub(super) fn read_tensor(
        &self,
        tensor: &TensorInfo,
        start: u64,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<()> {
        let end = offset.checked_add(bytes.len() as u64);
        if end.is_none_or(|end| end > tensor.bytes()) {
            let what = format!(
                "{} bytes from byte {offset} on go beyond the tensor's {} bytes",
                bytes.len(),
                tensor.bytes()
            );
            return Err(Error::new(what).in_tensor(&tensor.name).in_file(&self.path));
        }
        self.read_exact_at(start + offset, bytes).map_err(|e| e.in_tensor(&tensor.name).in_file(&self.path))
    }

    fn bytes(&self, offset: u64, len: u64) -> Result<Vec<u8>> {
        let len = usize::try_from(len)
            .map_err(|_| Error::new(format!("{len} bytes do not fit in memory")).at_byte(offset))?;
        let mut bytes = vec![0; len];
        self.read_exact_at(offset, &mut bytes)?;
        Ok(bytes)
    }

    fn read_exact_at(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        fill(&self.file, offset, bytes).map_err(|error| {
            if error.kind() == io::ErrorKind::UnexpectedEof {
                Error::new(format!("the file has become shorter than the {} bytes it had", self.len))
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
