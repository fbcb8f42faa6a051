//! Cases with a known limit, and predictions that arithmetic gives too.

use forebay_record::{Level, Taken};

use super::*;
use crate::case::Crowding;
use crate::curve::{Curve, Point};

const FLAGS: Spelling = Spelling { threads: |n| format!("--threads {n}"), prefetch: |n| format!("--prefetch {n}") };

fn disk(points: &[(f64, f64)]) -> Option<Curve> {
    Curve::new(points.iter().map(|(in_flight, per_s)| Point { in_flight: *in_flight, per_s: *per_s, error: 0.0 }))
}

/// A network file system of 4 ms per request, eight in flight measured.
fn far() -> Option<Curve> {
    disk(&[(1.0, 250.0), (2.0, 500.0), (4.0, 1_000.0), (8.0, 2_000.0)])
}

fn case(storage: Option<Curve>) -> Case {
    Case { batch: 16, steps: 18, cores: 2.0, storage, cpu_s: 0.001, step_s: vec![0.010], ..Case::default() }
}

fn run(case: &Case, threads: usize, prefetch: usize) -> Run {
    let flags = Flags { threads, prefetch };
    let ran = case.predict(flags);
    Run {
        flags,
        wall_s: ran.wall_s,
        spread: None,
        wait_s: ran.wait_s,
        first_wait_s: ran.first_wait_s,
        order_s: 0.0,
        decode_share: 0.9,
        disturbed: None,
    }
}

fn advised(case: &Case, threads: usize, prefetch: usize) -> (String, String, String) {
    let Advice { limit, lever } = advise(case, &run(case, threads, prefetch), &[], FLAGS);
    (limit.name, lever.name, lever.advice)
}

#[test]
fn few_requests_in_flight_are_the_limit_and_not_the_storage() {
    let case = case(far());
    let (limit, lever, advice) = advised(&case, 1, 1);
    assert_eq!((limit.as_str(), lever.as_str()), ("latency", "threads"));
    assert!(advice.starts_with("--threads 8: more requests in flight"), "{advice}");
}

#[test]
fn storage_that_gives_no_more_is_the_limit() {
    let case = case(disk(&[(1.0, 200.0), (8.0, 210.0), (32.0, 210.0)]));
    let Advice { limit, lever } = advise(&case, &run(&case, 8, 1), &[], FLAGS);
    assert_eq!((limit.name.as_str(), lever.name.as_str(), lever.is_bound), ("storage", "storage", true));
}

#[test]
fn of_changes_that_help_the_one_that_costs_the_user_least_comes_first() {
    let case = case(disk(&[(1.0, 200.0), (8.0, 210.0), (32.0, 210.0)]));
    let other = |name: &'static str, effort, per_s| Alternative {
        name,
        advice: name.to_owned(),
        effort,
        setting: NewValue { setting: name.to_owned(), value: Level::Flag(true) },
        storage: disk(&[(8.0, per_s)]),
        served_by: Server::Storage,
        cpu_s: case.cpu_s,
        delays_step_s: 0.0,
        is_bound: false,
    };
    let all = [other("dataset", Effort::Reformat, 900.0), other("shuffle", Effort::Order, 600.0)];
    let Advice { limit, lever } = advise(&case, &run(&case, 8, 1), &all, FLAGS);
    assert_eq!(limit.name, "storage");
    let chain: Vec<&Lever> = std::iter::successors(Some(&lever), |lever| lever.runner_up.as_deref()).collect();
    let names: Vec<&str> = chain.iter().map(|lever| lever.name.as_str()).collect();
    assert_eq!(names, ["shuffle", "dataset", "storage"]);
    assert!(chain[0].wall_s > 288.0 / 600.0 && chain[0].wall_s > chain[1].wall_s, "{:?}", chain[0]);
    assert!(chain[1].wall_s > 288.0 / 900.0 && chain[1].wall_s > chain[2].wall_s, "{:?}", chain[1]);
}

#[test]
fn a_missing_prefetch_is_the_limit_where_work_and_steps_alternate() {
    let slow = Case { step_s: vec![0.040], ..case(far()) };
    let (limit, lever, advice) = advised(&slow, 8, 0);
    assert_eq!((limit.as_str(), lever.as_str()), ("prefetch", "prefetch"));
    assert!(advice.starts_with("--prefetch 1"), "{advice}");
}

#[test]
fn threads_that_wait_for_cores_of_others_are_told_from_slow_storage() {
    let flags = Flags { threads: 1, prefetch: 1 };
    let busy = case(far()).delayed(flags, 0.010);
    assert!((busy.delay_s - 0.010).abs() < 1e-9, "one thread never waits for another: {}", busy.delay_s);
    let wall_s = busy.predict(flags).wall_s;
    assert!((wall_s / 4.330 - 1.0).abs() < 0.005, "4 ms in the storage, 10 ms for a core, 1 ms on it: {wall_s}");
    assert_eq!(advised(&busy, 1, 1).1, "threads", "more of them wait at the same time");
    let Advice { limit, lever } = advise(&busy, &run(&busy, 16, 4), &[], FLAGS);
    assert_eq!((limit.name.as_str(), lever.name.as_str()), ("cores", "cores"), "{limit:?} {lever:?}");
    assert!(limit.evidence.iter().any(|fact| fact.contains("waited 10.0 ms for a core")), "{limit:?}");
    let saturated = Case { storage: disk(&[(1.0, 250.0), (4.0, 1_000.0), (32.0, 1_000.0)]), ..busy };
    assert_eq!(advised(&saturated, 4, 2).0, "cores", "the storage gives no more");
}

#[test]
fn a_batch_waits_for_the_latest_of_its_samples() {
    // On two cores beside other programs, lustre, no prefetch: 0.449 s were measured with 16 threads. A mean delay gives 0.372 s.
    let storage = disk(&[(1.0, 248.6), (64.0, 15_698.0)]);
    let measured = Case { steps: 20, cpu_s: 0.000_24, step_s: vec![0.010_5], ..case(storage) };
    let busy = measured.delayed(Flags { threads: 1, prefetch: 0 }, 0.001_72);
    let one = busy.predict(Flags { threads: 1, prefetch: 0 }).wall_s;
    assert!((one / 2.144 - 1.0).abs() < 0.05, "{one}");
    let sixteen = busy.predict(Flags { threads: 16, prefetch: 0 }).wall_s;
    assert!((sixteen / 0.449 - 1.0).abs() < 0.10, "{sixteen}");
}

#[test]
fn samples_that_are_decoded_beforehand_wait_for_cores_less() {
    // Photographs on two cores beside other programs took 0.885 s; as tensors, 0.289 s. With the same delay, 0.797 s were predicted.
    let flags = Flags { threads: 4, prefetch: 2 };
    let photographs = Case { steps: 20, cpu_s: 0.000_79, step_s: vec![0.010_5], ..case(None) };
    let busy = photographs.delayed(flags, 0.009_06);
    let tensor = Alternative {
        name: "pack",
        advice: String::new(),
        effort: Effort::Reformat,
        setting: NewValue { setting: NewValue::DATASET.to_owned(), value: Level::Text("tensor".to_owned()) },
        storage: None,
        served_by: Server::Storage,
        cpu_s: 0.000_10,
        delays_step_s: 0.0,
        is_bound: false,
    };
    let Advice { lever, .. } = advise(&busy, &run(&busy, 4, 2), &[tensor], FLAGS);
    let mut chain = std::iter::successors(Some(&lever), |lever| lever.runner_up.as_deref());
    let packed = chain.find(|lever| lever.name == "pack").unwrap();
    assert!((0.21..0.30).contains(&packed.wall_s), "{packed:?}");
}

#[test]
fn a_gpu_that_decodes_is_advised_unless_it_delays_the_steps_as_much() {
    let photographs = Case { cpu_s: 0.008, ..case(None) };
    let advised = |delays_step_s| {
        let gpu = Alternative {
            name: "gpu",
            advice: "--decode gpu".to_owned(),
            effort: Effort::Flag,
            setting: NewValue { setting: "decode".to_owned(), value: Level::Text("gpu".to_owned()) },
            storage: disk(&[(1.0, 2_000.0), (2.0, 4_000.0)]),
            served_by: Server::Gpu,
            cpu_s: 0.000_2,
            delays_step_s,
            is_bound: false,
        };
        advise(&photographs, &run(&photographs, 2, 1), &[gpu], FLAGS)
    };
    let Advice { limit, lever } = advised(0.0);
    assert_eq!((limit.name.as_str(), lever.name.as_str()), ("decode", "gpu"));
    // 16 samples of 8 ms on two cores, then steps of 10 ms.
    assert!(lever.wall_s < 18.5 * 0.0105 && lever.saves_s > 0.9, "{lever:?}");
    let delayed = advised(0.020).lever;
    assert!((delayed.wall_s - lever.wall_s - 18.0 * 0.020).abs() < 0.02, "{delayed:?}");
    assert_ne!(advised(0.060).lever.name, "gpu", "steps of 70 ms take longer than decoding on the cores");
}

#[test]
fn a_gpu_that_cannot_decode_more_is_the_limit() {
    let on_gpu = Case { cpu_s: 0.000_2, served_by: Server::Gpu, ..case(disk(&[(2.0, 400.0)])) };
    let Advice { limit, lever } = advise(&on_gpu, &run(&on_gpu, 2, 1), &[], FLAGS);
    assert_eq!((limit.name.as_str(), lever.name.as_str(), lever.advice.as_str()), ("gpu", "gpu", "a faster GPU"));
    assert_eq!(limit.evidence[0], "the GPU decodes 400 samples/s with 2 threads");
}

#[test]
fn a_single_thread_that_is_sometimes_late_is_still_the_limit() {
    let late = Case { cpu_s: 0.002, delay_s: 0.0005, ..case(None) };
    assert_eq!(advised(&late, 1, 1).0, "threads");
}

#[test]
fn threads_that_wait_for_each_other_are_not_delayed_by_others() {
    let flags = Flags { threads: 8, prefetch: 1 };
    let case = Case { cpu_s: 0.004, ..case(None) };
    let own_s = case.predict(flags).queued_s;
    assert!(own_s > 0.010, "eight threads on two cores: {own_s}");
    assert_eq!(case.delayed(flags, own_s).delay_s, 0.0);
}

#[test]
fn cores_that_all_decode_are_the_limit() {
    let case = Case { cpu_s: 0.004, ..case(None) };
    assert_eq!(advised(&case, 2, 1).0, "decode");
    assert_eq!(advised(&case, 1, 1).0, "threads");
}

#[test]
fn storage_that_was_measured_alone_and_is_fast_leaves_idle_cores_to_threads() {
    let case = Case { cpu_s: 0.002, ..case(disk(&[(1.0, 5_000.0)])) };
    let (limit, lever, _) = advised(&case, 1, 1);
    assert_eq!((limit.as_str(), lever.as_str()), ("threads", "threads"));
}

#[test]
fn an_accelerator_that_does_not_wait_is_the_limit() {
    let case = Case { step_s: vec![0.5], ..case(None) };
    let (limit, lever, _) = advised(&case, 2, 1);
    assert_eq!((limit.as_str(), lever.as_str()), ("accelerator", "none"));
}

#[test]
fn a_run_that_the_model_does_not_explain_gets_no_lever() {
    let case = case(far());
    let mut run = run(&case, 8, 1);
    run.wall_s *= 2.0;
    run.wait_s += run.wall_s / 2.0;
    let Advice { limit, lever } = advise(&case, &run, &[], FLAGS);
    assert_eq!((limit.name.as_str(), lever.name.as_str(), lever.saves_s), ("unknown", "unknown", 0.0));
    let crowded = Run { disturbed: Some(Disturbed { repeats: 1, taken: Taken::Processors, share: 0.5 }), ..run };
    assert_eq!(advise(&case, &crowded, &[], FLAGS).limit.name, "cores");
}

#[test]
fn the_best_flags_take_no_more_threads_and_batches_than_they_need() {
    let slow = Case { step_s: vec![0.100], steps: 90, ..case(far()) };
    assert_eq!(best_flags(&slow, Flags { threads: 32, prefetch: 16 }), Flags { threads: 1, prefetch: 1 });
}

#[test]
fn predictions_are_those_of_arithmetic() {
    // 288 samples at 250/s, then the core and a last step: reads of one thread do not overlap with its decoding.
    let one = case(far()).predict(Flags { threads: 1, prefetch: 1 });
    assert!((one.wall_s - (288.0 * 0.005 + 0.010)).abs() < 1e-6, "{one:?}");
    let none = case(far()).predict(Flags { threads: 1, prefetch: 0 });
    assert!((none.wall_s - 18.0 * (16.0 * 0.005 + 0.010)).abs() < 1e-6, "{none:?}");
    assert!((none.wait_s - 18.0 * 16.0 * 0.005).abs() < 1e-6);
}

#[test]
fn cores_that_share_their_memory_do_less_each() {
    // 1.37 ms per photograph with one thread and 1.62 ms with sixteen, on 16 cores.
    let crowding = Crowding { few: 1.0, many: 16.0, ratio: 1.62 / 1.37 };
    let all = Case { batch: 64, steps: 32, cores: 16.0, cpu_s: 0.001_37, crowding: Some(crowding), ..Case::default() };
    let rate = |threads| 32.0 * 64.0 / all.predict(Flags { threads, prefetch: 2 }).wall_s;
    assert!((rate(1) - 730.0).abs() < 2.0, "{}", rate(1));
    assert!((rate(16) / 9_876.0 - 1.0).abs() < 0.01, "{}", rate(16));
    assert!((rate(4) / (4.0 * 730.0 / 1.0875) - 1.0).abs() < 0.01, "halfway on logarithms: {}", rate(4));
    let Advice { limit, .. } = advise(&all, &run(&all, 16, 2), &[], FLAGS);
    assert_eq!((limit.name.as_str(), limit.rates.unwrap().cores_per_s.unwrap().round()), ("decode", 9_877.0));
}

#[test]
fn a_device_that_takes_a_batch_ahead_is_a_longer_queue() {
    // Steps of 10 and 150 ms in turns, 80 ms of work per batch: three batches ahead absorb what two do not.
    let uneven = Case { cpu_s: 0.010, step_s: vec![0.010, 0.010, 0.010, 0.290], ..case(None) };
    let sent = Case { sent_ahead: 2, ..uneven.clone() };
    let wall_s = |case: &Case, prefetch| case.predict(Flags { threads: 2, prefetch }).wall_s;
    assert_eq!(wall_s(&sent, 1), wall_s(&uneven, 3));
    assert!(wall_s(&sent, 1) < wall_s(&uneven, 1) - 0.1, "{} and {}", wall_s(&sent, 1), wall_s(&uneven, 1));
    assert_eq!(wall_s(&sent, 0), wall_s(&uneven, 0), "without prefetch nothing is sent ahead");
}

#[test]
fn a_long_run_is_extrapolated_from_its_steady_part() {
    let long = Case { steps: 100_000, ..case(far()) };
    let short = Case { steps: 90, ..case(far()) };
    let per_step = |case: &Case| case.predict(Flags { threads: 4, prefetch: 1 }).wall_s / case.steps as f64;
    assert!((per_step(&long) / per_step(&short) - 1.0).abs() < 0.02);
}
