//! Named ceilings on disk: one record per name, in forebay's data folder.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use forebay_probe::ceiling::{self, Ceiling, Load, Saved, Tier};
use forebay_record::{Environment, IngestCell, ProbeCell, Record};
use forebay_units::PathText;

use crate::home;
use crate::output::{Kind, remark, replace};

/// A name that is a valid file name on every system.
pub(crate) fn parse_name(text: &str) -> Result<String, String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let fine = !text.is_empty() && text.len() <= 100 && !text.starts_with('.') && text.chars().all(allowed);
    let reason = "a name is up to 100 letters, digits, '-', '_' and '.', and does not start with '.'";
    if fine { Ok(text.to_owned()) } else { Err(reason.to_owned()) }
}

pub(crate) fn dir() -> Result<PathBuf> {
    Ok(home::dir()?.join("ceilings"))
}

/// Checks before a long probe that its record can be saved under a name.
pub(crate) fn check(name: &str) -> Result<()> {
    let dir = dir()?;
    let cannot = || format!("cannot keep ceilings in {}", dir.escaped());
    fs::create_dir_all(&dir).with_context(cannot)?;
    let path = dir.join(format!("{name}.json"));
    if path.exists() && !Kind::Json.is_ours(&path).with_context(cannot)? {
        let path = path.escaped();
        bail!("cannot save {name}: {path} exists and was not written by forebay\nhint: choose another name");
    }
    let trial = dir.join(format!(".trial-{}", std::process::id()));
    fs::write(&trial, "").and_then(|()| fs::remove_file(&trial)).with_context(cannot)
}

pub(crate) fn save(name: &str, record: &Record<ProbeCell>) -> Result<()> {
    let path = dir()?.join(format!("{name}.json"));
    let former = path.exists().then(|| fs::read_to_string(&path).ok().and_then(|text| Record::from_json(&text).ok()));
    replace(&path, record.to_json().as_bytes())?;
    remark(&match former {
        None => format!("forebay: saved as the ceiling {name}"),
        Some(former) => format!("forebay: replaced the ceiling {name}{}", of_another_kind(former.as_ref(), record)),
    });
    let saved = Saved { name: name.to_owned(), record: record.clone() };
    if let Some(reason) = ceiling::unusable(&saved, tier_of(record)) {
        remark(&format!("forebay: {name} cannot be used as a ceiling: {reason}"));
    }
    Ok(())
}

fn of_another_kind(former: Option<&Record<ProbeCell>>, record: &Record<ProbeCell>) -> String {
    let Some(former) = former.filter(|former| tier_of(former) != tier_of(record)) else { return String::new() };
    let say = |of: &Record<ProbeCell>| match tier_of(of) {
        Some(tier) => format!("the tier {}, {}", tier.name, tier.kind.describe()),
        None => format!("a real disk ({})", of.environment.data_file_system.as_deref().unwrap_or("unknown")),
    };
    format!("; it was {} and is now {}", say(former), say(record))
}

fn tier_of(record: &Record<ProbeCell>) -> Option<Tier<'_>> {
    record.cells.iter().find_map(|cell| Tier::of(cell.medium.tier.as_ref(), cell.medium.kind))
}

pub(crate) struct Ceilings {
    saved: Vec<Saved>,
    wanted: Option<usize>,
}

impl Ceilings {
    /// Reads the ceilings to compare with; an unknown name is an error that lists the known ones.
    pub(crate) fn load(wanted: Option<&str>) -> Result<Self> {
        let saved = match dir() {
            Ok(dir) => load_all(&dir, remark)?,
            // Without a home folder, nothing was saved.
            Err(_) if wanted.is_none() => Vec::new(),
            Err(error) => return Err(error),
        };
        let Some(wanted) = wanted else { return Ok(Self { saved, wanted: None }) };
        if let Some(found) = saved.iter().position(|saved| saved.name == wanted) {
            return Ok(Self { saved, wanted: Some(found) });
        }
        let names: Vec<&str> = saved.iter().map(|saved| saved.name.as_str()).collect();
        let there = if names.is_empty() { String::new() } else { format!("; saved: {}", names.join(", ")) };
        bail!("no ceiling {wanted}{there}\nhint: `forebay probe DIR --save {wanted}` saves one")
    }

    pub(crate) fn apply(&self, record: &mut Record<IngestCell>) {
        ceiling::apply(record, &self.saved, self.wanted.map(|wanted| &self.saved[wanted]));
    }

    pub(crate) fn pick(&self, place: &Environment, tier: Option<Tier<'_>>, load: Load) -> Option<Ceiling> {
        ceiling::pick(&self.saved, place, tier, load)
    }
}

/// The records in a folder, by name; `hear` receives a remark about every file that is not a record.
pub(crate) fn load_all(dir: &Path, hear: impl Fn(&str)) -> Result<Vec<Saved>> {
    let cannot = || format!("cannot read {}", dir.escaped());
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.with_context(cannot)?,
    };
    let mut saved = Vec::new();
    for entry in entries {
        let path = entry.with_context(cannot)?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".json")) else { continue };
        if name.starts_with('.') {
            continue;
        }
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.escaped()))?;
        match Record::from_json(&text) {
            Ok(record) => saved.push(Saved { name: name.to_owned(), record }),
            Err(error) => hear(&format!("forebay: ignoring the ceiling {}: {error}", path.escaped())),
        }
    }
    saved.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(saved)
}
