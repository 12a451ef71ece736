//! Randomness that never changes: what a seed gives today it gives in every later version.

/// Random numbers from a 64-bit state (SplitMix64).
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// The numbers of the `index`-th message of a seed.
    pub(crate) fn new(seed: u64, index: u64) -> Self {
        Self(mix(seed) ^ mix(index.wrapping_add(0x9E37_79B9_7F4A_7C15)))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// A number below `bound`, which is not zero.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in `min..=max`.
    pub(crate) fn between(&mut self, min: i64, max: i64) -> i64 {
        match max.abs_diff(min).checked_add(1) {
            Some(span) => min.wrapping_add_unsigned(self.below(span)),
            None => self.next() as i64,
        }
    }

    /// A number in `[0, 1)`.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with that share.
    pub(crate) fn happens(&mut self, share: f64) -> bool {
        share > 0.0 && self.unit() < share
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Indexes that come with given weights.
#[derive(Debug, Clone)]
pub(crate) struct Weighted {
    /// Sums of the weights.
    sums: Vec<f64>,
}

impl Weighted {
    pub(crate) fn new(weights: impl Iterator<Item = f64>) -> Self {
        let mut sum = 0.0;
        let sums = weights
            .map(|weight| {
                sum += weight;
                sum
            })
            .collect();
        Self { sums }
    }

    pub(crate) fn zipf(keys: u32, exponent: f64) -> Self {
        Self::new((1..=keys).map(|key| f64::from(key).powf(-exponent)))
    }

    pub(crate) fn pick(&self, random: &mut Random) -> usize {
        let at = random.unit() * self.sums.last().copied().unwrap_or_default();
        self.sums.partition_point(|sum| *sum <= at).min(self.sums.len().saturating_sub(1))
    }
}

/// The hash of Kafka's Java producer.
pub(crate) fn murmur2(data: &[u8]) -> u32 {
    const M: u32 = 0x5BD1_E995;
    let (words, rest) = data.as_chunks::<4>();
    let mut h = 0x9747_B28C ^ data.len() as u32;
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k ^= k >> 24;
        h = h.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    if !rest.is_empty() {
        let mut tail = [0; 4];
        tail[..rest.len()].copy_from_slice(rest);
        h = (h ^ u32::from_le_bytes(tail)).wrapping_mul(M);
    }
    h = (h ^ (h >> 13)).wrapping_mul(M);
    h ^ (h >> 15)
}
