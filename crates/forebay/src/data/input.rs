//! The flags of all commands that read data: the part of a dataset, and the features of its records.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use forebay_format::example::KeyNames;
use forebay_record::{Level, Levels};
use forebay_storage::is_url;
use forebay_units::PathText;

const NAMED: usize = 12;

#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct InputArgs {
    /// Read one split: the folder of this name in the dataset, such as train or val
    #[arg(long, value_name = "NAME")]
    split: Option<String>,

    /// TFRecord feature that holds the image [default: found by content]
    #[arg(long, value_name = "NAME")]
    image_key: Option<String>,

    /// TFRecord feature that holds the label, one int64 [default: found by name and type]
    #[arg(long, value_name = "NAME")]
    label_key: Option<String>,
}

impl InputArgs {
    pub(crate) fn keys(&self) -> KeyNames {
        KeyNames { image: self.image_key.clone(), label: self.label_key.clone() }
    }

    /// The keys that were given, by the names of their flags.
    pub(crate) fn given(&self) -> Levels {
        let keys = [("image_key", &self.image_key), ("label_key", &self.label_key)];
        keys.into_iter().filter_map(|(name, key)| Some((name.to_owned(), Level::Text(key.clone()?)))).collect()
    }

    /// The path to read: the data, or the folder of its split. Case does not matter.
    pub(crate) fn path(&self, data: &Path) -> Result<PathBuf> {
        let Some(name) = &self.split else { return Ok(data.to_owned()) };
        if is_url(data) {
            // A store has no folders to choose from; a prefix without objects is an error of its listing.
            return Ok(data.join(name));
        }
        if data.is_file() {
            bail!("--split {name}: {} is a file, not a folder with splits", data.escaped());
        }
        let folders = folders_in(data)?;
        let found = folders.iter().find(|folder| *folder == name);
        match found.or_else(|| folders.iter().find(|folder| folder.eq_ignore_ascii_case(name))) {
            Some(folder) => Ok(data.join(folder)),
            None => bail!("--split {name}: no such folder in {}; found {}", data.escaped(), listed(&folders)),
        }
    }
}

/// The names of the direct subfolders, sorted, without hidden ones.
fn folders_in(data: &Path) -> Result<Vec<String>> {
    let entries = std::fs::read_dir(data).with_context(|| format!("cannot list {}", data.escaped()))?;
    let mut names: Vec<String> = entries
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort_unstable();
    Ok(names)
}

fn listed(folders: &[String]) -> String {
    let more = folders.len().saturating_sub(NAMED);
    let tail = if more > 0 { format!(" and {more} more") } else { String::new() };
    match &folders[..folders.len().min(NAMED)] {
        [] => "no folders".to_owned(),
        names => format!("{}{tail}", names.join(", ")),
    }
}
