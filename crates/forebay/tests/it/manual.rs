//! `forebay completions`, `forebay man`, `forebay --version`: what shells, `man` and bug reports take.

use std::process::Command;
use std::time::Instant;

use forebay_testing::{Reason, not_run};

use crate::dir::{Dir, Ran};

#[test]
fn every_shell_has_completions_with_the_words_that_settings_take() {
    let dir = Dir::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = dir.met(&format!("completions {shell}"));
        for word in ["ingest", "doctor", "checkpoint", "device-prefetch"] {
            assert!(script.contains(word), "{shell} knows no {word}");
        }
        // Words come from the table of settings; two shells complete no values.
        let has_words = ["alexnet-small", "coalesce"].iter().all(|word| script.contains(word));
        assert_eq!(has_words, !["elvish", "powershell"].contains(&shell), "{shell}");
    }
    assert!(dir.refused("completions tcsh").contains("[possible values: bash, elvish, fish, powershell, zsh]"));
}

#[test]
fn bash_completes_commands_flags_and_words() {
    let dir = Dir::new();
    dir.write("forebay.bash", dir.met("completions bash"));
    let complete = |words: &str| {
        let n = words.split(' ').count() - 1;
        let script = format!(
            "source ./forebay.bash; COMP_WORDS=({words}); [[ '{words}' == *' ' ]] && COMP_WORDS+=(''); COMP_CWORD={n}
            _forebay forebay \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; echo \"${{COMPREPLY[*]}}\""
        );
        Ran::from(Command::new("bash").args(["-c", &script]).current_dir(dir.path("")).output().unwrap())
    };
    if Command::new("bash").arg("--version").output().is_err() {
        return not_run(Reason::NoProgram, "bash");
    }
    for (words, wanted) in [
        ("forebay doc", "doctor"),
        ("forebay checkpoint be", "bench"),
        ("forebay ingest --thr", "--threads"),
        ("forebay train --model alexnet-", "alexnet-small"),
        ("forebay completions z", "zsh"),
    ] {
        let ran = complete(words);
        assert_eq!((ran.stdout.trim(), ran.stderr.as_str()), (wanted, ""), "{words}");
    }
}

#[test]
fn a_page_is_printed_and_all_pages_are_written() {
    let dir = Dir::new();
    assert!(dir.met("man").contains(".TH forebay 1"));
    let page = dir.met("man checkpoint bench");
    assert!(page.contains(".TH forebay-checkpoint-bench 1") && page.contains("forebay 0."), "{page}");
    assert!(page.contains("burst\\-dir"), "{page}");
    let said = dir.refused("man checkpoint bensh");
    assert_eq!(said, "forebay: forebay checkpoint has no command \"bensh\"\nhint: did you mean `bench`?\n");
    let said = dir.met("man --out pages/man1");
    let names = dir.names("pages/man1");
    assert_eq!(said, format!("pages/man1: {} pages\n", names.len()));
    for name in ["forebay.1", "forebay-data.1", "forebay-data-make.1", "forebay-man.1"] {
        assert!(names.iter().any(|known| known == name), "{names:?}");
    }
    assert!(names.iter().all(|name| !name.contains("help")), "{names:?}");
    assert_eq!(dir.read("pages/man1/forebay-checkpoint-bench.1"), page.as_bytes());
    dir.met("man --out pages/man1");
    dir.write("pages/man1/forebay-data.1", "notes of years\n");
    let said = dir.refused("man --out pages/man1");
    assert!(said.contains("pages/man1/forebay-data.1: the file exists and was not written by forebay"), "{said}");
    dir.met("man --out pages/man1 --force");
    assert!(dir.refused("man data --out pages").contains("cannot be used with"));
}

#[test]
fn a_page_in_markdown_has_the_subcommands_of_its_command() {
    let dir = Dir::new();
    let page = dir.met("man checkpoint --format markdown");
    assert!(page.contains("\n# forebay checkpoint\n") && page.contains("`--burst-dir <DIR>`"), "{page}");
    assert!(page.contains("\n## forebay checkpoint bench\n"), "{page}");
    let said = dir.met("man --format markdown --out pages");
    let names = dir.names("pages");
    assert_eq!(said, format!("pages: {} pages\n", names.len()));
    assert!(names.iter().any(|name| name == "checkpoint.md"), "{names:?}");
    assert_eq!(dir.read("pages/checkpoint.md"), page.as_bytes());
}

#[test]
fn the_short_version_is_a_line_and_the_long_one_says_what_is_built_in_and_found() {
    let dir = Dir::new();
    let short = dir.met("-V");
    assert_eq!(short, format!("forebay {}\n", env!("CARGO_PKG_VERSION")));
    let long = dir.met("--version");
    let lines: Vec<&str> = long.lines().collect();
    assert_eq!(format!("{}\n", lines[0]), short);
    let sign = |is_on| if is_on { '+' } else { '-' };
    let features = format!(
        "features: {}mpi {}hdf5 {}object",
        sign(cfg!(feature = "mpi")),
        sign(cfg!(feature = "hdf5")),
        sign(cfg!(feature = "object"))
    );
    assert_eq!(lines[1], features);
    let root = if crate::process::is_root() { "yes" } else { "no" };
    assert!(
        lines[2].starts_with("this machine: CUDA driver ") && lines[2].ends_with(&format!("root {root}")),
        "{long}"
    );
    assert_eq!(lines.len(), 3);
    // Nothing that a run needs is asked for.
    let bare = dir.command("--version").env_clear().output().unwrap();
    assert_eq!((bare.status.code(), bare.stderr.as_slice()), (Some(0), &[] as &[u8]));
    let is_fast = |_| {
        let start = Instant::now();
        dir.met("--version");
        start.elapsed().as_millis() < 100
    };
    assert!(crate::process::once_in_ten(is_fast), "it takes longer than 100 ms");
}

/// Nothing here colours its output; clap does, on a terminal and without `NO_COLOR`.
#[test]
fn no_escape_codes_are_written_to_what_is_no_terminal() {
    let dir = Dir::with_set();
    for line in [
        "--help",
        "ingest --help",
        "bogus",
        "ingest set --bogus",
        "ingest missing",
        "data inspect set",
        "data verify set",
        "ingest set --threads 1 --repeats 1 --warmups 0",
        "train set --accelerator emulated:1ms --steps 2 --batch 4",
        "watch --interval 10ms --count 2",
        "study list",
        "workload list",
        "doctor",
        "man ingest",
        "completions fish",
    ] {
        for (name, value) in [("NO_COLOR", "1"), ("TERM", "xterm-256color")] {
            let ran = dir.command(line).env(name, value).output().unwrap();
            let is_plain = |bytes: &[u8]| !bytes.contains(&0x1b);
            assert!(is_plain(&ran.stdout) && is_plain(&ran.stderr), "{line} with {name}={value}: {ran:?}");
        }
    }
}
