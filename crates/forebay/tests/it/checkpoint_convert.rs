//! `forebay checkpoint convert`: there and back, and what it refuses.

use std::fs;

use serde_json::Value;

use crate::checkpoint::{named_step, read_safetensors, save, tensor, values};
use crate::dir::Dir;

/// A folder with the checkpoint of step 20 in both formats.
fn both() -> Dir {
    let dir = Dir::new();
    save(&dir, "a", "safetensors", &[20]);
    save(&dir, "b", "tensorflow", &[20]);
    dir
}

#[test]
fn there_and_back_is_the_same_file() {
    let dir = both();
    let input = format!("{}/model.safetensors", named_step("a", 20));
    let said = dir.met(&format!("checkpoint convert {input} model --to tensorflow"));
    assert_eq!(said, "model: 2 tensors, 60.0 KB as tensorflow\n");
    for file in ["model.index", "model.data-00000-of-00001", "model.meta"] {
        assert_eq!(dir.read(file), dir.read(&format!("{}/{file}", named_step("b", 20))), "{file}");
    }
    let said = dir.met("checkpoint convert model back.safetensors --to safetensors");
    assert_eq!(said, "back.safetensors: 2 tensors, 60.0 KB as safetensors\n");
    let back = dir.read("back.safetensors");
    for (name, expected) in ["layer/w", "layer/b"].iter().zip(values(20)) {
        assert_eq!(tensor(&back, name), expected, "{name}");
    }
    assert_eq!(read_safetensors(&back).0["__metadata__"], serde_json::json!({"step": "20"}));
}

#[test]
fn a_checkpoint_is_found_by_its_file_its_prefix_its_index_or_its_folder() {
    let dir = both();
    let prefix = format!("{}/model", named_step("b", 20));
    for (n, input) in [prefix.clone(), format!("{prefix}.index"), named_step("b", 20)].iter().enumerate() {
        let line = format!("checkpoint convert {input} {n}.safetensors --to safetensors --json -");
        let found: Value = serde_json::from_str(&dir.met(&line)).unwrap();
        assert_eq!((&found["n_tensors"], &found["bytes"]), (&2.into(), &60_000.into()));
        assert_eq!(found["files"], serde_json::json!([format!("./{n}.safetensors")]));
    }
    dir.met(&format!("checkpoint convert {} c.safetensors --to safetensors", named_step("a", 20)));
    let original = dir.read(&format!("{}/model.safetensors", named_step("a", 20)));
    assert_eq!(dir.read("c.safetensors"), original);
}

#[test]
fn a_restore_can_change_the_format_too() {
    let dir = both();
    dir.met("checkpoint restore b --to b.safetensors");
    assert_eq!(tensor(&dir.read("b.safetensors"), "layer/w"), values(20)[0]);
    dir.met("checkpoint restore a --to model");
    assert_eq!(dir.read("model.index"), dir.read(&format!("{}/model.index", named_step("b", 20))));
}

#[test]
fn what_is_there_is_replaced_only_by_force_and_the_state_of_a_folder_is_left() {
    let dir = both();
    let line = format!("checkpoint convert {} model --to tensorflow", named_step("a", 20));
    dir.met(&line);
    let said = dir.refused(&line);
    assert_eq!(
        said,
        "forebay: ./model.data-00000-of-00001 already exists\nhint: choose another name, or replace it with --force\n"
    );
    let state = dir.read("checkpoint");
    let ran = dir.run(&format!("checkpoint convert {} other --to tensorflow", named_step("a", 20)));
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (Some(0), "forebay: ./checkpoint is unchanged: it refers to another checkpoint\n")
    );
    assert_eq!(dir.read("checkpoint"), state);
    dir.met(&format!("checkpoint convert {} other --to tensorflow --force", named_step("a", 20)));
    assert_ne!(dir.read("checkpoint"), state);
}

#[test]
fn what_cannot_be_read_or_named_is_refused() {
    let dir = both();
    let refused = |line: &str| dir.refused(&format!("checkpoint convert {line}"));
    dir.write("text.txt", "hello");
    assert_eq!(
        refused("text.txt x --to tensorflow"),
        "forebay: text.txt: neither a .safetensors file nor the .index of a TensorFlow checkpoint\n"
    );
    assert_eq!(
        refused("nothing x --to tensorflow"),
        "forebay: nothing: no such file, and no TensorFlow checkpoint has that prefix\n"
    );
    fs::create_dir(dir.path("empty")).unwrap();
    assert!(refused("empty x --to tensorflow").contains("contains no .safetensors file and no TensorFlow checkpoint"));
    let input = named_step("a", 20);
    assert_eq!(
        refused(&format!("{input} x --to safetensors")),
        "forebay: x: a safetensors file needs the extension .safetensors\n"
    );
    dir.edit(&format!("{input}/model.safetensors"), |bytes| bytes.truncate(50_000));
    let said = dir.missed(&format!("checkpoint convert {input} x --to tensorflow")).stderr;
    assert!(said.starts_with(&format!("forebay: cannot read {input}: model.safetensors: ")), "{said}");
    let left: Vec<_> = fs::read_dir(dir.path(".")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 4, "a, b, the empty one and the text: {left:?}");
}

#[test]
fn a_flipped_bit_is_noticed_where_the_format_has_checksums_and_nothing_is_written() {
    let dir = both();
    dir.edit(&format!("{}/model.data-00000-of-00001", named_step("b", 20)), |bytes| bytes[777] ^= 8);
    let ran = dir.missed(&format!("checkpoint convert {} x.safetensors --to safetensors", named_step("b", 20)));
    let said = ran.stderr;
    assert!(said.contains("checksum: expected 0x") && said.contains(": damaged"), "{said}");
    assert!(!dir.path("x.safetensors").exists());
    let names: Vec<_> = fs::read_dir(dir.path(".")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "nothing half written: {names:?}");
}
