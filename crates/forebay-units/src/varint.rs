//! Variable-length integers in base 128, lowest digits first, as in protocol buffers, Thrift and LevelDB tables.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invalid {
    Truncated,
    TooLong,
}

pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes a number from the front of `bytes`; without a valid number, `bytes` is unchanged.
pub fn take(bytes: &mut &[u8]) -> Result<u64, Invalid> {
    let mut value = 0_u64;
    for (n, &byte) in bytes.iter().take(10).enumerate() {
        let digits = u64::from(byte & 0x7f);
        // The tenth byte has room for one bit.
        if n == 9 && digits > 1 {
            return Err(Invalid::TooLong);
        }
        value |= digits << (7 * n);
        if byte < 0x80 {
            *bytes = &bytes[n + 1..];
            return Ok(value);
        }
    }
    Err(if bytes.len() < 10 { Invalid::Truncated } else { Invalid::TooLong })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_there_and_back() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            put(&mut out, value);
            let mut rest = &out[..];
            assert_eq!((take(&mut rest), rest), (Ok(value), &[][..]));
            assert_eq!(take(&mut &out[..out.len() - 1]), Err(Invalid::Truncated));
        }
    }

    #[test]
    fn more_than_64_bits_are_refused() {
        assert_eq!(take(&mut &[0xff; 11][..]), Err(Invalid::TooLong));
        assert_eq!(take(&mut &[0xff; 9][..]), Err(Invalid::Truncated));
        assert_eq!(take(&mut &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2][..]), Err(Invalid::TooLong));
    }
}
