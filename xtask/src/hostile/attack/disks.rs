//! Disks without room, without inodes, or that may not be written to.

use std::path::Path;
use std::process::Command;

use super::SUBJECTS;
use crate::hostile::arena::run_quietly;
use crate::hostile::case::Case;

/// What a small disk is made with, and what that is.
const DISKS: &[(&str, &str)] = &[
    ("size=4k,nr_inodes=2", "a disk of one page"),
    ("size=64k", "a disk of 64 KiB"),
    ("size=300k", "a disk of 300 KiB"),
    ("size=2m,nr_inodes=3", "a disk of 3 inodes"),
    ("size=8m,ro", "a read-only disk"),
];

pub fn cases(is_short: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for subject in SUBJECTS.iter().filter(|subject| !subject.writes.is_empty() || subject.name == "probe") {
        for (options, what) in DISKS.iter().skip(usize::from(is_short) * 2) {
            cases.push(on_disk(Case::new(subject, *what), options));
        }
    }
    cases
}

/// Moves what the case writes onto a small disk: outputs become links to folders of it.
fn on_disk(mut case: Case, options: &'static str) -> Case {
    let (name, line) = (case.subject.name, case.line.clone());
    case.line = if name == "probe" { line.replace("probe .", "probe disk") } else { onto_disk(&case) };
    case.also_writes.push("disk".to_owned());
    case.clear = Some(Box::new(|folder| {
        let _ = run_quietly(Command::new("umount").arg(folder.join("disk")));
    }));
    case.prepare(move |folder| {
        std::fs::create_dir(folder.join("disk"))?;
        let disk = folder.join("disk");
        run_quietly(Command::new("mount").args(["-t", "tmpfs", "-o", options, "hostile"]).arg(&disk))?;
        // The disk has folders of those names where there is room for them.
        for name in ["slow", "fast", "bench", "tiers"] {
            let _ = std::fs::create_dir(disk.join(name));
        }
        fill(&disk, folder)
    })
}

/// Checkpoints that are to be drained or pruned lie on the disk, as far as there is room.
fn fill(disk: &Path, folder: &Path) -> anyhow::Result<()> {
    let _ = Command::new("cp").arg("-a").arg(folder.join("kept")).arg(folder.join("near")).arg(disk).output();
    Ok(())
}

/// The line with its outputs below `disk`.
fn onto_disk(case: &Case) -> String {
    let written: Vec<&str> = case.subject.writes.to_vec();
    let word = |word: &str| if written.contains(&word) { format!("disk/{word}") } else { word.to_owned() };
    case.line.split(' ').map(word).collect::<Vec<_>>().join(" ")
}
