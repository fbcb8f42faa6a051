//! The schedule of devices, exactly, on a clock that is set by hand.

use super::*;

fn speed_up(profile: &Profile, threads: usize) -> f64 {
    profile.files_per_s(112_000, threads) / profile.files_per_s(112_000, 1)
}

#[test]
fn a_disk_gains_a_little_from_a_queue_as_in_the_paper() {
    for (threads, paper) in [(2, 1.65), (4, 1.95), (8, 2.3)] {
        let ours = speed_up(&Profile::hdd(), threads);
        assert!((ours / paper - 1.0).abs() < 0.05, "{threads} threads: {ours:.2} against {paper}");
    }
}

#[test]
fn a_parallel_file_system_gains_per_thread() {
    assert!(speed_up(&Profile::lustre(), 8) > 7.7);
}

#[test]
fn a_flash_drive_is_limited_by_its_pipe() {
    let alone = 0.112 * Profile::ssd().files_per_s(112_000, 1);
    let together = 0.112 * Profile::ssd().files_per_s(112_000, 8);
    assert!((220.0..230.0).contains(&alone), "{alone:.0} MB/s");
    assert!((275.0..280.1).contains(&together), "{together:.0} MB/s");
}

/// The devices that read ahead of a sequential stream.
fn read_ahead() -> impl Iterator<Item = Profile> {
    let all = Profile::NAMES.map(|name| name.parse::<Profile>().unwrap());
    all.into_iter().filter(|profile| !profile.asks_each_time)
}

#[test]
fn an_object_store_asks_for_each_part_and_a_few_answers_are_late() {
    let device = Device::new(Profile::s3(), Arc::new(ManualClock::default()));
    let mut now = 0;
    let mut took: Vec<u64> = (0..10_000_u64)
        .map(|i| {
            let done = device.book(Direction::Read, now, Place { object: 1, offset: i << 20 }, 1 << 20);
            let took = done - now;
            now = done;
            took / 1_000_000
        })
        .collect();
    took.sort_unstable();
    // 1 MiB at 90 MB/s takes 11.65 ms after the first byte.
    assert_eq!((took[0], took[5_000], took[9_800]), (41, 41, 41));
    let n_late = |ms: u64| took.iter().filter(|took| **took > ms).count();
    assert!(
        (80..=140).contains(&n_late(300)) && (3..=20).contains(&n_late(1_000)),
        "{} {}",
        n_late(300),
        n_late(1_000)
    );
    // Connections add up until the network is full; the slowest request of the last ones ends the run.
    let rate = |readers| Profile::s3().files_per_s(1_000_000, readers);
    assert!(rate(16) > 5.0 * rate(1) && rate(256) < 1_251.0, "{} {} {}", rate(1), rate(16), rate(256));
}

#[test]
fn a_sequential_stream_reaches_the_rated_bandwidth() {
    for profile in read_ahead() {
        let name = profile.name.clone();
        let rate = profile.read_bytes_per_s.min(profile.stream_bytes_per_s) as f64;
        let device = Device::new(profile, Arc::new(ManualClock::default()));
        let mut now = 0;
        for i in 0..1_000u64 {
            now = device.book(Direction::Read, now, Place { object: 1, offset: i << 20 }, 1 << 20);
        }
        let ours = 1_000.0 * (1u64 << 20) as f64 / (now as f64 / 1e9);
        assert!((ours / rate - 1.0).abs() < 0.02, "{name}: {ours:.0} against {rate:.0}");
    }
}

/// MB/s of a stream of 1,000 requests of 1 MiB, each issued this long after the previous one was done.
fn stream(profile: Profile, direction: Direction, pause_ns: u64) -> f64 {
    let device = Device::new(profile, Arc::new(ManualClock::default()));
    let mut now = 0;
    for i in 0..1_000u64 {
        let done = device.book(direction, now, Place { object: 1, offset: i << 20 }, 1 << 20);
        now = done.max(now) + pause_ns;
    }
    1_000.0 * (1u64 << 20) as f64 / 1e6 / (now as f64 / 1e9)
}

#[test]
fn a_stream_of_writes_reaches_the_rated_bandwidth() {
    for name in Profile::NAMES {
        let profile: Profile = name.parse().unwrap();
        let rated = profile.write_bytes_per_s as f64 / 1e6;
        let ours = stream(profile, Direction::Write, 0);
        // The first request pays its latency.
        assert!((ours / rated - 1.0).abs() < 0.04, "{name}: {ours:.0} against {rated:.0}");
    }
}

#[test]
fn a_stream_whose_thread_wakes_late_is_as_fast_and_never_faster() {
    for profile in read_ahead() {
        let name = profile.name.clone();
        let rated = profile.read_bytes_per_s.min(profile.stream_bytes_per_s) as f64 / 1e6;
        let late = stream(profile.clone(), Direction::Read, 200_000);
        assert!(late > 0.98 * rated && late <= rated, "{name}: {late:.1} against {rated:.1}");
        // A consumer that is slower than the device sets the pace alone.
        let slow = stream(profile, Direction::Read, 100_000_000);
        assert!((slow - 10.48).abs() < 0.02, "{name}: {slow}");
    }
}

#[test]
fn a_writer_runs_a_little_ahead_and_a_commit_waits_for_the_device() {
    let clock = Arc::new(ManualClock::default());
    let storage = Shaped::with_clock(crate::Memory::default(), Profile::lustre(), clock.clone());
    let mut writer = storage.create(Path::new("a")).unwrap();
    let latency_ns = Profile::lustre().latency_ns;
    for _ in 0..100 {
        writer.write(&vec![7; 9_920_000]).unwrap();
    }
    assert_eq!(clock.now_ns(), 1_000_000_000 + latency_ns - WRITE_BEHIND_NS);
    writer.commit().unwrap();
    assert_eq!(clock.now_ns(), 1_000_000_000 + latency_ns, "992 MB at 992 MB/s");
}

#[test]
fn real_time_agrees_with_the_schedule() {
    let memory = crate::Memory::default();
    memory.insert("a", vec![0u8; 28_000]);
    let storage = Shaped::new(memory, Profile::ssd());
    let start = std::time::Instant::now();
    let mut buffer = Buffer::default();
    for _ in 0..20 {
        storage.open(Path::new("a")).unwrap().read_all(&mut buffer).unwrap();
    }
    // Each read: 0.1 ms of latency and 0.1 ms of transfer. It may be late on a busy machine; being early is a bug.
    assert!(start.elapsed().as_secs_f64() >= 20.0 * 0.000_2);
}
