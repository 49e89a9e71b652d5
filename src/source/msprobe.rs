//! What msprobe's `dump.json` says of the tensors dumped beside it.
//!
//! msprobe writes bfloat16 tensors of MindSpore as float32, since NumPy lacks the type; only `dump.json` has
//! the type that they had in the run.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserializer;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};

use super::bytes::Bytes as _;
use super::file::DumpFile;
use super::limits;
use crate::tensor::Dtype;

/// The folder of the tensors, beside `dump.json`.
const FOLDER: &str = "dump_tensor_data";

/// The types of dumped tensors, as far as they have been asked for.
#[derive(Default)]
pub struct DumpRecords {
    /// For each folder the types by file name.
    folders: HashMap<PathBuf, HashMap<String, String>>,
}

impl DumpRecords {
    /// The type that the tensor in the file `path` had in the run; `None` if nothing that can be read says so.
    pub fn dtype(&mut self, path: &Path) -> Option<Dtype> {
        let folder = path.parent().filter(|folder| folder.ends_with(FOLDER))?;
        let types = self.folders.entry(folder.to_owned()).or_insert_with(|| {
            folder.parent().map(|beside| read(&beside.join("dump.json"))).unwrap_or_default()
        });
        let name = types.get(path.file_name()?.to_str()?)?;
        let name = name.rsplit('.').next().unwrap_or(name);
        Dtype::parse(&name.to_ascii_lowercase()).ok()
    }
}

/// The types by the names of the files.
fn read(path: &Path) -> HashMap<String, String> {
    let mut types = HashMap::new();
    let text =
        DumpFile::open(path).and_then(|file| file.header("dump.json", 0, file.len(), limits::INDEX_BYTES));
    let Ok(mut text) = text else { return types };
    replace_bare_words(&mut text);
    // Of a file that is cut off, as in a crash, what comes before.
    let mut json = serde_json::Deserializer::from_slice(&text);
    let _ = json.deserialize_any(Pairs(&mut types));
    types
}

/// Python writes `NaN` and `Infinity`, which JSON lacks, among the statistics: zeros in their place.
fn replace_bare_words(text: &mut [u8]) {
    let mut at = 0;
    let mut quoted = false;
    while at < text.len() {
        match text[at] {
            b'\\' if quoted => at += 1,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            _ => {
                if let Some(word) =
                    [&b"NaN"[..], b"Infinity"].into_iter().find(|word| text[at..].starts_with(word))
                {
                    text[at..at + word.len()].fill(b' ');
                    text[at] = b'0';
                }
            }
        }
        at += 1;
    }
}

/// Collects `dtype` and `data_name` of each object that has both, however deep.
struct Pairs<'a>(&'a mut HashMap<String, String>);

impl<'de> DeserializeSeed<'de> for Pairs<'_> {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Pairs<'_> {
    /// The text, if it is one.
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a record of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut dtype, mut file) = (None, None);
        while let Some(key) = map.next_key::<String>()? {
            let value = map.next_value_seed(Pairs(self.0))?;
            match key.as_str() {
                "dtype" => dtype = value,
                "data_name" => file = value,
                _ => {}
            }
        }
        self.0.extend(file.zip(dtype));
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element_seed(Pairs(self.0))?.is_some() {}
        Ok(None)
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(text.to_owned()))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}
