//! Avro's object container file: a header, and blocks of entries that may be compressed.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Read;

use super::cursor::Cursor;
use super::invalid;
use super::schema::each;
use crate::{Error, ErrorKind, Result};

/// A block may have this many bytes when it is uncompressed. Writers make blocks of 16 or 64 KiB.
const BLOCK_BYTES_MOST: usize = 256 << 20;

/// The metadata of a file.
pub(super) type Header = HashMap<String, Vec<u8>>;

/// The blocks of a file.
#[derive(Debug)]
pub(super) struct Blocks<'a> {
    rest: Cursor<'a>,
    codec: Codec,
    sync: [u8; 16],
}

#[derive(Debug, Clone, Copy)]
enum Codec {
    Null,
    Deflate,
    Snappy,
    Zstandard,
}

/// Reads the header of a file.
pub(super) fn open(bytes: &[u8]) -> Result<(Header, Blocks<'_>)> {
    let Some(rest) = bytes.strip_prefix(b"Obj\x01") else {
        return Err(invalid("it does not begin as a file of Avro does"));
    };
    let mut rest = Cursor::new(rest);
    let mut header = Header::new();
    each(&mut rest, |rest| {
        let key = String::from_utf8_lossy(rest.bytes()?).into_owned();
        header.insert(key, rest.bytes()?.to_vec());
        Ok(())
    })?;
    let codec = Codec::of(&header)?;
    let sync = rest.array()?;
    Ok((header, Blocks { rest, codec, sync }))
}

impl Blocks<'_> {
    /// Decodes every entry of every block.
    pub(super) fn decode<T>(mut self, mut entry: impl FnMut(&mut Cursor<'_>) -> Result<T>) -> Result<Vec<T>> {
        let mut entries = Vec::new();
        while self.rest.remaining() > 0 {
            let count = self.rest.long()?;
            let packed = self.rest.bytes()?;
            if self.rest.array()? != self.sync {
                return Err(invalid("a block does not end with the file's marker: the file is damaged"));
            }
            let block = self.codec.unpack(packed)?;
            let mut cursor = Cursor::new(&block);
            let count = usize::try_from(count).ok().filter(|count| *count <= cursor.remaining());
            let count = count.ok_or_else(|| invalid("a block announces more entries than it has bytes"))?;
            for _ in 0..count {
                entries.push(entry(&mut cursor)?);
            }
            if cursor.remaining() > 0 {
                return Err(invalid(format!(
                    "`{}` bytes are left behind the last entry of a block: the file is damaged",
                    cursor.remaining()
                )));
            }
        }
        Ok(entries)
    }
}

impl Codec {
    fn of(header: &Header) -> Result<Self> {
        match header.get("avro.codec").map(Vec::as_slice) {
            None | Some(b"" | b"null") => Ok(Self::Null),
            Some(b"deflate") => Ok(Self::Deflate),
            Some(b"snappy") => Ok(Self::Snappy),
            Some(b"zstandard") => Ok(Self::Zstandard),
            Some(other) => Err(Error::new(
                ErrorKind::Unsupported,
                format!(
                    "codec `{}` is not read: have the file written with null, deflate, snappy or zstandard",
                    String::from_utf8_lossy(other)
                ),
            )),
        }
    }

    fn unpack(self, packed: &[u8]) -> Result<Cow<'_, [u8]>> {
        match self {
            Self::Null => Ok(Cow::Borrowed(packed)),
            Self::Deflate => drain(flate2::read::DeflateDecoder::new(packed)),
            Self::Zstandard => drain(zstd::stream::read::Decoder::with_buffer(packed).map_err(damaged)?),
            Self::Snappy => unsnap(packed),
        }
    }
}

fn damaged(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    invalid("a block cannot be uncompressed: the file is damaged").with_source(source)
}

fn too_large() -> Error {
    invalid(format!("a block has more than {BLOCK_BYTES_MOST} bytes when it is uncompressed"))
}

fn drain(packed: impl Read) -> Result<Cow<'static, [u8]>> {
    let mut block = Vec::new();
    packed.take(BLOCK_BYTES_MOST as u64 + 1).read_to_end(&mut block).map_err(damaged)?;
    if block.len() > BLOCK_BYTES_MOST { Err(too_large()) } else { Ok(Cow::Owned(block)) }
}

/// Avro's snappy: the packed bytes, then the checksum of the unpacked ones.
fn unsnap(packed: &[u8]) -> Result<Cow<'static, [u8]>> {
    let Some((packed, checksum)) = packed.split_last_chunk::<4>() else {
        return Err(invalid("a block is too short for its checksum: the file is damaged"));
    };
    let length = snap::raw::decompress_len(packed).map_err(damaged)?;
    // Three bytes stand for 64 at the most.
    if length > BLOCK_BYTES_MOST || length / 64 > packed.len() {
        return Err(too_large());
    }
    let block = snap::raw::Decoder::new().decompress_vec(packed).map_err(damaged)?;
    if crc32fast::hash(&block) != u32::from_be_bytes(*checksum) {
        return Err(invalid("the checksum of a block does not match: the file is damaged"));
    }
    Ok(Cow::Owned(block))
}
