//! Plain files into a checkpoint, and a checkpoint into plain files.
//!
//! A plain folder has `tensors.json`, which says name, type and shape of each tensor and the notes, and the values of
//! tensor *n* as `n.bin`. Any language can write that, so the interoperability tests use it on our side.
//!
//! ```text
//! checkpoint_files pack   FORMAT PLAIN_DIR DIR STEM
//! checkpoint_files unpack FORMAT DIR STEM PLAIN_DIR
//! ```

#![expect(clippy::print_stderr, reason = "a program")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use forebay_checkpoint::format::{self, Format, Source, Sums};
use forebay_checkpoint::{Dtype, FilePlan, Header, Snapshot, Tensor};
use serde::{Deserialize, Serialize};

type Error = Box<dyn std::error::Error>;

#[derive(Serialize, Deserialize)]
struct Plain {
    tensors: Vec<PlainTensor>,
    notes: BTreeMap<String, String>,
    /// Tensors of strings, as text; only in what was unpacked.
    #[serde(default)]
    strings: BTreeMap<String, Vec<String>>,
}

#[derive(Serialize, Deserialize)]
struct PlainTensor {
    name: String,
    dtype: String,
    shape: Vec<u64>,
}

/// Types by the names that NumPy and ml_dtypes give them.
const DTYPES: [(Dtype, &str); 20] = [
    (Dtype::Bool, "bool"),
    (Dtype::U8, "uint8"),
    (Dtype::I8, "int8"),
    (Dtype::U16, "uint16"),
    (Dtype::I16, "int16"),
    (Dtype::F16, "float16"),
    (Dtype::Bf16, "bfloat16"),
    (Dtype::U32, "uint32"),
    (Dtype::I32, "int32"),
    (Dtype::F32, "float32"),
    (Dtype::U64, "uint64"),
    (Dtype::I64, "int64"),
    (Dtype::F64, "float64"),
    (Dtype::F8E5m2, "float8_e5m2"),
    (Dtype::F8E4m3, "float8_e4m3fn"),
    (Dtype::F8E8m0, "float8_e8m0fnu"),
    (Dtype::F8E4m3Fnuz, "float8_e4m3fnuz"),
    (Dtype::F8E5m2Fnuz, "float8_e5m2fnuz"),
    (Dtype::C64, "complex64"),
    (Dtype::C128, "complex128"),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["pack", format, plain, dir, stem] => named(format).and_then(|format| pack(format, plain, dir, stem)),
        ["unpack", format, dir, stem, plain] => named(format).and_then(|format| unpack(format, dir, stem, plain)),
        _ => Err("usage: checkpoint_files pack FORMAT PLAIN_DIR DIR STEM | unpack FORMAT DIR STEM PLAIN_DIR".into()),
    };
    let Err(error) = done else { return ExitCode::SUCCESS };
    forebay_units::causes(error.as_ref()).for_each(|error| eprintln!("{error}"));
    ExitCode::from(2)
}

fn named(name: &str) -> Result<&'static dyn Format, Error> {
    format::named(name).ok_or_else(|| format!("no format is named {name:?}").into())
}

fn pack(format: &dyn Format, plain_dir: &str, dir: &str, stem: &str) -> Result<(), Error> {
    let plain_dir = Path::new(plain_dir);
    let plain: Plain = serde_json::from_slice(&fs::read(plain_dir.join("tensors.json"))?)?;
    let mut headers = Vec::new();
    let mut values = Vec::new();
    for (n, tensor) in plain.tensors.into_iter().enumerate() {
        let dtype = DTYPES.into_iter().find(|(_, name)| *name == tensor.dtype).ok_or("an unknown type")?.0;
        headers.push(Header { name: tensor.name, dtype, shape: tensor.shape });
        values.push(fs::read(plain_dir.join(format!("{n}.bin")))?);
    }
    let tensors = headers.iter().zip(&values).map(|(header, bytes)| Tensor::new(header, bytes)).collect();
    let snapshot = Snapshot { tensors, notes: plain.notes };
    let layout = format.plan(stem, &snapshot)?;
    let mut sums = Sums::new(&snapshot);
    fs::create_dir_all(dir)?;
    for plan in &layout.files {
        write(dir, plan, &snapshot, &mut sums)?;
    }
    for plan in layout.close(&sums.finish()?) {
        write(dir, &plan, &snapshot, &mut Sums::new(&snapshot))?;
    }
    Ok(())
}

/// Writes a file in pieces of an odd size, so that seams fall anywhere.
fn write(dir: &str, plan: &FilePlan, snapshot: &Snapshot<'_>, sums: &mut Sums) -> io::Result<()> {
    let file = File::create(Path::new(dir).join(&plan.name))?;
    let mut piece = vec![0; 100_003];
    let mut offset = 0;
    while offset < plan.len {
        let filled = plan.fill(snapshot, offset, &mut piece);
        file.write_all_at(&piece[..filled], offset)?;
        sums.add_filled(plan, offset, &piece[..filled]);
        offset += filled as u64;
    }
    Ok(())
}

struct Folder(PathBuf);

impl Source for Folder {
    fn size(&self, file: &str) -> io::Result<u64> {
        fs::metadata(self.0.join(file)).map(|metadata| metadata.len())
    }

    fn read_at(&self, file: &str, offset: u64, into: &mut [u8]) -> io::Result<()> {
        File::open(self.0.join(file))?.read_exact_at(into, offset)
    }
}

fn unpack(format: &dyn Format, dir: &str, stem: &str, plain_dir: &str) -> Result<(), Error> {
    let source = Folder(dir.into());
    let catalog = format.open(stem, &source)?;
    let plain_dir = Path::new(plain_dir);
    fs::create_dir_all(plain_dir)?;
    let mut tensors = Vec::new();
    for (n, entry) in catalog.tensors.iter().enumerate() {
        let Header { name, dtype, shape } = &entry.header;
        fs::write(plain_dir.join(format!("{n}.bin")), catalog.read(&source, name)?)?;
        let dtype = DTYPES.into_iter().find(|(known, _)| known == dtype).ok_or("a type that NumPy does not have")?.1;
        tensors.push(PlainTensor { name: name.clone(), dtype: dtype.to_owned(), shape: shape.clone() });
    }
    let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
    let strings = catalog.strings.into_iter().map(|found| (found.name, found.values.iter().map(text).collect()));
    let plain = Plain { tensors, notes: catalog.notes, strings: strings.collect() };
    fs::write(plain_dir.join("tensors.json"), serde_json::to_vec(&plain)?)?;
    Ok(())
}
