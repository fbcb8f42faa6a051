//! `forebay completions` and `forebay man`: completion scripts and manual pages, generated from the command line's declaration.

pub(crate) mod markdown;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Command;
use clap_complete::Shell;
use forebay_units::{PathText, count, did_you_mean};

use crate::output::{Kind, Outcome, Output, Outputs, print, print_data};

/// The flags of `forebay completions`.
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// Shell to complete in
    shell: Shell,
}

/// The flags of `forebay man`.
#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// Command to describe, for example `checkpoint bench`; forebay itself by default
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,

    /// Format: man, or Markdown with subcommands on the page of their command
    #[arg(long, value_enum, default_value_t)]
    format: Format,

    /// Write the pages of all commands to this folder; created if missing
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    out: Option<PathBuf>,

    /// Replace existing files even if forebay did not write them
    #[arg(long, requires = "out")]
    force: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
enum Format {
    #[default]
    Man,
    Markdown,
}

impl Format {
    fn kind(self) -> Kind {
        match self {
            Self::Man => Kind::ManPage,
            Self::Markdown => Kind::Markdown,
        }
    }

    fn page(self, command: &Command) -> Result<String> {
        match self {
            Self::Man => man_page(command),
            Self::Markdown => Ok(markdown::page(command)),
        }
    }

    /// The file names and texts of the pages of all commands.
    fn pages(self, root: &Command) -> Result<Vec<(String, String)>> {
        match self {
            Self::Man => {
                let mut commands = Vec::new();
                collect(root, &mut commands);
                commands.into_iter().map(|command| Ok((format!("{}.1", title(command)), man_page(command)?))).collect()
            }
            Self::Markdown => Ok(markdown::pages(root)),
        }
    }
}

pub(crate) fn completions(args: &CompletionsArgs, mut declared: Command) -> Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut declared, "forebay", &mut script);
    print_data(&String::from_utf8(script)?)?;
    Ok(Outcome::Met)
}

pub(crate) fn man(args: &ManArgs, declared: Command) -> Result<Outcome> {
    let mut root = declared.disable_help_subcommand(true);
    // Gives subcommands their full names: `forebay-checkpoint-bench`.
    root.build();
    match &args.out {
        Some(dir) => write_all(args.format, &root, dir, args.force),
        None => {
            print_data(&args.format.page(find(&root, &args.command)?)?)?;
            Ok(Outcome::Met)
        }
    }
}

fn write_all(format: Format, root: &Command, dir: &Path, force: bool) -> Result<Outcome> {
    std::fs::create_dir_all(dir).with_context(|| format!("cannot create the folder {}", dir.escaped()))?;
    let pages = format.pages(root)?;
    let mut outputs = Outputs::for_inputs([], force);
    // All names are checked before the first page is written.
    let files = pages.iter().map(|(name, _)| outputs.file("--out", &dir.join(name), format.kind()));
    let files: Vec<Output> = files.collect::<Result<_>>()?;
    for (file, (_, text)) in files.iter().zip(&pages) {
        file.write(text.trim_end())?;
    }
    print(&format!("{}: {}\n", dir.escaped(), count(files.len() as u64, "page")))?;
    Ok(Outcome::Met)
}

/// A command and all its subcommands.
fn collect<'a>(command: &'a Command, into: &mut Vec<&'a Command>) {
    into.push(command);
    command.get_subcommands().for_each(|below| collect(below, into));
}

fn find<'a>(root: &'a Command, words: &[String]) -> Result<&'a Command> {
    let mut command = root;
    for word in words {
        let Some(below) = command.find_subcommand(word) else {
            let names = command.get_subcommands().map(Command::get_name);
            let hint = did_you_mean(word, names).map_or_else(String::new, |near| format!("\nhint: {near}"));
            bail!("{} has no command {word:?}{hint}", title(command).replace('-', " "));
        };
        command = below;
    }
    Ok(command)
}

fn title(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

fn man_page(command: &Command) -> Result<String> {
    let version = concat!("forebay ", env!("CARGO_PKG_VERSION"));
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).source(version).manual("forebay").render(&mut page)?;
    Ok(String::from_utf8(page)?)
}
