//! Parses a Markdown page into the steps of CI: files to write and shell blocks to run, in order.
//!
//! A fenced block is run if its language is `sh`. Directives are HTML comments directly above a block, which readers do not see:
//! `run: OLD => NEW` replaces text to keep CI small, `run: status N` names the expected exit status, `run: not here: REASON`
//! only checks the commands, and `file: NAME` writes the block to a file.

use anyhow::{Context, Result, bail, ensure};

/// Why a block is checked but not run.
pub const REASONS: [&str; 7] = ["root", "gpu", "mpi", "slurm", "minutes", "your data", "build"];

#[derive(Debug, PartialEq, Eq)]
pub enum Action {
    Write {
        line: usize,
        name: String,
        text: String,
    },
    Run {
        line: usize,
        script: String,
        status: i32,
    },
    /// A block that CI cannot run, for one of [`REASONS`].
    Check {
        line: usize,
        script: String,
        reason: &'static str,
    },
}

#[derive(Default)]
struct Directives {
    replace: Vec<(String, String)>,
    status: i32,
    reason: Option<&'static str>,
    file: Option<String>,
}

/// The actions of a page; an error names the line.
pub fn actions(text: &str) -> Result<Vec<Action>> {
    let mut actions = Vec::new();
    let mut directives = Directives::default();
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let line_number = index + 1;
        if let Some(comment) = line.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->")) {
            directives.add(comment).with_context(|| format!("line {line_number}"))?;
        } else if let Some(fence) = line.strip_prefix("```") {
            let ticks = "`".repeat(3 + fence.chars().take_while(|c| *c == '`').count());
            let language = fence.trim_start_matches('`').trim().to_owned();
            let body: Vec<&str> = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != ticks).collect();
            let used = std::mem::take(&mut directives);
            let action = used.apply(line_number + 1, &language, body.join("\n") + "\n");
            actions.extend(action.with_context(|| format!("line {line_number}"))?);
        } else if !line.trim().is_empty() {
            ensure!(directives.is_empty(), "line {line_number}: a directive belongs directly above its block");
        }
    }
    ensure!(directives.is_empty(), "a directive at the end has no block");
    Ok(actions)
}

impl Directives {
    fn is_empty(&self) -> bool {
        self.replace.is_empty() && self.status == 0 && self.reason.is_none() && self.file.is_none()
    }

    fn add(&mut self, comment: &str) -> Result<()> {
        if let Some(name) = comment.strip_prefix("file: ") {
            self.file = Some(name.to_owned());
        } else if let Some(reason) = comment.strip_prefix("run: not here: ") {
            let known = REASONS.into_iter().find(|known| *known == reason);
            self.reason = Some(known.with_context(|| format!("{reason:?} is not a reason; use one of {REASONS:?}"))?);
        } else if let Some(status) = comment.strip_prefix("run: status ") {
            self.status = status.parse().with_context(|| format!("{status:?} is not an exit status"))?;
        } else if let Some(rule) = comment.strip_prefix("run: ") {
            let (old, new) = rule.split_once(" => ").with_context(|| format!("unknown directive {comment:?}"))?;
            self.replace.push((old.to_owned(), new.to_owned()));
        }
        Ok(())
    }

    fn apply(self, line: usize, language: &str, text: String) -> Result<Option<Action>> {
        if let Some(name) = self.file {
            return Ok(Some(Action::Write { line, name, text }));
        }
        if language != "sh" {
            let is_plain = self.replace.is_empty() && self.status == 0 && self.reason.is_none();
            ensure!(is_plain, "a directive `run:` belongs to an `sh` block, not to {language:?}");
            return Ok(None);
        }
        if let Some(reason) = self.reason {
            return Ok(Some(Action::Check { line, script: text, reason }));
        }
        let mut script = text;
        for (old, new) in self.replace {
            if !script.contains(&old) {
                bail!("{old:?} is not in the block");
            }
            script = script.replace(&old, &new);
        }
        Ok(Some(Action::Run { line, script, status: self.status }))
    }
}

/// The `forebay` commands of a script: for each, its words up to the end of the command.
pub fn invocations(script: &str) -> Vec<Vec<String>> {
    let joined = script.replace("\\\n", " ");
    let commands =
        joined.lines().flat_map(|line| line.split(" #").next().unwrap_or_default().split(['|', ';', '&', '>']));
    let of_forebay = |command: &str| {
        let words = command.split_whitespace().skip_while(|word| *word != "forebay").skip(1);
        let words: Vec<String> = words.take_while(|word| *word != "--").map(str::to_owned).collect();
        (!words.is_empty()).then_some(words)
    };
    commands.filter_map(of_forebay).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sh_blocks_run_and_others_do_not() {
        let page = "# T\n```sh\na\nb\n```\ntext\n```text\nout\n```\n";
        let expected = vec![Action::Run { line: 3, script: "a\nb\n".into(), status: 0 }];
        assert_eq!(actions(page).unwrap(), expected);
    }

    #[test]
    fn directives_apply_to_the_block_below_alone() {
        let page = "<!-- run: 2000 => 64 -->\n<!-- run: status 1 -->\n```sh\nmake 2000\n```\n```sh\nmake 2000\n```\n\
                    <!-- run: not here: root -->\n```sh\nsudo x\n```\n<!-- file: a.toml -->\n```toml\nk = 1\n```\n";
        let expected = vec![
            Action::Run { line: 4, script: "make 64\n".into(), status: 1 },
            Action::Run { line: 7, script: "make 2000\n".into(), status: 0 },
            Action::Check { line: 11, script: "sudo x\n".into(), reason: "root" },
            Action::Write { line: 15, name: "a.toml".into(), text: "k = 1\n".into() },
        ];
        assert_eq!(actions(page).unwrap(), expected);
    }

    #[test]
    fn mistakes_in_directives_are_named() {
        let error = |page: &str| format!("{:#}", actions(page).unwrap_err());
        assert_eq!(error("<!-- run: 1 => 2 -->\n```sh\na\n```\n"), "line 2: \"1\" is not in the block");
        assert!(error("<!-- run: not here: mood -->\n```sh\na\n```\n").contains("\"mood\" is not a reason"));
        assert!(error("<!-- run: status 1 -->\nwords\n").contains("directly above"));
        assert!(error("<!-- run: status 1 -->\n").contains("has no block"));
        assert!(error("<!-- run: status 1 -->\n```text\na\n```\n").contains("belongs to an `sh` block"));
    }

    #[test]
    fn invocations_are_found_behind_other_programs() {
        let script = "sudo X=1 forebay tier up hdd # --no\nmpirun -n 8 forebay workload run a \\\n  --data d | cat\n\
                      forebay watch --csv a -- python x --lr\nls\n";
        let expected: Vec<Vec<&str>> =
            vec![vec!["tier", "up", "hdd"], vec!["workload", "run", "a", "--data", "d"], vec!["watch", "--csv", "a"]];
        assert_eq!(invocations(script), expected);
    }
}
