//! Powers, logarithms and normal quantiles from additions and multiplications alone.
//!
//! The functions of a C library differ in the last bit between machines, and one bit is enough to change a JPEG file.
//! IEEE addition, multiplication, division and square root do not differ, so everything that affects a byte of a
//! generated image is built from them. The relative accuracy of 10⁻⁷ is far finer than a file size needs.

const LN_2: f64 = std::f64::consts::LN_2;

/// 2 to the power `x`, for |x| below 1000.
pub(crate) fn exp2(x: f64) -> f64 {
    let whole = (x + 1024.0) as i64 - 1024;
    let t = (x - whole as f64) * LN_2;
    // The Taylor series of e^t on [0, ln 2): the eleventh term is below 1e-9.
    let series = (1..=11).rev().fold(1.0, |sum, k| 1.0 + sum * t / f64::from(k));
    series * f64::from_bits(((1023 + whole) as u64) << 52)
}

/// Logarithm to base 2 of a positive, normal `x`.
pub(crate) fn log2(x: f64) -> f64 {
    let bits = x.to_bits();
    let exponent = ((bits >> 52) & 0x7FF) as i64 - 1023;
    let mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    // ln m = 2 atanh((m−1)/(m+1)); the argument is at most 1/3.
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let series = (0..=9).rev().fold(0.0, |sum, k| sum * t * t + 1.0 / f64::from(2 * k + 1));
    exponent as f64 + 2.0 * t * series / LN_2
}

/// The standard normal quantile of `p`, by Tukey's lambda approximation (within 0.015 for p in 0.005..0.995).
pub(crate) fn normal_quantile(p: f64) -> f64 {
    const LAMBDA: f64 = 0.135;
    let power = |q: f64| exp2(LAMBDA * log2(q));
    (power(p) - power(1.0 - p)) / 0.1975
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp2_and_log2_agree_with_the_c_library() {
        for k in -2000..2000 {
            let x = f64::from(k) * 0.013;
            assert!((exp2(x) / x.exp2() - 1.0).abs() < 1e-7, "exp2({x})");
            let y = x.exp2();
            assert!((log2(y) - x).abs() < 1e-7, "log2({y})");
        }
    }

    #[test]
    fn normal_quantile_is_close_at_known_points() {
        for (p, z) in [(0.5, 0.0), (0.75, 0.6745), (0.9, 1.2816), (0.975, 1.96), (0.99, 2.3263), (0.25, -0.6745)] {
            assert!((normal_quantile(p) - z).abs() < 0.015, "quantile of {p}: {}", normal_quantile(p));
        }
    }
}
