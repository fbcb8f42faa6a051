//! `forebay data pack`: every flag changes the shards, and a second run goes on where the first one stopped.

use crate::dir::Dir;

/// The images of the set, in the order in which a TFRecord or tar shard holds them.
fn order(dir: &Dir, shard: &str) -> Vec<String> {
    let bytes = dir.read(shard);
    let images = dir.images("set");
    let place = |image: &Vec<u8>| bytes.windows(image.len()).position(|window| window == image);
    let mut found: Vec<(usize, String)> =
        images.into_iter().filter_map(|(name, image)| Some((place(&image)?, name))).collect();
    found.sort_unstable();
    found.into_iter().map(|(_, name)| name).collect()
}

#[test]
fn each_format_has_its_shards_and_a_manifest_of_them() {
    let dir = Dir::with_set();
    for (to, extension) in [("tfrecord", "tfrecord"), ("tar", "tar"), ("tensor", "fbt")] {
        let said = dir.met(&format!("data pack set {to} --to {to}"));
        let shard = format!("set-00000-of-00001.{extension}");
        assert_eq!(dir.names(to), ["manifest.json".to_owned(), shard.clone()]);
        let bytes = dir.read(&format!("{to}/{shard}")).len();
        assert!(said.starts_with(&format!("{to}: 24 samples in 1 {to} shard, ")), "{said}");
        let manifest = dir.json(&format!("{to}/manifest.json"));
        assert_eq!((&manifest["format"], &manifest["n_samples"]), (&to.into(), &24.into()));
        assert_eq!(manifest["shards"][0]["bytes"], bytes);
        assert_eq!(manifest["classes"].as_array().unwrap().len(), 22);
    }
}

#[test]
fn size_is_that_of_the_tensor_images() {
    let dir = Dir::with_set();
    dir.met("data pack set small --to tensor --size 10x6");
    dir.met("data pack set usual --to tensor");
    let sides = |name: &str| {
        let found: serde_json::Value =
            serde_json::from_str(&dir.met(&format!("data inspect {name} --json -"))).unwrap();
        (found["widths"]["median"].as_f64().unwrap(), found["heights"]["median"].as_f64().unwrap())
    };
    assert_eq!((sides("small"), sides("usual")), ((10.0, 6.0), (256.0, 256.0)));
    let said = dir.refused("data pack set out --to tar --size 10");
    assert_eq!(said, "forebay: --size needs --to tensor\n");
}

#[test]
fn no_shard_is_longer_than_the_shard_size() {
    let dir = Dir::with_set();
    for to in ["tfrecord", "tar"] {
        dir.met(&format!("data pack set {to} --to {to} --shard-size 64KiB"));
        let shards: Vec<usize> = dir.tree(to).iter().filter(|(name, _)| name.contains(to)).map(|s| s.1.len()).collect();
        assert!(shards.len() > 1 && shards.iter().all(|bytes| *bytes <= 65_536 + 1_024), "{to}: {shards:?}");
    }
    let said = dir.refused("data pack set out --to tar --shard-size 1KB");
    assert_eq!(said, "forebay: shard size 1.0 KB: must be at least 64 KiB\n");
}

#[test]
fn compression_is_that_of_the_whole_shard() {
    let dir = Dir::with_set();
    let first = |name: &str, bytes: usize| dir.read(name)[..bytes].to_vec();
    dir.met("data pack set gz --to tfrecord --compression gzip");
    dir.met("data pack set zl --to tfrecord --compression zlib");
    assert_eq!(first("gz/set-00000-of-00001.tfrecord.gz", 2), [0x1f, 0x8b]);
    assert_eq!(first("zl/set-00000-of-00001.tfrecord.zlib", 1), [0x78]);
    for name in ["gz", "zl"] {
        let said = dir.met(&format!("data verify {name}"));
        assert!(said.starts_with(&format!("{name}: 24 samples good, 0 bad")), "{said}");
    }
    let said = dir.refused("data pack set out --to tar --compression gzip");
    assert_eq!(said, "forebay: --compression needs --to tfrecord\n");
}

#[test]
fn files_are_mixed_by_the_seed_unless_their_order_is_to_be_kept() {
    let dir = Dir::with_set();
    for to in ["tfrecord", "tar"] {
        let packed = |flags: &str| {
            let out = format!("{to}{}", flags.replace(' ', ""));
            dir.met(&format!("data pack set {out} --to {to} {flags}"));
            order(&dir, &format!("{out}/set-00000-of-00001.{to}"))
        };
        let (kept, usual) = (packed("--keep-order"), packed(""));
        let (zero, one) = (packed("--seed 0"), packed("--seed 1"));
        assert_eq!(kept, dir.images("set").into_keys().collect::<Vec<_>>(), "the order of the names");
        assert_eq!(usual, zero);
        assert!(kept != zero && kept != one && zero != one);
        let sorted = |mut names: Vec<String>| {
            names.sort_unstable();
            names
        };
        assert_eq!((sorted(zero), sorted(one)), (kept.clone(), kept));
    }
}

#[test]
fn any_number_of_threads_packs_the_same_bytes() {
    let dir = Dir::with_set();
    for to in ["tfrecord", "tar", "tensor"] {
        dir.met(&format!("data pack set one-{to} --to {to} --shard-size 64KiB --threads 1"));
        dir.met(&format!("data pack set many-{to} --to {to} --shard-size 64KiB --threads 5"));
        assert_eq!(dir.tree(&format!("one-{to}")), dir.tree(&format!("many-{to}")));
    }
}

#[test]
fn a_dry_run_says_what_would_be_written_and_writes_nothing() {
    let dir = Dir::with_set();
    let said = dir.met("data pack set out --to tensor --size 64 --shard-size 100KB --dry-run");
    assert_eq!(said, "out: 24 files into 3 tensor shards, about 294.9 KB\n");
    assert!(!dir.path("out").exists());
}

#[test]
fn a_second_run_keeps_what_is_there_and_makes_what_is_missing() {
    let dir = Dir::with_set();
    let line = "data pack set out --to tar --shard-size 64KiB";
    let first = dir.met(line);
    assert_eq!(dir.met(line), first.replace('\n', "; 3 already there\n"));
    let before = dir.tree("out");
    std::fs::remove_file(dir.path("out/set-00001-of-00003.tar")).unwrap();
    dir.met(line);
    assert_eq!(dir.tree("out"), before);
}

#[test]
fn a_folder_of_other_shards_or_other_data_is_refused_and_left_alone() {
    let dir = Dir::with_set();
    dir.met("data pack set out --to tar");
    let before = dir.tree("out");
    let said = dir.refused("data pack set out --to tfrecord");
    let hint = "hint: use an empty or new folder, or remove this one\n";
    let wanted = "forebay: out: the folder was made with format \"tar\"; requested format \"tfrecord\"\n";
    assert_eq!(said, format!("{wanted}{hint}"));
    assert_eq!(dir.tree("out"), before);
    let image = dir.path("set").join(dir.images("set").into_keys().next().unwrap());
    std::fs::File::open(&image).unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let said = dir.refused("data pack set out --to tar");
    let wanted = "forebay: out: the input files have changed since the folder was made (a name, size, modification time or \
    label)\n";
    assert_eq!(said, format!("{wanted}{hint}"));
    assert_eq!(dir.tree("out"), before);
    dir.write("mine/thesis.tex", "\\begin{document}");
    let said = dir.refused("data pack set mine --to tar");
    assert_eq!(said, "forebay: mine: the folder is not empty and was not made by this command\n");
    assert_eq!(dir.names("mine"), ["thesis.tex"]);
}

#[test]
fn shards_are_not_put_among_the_files_they_are_made_of() {
    let dir = Dir::with_set();
    let said = dir.refused("data pack set set/deep/out --to tar");
    assert_eq!(
        said,
        "forebay: cannot write set/deep/out: it is inside the input set\nhint: choose a path outside set\n"
    );
    assert!(!dir.path("set/deep").exists());
}

#[test]
fn a_list_is_packed_in_its_own_order() {
    let dir = Dir::with_set();
    dir.write("set/some.list", "class_005/class_005_000005.jpg 7\nclass_003/class_003_000003.jpg 8\n");
    dir.met("data pack set/some.list out --to tar --keep-order");
    let names = order(&dir, "out/some-00000-of-00001.tar");
    assert_eq!(names, ["class_005/class_005_000005.jpg", "class_003/class_003_000003.jpg"]);
}

#[test]
fn shards_are_no_input_of_packing() {
    let dir = Dir::with_set();
    dir.met("data pack set tar --to tar");
    let said = dir.refused("data pack tar out --to tensor");
    assert_eq!(said, "forebay: tar/set-00000-of-00001.tar: packing needs image files, found a tar shard\n");
}
