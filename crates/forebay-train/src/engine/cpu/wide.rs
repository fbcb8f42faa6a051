//! Loops for the widest vectors that the processor has.
//!
//! The crate is compiled for every processor of its kind. What goes through here is compiled a few times more, and the widest
//! that the processor has is taken. No sum changes its order and nothing is contracted, so the results are the same to the last bit.

/// Defines functions without results that are compiled for wide vectors too.
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
