//! Metrics of cells, each declared once: name, label, unit, which way is better, and how to read it from a cell.
//!
//! An experiment's table of metrics is beside its cell. Studies, tables, comparisons, CSV, published values and figure axes use it; nothing
//! else knows a metric by name.

/// A value and the repeats it is the median of.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// Median of the repeats, or a value measured once per cell.
    pub value: f64,
    /// One value per kept repeat; empty if it has none.
    pub repeats: Vec<f64>,
}

impl Measurement {
    /// A value measured once per cell, without repeats.
    pub fn single(value: f64) -> Self {
        Self { value, repeats: Vec::new() }
    }

    /// The median of the repeats, or `otherwise` without any.
    pub(crate) fn median(repeats: Vec<f64>, otherwise: Option<f64>) -> Option<Self> {
        let value = forebay_units::median(&repeats).or(otherwise)?;
        Some(Self { value, repeats })
    }
}

/// Unit of a metric's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Something per second: `Rate("images")`.
    Rate(&'static str),
    /// Durations of steps, saves and whole runs.
    Seconds,
    /// For latencies of single requests.
    Microseconds,
    /// A fraction of 1, shown in percent.
    Share,
    /// A ratio: how many times as much.
    Times,
    /// Sizes, traffic and memory, not rates.
    Bytes,
    /// A number of the things it names.
    Count(&'static str),
    /// A unit without a rule of its own; it is only appended.
    Named(&'static str),
}

impl Unit {
    /// Follows a number: "images/s", "s", "%".
    pub fn symbol(self) -> String {
        match self {
            Self::Rate(what) => format!("{what}/s"),
            Self::Seconds => "s".to_owned(),
            Self::Microseconds => "µs".to_owned(),
            Self::Share => "%".to_owned(),
            Self::Times => "×".to_owned(),
            Self::Bytes => "bytes".to_owned(),
            Self::Count(what) | Self::Named(what) => what.to_owned(),
        }
    }

    /// For axes: "images per second", "seconds".
    pub fn words(self) -> String {
        match self {
            Self::Rate(what) => format!("{what} per second"),
            Self::Seconds => "seconds".to_owned(),
            Self::Microseconds => "microseconds".to_owned(),
            other => other.symbol(),
        }
    }
}

/// Whether more or less of a metric is an improvement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Rates, fractions of a ceiling, utilisation.
    Higher,
    /// Times, costs and memory.
    Lower,
    /// A property of the cell, neither good nor bad.
    Neither,
}

/// Description of a metric, independent of the cell's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricInfo {
    /// Key in records, study files, CSV and JSON: `images_per_s`.
    pub name: &'static str,
    /// For people: "sequential read".
    pub label: &'static str,
    #[allow(missing_docs)]
    pub unit: Unit,
    #[allow(missing_docs)]
    pub better: Better,
    /// Whether comparisons of two runs use it.
    pub is_compared: bool,
    /// Rate to compare instead if the runs did different amounts of work.
    pub or_by_rate: Option<&'static str>,
    /// Whether the summary line of a finished cell shows it.
    pub is_headline: bool,
    /// Whether tables for people show it; CSV and JSON have all.
    pub in_table: bool,
    /// Whether negative values are valid.
    pub is_signed: bool,
}

impl MetricInfo {
    /// A metric that a report derives from several cells, such as a speed-up.
    pub const fn derived(name: &'static str, label: &'static str, unit: Unit, better: Better) -> Self {
        Self {
            name,
            label,
            unit,
            better,
            is_compared: false,
            or_by_rate: None,
            is_headline: false,
            in_table: true,
            is_signed: false,
        }
    }

    /// For tables whose values have no unit: "sequential read, MB/s".
    pub fn heading(&self) -> String {
        match self.unit {
            Unit::Share | Unit::Times | Unit::Bytes | Unit::Count(_) => self.label.to_owned(),
            unit if unit.symbol() == self.label => self.label.to_owned(),
            unit => format!("{}, {}", self.label, unit.symbol()),
        }
    }

    /// For axes: "Sequential read in MB per second".
    pub fn axis(&self) -> String {
        let text = match self.unit {
            Unit::Times | Unit::Count(_) => self.label.to_owned(),
            unit if unit.symbol() == self.label => unit.words(),
            unit => format!("{} in {}", self.label, unit.words()),
        };
        let mut letters = text.chars();
        letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
    }

    fn admits(&self, value: &f64) -> bool {
        value.is_finite() && (*value >= 0.0 || self.is_signed)
    }
}

/// A metric of one experiment's cells.
pub struct Metric<C: ?Sized> {
    /// Name, label, unit and use.
    pub info: MetricInfo,
    read: fn(&C) -> Option<Measurement>,
}

impl<C: ?Sized> Metric<C> {
    const fn new(info: MetricInfo, read: fn(&C) -> Option<Measurement>) -> Self {
        Self { info, read }
    }

    /// A metric of which more is better.
    pub const fn higher(
        name: &'static str,
        label: &'static str,
        unit: Unit,
        read: fn(&C) -> Option<Measurement>,
    ) -> Self {
        Self::new(MetricInfo::derived(name, label, unit, Better::Higher), read)
    }

    /// A metric of which less is better.
    pub const fn lower(
        name: &'static str,
        label: &'static str,
        unit: Unit,
        read: fn(&C) -> Option<Measurement>,
    ) -> Self {
        Self::new(MetricInfo::derived(name, label, unit, Better::Lower), read)
    }

    /// Neither good nor bad.
    pub const fn fact(
        name: &'static str,
        label: &'static str,
        unit: Unit,
        read: fn(&C) -> Option<Measurement>,
    ) -> Self {
        Self::new(MetricInfo::derived(name, label, unit, Better::Neither), read)
    }

    /// Used in comparisons of two runs.
    pub const fn compared(mut self) -> Self {
        self.info.is_compared = true;
        self
    }

    /// Compared by this rate instead if the work of two runs differs.
    pub const fn or_by_rate(mut self, rate: &'static str) -> Self {
        self.info.or_by_rate = Some(rate);
        self
    }

    /// Shown in the summary line of a finished cell.
    pub const fn headline(mut self) -> Self {
        self.info.is_headline = true;
        self
    }

    /// Left out of tables for people.
    pub const fn for_programs(mut self) -> Self {
        self.info.in_table = false;
        self
    }

    /// Accepts negative values, which are dropped otherwise.
    pub const fn signed(mut self) -> Self {
        self.info.is_signed = true;
        self
    }

    /// `None` if the cell has no value, or an invalid one.
    pub fn of(&self, cell: &C) -> Option<Measurement> {
        let found = (self.read)(cell).filter(|found| self.info.admits(&found.value))?;
        let repeats = found.repeats.into_iter().filter(|value| self.info.admits(value)).collect();
        Some(Measurement { value: found.value, repeats })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_follow_from_label_and_unit() {
        let of = |label, unit| MetricInfo::derived("name", label, unit, Better::Higher);
        let said = |label, unit| (of(label, unit).heading(), of(label, unit).axis());
        assert_eq!(said("images/s", Unit::Rate("images")), ("images/s".to_owned(), "Images per second".to_owned()));
        assert_eq!(
            said("sequential read", Unit::Rate("MB")),
            ("sequential read, MB/s".to_owned(), "Sequential read in MB per second".to_owned())
        );
        assert_eq!(said("AU", Unit::Share), ("AU".to_owned(), "AU in %".to_owned()));
        assert_eq!(said("speed-up", Unit::Times), ("speed-up".to_owned(), "Speed-up".to_owned()));
    }

    #[test]
    fn what_is_no_number_of_it_is_not_a_value() {
        let read = |value: &f64| Some(Measurement { value: *value, repeats: vec![1.0, f64::NAN, -1.0] });
        let metric = Metric::higher("rate", "rate", Unit::Rate("images"), read);
        assert_eq!(metric.of(&2.0), Some(Measurement { value: 2.0, repeats: vec![1.0] }));
        assert!(metric.of(&-2.0).is_none() && metric.of(&f64::INFINITY).is_none());
        assert_eq!(metric.signed().of(&-2.0).unwrap().repeats, [1.0, -1.0]);
    }
}
