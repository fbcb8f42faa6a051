//! Suggestions for misspelt names.

/// The candidate nearest to `word`, if at most a third of the longer word's letters differ. Swapped neighbours count as
/// one difference. Ties go to the candidate that sorts first.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let with_distance = candidates.into_iter().map(|candidate| (strsim::osa_distance(word, candidate), candidate));
    let (distance, candidate) = with_distance.min()?;
    let longest = word.chars().count().max(candidate.chars().count());
    (distance * 3 <= longest).then_some(candidate)
}

/// A hint that names the nearest candidate, if one is near enough.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, candidates).map(|near| format!("did you mean `{near}`?"))
}

/// A hint that names the nearest candidate, or all of them when none is near; `None` without candidates.
pub fn suggest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let all: Vec<&str> = candidates.into_iter().collect();
    let list = || (!all.is_empty()).then(|| format!("expected one of {}", all.join(", ")));
    did_you_mean(word, all.iter().copied()).or_else(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_a_word_far_from_all_is_not_guessed_at() {
        let names = ["threads", "batch", "tier", "num_files_train"];
        assert_eq!(nearest("thread", names), Some("threads"));
        assert_eq!(nearest("teir", names), Some("tier"));
        assert_eq!(nearest("num_file_train", names), Some("num_files_train"));
        assert_eq!(nearest("colour", names), None);
        assert_eq!(nearest("npx", ["npz", "npy"]), Some("npy"));
    }

    #[test]
    fn a_hint_names_one_or_all() {
        let names = ["threads", "batch", "tier"];
        assert_eq!(suggest("colour", names).unwrap(), "expected one of threads, batch, tier");
        assert_eq!(suggest("bach", names).unwrap(), "did you mean `batch`?");
        assert_eq!(suggest("x", []), None);
    }
}
