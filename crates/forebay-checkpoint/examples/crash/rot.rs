//! Files that rot: torn, truncated, zeroed, bit-flipped, half deleted, foreign. Each must be called by its name, passed
//! over on the tier where it lies, and on both for an older checkpoint.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use forebay_checkpoint::{Damage, Name, restore, verify};

use crate::Error;
use crate::check::{goes_on, is_right};
use crate::history::{Way, plain_tiers};
use crate::place::Folder;

const MANIFEST: &str = "manifest.forebay";
const NEWEST: Name = Name { step: 20, take: 0 };
const OLDER: Name = Name { step: 10, take: 0 };

type Harm = Box<dyn Fn(&Path) -> std::io::Result<()>>;
type Change = Box<dyn Fn(&mut Vec<u8>)>;
type IsNamed = fn(&Damage) -> bool;

/// Something that happens to a checkpoint's folder, and what is to be said about it.
pub(crate) struct Rot {
    pub(crate) label: String,
    harm: Harm,
    is_named: IsNamed,
}

/// All that happens to checkpoints of this way.
pub(crate) fn all(folder: &Folder) -> Result<Vec<Rot>, Error> {
    let dir = folder.fresh()?.join("fast").join(NEWEST.to_string());
    let mut files: Vec<(String, usize)> = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        files.push((entry.file_name().to_string_lossy().into_owned(), entry.metadata()?.len() as usize));
    }
    files.sort();
    let mut rots = Vec::new();
    for (name, len) in &files {
        of_file(name, *len, &mut rots);
    }
    of_folder(&files, &mut rots);
    Ok(rots)
}

fn of_file(name: &str, len: usize, rots: &mut Vec<Rot>) {
    let is_manifest = name == MANIFEST;
    let mut add = |label: String, is_named: IsNamed, change: Change| {
        let file = name.to_owned();
        let harm: Harm = Box::new(move |dir| {
            let mut bytes = fs::read(dir.join(&file))?;
            change(&mut bytes);
            fs::write(dir.join(&file), bytes)
        });
        rots.push(Rot { label: format!("{name} {label}"), harm, is_named });
    };
    let of_manifest: IsNamed = |damage| matches!(damage, Damage::Manifest { .. } | Damage::Foreign);
    let by = |of_data: IsNamed| if is_manifest { of_manifest } else { of_data };
    for at in (0..16).map(|n| n * (len - 1) / 15) {
        let changed = by(|damage| matches!(damage, Damage::Changed { .. }));
        add(format!("with a bit flipped at {at}"), changed, Box::new(move |bytes| bytes[at] ^= 1 << (at % 7)));
    }
    let length = by(|damage| matches!(damage, Damage::Length { .. }));
    for short in [0, 1, len / 2, len - 1] {
        add(format!("cut to {short} bytes"), length, Box::new(move |bytes| bytes.truncate(short)));
    }
    add("with a byte more".to_owned(), length, Box::new(|bytes| bytes.push(b'\n')));
    let zeroed = by(|damage| matches!(damage, Damage::Zeroed { .. }));
    add("of zeros".to_owned(), zeroed, Box::new(|bytes| bytes.fill(0)));
    let changed = by(|damage| matches!(damage, Damage::Changed { .. }));
    add("of another program".to_owned(), changed, Box::new(|bytes| bytes.fill(b'x')));
    if len > 60_000 {
        let torn = by(|damage| matches!(damage, Damage::Torn { .. }));
        for at in [512, 20_000, 32 * 1024 + 4096, len - 1000] {
            let end = (at / (32 * 1024) + 1) * (32 * 1024);
            let tear = move |bytes: &mut Vec<u8>| bytes[at..end.min(len)].fill(0);
            add(format!("torn at {at}"), torn, Box::new(tear));
        }
    }
}

/// Happens to the folder as a whole.
fn of_folder(files: &[(String, usize)], rots: &mut Vec<Rot>) {
    let mut add = |label: &str, is_named: IsNamed, harm: Harm| {
        rots.push(Rot { label: label.to_owned(), harm, is_named });
    };
    let gone: IsNamed = |damage| matches!(damage, Damage::Missing { .. } | Damage::NoManifest);
    for (name, _) in files {
        let name = name.clone();
        add(&format!("{name} deleted"), gone, Box::new(move |dir| fs::remove_file(dir.join(&name))));
    }
    for n in 2..=files.len() {
        let names: Vec<String> = files[..n].iter().map(|(name, _)| name.clone()).collect();
        let harm: Harm = Box::new(move |dir| names.iter().try_for_each(|name| fs::remove_file(dir.join(name))));
        add(&format!("{n} of {} files deleted", files.len()), gone, harm);
    }
    let data = files.iter().max_by_key(|(_, len)| *len).map(|(name, _)| name.clone()).unwrap_or_default();
    let (swap, pipe) = (data.clone(), data.clone());
    // The system does not open such a thing as a file, or its length is another.
    let unusable: IsNamed = |damage| !matches!(damage, Damage::Foreign | Damage::OtherStep { .. });
    add("a folder in a file's place", unusable, in_place_of(data.clone(), |path| fs::create_dir(path)));
    add("a link to nothing in a file's place", unusable, in_place_of(data, |path| symlink("nothing", path)));
    add("a link to itself in a file's place", unusable, in_place_of(swap, |path| symlink(path, path)));
    add("a pipe in a file's place", unusable, in_place_of(pipe, make_pipe));
    add("a pipe in the manifest's place", unusable, in_place_of(MANIFEST.to_owned(), make_pipe));
    let file_in_place: Harm = Box::new(|dir| {
        fs::remove_dir_all(dir)?;
        fs::write(dir, "not a checkpoint")
    });
    add("a file in the folder's place", unusable, file_in_place);
    let other: IsNamed = |damage| matches!(damage, Damage::OtherStep { found: 10 });
    add("an older checkpoint under its name", other, Box::new(put_older));
}

fn put_older(dir: &Path) -> std::io::Result<()> {
    let older = dir.join("../../slow").join(OLDER.to_string());
    for entry in fs::read_dir(older)? {
        let entry = entry?;
        fs::copy(entry.path(), dir.join(entry.file_name()))?;
    }
    Ok(())
}

fn make_pipe(path: &Path) -> std::io::Result<()> {
    let path = std::ffi::CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: a valid string and plain permissions.
    let rc = unsafe { libc::mkfifo(path.as_ptr(), 0o600) };
    if rc == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

fn in_place_of(name: String, put: fn(&Path) -> std::io::Result<()>) -> Harm {
    Box::new(move |dir| {
        let path: PathBuf = dir.join(&name);
        fs::remove_file(&path)?;
        put(&path)
    })
}

impl Rot {
    /// On the fast tier, and then on both; and the next save.
    pub(crate) fn happens(&self, folder: &Folder, way: Way) -> Result<Result<(), String>, Error> {
        let root = folder.fresh()?;
        let tiers = plain_tiers(&root);
        for (n_harmed, expected) in [(1, NEWEST), (2, OLDER)] {
            (self.harm)(&tiers[n_harmed - 1].path_of(NEWEST))?;
            let outcome = self.is_passed_over(&tiers, way, n_harmed, expected);
            if outcome.is_err() {
                return Ok(outcome);
            }
        }
        Ok(goes_on(&tiers, way))
    }

    fn is_passed_over(
        &self,
        tiers: &[forebay_checkpoint::Tier],
        way: Way,
        n_harmed: usize,
        expected: Name,
    ) -> Result<(), String> {
        for tier in &tiers[..n_harmed] {
            match verify(tier, NEWEST) {
                Ok(_) => return Err("it verifies".to_owned()),
                Err(damage) if !(self.is_named)(&damage) => return Err(format!("it is called {damage:?}")),
                Err(_) => {}
            }
        }
        let restored = restore(tiers).map_err(|error| error.to_string())?;
        if restored.name != expected || restored.tier != 1 {
            return Err(format!("{} was restored from tier {}", restored.name, restored.tier));
        }
        let passed: Vec<_> = restored.passed_over.iter().map(|one| (one.name, (self.is_named)(&one.damage))).collect();
        if passed != vec![(Some(NEWEST), true); n_harmed] {
            return Err(format!("passed over: {:?}", restored.passed_over));
        }
        is_right(&restored, way)
    }
}
