//! The size distribution: a histogram by powers of two, and the fio option that reproduces it.

use forebay_record::Bucket;

/// fio's smallest block is 512 bytes; smaller sizes count as that.
const BLOCK_MIN_LOG2: u32 = 9;

/// Counts sizes by powers of two, from the smallest bucket that is not empty to the largest.
pub(crate) fn histogram(sizes: &[u64]) -> Vec<Bucket> {
    let floor = |size: u64| size.checked_ilog2().map_or(0, |log| 1u64 << log);
    let (Some(low), Some(high)) = (sizes.iter().min(), sizes.iter().max()) else { return Vec::new() };
    let starts = std::iter::successors(Some(floor(*low)), |from: &u64| from.checked_mul(2).map(|next| next.max(1)));
    let mut buckets: Vec<Bucket> =
        starts.take_while(|&from| from <= floor(*high)).map(|from| Bucket { from, n_samples: 0, bytes: 0 }).collect();
    for &size in sizes {
        let at = buckets.binary_search_by_key(&floor(size), |bucket| bucket.from);
        let bucket = &mut buckets[at.expect("every size between the extremes has a bucket")];
        bucket.n_samples += 1;
        bucket.bytes += size;
    }
    buckets
}

/// The value of fio's `bssplit` that reads blocks of about these sizes: `64K/38:128K/62`.
///
/// Every size is rounded to the nearest power of two on a logarithmic scale, which keeps the total bytes about right;
/// percentages are whole and add up to 100. `None` without sizes.
pub(crate) fn bssplit(sizes: &[u64]) -> Option<String> {
    let mut counts = [0u64; 64];
    for &size in sizes {
        counts[nearest_log2(size) as usize] += 1;
    }
    let shares = percentages(&counts, sizes.len() as u64)?;
    let part = |(log, share): (usize, &u64)| (*share > 0).then(|| format!("{}/{share}", block_name(log as u32)));
    Some(shares.iter().enumerate().filter_map(part).collect::<Vec<_>>().join(":"))
}

/// The exponent of the nearest power of two: size² is compared with 2·4^k, which is exact.
fn nearest_log2(size: u64) -> u32 {
    let log = size.max(1).ilog2();
    let up = u128::from(size) * u128::from(size) >= 2u128 << (2 * log);
    (log + u32::from(up)).clamp(BLOCK_MIN_LOG2, 63)
}

/// Whole percentages that add up to 100, by largest remainder.
fn percentages(counts: &[u64], total: u64) -> Option<Vec<u64>> {
    if total == 0 {
        return None;
    }
    let mut shares: Vec<u64> = counts.iter().map(|count| count * 100 / total).collect();
    let mut order: Vec<usize> = (0..counts.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(counts[at] * 100 % total));
    let missing = 100 - shares.iter().sum::<u64>() as usize;
    order.into_iter().take(missing).for_each(|at| shares[at] += 1);
    Some(shares)
}

fn block_name(log: u32) -> String {
    match log {
        0..10 => format!("{}", 1u64 << log),
        10..20 => format!("{}K", 1u64 << (log - 10)),
        20..30 => format!("{}M", 1u64 << (log - 20)),
        _ => format!("{}G", 1u64 << (log - 30)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_fall_into_powers_of_two() {
        let buckets = histogram(&[1024, 1500, 2047, 2048, 9000]);
        let found: Vec<_> = buckets.iter().map(|bucket| (bucket.from, bucket.n_samples, bucket.bytes)).collect();
        assert_eq!(found, [(1024, 3, 4571), (2048, 1, 2048), (4096, 0, 0), (8192, 1, 9000)]);
        assert_eq!(histogram(&[]), []);
        assert_eq!(histogram(&[0, 3]).len(), 3);
        assert_eq!(histogram(&[u64::MAX]).len(), 1);
    }

    #[test]
    fn bssplit_names_the_nearest_blocks_and_makes_100() {
        assert_eq!(bssplit(&[]), None);
        assert_eq!(bssplit(&[100]).as_deref(), Some("512/100"));
        // 92,681 is just below √2·64 Ki, 92,682 just above.
        assert_eq!(bssplit(&[92_681, 92_682, 70_000]).as_deref(), Some("64K/67:128K/33"));
        assert_eq!(bssplit(&[1000, 4000, 1_000_000]).as_deref(), Some("1K/34:4K/33:1M/33"));
    }

    proptest::proptest! {
        #[test]
        fn percentages_always_make_100(sizes in proptest::collection::vec(0u64..1 << 40, 1..200)) {
            let line = bssplit(&sizes).unwrap();
            let sum: u64 = line.split(':').map(|part| part.split_once('/').unwrap().1.parse::<u64>().unwrap()).sum();
            proptest::prop_assert_eq!(sum, 100);
            let counted: u64 = histogram(&sizes).iter().map(|bucket| bucket.n_samples).sum();
            proptest::prop_assert_eq!(counted, sizes.len() as u64);
        }
    }
}
