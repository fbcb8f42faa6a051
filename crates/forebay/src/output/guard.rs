//! Checks every output of every command: forebay never destroys files that it did not write.
//!
//! A command declares its inputs and outputs before it does any work. An output is refused
//! - if it is an input, is inside one, or is a file of one under another name, even with `--force`;
//! - if another output of the command goes to the same file;
//! - if a file exists that is not an earlier output of forebay ([`Kind`]), unless `--force` is given.
//!
//! An empty file, a character device, a pipe and `-` are always accepted. Links are followed first.

use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use forebay_units::PathText;

use super::Json;
use super::file::{Output, Way};
use super::kind::Kind;
use super::place::{Identity, Input, is_same, parent, place};

#[derive(Debug)]
pub(crate) struct Outputs {
    inputs: Vec<Input>,
    taken: Vec<Taken>,
    force: bool,
}

#[derive(Debug)]
struct Taken {
    flag: &'static str,
    given: PathBuf,
    /// `None` for stdout.
    place: Option<PathBuf>,
    is_folder: bool,
}

impl Outputs {
    /// For a command with these inputs. With `force`, files that forebay did not write are replaced.
    pub(crate) fn for_inputs<'a>(inputs: impl IntoIterator<Item = &'a Path>, force: bool) -> Self {
        Self { inputs: inputs.into_iter().map(Input::new).collect(), taken: Vec::new(), force }
    }

    /// A file that is written at the end; an earlier one stays until then.
    pub(crate) fn file(&mut self, flag: &'static str, path: &Path, kind: Kind) -> Result<Output> {
        if is_stdout(path) {
            self.take(flag, path, None, false)?;
            return Ok(Output { shown: path.to_owned(), way: Way::Stdout });
        }
        let found = std::fs::metadata(path).ok();
        if found.as_ref().is_some_and(|found| is_stream(found.file_type())) {
            try_stream(path, found.as_ref()).with_context(|| cannot_write(path))?;
            return Ok(Output { shown: path.to_owned(), way: Way::Stream(path.to_owned()) });
        }
        let place = self.claim(flag, path)?;
        self.judge(path, &place, found.as_ref(), kind)?;
        try_file(&place, kind).with_context(|| cannot_write(path))?;
        Ok(Output { shown: path.to_owned(), way: Way::File(place) })
    }

    pub(crate) fn json(&mut self, path: Option<&Path>) -> Result<Json> {
        Ok(Json(path.map(|path| self.file("--json", path, Kind::Json)).transpose()?))
    }

    /// A file that other code writes after checking what exists.
    pub(crate) fn claim(&mut self, flag: &'static str, path: &Path) -> Result<PathBuf> {
        let place = place(path);
        self.keep_out(path, &place)?;
        self.take(flag, path, Some(place.clone()), false)?;
        Ok(place)
    }

    /// A folder that other code writes to.
    pub(crate) fn folder(&mut self, flag: &'static str, path: &Path) -> Result<()> {
        let place = place(path);
        self.keep_out(path, &place)?;
        self.take(flag, path, Some(place), true)
    }

    /// A folder that other code writes to, and that must not contain an input.
    pub(crate) fn folder_apart(&mut self, flag: &'static str, path: &Path) -> Result<()> {
        self.folder(flag, path)?;
        match self.inputs.iter().find(|input| input.lies_in(&place(path))) {
            None => Ok(()),
            Some(Input { given, .. }) => bail!(
                "cannot write to {}: it contains the input {}\nhint: choose a folder beside the input",
                path.escaped(),
                given.escaped()
            ),
        }
    }

    fn keep_out(&self, path: &Path, place: &Path) -> Result<()> {
        let shown = path.escaped();
        if let Some(input) = self.inputs.iter().find(|input| input.contains(place)) {
            let given = input.given.escaped();
            let (how, hint) = match input.is(place) {
                true => ("is", "choose another path".to_owned()),
                false => ("is inside", format!("choose a path outside {given}")),
            };
            bail!("cannot write {shown}: it {how} the input {given}\nhint: {hint}");
        }
        Ok(())
    }

    fn take(&mut self, flag: &'static str, path: &Path, place: Option<PathBuf>, is_folder: bool) -> Result<()> {
        for taken in &self.taken {
            match (&taken.place, &place) {
                (None, None) => bail!("{} - and {flag} - cannot both go to stdout", taken.flag),
                (Some(other), Some(place)) if is_same(other, place) => {
                    bail!("{} and {flag} cannot both be written to {}", taken.flag, path.escaped())
                }
                (Some(other), Some(place)) if taken.is_folder && place.starts_with(other) => bail!(
                    "cannot write {}: it is inside {} {}, to which this command writes",
                    path.escaped(),
                    taken.flag,
                    taken.given.escaped()
                ),
                _ => {}
            }
        }
        self.taken.push(Taken { flag, given: path.to_owned(), place, is_folder });
        Ok(())
    }

    fn judge(&self, path: &Path, place: &Path, found: Option<&Metadata>, kind: Kind) -> Result<()> {
        let is_harmless = |found: &Metadata| found.is_dir() || (found.is_file() && found.len() == 0);
        let Some(found) = found.filter(|found| !is_harmless(found)) else {
            return Ok(());
        };
        if found.is_file() && kind.is_ours(place).with_context(|| cannot_write(path))? {
            return Ok(());
        }
        if !self.force {
            return Err(taken(path, kind));
        }
        let file = Identity::of(found);
        match self.inputs.iter().find(|input| input.names(file)) {
            Some(input) => bail!(
                "cannot write {}: it is a file of the input {}\nhint: choose another path",
                path.escaped(),
                input.given.escaped()
            ),
            None => Ok(()),
        }
    }
}

fn taken(path: &Path, kind: Kind) -> anyhow::Error {
    let what = match kind {
        Kind::Values => "the file exists",
        Kind::Json | Kind::Page | Kind::Table | Kind::ManPage | Kind::Markdown => {
            "the file exists and was not written by forebay"
        }
    };
    anyhow!("cannot write {}: {what}\nhint: choose another path, or replace it with --force", path.escaped())
}

pub(crate) fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.escaped())
}

fn is_stdout(path: &Path) -> bool {
    ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|stdout| path == Path::new(stdout))
}

/// Devices that can be written to without losing data. A disk is not one.
fn is_stream(kind: FileType) -> bool {
    kind.is_char_device() || kind.is_fifo()
}

/// Checks before the run that a device can be written to. A pipe is not opened twice, since its reader would see an end of
/// file.
fn try_stream(path: &Path, found: Option<&Metadata>) -> io::Result<()> {
    let is_device = found.is_some_and(|found| found.file_type().is_char_device());
    if is_device { OpenOptions::new().append(true).open(path).map(drop) } else { Ok(()) }
}

/// Checks before the run that a file can be written. Parent folders of arrays and models are created.
fn try_file(place: &Path, kind: Kind) -> io::Result<()> {
    if kind == Kind::Values && !parent(place).exists() {
        return Ok(());
    }
    match File::create_new(place) {
        // A failed run must not leave an empty file behind.
        Ok(_) => std::fs::remove_file(place),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => OpenOptions::new().append(true).open(place).map(drop),
        Err(error) => Err(error),
    }
}
