//! How a tensor is cut into blocks, and into rectangles of whole blocks that fit in a small buffer.

use crate::error::{Error, Result};
use crate::format::block::BlockShape;

/// Elements that a rectangle has at most, unless a single block has more.
const BUDGET: u64 = 1 << 16;
/// Elements of a part of a tensor that has one scale.
const PART: u64 = 1 << 9;
/// Longest row that is a block: a buffer of 64 MiB for each thread.
pub const LONGEST_ROW: u64 = 1 << 24;

/// A tensor seen as equally large matrices, each cut into blocks from its first row and column on; blocks at
/// the far edges are smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    matrices: u64,
    rows: u64,
    columns: u64,
    block: (u64, u64),
    /// Rows and columns of a rectangle: whole blocks, or all that there are.
    rectangle: (u64, u64),
}

/// Part of one matrix, row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rectangle {
    /// Position in the tensor, in row-major order, of the first element.
    pub first: u64,
    /// Number of rows.
    pub rows: u64,
    /// Number of columns.
    pub columns: u64,
    /// Distance in the tensor from an element to the one below.
    pub stride: u64,
}

impl Grid {
    /// Cuts a tensor of this shape. A scalar is a matrix of one element.
    ///
    /// # Errors
    /// The tensor has no such axis as blocks are to lie along.
    pub fn new(shape: &[u64], block: BlockShape) -> Result<Self> {
        let last = shape.len().saturating_sub(1);
        // Extents beside a 0 may be so large that their product is no u64.
        let empty = shape.contains(&0);
        let product = |part: &[u64]| if empty { 0 } else { part.iter().product::<u64>() };
        if block == BlockShape::Tensor {
            // Its parts may be cut anywhere: they are as large as stays in the first-level cache.
            let block = (1, PART);
            let columns = product(shape);
            return Ok(Self { matrices: 1, rows: 1, columns, block, rectangle: (1, BUDGET.min(columns)) });
        }
        let (axis, block) = match block {
            BlockShape::Row | BlockShape::Tensor => (last, (1, row_of(shape)?)),
            BlockShape::Tile { rows, columns } => (last, (rows.into(), columns.into())),
            BlockShape::Run { length, axis } => {
                let axis = axis_of(shape.len(), axis)?;
                (axis, if axis == last { (1, length.into()) } else { (length.into(), 1) })
            }
        };
        let (matrices, rows, columns) = if axis == last {
            (1, product(&shape[..last]), if empty { 0 } else { shape.last().copied().unwrap_or(1) })
        } else {
            (product(&shape[..axis]), if empty { 0 } else { shape[axis] }, product(&shape[axis + 1..]))
        };
        let (tall, wide): (u64, u64) = block;
        let width = if tall.saturating_mul(columns) <= BUDGET {
            columns
        } else {
            (BUDGET / (tall * wide)).max(1) * wide
        };
        let height = if width >= columns {
            (BUDGET / tall.saturating_mul(columns).max(1)).max(1) * tall
        } else {
            tall
        };
        Ok(Self { matrices, rows, columns, block, rectangle: (height.min(rows), width.min(columns)) })
    }

    /// The same blocks where the first index runs fastest (Fortran order): the grid of the tensor as it is
    /// stored, which is that of the shape reversed.
    ///
    /// # Errors
    /// The tensor has no such axis, or the blocks are tiles of several rows in more than two dimensions, whose
    /// rows are then no matrix.
    pub fn column_major(shape: &[u64], block: BlockShape) -> Result<Self> {
        let reversed: Vec<u64> = shape.iter().rev().copied().collect();
        let block = match block {
            BlockShape::Tensor => block,
            BlockShape::Row => BlockShape::Run { length: row_of(shape)? as u32, axis: 0 },
            BlockShape::Run { length, axis } => {
                let axis = reversed.len().saturating_sub(1) - axis_of(shape.len(), axis)?;
                BlockShape::Run { length, axis: axis as i32 }
            }
            BlockShape::Tile { rows: 1, columns } => BlockShape::Run { length: columns, axis: 0 },
            BlockShape::Tile { rows, columns } if shape.len() == 2 => {
                BlockShape::Tile { rows: columns, columns: rows }
            }
            BlockShape::Tile { .. } if shape.len() < 2 => block,
            BlockShape::Tile { .. } => {
                return Err(Error::new(
                    "tiles of an array of more than two dimensions cannot be read in Fortran order",
                ));
            }
        };
        Self::new(&reversed, block)
    }

    /// Rows and columns of a block away from the edges.
    pub fn block(&self) -> (u64, u64) {
        self.block
    }

    /// Elements of a block where blocks lie one after the other in the order of storage: then [`Grid::new`] for a whole
    /// tensor serves them too.
    pub fn run(&self) -> Option<u64> {
        let (tall, wide) = self.block;
        let one_row = self.matrices * self.rows == 1;
        ((tall == 1 && self.columns.is_multiple_of(wide)) || one_row).then_some(wide)
    }

    /// Number of rectangles; none if the tensor has no elements.
    pub fn rectangles(&self) -> u64 {
        if self.matrices == 0 || self.rows == 0 || self.columns == 0 {
            return 0;
        }
        self.matrices * self.rows.div_ceil(self.rectangle.0) * self.columns.div_ceil(self.rectangle.1)
    }

    /// Elements of a rectangle away from the edges.
    pub fn rectangle_elements(&self) -> u64 {
        self.rectangle.0 * self.rectangle.1
    }

    /// Rectangle number `number`, of those there are: along the rows, then down, then the next matrix.
    pub fn rectangle(&self, number: u64) -> Rectangle {
        let (height, width) = self.rectangle;
        let across = self.columns.div_ceil(width);
        let down = self.rows.div_ceil(height);
        let (column, row) = (number % across * width, number / across % down * height);
        Rectangle {
            first: (number / across / down * self.rows + row) * self.columns + column,
            rows: height.min(self.rows - row),
            columns: width.min(self.columns - column),
            stride: self.columns,
        }
    }
}

/// Elements of a row: of the last dimension.
///
/// # Errors
/// Too many for a buffer.
fn row_of(shape: &[u64]) -> Result<u64> {
    let row = shape.last().copied().unwrap_or(1);
    if row > LONGEST_ROW {
        let why = format!(
            "has rows of {row} elements, and a scale for each row of at most {LONGEST_ROW} is supported"
        );
        return Err(Error::new(why));
    }
    // Of an empty tensor no row is ever looked at.
    Ok(row.max(1))
}

/// The axis that `axis` means among `dimensions`: negative ones count from the end. A scalar has one.
fn axis_of(dimensions: usize, axis: i32) -> Result<usize> {
    let from_first = i64::from(axis) + if axis < 0 { dimensions.max(1) as i64 } else { 0 };
    let found = usize::try_from(from_first).ok().filter(|&axis| axis < dimensions.max(1));
    found.ok_or_else(|| {
        let dimensions =
            if dimensions == 1 { "1 dimension".into() } else { format!("{dimensions} dimensions") };
        Error::new(format!("has {dimensions}, so its blocks cannot lie along axis {axis}"))
    })
}

/// The row-major position of the element that is stored at `position` with the first index running fastest.
pub fn row_major(shape: &[u64], position: u64) -> u64 {
    let reversed: Vec<u64> = shape.iter().rev().copied().collect();
    let index = coordinates(&reversed, position).into_iter().rev();
    index.zip(shape).fold(0, |position, (index, extent)| position * extent + index)
}

/// The index in each dimension of the element at `position` in row-major order.
pub fn coordinates(shape: &[u64], position: u64) -> Vec<u64> {
    let mut rest = position;
    let mut index: Vec<u64> = shape
        .iter()
        .rev()
        .map(|&extent| {
            let here = rest % extent.max(1);
            rest /= extent.max(1);
            here
        })
        .collect();
    index.reverse();
    index
}
