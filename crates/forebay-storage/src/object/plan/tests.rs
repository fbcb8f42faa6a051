//! Blocks, budgets and versions, without requests.

use super::*;

fn parts(reads: &[(&str, Range<u64>)]) -> Reads {
    let reads: Vec<_> =
        reads.iter().map(|(path, range)| NextRead { path: path.into(), range: Some(range.clone()) }).collect();
    Box::new(reads.into_iter())
}

fn wholes(n: usize) -> Reads {
    Box::new((0..n).map(|n| NextRead { path: n.to_string().into(), range: None }))
}

fn answer(len: usize, etag: &str) -> Result<Answer> {
    let mut buffer = Buffer::default();
    buffer.fill_from(&(0..len).map(|n| n as u8).collect::<Vec<_>>());
    Ok(Answer { buffer, etag: Some(etag.to_owned()) })
}

fn requested(plan: &mut Plan, limit: usize) -> Vec<(String, Option<Range<u64>>)> {
    let name = |request: Request| (request.path.to_str().unwrap().to_owned(), request.range);
    plan.go_on(limit).into_iter().map(name).collect()
}

#[test]
fn parts_that_touch_are_requested_together_also_if_other_objects_lie_between() {
    let reads = [("a", 0..10), ("b", 0..10), ("a", 10..30), ("b", 10..20), ("a", 40..50)];
    let mut plan = Plan::new(parts(&reads), 1_000, 8);
    let found = requested(&mut plan, 8);
    let wanted = [("a", 0..30), ("b", 0..20), ("a", 40..50)];
    assert_eq!(found, wanted.map(|(path, range)| (path.to_owned(), Some(range))));
    plan.arrived(0, answer(30, "1"));
    plan.arrived(2, answer(10, "1"));
    let mut into = Buffer::default();
    assert!(matches!(plan.part(Path::new("a"), 5..20, &mut into), Found::Now(Ok(_))));
    assert_eq!(into.as_slice(), (5..20).collect::<Vec<u8>>());
    assert!(matches!(plan.part(Path::new("b"), 0..10, &mut into), Found::Later));
    assert!(matches!(plan.part(Path::new("a"), 40..50, &mut into), Found::Now(Ok(_))));
    assert_eq!(plan.reserved, 50, "what is left of a block counts until all of it is taken");
}

#[test]
fn a_read_over_the_border_of_two_blocks_finds_both() {
    let at = BLOCK - 10;
    let mut plan = Plan::new(parts(&[("a", 0..at), ("a", at..at + 20), ("a", at + 20..at + 30)]), BLOCK * 2, 8);
    assert_eq!(requested(&mut plan, 8).len(), 2);
    plan.arrived(0, answer(at as usize, "1"));
    let mut into = Buffer::default();
    assert!(matches!(plan.part(Path::new("a"), at - 1..at + 5, &mut into), Found::Later));
    plan.arrived(1, answer(30, "1"));
    assert!(matches!(plan.part(Path::new("a"), at - 1..at + 2, &mut into), Found::Now(Ok(_))));
    assert_eq!(into.as_slice(), [(at - 1) as u8, 0, 1]);
}

#[test]
fn the_budget_limits_what_is_planned_and_taking_frees_it() {
    let mut plan = Plan::new(wholes(1_000), 4 * FIRST_GUESS, 8);
    assert_eq!(requested(&mut plan, 1_000).len(), 4);
    plan.arrived(0, answer(1_000, "1"));
    assert_eq!(requested(&mut plan, 1_000).len(), 262, "objects of this size fill the budget");
    let mut into = Buffer::default();
    assert!(matches!(plan.whole(Path::new("0"), &mut into), Found::Now(Ok(_))));
    assert_eq!(into.len(), 1_000);
}

#[test]
fn a_read_that_is_not_planned_yet_is_planned_and_one_that_was_never_announced_is_not() {
    let mut plan = Plan::new(wholes(100), 1, 3);
    assert_eq!(requested(&mut plan, 100), [("0".to_owned(), None)]);
    let mut into = Buffer::default();
    assert!(matches!(plan.whole(Path::new("1"), &mut into), Found::Later));
    assert_eq!(requested(&mut plan, 100), [("1".to_owned(), None)]);
    assert!(matches!(plan.whole(Path::new("never"), &mut into), Found::Nothing));
    assert_eq!(requested(&mut plan, 100).len(), 2, "as many as may come out of order are planned");
}

#[test]
fn what_no_reader_takes_is_given_up() {
    let mut plan = Plan::new(wholes(100), 1_000, 10);
    let mut into = Buffer::default();
    let mut taken = 0;
    for n in 0..100 {
        for request in plan.go_on(8) {
            plan.arrived(request.id, answer(100, "1"));
        }
        if n % 2 == 0 && matches!(plan.whole(Path::new(&n.to_string()), &mut into), Found::Now(_)) {
            taken += 1;
        }
    }
    assert_eq!(taken, 50, "readers of every second object are not held up by the others");
}

#[test]
fn an_object_of_two_versions_is_an_error() {
    let mut plan = Plan::new(parts(&[("a", 0..10), ("a", 20..30)]), 1_000, 8);
    assert_eq!(requested(&mut plan, 8).len(), 2);
    plan.arrived(0, answer(10, "1"));
    plan.arrived(1, answer(10, "2"));
    let mut into = Buffer::default();
    let Found::Now(Err(error)) = plan.part(Path::new("a"), 20..30, &mut into) else { panic!("an error") };
    assert_eq!(error.to_string(), "reading a: it changed since it was opened");
}
