//! Levels of factors as people say them.

use std::cmp::Ordering;

use forebay_record::{Level, Levels};

/// A level where its factor is known from an axis or a column's head: "8", "hdd", "read only".
pub(crate) fn bare(factor: &str, level: &Level) -> String {
    match (factor, level) {
        ("read_only", Level::Flag(true)) => "read only".to_owned(),
        ("read_only", Level::Flag(false)) => "decode".to_owned(),
        ("synthetic", Level::Flag(true)) => "synthetic".to_owned(),
        ("synthetic", Level::Flag(false)) => "real data".to_owned(),
        (_, Level::Flag(true)) => "yes".to_owned(),
        (_, Level::Flag(false)) => "no".to_owned(),
        ("block", Level::Integer(bytes)) => block(*bytes),
        ("threads" | "depth" | "batch" | "steps", Level::Integer(n)) if *n >= 0 => {
            forebay_units::group_digits(*n as u64)
        }
        // What the sizes are stands below the table.
        ("mix", Level::Text(mix)) if mix.matches(':').count() > 1 => "mixed sizes".to_owned(),
        (_, level) => level.to_string(),
    }
}

/// A level with its factor: "8 threads", "hdd", "batch 64", "alpha 3".
pub(crate) fn named(factor: &str, level: &Level) -> String {
    let bare = bare(factor, level);
    match (factor, level) {
        ("processes", Level::Integer(1)) => "1 process".to_owned(),
        ("accelerators" | "ranks" | "files" | "epochs", Level::Integer(1)) => {
            format!("1 {}", &factor[..factor.len() - 1])
        }
        ("processes" | "accelerators" | "ranks" | "files" | "epochs", _) => format!("{bare} {factor}"),
        ("workload" | "order" | "dataset.format", _) => bare,
        ("threads" | "readers" | "steps", Level::Integer(1)) => format!("1 {}", &factor[..factor.len() - 1]),
        ("threads" | "readers" | "steps", _) => format!("{bare} {factor}"),
        ("tier" | "read_only" | "storage" | "mode" | "engine" | "dataset" | "mix" | "synthetic", _) => bare,
        ("model" | "device" | "precision" | "accelerator" | "optimizer" | "format" | "state", _) => bare,
        ("checkpoint", Level::Text(to)) if to == "none" => "no checkpoints".to_owned(),
        ("checkpoint" | "checkpoint_tier", Level::Text(_)) => format!("checkpoints on {bare}"),
        ("checkpoint_mode" | "checkpoint_format", Level::Text(_)) => bare,
        ("checkpoint_every", _) => format!("checkpoint every {bare} steps"),
        ("burst_tier" | "burst_storage", _) => format!("burst buffer {bare}"),
        ("block", _) => format!("{bare} blocks"),
        ("threads_auto", Level::Flag(true)) => "auto".to_owned(),
        _ => format!("{} {bare}", words(factor)),
    }
}

/// A factor's name in words: "read_only" is "read only".
pub(crate) fn words(factor: &str) -> String {
    // A key of a workload goes without its section.
    factor.rsplit('.').next().unwrap_or(factor).replace('_', " ")
}

/// A factor along an axis, begun with a capital.
pub(crate) fn title(factor: &str) -> String {
    let words = match factor {
        "depth" => "requests in flight".to_owned(),
        "block" => "block size".to_owned(),
        "read_only" => "processing".to_owned(),
        "prefetch" => "prefetched batches".to_owned(),
        "batch" => "batch size".to_owned(),
        "checkpoint" => "checkpoint target".to_owned(),
        _ => words(factor),
    };
    crate::number::capital(&words)
}

/// Several levels in a row: "hdd, read only, 8 threads".
pub(crate) fn all(levels: &Levels) -> String {
    let words = each(levels);
    if words.is_empty() { "the only cell".to_owned() } else { words.join(", ") }
}

/// Several levels, places first, counts last.
pub(crate) fn each(levels: &Levels) -> Vec<String> {
    let mut factors: Vec<(&String, &Level)> = levels.iter().collect();
    factors.sort_by_key(|(factor, _)| place(factor));
    factors.into_iter().map(|(factor, level)| named(factor, level)).collect()
}

/// Where a factor stands among others: places first, counts last.
pub(crate) fn place(factor: &str) -> u8 {
    match factor {
        "tier" => 0,
        "mode" | "workload" | "model" | "device" | "precision" | "accelerator" | "dataset" => 1,
        "read_only" => 2,
        "threads" | "depth" | "processes" | "accelerators" => 9,
        // Long, and hardly ever what tells cells apart.
        "mix" => 10,
        _ => 5,
    }
}

/// Numbers by size, before names by letters.
pub(crate) fn order(a: &Level, b: &Level) -> Ordering {
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.to_string().cmp(&b.to_string()),
    }
}

/// The number a level is, if it is one.
pub(crate) fn number(level: &Level) -> Option<f64> {
    match level {
        Level::Integer(value) => Some(*value as f64),
        Level::Number(value) => Some(*value),
        Level::Flag(_) | Level::Text(_) => None,
    }
}

fn block(bytes: i64) -> String {
    match bytes {
        _ if bytes >= 1 << 20 && bytes % (1 << 20) == 0 => format!("{} MiB", bytes >> 20),
        _ if bytes >= 1 << 10 && bytes % (1 << 10) == 0 => format!("{} KiB", bytes >> 10),
        _ => u64::try_from(bytes).map_or(format!("{bytes} B"), crate::number::bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_said_with_their_factors_where_a_number_alone_says_nothing() {
        let levels: Levels = [
            ("threads".to_owned(), Level::Integer(8)),
            ("tier".to_owned(), Level::Text("hdd".to_owned())),
            ("read_only".to_owned(), Level::Flag(true)),
            ("batch".to_owned(), Level::Integer(64)),
            ("my_factor".to_owned(), Level::Number(0.5)),
        ]
        .into();
        assert_eq!(all(&levels), "hdd, read only, batch 64, my factor 0.5, 8 threads");
        assert_eq!(named("threads", &Level::Integer(1)), "1 thread");
        let blocks = [1 << 20, 65_536, 64_000, 512].map(|bytes| bare("block", &Level::Integer(bytes)));
        assert_eq!(blocks, ["1 MiB", "64 KiB", "64.0 KB", "512 B"], "as in the table");
    }

    #[test]
    fn numbers_are_ordered_by_size() {
        let mut levels = [Level::Integer(8), Level::Text("b".to_owned()), Level::Number(2.5), Level::Integer(16)];
        levels.sort_by(order);
        assert_eq!(levels.map(|level| level.to_string()), ["2.5", "8", "16", "b"]);
    }
}
