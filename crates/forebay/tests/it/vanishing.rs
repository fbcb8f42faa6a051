//! Data that is damaged, empty or goes away while it is measured: the exit status says so, and no output has a number that
//! is none.

use std::fs;

use crate::dir::{Dir, Ran};
use crate::process::Running;

/// The first place where a text has "NaN" or "inf" as a word.
fn no_number(text: &str) -> Option<String> {
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let mut wrong = words.filter(|word| ["nan", "inf", "infinity"].contains(&word.to_lowercase().as_str()));
    wrong.next().map(str::to_owned)
}

/// Looks through all that a run said, and through its record in every form, where it left one.
fn assert_sound(dir: &Dir, line: &str, ran: &Ran, record: &str) {
    for text in [&ran.stdout, &ran.stderr] {
        assert_eq!(no_number(text), None, "{line}\n{text}");
    }
    if !dir.path(record).exists() {
        return;
    }
    assert_eq!(no_number(&String::from_utf8(dir.read(record)).unwrap()), None, "{line}");
    let printed = dir.met(&format!("report {record} --html page.html --csv cells.csv --json report.json"));
    let page = String::from_utf8(dir.read("page.html")).unwrap();
    let page = page[..page.find("<script>").unwrap()].to_owned();
    let others = ["cells.csv", "report.json"].map(|name| String::from_utf8(dir.read(name)).unwrap());
    for text in others.into_iter().chain([page, printed, dir.met(&format!("report {record}"))]) {
        assert_eq!(no_number(&text), None, "{line}\n{text}");
    }
}

/// What can happen to a set before it is used, and how many of its samples are sound.
type Harm = (&'static str, fn(&Dir));

fn each_image(dir: &Dir, change: impl Fn(usize, &str)) {
    for (i, name) in dir.images("set").into_keys().enumerate() {
        change(i, &format!("set/{name}"));
    }
}

const HARMS: [Harm; 5] = [
    ("all damaged", |dir| each_image(dir, |_, name| dir.edit(name, |bytes| bytes.truncate(100)))),
    ("all empty", |dir| each_image(dir, |_, name| dir.write(name, ""))),
    ("half gone from the list", |dir| {
        each_image(dir, |i, name| {
            if i % 2 == 0 {
                fs::remove_file(dir.path(name)).unwrap()
            }
        });
    }),
    ("all gone from the list", |dir| each_image(dir, |_, name| fs::remove_file(dir.path(name)).unwrap())),
    ("one sample", |dir| {
        each_image(dir, |i, name| {
            if i > 0 {
                fs::remove_file(dir.path(name)).unwrap()
            }
        })
    }),
];

#[test]
fn no_output_has_a_number_that_is_none_whatever_is_wrong_with_the_data() {
    for (what, harm) in HARMS {
        let dir = Dir::with_set();
        // Names what was there before.
        let list: String = dir.images("set").into_keys().map(|name| format!("set/{name} 0\n")).collect();
        dir.write("list.txt", list);
        harm(&dir);
        for data in ["set", "list.txt"] {
            for line in [
                format!("ingest {data} --threads 1,2 --repeats 1 --warmups 0"),
                format!("ingest {data} --threads auto --repeats 2 --warmups 0 --read-only"),
                format!("train {data} --accelerator emulated:1ms --batch 1 --epochs 1 --threads 1"),
                format!("train {data} --accelerator emulated:1ms --batch 24 --steps 2 --threads 1"),
                format!("train {data} --accelerator emulated:0s --batch 1 --steps 1 --threads 1"),
            ] {
                let _ = fs::remove_file(dir.path("record.json"));
                let ran = dir.run(&format!("{line} --json record.json"));
                assert_sound(&dir, &format!("{what}: {line}"), &ran, "record.json");
                let has_cells = dir.path("record.json").exists()
                    && !dir.json("record.json")["cells"].as_array().unwrap().is_empty();
                assert_eq!(ran.code == Some(2), !has_cells, "{what}: {line}: {ran:?}");
            }
            for line in [format!("data inspect {data}"), format!("data verify {data}")] {
                let ran = dir.run(&format!("{line} --json found.json"));
                for text in [&ran.stdout, &ran.stderr] {
                    assert_eq!(no_number(text), None, "{what}: {line}\n{text}");
                }
            }
        }
    }
}

/// Takes all files away once a run has begun to read them.
fn vanish(dir: &Dir, line: &str) -> Ran {
    let mut running = Running::start(dir, line);
    let before = running.bytes_read();
    running.wait_until("bytes of the set", |running| running.bytes_read() > before + 200_000);
    fs::remove_dir_all(dir.path("set")).unwrap();
    running.finish()
}

#[test]
fn a_measurement_whose_files_all_vanish_does_not_end_well() {
    let ingest = "ingest set --threads 1,2 --repeats 400 --warmups 0 --batch 4 --json record.json";
    let dir = Dir::with_set();
    let ran = vanish(&dir, ingest);
    assert_sound(&dir, ingest, &ran, "record.json");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let record = dir.json("record.json");
    let cells = record["cells"].as_array().unwrap();
    assert!(!cells.is_empty() && cells.iter().all(|cell| cell["images_per_s"].as_f64().unwrap() > 0.0), "{record}");
    assert!(ran.stdout.contains(" of 400 repeats delivered no image and "), "{}", ran.stdout);
    assert!(ran.stdout.contains(" failed and were left out."), "{}", ran.stdout);
}

#[test]
fn a_training_whose_files_all_vanish_does_not_end_well() {
    let train = "train set --accelerator emulated:1ms --batch 4 --epochs 400 --threads 1 --json record.json";
    let dir = Dir::with_set();
    let ran = vanish(&dir, train);
    assert_sound(&dir, train, &ran, "record.json");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let made = dir.json("record.json")["cells"][0]["n_steps"].as_u64().unwrap();
    assert!(made > 0 && made < 2400, "{made}");
    let left = 2400 - made;
    assert!(ran.stderr.starts_with("forebay: no samples left for "), "{}", ran.stderr);
    let said = ran.stdout.replace(',', "");
    assert!(said.contains(&format!("steps: no samples left for {left} more steps: ")), "{}", ran.stdout);
}
