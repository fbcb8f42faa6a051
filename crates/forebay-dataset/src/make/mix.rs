//! File sizes by a histogram: how many per cent of the files are in each power of two.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::exact::exp2;

/// Sizes at which a bin may begin: a JPEG's headers alone take 623 bytes.
const STARTS: (u64, u64) = (1 << 10, 8 << 20);

/// Bins of file sizes, such as `32K/13:64K/87`: 13 % of the files have 32 to 64 KiB, the others 64 to 128 KiB.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SizeMix {
    /// The size at which a bin begins, and its percentage; in order of size.
    bins: Vec<(u64, u32)>,
}

impl SizeMix {
    /// The size at a quantile. Within a bin, the logarithms of the sizes are spread evenly.
    pub(super) fn size_at(&self, quantile: f64) -> u64 {
        let mut left = 100.0 * quantile;
        for &(from, percent) in &self.bins {
            let percent = f64::from(percent);
            if left < percent {
                return (from as f64 * exp2(left / percent)) as u64;
            }
            left -= percent;
        }
        self.bins.last().map_or(0, |(from, _)| 2 * from - 1)
    }
}

impl FromStr for SizeMix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bins = text.split(':').map(bin).collect::<Result<Vec<_>, _>>()?;
        if !bins.is_sorted_by(|a, b| a.0 < b.0) {
            return Err("give the sizes in increasing order, each once".to_owned());
        }
        match bins.iter().map(|(_, percent)| percent).sum::<u32>() {
            100 => Ok(Self { bins }),
            sum => Err(format!("the percentages make {sum}, not 100")),
        }
    }
}

fn bin(text: &str) -> Result<(u64, u32), String> {
    let wrong = || format!("\"{text}\" is not a size and a percentage, such as 64K/38");
    let (size, percent) = text.split_once('/').ok_or_else(wrong)?;
    let number = |digits: &str, unit: u64| digits.parse::<u64>().ok()?.checked_mul(unit);
    let from = match size.strip_suffix(['K', 'k']) {
        Some(digits) => number(digits, 1 << 10),
        None => number(size.strip_suffix(['M', 'm']).ok_or_else(wrong)?, 1 << 20),
    };
    let from = from.ok_or_else(wrong)?;
    if !from.is_power_of_two() || !(STARTS.0..=STARTS.1).contains(&from) {
        return Err(format!("\"{size}\": give powers of two from 1K to 8M"));
    }
    let percent = percent.parse().ok().filter(|percent| (1..=100).contains(percent)).ok_or_else(wrong)?;
    Ok((from, percent))
}

impl fmt::Display for SizeMix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (from, percent)) in self.bins.iter().enumerate() {
            let between = if i == 0 { "" } else { ":" };
            match from >> 20 {
                0 => write!(f, "{between}{}K/{percent}", from >> 10)?,
                n => write!(f, "{between}{n}M/{percent}")?,
            }
        }
        Ok(())
    }
}

impl TryFrom<String> for SizeMix {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<SizeMix> for String {
    fn from(mix: SizeMix) -> Self {
        mix.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the source of the study nelson-2022.
    const IMAGENET: &str = "2K/1:4K/2:8K/4:16K/8:32K/13:64K/38:128K/33:256K/1";

    #[test]
    fn sizes_are_those_of_the_bins() {
        let mix: SizeMix = IMAGENET.parse().unwrap();
        assert_eq!(mix.to_string(), IMAGENET);
        let sizes: Vec<u64> = (0..10_000).map(|i| mix.size_at((f64::from(i) + 0.5) / 10_000.0)).collect();
        let within = |from: u64, to: u64| sizes.iter().filter(|size| (from..to).contains(size)).count();
        assert_eq!((within(0, 2048), within(0, 32 << 10), within(64 << 10, 256 << 10)), (0, 1_500, 7_100));
        assert_eq!(within(256 << 10, 512 << 10), 100);
        assert!(sizes.is_sorted());
        assert_eq!(mix.size_at(1.0), (512 << 10) - 1);
    }

    #[test]
    fn what_is_no_histogram_is_refused() {
        let said = |text: &str| text.parse::<SizeMix>().unwrap_err();
        assert_eq!(said("64K/38:128K/33"), "the percentages make 71, not 100");
        assert_eq!(said("128K/50:64K/50"), "give the sizes in increasing order, each once");
        assert_eq!(said("64K/50:64K/50"), "give the sizes in increasing order, each once");
        for wrong in ["", "64K", "64K/x", "64/100", "64K/0:128K/100", "K/100", "99999999999999999999K/100"] {
            assert!(said(wrong).contains("is not a size and a percentage"), "{wrong}: {}", said(wrong));
        }
        for wrong in ["512K/1:100K/99", "16M/100", "3K/100"] {
            assert!(said(wrong).contains("give powers of two"), "{wrong}: {}", said(wrong));
        }
    }
}
