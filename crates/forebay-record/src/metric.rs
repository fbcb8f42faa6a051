//! Quantities of cells, each declared once: what it is called, its unit, which way is better, and how it is read.
//!
//! An experiment's table of metrics stands beside its cell. Studies, tables, comparisons, CSV, published values and figure
//! axes ask it; nothing else knows a quantity by name.

/// A quantity of a cell: its value and the repeats it is the median of.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// The cell's value.
    pub value: f64,
    /// The value of every kept repeat; empty where it has none.
    pub repeats: Vec<f64>,
}

impl Measurement {
    /// A value without repeats.
    pub fn single(value: f64) -> Self {
        Self { value, repeats: Vec::new() }
    }

    /// The median of some repeats, or what stands in for it where there are none.
    pub(crate) fn median(repeats: Vec<f64>, otherwise: Option<f64>) -> Option<Self> {
        let value = forebay_units::median(&repeats).or(otherwise)?;
        Some(Self { value, repeats })
    }
}

/// What a quantity is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Something per second: `Rate("images")`.
    Rate(&'static str),
    /// Seconds.
    Seconds,
    /// Microseconds.
    Microseconds,
    /// A share of 1, shown in percent.
    Share,
    /// How many times as much.
    Times,
    /// Bytes.
    Bytes,
    /// A number of things.
    Count(&'static str),
    /// A unit that is only written out.
    Named(&'static str),
}

impl Unit {
    /// After a number: "images/s", "s", "%".
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

    /// Along an axis: "images per second", "seconds".
    pub fn words(self) -> String {
        match self {
            Self::Rate(what) => format!("{what} per second"),
            Self::Seconds => "seconds".to_owned(),
            Self::Microseconds => "microseconds".to_owned(),
            other => other.symbol(),
        }
    }
}

/// Which way a quantity is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Rates, shares of a ceiling, utilisation.
    Higher,
    /// Times and costs.
    Lower,
    /// A fact of the cell, neither good nor bad.
    Neither,
}

/// What is said of a quantity, whatever cell it is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricInfo {
    /// In records, study files, CSV and JSON: `images_per_s`.
    pub name: &'static str,
    /// To people: "sequential read".
    pub label: &'static str,
    #[allow(missing_docs)]
    pub unit: Unit,
    #[allow(missing_docs)]
    pub better: Better,
    /// Whether two runs are compared by it.
    pub is_compared: bool,
    /// The rate by which runs of unlike work are compared in its place.
    pub or_by_rate: Option<&'static str>,
    /// Whether the line of a finished cell has it.
    pub is_headline: bool,
    /// Whether the table of cells shows it to people; programs are given all.
    pub in_table: bool,
    /// Whether a value below zero means something.
    pub is_signed: bool,
}

impl MetricInfo {
    /// A quantity that a report derives from several cells, as a speed-up.
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

    /// In a table whose values have no unit: "sequential read, MB/s".
    pub fn heading(&self) -> String {
        match self.unit {
            Unit::Share | Unit::Times | Unit::Bytes | Unit::Count(_) => self.label.to_owned(),
            unit if unit.symbol() == self.label => self.label.to_owned(),
            unit => format!("{}, {}", self.label, unit.symbol()),
        }
    }

    /// Along an axis: "Sequential read in MB per second".
    pub fn axis(&self) -> String {
        let text = match self.unit {
            Unit::Times | Unit::Count(_) => self.label.to_owned(),
            unit if unit.symbol() == self.label => unit.words(),
            unit => format!("{} in {}", self.label, unit.words()),
        };
        let mut letters = text.chars();
        letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
    }

    /// Whether a number can be one of its values.
    fn admits(&self, value: &f64) -> bool {
        value.is_finite() && (*value >= 0.0 || self.is_signed)
    }
}

/// A quantity of cells of one experiment.
pub struct Metric<C: ?Sized> {
    /// What is said of it.
    pub info: MetricInfo,
    read: fn(&C) -> Option<Measurement>,
}

impl<C: ?Sized> Metric<C> {
    const fn new(info: MetricInfo, read: fn(&C) -> Option<Measurement>) -> Self {
        Self { info, read }
    }

    /// A quantity of which more is better.
    pub const fn higher(
        name: &'static str,
        label: &'static str,
        unit: Unit,
        read: fn(&C) -> Option<Measurement>,
    ) -> Self {
        Self::new(MetricInfo::derived(name, label, unit, Better::Higher), read)
    }

    /// A quantity of which less is better.
    pub const fn lower(
        name: &'static str,
        label: &'static str,
        unit: Unit,
        read: fn(&C) -> Option<Measurement>,
    ) -> Self {
        Self::new(MetricInfo::derived(name, label, unit, Better::Lower), read)
    }

    /// A fact that is neither good nor bad.
    pub const fn fact(
        name: &'static str,
        label: &'static str,
        unit: Unit,
        read: fn(&C) -> Option<Measurement>,
    ) -> Self {
        Self::new(MetricInfo::derived(name, label, unit, Better::Neither), read)
    }

    /// Two runs are compared by it.
    pub const fn compared(mut self) -> Self {
        self.info.is_compared = true;
        self
    }

    /// Where the work of two runs differs, they are compared by this rate instead.
    pub const fn or_by_rate(mut self, rate: &'static str) -> Self {
        self.info.or_by_rate = Some(rate);
        self
    }

    /// The line of a finished cell has it.
    pub const fn headline(mut self) -> Self {
        self.info.is_headline = true;
        self
    }

    /// The table of cells leaves it to programs.
    pub const fn for_programs(mut self) -> Self {
        self.info.in_table = false;
        self
    }

    /// It may be below zero.
    pub const fn signed(mut self) -> Self {
        self.info.is_signed = true;
        self
    }

    /// Its value and repeats; `None` when the cell does not have it, or not as a number that it can be.
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
