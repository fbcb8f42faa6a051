//! `forebay tier down`.

use std::cmp::Reverse;

use anyhow::{Context, Result};
use forebay_storage::tier::Removed;
use forebay_units::{Bytes, PathText, count};

use super::{each, go_on, registry};
use crate::output::{Outcome, done, print, remark};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Tiers to remove with their data; all by default
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<Outcome> {
    let registry = registry()?;
    let there = registry.names()?;
    let mut names = if args.names.is_empty() { there.clone() } else { args.names.clone() };
    // A tier on top of another one is removed first, or it would keep the other in use.
    let depth = |name: &String| registry.tier(name).ok().flatten().map_or(0, |tier| tier.depth());
    names.sort_by_cached_key(|name| Reverse(depth(name)));
    if names.is_empty() {
        return done("no tiers\n");
    }
    each(&names, |name| {
        let removed = registry.down(name, &mut go_on).with_context(|| format!("cannot take down {name}"))?;
        match removed {
            Some(removed) => say(&removed),
            None if there.iter().any(|known| known == name) => {
                print(&format!("{name}: removed leftovers of a crash\n"))
            }
            None => {
                remark(&missing(name, &there));
                Ok(())
            }
        }
    })
}

fn missing(name: &str, there: &[String]) -> String {
    match there {
        [] => format!("forebay: no tier {name}"),
        _ => format!("forebay: no tier {name}; found {}", there.join(", ")),
    }
}

fn say(removed: &Removed) -> Result<()> {
    for note in &removed.notes {
        remark(&format!("forebay: {}: {note}", removed.name));
    }
    let parts = [
        removed.image_bytes.map(|bytes| format!("an image of {}", Bytes(bytes))),
        removed.n_files.map(|n| count(n, "file")),
        removed.data_bytes.map(|bytes| format!("{} of data", Bytes(bytes))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let what = if parts.is_empty() { String::new() } else { format!(" with {}", parts.join(", ")) };
    print(&format!("{}: removed {}{what}\n", removed.name, removed.place.escaped()))
}
