//! The tiers of checkpoints, as the train and checkpoint steps name them.

use forebay_checkpoint::Mode;
use forebay_measure::{Refused, value};
use forebay_record::Level;

/// "hdd", or "optane → hdd" with a burst buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The last tier.
    pub slow: String,
    /// The burst buffer.
    pub fast: Option<String>,
}

impl Route {
    /// One name, or two with an arrow between them.
    pub(super) fn of(level: &Level) -> Result<Self, Refused> {
        let text = value::text(level)?;
        let mut names = text.split('→').flat_map(|part| part.split("->")).map(|name| name.trim().to_owned());
        let route = match (names.next(), names.next(), names.next()) {
            (Some(slow), None, _) => Self { slow, fast: None },
            (Some(fast), Some(slow), None) => Self { slow, fast: Some(fast) },
            _ => return Err(WANTED.to_owned()),
        };
        let is_empty = route.tiers().any(str::is_empty);
        if is_empty { Err(WANTED.to_owned()) } else { Ok(route) }
    }

    pub(super) fn behind(self, burst: Option<&str>) -> Result<Self, Refused> {
        match (burst, &self.fast) {
            (Some(burst), Some(fast)) => {
                Err(format!("\"{fast} → {}\" names a burst buffer, and so does burst = {burst}; omit one", self.slow))
            }
            (Some(burst), None) => Ok(Self { fast: Some(burst.to_owned()), ..self }),
            (None, _) => Ok(self),
        }
    }

    /// Nearest first.
    pub fn tiers(&self) -> impl Iterator<Item = &str> {
        self.fast.iter().chain([&self.slow]).map(String::as_str)
    }

    /// Without `asked`, the mode that suits the tiers.
    pub(super) fn mode(&self, asked: Option<Mode>) -> Mode {
        asked.unwrap_or(if self.fast.is_some() { Mode::Burst } else { Mode::Direct })
    }

    pub(super) fn check(&self, asked: Option<Mode>) -> Result<(), Refused> {
        match (&self.fast, asked) {
            (Some(fast), _) if *fast == self.slow => {
                Err(format!("{fast} cannot be its own burst buffer; name another tier"))
            }
            (Some(_), Some(Mode::Direct)) => {
                Err("mode direct writes to the last tier only; omit the burst buffer".to_owned())
            }
            (None, Some(Mode::Burst)) => Err("mode burst needs a burst buffer: set burst".to_owned()),
            _ => Ok(()),
        }
    }
}

const WANTED: &str = "expected a tier, or two as in \"optane → hdd\"";

pub(super) fn burst(level: &Level) -> Result<Option<String>, Refused> {
    Ok(Some(value::text(level)?).filter(|name| name != "none"))
}

pub(super) fn to(level: &Level) -> Result<Option<Route>, Refused> {
    match value::text(level)?.as_str() {
        "none" => Ok(None),
        _ => Route::of(level).map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(text: &str) -> Result<Route, Refused> {
        Route::of(&Level::Text(text.to_owned()))
    }

    #[test]
    fn a_route_is_a_tier_or_two() {
        let of = |slow: &str, fast: Option<&str>| Route { slow: slow.to_owned(), fast: fast.map(str::to_owned) };
        assert_eq!(route("hdd"), Ok(of("hdd", None)));
        for text in ["optane → hdd", "optane->hdd", " optane →hdd"] {
            assert_eq!(route(text), Ok(of("hdd", Some("optane"))), "{text}");
        }
        for text in ["optane →", "→ hdd", "a → b → c"] {
            assert!(route(text).unwrap_err().ends_with("expected a tier, or two as in \"optane → hdd\""), "{text}");
        }
        assert_eq!(route("optane → hdd").unwrap().tiers().collect::<Vec<_>>(), ["optane", "hdd"]);
        assert_eq!(of("hdd", None).behind(Some("optane")), route("optane → hdd"));
        let said = route("optane → hdd").unwrap().behind(Some("ssd")).unwrap_err();
        assert_eq!(said, "\"optane → hdd\" names a burst buffer, and so does burst = ssd; omit one");
    }

    #[test]
    fn the_mode_follows_the_tiers_and_cannot_contradict_them() {
        let modes = |text: &str| [None, Some(Mode::Async)].map(|asked| route(text).unwrap().mode(asked));
        assert_eq!(modes("hdd"), [Mode::Direct, Mode::Async]);
        assert_eq!(modes("optane → hdd"), [Mode::Burst, Mode::Async]);
        let said = |text: &str, asked| route(text).unwrap().check(asked);
        assert_eq!(said("hdd", Some(Mode::Async)), Ok(()));
        assert_eq!(said("hdd", Some(Mode::Burst)).unwrap_err(), "mode burst needs a burst buffer: set burst");
        let direct = said("optane → hdd", Some(Mode::Direct)).unwrap_err();
        assert_eq!(direct, "mode direct writes to the last tier only; omit the burst buffer");
        let own = said("hdd → hdd", None).unwrap_err();
        assert_eq!(own, "hdd cannot be its own burst buffer; name another tier");
    }

    #[test]
    fn a_burst_buffer_may_be_none() {
        let text = |text: &str| Level::Text(text.to_owned());
        assert_eq!((burst(&text("none")), burst(&text("optane"))), (Ok(None), Ok(Some("optane".to_owned()))));
    }
}
