//! Lists as editors save them.

use crate::dir::{Dir, found};
use crate::record;

#[test]
fn a_byte_order_mark_and_windows_line_ends_cost_no_line() {
    let dir = Dir::with_set();
    let lines: String = dir.images("set").keys().map(|name| format!("set/{name} 3\r\n")).collect();
    dir.write("list.txt", format!("\u{feff}{lines}"));
    let cell = record::cell_of(&dir, "list.txt --threads 1 --repeats 1 --warmups 0 --size 8");
    assert_eq!((&cell["samples"][0]["images"], &cell["failed_samples"]), (&24.into(), &0.into()));
    let inspected = found(&dir.met("data inspect list.txt --json -"));
    assert_eq!((&inspected["n_samples"], &inspected["n_bad"]), (&24.into(), &0.into()));
    assert_eq!(inspected["classes"], serde_json::json!([{ "label": 3, "name": null, "n_samples": 24 }]));
}

#[test]
fn utf_16_is_refused_with_what_to_do() {
    let dir = Dir::with_set();
    let text = "set/class_001/class_001_000000.jpg 1\r\n";
    let little: Vec<u8> = "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_be_bytes).collect();
    let wanted =
        "forebay: list.txt: expected a list in UTF-8, found UTF-16\nhint: iconv -f UTF-16 -t UTF-8 LIST > NEW\n";
    for bytes in [little, big] {
        dir.write("list.txt", bytes);
        for line in
            ["ingest list.txt", "data inspect list.txt", "data verify list.txt", "data decode list.txt --to a.npy"]
        {
            assert_eq!(dir.refused(line), wanted, "{line}");
        }
    }
}
