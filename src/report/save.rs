//! Files written whole or not at all: under a temporary name in the same folder, then renamed.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::{Needs, OUTPUTS, Output, Report};
use crate::error::{Error, Result};

/// A file to be saved, already known to be writable.
pub struct Target {
    path: PathBuf,
    output: &'static Output,
}

impl Target {
    /// Reserves `path`, so that a mistake is told before the work and not after it. An existing file
    /// stays as it is until [`save`](Self::save).
    ///
    /// # Errors
    /// The extension is unknown, or needs what the report does not have (`has`), or the folder cannot be
    /// written.
    pub fn reserve(path: &Path, has: &[Needs]) -> Result<Self> {
        let extension =
            path.extension().and_then(|extension| extension.to_str()).unwrap_or("").to_ascii_lowercase();
        let output = OUTPUTS.iter().find(|output| output.extension == extension).ok_or_else(|| {
            let known = extensions(has);
            Error::new(format!("cannot save this kind of file; the extensions are {known}")).in_file(path)
        })?;
        if !meets(output.needs, has) {
            let known = extensions(has);
            let lacks = if output.needs == Needs::Picture { "draws no picture" } else { "judges nothing" };
            let why = format!("cannot save: this command {lacks}; the extensions are {known}");
            return Err(Error::new(why).in_file(path));
        }
        if path.is_dir() || path.to_string_lossy().ends_with(std::path::is_separator) {
            return Err(Error::new("cannot save: it is a directory").in_file(path));
        }
        // What a link points to is replaced, and not the link.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let target = Self { path, output };
        // Tried and taken away again: an interrupted run must not leave it behind.
        target.temporary()?;
        Ok(target)
    }

    fn temporary(&self) -> Result<NamedTempFile> {
        temporary(&self.path)
    }

    /// Renders `report` and puts it in place.
    ///
    /// # Errors
    /// The file cannot be written; nothing is left behind.
    pub fn save(self, report: &dyn Report) -> Result<()> {
        let mut temporary = self.temporary()?;
        let mut out = BufWriter::new(&mut temporary);
        let rendered = (self.output.render)(report, &mut out).and_then(|()| out.flush());
        drop(out);
        rendered.map_err(|error| Error::io("cannot save", &error).in_file(&self.path))?;
        let persisted = temporary.persist(&self.path);
        persisted.map_err(|failed| Error::io("cannot save", &failed.error).in_file(&self.path))?;
        Ok(())
    }
}

/// Makes sure that each of these files is written for one purpose, and that none of those that are read is
/// replaced.
///
/// # Errors
/// Two of `written`, or one of them and one of `read`, are the same file, whatever they are called.
pub fn keep_apart(written: &[&Path], read: &[&Path]) -> Result<()> {
    let written: Vec<(&Path, PathBuf)> = written.iter().map(|path| (*path, resolved(path))).collect();
    let read: Vec<PathBuf> = read.iter().map(|path| resolved(path)).collect();
    for (number, (path, file)) in written.iter().enumerate() {
        if read.contains(file) {
            return Err(Error::new("cannot save: it is an input, which would be lost").in_file(path));
        }
        if written[..number].iter().any(|(_, other)| other == file) {
            return Err(Error::new("cannot save: it is named for two outputs").in_file(path));
        }
    }
    Ok(())
}

/// Where a path leads, whether there is a file already or not.
fn resolved(path: &Path) -> PathBuf {
    let to_be = || Some(folder(path).canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(to_be).unwrap_or_else(|| path.to_owned())
}

/// Makes sure that [`replace`] can write a file.
///
/// # Errors
/// The folder cannot be written, or is what the path names.
pub fn writable(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Err(Error::new("cannot save: it is a directory").in_file(path));
    }
    temporary(&path.canonicalize().unwrap_or_else(|_| path.to_owned())).map(drop)
}

/// Writes a file that is no report, whole or not at all.
///
/// # Errors
/// The file cannot be written; nothing is left behind.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let fault = |error: &std::io::Error| Error::io("cannot save", error).in_file(&path);
    let mut file = temporary(&path)?;
    file.write_all(bytes).map_err(|error| fault(&error))?;
    file.persist(&path).map_err(|failed| fault(&failed.error))?;
    Ok(())
}

/// A file in the same folder.
fn temporary(path: &Path) -> Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".amp-inspect-");
    // Temporary files are private by default; a saved report is an ordinary file under the umask.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder(path)).map_err(|error| Error::io("cannot save", &error).in_file(path))
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The kinds of file that can be saved of a report that has these.
pub fn kinds(has: &[Needs]) -> impl Iterator<Item = &'static Output> {
    OUTPUTS.iter().filter(move |output| meets(output.needs, has))
}

fn meets(needs: Needs, has: &[Needs]) -> bool {
    needs == Needs::Nothing || has.contains(&needs)
}

/// The extensions that can be asked for.
fn extensions(has: &[Needs]) -> String {
    kinds(has).map(|output| format!(".{}", output.extension)).collect::<Vec<_>>().join(", ")
}
