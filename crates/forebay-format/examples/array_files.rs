//! What is in an array file, an archive of them or a table, for whoever wants to compare: the interoperability tests do.
//!
//! ```text
//! array_files npy FILE          # "f 8 little c 3 4", a line's end, then the values as they lie
//! array_files npz FILE MEMBER
//! array_files csv FILE          # "2 3": rows and columns, then the values as 64-bit floats
//! array_files csv.gz FILE
//! ```

#![expect(clippy::print_stderr, reason = "a program")]

use std::io::{self, Write};
use std::process::ExitCode;

use forebay_format::csv::read::{Expand, Number, Parser};
use forebay_format::npy;
use forebay_format::npz::read::{Content, Finder};

type Error = Box<dyn std::error::Error>;

/// Small enough that everything is cut somewhere.
const PIECE: usize = 1000;

fn main() -> ExitCode {
    match run(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(out) if io::stdout().write_all(&out).is_ok() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("array_files: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> Result<Vec<u8>, Error> {
    let [kind, path, rest @ ..] = args else {
        return Err("usage: array_files npy|npz|csv|csv.gz FILE [MEMBER]".into());
    };
    let file = std::fs::read(path)?;
    match (kind.as_str(), rest) {
        ("npy", []) => array(&file),
        ("npz", [member]) => array(&content(&file, member)?),
        ("csv", []) => table(&file, Expand::Plain),
        ("csv.gz", []) => table(&file, Expand::gzip()),
        _ => Err(format!("what is {kind}?").into()),
    }
}

fn array(file: &[u8]) -> Result<Vec<u8>, Error> {
    let header = npy::read::parse(file)?;
    let values = &file[header.data_offset as usize..];
    if values.len() as u64 != header.n_bytes() {
        return Err(format!("{} bytes of values, not {}", values.len(), header.n_bytes()).into());
    }
    let order = if header.element.is_big_endian { "big" } else { "little" };
    let layout = if header.fortran_order { "fortran" } else { "c" };
    let shape: String = header.shape.iter().map(|side| format!(" {side}")).collect();
    let mut out = format!("{} {} {order} {layout}{shape}\n", header.element.kind, header.element.bytes).into_bytes();
    out.extend_from_slice(values);
    Ok(out)
}

fn content(file: &[u8], member: &str) -> Result<Vec<u8>, Error> {
    let mut finder = Finder::new(file.len() as u64)?;
    while let Some(want) = finder.want() {
        finder.feed(&file[want.offset as usize..][..want.len])?;
    }
    let entry = finder.finish().into_iter().find(|entry| entry.name == member).ok_or("there is no such member")?;
    let start = entry.data_offset(&file[entry.offset as usize..], file.len() as u64)? as usize;
    let (mut content, mut out) = (Content::new(&entry, true), Vec::new());
    for packed in file[start..][..entry.packed_bytes as usize].chunks(PIECE) {
        content.feed(packed, |bytes| {
            out.extend_from_slice(bytes);
            Ok(())
        })?;
    }
    content.finish()?;
    Ok(out)
}

fn table(file: &[u8], mut expand: Expand) -> Result<Vec<u8>, Error> {
    let (mut parser, mut values) = (Parser::default(), Vec::new());
    let mut each = |number| {
        let value = match number {
            Number::Natural(n) => n as f64,
            Number::Negative(n) => n as f64,
            Number::Float(x) => x,
        };
        values.extend_from_slice(&value.to_le_bytes());
    };
    for piece in file.chunks(PIECE) {
        expand.feed(piece, |text| parser.feed(text, |_, _, number| each(number)))?;
    }
    expand.finish(|text| parser.feed(text, |_, _, number| each(number)))?;
    let size = parser.finish(|_, _, number| each(number))?;
    let mut out = format!("{} {}\n", size.n_rows, size.n_columns).into_bytes();
    out.extend(values);
    Ok(out)
}
