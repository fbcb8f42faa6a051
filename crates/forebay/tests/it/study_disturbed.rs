//! `forebay study` on a machine that others use.

use serde_json::{Value, json};

use crate::dir::flat;
use crate::process::Load;
use crate::study::{TINY, cells, with_tiny};

#[test]
fn a_study_beside_other_processes_is_marked_and_concludes_nothing() {
    let (dir, load) = (with_tiny(), Load::start());
    // On the emulated disk a repeat of so many files takes half a second, in which this process hardly computes.
    let study = TINY.replace("quick = 12", "quick = 48").replace("repeats = 2", "repeats = 1");
    dir.write("tiny.toml", study.replace("read_only = [false, true]", "read_only = [true]"));
    let ran = load.beside(&dir, "study run tiny.toml --out out");
    assert_eq!(ran.stderr.matches("* (disturbed: other processes used ").count(), 2, "{}", ran.stderr);
    for cell in cells(&dir, "out") {
        let disturbed = &cell["measured"]["ingest"]["disturbed"];
        assert_eq!((&disturbed["repeats"], &disturbed["taken"]), (&1.into(), &"processors".into()), "{cell}");
    }
    let report: Value = serde_json::from_str(&dir.met("report out --json -")).unwrap();
    let found = &report["runs"][0];
    let said = "Other processes disturbed every measured cell: no conclusion. Run it again when the machine is quiet.";
    assert_eq!(found["verdict"]["headline"], said);
    let others = "No published value could be judged; 1 disturbed.";
    assert_eq!(found["verdict"]["findings"], json!([others]));
    let caveats = found["verdict"]["caveats"].to_string();
    assert!(caveats.contains("Disturbed: other processes used "), "{caveats}");
    for cell in found["cells"].as_array().unwrap() {
        assert!(cell["disturbed"].as_str().unwrap().starts_with("1 of 1 repeat: other processes used "), "{cell}");
    }
    let text = dir.met("report out");
    assert!(
        flat(&text).contains("* Disturbed by other processes; not judged.") && flat(&text).contains(said),
        "{text}"
    );
    assert!(dir.met("report out --csv -").lines().next().unwrap().contains(",disturbed,"));
}
