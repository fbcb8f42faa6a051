//! Folders that are splits of a dataset, not classes: `train`, `val`, `test`.

use std::path::{Component, Path};

/// Common names of splits, in lower case.
const NAMES: [&str; 7] = ["train", "training", "val", "valid", "validation", "test", "testing"];

/// The top-level folders of a dataset that look like splits, in order of appearance: at least two, and no data outside
/// them; otherwise empty. Takes the paths of all data files, relative to the dataset's folder.
///
/// ```
/// use forebay_format::split;
/// use std::path::Path;
///
/// let files = ["train/cat/1.jpg", "train/dog/2.jpg", "val/cat/3.jpg"].map(Path::new);
/// assert_eq!(split::names(files), ["train", "val"]);
/// assert!(split::names(["train/1.jpg", "cat/2.jpg"].map(Path::new)).is_empty());
/// ```
pub fn names<'a>(files: impl IntoIterator<Item = &'a Path>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for file in files {
        let mut parts = file.components();
        let (Some(Component::Normal(first)), Some(_)) = (parts.next(), parts.next()) else { return Vec::new() };
        // Files come folder by folder, so the last split found nearly always matches.
        if found.last().is_some_and(|last| last.as_str() == first) {
            continue;
        }
        match first.to_str().filter(|name| is_name(name)) {
            None => return Vec::new(),
            Some(name) if found.iter().any(|known| known == name) => {}
            Some(name) => found.push(name.to_owned()),
        }
    }
    if found.len() < 2 { Vec::new() } else { found }
}

fn is_name(name: &str) -> bool {
    NAMES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// A note for a user who reads all splits together, as classes or, for shards, as one dataset.
pub fn note(names: &[String], as_classes: bool) -> Option<String> {
    let (last, others) = names.split_last()?;
    let first = names.iter().find(|name| name.to_ascii_lowercase().starts_with("train")).unwrap_or(last);
    let others: Vec<String> = others.iter().map(|name| format!("{name}/")).collect();
    let what = if as_classes { "look like splits, not classes" } else { "look like splits and are read together" };
    Some(format!("{} and {last}/ {what}; pass --split {first} to read one", others.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[&str]) -> Vec<String> {
        names(files.iter().map(Path::new))
    }

    #[test]
    fn only_two_or_more_split_names_without_data_beside_them_are_splits() {
        assert_eq!(of(&["Train/1.jpg", "VAL/a/2.jpg", "test/3.jpg", "Train/4.jpg"]), ["Train", "VAL", "test"]);
        for files in [&["train/1.jpg"][..], &["train/1.jpg", "val/2.jpg", "3.jpg"], &["train/1.jpg", "cat/2.jpg"], &[]]
        {
            assert_eq!(of(files), [] as [&str; 0], "{files:?}");
        }
    }

    #[test]
    fn the_note_names_them_and_how_to_read_one() {
        let names = ["test", "train", "val"].map(str::to_owned);
        let wanted = "test/, train/ and val/ look like splits, not classes; pass --split train to read one";
        assert_eq!(note(&names, true).unwrap(), wanted);
        let wanted = "test/ and val/ look like splits and are read together; pass --split val to read one";
        assert_eq!(note(&["test", "val"].map(str::to_owned), false).unwrap(), wanted);
        assert_eq!(note(&[], true), None);
    }
}
