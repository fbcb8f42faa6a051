//! Entries grouped into samples.

use super::path::{as_text, is_shard_wide};
use super::{Entries, Entry, key_and_extension};
use crate::Error;
use crate::image::ImageKind;

const LABEL: &str = "cls";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample<'a> {
    /// The path that the parts have in common, up to the dot.
    pub key: Vec<u8>,
    pub offset: u64,
    pub parts: Vec<Part<'a>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part<'a> {
    /// What follows the first dot of the file name, in lower case.
    pub extension: String,
    pub data: &'a [u8],
}

impl<'a> Sample<'a> {
    /// The contents of the part with this extension, which is given in lower case.
    pub fn part(&self, extension: &str) -> Option<&'a [u8]> {
        self.parts.iter().find(|part| part.extension == extension).map(|part| part.data)
    }

    /// The first part that is an image by its name.
    pub fn image(&self) -> Option<&'a [u8]> {
        let is_image = |part: &&Part<'_>| ImageKind::from_extension(last_component(&part.extension)).is_some();
        self.parts.iter().find(is_image).map(|part| part.data)
    }

    /// The label in the part `cls`, an integer in decimal digits.
    ///
    /// # Errors
    /// When there is such a part but no integer in it.
    pub fn label(&self) -> Result<Option<i64>, Error> {
        let Some(data) = self.part(LABEL) else { return Ok(None) };
        let label = std::str::from_utf8(data).ok().and_then(|text| text.trim().parse().ok());
        label.map(Some).ok_or_else(|| {
            let found = data[..data.len().min(32)].escape_ascii();
            Error::invalid(format!("label of sample {}", as_text(&self.key)), self.offset, "an integer", found)
        })
    }

    fn new(key: &[u8], entry: &Entry<'a>) -> Self {
        Self { key: key.to_owned(), offset: entry.header_offset, parts: Vec::new() }
    }

    fn add(&mut self, extension: &[u8], entry: &Entry<'a>) -> Result<(), Error> {
        let extension = as_text(extension).to_lowercase();
        if self.part(&extension).is_some() {
            let what = format!("sample {}", as_text(&self.key));
            return Err(Error::invalid(what, entry.header_offset, "each part once", format!("another .{extension}")));
        }
        self.parts.push(Part { extension, data: entry.data });
        Ok(())
    }
}

fn last_component(extension: &str) -> &str {
    extension.rsplit('.').next().unwrap_or(extension)
}

/// Reads the one sample that `bytes` consist of, as a [`SampleScanner`](super::SampleScanner) located it.
///
/// # Errors
/// When a header is damaged, something is cut off, or `bytes` hold no sample or more than one.
pub fn parse_sample(bytes: &[u8], base_offset: u64) -> Result<Sample<'_>, Error> {
    let mut samples = Samples { entries: Entries::fragment(bytes, base_offset), open: None };
    let one_sample = |found| Error::invalid("tar sample", base_offset, "one sample", found);
    let sample = samples.next().ok_or_else(|| one_sample("none"))??;
    match samples.next() {
        None => Ok(sample),
        Some(other) => other.and_then(|_| Err(one_sample("more than one"))),
    }
}

/// Iterates over the samples of an archive in memory. Files without a key are passed over, as WebDataset does.
#[derive(Debug, Clone)]
pub struct Samples<'a> {
    entries: Entries<'a>,
    open: Option<Sample<'a>>,
}

impl<'a> Samples<'a> {
    /// Starts at the beginning of a whole archive.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { entries: Entries::new(bytes), open: None }
    }

    /// Adds a file to the open sample, or closes that one and opens the next.
    fn meet(&mut self, entry: &Entry<'a>) -> Result<Option<Sample<'a>>, Error> {
        let Some((key, extension)) = key_and_extension(&entry.path).filter(|_| !is_shard_wide(&entry.path)) else {
            return Ok(None);
        };
        let closed = self.open.take_if(|open| open.key != key);
        self.open.get_or_insert_with(|| Sample::new(key, entry)).add(extension, entry)?;
        Ok(closed)
    }
}

impl<'a> Iterator for Samples<'a> {
    type Item = Result<Sample<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let entry = match self.entries.next() {
                None => return self.open.take().map(Ok),
                Some(Ok(entry)) => entry,
                Some(Err(error)) => {
                    // The open sample may lack the parts that were to follow.
                    self.open = None;
                    return Some(Err(error));
                }
            };
            if let Some(sample) = self.meet(&entry).transpose() {
                return Some(sample);
            }
        }
    }
}
