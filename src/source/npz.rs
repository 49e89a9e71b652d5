//! NumPy's `.npz`: a zip archive of npy files, one an array.

use std::path::PathBuf;

use super::archive::{self, Entry, Member};
use super::bytes::Bytes as _;
use super::file::DumpFile;
use super::limits::quote;
use super::{TensorSource, npy};
use crate::error::{Error, Result};
use crate::tensor::TensorInfo;

/// Reads the header of every array in the archive.
///
/// # Errors
/// It has members, but none is meant as an array. Members that cannot be read are
/// [`TensorSource::problems`].
pub(super) fn from_archive(file: &DumpFile, members: Vec<Entry>) -> Result<Box<dyn TensorSource>> {
    let path = file.path().to_owned();
    let mut npz = Npz { path, ..Npz::default() };
    for name in archive::repeated(members.iter().map(|(name, _)| name.as_str())) {
        let what = format!("two members are called {}; both are read (numpy takes the last)", quote(name));
        npz.notice(Error::new(what));
    }
    let mut others = Vec::new();
    for (name, member) in members {
        match member.and_then(|member| npz.take(member)) {
            Ok(true) => {}
            Ok(false) => others.push(quote(&name)),
            Err(error) => npz.problems.push(error.in_tensor(stem(&name)).in_file(&npz.path)),
        }
    }
    if npz.tensors.is_empty() && npz.problems.is_empty() && !others.is_empty() {
        let zarr = others.iter().any(|name| name.contains(".zarray") || name.contains("zarr.json"));
        return Err(Error::new(match zarr {
            true => "is a zipped Zarr store; not supported: save the arrays with numpy.savez",
            false => "is a zip archive without NumPy arrays and not one of torch.save",
        }));
    }
    if let [first, rest @ ..] = &others[..] {
        let what = match rest.len() {
            0 => format!("the member {first} is no array; it is ignored"),
            more => format!("the member {first} and {more} more are no arrays; they are ignored"),
        };
        npz.notice(Error::new(what));
    }
    Ok(Box::new(npz))
}

#[derive(Default)]
struct Npz {
    path: PathBuf,
    members: Vec<Member>,
    tensors: Vec<TensorInfo>,
    places: Vec<Place>,
    problems: Vec<Error>,
    notices: Vec<Error>,
}

/// Where a tensor is.
struct Place {
    /// Number in [`Npz::members`].
    member: usize,
    /// Where its data begin in the member.
    start: u64,
    column_major: bool,
}

impl Npz {
    /// Takes the arrays of a member; `false` if there are none and it is not called `.npy`.
    fn take(&mut self, member: Member) -> Result<bool> {
        let name = stem(member.name()).to_owned();
        let is_array = member.first_bytes(npy::MAGIC.len() as u64)? == npy::MAGIC;
        if !is_array && name.len() == member.name().len() {
            return Ok(false);
        }
        let arrays = npy::arrays(&member, &name).map_err(|error| error.in_member(member.name()))?;
        member.release();
        let located = |error: Error| error.in_member(member.name()).in_file(&self.path);
        self.problems.extend(arrays.problems.into_iter().map(located));
        self.notices.extend(arrays.notices.into_iter().map(located));
        for array in arrays.found {
            let member = self.members.len();
            self.places.push(Place { member, start: array.start, column_major: array.column_major });
            self.tensors.push(array.tensor);
        }
        self.members.push(member);
        Ok(true)
    }

    fn notice(&mut self, notice: Error) {
        self.notices.push(notice.in_file(&self.path));
    }
}

/// The name of a member's array: numpy adds `.npy` to the name that it is given.
fn stem(member: &str) -> &str {
    member.strip_suffix(".npy").unwrap_or(member)
}

impl TensorSource for Npz {
    fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    fn problems(&self) -> &[Error] {
        &self.problems
    }

    fn notices(&self) -> &[Error] {
        &self.notices
    }

    fn column_major(&self, index: usize) -> bool {
        self.places.get(index).is_some_and(|place| place.column_major)
    }

    fn in_order(&self, index: usize) -> bool {
        self.places.get(index).is_some_and(|place| self.members[place.member].is_deflated())
    }

    fn read_at(&self, index: usize, offset: u64, bytes: &mut [u8]) -> Result<()> {
        match (self.tensors.get(index), self.places.get(index)) {
            (Some(tensor), Some(place)) => {
                self.members[place.member].read_tensor(tensor, place.start, offset, bytes)
            }
            _ => Err(super::no_such_tensor(index)),
        }
        .map_err(|error| error.in_file(&self.path))
    }
}
