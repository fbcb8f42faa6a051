//! Loops compiled for the widest vectors of the processor.
//!
//! The crate is compiled for a baseline processor. Functions defined here are also compiled for wider vectors, and the
//! widest version that the processor supports is used. The order of sums is fixed and nothing is contracted, so results
//! are bit-identical.

/// Defines functions without results that are also compiled for wide vectors.
macro_rules! widest {
    ($($(#[$about:meta])* $vis:vis fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {$(
        $(#[$about])*
        $vis fn $name($($argument: $type),*) {
            #[inline(always)]
            fn plain($($argument: $type),*) $body

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
            fn avx512($($argument: $type),*) {
                plain($($argument),*);
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            fn avx2($($argument: $type),*) {
                plain($($argument),*);
            }

            #[cfg(target_arch = "x86_64")]
            {
                use std::arch::is_x86_feature_detected as has;
                if has!("avx512f") && has!("avx512bw") && has!("avx512vl") {
                    // SAFETY: the processor has these instructions.
                    return unsafe { avx512($($argument),*) };
                }
                if has!("avx2") {
                    // SAFETY: the processor has these instructions.
                    return unsafe { avx2($($argument),*) };
                }
            }
            plain($($argument),*);
        }
    )*};
}
pub(crate) use widest;
