//! Makes a failing program smaller by making its choices fewer and plainer.

use std::time::{Duration, Instant};

/// The smallest choices found for which `fails` still holds, within a time.
pub fn shrink(start: &[u32], limit: Duration, mut fails: impl FnMut(&[u32]) -> bool) -> Vec<u32> {
    let end = Instant::now() + limit;
    let mut best = trimmed(start);
    let mut attempt = |candidate: Vec<u32>, best: &mut Vec<u32>| -> bool {
        let candidate = trimmed(&candidate);
        let smaller = (candidate.len(), sum(&candidate)) < (best.len(), sum(best));
        if smaller && Instant::now() < end && fails(&candidate) {
            *best = candidate;
            return true;
        }
        false
    };
    loop {
        let before = best.clone();
        for size in [64, 32, 16, 8, 4, 2, 1] {
            cut(size, &mut best, &mut attempt);
        }
        zero(&mut best, &mut attempt);
        lower(&mut best, &mut attempt);
        if best == before || Instant::now() >= end {
            return best;
        }
    }
}

type Attempt<'a> = dyn FnMut(Vec<u32>, &mut Vec<u32>) -> bool + 'a;

/// Removes runs of choices, the last first.
fn cut(size: usize, best: &mut Vec<u32>, attempt: &mut Attempt) {
    let mut at = best.len();
    while at > 0 {
        at = at.saturating_sub(size).min(best.len());
        let end = (at + size).min(best.len());
        let mut candidate = best.clone();
        candidate.drain(at..end);
        attempt(candidate, best);
    }
}

fn zero(best: &mut Vec<u32>, attempt: &mut Attempt) {
    for size in [16, 4, 1] {
        let mut at = 0;
        while at < best.len() {
            let end = (at + size).min(best.len());
            let mut candidate = best.clone();
            candidate[at..end].fill(0);
            attempt(candidate, best);
            at += size;
        }
    }
}

fn lower(best: &mut Vec<u32>, attempt: &mut Attempt) {
    for at in 0..best.len() {
        while at < best.len() && best[at] > 0 {
            let mut candidate = best.clone();
            candidate[at] /= 2;
            if attempt(candidate, best) {
                continue;
            }
            let mut candidate = best.clone();
            candidate[at] -= 1;
            if !attempt(candidate, best) {
                break;
            }
        }
    }
}

/// What is missing at the end counts as 0.
fn trimmed(choices: &[u32]) -> Vec<u32> {
    let kept = choices.iter().rposition(|&c| c != 0).map_or(0, |i| i + 1);
    choices[..kept].to_vec()
}

fn sum(choices: &[u32]) -> u64 {
    choices.iter().map(|&c| u64::from(c)).sum()
}
