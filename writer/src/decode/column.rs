//! Columns under construction, with a way back: [`Column::truncate`] takes them to where a row began.
//!
//! Every child of a struct has as many values as its struct, and the child of a list as many as the last offset says.
//! So the number of rows alone tells what to cut off, and a field that a message has filled is one longer than the rows.

use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{
    ArrayRef, BooleanArray, FixedSizeBinaryArray, LargeBinaryArray, ListArray, MapArray, PrimitiveArray,
    StringArray, StructArray,
};
use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, FieldRef, Fields, TimeUnit};

/// The values of one field.
#[derive(Debug)]
pub(crate) enum Column {
    Boolean(Booleans),
    Int(Primitives<i32>),
    Long(Primitives<i64>),
    Float(Primitives<f32>),
    Double(Primitives<f64>),
    Decimal(Primitives<i128>),
    Date(Primitives<i32>),
    Time(Primitives<i64>),
    Timestamp(Primitives<i64>),
    String(Bytes<i32>),
    Binary(Bytes<i64>),
    Fixed(FixedBytes),
    Uuid(FixedBytes),
    Struct(Structs),
    List(Box<Lists>),
    Map(Box<Maps>),
}

impl Column {
    /// Values so far.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Boolean(column) => column.validity.len(),
            Self::Int(column) | Self::Date(column) => column.values.len(),
            Self::Long(column) | Self::Time(column) | Self::Timestamp(column) => column.values.len(),
            Self::Float(column) => column.values.len(),
            Self::Double(column) => column.values.len(),
            Self::Decimal(column) => column.values.len(),
            Self::String(column) => column.validity.len(),
            Self::Binary(column) => column.validity.len(),
            Self::Fixed(column) | Self::Uuid(column) => column.validity.len(),
            Self::Struct(column) => column.validity.len(),
            Self::List(column) => column.validity.len(),
            Self::Map(column) => column.validity.len(),
        }
    }

    /// Appends a null. Also used below a null struct, where required children have a null that nobody sees.
    pub(crate) fn push_null(&mut self) {
        match self {
            Self::Boolean(column) => column.push_null(),
            Self::Int(column) | Self::Date(column) => column.push_null(),
            Self::Long(column) | Self::Time(column) | Self::Timestamp(column) => column.push_null(),
            Self::Float(column) => column.push_null(),
            Self::Double(column) => column.push_null(),
            Self::Decimal(column) => column.push_null(),
            Self::String(column) => column.push_null(),
            Self::Binary(column) => column.push_null(),
            Self::Fixed(column) | Self::Uuid(column) => column.push_null(),
            Self::Struct(column) => column.push_null(),
            Self::List(column) => column.push_null(),
            Self::Map(column) => column.push_null(),
        }
    }

    /// Forgets all values from `len` on; those of the last one may be incomplete.
    pub(crate) fn truncate(&mut self, len: usize) {
        match self {
            Self::Boolean(column) => column.truncate(len),
            Self::Int(column) | Self::Date(column) => column.truncate(len),
            Self::Long(column) | Self::Time(column) | Self::Timestamp(column) => column.truncate(len),
            Self::Float(column) => column.truncate(len),
            Self::Double(column) => column.truncate(len),
            Self::Decimal(column) => column.truncate(len),
            Self::String(column) => column.truncate(len),
            Self::Binary(column) => column.truncate(len),
            Self::Fixed(column) | Self::Uuid(column) => column.truncate(len),
            Self::Struct(column) => column.truncate(len),
            Self::List(column) => column.truncate(len),
            Self::Map(column) => column.truncate(len),
        }
    }

    /// The values as an array of `data_type`; the column is empty afterwards.
    pub(crate) fn finish(&mut self, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
        Ok(match (self, data_type) {
            (Self::Boolean(column), DataType::Boolean) => Arc::new(column.finish()),
            (Self::Int(column), DataType::Int32) => Arc::new(column.finish::<Int32Type>()),
            (Self::Long(column), DataType::Int64) => Arc::new(column.finish::<Int64Type>()),
            (Self::Float(column), DataType::Float32) => Arc::new(column.finish::<Float32Type>()),
            (Self::Double(column), DataType::Float64) => Arc::new(column.finish::<Float64Type>()),
            (Self::Date(column), DataType::Date32) => Arc::new(column.finish::<Date32Type>()),
            (Self::Time(column), DataType::Time64(TimeUnit::Microsecond)) => {
                Arc::new(column.finish::<Time64MicrosecondType>())
            }
            (Self::Decimal(column), DataType::Decimal128(precision, scale)) => {
                Arc::new(column.finish::<Decimal128Type>().with_precision_and_scale(*precision, *scale)?)
            }
            (Self::Timestamp(column), DataType::Timestamp(TimeUnit::Microsecond, zone)) => {
                Arc::new(column.finish::<TimestampMicrosecondType>().with_timezone_opt(zone.clone()))
            }
            (Self::Timestamp(column), DataType::Timestamp(TimeUnit::Nanosecond, zone)) => {
                Arc::new(column.finish::<TimestampNanosecondType>().with_timezone_opt(zone.clone()))
            }
            (Self::String(column), DataType::Utf8) => {
                let (offsets, values, nulls) = column.finish();
                Arc::new(StringArray::try_new(offsets, values, nulls)?)
            }
            (Self::Binary(column), DataType::LargeBinary) => {
                let (offsets, values, nulls) = column.finish();
                Arc::new(LargeBinaryArray::try_new(offsets, values, nulls)?)
            }
            (Self::Fixed(column) | Self::Uuid(column), DataType::FixedSizeBinary(width)) => {
                Arc::new(column.finish(*width)?)
            }
            (Self::Struct(column), DataType::Struct(fields)) => Arc::new(column.finish(fields)?),
            (Self::List(column), DataType::List(element)) => Arc::new(column.finish(element)?),
            (Self::Map(column), DataType::Map(entries, false)) => Arc::new(column.finish(entries)?),
            (column, other) => {
                return Err(ArrowError::SchemaError(format!("{column:?} is not written as {other}")));
            }
        })
    }

    /// Whether [`Self::finish`] knows `data_type` for this column, children aside.
    pub(crate) fn fits(&self, data_type: &DataType) -> bool {
        use DataType as T;
        use TimeUnit::{Microsecond, Nanosecond};
        matches!(
            (self, data_type),
            (Self::Boolean(_), T::Boolean)
                | (Self::Int(_), T::Int32)
                | (Self::Long(_), T::Int64)
                | (Self::Float(_), T::Float32)
                | (Self::Double(_), T::Float64)
                | (Self::Decimal(_), T::Decimal128(_, _))
                | (Self::Date(_), T::Date32)
                | (Self::Time(_), T::Time64(Microsecond))
                | (Self::Timestamp(_), T::Timestamp(Microsecond | Nanosecond, _))
                | (Self::String(_), T::Utf8)
                | (Self::Binary(_), T::LargeBinary)
                | (Self::Fixed(_) | Self::Uuid(_), T::FixedSizeBinary(_))
                | (Self::Struct(_), T::Struct(_))
                | (Self::List(_), T::List(_))
                | (Self::Map(_), T::Map(_, false))
        )
    }
}

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

    fn truncate(&mut self, len: usize) {
        if len < self.0.len() {
            self.0.truncate(len);
        }
    }

    fn finish(&mut self) -> Option<arrow_buffer::NullBuffer> {
        std::mem::take(self).0.build()
    }
}

#[derive(Debug)]
pub(crate) struct Booleans {
    values: BooleanBufferBuilder,
    validity: Validity,
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

    fn push_null(&mut self) {
        self.values.append(false);
        self.validity.push_null();
    }

    fn truncate(&mut self, len: usize) {
        if len < self.values.len() {
            self.values.truncate(len);
        }
        self.validity.truncate(len);
    }

    fn finish(&mut self) -> BooleanArray {
        BooleanArray::new(self.values.finish(), self.validity.finish())
    }
}

#[derive(Debug, Default)]
pub(crate) struct Primitives<T> {
    values: Vec<T>,
    validity: Validity,
}

impl<T: Default + arrow_buffer::ArrowNativeType> Primitives<T> {
    pub(crate) fn push(&mut self, value: T) {
        self.values.push(value);
        self.validity.push();
    }

    fn push_null(&mut self) {
        self.values.push(T::default());
        self.validity.push_null();
    }

    fn truncate(&mut self, len: usize) {
        self.values.truncate(len);
        self.validity.truncate(len);
    }

    fn finish<A: ArrowPrimitiveType<Native = T>>(&mut self) -> PrimitiveArray<A> {
        let room = Vec::with_capacity(self.values.len());
        let values = std::mem::replace(&mut self.values, room);
        PrimitiveArray::new(ScalarBuffer::from(values), self.validity.finish())
    }
}

/// Values of any length, one after the other. `O` is the type of Arrow's offsets: `i32` or `i64`.
#[derive(Debug)]
pub(crate) struct Bytes<O> {
    ends: Vec<O>,
    /// The values; the value under construction is what stands after the last end.
    pub(crate) values: Vec<u8>,
    validity: Validity,
}

impl<O: arrow_array::OffsetSizeTrait> Default for Bytes<O> {
    fn default() -> Self {
        Self { ends: vec![O::zero()], values: Vec::new(), validity: Validity::default() }
    }
}

impl<O: arrow_array::OffsetSizeTrait> Bytes<O> {
    pub(crate) fn push(&mut self, value: &[u8]) {
        self.values.extend_from_slice(value);
        self.end_value();
    }

    /// What was added to `values` since the last value is one. A batch holds fewer bytes than an offset can count.
    pub(crate) fn end_value(&mut self) {
        self.ends.push(O::usize_as(self.values.len()));
        self.validity.push();
    }

    fn push_null(&mut self) {
        self.ends.push(O::usize_as(self.values.len()));
        self.validity.push_null();
    }

    fn truncate(&mut self, len: usize) {
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

    fn finish(&mut self) -> (OffsetBuffer<O>, Buffer, Option<arrow_buffer::NullBuffer>) {
        let room = Vec::with_capacity(self.values.len());
        let values = Buffer::from_vec(std::mem::replace(&mut self.values, room));
        (take_offsets(&mut self.ends), values, self.validity.finish())
    }
}

fn take_offsets<O: arrow_array::OffsetSizeTrait>(ends: &mut Vec<O>) -> OffsetBuffer<O> {
    let mut fresh = Vec::with_capacity(ends.len());
    fresh.push(O::zero());
    OffsetBuffer::new(ScalarBuffer::from(std::mem::replace(ends, fresh)))
}

/// Values of one length.
#[derive(Debug)]
pub(crate) struct FixedBytes {
    pub(crate) width: usize,
    values: Vec<u8>,
    validity: Validity,
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

    fn push_null(&mut self) {
        self.values.resize(self.values.len() + self.width, 0);
        self.validity.push_null();
    }

    fn truncate(&mut self, len: usize) {
        self.values.truncate(len * self.width);
        self.validity.truncate(len);
    }

    fn finish(&mut self, width: i32) -> Result<FixedSizeBinaryArray, ArrowError> {
        let values = Buffer::from_vec(std::mem::take(&mut self.values));
        FixedSizeBinaryArray::try_new(width, values, self.validity.finish())
    }
}

#[derive(Debug)]
pub(crate) struct Structs {
    pub(crate) children: super::plan::Children,
    pub(crate) validity: Validity,
}

impl Structs {
    fn push_null(&mut self) {
        for child in &mut self.children.fields {
            child.column.push_null();
        }
        self.validity.push_null();
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        for child in &mut self.children.fields {
            child.column.truncate(len);
        }
        self.validity.truncate(len);
    }

    pub(crate) fn finish(&mut self, fields: &Fields) -> Result<StructArray, ArrowError> {
        let len = self.validity.len();
        let arrays = self.children.finish(fields)?;
        StructArray::try_new_with_length(fields.clone(), arrays, self.validity.finish(), len)
    }
}

#[derive(Debug)]
pub(crate) struct Lists {
    ends: Vec<i32>,
    pub(crate) element: super::plan::Field,
    validity: Validity,
}

impl Lists {
    pub(crate) fn new(element: super::plan::Field) -> Self {
        Self { ends: vec![0], element, validity: Validity::default() }
    }

    /// The elements added since the last list are one. A batch holds fewer elements than an offset can count.
    pub(crate) fn end_list(&mut self) {
        self.ends.push(self.element.column.len() as i32);
        self.validity.push();
    }

    fn push_null(&mut self) {
        self.ends.push(self.element.column.len() as i32);
        self.validity.push_null();
    }

    fn truncate(&mut self, len: usize) {
        if len < self.ends.len() {
            self.ends.truncate(len + 1);
            self.element.column.truncate(self.ends[len] as usize);
            self.validity.truncate(len);
        }
    }

    fn finish(&mut self, element: &FieldRef) -> Result<ListArray, ArrowError> {
        let values = self.element.column.finish(element.data_type())?;
        ListArray::try_new(Arc::clone(element), take_offsets(&mut self.ends), values, self.validity.finish())
    }
}

#[derive(Debug)]
pub(crate) struct Maps {
    ends: Vec<i32>,
    pub(crate) keys: Bytes<i32>,
    pub(crate) value: super::plan::Field,
    validity: Validity,
}

impl Maps {
    pub(crate) fn new(value: super::plan::Field) -> Self {
        Self { ends: vec![0], keys: Bytes::default(), value, validity: Validity::default() }
    }

    /// How many entries the map under construction has.
    pub(crate) fn open_entries(&self) -> std::ops::Range<usize> {
        let start = self.ends.last().map_or(0, |end| *end as usize);
        start..self.keys.validity.len()
    }

    /// The entries added since the last map are one.
    pub(crate) fn end_map(&mut self) {
        self.ends.push(self.value.column.len() as i32);
        self.validity.push();
    }

    fn push_null(&mut self) {
        self.ends.push(self.value.column.len() as i32);
        self.validity.push_null();
    }

    fn truncate(&mut self, len: usize) {
        if len < self.ends.len() {
            self.ends.truncate(len + 1);
            let entries = self.ends[len] as usize;
            self.keys.truncate(entries);
            self.value.column.truncate(entries);
            self.validity.truncate(len);
        }
    }

    fn finish(&mut self, entries: &FieldRef) -> Result<MapArray, ArrowError> {
        let DataType::Struct(fields) = entries.data_type() else {
            return Err(ArrowError::SchemaError(format!(
                "map entries are written as {}",
                entries.data_type()
            )));
        };
        let (offsets, values, nulls) = self.keys.finish();
        let keys: ArrayRef = Arc::new(StringArray::try_new(offsets, values, nulls)?);
        let values = self.value.column.finish(fields[1].data_type())?;
        let structs = StructArray::try_new(fields.clone(), vec![keys, values], None)?;
        let ends = take_offsets(&mut self.ends);
        MapArray::try_new(Arc::clone(entries), ends, structs, self.validity.finish(), false)
    }
}
