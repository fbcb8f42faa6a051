//! Shaped tiers, which anybody may have.

use std::fs;

use super::*;
use crate::Profile;

fn plan(name: &str) -> Plan {
    Plan::new(name, Kind::Shaped)
}

#[test]
fn a_shaped_tier_is_a_folder_that_is_found_by_what_lies_in_it() {
    let place = Place::new();
    let registry = place.registry();
    assert_eq!(registry.names().unwrap(), Vec::<String>::new());
    let raised = registry.up(&plan("lustre"), &mut go_on).unwrap();
    assert_eq!((raised.change, raised.tier.data()), (Change::New, place.path("tiers/lustre/data")));
    let set = raised.tier.data().join("set");
    fs::create_dir(&set).unwrap();
    std::os::unix::fs::symlink(&set, place.path("link")).unwrap();
    for path in [raised.tier.data(), set.join("not there yet"), place.path("link"), set] {
        let found = registry.find(&path).unwrap().unwrap();
        assert_eq!((found.name.as_str(), &found.profile), ("lustre", &Profile::lustre()), "{}", path.display());
    }
    assert_eq!(registry.find(&place.path("tiers/lustre")).unwrap(), None);
    assert_eq!(registry.find(Path::new("/")).unwrap(), None);
    fs::remove_file(place.path("link")).unwrap();
    let removed = registry.down("lustre", &mut go_on).unwrap().unwrap();
    assert_eq!((removed.n_files, removed.data_bytes), (Some(0), Some(0)));
    place.assert_nothing_is_left();
}

#[test]
fn the_innermost_tier_wins() {
    let place = Place::new();
    let registry = place.registry();
    let outer = registry.up(&plan("hdd"), &mut go_on).unwrap().tier;
    let inner_plan = Plan { dir: Some(outer.data()), ..plan("ssd") };
    let inner = registry.up(&inner_plan, &mut go_on).unwrap().tier;
    assert!(inner.data().starts_with(outer.data()));
    assert_eq!(registry.find(&inner.data()).unwrap().unwrap().name, "ssd");
    assert_eq!(registry.find(&outer.data()).unwrap().unwrap().name, "hdd");
    registry.down("ssd", &mut go_on).unwrap().unwrap();
    assert_eq!(names(&outer.data()), Vec::<String>::new(), "the folder in another place is gone too");
}

#[test]
fn a_second_time_changes_nothing_and_other_rates_change_the_profile() {
    let place = Place::new();
    let registry = place.registry();
    let rates = Rates { read_bytes_per_s: Some(50_000_000), write_bytes_per_s: Some(20_000_000), iops: Some(500) };
    let custom = Plan { rates, ..plan("tape") };
    registry.up(&custom, &mut go_on).unwrap();
    let state = fs::read(place.path("tiers/tape/tier.json")).unwrap();
    assert_eq!(registry.up(&custom, &mut go_on).unwrap().change, Change::Nothing);
    assert_eq!(registry.up(&plan("tape"), &mut go_on).unwrap().change, Change::Nothing, "its rates are known");
    assert_eq!(fs::read(place.path("tiers/tape/tier.json")).unwrap(), state);
    let faster = Plan { rates: Rates { read_bytes_per_s: Some(90_000_000), ..Rates::default() }, ..plan("tape") };
    let raised = registry.up(&faster, &mut go_on).unwrap();
    assert_eq!(raised.change, Change::Limits);
    let profile = registry.tier("tape").unwrap().unwrap().profile;
    assert_eq!((profile.read_bytes_per_s, profile.write_bytes_per_s), (90_000_000, 20_000_000));
    assert_eq!(profile.latency_ns, 2_000_000, "the requests per second stay");
}

#[test]
fn what_is_not_asked_for_stays_also_with_the_name_of_a_profile() {
    let place = Place::new();
    let registry = place.registry();
    let rates = Rates { read_bytes_per_s: None, write_bytes_per_s: Some(20_000_000), iops: Some(50) };
    registry.up(&Plan { rates, ..plan("hdd") }, &mut go_on).unwrap();
    assert_eq!(registry.up(&plan("hdd"), &mut go_on).unwrap().change, Change::Nothing);
    let slower = Rates { read_bytes_per_s: Some(30_000_000), ..Rates::default() };
    let tier = registry.up(&Plan { rates: slower, ..plan("hdd") }, &mut go_on).unwrap().tier;
    let profile = &tier.profile;
    assert_eq!((profile.read_bytes_per_s, profile.write_bytes_per_s), (30_000_000, 20_000_000));
    assert_eq!((tier.iops, profile.latency_ns), (Some(50), 20_000_000));
}

#[test]
fn a_tier_that_is_not_up_is_not_taken_for_the_disk_below_it() {
    let place = Place::new();
    let registry = place.registry();
    let outer = registry.up(&plan("hdd"), &mut go_on).unwrap().tier;
    assert_eq!(registry.ground(&outer.data()).unwrap().unwrap().name, "hdd");
    assert_eq!(registry.ground(&outer.place).unwrap(), None);
    let inner = Plan { dir: Some(outer.data()), ..plan("ssd") };
    stopped_at(1, |watch| registry.up(&inner, watch)).unwrap();
    let error = registry.ground(&outer.data().join("ssd/data")).unwrap_err();
    assert!(error.to_string().ends_with("tier ssd, which is not up: partly up"), "{error}");
    let hint = error.hint().unwrap();
    assert_eq!(hint, "run `forebay tier up ssd` to bring it up, or `forebay tier down ssd` to remove it");
    registry.down("ssd", &mut go_on).unwrap().unwrap();
}

#[test]
fn other_kinds_and_places_are_refused_with_a_hint() {
    let place = Place::new();
    let registry = place.registry();
    registry.up(&plan("hdd"), &mut go_on).unwrap();
    let error = registry.up(&Plan::new("hdd", Kind::Kernel), &mut go_on).unwrap_err();
    assert_eq!(error.to_string(), "tier hdd already exists as a shaped tier; requested a kernel tier");
    assert_eq!(
        error.hint().unwrap(),
        "pass --shaped to keep it, or run `forebay tier down hdd` first; this deletes its data"
    );
    let elsewhere = Plan { dir: Some(place.path("")), ..plan("hdd") };
    assert!(matches!(registry.up(&elsewhere, &mut go_on), Err(Error::Differs { .. })));
}

#[test]
fn files_that_are_not_the_tiers_are_never_taken_for_it() {
    let place = Place::new();
    let registry = place.registry();
    fs::create_dir_all(place.path("disk/hdd/data")).unwrap();
    let there = Plan { dir: Some(place.path("disk")), ..plan("hdd") };
    let error = registry.up(&there, &mut go_on).unwrap_err();
    assert!(matches!(&error, Error::Occupied { path } if *path == place.path("disk/hdd")), "{error}");
    assert!(place.path("disk/hdd/data").exists() && registry.names().unwrap().is_empty());
    let missing = Plan { dir: Some(place.path("nowhere")), ..plan("hdd") };
    assert!(registry.up(&missing, &mut go_on).unwrap_err().to_string().contains("nowhere"));
    assert!(!place.path("tiers").exists(), "what was refused leaves nothing");

    let tier = registry.up(&plan("ssd"), &mut go_on).unwrap().tier;
    fs::write(tier.place.join("thesis.txt"), "years").unwrap();
    let error = registry.down("ssd", &mut go_on).unwrap_err();
    assert!(error.to_string().ends_with("contains files that do not belong to the tier: thesis.txt"), "{error}");
    assert_eq!(registry.find(&tier.data()).unwrap().unwrap().name, "ssd", "it stays up");
}

#[test]
fn stopped_at_any_step_it_can_be_brought_up_or_down() {
    for n in 0.. {
        let place = Place::new();
        let registry = place.registry();
        let Some(_) = stopped_at(n, |watch| registry.up(&plan("ssd"), watch)) else { break };
        registry.down("ssd", &mut go_on).unwrap().unwrap();
        place.assert_nothing_is_left();
    }
    for n in 0.. {
        let place = Place::new();
        let registry = place.registry();
        let Some(_) = stopped_at(n, |watch| registry.up(&plan("ssd"), watch)) else { break };
        let raised = registry.up(&plan("ssd"), &mut go_on).unwrap();
        assert_eq!(raised.change, if n < 2 { Change::Again } else { Change::Nothing });
        assert_eq!(raised.tier.status().unwrap().condition, Condition::Up);
        registry.down("ssd", &mut go_on).unwrap().unwrap();
        place.assert_nothing_is_left();
    }
    for n in 0.. {
        let place = Place::new();
        let registry = place.registry();
        registry.up(&plan("ssd"), &mut go_on).unwrap();
        let Some(_) = stopped_at(n, |watch| registry.down("ssd", watch)) else { break };
        assert!(matches!(registry.up(&plan("ssd"), &mut go_on), Err(Error::HalfRemoved { .. })));
        registry.down("ssd", &mut go_on).unwrap().unwrap();
        place.assert_nothing_is_left();
    }
}

#[test]
fn a_kill_before_the_first_state_leaves_a_folder_that_goes() {
    let place = Place::new();
    let registry = place.registry();
    fs::create_dir_all(place.path("tiers/t")).unwrap();
    fs::write(place.path("tiers/t/.tier.json.77-0.tmp"), "{").unwrap();
    assert_eq!(registry.names().unwrap(), ["t"]);
    assert_eq!(registry.down("t", &mut go_on).unwrap(), None);
    place.assert_nothing_is_left();
}

#[test]
fn a_state_that_cannot_be_read_is_named_and_hides_no_other_tier() {
    let place = Place::new();
    let registry = place.registry();
    let tier = registry.up(&plan("ssd"), &mut go_on).unwrap().tier;
    fs::create_dir_all(place.path("tiers/bad")).unwrap();
    fs::write(place.path("tiers/bad/tier.json"), "{}").unwrap();
    assert_eq!(registry.names().unwrap(), ["bad", "ssd"]);
    let error = registry.down("bad", &mut go_on).unwrap_err();
    assert!(error.to_string().ends_with("bad/tier.json is not a tier's state file"), "{error}");
    assert_eq!(registry.find(&tier.data()).unwrap().unwrap().name, "ssd");
    fs::remove_dir_all(place.path("tiers/bad")).unwrap();
}
