//! Values of primitive types under construction.

use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{BooleanArray, FixedSizeBinaryArray, OffsetSizeTrait, PrimitiveArray};
use arrow_buffer::{
    ArrowNativeType, BooleanBufferBuilder, Buffer, NullBuffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer,
};
use arrow_schema::ArrowError;

/// Which values are there.
#[derive(Debug)]
pub(crate) struct Validity(NullBufferBuilder);

impl Default for Validity {
    fn default() -> Self {
        Self(NullBufferBuilder::new(0))
    }
}

impl Validity {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn push(&mut self) {
        self.0.append_non_null();
    }

    pub(crate) fn push_null(&mut self) {
        self.0.append_null();
    }

    pub(super) fn truncate(&mut self, len: usize) {
        if len < self.0.len() {
            self.0.truncate(len);
        }
    }

    pub(super) fn finish(&mut self) -> Option<NullBuffer> {
        std::mem::take(self).0.build()
    }
}

#[derive(Debug)]
pub(crate) struct Booleans {
    values: BooleanBufferBuilder,
    pub(super) validity: Validity,
}

impl Default for Booleans {
    fn default() -> Self {
        Self { values: BooleanBufferBuilder::new(0), validity: Validity::default() }
    }
}

impl Booleans {
    pub(crate) fn push(&mut self, value: bool) {
        self.values.append(value);
        self.validity.push();
    }

    pub(super) fn push_null(&mut self) {
        self.values.append(false);
        self.validity.push_null();
    }

    pub(super) fn truncate(&mut self, len: usize) {
        if len < self.values.len() {
            self.values.truncate(len);
        }
        self.validity.truncate(len);
    }

    pub(super) fn finish(&mut self) -> BooleanArray {
        BooleanArray::new(self.values.finish(), self.validity.finish())
    }
}

#[derive(Debug, Default)]
pub(crate) struct Primitives<T> {
    pub(super) values: Vec<T>,
    validity: Validity,
}

impl<T: Default + ArrowNativeType> Primitives<T> {
    pub(crate) fn push(&mut self, value: T) {
        self.values.push(value);
        self.validity.push();
    }

    pub(super) fn push_null(&mut self) {
        self.values.push(T::default());
        self.validity.push_null();
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.values.truncate(len);
        self.validity.truncate(len);
    }

    pub(super) fn finish<A: ArrowPrimitiveType<Native = T>>(&mut self) -> PrimitiveArray<A> {
        PrimitiveArray::new(ScalarBuffer::from(take(&mut self.values)), self.validity.finish())
    }
}

/// Values of any length, one after the other. `O` is the type of Arrow's offsets: `i32` or `i64`.
#[derive(Debug)]
pub(crate) struct Bytes<O> {
    ends: Vec<O>,
    /// The values; the value under construction is what stands after the last end.
    pub(crate) values: Vec<u8>,
    pub(super) validity: Validity,
}

impl<O: OffsetSizeTrait> Default for Bytes<O> {
    fn default() -> Self {
        Self { ends: vec![O::zero()], values: Vec::new(), validity: Validity::default() }
    }
}

impl<O: OffsetSizeTrait> Bytes<O> {
    pub(crate) fn push(&mut self, value: &[u8]) {
        self.values.extend_from_slice(value);
        self.end_value();
    }

    /// What was added to `values` since the last value is one. A batch holds fewer bytes than an offset can count.
    pub(crate) fn end_value(&mut self) {
        self.ends.push(O::usize_as(self.values.len()));
        self.validity.push();
    }

    pub(super) fn push_null(&mut self) {
        self.ends.push(O::usize_as(self.values.len()));
        self.validity.push_null();
    }

    pub(super) fn truncate(&mut self, len: usize) {
        if len < self.ends.len() {
            self.ends.truncate(len + 1);
            self.values.truncate(self.ends[len].as_usize());
            self.validity.truncate(len);
        }
    }

    /// The value at `index`.
    pub(crate) fn value(&self, index: usize) -> &[u8] {
        &self.values[self.ends[index].as_usize()..self.ends[index + 1].as_usize()]
    }

    pub(super) fn finish(&mut self) -> (OffsetBuffer<O>, Buffer, Option<NullBuffer>) {
        let values = Buffer::from_vec(take(&mut self.values));
        (take_offsets(&mut self.ends), values, self.validity.finish())
    }
}

/// The offsets of a finished column; those of the next one begin at zero.
pub(super) fn take_offsets<O: OffsetSizeTrait>(ends: &mut Vec<O>) -> OffsetBuffer<O> {
    let taken = take(ends);
    ends.push(O::zero());
    OffsetBuffer::new(ScalarBuffer::from(taken))
}

/// Takes values and leaves room for as many: the next batch is likely to be as large. Room that was reserved for a
/// larger batch is given back, since whoever holds the batch would be charged for it.
fn take<T>(values: &mut Vec<T>) -> Vec<T> {
    let room = Vec::with_capacity(values.len());
    let mut taken = std::mem::replace(values, room);
    if taken.capacity() > 2 * taken.len() {
        taken.shrink_to_fit();
    }
    taken
}

/// Values of one length.
#[derive(Debug)]
pub(crate) struct FixedBytes {
    pub(crate) width: usize,
    values: Vec<u8>,
    pub(super) validity: Validity,
}

impl FixedBytes {
    pub(crate) fn new(width: usize) -> Self {
        Self { width, values: Vec::new(), validity: Validity::default() }
    }

    /// `value` has the column's width.
    pub(crate) fn push(&mut self, value: &[u8]) {
        debug_assert_eq!(value.len(), self.width, "a value of a fixed column has its width");
        self.values.extend_from_slice(value);
        self.validity.push();
    }

    pub(super) fn push_null(&mut self) {
        self.values.resize(self.values.len() + self.width, 0);
        self.validity.push_null();
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.values.truncate(len * self.width);
        self.validity.truncate(len);
    }

    pub(super) fn finish(&mut self, width: i32) -> Result<FixedSizeBinaryArray, ArrowError> {
        let values = Buffer::from_vec(take(&mut self.values));
        FixedSizeBinaryArray::try_new(width, values, self.validity.finish())
    }
}
