//! `forebay checkpoint convert`: converts checkpoints of any program between the formats, piece by piece.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::builder::PossibleValuesParser;
use forebay_checkpoint::format::{self, Catalog, Format, State};
use forebay_units::{Bytes, PathText, count};
use serde::Serialize;

use super::files::{self, Folder, Target};
use crate::output::{Outcome, Outputs, Schema, complain, parent, remark};
use crate::{progress, stop};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A .safetensors file, a TensorFlow checkpoint's prefix or .index, or a folder with one
    input: PathBuf,

    /// The .safetensors file or TensorFlow prefix to write; must not exist
    out: PathBuf,

    /// Format to write
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(format::FORMATS.map(Format::name)))]
    to: String,

    /// Replace existing files
    #[arg(long)]
    force: bool,

    /// Leave out string tensors, which cannot be converted
    ///
    /// Without this flag, a checkpoint with string tensors is refused. The object graph of `tf.train.Checkpoint` holds no values
    /// and is always left out, with a note.
    #[arg(long)]
    drop_strings: bool,

    /// Write the result as JSON to FILE, or to stdout with "-"; replaces an earlier result
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
pub(super) struct Converted {
    pub(super) format: &'static str,
    pub(super) n_tensors: usize,
    pub(super) bytes: u64,
    pub(super) files: Vec<String>,
    /// What was left out because the format cannot hold it, and other remarks.
    pub(super) remarks: Vec<String>,
}

pub(super) fn run(args: &Args) -> Result<Outcome> {
    let to = format::named(&args.to).context("clap lets only formats of the table through")?;
    let (from, dir, stem) = find(&args.input)?;
    let (out_dir, out_stem) = files::split(&args.out, to)?;
    files::check_outside(&args.out)?;
    files::check_apart(args.json.as_deref(), &out_dir, &out_stem, to)?;
    files::check_apart(args.json.as_deref(), &dir, &stem, from)?;
    let read: Vec<PathBuf> = [args.input.clone()].into_iter().chain(files::names(&dir, &stem, from)).collect();
    let mut outputs = Outputs::for_inputs(read.iter().map(PathBuf::as_path), args.force);
    files::claim(&mut outputs, "OUT", &out_dir, &out_stem, to)?;
    let json = outputs.json(args.json.as_deref())?;
    let converted = match copy(args, from, &Folder(dir), &stem, to) {
        // A damaged source is a result, as in `verify`.
        Err(error) if is_damaged(&error) => {
            complain(&error);
            return Ok(Outcome::Missed);
        }
        other => other?,
    };
    let Some(converted) = converted else { return Ok(Outcome::Missed) };
    converted.remarks.iter().for_each(|text| remark(&format!("forebay: {text}")));
    json.give(Schema::CheckpointConvert, &converted.text(&args.out), &converted)?;
    Ok(Outcome::Met)
}

/// Converts a checkpoint; `None` if it contains string tensors and they may not be left out.
fn copy(
    args: &Args,
    from: &dyn Format,
    source: &Folder,
    stem: &str,
    to: &'static dyn Format,
) -> Result<Option<Converted>> {
    let catalog = from.open(stem, source).with_context(|| format!("cannot read {}", args.input.escaped()))?;
    if let Some(strings) = strings(&catalog).filter(|_| !args.drop_strings) {
        let input = args.input.escaped();
        remark(&format!("forebay: {input}: {strings} cannot be written\nhint: --drop-strings leaves them out"));
        return Ok(None);
    }
    write(&catalog, source, &args.out, to, args.force, &|| Ok(())).map(Some)
}

/// Whether the source is damaged: truncated, changed, or not in the format that its name implies.
fn is_damaged(error: &anyhow::Error) -> bool {
    use format::Error::{Checksum, Invalid, Truncated};
    error.chain().any(|cause| {
        cause.is::<files::Unverified>()
            || matches!(cause.downcast_ref(), Some(Checksum { .. } | Invalid { .. } | Truncated { .. }))
    })
}

/// Describes the string tensors of a checkpoint, without its object graph; `None` if there are none.
fn strings(catalog: &Catalog) -> Option<String> {
    let all = catalog.strings.iter().filter(|strings| !strings.is_object_graph());
    let names: Vec<String> = all.map(|strings| format!("{:?}", strings.name)).collect();
    (!names.is_empty()).then(|| format!("{} of strings ({})", count(names.len() as u64, "tensor"), names.join(", ")))
}

/// Writes a checkpoint's tensors and notes, with a progress bar; the files get their names only if `is_good` succeeds.
pub(super) fn write(
    catalog: &Catalog,
    source: &dyn format::Source,
    out: &Path,
    to: &'static dyn Format,
    force: bool,
    is_good: &dyn Fn() -> Result<()>,
) -> Result<Converted> {
    let (dir, stem) = files::split(out, to)?;
    let bytes = files::n_bytes(catalog);
    let bar = progress::bytes(bytes);
    bar.set_message(out.escaped().into_owned());
    let moved = |bytes| bar.inc(bytes);
    let target = Target { dir, stem, format: to, force, moved: &moved, cancel: stop::flag(), is_good };
    let written = files::write(catalog, source, &target);
    bar.finish_and_clear();
    let written = written?;
    let mut remarks = written.remarks;
    remarks.extend(strings(catalog).map(|strings| format!("left out {strings}, which cannot be written")));
    if catalog.strings.iter().any(format::Strings::is_object_graph) {
        remarks.push(
            "left out the object graph of tf.train.Checkpoint, which describes Python objects: all variables are kept \
             under their names in the checkpoint"
                .to_owned(),
        );
    }
    let files = written.files.iter().map(|path| path.escaped().into_owned()).collect();
    Ok(Converted { format: to.name(), n_tensors: catalog.tensors.len(), bytes, files, remarks })
}

impl Converted {
    pub(super) fn text(&self, out: &Path) -> String {
        let tensors = count(self.n_tensors as u64, "tensor");
        format!("{}: {tensors}, {} as {}\n", out.escaped(), Bytes(self.bytes), self.format)
    }
}

/// The format, the folder and the stem of the checkpoint that a path names.
fn find(path: &Path) -> Result<(&'static dyn Format, PathBuf, String)> {
    if path.is_dir() {
        return find_in(path);
    }
    let dir = parent(path).to_owned();
    let name = path.file_name().unwrap_or_default().escaped();
    if let Some((format, stem)) = format::recognise(&name).filter(|_| path.exists()) {
        return Ok((format, dir, stem.to_owned()));
    }
    let index = format!("{name}.index");
    if let Some((format, stem)) = format::recognise(&index).filter(|_| files::in_folder(&dir, &index).exists()) {
        return Ok((format, dir, stem.to_owned()));
    }
    if path.exists() {
        bail!("{}: neither a .safetensors file nor the .index of a TensorFlow checkpoint", path.escaped());
    }
    bail!("{}: no such file, and no TensorFlow checkpoint has that prefix", path.escaped())
}

/// The only checkpoint in a folder, or the one named in TensorFlow's state file.
fn find_in(dir: &Path) -> Result<(&'static dyn Format, PathBuf, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.escaped()))? {
        let name = entry?.file_name().escaped().into_owned();
        found.extend(format::recognise(&name).map(|(format, stem)| (format, stem.to_owned())));
    }
    let state = std::fs::read_to_string(dir.join("checkpoint")).ok().and_then(|text| State::parse(&text));
    let named = state.and_then(|state| Some(Path::new(&state.newest).file_name()?.to_str()?.to_owned()));
    let newest = named.and_then(|newest| found.iter().find(|(_, stem)| *stem == newest).cloned());
    match (newest, found.as_slice()) {
        (Some((format, stem)), _) => Ok((format, dir.to_owned(), stem)),
        (None, [(format, stem)]) => Ok((*format, dir.to_owned(), stem.clone())),
        (None, []) if has_checkpoints(dir) => bail!(
            "{} is a folder of checkpoints\nhint: name one, or use `forebay checkpoint restore` for the newest good one",
            dir.escaped()
        ),
        (None, []) => bail!("{} contains no .safetensors file and no TensorFlow checkpoint", dir.escaped()),
        (None, several) => {
            bail!("{}: {} checkpoints in this folder\nhint: name one of them", dir.escaped(), several.len())
        }
    }
}

fn has_checkpoints(dir: &Path) -> bool {
    std::fs::read_dir(dir).is_ok_and(|entries| entries.flatten().any(|entry| files::is_checkpoint(&entry.path())))
}
