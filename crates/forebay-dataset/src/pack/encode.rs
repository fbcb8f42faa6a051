//! One shard while it is being written.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use forebay_format::example::ImageExample;
use forebay_format::image::{self, Dtype, ImageDecoder, ImageKind, ImageSpec};
use forebay_format::tensor::{Shape, ShardWriter};
use forebay_format::tfrecord::{self, Compression};
use forebay_format::{Error as FormatError, tar};
use forebay_storage::Writer;
use forebay_units::chain;

use super::NAME_PART;
use super::plan::{Input, Packing};
use crate::inspect::{decodes, has_end};
use crate::manifest::ShardEntry;
use crate::{Error, Result};

/// Samples are collected up to this length before they are written.
const CHUNK: usize = 4 << 20;
/// The label of a tensor sample that has none.
const NO_LABEL: i64 = -1;

/// A shard and its output file.
pub(super) struct Shard {
    writer: Box<dyn Writer>,
    body: Body,
    pending: Vec<u8>,
    n_samples: u64,
    bytes: u64,
    crc32c: u32,
}

enum Body {
    TfRecord(Compression),
    Tar,
    // Boxed, because it is far larger than the others.
    Tensor(Box<TensorBody>),
}

struct TensorBody {
    decoder: ImageDecoder,
    slot: Vec<u8>,
    shard: ShardWriter,
}

impl Shard {
    pub(super) fn start(packing: &Packing, writer: Box<dyn Writer>) -> Self {
        let body = match *packing {
            Packing::TfRecord { compression } => Body::TfRecord(compression),
            Packing::Tar => Body::Tar,
            Packing::Tensor { width, height } => Body::Tensor(Box::new(TensorBody::new(width, height))),
        };
        Self { writer, body, pending: Vec::new(), n_samples: 0, bytes: 0, crc32c: 0 }
    }

    /// Adds a file; the inner error says why it is not usable as a sample.
    pub(super) fn append(&mut self, input: &Input, bytes: &[u8]) -> Result<Result<(), String>> {
        if bytes.is_empty() {
            return Ok(Err("empty file".to_owned()));
        }
        if let Err(reason) = self.check_whole(bytes) {
            return Ok(Err(reason));
        }
        let added = match &mut self.body {
            Body::TfRecord(_) => append_record(&mut self.pending, input, bytes),
            Body::Tar => append_member(&mut self.pending, input, bytes),
            Body::Tensor(body) => body.append(input, bytes),
        };
        if let Err(error) = added {
            return Ok(Err(chain(&error)));
        }
        self.n_samples += 1;
        // A compressed shard is one stream: it is compressed, and written, at the end.
        let streams = matches!(self.body, Body::Tar | Body::TfRecord(Compression::None));
        if streams && self.pending.len() >= CHUNK {
            self.flush()?;
        }
        Ok(Ok(()))
    }

    /// Files go into TFRecord and tar shards unchanged. A file without an end marker may be cut off, and only then is it
    /// decoded.
    fn check_whole(&self, bytes: &[u8]) -> Result<(), String> {
        match image::sniff(bytes) {
            Some(kind) if !matches!(self.body, Body::Tensor(_)) && !is_ended(kind, bytes) => decodes(bytes),
            _ => Ok(()),
        }
    }

    /// Ends the shard; when this returns, it is durable under its name. A stop also ends its compression.
    pub(super) fn commit(mut self, file: PathBuf, cancel: &AtomicBool) -> Result<ShardEntry> {
        match std::mem::replace(&mut self.body, Body::Tar) {
            Body::TfRecord(Compression::None) => {}
            Body::TfRecord(compression) => {
                let goes_on = || !cancel.load(Ordering::Relaxed);
                let packed = tfrecord::compress_while(&self.pending, compression, &goes_on);
                self.pending = packed.expect("compressing memory into memory succeeds").ok_or(Error::Cancelled)?;
            }
            Body::Tar => tar::finish(&mut self.pending),
            Body::Tensor(body) => self.pending = body.shard.finish().expect("a shard in memory is below 2^64 bytes"),
        }
        self.flush()?;
        self.writer.commit()?;
        Ok(ShardEntry { file, n_samples: self.n_samples, bytes: self.bytes, crc32c: self.crc32c })
    }

    fn flush(&mut self) -> Result<()> {
        self.writer.write(&self.pending)?;
        self.crc32c = crc32c::crc32c_append(self.crc32c, &self.pending);
        self.bytes += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }
}

/// Whether a file is complete, by its end marker or its stated length.
fn is_ended(kind: ImageKind, bytes: &[u8]) -> bool {
    has_end(kind, bytes) || image::declared_len(bytes).is_some_and(|len| len <= bytes.len() as u64)
}

impl TensorBody {
    fn new(width: u32, height: u32) -> Self {
        let spec = ImageSpec { width, height, dtype: Dtype::U8, ..ImageSpec::default() };
        let shape = Shape { height, width, channels: 3 };
        Self {
            slot: vec![0; spec.sample_bytes()],
            decoder: ImageDecoder::new(spec),
            shard: ShardWriter::new(shape).expect("the plan has checked the shape"),
        }
    }

    fn append(&mut self, input: &Input, bytes: &[u8]) -> Result<(), FormatError> {
        self.decoder.decode_into(bytes, &mut self.slot)?;
        self.shard.append(&self.slot, input.label.unwrap_or(NO_LABEL), input.id)
    }
}

fn append_record(out: &mut Vec<u8>, input: &Input, bytes: &[u8]) -> Result<(), FormatError> {
    let info = image::info(bytes)?;
    let example = ImageExample {
        encoded: bytes,
        format: Some(info.kind),
        label: input.label,
        filename: Some(&input.name),
        height: Some(info.height),
        width: Some(info.width),
    };
    tfrecord::append(out, &example.to_bytes());
    Ok(())
}

fn append_member(out: &mut Vec<u8>, input: &Input, bytes: &[u8]) -> Result<(), FormatError> {
    let info = image::info(bytes)?;
    let path = if input.odd { plain_name(input, info.kind.extension()) } else { input.name.clone() };
    let (key, _) = tar::key_and_extension(&path).expect("a plain name has a key and an extension");
    let part = |extension: &str| [key, b".", extension.as_bytes()].concat();
    tar::append_file(out, &path, bytes)?;
    if let Some(label) = input.label {
        tar::append_file(out, part("cls"), label.to_string().as_bytes())?;
    }
    if input.odd {
        tar::append_file(out, part(NAME_PART), &input.name)?;
    }
    Ok(())
}

/// A unique name with one dot: it contains the number of the input.
fn plain_name(input: &Input, extension: &str) -> Vec<u8> {
    let file_at = input.name.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let (folder, file) = input.name.split_at(file_at);
    let file: Vec<u8> = file.iter().map(|byte| if b"._".contains(byte) { b'-' } else { *byte }).collect();
    [folder, &file, format!("-{}.{extension}", input.id).as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_name_has_one_dot_and_keeps_its_folder() {
        assert_eq!(plain_name(&Input::for_test(7, "v1.0/a.b.gif", 1), "png"), b"v1.0/a-b-gif-7.png");
        assert_eq!(plain_name(&Input::for_test(7, "__x", 1), "jpg"), b"--x-7.jpg");
    }
}
