//! Detection of the CPU's instruction sets.

/// An instruction set that the hot loops are compiled for. All levels give the same pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Portable,
    /// AVX2, BMI1, BMI2, LZCNT and POPCNT; used only if all are present.
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Level {
    pub(crate) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
        {
            return Level::Avx2;
        }
        Level::Portable
    }
}
