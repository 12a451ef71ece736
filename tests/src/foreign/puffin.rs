//! Deletion vectors in Puffin files: specification "Puffin", blob type `deletion-vector-v1`.

use std::collections::{BTreeMap, HashMap, HashSet};

use anyhow::{Context, Result, ensure};
use iceberg::puffin::{Blob, CompressionCodec, DELETION_VECTOR_V1, PuffinWriter};
use iceberg::table::Table;
use roaring::RoaringTreemap;

use crate::canonical::crc32;

/// Before the bitmap.
const MAGIC: [u8; 4] = [0xD1, 0xD3, 0x39, 0x64];
/// `_pos`, the field that a vector is of.
const ROW_POSITION: i32 = i32::MAX - 2;
/// What a Puffin file begins with.
const HEADER_BYTES: i64 = 4;

/// A vector in a file.
#[derive(Debug, Clone)]
pub(super) struct Placed {
    pub(super) data_file: String,
    pub(super) offset: i64,
    pub(super) size: i64,
    pub(super) cardinality: u64,
}

/// Writes one file with a vector for each data file, and tells where each is, and the bytes of the file.
pub(super) async fn write(
    table: &Table,
    path: &str,
    vectors: &BTreeMap<String, HashSet<i64>>,
) -> Result<(Vec<Placed>, u64)> {
    let output = table.file_io().new_output(path)?;
    let mut writer = PuffinWriter::new(&output, HashMap::new(), false).await?;
    let mut placed = Vec::new();
    let mut offset = HEADER_BYTES;
    for (data_file, positions) in vectors {
        let data = bytes_of(positions)?;
        let size = i64::try_from(data.len())?;
        let properties = HashMap::from([
            ("referenced-data-file".to_owned(), data_file.clone()),
            ("cardinality".to_owned(), positions.len().to_string()),
        ]);
        let blob = Blob::builder()
            .r#type(DELETION_VECTOR_V1.to_owned())
            .fields(vec![ROW_POSITION])
            .snapshot_id(-1)
            .sequence_number(-1)
            .data(data)
            .properties(properties)
            .build();
        writer.add(blob, CompressionCodec::None).await?;
        placed.push(Placed {
            data_file: data_file.clone(),
            offset,
            size,
            cardinality: positions.len() as u64,
        });
        offset += size;
    }
    writer.close().await?;
    Ok((placed, output.to_input_file().metadata().await?.size))
}

fn bytes_of(positions: &HashSet<i64>) -> Result<Vec<u8>> {
    let mut bitmap = RoaringTreemap::new();
    for position in positions {
        bitmap.insert(u64::try_from(*position)?);
    }
    let mut checked = MAGIC.to_vec();
    bitmap.serialize_into(&mut checked)?;
    let mut bytes = u32::try_from(checked.len())?.to_be_bytes().to_vec();
    bytes.extend(&checked);
    bytes.extend(crc32(&checked).to_be_bytes());
    Ok(bytes)
}

/// The positions of the vector at this place of a file.
pub(super) fn positions(file: &[u8], offset: i64, size: i64) -> Result<HashSet<i64>> {
    let (start, size) = (usize::try_from(offset)?, usize::try_from(size)?);
    let blob = file.get(start..start + size).context("a vector within its file")?;
    let (length, rest) = blob.split_first_chunk::<4>().context("the length of a vector")?;
    let (checked, crc) = rest.split_last_chunk::<4>().context("the CRC of a vector")?;
    ensure!(u32::from_be_bytes(*length) as usize == checked.len(), "a vector of another length");
    ensure!(u32::from_be_bytes(*crc) == crc32(checked), "a vector with a wrong CRC");
    ensure!(checked.starts_with(&MAGIC), "a vector without its magic");
    let bitmap = RoaringTreemap::deserialize_from(&checked[MAGIC.len()..])?;
    bitmap.into_iter().map(|position| Ok(i64::try_from(position)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_is_read_as_it_was_written() -> Result<()> {
        let set = HashSet::from([0, 7, 70_000, (1 << 33) + 5]);
        let bytes = bytes_of(&set)?;
        let mut file = b"PFA1".to_vec();
        file.extend(&bytes);
        assert_eq!(positions(&file, 4, i64::try_from(bytes.len())?)?, set);
        file[20] ^= 1;
        assert!(positions(&file, 4, i64::try_from(bytes.len())?).is_err());
        Ok(())
    }
}
