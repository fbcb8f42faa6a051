//! What a dataset holds, and what is wrong with it, as text.

use std::fmt::Write;

use forebay_record::{Fault, Inspection, Verification};
use forebay_units::{Bytes, PathText, Summary, count, group_digits};

use crate::number::binary;
use crate::table::{Align, Table};
use crate::visible::visible;

/// Bad files listed by an inspection; a verification lists all of them.
const SHOWN_BAD: usize = 10;
const SHOWN_CLASSES: usize = 8;
/// The longest bar of the histogram, in characters.
const BAR: u64 = 40;

/// An inspection as text.
pub fn inspection(found: &Inspection) -> String {
    let mut out = format!(
        "{}: {} in {}, {}\n",
        found.path.escaped(),
        count(found.n_samples, "sample"),
        count(found.n_files, "file"),
        found.total_bytes
    );
    let formats: Vec<String> =
        found.sample_formats.iter().map(|(name, n)| format!("{} {name}", group_digits(*n))).collect();
    let _ = writeln!(out, "formats   {}", or_dash(&formats.join(", ")));
    let colours: Vec<String> = found.colours.iter().map(|(name, n)| format!("{} {name}", group_digits(*n))).collect();
    let _ = writeln!(out, "colours   {}", or_dash(&colours.join(", ")));
    if found.n_progressive > 0 || found.n_rotated > 0 {
        let _ = writeln!(
            out,
            "          {} progressive, {} with an EXIF rotation (not applied when decoding)",
            group_digits(found.n_progressive),
            group_digits(found.n_rotated)
        );
    }
    let _ = writeln!(out, "classes   {}", classes(found));
    out.push('\n');
    out.push_str(&quartiles(found));
    out.push('\n');
    out.push_str(&histogram(found));
    if let Some(bssplit) = &found.bssplit {
        let _ = writeln!(out, "\nTo read blocks of these sizes with fio:\n  --bssplit={bssplit}");
    }
    if found.n_bad > 0 {
        out.push('\n');
    }
    out.push_str(&bad(&found.bad, found.n_bad, SHOWN_BAD));
    out.push_str(&notes(&found.notes));
    out
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { "–" } else { text }
}

fn classes(found: &Inspection) -> String {
    let named: Vec<String> = found
        .classes
        .iter()
        .take(SHOWN_CLASSES)
        .map(|class| {
            let label = class.label.map_or("no label".to_owned(), |label| label.to_string());
            format!("{} ({})", visible(&class.name.clone().unwrap_or(label)), group_digits(class.n_samples))
        })
        .collect();
    let more = found.classes.len().saturating_sub(SHOWN_CLASSES);
    let tail = if more > 0 { format!(", … {more} more") } else { String::new() };
    format!("{}: {}{tail}", found.classes.len(), or_dash(&named.join(", ")))
}

fn quartiles(found: &Inspection) -> String {
    use Align::{Left, Right};
    let heads = [("", Left), ("min", Right), ("p25", Right), ("median", Right), ("p75", Right)];
    let mut table = Table::new(&[&heads[..], &[("max", Right), ("mean", Right)]].concat());
    let mut row = |name: &str, summary: &Option<Summary>, show: &dyn Fn(f64) -> String| {
        let Some(s) = summary else { return };
        let values = [s.min, s.q1, s.median, s.q3, s.max, s.mean].map(show);
        table.row([vec![name.to_owned()], values.to_vec()].concat());
    };
    row("size", &found.sizes, &|bytes| Bytes(bytes.round() as u64).to_string());
    row("width", &found.widths, &|pixels| format!("{pixels:.0}"));
    row("height", &found.heights, &|pixels| format!("{pixels:.0}"));
    table.render()
}

fn histogram(found: &Inspection) -> String {
    let most = found.histogram.iter().map(|bucket| bucket.n_samples).max().unwrap_or(0).max(1);
    let mut table = Table::new(&[("size from", Align::Right), ("samples", Align::Right), ("", Align::Left)]);
    for bucket in &found.histogram {
        let bar = (bucket.n_samples * BAR).div_ceil(most) as usize;
        table.row(vec![binary(bucket.from), group_digits(bucket.n_samples), "█".repeat(bar)]);
    }
    table.render()
}

/// A verification as text.
pub fn verification(found: &Verification) -> String {
    let mut out = bad(&found.bad, found.n_bad, usize::MAX);
    let against = if found.manifest { ", manifest compared" } else { "" };
    let _ = writeln!(
        out,
        "{}: {} good, {} bad; {}, {} read{against}",
        found.path.escaped(),
        count(found.n_good, "sample"),
        group_digits(found.n_bad),
        count(found.n_files, "file"),
        found.bytes
    );
    out.push_str(&notes(&found.notes));
    out
}

fn notes(notes: &[String]) -> String {
    notes.iter().map(|note| format!("note: {}\n", visible(note))).collect()
}

fn bad(faults: &[Fault], n_bad: u64, most: usize) -> String {
    if n_bad == 0 {
        return String::new();
    }
    let mut out = String::new();
    let _ = writeln!(out, "{} bad:", group_digits(n_bad));
    let shown = faults.len().min(most);
    for fault in &faults[..shown] {
        let _ = writeln!(out, "  {}", visible(&fault.to_string()));
    }
    if n_bad > shown as u64 {
        let _ = writeln!(out, "  … and {} more", group_digits(n_bad - shown as u64));
    }
    out
}
