//! The terms of a page: those of the vocabulary that occur in its text, so a reader needs neither the repository nor a network.

use forebay_record::WORDS;
use forebay_units::count;

use crate::markup::Markup;

/// Elements whose content is not prose: styles, and commands that a reader would type.
const NOT_PROSE: [&str; 3] = ["style", "script", "pre"];

const MORE: &str = "The full list is docs/words.md in forebay's repository.";

/// Writes the terms of what was written before.
pub(super) fn write(page: &mut Markup) {
    let text = text(page.as_str());
    let terms: Vec<_> = WORDS.iter().filter(|word| word.occurs_in(&text)).collect();
    if terms.is_empty() {
        return;
    }
    page.open("section", &[("class", &"terms"), ("aria-label", &"terms")]);
    page.element("h2", &[], "Terms");
    page.open("details", &[]);
    page.element("summary", &[], format_args!("{} used on this page", count(terms.len() as u64, "term")));
    page.open("dl", &[]);
    for word in terms {
        page.element("dt", &[], word.term);
        page.element("dd", &[], word.sentence);
    }
    page.close("dl");
    page.element("p", &[], MORE);
    page.close("details");
    page.close("section");
}

/// The prose of a page, without its tags.
fn text(html: &str) -> String {
    let (mut text, mut rest) = (String::new(), html);
    while let Some((before, tag)) = rest.split_once('<') {
        text.push_str(before);
        // What two elements hold are not one word.
        text.push(' ');
        rest = tag.split_once('>').map_or("", |(_, after)| after);
        let name = NOT_PROSE.iter().find(|name| tag.starts_with(**name));
        if let Some(end) = name.and_then(|name| rest.find(&format!("</{name}>"))) {
            rest = &rest[end..];
        }
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms_of(prose: &str) -> String {
        let mut page = Markup::default();
        page.element("p", &[], prose);
        let before = page.as_str().len();
        write(&mut page);
        page.as_str()[before..].to_owned()
    }

    #[test]
    fn a_term_that_occurs_is_explained_and_others_are_not() {
        let terms = terms_of("The lever is prefetch.");
        assert!(terms.contains("<dt>lever</dt>") && terms.contains("<dt>prefetch</dt>"), "{terms}");
        assert!(
            terms.contains("2 terms used on this page") && terms.contains(MORE.split('\'').next().unwrap()),
            "{terms}"
        );
        assert!(!terms.contains("<dt>tier</dt>"), "{terms}");
    }

    #[test]
    fn a_page_without_terms_has_no_section() {
        assert_eq!(terms_of("Nothing to explain."), "");
    }

    #[test]
    fn tags_styles_and_commands_are_not_prose() {
        let html =
            "<style>.tier{}</style><p class=\"cold\">a <b>warm</b></p><pre><code>forebay probe</code></pre><p>rank</p>";
        assert_eq!(text(html).split_whitespace().collect::<Vec<_>>(), ["a", "warm", "rank"]);
    }
}
