//! Maps whose keys are handles and small numbers: one multiplication a word. Nothing an attacker chooses may be a key,
//! and the order of entries means nothing.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

pub type Map<K, V> = HashMap<K, V, BuildHasherDefault<Words>>;
pub type Set<K> = HashSet<K, BuildHasherDefault<Words>>;

#[derive(Clone, Copy, Default)]
pub struct Words(u64);

impl Words {
    fn word(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(5) ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for Words {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, n: u8) {
        self.word(n.into());
    }

    fn write_u32(&mut self, n: u32) {
        self.word(n.into());
    }

    fn write_u64(&mut self, n: u64) {
        self.word(n);
    }

    fn write_i64(&mut self, n: i64) {
        self.word(n as u64);
    }

    fn write_usize(&mut self, n: usize) {
        self.word(n as u64);
    }

    /// The table takes its places from the low bits, which a product mixes least.
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}
