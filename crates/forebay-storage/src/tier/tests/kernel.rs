//! Kernel tiers: every mount, loop device, limit and file is accounted for. They need root and loop devices.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_testing::{Reason, not_run};

use super::*;

/// A small tier with a read limit that no other tier on the machine has; `None` if kernel tiers are not possible.
fn plan() -> Option<Plan> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    if let Err(obstacle) = kernel_support() {
        not_run(Reason::NoKernelTier, obstacle);
        return None;
    }
    let serial = NEXT.fetch_add(1, Ordering::Relaxed);
    let own = 60_000_000 + u64::from(std::process::id()) * 100 + serial;
    let rates = Rates { read_bytes_per_s: Some(own), write_bytes_per_s: Some(own), iops: Some(own / 10) };
    Some(Plan { rates, size: Some(32 << 20), ..Plan::new("t", Kind::Kernel) })
}

/// The limits anywhere in the root group that are this plan's own.
fn limits_left(plan: &Plan) -> Vec<String> {
    let throttle::Controller::V1 { root, .. } = throttle::Controller::of_this_machine().unwrap() else {
        not_run(Reason::NoCgroupV1, "limits that are left");
        return Vec::new();
    };
    let own = plan.rates.read_bytes_per_s.unwrap().to_string();
    let files = ["read_bps", "write_bps"].map(|name| root.join(format!("blkio.throttle.{name}_device")));
    let lines =
        files.iter().flat_map(|file| fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect::<Vec<_>>());
    lines.filter(|line| line.split(' ').nth(1) == Some(&own)).collect()
}

#[test]
fn a_kernel_tier_is_mounted_limited_and_gone_without_a_trace() {
    let Some(plan) = plan() else { return };
    let place = Place::new();
    let registry = place.registry();
    let raised = registry.up(&plan, &mut go_on).unwrap();
    let tier = raised.tier;
    assert_eq!(raised.change, Change::New);
    let status = tier.status().unwrap();
    assert_eq!((status.condition, status.reaches_caller), (Condition::Up, Some(true)));
    assert_eq!(status.device, tier.device);
    assert_eq!(limits_left(&plan).len(), 2);
    assert_eq!(names(&tier.data()), Vec::<String>::new(), "an empty folder, without lost+found");
    fs::write(tier.data().join("file"), vec![1; 1 << 20]).unwrap();
    assert_eq!(registry.find(&tier.data().join("file")).unwrap().unwrap().kind, Kind::Kernel);
    let removed = registry.down("t", &mut go_on).unwrap().unwrap();
    assert_eq!(removed.image_bytes, Some(32 << 20));
    assert!(removed.data_bytes.unwrap() >= 1 << 20, "{removed:?}");
    assert_eq!(limits_left(&plan), Vec::<String>::new());
    place.assert_nothing_is_left();
}

#[test]
fn stopped_at_any_step_up_it_leaves_nothing_after_down() {
    let Some(plan) = plan() else { return };
    let mut moments = Vec::new();
    for n in 0.. {
        let place = Place::new();
        let registry = place.registry();
        let Some(moment) = stopped_at(n, |watch| registry.up(&plan, watch)) else { break };
        moments.push(moment);
        assert_ne!(
            registry.tier("t").unwrap().unwrap().status().unwrap().condition,
            Condition::Unmounted,
            "{moment:?}"
        );
        registry.down("t", &mut go_on).unwrap().unwrap();
        assert_eq!(limits_left(&plan), Vec::<String>::new(), "{moment:?}");
        place.assert_nothing_is_left();
    }
    let stages = [Stage::Folders, Stage::Image, Stage::Format, Stage::Loop, Stage::Mount, Stage::Throttle, Stage::Up];
    let all: Vec<Moment> = stages.iter().flat_map(|stage| [Moment::Before(*stage), Moment::After(*stage)]).collect();
    assert_eq!(moments, all);
}

#[test]
fn stopped_at_any_step_up_it_can_be_brought_up_again() {
    let Some(plan) = plan() else { return };
    for n in 0.. {
        let place = Place::new();
        let registry = place.registry();
        let Some(moment) = stopped_at(n, |watch| registry.up(&plan, watch)) else { break };
        let raised = registry.up(&plan, &mut go_on).unwrap();
        let expected = if moment == Moment::After(Stage::Up) || moment == Moment::Before(Stage::Up) {
            Change::Nothing
        } else {
            Change::Again
        };
        assert_eq!(raised.change, expected, "{moment:?}");
        assert_eq!(raised.tier.status().unwrap().condition, Condition::Up, "{moment:?}");
        registry.down("t", &mut go_on).unwrap().unwrap();
        place.assert_nothing_is_left();
    }
}

#[test]
fn stopped_at_any_step_down_it_leaves_nothing_after_the_next_down() {
    let Some(plan) = plan() else { return };
    let mut n_stopped = 0;
    for n in 0.. {
        let place = Place::new();
        let registry = place.registry();
        registry.up(&plan, &mut go_on).unwrap();
        let Some(moment) = stopped_at(n, |watch| registry.down("t", watch)) else { break };
        n_stopped += 1;
        let condition = registry.tier("t").unwrap().unwrap().status().unwrap().condition;
        assert_eq!(condition, Condition::Half(Stage::Removal), "{moment:?}");
        registry.down("t", &mut go_on).unwrap().unwrap();
        assert_eq!(limits_left(&plan), Vec::<String>::new(), "{moment:?}");
        place.assert_nothing_is_left();
    }
    assert_eq!(n_stopped, 5);
}

#[test]
fn a_tier_in_use_stays_up_with_its_limits_and_its_holder_is_named() {
    let Some(plan) = plan() else { return };
    let place = Place::new();
    let registry = place.registry();
    let tier = registry.up(&plan, &mut go_on).unwrap().tier;
    let open = fs::File::create(tier.data().join("file")).unwrap();
    let error = registry.down("t", &mut go_on).unwrap_err();
    assert!(error.to_string().contains(&format!("({})", std::process::id())), "{error}");
    let tier = registry.tier("t").unwrap().unwrap();
    assert_eq!(tier.status().unwrap().condition, Condition::Up);
    drop(open);
    registry.down("t", &mut go_on).unwrap().unwrap();
    place.assert_nothing_is_left();
}

#[test]
fn other_rates_are_set_and_another_size_or_file_system_is_refused() {
    let (Some(plan), Some(other)) = (plan(), plan()) else { return };
    let place = Place::new();
    let registry = place.registry();
    let first = registry.up(&plan, &mut go_on).unwrap().tier;
    fs::write(first.data().join("kept"), "data").unwrap();
    assert_eq!(registry.up(&plan, &mut go_on).unwrap().change, Change::Nothing);
    let raised = registry.up(&other, &mut go_on).unwrap();
    assert_eq!((raised.change, &raised.tier.device), (Change::Limits, &first.device));
    assert_eq!((limits_left(&plan).len(), limits_left(&other).len()), (0, 2));
    let bigger = Plan { size: Some(64 << 20), ..plan.clone() };
    let error = registry.up(&bigger, &mut go_on).unwrap_err();
    assert_eq!(error.to_string(), "tier t already exists with image size 32 MiB; requested 64 MiB");
    let xfs = Plan { size: None, fs: Some(FileSystem::Xfs), ..plan };
    let error = registry.up(&xfs, &mut go_on).unwrap_err();
    assert_eq!(error.to_string(), "tier t already exists with ext4; requested xfs");
    assert_eq!(fs::read_to_string(first.data().join("kept")).unwrap(), "data");
}

#[test]
fn after_a_restart_the_data_comes_back_from_the_image() {
    let Some(plan) = plan() else { return };
    let place = Place::new();
    let registry = place.registry();
    let mut tier = registry.up(&plan, &mut go_on).unwrap().tier;
    fs::write(tier.data().join("kept"), "data").unwrap();
    // The effect of a reboot without one: no mount, no device, no limits, another boot id.
    mounts::unmount(&tier.data()).unwrap();
    assert_eq!(tier.status().unwrap().condition, Condition::Unmounted);
    loop_device::detach(tier.device.as_ref().unwrap()).unwrap();
    throttle::clear(&tier.lines).unwrap();
    tier.boot = "another".to_owned();
    tier.write(&tier.place).unwrap();
    assert_eq!(tier.status().unwrap().condition, Condition::EarlierBoot);
    assert_eq!(registry.find(&tier.data()).unwrap(), None, "what is not mounted is not limited");

    fs::write(tier.data().join("stray"), "written while nothing was mounted").unwrap();
    let error = registry.up(&plan, &mut go_on).unwrap_err();
    assert!(error.to_string().ends_with("contains files that do not belong to the tier: stray"), "{error}");
    fs::remove_file(tier.data().join("stray")).unwrap();

    let raised = registry.up(&plan, &mut go_on).unwrap();
    assert_eq!(raised.change, Change::Again);
    assert_eq!(fs::read_to_string(tier.data().join("kept")).unwrap(), "data");
    assert_eq!(limits_left(&plan).len(), 2);
    registry.down("t", &mut go_on).unwrap().unwrap();
    place.assert_nothing_is_left();
}

#[test]
fn an_image_that_somebody_removed_is_missed_and_the_rest_can_go() {
    let Some(plan) = plan() else { return };
    let place = Place::new();
    let registry = place.registry();
    let tier = registry.up(&plan, &mut go_on).unwrap().tier;
    fs::remove_file(tier.image()).unwrap();
    assert_eq!(tier.status().unwrap().condition, Condition::Up, "the kernel holds the removed file");
    mounts::unmount(&tier.data()).unwrap();
    let error = registry.up(&plan, &mut go_on).unwrap_err();
    assert!(matches!(error, Error::ImageGone { .. }), "{error}");
    registry.down("t", &mut go_on).unwrap().unwrap();
    assert_eq!(limits_left(&plan), Vec::<String>::new());
    place.assert_nothing_is_left();
}

#[test]
fn limits_that_somebody_took_away_are_noticed_and_set_again() {
    let Some(plan) = plan() else { return };
    let place = Place::new();
    let registry = place.registry();
    let tier = registry.up(&plan, &mut go_on).unwrap().tier;
    throttle::clear(&tier.lines).unwrap();
    assert_eq!(tier.status().unwrap().condition, Condition::Unlimited);
    assert_eq!(registry.find(&tier.data()).unwrap(), None, "the record must not claim limits that are not there");
    let error = registry.ground(&tier.data()).unwrap_err();
    assert!(error.to_string().ends_with("which is not up: mounted without its limits"), "{error}");
    assert_eq!(registry.up(&plan, &mut go_on).unwrap().change, Change::Limits);
    assert_eq!(tier.status().unwrap().condition, Condition::Up);
}

#[test]
fn a_mount_inside_or_elsewhere_is_named_and_nothing_is_touched() {
    let Some(plan) = plan() else { return };
    let place = Place::new();
    let registry = place.registry();
    let tier = registry.up(&plan, &mut go_on).unwrap().tier;
    let elsewhere = place.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    mounts::mount(&tier.device.as_ref().unwrap().path, FileSystem::Ext4, &elsewhere).unwrap();
    let error = registry.down("t", &mut go_on).unwrap_err();
    mounts::unmount(&elsewhere).unwrap();
    assert!(matches!(&error, Error::MountInTheWay { point, .. } if *point == elsewhere), "{error}");
    assert_eq!(tier.status().unwrap().condition, Condition::Up);
}

#[test]
fn what_cannot_be_brought_up_leaves_nothing() {
    let Some(plan) = plan() else { return };
    let place = Place::new();
    let registry = place.registry();
    let huge = Plan { size: Some(1 << 60), ..plan.clone() };
    let error = registry.up(&huge, &mut go_on).unwrap_err();
    assert!(matches!(error, Error::NoSpace { .. }), "{error}");
    place.assert_nothing_is_left();
    // An image that is too short for a file system.
    let image = place.path("tiers/t/disk.img");
    let error = registry.up(&plan, &mut |moment| {
        if moment == Moment::Before(Stage::Format) {
            fs::write(&image, "short").unwrap();
        }
        ControlFlow::Continue(())
    });
    assert!(matches!(error, Err(Error::Mkfs { program: "mkfs.ext4", .. })), "{error:?}");
    place.assert_nothing_is_left();
    // The file system is damaged before mounting: the loop device must be released too.
    let error = registry.up(&plan, &mut |moment| {
        if moment == Moment::Before(Stage::Loop) {
            image::reserve(&image, 32 << 20).unwrap();
        }
        ControlFlow::Continue(())
    });
    assert!(matches!(error, Err(Error::MountRefused { .. })), "{error:?}");
    place.assert_nothing_is_left();
}

#[test]
fn files_put_where_nothing_is_mounted_are_never_removed() {
    let Some(plan) = plan() else { return };
    let place = Place::new();
    let registry = place.registry();
    let data = place.path("tiers/t/data");
    // Half up, and then unmounted by hand.
    stopped_at(2, |watch| registry.up(&plan, watch)).unwrap();
    for again in [true, false] {
        fs::create_dir(data.join("photos")).unwrap();
        let error = registry.down("t", &mut go_on).unwrap_err();
        assert!(error.to_string().ends_with("data contains files that do not belong to the tier: photos"), "{error}");
        assert!(error.hint().unwrap().starts_with("move them out of "), "{error}");
        assert!(matches!(registry.ground(&data.join("photos")), Err(Error::NotUp { .. })));
        fs::remove_dir(data.join("photos")).unwrap();
        if again {
            registry.up(&plan, &mut go_on).unwrap();
            mounts::unmount(&data).unwrap();
        }
    }
    registry.down("t", &mut go_on).unwrap().unwrap();
    place.assert_nothing_is_left();
}

#[test]
fn a_folder_that_cannot_be_written_to_leaves_no_tier_and_what_is_gone_is_removed() {
    let Some(plan) = plan() else { return };
    let place = Place::new();
    let registry = place.registry();
    let read_only = Plan { dir: Some("/proc/sys".into()), ..plan.clone() };
    registry.up(&read_only, &mut go_on).unwrap_err();
    place.assert_nothing_is_left();
    // As an earlier failure left it.
    stopped_at(0, |watch| registry.up(&plan, watch)).unwrap();
    let mut tier = registry.tier("t").unwrap().unwrap();
    tier.place = "/proc/sys/t".into();
    tier.write(&place.path("tiers/t")).unwrap();
    registry.down("t", &mut go_on).unwrap().unwrap();
    place.assert_nothing_is_left();
}

#[test]
fn xfs_works_too() {
    let Some(plan) = plan() else { return };
    let place = Place::new();
    let registry = place.registry();
    let xfs = Plan { size: Some(300 << 20), fs: Some(FileSystem::Xfs), ..plan };
    match registry.up(&xfs, &mut go_on) {
        Err(error @ Error::MkfsMissing { .. }) => not_run(Reason::NoXfs, error),
        raised => {
            let tier = raised.unwrap().tier;
            let mounts = mounts::table().unwrap();
            assert_eq!(mounts.iter().find(|mount| mount.point == tier.data()).unwrap().fs, "xfs");
        }
    }
}
