//! Plain values into Parquet and HDF5 files, and such files into plain values.
//!
//! Any language can write values as bytes, so the interoperability tests use it on our side. `VALUES/NAME` holds a
//! column's values of all rows; `OUT` gets rows, or samples, one behind the other.
//!
//! ```text
//! columnar_files parquet-write FILE VALUES N_ROWS GROUP_ROWS none|snappy|gzip NAME:TYPE:WIDTH…
//! columnar_files parquet-read  FILE OUT [NAME…]
//! columnar_files hdf5-write    FILE VALUES SIDES N_SETS TYPE CHUNK|- GZIP|-
//! columnar_files hdf5-read     FILE OUT N_SAMPLES
//! ```

#![expect(clippy::print_stderr, reason = "a program")]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use forebay_format::parquet::{Codec, Column, Footer, GroupReader, TAIL_BYTES, Writer, footer_range};
use forebay_format::{Element, Error as FormatError};

type Error = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["parquet-write", file, values, n_rows, group_rows, codec, columns @ ..] => {
            write_parquet(file, values, (n_rows, group_rows), codec, columns)
        }
        ["parquet-read", file, out, columns @ ..] => read_parquet(file, out, columns),
        #[cfg(feature = "hdf5")]
        ["hdf5-write", file, values, rest @ ..] => hdf5::write(file, values, rest),
        #[cfg(feature = "hdf5")]
        ["hdf5-read", file, out, n_samples] => hdf5::read(file, out, n_samples),
        _ => Err("unknown command".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn write_parquet(file: &str, values: &str, rows: (&str, &str), codec: &str, columns: &[&str]) -> Result<(), Error> {
    let codec = match codec {
        "snappy" => Codec::Snappy,
        "gzip" => Codec::Gzip(4),
        _ => Codec::None,
    };
    let columns = columns.iter().map(|text| column(text)).collect::<Result<Vec<_>, _>>()?;
    let read = |column: &Column| fs::read(Path::new(values).join(&column.name));
    let given = columns.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let (n_rows, group_rows): (u64, u64) = (rows.0.parse()?, rows.1.parse()?);
    let mut out = fs::File::create(file)?;
    let mut put = |bytes: &[u8]| out.write_all(bytes).map_err(FormatError::Io);
    let mut writer = Writer::new(columns.clone(), codec)?;
    for first in (0..n_rows).step_by(group_rows as usize) {
        let mut fill = |i: usize, row: u64, to: &mut [u8]| {
            let row_bytes = columns[i].width as usize * columns[i].element.bytes() as usize;
            to.copy_from_slice(&given[i][(first + row) as usize * row_bytes..][..to.len()]);
        };
        writer.write_group(group_rows.min(n_rows - first), &mut fill, &mut put)?;
    }
    Ok(writer.finish(&mut put)?)
}

fn column(text: &str) -> Result<Column, Error> {
    let words: Vec<&str> = text.split(':').collect();
    let [name, element, width] = words[..] else { return Err("a column is NAME:TYPE:WIDTH".into()) };
    let element = Element::named(element).ok_or("unknown type")?;
    Ok(Column { name: name.to_owned(), element, width: width.parse()? })
}

fn read_parquet(file: &str, out: &str, columns: &[&str]) -> Result<(), Error> {
    let file = fs::read(file)?;
    let tail = &file[file.len().saturating_sub(TAIL_BYTES)..];
    let range = footer_range(tail, file.len() as u64)?;
    let names: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
    let chosen = (!names.is_empty()).then_some(&names[..]);
    let footer = Footer::parse(&file[range.start as usize..range.end as usize], range.start, chosen)?;
    let mut rows = Vec::new();
    for group in 0..footer.groups.len() {
        let mut reader = GroupReader::new(&footer, group, 4096, true);
        let start = rows.len();
        rows.resize(start + footer.groups[group].n_rows as usize * reader.row_bytes(), 0);
        let mut fetch = |offset: u64, len: usize, into: &mut Vec<u8>| -> Result<(), FormatError> {
            into.extend_from_slice(&file[offset as usize..offset as usize + len]);
            Ok(())
        };
        reader.read(&mut rows[start..], &mut fetch)?;
    }
    Ok(fs::write(out, rows)?)
}

#[cfg(feature = "hdf5")]
mod hdf5 {
    use forebay_format::hdf5::{Index, Lies, Segment, Skeleton, Spec, Stored, compressed};

    use super::*;

    fn sides(text: &str) -> Result<Option<Vec<u64>>, Error> {
        if text == "-" {
            return Ok(None);
        }
        Ok(Some(text.split(',').map(str::parse).collect::<Result<_, _>>()?))
    }

    pub(super) fn write(file: &str, values: &str, rest: &[&str]) -> Result<(), Error> {
        let [shape, n_sets, element, chunk, gzip] = rest else { return Err("five words about the shape".into()) };
        let spec = Spec {
            shape: sides(shape)?.ok_or("a shape")?,
            n_sets: n_sets.parse()?,
            element: Element::named(element).ok_or("unknown type")?,
            chunk: sides(chunk)?,
            max_shape: None,
            gzip: if *gzip == "-" { None } else { Some(gzip.parse()?) },
        };
        let given = fs::read(values)?;
        let mut out = fs::File::create(file)?;
        let mut put = |bytes: &[u8]| out.write_all(bytes).map_err(FormatError::Io);
        if spec.gzip.is_some() {
            let mut fill = |at: u64, to: &mut [u8]| to.copy_from_slice(&given[at as usize..][..to.len()]);
            return Ok(compressed(&spec, &mut fill, &mut put)?);
        }
        for (_, segment) in &Skeleton::new(&spec)?.segments {
            match segment {
                Segment::Bytes(bytes) => put(bytes)?,
                Segment::Values(range) => put(&given[range.start as usize..range.end as usize])?,
            }
        }
        Ok(())
    }

    pub(super) fn read(path: &str, out: &str, n_samples: &str) -> Result<(), Error> {
        let file = fs::read(path)?;
        let n_samples = n_samples.parse()?;
        let index = Index::of_file(Path::new(path), n_samples)?;
        let mut all = Vec::new();
        for sample in 0..n_samples {
            for set in &index.sets {
                all.extend(part(&file, set, sample)?);
            }
        }
        Ok(fs::write(out, all)?)
    }

    fn part(file: &[u8], set: &Stored, sample: u64) -> Result<Vec<u8>, Error> {
        let cut = |offset: u64, len: u64| {
            let bytes = file.get(offset as usize..(offset + len) as usize);
            bytes.ok_or_else(|| format!("{len} bytes from {offset} on are not there"))
        };
        let mut bytes = vec![0; set.sample_bytes() as usize];
        match &set.lies {
            Lies::Nowhere => {}
            Lies::Contiguous(offset) => {
                bytes.copy_from_slice(cut(offset + sample * set.sample_bytes(), set.sample_bytes())?);
            }
            Lies::Chunked(chunks) => {
                let mut values = Vec::new();
                for chunk in chunks.of_sample(sample) {
                    chunks.unfilter(chunk, cut(chunk.offset, chunk.len)?, &mut values)?;
                    chunks.place(chunk, &values, sample, &mut bytes);
                }
            }
        }
        Ok(bytes)
    }
}
