//! How the magnitudes are spread over powers of two: an exact histogram with exponents read from bits.

/// The elements of one binade: 2^e ≤ |x| < 2^(e+1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Binade {
    /// Number of negative elements.
    pub negative: u64,
    /// Number of positive elements.
    pub positive: u64,
    /// Number of elements, of either sign, whose magnitude is exactly 2^e.
    pub at_power: u64,
}

impl Binade {
    /// Number of elements of either sign.
    pub fn total(&self) -> u64 {
        self.negative + self.positive
    }
}

/// Histogram of the exponents of finite nonzero elements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Binades(Vec<(i32, Binade)>);

impl Binades {
    /// Adds elements to binade `exponent`; `at_power` of them have the magnitude 2^`exponent`.
    pub fn add(&mut self, exponent: i32, positive: u64, negative: u64, at_power: u64) {
        if positive + negative == 0 {
            return;
        }
        let binade = self.entry(exponent);
        binade.positive += positive;
        binade.negative += negative;
        binade.at_power += at_power;
    }

    /// Adds another histogram.
    pub fn merge(&mut self, other: &Self) {
        for &(exponent, ref binade) in &other.0 {
            let sum = self.entry(exponent);
            sum.negative += binade.negative;
            sum.positive += binade.positive;
            sum.at_power += binade.at_power;
        }
    }

    fn entry(&mut self, exponent: i32) -> &mut Binade {
        let place = self.place(exponent).unwrap_or_else(|place| {
            self.0.insert(place, (exponent, Binade::default()));
            place
        });
        &mut self.0[place].1
    }

    /// Where `exponent` is, or else would be.
    fn place(&self, exponent: i32) -> Result<usize, usize> {
        self.0.binary_search_by_key(&exponent, |(exponent, _)| *exponent)
    }

    /// Gives back the memory that is kept for more binades.
    pub fn shrink(&mut self) {
        self.0.shrink_to_fit();
    }

    /// The occupied binades, smallest magnitudes first, as (exponent, counts).
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (i32, &Binade)> {
        self.0.iter().map(|(exponent, binade)| (*exponent, binade))
    }

    /// Exponents of the smallest and the largest occupied binade.
    pub fn range(&self) -> Option<(i32, i32)> {
        Some((self.0.first()?.0, self.0.last()?.0))
    }

    /// Number of elements in binade `exponent`.
    pub fn count(&self, exponent: i32) -> u64 {
        self.place(exponent).map_or(0, |place| self.0[place].1.total())
    }

    /// Number of elements with |x| ≤ 2^`exponent`. Exact: what a cast flushes to zero when its threshold
    /// is that power of two and the tie goes to zero.
    pub fn at_or_below_power(&self, exponent: i32) -> u64 {
        let (Ok(place) | Err(place)) = self.place(exponent);
        let below: u64 = self.0[..place].iter().map(|(_, binade)| binade.total()).sum();
        below + self.0.get(place).filter(|(its, _)| *its == exponent).map_or(0, |(_, binade)| binade.at_power)
    }
}
