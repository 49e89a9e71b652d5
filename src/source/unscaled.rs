//! A dump of scaled gradients, divided by the loss scale that they were recorded with.

use std::sync::{Mutex, PoisonError};

use super::TensorSource;
use super::bytes::check_range;
use crate::error::{Error, Result};
use crate::format;
use crate::tensor::{ByteOrder, Chunk, Decoder, Dtype, TensorInfo};

/// The tensors of another source times 1/scale. As `torch.amp.GradScaler` does it: the reciprocal is rounded to
/// float32, and so are the products, but those of a float64. Tensors of up to 32 bits become float32; what is
/// no floating-point number stays as it is.
pub struct Unscaled {
    inner: Box<dyn TensorSource>,
    factor: f32,
    /// The tensors as they are stored.
    stored: Vec<TensorInfo>,
    /// The same as they are given.
    tensors: Vec<TensorInfo>,
    /// Decoders that are not in use: they have large tables.
    decoders: Mutex<Vec<Decoder>>,
}

impl Unscaled {
    /// Divides by `scale`. The stored bytes are taken for elements of type `dtype`, if given; what cannot be is
    /// left as it is.
    ///
    /// # Errors
    /// None but in the table of formats.
    pub fn new(inner: Box<dyn TensorSource>, scale: f32, dtype: Option<&Dtype>) -> Result<Self> {
        let single = Dtype::Float(format::find("float32")?);
        let told = |info: &TensorInfo| match dtype {
            Some(dtype) => info.reinterpret(dtype).unwrap_or_else(|_| info.clone()),
            None => info.clone(),
        };
        let stored: Vec<TensorInfo> = inner.tensors().iter().map(told).collect();
        let given = |info: &TensorInfo| match info.dtype {
            Dtype::Other { .. } => info.clone(),
            Dtype::Float64 => TensorInfo { byte_order: ByteOrder::Little, ..info.clone() },
            _ => TensorInfo { dtype: single.clone(), byte_order: ByteOrder::Little, ..info.clone() },
        };
        let tensors = stored.iter().map(given).collect();
        let factor = (1.0 / f64::from(scale)) as f32;
        Ok(Self { inner, factor, stored, tensors, decoders: Mutex::default() })
    }

    /// Fills `bytes` with whole elements from number `first` on.
    fn read(&self, index: usize, first: u64, bytes: &mut [u8]) -> Result<()> {
        let info = &self.stored[index];
        let bits = u64::from(info.dtype.bits());
        // Of two elements in a byte the first has to be read too.
        let before = u64::from(!(first * bits).is_multiple_of(8));
        let width = if info.dtype == Dtype::Float64 { 8 } else { 4 };
        let count = bytes.len() / width + before as usize;
        let idle = {
            let mut decoders = self.decoders.lock().unwrap_or_else(PoisonError::into_inner);
            decoders.iter().position(|decoder| decoder.reads(info)).map(|place| decoders.swap_remove(place))
        };
        let mut decoder = idle.map_or_else(|| Decoder::new(info), Ok)?;
        let offset = (first - before) * bits / 8;
        match decoder.chunk(count, |stored| self.inner.read_at(index, offset, stored))? {
            Chunk::F32(values) => {
                let values = values[before as usize..].iter().map(|x| (x * self.factor).to_le_bytes());
                values.zip(bytes.as_chunks_mut().0).for_each(|(value, place)| *place = value);
            }
            Chunk::F64(values) => {
                let values = values.iter().map(|x| (x * f64::from(self.factor)).to_le_bytes());
                values.zip(bytes.as_chunks_mut().0).for_each(|(value, place)| *place = value);
            }
        }
        self.decoders.lock().unwrap_or_else(PoisonError::into_inner).push(decoder);
        Ok(())
    }
}

impl TensorSource for Unscaled {
    fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    fn metadata(&self) -> &[(String, String)] {
        self.inner.metadata()
    }

    fn problems(&self) -> &[Error] {
        self.inner.problems()
    }

    fn notices(&self) -> &[Error] {
        self.inner.notices()
    }

    fn column_major(&self, index: usize) -> bool {
        self.inner.column_major(index)
    }

    fn in_order(&self, index: usize) -> bool {
        self.inner.in_order(index)
    }

    fn read_at(&self, index: usize, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let Some(info) = self.tensors.get(index) else { return Err(super::no_such_tensor(index)) };
        if !info.dtype.is_float() {
            return self.inner.read_at(index, offset, bytes);
        }
        check_range(info, offset, bytes.len() as u64).map_err(|error| error.in_tensor(&info.name))?;
        let width = u64::from(info.dtype.bits() / 8);
        let (first, end) = (offset / width, (offset + bytes.len() as u64).div_ceil(width));
        let within = (offset - first * width) as usize;
        if within == 0 && end * width == offset + bytes.len() as u64 {
            return self.read(index, first, bytes);
        }
        let mut whole = vec![0; ((end - first) * width) as usize];
        self.read(index, first, &mut whole)?;
        bytes.copy_from_slice(&whole[within..within + bytes.len()]);
        Ok(())
    }
}
