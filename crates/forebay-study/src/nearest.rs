//! The word that was probably meant.

/// The candidate nearest to `word`, when it is near enough to have been meant: a third of its letters may be wrong.
pub(super) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let with_distance = candidates.into_iter().map(|candidate| (distance(word, candidate), candidate));
    let (best, candidate) = with_distance.min_by_key(|(distance, _)| *distance)?;
    let longest = word.chars().count().max(candidate.chars().count());
    (best * 3 <= longest).then_some(candidate)
}

/// A hint that names the nearest candidate, where one is near.
pub(super) fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, candidates).map(|near| format!("did you mean \"{near}\"?"))
}

/// A hint that names the nearest candidate, or all of them when none is near.
pub(super) fn suggest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str> + Clone) -> Option<String> {
    if let Some(hint) = did_you_mean(word, candidates.clone()) {
        return Some(hint);
    }
    let all: Vec<&str> = candidates.into_iter().collect();
    (!all.is_empty()).then(|| format!("it may be {}", all.join(", ")))
}

/// How many letters must be put in, taken out or changed, or neighbours swapped, to turn one word into the other.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0usize; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = match (i, j) {
                (0, n) | (n, 0) => n,
                _ => {
                    let changed = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                    let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                    let by_swap = if swapped { rows[i - 2][j - 2] + 1 } else { usize::MAX };
                    changed.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1).min(by_swap)
                }
            };
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_changes_insertions_and_swaps() {
        for (a, b, wanted) in [("", "", 0), ("threads", "threads", 0), ("thread", "threads", 1), ("tier", "teir", 1)] {
            assert_eq!(distance(a, b), wanted, "{a} {b}");
            assert_eq!(distance(b, a), wanted, "{b} {a}");
        }
        assert_eq!(distance("batch", "match"), 1);
        assert_eq!(distance("cold", ""), 4);
    }

    #[test]
    fn a_word_far_from_all_is_not_guessed_at() {
        let names = ["threads", "batch", "tier"];
        assert_eq!(nearest("thread", names), Some("threads"));
        assert_eq!(nearest("teir", names), Some("tier"));
        assert_eq!(nearest("colour", names), None);
        assert_eq!(suggest("colour", names).unwrap(), "it may be threads, batch, tier");
        assert_eq!(suggest("bach", names).unwrap(), "did you mean \"batch\"?");
        assert_eq!(suggest("x", []), None);
    }
}
