//! The built-in workloads: DLIO's and MLPerf Storage's, with their published numbers.

use crate::check::{Checked, read};

#[derive(Debug, Clone, Copy)]
pub struct Builtin {
    pub name: &'static str,
    /// One line for a listing.
    pub about: &'static str,
    /// The TOML text from the repository, including comments.
    pub text: &'static str,
}

impl Builtin {
    pub fn checked(&self) -> Checked {
        read(self.name, self.text, &[]).expect("a test reads every built-in workload")
    }
}

macro_rules! builtin {
    ($name:literal, $about:literal) => {
        Builtin { name: $name, about: $about, text: include_str!(concat!("../workloads/", $name, ".toml")) }
    };
}

static ALL: &[Builtin] = &[
    builtin!("bert_v100", "language model: 500 TFRecord files of short records, a 4 GB checkpoint every 250 steps"),
    builtin!("cosmoflow_a100", "cosmology: 524,288 TFRecord files of 2.8 MB, batches of one, on an A100"),
    builtin!("cosmoflow_h100", "cosmology: 524,288 TFRecord files of 2.8 MB, batches of one, on an H100"),
    builtin!("cosmoflow_v100", "cosmology: 524,288 TFRecord files of 2.8 MB, batches of one, on a V100"),
    builtin!("default", "DLIO's first example: 64 small npz files and an evaluation"),
    builtin!("dlrm", "recommendation: one indexed file of 1,024 records of 671 MB, in random order"),
    builtin!("dlrm_b200", "recommendation: Parquet, 40 of 200 columns, batches of 16,384 rows, on a B200"),
    builtin!("flux_b200", "text to image: Parquet, rows of 2.2 MB, on a B200"),
    builtin!("llama_1t", "checkpoints of a 1.2-trillion-parameter transformer on at least 512 ranks"),
    builtin!("llama_405b", "checkpoints of a 405-billion-parameter transformer on at least 256 ranks"),
    builtin!("llama_70b", "checkpoints of a 70-billion-parameter transformer on at least 32 ranks"),
    builtin!("llama_70b_zero3", "checkpoints of a 70-billion-parameter transformer, ZeRO 3, on at least 8 ranks"),
    builtin!("llama_7b", "checkpoints of a 7-billion-parameter transformer"),
    builtin!("llama_7b_zero3", "checkpoints of a 7-billion-parameter transformer, ZeRO 3"),
    builtin!("llama_8b_zero3", "checkpoints of an 8-billion-parameter transformer, ZeRO 3"),
    builtin!(
        "megatron_deepspeed_LLNL",
        "language model: one indexed file read by mmap, checkpoints of layers on 32 ranks"
    ),
    builtin!("resnet50_a100", "images: 1,024 TFRecord files of 1,251 samples, batches of 400, on an A100"),
    builtin!("resnet50_h100", "images: 1,024 TFRecord files of 1,251 samples, batches of 400, on an H100"),
    builtin!("resnet50_tf", "images: 1,024 TFRecord files of 1,251 samples, batches of 64, one epoch"),
    builtin!("resnet50_v100", "images: 1,024 TFRecord files of 1,251 samples, batches of 64, on a V100"),
    builtin!("retinanet_b200", "object detection: 1.2 million JPEG files, on a B200"),
    builtin!("unet3d_a100", "medical volumes: 168 npz files of 147 MB, batches of 7, on an A100"),
    builtin!("unet3d_b200", "medical volumes: 7,200 npz files of 147 MB, batches of 7, on a B200"),
    builtin!("unet3d_h100", "medical volumes: 168 npz files of 147 MB, batches of 7, on an H100"),
    builtin!("unet3d_v100", "medical volumes: 168 npz files of 147 MB, batches of 4, on a V100"),
];

/// Other names of workloads: a model's name alone means its H100 version, or the one for the newest accelerator.
const ALIASES: &[(&str, &str)] = &[
    ("bert", "bert_v100"),
    ("cosmoflow", "cosmoflow_h100"),
    ("flux", "flux_b200"),
    ("llama_8b", "llama_8b_zero3"),
    ("llama3_1t", "llama_1t"),
    ("llama3_405b", "llama_405b"),
    ("llama3_70b", "llama_70b"),
    ("llama3_8b", "llama_8b_zero3"),
    ("megatron", "megatron_deepspeed_LLNL"),
    ("megatron_deepspeed", "megatron_deepspeed_LLNL"),
    ("megatron_deepspeed_llnl", "megatron_deepspeed_LLNL"),
    ("resnet50", "resnet50_h100"),
    ("retinanet", "retinanet_b200"),
    ("unet3d", "unet3d_h100"),
];

pub fn all() -> &'static [Builtin] {
    ALL
}

/// Finds a workload by its name, DLIO's other spellings, or a model's name alone.
pub fn find(name: &str) -> Option<&'static Builtin> {
    let name = alias(name).unwrap_or(name);
    all().iter().find(|builtin| builtin.name == name)
}

/// Other names, each with the workload that it refers to.
pub fn aliases() -> &'static [(&'static str, &'static str)] {
    ALIASES
}

/// The workload that an alias refers to.
pub fn alias(name: &str) -> Option<&'static str> {
    ALIASES.iter().find(|(other, _)| *other == name).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Plan, model};

    /// The published table: samples, steps of one accelerator (of a copy of the model where it has several ranks), and
    /// the demand as it is printed there.
    const TABLE: [(&str, u64, u64, &str); 18] = [
        ("default", 64, 16, "16 KB/s"),
        ("unet3d_v100", 168, 42, "431 MB/s"),
        ("unet3d_a100", 168, 24, "1.61 GB/s"),
        ("unet3d_h100", 168, 24, "3.18 GB/s"),
        ("unet3d_b200", 7200, 1028, "6.33 GB/s"),
        ("cosmoflow_v100", 524_288, 524_288, "302 MB/s"),
        ("cosmoflow_a100", 524_288, 524_288, "513 MB/s"),
        ("cosmoflow_h100", 524_288, 524_288, "808 MB/s"),
        ("resnet50_v100", 1_281_024, 20_016, "38 MB/s"),
        ("resnet50_tf", 1_281_024, 20_016, "75 MB/s"),
        ("resnet50_a100", 1_281_024, 3202, "105 MB/s"),
        ("resnet50_h100", 1_281_024, 3202, "205 MB/s"),
        ("bert_v100", 156_766_000, 1000, "124 KB/s"),
        ("dlrm", 1024, 1024, "10.4 GB/s"),
        ("megatron_deepspeed_LLNL", 277_203_535, 1000, "13 KB/s"),
        ("retinanet_b200", 1_170_301, 48_762, "163 MB/s"),
        ("flux_b200", 1_237_248, 25_776, "77 MB/s"),
        ("dlrm_b200", 4_831_838_208, 294_912, "7.0 GB/s"),
    ];

    fn plan(name: &str) -> Plan {
        let workload = find(name).unwrap().checked().workload;
        Plan::new(&workload, model::ranks_of(&workload)).unwrap()
    }

    /// A rate with as many digits as another text of one has.
    fn printed(rate: f64, like: &str) -> String {
        let (number, unit) = like.split_once(' ').unwrap();
        let scale = match unit {
            "KB/s" => 1e3,
            "MB/s" => 1e6,
            _ => 1e9,
        };
        let digits = number.split_once('.').map_or(0, |(_, broken)| broken.len());
        format!("{:.digits$} {unit}", rate / scale)
    }

    #[test]
    fn samples_steps_and_demand_are_the_published_ones() {
        for (name, samples, steps, demand) in TABLE {
            let plan = plan(name);
            assert_eq!((plan.samples_train, plan.steps_per_epoch), (samples, steps), "{name}");
            assert_eq!(printed(plan.demand_bytes_per_s.unwrap(), demand), demand, "{name}");
        }
    }

    #[test]
    fn checkpoints_of_llamas_are_the_published_ones() {
        // Billions of values, and GiB of weights and optimiser together.
        let table = [
            ("llama_7b", 6.738, 87.86),
            ("llama_7b_zero3", 6.738, 87.86),
            ("llama_8b_zero3", 8.030, 104.7),
            ("llama_70b", 69.88, 911.2),
            ("llama_70b_zero3", 69.88, 911.2),
            ("llama_405b", 405.85, 5292.0),
            ("llama_1t", 1183.0, 15_425.0),
        ];
        for (name, billions, gib) in table {
            let workload = find(name).unwrap().checked().workload;
            let values = model::n_parameters(&workload).unwrap() as f64 / 1e9;
            assert!((values / billions - 1.0).abs() < 2e-4, "{name}: {values}");
            let total = plan(name).checkpoint_bytes as f64 / f64::from(1 << 30);
            assert!((total / gib - 1.0).abs() < 5e-4, "{name}: {total}");
            assert_eq!(plan(name).checkpoints, 10);
        }
    }

    #[test]
    fn flat_checkpoints_have_the_size_that_is_written_down() {
        assert_eq!((plan("unet3d_h100").checkpoints, plan("unet3d_h100").checkpoint_bytes), (1, 499_153_191));
        assert_eq!((plan("bert_v100").checkpoints, plan("bert_v100").checkpoint_bytes), (4, 4_034_713_312));
        assert_eq!(plan("unet3d_b200").checkpoints, 0);
        let groups = 3 * (1_009_254_400 + 865_075_200 + 793_600);
        let layers = 43 * 4 * (52_583_936 / 4 + 209_715_200 / 4);
        assert_eq!(plan("megatron_deepspeed_LLNL").checkpoint_bytes, 32 * (30_102 + groups) + layers);
    }

    #[test]
    fn a_dlrm_reads_160_of_761_bytes_of_a_row() {
        let workload = find("dlrm_b200").unwrap().checked().workload;
        let columns = &workload.dataset.parquet.columns;
        assert_eq!(columns.iter().map(|column| column.count).sum::<u64>(), 200);
        assert_eq!(columns.iter().filter(|column| column.is_read).map(|column| column.count).sum::<u64>(), 40);
        assert_eq!(workload.dataset.shape_of(crate::Part::Train, 0).sample_bytes, 761);
        assert_eq!(workload.dataset.mean_read_bytes(), 160.0);
        let flux = find("flux").unwrap().checked().workload;
        assert_eq!(flux.dataset.shape_of(crate::Part::Train, 0).sample_bytes, 2_164_832);
    }

    #[test]
    fn names_are_sorted_and_every_other_name_leads_somewhere() {
        assert!(all().is_sorted_by_key(|builtin| builtin.name));
        for (other, name) in ALIASES {
            assert_eq!(find(other).unwrap().name, *name);
        }
        assert!(find("unet4d").is_none());
        assert!(all().iter().all(|builtin| !builtin.about.is_empty()));
    }
}
