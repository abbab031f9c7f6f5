//! The stream of choices behind a generated program. A program is a function of its choices, so a smaller stream is
//! a smaller program: 0 is the plainest alternative everywhere, and what is missing at the end counts as 0.

/// SplitMix64.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    #[expect(clippy::should_implement_trait, reason = "an endless stream, not an iterator")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `n`, which is not 0.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

#[derive(Clone, Debug)]
pub struct Choices {
    taken: Vec<u32>,
    at: usize,
    fresh: Option<Rng>,
}

impl Choices {
    pub fn seeded(seed: u64) -> Choices {
        Choices { taken: Vec::new(), at: 0, fresh: Some(Rng::new(seed)) }
    }

    pub fn replay(taken: &[u32]) -> Choices {
        Choices { taken: taken.to_vec(), at: 0, fresh: None }
    }

    /// What was chosen so far.
    pub fn taken(&self) -> &[u32] {
        &self.taken[..self.at.min(self.taken.len())]
    }

    /// One of `n` alternatives, 0 the plainest.
    pub fn below(&mut self, n: usize) -> usize {
        if n <= 1 {
            return 0;
        }
        if self.at == self.taken.len()
            && let Some(rng) = &mut self.fresh
        {
            self.taken.push(rng.below(n) as u32);
        }
        let value = self.taken.get(self.at).copied().unwrap_or(0) as usize % n;
        self.at += 1;
        value
    }

    /// True `num` times in `den`; false is the plain way.
    pub fn chance(&mut self, num: usize, den: usize) -> bool {
        self.below(den) >= den - num
    }

    pub fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    pub fn range(&mut self, lo: i64, hi: i64) -> i64 {
        lo + self.below((hi - lo + 1) as usize) as i64
    }
}
