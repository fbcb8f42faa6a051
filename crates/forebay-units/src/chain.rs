//! Errors with their causes.

use std::error::Error;

/// An error and its causes in one line. A message that already ends with its cause's text is not followed by it again.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    causes(error).map(ToString::to_string).fold(String::new(), |text, said| match text {
        _ if text.is_empty() => said,
        _ if text.ends_with(&said) => text,
        _ => format!("{text}: {said}"),
    })
}

/// An error and its causes, from the outermost on.
pub fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{words}")]
    struct Said {
        words: &'static str,
        source: Option<Box<Said>>,
    }

    fn said(words: &[&'static str]) -> Option<Box<Said>> {
        let (first, rest) = words.split_first()?;
        Some(Box::new(Said { words: first, source: said(rest) }))
    }

    #[test]
    fn causes_follow_and_are_not_repeated() {
        assert_eq!(chain(&*said(&["cannot read a", "no such file"]).unwrap()), "cannot read a: no such file");
        assert_eq!(chain(&*said(&["cannot read a: gone", "gone", "why"]).unwrap()), "cannot read a: gone: why");
        assert_eq!(chain(&*said(&["alone"]).unwrap()), "alone");
    }
}
