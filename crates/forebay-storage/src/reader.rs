//! An object as a stream of bytes.

use std::io::{self, BufRead, Read};

use crate::{Buffer, Object, Result};

/// Bytes that are read at a time.
const CHUNK: u64 = 256 << 10;

/// Reads an object from its beginning to its end, a chunk at a time.
///
/// ```
/// use std::io::Read;
/// use std::path::Path;
/// use forebay_storage::{Memory, ObjectReader, Storage};
///
/// let storage = Memory::default();
/// storage.insert("a", b"hello".to_vec());
/// let object = storage.open(Path::new("a"))?;
/// let mut text = String::new();
/// ObjectReader::new(object.as_ref())?.read_to_string(&mut text)?;
/// assert_eq!(text, "hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ObjectReader<'a> {
    object: &'a dyn Object,
    len: u64,
    at: u64,
    chunk: Buffer,
    used: usize,
}

impl<'a> ObjectReader<'a> {
    /// Starts at the beginning.
    ///
    /// # Errors
    /// When the object's length cannot be asked for.
    pub fn new(object: &'a dyn Object) -> Result<Self> {
        Ok(Self { object, len: object.len()?, at: 0, chunk: Buffer::default(), used: 0 })
    }
}

impl BufRead for ObjectReader<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.used == self.chunk.len() && self.at < self.len {
            let wanted = (self.len - self.at).min(CHUNK);
            self.object.read_at(self.at, wanted as usize, &mut self.chunk).map_err(io::Error::other)?;
            (self.at, self.used) = (self.at + wanted, 0);
        }
        Ok(&self.chunk.as_slice()[self.used..])
    }

    fn consume(&mut self, amount: usize) {
        self.used += amount;
    }
}

impl Read for ObjectReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.fill_buf()?.read(into)?;
        self.consume(n);
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Error, Memory, Storage};
    use std::path::Path;

    #[test]
    fn an_object_of_several_chunks_comes_whole() {
        let bytes: Vec<u8> = (0..CHUNK as usize * 2 + 77).map(|n| (n % 251) as u8).collect();
        let memory = Memory::default();
        memory.insert("a", bytes.clone());
        let object = memory.open(Path::new("a")).unwrap();
        let mut read = Vec::new();
        ObjectReader::new(object.as_ref()).unwrap().read_to_end(&mut read).unwrap();
        assert!(read == bytes);
    }

    #[test]
    fn a_failure_keeps_what_the_storage_said() {
        let memory = Memory::default();
        memory.insert("a", vec![7; 10]);
        let object = memory.open(Path::new("a")).unwrap();
        let mut reader = ObjectReader::new(object.as_ref()).unwrap();
        reader.len = 11;
        let error = reader.fill_buf().unwrap_err();
        let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<Error>());
        assert!(matches!(cause, Some(Error::Truncated { wanted: 11, found: 10, .. })), "{error}");
    }
}
