//! Passing over values, with every check of their encoding.

use super::super::fault::Parsed;
use super::cursor::Cursor;
use super::types::{Physical, TypeId, WriterSchema};

impl WriterSchema {
    /// Whether the bytes are one datum of this schema and nothing else.
    pub(super) fn check(&self, datum: &[u8], max_depth: usize) -> Parsed<()> {
        let mut cursor = Cursor::new(datum, max_depth);
        self.skip(self.root, &mut cursor)?;
        cursor.end()
    }

    /// Passes over a value.
    pub(super) fn skip(&self, id: TypeId, cursor: &mut Cursor<'_>) -> Parsed<()> {
        match &self.of(id).physical {
            Physical::Null => {}
            Physical::Boolean => drop(cursor.boolean()?),
            Physical::Int => drop(cursor.int()?),
            Physical::Long => drop(cursor.long()?),
            Physical::Float => drop(cursor.float()?),
            Physical::Double => drop(cursor.double()?),
            Physical::Bytes => drop(cursor.counted_bytes()?),
            Physical::String => drop(cursor.text()?),
            Physical::Fixed(size) => drop(cursor.bytes(*size)?),
            Physical::Enum(symbols) => drop(cursor.index(symbols.len())?),
            Physical::Union(branches) => {
                let branch = cursor.index(branches.len())?;
                self.skip(branches[branch], cursor)?;
            }
            Physical::Record(fields) => {
                cursor.enter()?;
                for (_, field) in fields {
                    self.skip(*field, cursor)?;
                }
                cursor.leave();
            }
            Physical::Array(items) => {
                let may_be_empty = self.may_be_empty(*items);
                skip_blocks(cursor, may_be_empty, |cursor| self.skip(*items, cursor))?;
            }
            // A key has its length, so no entry is without bytes.
            Physical::Map(values) => skip_blocks(cursor, false, |cursor| {
                cursor.text()?;
                self.skip(*values, cursor)
            })?,
        }
        Ok(())
    }
}

fn skip_blocks<'a>(
    cursor: &mut Cursor<'a>,
    may_be_empty: bool,
    element: impl Fn(&mut Cursor<'a>) -> Parsed<()>,
) -> Parsed<()> {
    cursor.enter()?;
    loop {
        let count = cursor.block(may_be_empty)?;
        if count == 0 {
            break;
        }
        for _ in 0..count {
            element(cursor)?;
        }
    }
    cursor.leave();
    Ok(())
}
