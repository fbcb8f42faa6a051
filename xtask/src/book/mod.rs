//! The documentation in `docs/`: builds it with mdBook, follows its links, runs its commands.

mod links;
mod page;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use anyhow::{Context, Result, bail, ensure};

use self::page::Action;
use crate::shell::{binary, cargo, output, program, root, run, target};
use crate::tally::Tally;

/// The version that the book was written for.
const MDBOOK: &str = "0.5.4";
const SUMMARY: &str = "docs/SUMMARY.md";
/// Pages whose commands are run side by side.
const N_PAGES_AT_ONCE: usize = 2;

/// What running the commands of a page came to.
#[derive(Default)]
struct Ran {
    n_run: u64,
    n_checked: u64,
}

/// Builds the book and runs the commands of all pages, or of those named.
pub fn run_book(tally: &Tally, names: &[&str]) -> Result<()> {
    let pages = pages()?;
    let wrong = links::check(&pages, Path::new(SUMMARY));
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    build()?;
    run(&mut cargo(&["build", "--release", "--quiet"]))?;
    let chosen: Vec<_> =
        pages.iter().filter(|(path, _)| names.is_empty() || names.iter().any(|name| path.ends_with(name))).collect();
    ensure!(!chosen.is_empty(), "no such page: {}", names.join(", "));
    let ran = run_pages(&chosen)?;
    tally.add_passed(ran.n_run);
    eprintln!("{} blocks of commands run, {} that cannot run in CI only checked", ran.n_run, ran.n_checked);
    Ok(())
}

/// README.md and all pages below `docs/`.
fn pages() -> Result<links::Pages> {
    let listed = output(program("git").args([
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
        "README.md",
        "docs/*.md",
    ]))?;
    let read =
        |name: &str| Ok((PathBuf::from(name), std::fs::read_to_string(root().join(name)).context(name.to_owned())?));
    listed.lines().filter(|name| root().join(name).is_file()).map(read).collect()
}

fn build() -> Result<()> {
    run(program(mdbook()?).args(["build", "docs", "--dest-dir"]).arg(std::path::absolute(target().join("book"))?))
}

/// mdBook of the right version; installed below the build folder where the machine has none.
pub fn mdbook() -> Result<PathBuf> {
    let folder = target().join("tools");
    let installed = folder.join("bin/mdbook");
    for candidate in [PathBuf::from("mdbook"), installed.clone()] {
        let version = output(program(&candidate).arg("--version")).unwrap_or_default();
        if version.trim() == format!("mdbook v{MDBOOK}") {
            return Ok(candidate);
        }
    }
    // Without optimisation it builds in 40 s and takes a second for the book.
    let how = ["--locked", "--debug", "--no-default-features", "--features", "search", "--quiet"];
    let mut install = cargo(&["install", "mdbook", "--version", MDBOOK]);
    run(install.args(how).arg("--root").arg(&folder).env("CARGO_TARGET_DIR", folder.join("build")))?;
    Ok(installed)
}

fn run_pages(pages: &[(&PathBuf, &String)]) -> Result<Ran> {
    let queue = Mutex::new(pages.iter());
    let work = || {
        let mut ran = Ran::default();
        loop {
            let next = queue.lock().expect("no page panics").next();
            let Some((path, text)) = next else { return Ok(ran) };
            let of_page = run_page(path, text).with_context(|| path.display().to_string())?;
            ran.n_run += of_page.n_run;
            ran.n_checked += of_page.n_checked;
        }
    };
    let all: Vec<Result<Ran>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..N_PAGES_AT_ONCE).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().expect("pages do not panic")).collect()
    });
    all.into_iter().try_fold(Ran::default(), |sum, ran| {
        let ran: Ran = ran?;
        Ok(Ran { n_run: sum.n_run + ran.n_run, n_checked: sum.n_checked + ran.n_checked })
    })
}

/// Runs a page in a new folder of its own.
fn run_page(path: &Path, text: &str) -> Result<Ran> {
    let actions = page::actions(text)?;
    let folder = std::path::absolute(target().join("book-pages").join(path.with_extension("")))?;
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    let (mut ran, start) = (Ran::default(), std::time::Instant::now());
    for action in actions {
        match action {
            Action::Write { line, name, text } => {
                let file = folder.join(&name);
                std::fs::create_dir_all(file.parent().context("a file has a parent folder")?)?;
                std::fs::write(file, text).with_context(|| format!("line {line}: cannot write {name}"))?;
            }
            Action::Run { line, script, status } => {
                check_flags(&script).with_context(|| format!("line {line}"))?;
                run_script(&folder, &script, status).with_context(|| format!("line {line}"))?;
                ran.n_run += 1;
            }
            Action::Check { line, script, reason } => {
                run_script(&folder, &format!("set -n\n{script}"), 0)
                    .and_then(|()| check_flags(&script))
                    .with_context(|| format!("line {line} (not run: {reason})"))?;
                ran.n_checked += 1;
            }
        }
    }
    std::fs::remove_dir_all(&folder)?;
    if ran.n_run + ran.n_checked > 0 {
        eprintln!(
            "{}: {} run, {} checked, {:.1} s",
            path.display(),
            ran.n_run,
            ran.n_checked,
            start.elapsed().as_secs_f64()
        );
    }
    Ok(ran)
}

/// Runs a block under bash; an error shows what it printed.
fn run_script(folder: &Path, script: &str, status: i32) -> Result<()> {
    let folders = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect::<Vec<_>>();
    let release = std::path::absolute(binary())?.parent().context("the binary has a parent folder")?.to_owned();
    let search = std::env::join_paths(std::iter::once(release).chain(folders))?;
    let mut bash = Command::new("bash");
    // Pages run side by side; a verdict must not depend on that.
    bash.args(["-eu", "-o", "pipefail", "-c", script])
        .current_dir(folder)
        .env("PATH", search)
        .env("FOREBAY_UNWATCHED", "silent");
    let ran =
        bash.env("FOREBAY_HOME", folder.join(".forebay")).stdin(Stdio::null()).output().context("cannot start bash")?;
    if ran.status.code() != Some(status) {
        let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        bail!("{} instead of status {status}:\n{script}\n{out}{err}", ran.status);
    }
    Ok(())
}

/// Every flag that a script gives to a command of forebay is in that command's help.
fn check_flags(script: &str) -> Result<()> {
    let mut helps = BTreeMap::new();
    for words in page::invocations(script) {
        let command: Vec<String> = words.iter().take(2).take_while(|word| !word.starts_with('-')).cloned().collect();
        let help = match helps.get(&command) {
            Some(help) => help,
            None => {
                let help = output(program(binary()).args(&command).arg("--help"))?;
                helps.entry(command.clone()).or_insert(help)
            }
        };
        for flag in words.iter().filter(|word| word.starts_with("--")).filter_map(|word| word.split('=').next()) {
            let known = help.split(|c: char| !c.is_alphanumeric() && c != '-').any(|word| word == flag);
            ensure!(known, "forebay {} has no flag {flag}", command.join(" "));
        }
    }
    Ok(())
}
