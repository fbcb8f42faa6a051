//! A writer of HTML and SVG in which nothing can be left unescaped.
//!
//! Records hold paths and messages of other people; a page must show them as text whatever is in them. So there is no way
//! to write a string into a page but as text or as an attribute's value, both escaped here; only what another
//! [`Markup`] holds, and the page's own style and script, goes in as it is.

use std::fmt::{self, Display, Write};

use crate::visible::is_order;

pub(crate) type Attributes<'a> = &'a [(&'a str, &'a dyn Display)];

#[derive(Debug, Clone, Default)]
pub(crate) struct Markup(String);

impl Markup {
    pub(crate) fn document() -> Self {
        Self("<!DOCTYPE html>\n".to_owned())
    }

    pub(crate) fn open(&mut self, tag: &str, attributes: Attributes<'_>) {
        self.tag(tag, attributes);
        self.0.push('>');
    }

    pub(crate) fn close(&mut self, tag: &str) {
        self.0.push_str("</");
        self.0.push_str(tag);
        self.0.push_str(">\n");
    }

    pub(crate) fn leaf(&mut self, tag: &str, attributes: Attributes<'_>) {
        self.tag(tag, attributes);
        self.0.push_str("/>");
    }

    pub(crate) fn text(&mut self, text: impl Display) {
        let _ = write!(Escaped(&mut self.0), "{text}");
    }

    pub(crate) fn element(&mut self, tag: &str, attributes: Attributes<'_>, text: impl Display) {
        self.open(tag, attributes);
        self.text(text);
        self.0.push_str("</");
        self.0.push_str(tag);
        self.0.push('>');
    }

    /// Another piece, as it is.
    pub(crate) fn put(&mut self, piece: &Self) {
        self.0.push_str(&piece.0);
    }

    /// The page's own style or script, known when this program is compiled.
    pub(crate) fn own(&mut self, tag: &str, content: &'static str) {
        self.open(tag, &[]);
        self.0.push_str(content);
        self.close(tag);
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn into_string(self) -> String {
        self.0
    }

    fn tag(&mut self, tag: &str, attributes: Attributes<'_>) {
        self.0.push('<');
        self.0.push_str(tag);
        for (name, value) in attributes {
            self.0.push(' ');
            self.0.push_str(name);
            self.0.push_str("=\"");
            self.text(value);
            self.0.push('"');
        }
    }
}

struct Escaped<'a>(&'a mut String);

impl Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                '\n' | '\r' | '\t' => self.0.push(c),
                // A page may not hold control characters at all, and marks of direction would turn its own words too.
                c if is_order(c) => self.0.push('\u{fffd}'),
                _ => self.0.push(c),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_attributes_cannot_become_markup() {
        let mut page = Markup::default();
        page.element("p", &[("title", &"a\"b'c")], "<script>1 & 2\u{1}\u{9b}\u{202e}</script>");
        assert_eq!(
            page.into_string(),
            "<p title=\"a&quot;b&#39;c\">&lt;script&gt;1 &amp; 2\u{fffd}\u{fffd}\u{fffd}&lt;/script&gt;</p>"
        );
    }
}
