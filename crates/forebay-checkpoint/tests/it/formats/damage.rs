//! Every cut and every flipped bit: an error, or harmless, and never a panic.

use forebay_checkpoint::format::{Error, Files, Format, named};

use super::{example, read, write};

fn format(name: &str) -> &'static dyn Format {
    named(name).expect("is in the table")
}

/// Reads the example after something was done to one of its files.
fn read_damaged(format: &dyn Format, files: &Files, file: &str, damage: impl Fn(&mut Vec<u8>)) -> Result<(), Error> {
    let mut files = files.clone();
    damage(files.get_mut(file).expect("is one of the files"));
    read(format, "model", &files).map(|_| ())
}

#[test]
fn a_bundle_cut_anywhere_is_refused() {
    let bundle = format("tensorflow");
    let files = write(bundle, &example(), 4096);
    for file in ["model.index", "model.data-00000-of-00001"] {
        for len in 0..files[file].len() {
            read_damaged(bundle, &files, file, |bytes| bytes.truncate(len)).expect_err("was cut");
        }
    }
}

#[test]
fn a_bundle_with_any_bit_flipped_is_refused() {
    let bundle = format("tensorflow");
    let files = write(bundle, &example(), 4096);
    for file in ["model.index", "model.data-00000-of-00001"] {
        for bit in 0..8 * files[file].len() {
            read_damaged(bundle, &files, file, |bytes| bytes[bit / 8] ^= 1 << (bit % 8))
                .expect_err("a bit was flipped");
        }
    }
}

#[test]
fn a_safetensors_file_cut_anywhere_or_followed_by_something_is_refused() {
    let format = format("safetensors");
    let files = write(format, &example(), 4096);
    let file = "model.safetensors";
    for len in 0..files[file].len() {
        read_damaged(format, &files, file, |bytes| bytes.truncate(len)).expect_err("was cut");
    }
    read_damaged(format, &files, file, |bytes| bytes.push(0)).expect_err("a byte too many");
}

#[test]
fn a_safetensors_header_with_any_bit_flipped_is_refused_or_says_something_possible() {
    let format = format("safetensors");
    let files = write(format, &example(), 4096);
    let file = "model.safetensors";
    let n_json = files[file].iter().rposition(|&byte| byte == b'}').expect("a header ends so");
    let (mut n_refused, mut n_read) = (0, 0);
    for bit in 0..8 * n_json {
        match read_damaged(format, &files, file, |bytes| bytes[bit / 8] ^= 1 << (bit % 8)) {
            Ok(()) => n_read += 1,
            Err(_) => n_refused += 1,
        }
    }
    // There is no checksum: another letter in a name or in a note is another name or note.
    assert!(n_refused > 2 * n_read, "{n_refused} refused, {n_read} read");
}

#[test]
fn a_zeroed_file_is_refused() {
    for (name, file) in [("safetensors", "model.safetensors"), ("tensorflow", "model.index")] {
        let format = format(name);
        let files = write(format, &example(), 4096);
        let error = read_damaged(format, &files, file, |bytes| bytes.fill(0)).expect_err("only zeros");
        assert!(matches!(error, Error::Invalid { .. }), "{error}");
    }
    let bundle = format("tensorflow");
    let files = write(bundle, &example(), 4096);
    let error = read_damaged(bundle, &files, "model.data-00000-of-00001", |bytes| bytes.fill(0));
    assert!(matches!(error, Err(Error::Checksum { .. })), "{error:?}");
}

#[test]
fn a_missing_file_is_named() {
    for (name, file) in [
        ("safetensors", "model.safetensors"),
        ("tensorflow", "model.index"),
        ("tensorflow", "model.data-00000-of-00001"),
    ] {
        let format = format(name);
        let mut files = write(format, &example(), 4096);
        files.remove(file);
        let error = read(format, "model", &files).expect_err("a file is missing");
        assert_eq!(error.to_string(), format!("reading {file}"));
        assert!(matches!(error, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound));
    }
}

#[test]
fn index_and_values_of_different_checkpoints_do_not_go_together() {
    let bundle = format("tensorflow");
    let mut files = write(bundle, &example(), 4096);
    let mut other = example();
    other.tensors[0].1[5] ^= 1;
    files.insert("model.index".to_owned(), write(bundle, &other, 4096).remove("model.index").expect("was written"));
    let said = read(bundle, "model", &files).expect_err("the checksum is of other values").to_string();
    assert!(said.starts_with("model.data-00000-of-00001: tensor \"conv/w\" at offset 0: checksum: "), "{said}");
}
