//! Sentences that differ in their numbers alone, said once: "24 steps are few" and "3 steps are few" are "3 to 24 steps are few".

/// Sentences that are alike, with the numbers of each.
struct Alike<'a> {
    words: Vec<&'a str>,
    numbers: Vec<Vec<&'a str>>,
}

/// Every kind of sentence once, as it was first met, with how many there are of it.
pub(super) fn merged<'a>(sentences: impl Iterator<Item = &'a str>) -> Vec<(String, u64)> {
    let mut kinds: Vec<Alike<'a>> = Vec::new();
    for sentence in sentences {
        let (words, numbers) = apart(sentence);
        match kinds.iter_mut().find(|kind| kind.words == words) {
            Some(kind) => kind.numbers.push(numbers),
            None => kinds.push(Alike { words, numbers: vec![numbers] }),
        }
    }
    kinds.iter().map(|kind| (kind.said(), kind.numbers.len() as u64)).collect()
}

impl Alike<'_> {
    fn said(&self) -> String {
        let mut said = String::new();
        for (i, words) in self.words.iter().enumerate() {
            said.push_str(words);
            if i + 1 < self.words.len() {
                said.push_str(&self.range(i));
            }
        }
        said
    }

    /// The numbers at a place: the one, or the least and the greatest.
    fn range(&self, place: usize) -> String {
        let value = |text: &&str| text.replace(',', "").parse::<f64>().unwrap_or(0.0);
        let all = || self.numbers.iter().map(|numbers| numbers[place]);
        let least = all().min_by(|a, b| value(a).total_cmp(&value(b))).unwrap_or_default();
        let greatest = all().max_by(|a, b| value(a).total_cmp(&value(b))).unwrap_or_default();
        if value(&least) == value(&greatest) { least.to_owned() } else { format!("{least} to {greatest}") }
    }
}

/// A sentence's words and its numbers; there is one more of the former.
fn apart(sentence: &str) -> (Vec<&str>, Vec<&str>) {
    let (mut words, mut numbers, mut rest) = (Vec::new(), Vec::new(), sentence);
    while let Some(start) = rest.find(|letter: char| letter.is_ascii_digit()) {
        let of = &rest[start..];
        let end =
            of.find(|letter: char| !(letter.is_ascii_digit() || letter == '.' || letter == ',')).unwrap_or(of.len());
        let number = of[..end].trim_end_matches(['.', ',']);
        words.push(&rest[..start]);
        numbers.push(number);
        rest = &of[number.len()..];
    }
    words.push(rest);
    (words, numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_that_differ_in_numbers_are_said_once_with_the_least_and_the_greatest() {
        let all = ["24 steps are few of 1,024.", "3 steps are few of 1,024.", "it fits", "6 steps are few of 1,024."];
        assert_eq!(
            merged(all.into_iter()),
            [("3 to 24 steps are few of 1,024.".to_owned(), 3), ("it fits".to_owned(), 1)]
        );
        assert_eq!(merged(["1.5 s, 2"].into_iter()), [("1.5 s, 2".to_owned(), 1)]);
        assert_eq!(merged([].into_iter()), []);
    }
}
