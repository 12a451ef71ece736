//! Bytes as text: hexadecimal, base64, UUIDs.

/// Bytes of two hexadecimal digits each, appended to `out`. `None` where the text is something else; `out` may have grown.
pub(crate) fn decode_hex(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (pairs, []) = text.as_chunks::<2>() else {
        return None;
    };
    for &[high, low] in pairs {
        out.push(hex(high)? << 4 | hex(low)?);
    }
    Some(())
}

/// Base64 of RFC 4648 section 4, padded and canonical, appended to `out`. As [`decode_hex`].
pub(crate) fn decode_base64(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (groups, []) = text.as_chunks::<4>() else {
        return None;
    };
    let Some((last, groups)) = groups.split_last() else {
        return Some(());
    };
    for group in groups {
        out.extend_from_slice(&sextets(*group)?);
    }
    let padding = match *last {
        [_, _, b'=', b'='] => 2,
        [_, _, _, b'='] => 1,
        _ => 0,
    };
    let mut digits = *last;
    digits[4 - padding..].fill(b'A');
    let bytes = sextets(digits)?;
    let (kept, cut) = bytes.split_at(3 - padding);
    out.extend_from_slice(kept);
    // Bits that belong to no byte are zero in the canonical form.
    cut.iter().all(|byte| *byte == 0).then_some(())
}

/// A UUID as 8-4-4-4-12 hexadecimal digits.
pub(crate) fn decode_uuid(text: &[u8]) -> Option<[u8; 16]> {
    if text.len() != 36 || [8, 13, 18, 23].iter().any(|&at| text[at] != b'-') {
        return None;
    }
    let mut uuid = [0; 16];
    let mut at = 0;
    for byte in &mut uuid {
        at += usize::from(matches!(at, 8 | 13 | 18 | 23));
        *byte = hex(text[at])? << 4 | hex(text[at + 1])?;
        at += 2;
    }
    Some(uuid)
}

fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

fn sextets(group: [u8; 4]) -> Option<[u8; 3]> {
    let mut bits = 0u32;
    for digit in group {
        bits = bits << 6 | u32::from(sextet(digit)?);
    }
    let [_, a, b, c] = bits.to_be_bytes();
    Some([a, b, c])
}

fn sextet(digit: u8) -> Option<u8> {
    match digit {
        b'A'..=b'Z' => Some(digit - b'A'),
        b'a'..=b'z' => Some(digit - b'a' + 26),
        b'0'..=b'9' => Some(digit - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}
