//! The key that was probably meant.

/// The candidate nearest to a word, where at most a third of the letters differ.
pub(super) fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let best = candidates.iter().map(|candidate| (distance(word, candidate), *candidate)).min()?;
    let longest = word.chars().count().max(best.1.chars().count());
    (best.0 * 3 <= longest).then_some(best.1)
}

/// Letters to put in, take out or change, with neighbours that are swapped counted once.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut two_back: Vec<usize> = Vec::new();
    let mut back: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let changed = back[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = changed.min(back[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(two_back[j - 2] + 1);
            }
            row.push(best);
        }
        two_back = std::mem::replace(&mut back, row);
    }
    back[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_a_strange_word_is_not_guessed_at() {
        let keys = ["format", "file_prefix", "num_files_train"];
        assert_eq!(nearest("fromat", &keys), Some("format"));
        assert_eq!(nearest("num_file_train", &keys), Some("num_files_train"));
        assert_eq!(nearest("colour", &keys), None);
        assert_eq!((distance("tier", "teir"), distance("", "abc"), distance("abc", "")), (1, 3, 3));
    }
}
