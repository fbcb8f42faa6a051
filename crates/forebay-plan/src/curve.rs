//! How much a storage delivers with how many requests in flight.

/// Requests per second, by the number of requests in flight. Between two points it is interpolated on logarithms; a device that was only
/// seen with many requests in flight serves fewer in proportion; beyond the last point it delivers no more.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Sorted by the number in flight; never empty.
    points: Vec<Point>,
}

/// One measured concurrency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    pub in_flight: f64,
    pub per_s: f64,
    /// Relative standard error of `per_s`.
    pub error: f64,
}

impl Curve {
    /// `None` without a point of a positive, finite rate.
    pub fn new(points: impl IntoIterator<Item = Point>) -> Option<Self> {
        let is_usable = |point: &Point| point.per_s > 0.0 && point.per_s.is_finite() && point.in_flight > 0.0;
        let mut points: Vec<Point> = points.into_iter().filter(is_usable).collect();
        points.sort_by(|a, b| a.in_flight.total_cmp(&b.in_flight));
        (!points.is_empty()).then_some(Self { points })
    }

    pub fn points(&self) -> &[Point] {
        &self.points
    }

    pub fn rate(&self, in_flight: f64) -> f64 {
        let (first, last) = (self.points[0], self.points[self.points.len() - 1]);
        if in_flight <= first.in_flight {
            return first.per_s * in_flight / first.in_flight;
        }
        let above = self.points.iter().position(|point| point.in_flight >= in_flight);
        let Some(above) = above else { return last.per_s };
        let (a, b) = (self.points[above - 1], self.points[above]);
        let place = (in_flight / a.in_flight).ln() / (b.in_flight / a.in_flight).ln();
        (a.per_s.ln() + (b.per_s / a.per_s).ln() * place).exp()
    }

    /// The most requests in flight that were measured.
    pub fn known_to(&self) -> f64 {
        self.points[self.points.len() - 1].in_flight
    }

    /// The largest relative standard error of a point.
    pub fn error(&self) -> f64 {
        self.points.iter().map(|point| point.error).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(f64, f64)]) -> Curve {
        Curve::new(points.iter().map(|(in_flight, per_s)| Point { in_flight: *in_flight, per_s: *per_s, error: 0.0 }))
            .unwrap()
    }

    #[test]
    fn a_rate_between_two_points_is_interpolated_on_logarithms() {
        let disk = curve(&[(1.0, 100.0), (4.0, 400.0), (16.0, 400.0)]);
        assert!((disk.rate(2.0) - 200.0).abs() < 1e-9);
        assert_eq!((disk.rate(0.5), disk.rate(8.0).round(), disk.rate(99.0)), (50.0, 400.0, 400.0));
        assert_eq!(disk.known_to(), 16.0);
    }

    #[test]
    fn points_without_a_rate_are_left_out() {
        assert_eq!(Curve::new([Point { in_flight: 1.0, per_s: 0.0, error: 0.0 }]), None);
        assert_eq!(Curve::new([Point { in_flight: 1.0, per_s: f64::NAN, error: 0.0 }]), None);
    }
}
