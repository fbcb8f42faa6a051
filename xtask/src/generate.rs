//! Generates the pages of `docs/` that follow from the code, or checks that they are up to date.

use anyhow::{Context, Result, bail};

use crate::ci;
use crate::shell::{output, program, root, target};

/// Each file, and what the example `record_schema` is asked for.
const FILES: [(&str, &str); 3] =
    [("docs/reference/record.schema.json", "json"), ("docs/reference/record.md", "page"), ("docs/words.md", "words")];

/// Writes the files.
pub fn write() -> Result<()> {
    for (name, text) in generated()? {
        let path = root().join(name);
        std::fs::create_dir_all(path.parent().context("a file has a parent folder")?)?;
        std::fs::write(&path, text).with_context(|| format!("cannot write {name}"))?;
    }
    Ok(())
}

/// Compares the files with what would be written; the error names those that differ.
pub fn check() -> Result<()> {
    let differs =
        |(name, text): &(&str, String)| std::fs::read_to_string(root().join(name)).ok().as_ref() != Some(text);
    let stale: Vec<&str> = generated()?.into_iter().filter(differs).map(|(name, _)| name).collect();
    if !stale.is_empty() {
        bail!("out of date: {}; run cargo xtask generate", stale.join(", "));
    }
    eprintln!("{} generated files are up to date", FILES.len());
    Ok(())
}

fn generated() -> Result<Vec<(&'static str, String)>> {
    ci::build_with_features(&["--example", "record_schema"])?;
    let program_path = target().join("debug/examples/record_schema");
    FILES.iter().map(|(name, what)| Ok((*name, output(program(&program_path).arg(what))?))).collect()
}
