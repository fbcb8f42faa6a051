//! Builds the levels of a cell by name, without unknown and empty ones.

use crate::{Level, Levels, Medium};

/// Unknown and empty levels are left out.
#[derive(Default)]
pub(crate) struct LevelsOf(Levels);

impl LevelsOf {
    fn with(mut self, name: &str, level: Option<Level>) -> Self {
        self.0.extend(level.map(|level| (name.to_owned(), level)));
        self
    }

    pub(crate) fn integer(self, name: &str, value: impl Into<Option<u64>>) -> Self {
        self.with(name, value.into().map(|value| Level::Integer(i64::try_from(value).unwrap_or(i64::MAX))))
    }

    pub(crate) fn flag(self, name: &str, value: impl Into<Option<bool>>) -> Self {
        self.with(name, value.into().map(Level::Flag))
    }

    pub(crate) fn text<'a>(self, name: &str, value: impl Into<Option<&'a str>>) -> Self {
        self.with(name, value.into().filter(|text| !text.is_empty()).map(|text| Level::Text(text.to_owned())))
    }

    pub(crate) fn medium(self, medium: &Medium) -> Self {
        self.text("storage", medium.storage.as_str()).text("tier", medium.tier.as_deref())
    }

    pub(crate) fn done(self) -> Levels {
        self.0
    }
}
