//! `forebay checkpoint ls`: lists checkpoints by their manifests and file lengths.

use anyhow::Result;
use forebay_checkpoint::{Damage, Manifest, Name, Tier, format, left_over, look};
use forebay_report::{Align, columns, visible};
use forebay_units::{Bytes, PathText, count};
use serde::Serialize;

use super::FolderArgs;
use super::holder::holder;
use crate::output::{JsonArgs, Outcome, Schema};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) folders: FolderArgs,

    #[command(flatten)]
    json: JsonArgs,
}

#[derive(Debug, Serialize)]
struct Listing {
    /// Nearest first.
    folders: Vec<Folder>,
    /// Oldest first.
    checkpoints: Vec<Checkpoint>,
}

#[derive(Debug, Serialize)]
struct Folder {
    path: String,
    n_checkpoints: usize,
    /// Leftovers of an interrupted save or removal.
    left_over: Vec<String>,
    held_by: Option<String>,
}

#[derive(Debug, Serialize)]
struct Checkpoint {
    name: String,
    step: u64,
    bytes: Option<u64>,
    metric: Option<f64>,
    format: Option<&'static str>,
    files: Vec<String>,
    copies: Vec<Copy>,
}

#[derive(Debug, Serialize)]
struct Copy {
    folder: String,
    /// Damage visible in the manifest and the file lengths; the files were not read.
    is_whole: bool,
    /// It has the name of a checkpoint but is a link, a file or a folder without a manifest. No command changes it.
    is_foreign: bool,
    damage: Option<String>,
}

pub(super) fn run(args: &Args) -> Result<Outcome> {
    args.folders.check()?;
    let json = args.json.target(args.folders.dirs())?;
    let listing = Listing::of(&args.folders.bare().tiers())?;
    json.give(Schema::CheckpointLs, &listing.text(), &listing)?;
    Ok(Outcome::Met)
}

impl Listing {
    fn of(tiers: &[Tier]) -> Result<Self> {
        let (mut folders, mut names) = (Vec::new(), std::collections::BTreeMap::<Name, Vec<&Tier>>::new());
        for tier in tiers {
            // Includes entries that only have the name of a checkpoint.
            let here: Vec<Name> = tier.fs.list(&tier.dir)?.iter().filter_map(|name| Name::parse(name)).collect();
            folders.push(Folder {
                path: tier.dir.escaped().into_owned(),
                n_checkpoints: here.iter().filter(|name| why_foreign(tier, **name).is_none()).count(),
                left_over: left_over(tier)?,
                held_by: holder(&tier.lock_path())?,
            });
            here.into_iter().for_each(|name| names.entry(name).or_default().push(tier));
        }
        let checkpoints = names.into_iter().map(|(name, tiers)| Checkpoint::of(name, &tiers)).collect();
        Ok(Self { folders, checkpoints })
    }

    fn text(&self) -> String {
        let mut text = String::new();
        if self.checkpoints.is_empty() {
            let places: Vec<&str> = self.folders.iter().map(|folder| folder.path.as_str()).collect();
            text.push_str(&format!("{}: no checkpoints\n", visible(&places.join(", "))));
        } else {
            let head = ["step", "bytes", "format", "metric", "where", "state"].map(str::to_owned).to_vec();
            let rows: Vec<Vec<String>> =
                [head].into_iter().chain(self.checkpoints.iter().map(Checkpoint::row)).collect();
            text.push_str(&columns(&rows, |_| Align::Left));
        }
        for folder in &self.folders {
            let path = visible(&folder.path);
            if !folder.left_over.is_empty() {
                let n = count(folder.left_over.len() as u64, "unfinished folder");
                let names = visible(&folder.left_over.join(", ")).into_owned();
                text.push_str(&format!("{path}: {n}, cleared by the next save or drain: {names}\n"));
            }
            if let Some(holder) = &folder.held_by {
                text.push_str(&format!("{path}: in use by {}\n", visible(holder)));
            }
        }
        text
    }
}

impl Checkpoint {
    fn of(name: Name, tiers: &[&Tier]) -> Self {
        let looks: Vec<_> = tiers.iter().map(|tier| (tier, look(tier, name))).collect();
        let manifest = looks.iter().find_map(|(_, found)| found.as_ref().ok());
        let copy = |(tier, found): &(&&Tier, Result<Manifest, Damage>)| {
            let foreign = why_foreign(tier, name);
            Copy {
                folder: tier.dir.escaped().into_owned(),
                is_whole: found.is_ok() && foreign.is_none(),
                is_foreign: foreign.is_some(),
                damage: foreign.map(str::to_owned).or_else(|| found.as_ref().err().map(ToString::to_string)),
            }
        };
        let files: Vec<String> = manifest.iter().flat_map(|m| m.files.iter().map(|file| file.name.clone())).collect();
        Self {
            name: name.to_string(),
            step: name.step,
            bytes: manifest.map(Manifest::n_bytes),
            metric: manifest.and_then(|manifest| manifest.metric),
            format: files.iter().find_map(|file| format::recognise(file)).map(|(format, _)| format.name()),
            files,
            copies: looks.iter().map(copy).collect(),
        }
    }

    fn row(&self) -> Vec<String> {
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
        let places: Vec<&str> = self.copies.iter().map(|copy| copy.folder.as_str()).collect();
        let damaged = self.copies.iter().filter_map(|copy| Some((copy, copy.damage.as_ref()?)));
        let said = |(copy, damage): (&Copy, &String)| {
            format!("in {}: {}{damage}", copy.folder, if copy.is_foreign { "foreign: " } else { "" })
        };
        let damaged: Vec<String> = damaged.map(said).collect();
        let take = self.name.split_once('.').map_or(String::new(), |(_, take)| format!(" (take {take})"));
        let row = [
            format!("{}{take}", self.step),
            or_none(self.bytes.map(|bytes| Bytes(bytes).to_string())),
            or_none(self.format.map(str::to_owned)),
            or_none(self.metric.map(|metric| metric.to_string())),
            places.join(", "),
            if damaged.is_empty() { "whole".to_owned() } else { damaged.join("; ") },
        ];
        row.iter().map(|cell| visible(cell).into_owned()).collect()
    }
}

/// Why an entry with the name of a checkpoint is none.
pub(super) fn why_foreign(tier: &Tier, name: Name) -> Option<&'static str> {
    let found = std::fs::symlink_metadata(tier.path_of(name)).ok()?;
    if found.is_symlink() {
        return Some("a link, not a folder");
    }
    if !found.is_dir() {
        return Some("a file, not a folder");
    }
    matches!(look(tier, name), Err(Damage::NoManifest)).then_some("no manifest")
}
