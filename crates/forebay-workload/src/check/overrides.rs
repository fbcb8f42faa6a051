//! `++workload.a.b=c`: overrides that replace a value of the file or add one.

use super::Problem;
use super::spelling::modern;
use super::tree::{Tree, yaml_tree};

/// Applies the overrides to the tree in order.
pub(super) fn apply(tree: &mut Tree, overrides: &[String], problems: &mut Vec<Problem>) {
    for text in overrides {
        match parse(text) {
            Ok((path, value)) => tree.put(&path, value),
            Err(reason) => problems.push(Problem { key: text.clone(), text: reason }),
        }
    }
}

fn parse(text: &str) -> Result<(Vec<&str>, Tree), String> {
    let Some((left, right)) = text.split_once('=') else {
        return Err("expected an override of the form ++workload.section.key=value".to_owned());
    };
    let path = left.trim().trim_start_matches('+');
    let Some(path) = path.strip_prefix("workload.") else {
        return Err("an override must begin with ++workload.".to_owned());
    };
    let path: Vec<&str> = path.split('.').collect();
    if path.iter().any(|part| part.is_empty()) {
        return Err("empty name between two dots".to_owned());
    }
    let unreadable = |problem: Problem| format!("invalid value: {}", problem.text);
    let value = match right.trim() {
        "" => Tree::Text(String::new()),
        // Hydra's tables need no space after a colon, YAML's do.
        value if value.starts_with('{') && !value.contains(['"', '\'', '/']) => {
            yaml_tree(&value.replace(':', ": ")).map_err(unreadable)?
        }
        value => yaml_tree(value).map_err(unreadable)?,
    };
    Ok((modern(&path), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(overrides: &[&str]) -> (Tree, Vec<Problem>) {
        let (mut tree, mut problems) = (Tree::Table(Vec::new()), Vec::new());
        let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
        apply(&mut tree, &overrides, &mut problems);
        (tree, problems)
    }

    #[test]
    fn all_of_hydras_spellings_mean_the_same_and_the_last_one_holds() {
        let (tree, problems) = applied(&["++workload.a.b=1", "+workload.a.b=2", "workload.a.b=[3,4]"]);
        assert_eq!(problems, []);
        let list = Tree::List(vec![Tree::Int(3), Tree::Int(4)]);
        assert_eq!(tree, Tree::Table(vec![("a".to_owned(), Tree::Table(vec![("b".to_owned(), list)]))]));
    }

    #[test]
    fn values_are_yamls() {
        let (tree, _) =
            applied(&["++workload.a=True", "++workload.b=1e-3", "++workload.c=data/x", "++workload.d={x: 1}"]);
        let Tree::Table(entries) = tree else { panic!("a table") };
        let values: Vec<Tree> = entries.into_iter().map(|(_, value)| value).collect();
        assert_eq!(values[..3], [Tree::Bool(true), Tree::Float(1e-3), Tree::Text("data/x".to_owned())]);
        assert_eq!(values[3], Tree::Table(vec![("x".to_owned(), Tree::Int(1))]));
    }

    #[test]
    fn one_that_is_spelt_wrong_is_named() {
        let (_, problems) = applied(&["++workload.a", "++hydra.run.dir=x", "++workload.a..b=1"]);
        let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(said[0], "++workload.a: expected an override of the form ++workload.section.key=value");
        assert_eq!(said[1], "++hydra.run.dir=x: an override must begin with ++workload.");
        assert_eq!(said[2], "++workload.a..b=1: empty name between two dots");
    }
}
