//! Zip archives: a directory of members, each stored as it is or deflated.
//!
//! Sizes and positions in the directory are claims: members may not overlap nor leave the file, and nothing
//! is allocated by them. Members are unpacked as they are read, in bounded memory; the CRC-32 of each is
//! checked once the last of its bytes has been read.

mod checksum;
mod inflate;

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use checksum::Checksum;
use inflate::{Cursor, Packed};
use rawzip::{CompressionMethod, ErrorKind, ReaderAt, ZipLocator};

use super::bytes::Bytes;
use super::file::DumpFile;
use super::limits;
use crate::error::{Error, Result};

/// What is said of data whose checksum is not the recorded one.
const DAMAGED: &str = "the data are damaged: their CRC-32 is not the one that was recorded";

/// Whether a file that begins with `first` is a zip archive.
pub(super) fn matches(first: &[u8], _file_len: u64) -> bool {
    first.starts_with(b"PK\x03\x04") || first.starts_with(b"PK\x05\x06")
}

/// A member of an archive; its bytes are those that it unpacks to.
pub(super) struct Member {
    file: Arc<DumpFile>,
    name: String,
    packed: Packed,
    how: How,
}

enum How {
    Stored(Checksum),
    /// With the position in the unpacked data, once it has been read from.
    Deflated(Mutex<Option<Box<Cursor>>>),
}

/// A member of an archive, or why it cannot be read.
pub(super) type Entry = (String, Result<Member>);

/// The members of the archive that takes the `len` bytes of the file from `start` on, in the order of its
/// directory. Folders are left out.
///
/// # Errors
/// The directory as a whole cannot be read.
pub(super) fn members(file: &Arc<DumpFile>, start: u64, len: u64) -> Result<Vec<Entry>> {
    let view = View { file, start, len };
    let mut buffer = vec![0; len.clamp(1024, limits::ZIP_RECORD_BYTES as u64) as usize];
    let archive = ZipLocator::new()
        .locate_in_reader(view, &mut buffer, len)
        .map_err(|(_, error)| unreadable(&error, start + len))?;
    let mut records = Vec::new();
    let mut entries = archive.entries(&mut buffer);
    let directory_at = start + archive.directory_offset();
    while let Some(record) = entries.next_entry().map_err(|error| unreadable(&error, directory_at))? {
        if records.len() == limits::MEMBERS {
            let what = format!("the archive has more than {} members", limits::MEMBERS);
            return Err(Error::new(what).at_byte(directory_at));
        }
        if !record.is_dir() {
            let name = String::from_utf8_lossy(record.file_path().as_ref()).into_owned();
            let method = record.compression_method();
            records.push((name, method, record.flags().is_encrypted(), record.crc32(), record.wayfinder()));
        }
    }
    let mut members: Vec<Entry> = Vec::new();
    for (name, method, encrypted, crc, wayfinder) in records {
        let place = archive.get_entry(wayfinder).map_err(|error| unreadable(&error, directory_at));
        let unpacked = wayfinder.uncompressed_size_hint();
        let member = place.and_then(|place| {
            let (begin, end) = place.compressed_data_range();
            if end > archive.directory_offset() {
                return Err(Error::new("lies beyond the place of the archive's directory"));
            }
            let crc = (crc != 0).then_some(crc);
            let packed = Packed { start: start + begin, size: end - begin, unpacked, crc };
            let how = how(method, encrypted, packed)?;
            Ok(Member { file: Arc::clone(file), name: name.clone(), packed, how })
        });
        members.push((name.clone(), member.map_err(|error| error.in_member(&name))));
    }
    refuse_overlaps(&mut members);
    Ok(members)
}

/// How a member is read.
fn how(method: CompressionMethod, encrypted: bool, packed: Packed) -> Result<How> {
    let Packed { size, unpacked, crc, .. } = packed;
    if encrypted {
        return Err(Error::new("is encrypted"));
    }
    match method {
        CompressionMethod::STORE if size == unpacked => Ok(How::Stored(Checksum::new(crc, size))),
        CompressionMethod::STORE => {
            let size = limits::bytes(size);
            Err(Error::new(format!("is stored as {size}, but the directory claims {unpacked}")))
        }
        CompressionMethod::DEFLATE => Ok(How::Deflated(Mutex::new(None))),
        other => {
            let number = other.as_u16();
            let what = "only stored and deflated members are read; pack it anew";
            Err(Error::new(format!("is compressed with zip method {number}: {what}")))
        }
    }
}

/// Members that share bytes of the file make small archives unpack to anything; no writer makes them.
fn refuse_overlaps(members: &mut [Entry]) {
    let mut spans: Vec<(u64, u64, usize)> = members
        .iter()
        .enumerate()
        .filter_map(|(index, (_, member))| member.as_ref().ok().map(|member| (index, member.packed)))
        .filter(|(_, packed)| packed.size > 0)
        .map(|(index, packed)| (packed.start, packed.start + packed.size, index))
        .collect();
    spans.sort_unstable();
    let mut reach = 0;
    for (start, end, index) in spans {
        if start < reach {
            let (name, member) = &mut members[index];
            let what = format!("its data overlap those of another member, from byte {start} of the file on");
            *member = Err(Error::new(what).in_member(name));
        }
        reach = reach.max(end);
    }
}

/// Words rawzip's error.
fn unreadable(error: &rawzip::Error, at: u64) -> Error {
    let what = match error.kind() {
        ErrorKind::MissingEndOfCentralDirectory => {
            "the archive has no directory at its end, as when a job is killed while it saves".to_owned()
        }
        ErrorKind::InvalidSignature { .. } => {
            "the archive's directory is damaged, or belongs to another archive \
                                                in the same file (is it two files in one?)"
                .to_owned()
        }
        ErrorKind::Eof => "the archive's directory points beyond the file".to_owned(),
        ErrorKind::IO(error) => return Error::io("cannot read the file", error).at_byte(at),
        _ => format!("the archive's directory cannot be read: {error}"),
    };
    Error::new(what).at_byte(at)
}

impl Member {
    /// Name in the archive: untrusted text.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is compressed, so that reading is only fast from start to end.
    pub(super) fn is_deflated(&self) -> bool {
        matches!(self.how, How::Deflated(_))
    }

    /// Gives back the memory that reading a deflated member takes; the next read starts anew.
    pub(super) fn release(&self) {
        if let How::Deflated(cursor) = &self.how {
            *cursor.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }

    fn inflate(&self, cursor: &Mutex<Option<Box<Cursor>>>, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let mut place = cursor.lock().unwrap_or_else(PoisonError::into_inner);
        let mut cursor = place
            .take()
            .filter(|cursor| cursor.reaches(offset))
            .unwrap_or_else(|| Box::new(Cursor::new(self.packed)));
        cursor.read(&self.file, offset, bytes)?;
        // Whoever reads to the end is done with it.
        if !cursor.is_at_end() || offset + (bytes.len() as u64) < self.len() {
            *place = Some(cursor);
        }
        Ok(())
    }
}

impl Bytes for Member {
    fn len(&self) -> u64 {
        self.packed.unpacked
    }

    fn kind(&self) -> &'static str {
        "member"
    }

    fn read_exact_at(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let end = offset.checked_add(bytes.len() as u64);
        if end.is_none_or(|end| end > self.len()) {
            let count = limits::bytes(bytes.len() as u64);
            let what = format!("{count} from byte {offset} on go beyond the member's end");
            return Err(Error::new(what).in_member(&self.name));
        }
        let outcome = match &self.how {
            How::Deflated(cursor) => self.inflate(cursor, offset, bytes),
            How::Stored(checksum) => {
                self.file.read_exact_at(self.packed.start + offset, bytes).and_then(|()| {
                    if checksum.is_sound_with(offset, bytes) { Ok(()) } else { Err(Error::new(DAMAGED)) }
                })
            }
        };
        outcome.map_err(|error| Error::new(error.what()).in_member(&self.name))
    }
}

/// A part of the file, for rawzip.
struct View<'a> {
    file: &'a DumpFile,
    start: u64,
    len: u64,
}

impl ReaderAt for View<'_> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let count = self.len.saturating_sub(offset).min(buffer.len() as u64) as usize;
        let read = self.file.read_exact_at(self.start.saturating_add(offset), &mut buffer[..count]);
        read.map(|()| count).map_err(|error| io::Error::other(error.what().to_owned()))
    }
}

/// Names that occur more than once, each once.
pub(super) fn repeated<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut counts: HashMap<&str, u64> = HashMap::new();
    let mut repeated = Vec::new();
    for name in names {
        let count = counts.entry(name).or_default();
        *count += 1;
        if *count == 2 {
            repeated.push(name);
        }
    }
    repeated
}
