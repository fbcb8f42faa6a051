//! A YAML or TOML text as a tree, before its keys are interpreted.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::{Problem, syntax};

/// A value of a file, with the keys of tables in their order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Tree {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Tree>),
    Table(Vec<(String, Tree)>),
}

impl Tree {
    /// The kind of value, for "expected a number, found a list".
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "a boolean",
            Self::Int(_) | Self::Float(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }

    /// The value as written; for a list or table, the kind.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Bool(value) => value.to_string(),
            Self::Int(number) => number.to_string(),
            Self::Float(number) => number.to_string(),
            Self::Text(text) => format!("\"{text}\""),
            Self::Null | Self::List(_) | Self::Table(_) => self.kind().to_owned(),
        }
    }

    /// Sets the value at a path of keys, creating tables as needed.
    pub(crate) fn put(&mut self, path: &[&str], value: Self) {
        let Some((first, rest)) = path.split_first() else {
            *self = value;
            return;
        };
        if !matches!(self, Self::Table(_)) {
            *self = Self::Table(Vec::new());
        }
        let Self::Table(entries) = self else { return };
        let at = entries.iter().position(|(key, _)| key == first).unwrap_or_else(|| {
            entries.push(((*first).to_owned(), Self::Null));
            entries.len() - 1
        });
        entries[at].1.put(rest, value);
    }

    /// Takes out the value at a path of keys.
    pub(super) fn remove(&mut self, path: &[&str]) -> Option<Self> {
        let (first, rest) = path.split_first()?;
        let Self::Table(entries) = self else { return None };
        let at = entries.iter().position(|(key, _)| key == first)?;
        if rest.is_empty() { Some(entries.remove(at).1) } else { entries[at].1.remove(rest) }
    }

    /// The value at a path of keys.
    pub(super) fn get(&self, path: &[&str]) -> Option<&Self> {
        let Some((first, rest)) = path.split_first() else { return Some(self) };
        let Self::Table(entries) = self else { return None };
        entries.iter().find(|(key, _)| key == first)?.1.get(rest)
    }

    /// Whether there is a value at a path of keys.
    pub(super) fn has(&self, path: &[&str]) -> bool {
        self.get(path).is_some()
    }

    /// Texts with interpolations, with their keys.
    pub(crate) fn interpolations(&self, path: &str, found: &mut Vec<(String, String)>) {
        match self {
            Self::Text(text) if text.contains("${") => found.push((path.to_owned(), text.clone())),
            Self::List(items) => items.iter().for_each(|item| item.interpolations(path, found)),
            Self::Table(entries) => {
                for (key, value) in entries {
                    let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    value.interpolations(&below, found);
                }
            }
            _ => {}
        }
    }
}

/// Parses YAML or TOML, recognised by the first significant line.
pub(super) fn parse(text: &str) -> Result<Tree, Problem> {
    if is_toml(text) { toml_tree(text) } else { yaml_tree(text) }
}

pub(super) fn is_toml(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let Some(first) = lines.next() else { return false };
    let key = first.split(['=', ':']).next().unwrap_or_default();
    let is_assignment = first[key.len()..].starts_with('=');
    first.starts_with('[') || is_assignment
}

fn toml_tree(text: &str) -> Result<Tree, Problem> {
    toml::from_str(text).map_err(|error| syntax::of_toml(&error, text))
}

pub(super) fn yaml_tree(text: &str) -> Result<Tree, Problem> {
    serde_saphyr::from_str(text).map_err(|error| syntax::of_yaml(&error))
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyTree)
    }
}

struct AnyTree;

impl<'de> Visitor<'de> for AnyTree {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        Tree::deserialize(deserializer)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Int(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Tree, E> {
        Ok(i64::try_from(value).map_or(Tree::Float(value as f64), Tree::Int))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Tree, E> {
        Ok(Tree::Float(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Tree, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Tree::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
        let mut entries: Vec<(String, Tree)> = Vec::new();
        while let Some((key, value)) = map.next_entry::<String, Tree>()? {
            entries.push((key, value));
        }
        Ok(Tree::Table(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(entries: &[(&str, Tree)]) -> Tree {
        Tree::Table(entries.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect())
    }

    #[test]
    fn both_notations_give_the_same_tree() {
        let inner = table(&[("b", Tree::Int(3)), ("c", Tree::Float(0.5)), ("d", Tree::List(vec![Tree::Int(1)]))]);
        let wanted = table(&[("a", inner)]);
        assert_eq!(parse("# why\na:\n  b: 3\n  c: 0.5\n  d: [1]\n").unwrap(), wanted);
        assert_eq!(parse("# why\n[a]\nb = 3\nc = 0.5\nd = [1]\n").unwrap(), wanted);
        assert_eq!(parse("a.b = 3\na.c = 0.5\na.d = [1]").unwrap(), wanted);
    }

    #[test]
    fn what_cannot_be_read_is_told_with_its_place() {
        let problem = parse("[a]\nb = \n").unwrap_err();
        assert!(problem.key.starts_with("line 2, column"), "{problem}");
        let problem = parse("a:\n  b: [1, 2\nc: 3\n").unwrap_err();
        assert!(problem.key.starts_with("line "), "{problem}");
        for (text, wanted) in [
            ("a: 1\na: 2\n", "line 2, column 1: duplicate key \"a\""),
            ("[b]\na = 1\na = 2\n", "line 3, column 1: duplicate key \"a\""),
            ("a:\n\tb: 1\n", "line 2, column 2: tab in the indentation; YAML allows only spaces"),
            (
                "a:\n  b: 1\n   c: 2\n",
                "line 3, column 5: unexpected key; all keys of a table need the same indentation",
            ),
            ("a: {b: 1\n", "line 1, column 4: unclosed bracket"),
            ("a: \"b\n", "line 2, column 1: unclosed quote"),
            ("a: .nan\n", "line 1, column 4: .nan is not a finite number"),
            ("a: *b\n", "line 1, column 4: alias (*name) without an earlier anchor (&name)"),
            ("a: 1\n---\na: 2\n", "line 3, column 1: second document; a file may hold only one workload"),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), wanted, "{text}");
        }
    }

    #[test]
    fn a_path_is_made_where_it_is_missing() {
        let mut tree = table(&[("a", Tree::Int(1))]);
        tree.put(&["b", "c"], Tree::Bool(true));
        tree.put(&["a"], Tree::Int(2));
        assert_eq!(tree, table(&[("a", Tree::Int(2)), ("b", table(&[("c", Tree::Bool(true))]))]));
    }
}
