//! The launcher of this process and its number of processes, from the variables that `mpirun` and `srun` set.

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    pub by: &'static str,
    /// Processes it started.
    pub size: u64,
}

/// Variables that hold the number of processes, with the launcher that sets them.
///
/// Not `SLURM_NTASKS`: it is also set in batch scripts, whose commands run once.
const SIZES: [(&str, &str); 4] = [
    ("OMPI_COMM_WORLD_SIZE", "mpirun"),
    ("PMI_SIZE", "mpirun"),
    ("MV2_COMM_WORLD_SIZE", "mpirun"),
    ("SLURM_STEP_NUM_TASKS", "srun"),
];

impl Launch {
    /// `None` for a process without a launcher.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        SIZES.iter().find_map(|(name, by)| Some(Self { by, size: variable(name)?.parse().ok()? }))
    }

    pub fn is_shared(&self) -> bool {
        self.size > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(set: &[(&str, &str)]) -> Option<Launch> {
        Launch::of(|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn mpirun_and_srun_are_told_by_their_variables() {
        assert_eq!(of(&[("OMPI_COMM_WORLD_SIZE", "8")]), Some(Launch { by: "mpirun", size: 8 }));
        assert_eq!(of(&[("PMI_SIZE", "2"), ("PMI_RANK", "1")]), Some(Launch { by: "mpirun", size: 2 }));
        assert_eq!(of(&[("SLURM_STEP_NUM_TASKS", "4")]), Some(Launch { by: "srun", size: 4 }));
    }

    #[test]
    fn a_command_of_a_batch_script_is_alone() {
        assert_eq!(of(&[("SLURM_NTASKS", "8"), ("SLURM_PROCID", "0")]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn one_process_is_not_shared() {
        assert!(!of(&[("OMPI_COMM_WORLD_SIZE", "1")]).expect("started by mpirun").is_shared());
        assert!(of(&[("OMPI_COMM_WORLD_SIZE", "2")]).expect("started by mpirun").is_shared());
    }
}
