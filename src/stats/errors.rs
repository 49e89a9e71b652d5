//! Sums from which the error figures follow.

/// Errors of dequantised values against the elements they stand for.
///
/// Elements that are NaN or Inf, or become so, are no part of any sum.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ErrorSums {
    /// Number of elements in the sums.
    pub elements: u64,
    /// Number of those that are nonzero: the relative errors are theirs.
    pub nonzero: u64,
    /// Number of finite elements left out because they are stored as Inf or NaN.
    pub left_out: u64,
    /// Σ x².
    pub signal: f64,
    /// Σ (x − q/s)².
    pub noise: f64,
    /// Σ |x − q/s| / |x| over nonzero x.
    pub relative: f64,
    /// Largest |x − q/s|.
    pub max_abs: f64,
    /// Largest |x − q/s| / |x| over nonzero x.
    pub max_rel: f64,
}

impl ErrorSums {
    /// Adds `count` finite elements `x` that come back as `dequantised`.
    pub fn observe(&mut self, x: f64, dequantised: f64, count: u64) {
        if !dequantised.is_finite() {
            self.left_out += count;
            return;
        }
        let n = count as f64;
        let error = (x - dequantised).abs();
        self.elements += count;
        self.signal += n * (x * x);
        self.noise += n * (error * error);
        self.max_abs = self.max_abs.max(error);
        if x != 0.0 {
            let relative = error / x.abs();
            self.nonzero += count;
            self.relative += n * relative;
            self.max_rel = self.max_rel.max(relative);
        }
    }

    /// Adds the sums of the elements that follow.
    pub fn merge(&mut self, next: &Self) {
        self.elements += next.elements;
        self.nonzero += next.nonzero;
        self.left_out += next.left_out;
        self.signal += next.signal;
        self.noise += next.noise;
        self.relative += next.relative;
        self.max_abs = self.max_abs.max(next.max_abs);
        self.max_rel = self.max_rel.max(next.max_rel);
    }

    /// Mean squared error; `None` without elements.
    pub fn mse(&self) -> Option<f64> {
        (self.elements > 0).then(|| self.noise / self.elements as f64)
    }

    /// ‖x − q/s‖ / ‖x‖; `None` if every element is zero, or the squares leave the range of an f64.
    pub fn rel_l2(&self) -> Option<f64> {
        self.has_ratio().then(|| (self.noise / self.signal).sqrt())
    }

    /// Signal to quantisation noise ratio, 20·log10(‖x‖ / ‖x − q/s‖) in dB: +Inf without any error, `None`
    /// as for [`rel_l2`](Self::rel_l2).
    pub fn sqnr_db(&self) -> Option<f64> {
        self.has_ratio().then(|| 10.0 * libm::log10(self.signal / self.noise))
    }

    fn has_ratio(&self) -> bool {
        self.signal > 0.0 && self.signal.is_finite() && self.noise.is_finite()
    }

    /// Mean of |x − q/s| / |x| over nonzero elements; `None` without any.
    pub fn mean_rel(&self) -> Option<f64> {
        (self.nonzero > 0).then(|| self.relative / self.nonzero as f64)
    }

    /// Largest absolute error; `None` without elements.
    pub fn max_abs(&self) -> Option<f64> {
        (self.elements > 0).then_some(self.max_abs)
    }

    /// Largest relative error; `None` without nonzero elements.
    pub fn max_rel(&self) -> Option<f64> {
        (self.nonzero > 0).then_some(self.max_rel)
    }
}
