//! Deletion vectors: specification "Puffin", blob type `deletion-vector-v1`.
//!
//! ```text
//! length of magic and bitmap (4, big-endian) | magic (4) | Roaring bitmap of 64 bits, portable | CRC-32 of both (4, big-endian)
//! ```

use flate2::Crc;
use roaring::RoaringTreemap;

use crate::{Error, ErrorKind, Result};

/// Before the bitmap.
const MAGIC: [u8; 4] = [0xD1, 0xD3, 0x39, 0x64];

/// The positions in the blob of a deletion vector. `Data` where it is not one.
pub(super) fn positions(blob: &[u8]) -> Result<RoaringTreemap> {
    let (length, rest) = blob.split_first_chunk::<4>().ok_or_else(|| invalid("is too short"))?;
    let (checked, sum) = rest.split_last_chunk::<4>().ok_or_else(|| invalid("is too short"))?;
    if u32::from_be_bytes(*length) as usize != checked.len() {
        return Err(invalid("has another length than it says"));
    }
    let mut crc = Crc::new();
    crc.update(checked);
    if crc.sum() != u32::from_be_bytes(*sum) {
        return Err(invalid("does not have the CRC that it says"));
    }
    let bitmap = checked.strip_prefix(&MAGIC).ok_or_else(|| invalid("begins with another magic"))?;
    RoaringTreemap::deserialize_from(bitmap).map_err(|cause| invalid("holds no bitmap").with_source(cause))
}

fn invalid(what: &str) -> Error {
    Error::new(ErrorKind::Data, format!("the deletion vector {what}: its file is damaged"))
}

#[cfg(test)]
pub(super) fn blob(positions: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let mut checked = MAGIC.to_vec();
    RoaringTreemap::from_iter(positions).serialize_into(&mut checked).expect("memory takes everything");
    let mut crc = Crc::new();
    crc.update(&checked);
    let length = u32::try_from(checked.len()).expect("a small vector");
    [length.to_be_bytes().as_slice(), &checked, &crc.sum().to_be_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_beyond_32_bits_are_read() {
        let wanted = [0, 7, 70_000, (1 << 33) + 5];
        assert_eq!(positions(&blob(wanted)).unwrap().into_iter().collect::<Vec<_>>(), wanted);
        assert!(positions(&blob([])).unwrap().is_empty());
    }

    #[test]
    fn a_damaged_vector_is_refused() {
        let whole = blob([1, 2, 3]);
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            assert_eq!(positions(&damaged).unwrap_err().kind(), ErrorKind::Data, "byte {at}");
        }
        for length in 0..whole.len() {
            assert_eq!(positions(&whole[..length]).unwrap_err().kind(), ErrorKind::Data, "{length} bytes");
        }
    }
}
