//! A record of ten thousand cells: a page that can still be opened and read.

use serde_json::{Value, json};

use crate::chien::{self, USUAL};
use crate::{page_of, plain};

fn lines() -> Vec<Value> {
    let small = chien::lines(USUAL);
    let mut lines = vec![small[0].clone()];
    for tier in 0..100 {
        for threads in 1..=50 {
            for read_only in [false, true] {
                let mut line = small[5 + lines.len() % 32].clone();
                let name = format!("tier-{tier:03}");
                line["id"] = json!(format!("ingest/read_only={read_only}/threads={threads}/tier={name}"));
                line["factors"] = json!({"tier": name, "threads": threads, "read_only": read_only});
                line["ingest"]["threads"] = json!(threads);
                line["ingest"]["read_only"] = json!(read_only);
                line["ingest"]["tier"] = json!(name);
                lines.push(line);
            }
        }
    }
    lines[0]["n_cells"] = json!(lines.len() - 1);
    lines
}

#[test]
fn ten_thousand_cells_make_a_page_that_says_what_it_left_out() {
    let run = plain::named_text("large", &chien::jsonl(&lines()));
    let page = page_of(&[run]);
    assert!(page.len() < 1_500_000, "{} bytes", page.len());
    for said in [
        "Of 100 levels of “tier”, 12 are drawn; the JSON and the CSV have every cell.",
        "Of 100 series, 6 are drawn; the JSON and the CSV have every cell.",
        "Of 50 series, 8 are drawn; the JSON and the CSV have every cell.",
        "The first 300 of 10,000 rows.",
        "10,000 of 10,000 done: complete",
    ] {
        assert!(page.contains(said), "not said: {said}");
    }
}
