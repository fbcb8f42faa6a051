//! From a sample's stored bytes to its content and label.

use forebay_format::{tar, tfrecord};

use super::{Index, NO_LABEL, Packing};
use crate::error::SampleError;
use crate::map::Wants;

pub(crate) struct Content<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) label: i64,
}

impl Index {
    /// Verifies the container's checksums and extracts what is wanted of a sample from its stored bytes.
    pub(crate) fn unpack<'a>(&self, sample: u32, stored: &'a [u8], wants: Wants) -> Result<Content<'a>, SampleError> {
        let Some(place) = self.places.get(sample as usize) else {
            return Ok(Content { bytes: stored, label: NO_LABEL });
        };
        match self.packing {
            Packing::Files | Packing::Streamed | Packing::Indexed => Ok(Content { bytes: stored, label: place.label }),
            Packing::TfRecord | Packing::CompressedTfRecord(_) => {
                let payload = tfrecord::parse_frame(stored, place.offset)?.payload;
                if wants == Wants::Whole {
                    return Ok(Content { bytes: payload, label: NO_LABEL });
                }
                match self.keys.read(payload) {
                    Ok(record) => Ok(Content { bytes: record.image, label: record.label.unwrap_or(NO_LABEL) }),
                    Err(error) if wants == Wants::Image => Err(error.into()),
                    // A record without an image is passed whole: it is the user's own format.
                    Err(_) => Ok(Content { bytes: payload, label: NO_LABEL }),
                }
            }
            Packing::Tar | Packing::CompressedTar(_) if wants == Wants::Whole => {
                Ok(Content { bytes: stored, label: NO_LABEL })
            }
            Packing::Tar | Packing::CompressedTar(_) => {
                let sample = tar::parse_sample(stored, place.offset)?;
                // No part is an image by its name, so the first part is passed: it is the user's own format.
                let first = sample.parts.first().map_or(&[][..], |part| part.data);
                Ok(Content { bytes: sample.image().unwrap_or(first), label: sample.label()?.unwrap_or(NO_LABEL) })
            }
            Packing::Tensor => {
                let (first, tables) = &self.tables[place.file as usize];
                tables.verify_sample(u64::from(sample - first), stored)?;
                Ok(Content { bytes: stored, label: place.label })
            }
        }
    }
}
