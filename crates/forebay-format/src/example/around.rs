//! The bytes of a message before and after a value that is too large for memory.

use forebay_units::varint;

use super::wire::put_message;

/// The two halves of a message with one long byte string and a whole number.
///
/// ```
/// use forebay_format::example::{Around, ExampleWriter};
///
/// let around = Around::new(("image", 3), ("size", 7));
/// let message = [&around.before[..], b"abc", &around.behind].concat();
/// assert_eq!(message, ExampleWriter::new().bytes("image", &[b"abc"]).ints("size", &[7]).finish());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Around {
    pub before: Vec<u8>,
    pub behind: Vec<u8>,
}

impl Around {
    /// For a byte string of this length. The number's name must sort after the byte string's name, because features are
    /// ordered by name.
    pub fn new(bytes: (&str, u64), int: (&str, i64)) -> Self {
        let (name, len) = bytes;
        let behind = entry_of_int(int.0, int.1);
        // From the inside out: the byte string is in a list, the list in a feature, the feature in an entry after its name.
        let mut before = opened(1, len, &[]);
        before = opened(1, len, &before);
        before = opened(2, len, &before);
        let mut named = Vec::new();
        put_message(&mut named, 1, name.as_bytes());
        named.extend(before);
        before = opened(1, len, &named);
        before = opened(1, len + behind.len() as u64, &before);
        Self { before, behind }
    }

    /// Length of the message without the value.
    pub fn overhead(&self) -> u64 {
        (self.before.len() + self.behind.len()) as u64
    }
}

/// The start of a field with `inner` and then `more` bytes in it.
fn opened(number: u8, more: u64, inner: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    varint::put(&mut out, inner.len() as u64 + more);
    out.extend_from_slice(inner);
    out
}

fn entry_of_int(name: &str, value: i64) -> Vec<u8> {
    let (mut number, mut list, mut feature, mut entry, mut out) = (vec![], vec![], vec![], vec![], vec![]);
    varint::put(&mut number, value as u64);
    put_message(&mut list, 1, &number);
    put_message(&mut feature, 3, &list);
    put_message(&mut entry, 1, name.as_bytes());
    put_message(&mut entry, 2, &feature);
    put_message(&mut out, 1, &entry);
    out
}

#[cfg(test)]
mod tests {
    use super::super::ExampleWriter;
    use super::*;

    #[test]
    fn the_halves_are_those_of_the_message_at_every_length_of_its_lengths() {
        for len in [0, 1, 100, 127, 128, 16_000, 16_383, 16_384, 2_097_100, 2_097_152] {
            let value = vec![7; len];
            for number in [0, 12_107, -1] {
                let around = Around::new(("image", len as u64), ("size", number));
                let whole = ExampleWriter::new().bytes("image", &[&value]).ints("size", &[number]).finish();
                assert!([&around.before[..], &value, &around.behind].concat() == whole, "{len} bytes and {number}");
            }
        }
    }
}
