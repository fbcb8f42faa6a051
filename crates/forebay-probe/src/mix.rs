//! A mix of request sizes in the syntax of fio's `bssplit`: `4K/25:64K/75`.

use std::fmt;
use std::str::FromStr;

use forebay_units::random::Random;

/// Sizes are in binary units, as in fio: 4K is 4,096 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mix {
    /// Size in bytes and percentage; the percentages sum to 100.
    parts: Vec<(u64, u64)>,
}

const SIZE_MAX: u64 = 1 << 30;

impl Mix {
    /// Request sizes of an image dataset, from a published fio study.
    pub fn of_images() -> Self {
        let parts = [(2, 1), (4, 2), (8, 4), (16, 8), (32, 13), (64, 38), (128, 33), (256, 1)];
        Self { parts: parts.map(|(kib, share)| (kib << 10, share)).to_vec() }
    }

    pub(super) fn of_one(size: u64) -> Self {
        Self { parts: vec![(size, 100)] }
    }

    pub(super) fn sizes(&self) -> impl Iterator<Item = u64> + '_ {
        self.parts.iter().map(|(size, _)| *size)
    }

    pub(super) fn one_size(&self) -> Option<u64> {
        if let [(size, _)] = self.parts[..] { Some(size) } else { None }
    }

    pub(super) fn largest(&self) -> u64 {
        self.sizes().max().expect("a mix has at least one size")
    }

    pub(super) fn draw(&self, random: &mut Random) -> u64 {
        let mut place = random.below(100);
        for (size, share) in &self.parts {
            match place.checked_sub(*share) {
                Some(rest) => place = rest,
                None => return *size,
            }
        }
        self.largest()
    }

    /// Rounds every size up to a multiple of `unit`.
    pub(super) fn aligned(&self, unit: u64) -> Self {
        let mut parts: Vec<(u64, u64)> = Vec::new();
        for (size, share) in &self.parts {
            let size = size.next_multiple_of(unit);
            match parts.iter_mut().find(|part| part.0 == size) {
                Some(part) => part.1 += share,
                None => parts.push((size, *share)),
            }
        }
        Self { parts }
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (size, share)) in self.parts.iter().enumerate() {
            let colon = if number > 0 { ":" } else { "" };
            write!(f, "{colon}{}/{share}", name_of(*size))?;
        }
        Ok(())
    }
}

fn name_of(size: u64) -> String {
    match size {
        _ if size.is_multiple_of(1 << 20) => format!("{}M", size >> 20),
        _ if size.is_multiple_of(1 << 10) => format!("{}K", size >> 10),
        _ => size.to_string(),
    }
}

impl FromStr for Mix {
    type Err = String;

    /// Reads "4K/25:64K/75". Sizes without a percentage share the rest equally, as in fio.
    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<(u64, Option<u64>)> = text.split(':').map(part).collect::<Result<_, _>>()?;
        let given: u64 = parts.iter().filter_map(|(_, share)| *share).sum();
        let n_open = parts.iter().filter(|(_, share)| share.is_none()).count() as u64;
        if given > 100 || (n_open == 0 && given != 100) {
            return Err(format!("the percentages sum to {given}, not 100"));
        }
        let rest = 100 - given;
        let mut nth_open = 0;
        let parts = parts.into_iter().map(|(size, share)| {
            let share = share.unwrap_or_else(|| {
                nth_open += 1;
                rest * nth_open / n_open - rest * (nth_open - 1) / n_open
            });
            (size, share)
        });
        let parts: Vec<(u64, u64)> = parts.filter(|(_, share)| *share > 0).collect();
        if parts.is_empty() { Err("no size has a percentage above 0".to_owned()) } else { Ok(Self { parts }) }
    }
}

fn part(text: &str) -> Result<(u64, Option<u64>), String> {
    let (size, share) = text.split_once('/').unwrap_or((text, ""));
    let share = match share {
        "" => None,
        digits => Some(digits.parse().ok().filter(|n| *n <= 100).ok_or_else(|| wrong(text))?),
    };
    Ok((size_of(size).ok_or_else(|| wrong(text))?, share))
}

fn wrong(part: &str) -> String {
    format!("\"{part}\" is not a SIZE/PERCENT such as 64K/38; the sizes are multiples of 512 bytes up to 1 GiB")
}

fn size_of(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let letters = lower.trim_start_matches(|c: char| c.is_ascii_digit());
    let shift = match letters {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        _ => return None,
    };
    let number: u64 = lower[..lower.len() - letters.len()].parse().ok()?;
    let size = number.checked_mul(1 << shift)?;
    (size > 0 && size % 512 == 0 && size <= SIZE_MAX).then_some(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_is_read_as_fio_reads_it() {
        let text = "2K/1:4K/2:8K/4:16K/8:32K/13:64K/38:128K/33:256K/1";
        assert_eq!(text.parse(), Ok(Mix::of_images()));
        assert_eq!(Mix::of_images().to_string(), text);
        assert_eq!("4k/50:1m/".parse::<Mix>().unwrap().to_string(), "4K/50:1M/50");
        assert_eq!("512/:4K/:8K/".parse::<Mix>().unwrap().to_string(), "512/33:4K/33:8K/34");
        assert_eq!("64K".parse::<Mix>().unwrap().to_string(), "64K/100");
    }

    #[test]
    fn a_mix_without_sense_is_refused_with_the_part() {
        let error = |text: &str| text.parse::<Mix>().unwrap_err();
        assert_eq!(error("4K/50:8K/60"), "the percentages sum to 110, not 100");
        assert_eq!(error("4K/50"), "the percentages sum to 50, not 100");
        for part in ["4K/x", "/50", "4Q/50", "1000/50", "0/50", "2G/50", "4K/101", ""] {
            assert!(error(part).starts_with(&format!("\"{part}\" is not a SIZE/PERCENT")), "{part}");
        }
    }

    #[test]
    fn sizes_are_drawn_by_their_shares() {
        let mix: Mix = "4K/25:64K/75".parse().unwrap();
        let mut random = forebay_measure::random(0, 0);
        let small = (0..10_000).filter(|_| mix.draw(&mut random) == 4096).count();
        assert!((2_300..2_700).contains(&small), "{small} of 10,000; 2,500 are expected");
        assert_eq!(mix.largest(), 65_536);
    }

    #[test]
    fn rounding_up_keeps_the_shares() {
        let mix: Mix = "512/10:2K/20:4K/30:8K/40".parse().unwrap();
        assert_eq!(mix.aligned(4096).to_string(), "4K/60:8K/40");
    }
}
