//! Repeatable pseudo-random numbers: SplitMix64 (Steele, Lea, Flood 2014).

/// A stream of numbers that depends only on its seed.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// Makes the stream of a seed.
    pub fn new(seed: u64) -> Self {
        Rng(seed)
    }

    /// Returns the next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns the next number in 0..1.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}
