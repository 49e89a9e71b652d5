//! How a tensor is cut into blocks, and into rectangles of whole blocks that fit in a small buffer.

use crate::format::block::BlockShape;

/// Elements that a rectangle has at most, unless a single block has more.
const BUDGET: u64 = 1 << 16;

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
    pub fn new(shape: &[u64], block: BlockShape) -> Self {
        let dimensions = shape.len() as i64;
        let last = (dimensions - 1).max(0) as usize;
        let (axis, block) = match block {
            BlockShape::Tile { rows, columns } => (last, (rows.into(), columns.into())),
            BlockShape::Run { length, axis } => {
                let axis = i64::from(axis) + if axis < 0 { dimensions } else { 0 };
                let axis = usize::try_from(axis).ok().filter(|&axis| axis < last).unwrap_or(last);
                (axis, if axis == last { (1, length.into()) } else { (length.into(), 1) })
            }
        };
        let product = |part: &[u64]| part.iter().product::<u64>();
        let (matrices, rows, columns) = if axis == last {
            (1, product(&shape[..last]), shape.last().copied().unwrap_or(1))
        } else {
            (product(&shape[..axis]), shape[axis], product(&shape[axis + 1..]))
        };
        let (tall, wide) = block;
        let width = if tall * columns <= BUDGET { columns } else { (BUDGET / (tall * wide)).max(1) * wide };
        let height = if width >= columns { (BUDGET / (tall * columns).max(1)).max(1) * tall } else { tall };
        Self { matrices, rows, columns, block, rectangle: (height.min(rows), width.min(columns)) }
    }

    /// Rows and columns of a block away from the edges.
    pub fn block(&self) -> (u64, u64) {
        self.block
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
