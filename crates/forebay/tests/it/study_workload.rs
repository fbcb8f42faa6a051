//! The study of DLIO's workloads on 1 to 8 processes, as far as it can be seen without running it.

use crate::dir::Dir;

#[test]
fn the_study_of_processes_is_listed_with_what_it_makes() {
    let list = Dir::new().met("study list");
    let of = list.split("hugen-2025: ").nth(1).unwrap_or_else(|| panic!("{list}"));
    let mut lines = of.lines();
    assert_eq!(lines.next(), Some("DLIO on 1 to 8 processes: is there a peak at six?"));
    let [quick, standard, full] = [lines.next(), lines.next(), lines.next()].map(Option::unwrap_or_default);
    assert!(quick.starts_with("  quick     46 cells, ") && quick.ends_with(" MB to generate"), "{quick}");
    assert!(standard.starts_with("  standard  46 cells, "), "{standard}");
    assert!(full.starts_with("  full      46 cells, ") && full.ends_with(" TB to generate"), "{full}");
}

#[test]
fn its_description_says_what_differs_at_the_quick_scale_and_which_values_it_cannot_have() {
    let shown = Dir::new().met("study show hugen-2025");
    for wanted in [
        "after P. A. Hugen",
        "The quick scale keeps the structure",
        "experiment processes (workload): 20 cells quick, 20 full, all combinations; 1 repeat after 0 warm-ups quick, 3 \
         repeats after 0 warm-ups standard, 1 repeat after 0 warm-ups full\n",
        "  where workload=dlrm: shrink_bytes = 10000 quick, 1 full; shrink_time = 10 quick, 3 standard, 1 full\n",
        "  where workload=cosmoflow_h100: train.epochs = 1\n",
        "experiment one-factor (workload): 18 cells quick, 18 full, one factor at a time; ",
        "  as-source processes=6 au_dlio: 0.8652 (campaign C, 6 processes, as DLIO reports; ",
        "  processes processes=1 workload=dlrm dlio_mib_per_s: 1044.7 (campaign B, as DLIO reports, dlrm, 1 process; \
         not judged, at the full scale only)\n",
    ] {
        assert!(shown.contains(wanted), "{wanted}\n{shown}");
    }
}

#[test]
fn a_dry_run_names_every_experiment_the_data_and_what_is_left_out() {
    let dir = Dir::new();
    let preview = dir.met("study run hugen-2025 --dry-run");
    assert!(preview.starts_with("hugen-2025 at the quick scale: 46 cells\n"), "{preview}");
    for wanted in ["processes (workload): 20 cells × 0+1 ", "as-source (workload): 5 cells × 0+3 ", "dataset dlrm: "]
    {
        assert!(preview.contains(wanted), "{wanted}\n{preview}");
    }
    let says_why = preview.contains("dataset.format=hdf5") && preview.contains("this build has no HDF5");
    let has_hdf5 = !preview.contains("left out: ");
    assert!(says_why || has_hdf5, "{preview}");
    assert!(dir.tree(".").is_empty(), "a dry run makes nothing");
}
