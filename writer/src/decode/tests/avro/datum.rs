//! Pieces of Avro's binary encoding, written as its specification has them.

/// A zigzag integer.
pub(in crate::decode::tests) fn long(value: i64) -> Vec<u8> {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    let mut out = Vec::new();
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
    out
}

/// Bytes with their length before them.
pub(in crate::decode::tests) fn bytes(bytes: &[u8]) -> Vec<u8> {
    [&long(bytes.len() as i64), bytes].concat()
}
