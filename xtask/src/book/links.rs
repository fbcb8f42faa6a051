//! Links of the documentation: every page is in the table of contents, every anchor exists.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// Pages by path from the repository's root.
pub type Pages = BTreeMap<PathBuf, String>;

/// What is wrong with the links of the pages; `summary` is the book's table of contents.
pub fn check(pages: &Pages, summary: &Path) -> Vec<String> {
    let mut wrong = Vec::new();
    let listed: BTreeSet<PathBuf> = pages
        .get(summary)
        .map(|text| targets(summary, text))
        .unwrap_or_default()
        .into_iter()
        .map(|(path, _)| path)
        .collect();
    for (path, text) in pages {
        let of_book = summary.parent().is_some_and(|dir| path.starts_with(dir)) && path != summary;
        if of_book && !listed.contains(path) {
            wrong.push(format!("{}: not in {}", path.display(), summary.display()));
        }
        for (target, anchor) in targets(path, text) {
            let Some(text) = pages.get(&target) else { continue };
            if anchor.as_ref().is_some_and(|anchor| !anchors(text).contains(anchor)) {
                let anchor = anchor.unwrap_or_default();
                wrong.push(format!("{}: {} has no heading #{anchor}", path.display(), target.display()));
            }
        }
    }
    wrong
}

/// The local links of a page: the file, and the anchor in it.
fn targets(path: &Path, text: &str) -> Vec<(PathBuf, Option<String>)> {
    let prose = prose(text);
    let links = prose.split("](").skip(1).filter_map(|piece| piece.split([')', ' ']).next());
    let local = links.filter(|link| !link.contains("://"));
    let resolve = |link: &str| {
        let (file, anchor) =
            link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor.to_owned())));
        let dir = path.parent().unwrap_or(Path::new(""));
        (if file.is_empty() { path.to_owned() } else { normal(&dir.join(file)) }, anchor)
    };
    local.map(resolve).collect()
}

/// The text without its fenced blocks.
fn prose(text: &str) -> String {
    let mut inside = false;
    let outside = |line: &&str| {
        let is_fence = line.starts_with("```");
        inside ^= is_fence;
        !inside && !is_fence
    };
    text.lines().filter(outside).collect::<Vec<_>>().join("\n")
}

/// The anchors that mdBook and code hosts give to headings, and those that the page names itself.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen = BTreeMap::<String, usize>::new();
    let mut anchors = BTreeSet::new();
    for line in prose(text).lines() {
        if let Some(title) = line.strip_prefix('#') {
            let slug = slug(title.trim_start_matches('#'));
            let n_before = seen.entry(slug.clone()).or_insert(0);
            anchors.insert(if *n_before == 0 { slug } else { format!("{slug}-{n_before}") });
            *n_before += 1;
        }
        anchors.extend(line.split("id=\"").skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned));
    }
    anchors
}

fn slug(title: &str) -> String {
    let kept = title.trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(normal.pop()),
            Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(texts: &[(&str, &str)]) -> Pages {
        texts.iter().map(|(path, text)| (PathBuf::from(path), (*text).to_owned())).collect()
    }

    #[test]
    fn a_page_that_is_in_no_table_of_contents_is_named() {
        let pages = pages(&[("docs/SUMMARY.md", "[a](a.md)"), ("docs/a.md", ""), ("docs/b.md", ""), ("README.md", "")]);
        assert_eq!(check(&pages, Path::new("docs/SUMMARY.md")), ["docs/b.md: not in docs/SUMMARY.md"]);
    }

    #[test]
    fn anchors_are_followed_across_pages_and_not_into_code() {
        let text =
            "# AU, three ways\n[x](m/c.md#cold--proven) [y](#au-three-ways) [z](#none)\n```sh\n[w](#code)\n```\n";
        let texts =
            [("docs/SUMMARY.md", "[a](a.md)[c](m/c.md)"), ("docs/a.md", text), ("docs/m/c.md", "## Cold & `proven`\n")];
        assert_eq!(check(&pages(&texts), Path::new("docs/SUMMARY.md")), ["docs/a.md: docs/a.md has no heading #none"]);
    }

    #[test]
    fn equal_headings_get_numbers() {
        assert_eq!(anchors("# A\n# A\n<a id=\"b\"></a>"), BTreeSet::from(["a".into(), "a-1".into(), "b".into()]));
    }
}
