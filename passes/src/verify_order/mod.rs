//! Replay of a final program: is every meeting of threads in memory ordered by a barrier?
//!
//! One block runs with all its threads and without data. Indices and conditions are computed for each thread from
//! thread numbers, loop variables, constants and sample dims. What depends on data is unknown. An unknown index may be any
//! of its memory, but where inputs give it to all threads alike it counts as 0: two such indices are taken for the same
//! place. An unknown condition that the block agrees on goes each way in a run of its own, one that threads do not agree
//! on lets any thread take either side. The arena remembers by bytes who touched it and after how many barriers, so that
//! buffers that share bytes are seen to meet.
//!
//! Nothing here may ask the ordering pass or use its code: the two have only the table of effects in common.

mod interval;
mod shadow;
mod steps;
mod values;
mod walk;

use crate::pipeline::Cx;
use pantile_ir::diag::Diagnostics;
use pantile_ir::program::*;
use pantile_ir::verify::{KernelInfo, verify};
use steps::digest;
use walk::{Machine, Replay};

/// Ways through unknown conditions and trip counts that are tried.
const PATHS: usize = 64;
/// A block of a launch, one run each: next to nothing, one access, all rows aligned, all of them with tails, some so and
/// some so.
const SAMPLES: [Sample; 8] = [
    Sample { dims: [1; 4], count: 1, block: 0, arg: 1 },
    Sample { dims: [ACCESS; 4], count: 1, block: 0, arg: 1 },
    Sample { dims: [EVEN; 4], count: 8, block: 3, arg: 300 },
    Sample { dims: [ODD; 4], count: 8, block: 0, arg: 300 },
    Sample { dims: [ROUND, ODD, ROUND, ODD], count: 8, block: 3, arg: 300 },
    Sample { dims: [ODD, ROUND, ODD, ROUND], count: 8, block: 3, arg: 300 },
    Sample { dims: [ROUND, ROUND, ODD, ODD], count: 8, block: 3, arg: 300 },
    Sample { dims: [ODD, ODD, ROUND, ROUND], count: 8, block: 3, arg: 300 },
];
/// Elements of the widest access: one step of a loop whose rows are aligned.
const ACCESS: i64 = 16;
const ROUND: i64 = 4096;
/// An even number of steps of any usual tile, where [`ODD`] has an odd one: what alternates between two rows of memory
/// ends on each of them.
const EVEN: i64 = 8192;
const ODD: i64 = 8219;
/// The first of the samples that mix: nothing new where a kernel has one size.
const MIXED: usize = 4;

/// What unknown sizes are taken to be.
#[derive(Clone, Copy, PartialEq, Hash)]
pub(crate) struct Sample {
    /// in turn
    dims: [i64; 4],
    /// dims that are an extent of the grid
    count: i64,
    /// on each axis of the grid
    block: i64,
    /// scalar parameters
    arg: i64,
}

pub fn run(program: Program, cx: &Cx) -> Result<Program, Diagnostics> {
    let info = verify(&program, cx.arch)?;
    for ((_, k), info) in program.kernels.iter().zip(&info.kernels) {
        kernel(k, info, &Machine::of(cx.arch))?;
    }
    Ok(program)
}

fn kernel(k: &Kernel, info: &KernelInfo, machine: &Machine) -> Result<(), Diagnostics> {
    let threads = k.threads.as_ref().map_or(1, Threads::count) as usize;
    let steps = digest(k);
    if threads == 1 || steps.is_empty() {
        return Ok(());
    }
    let sizes = if k.dims.len() > 1 { SAMPLES.len() } else { MIXED };
    let mut r = Replay::new(k, info, machine, SAMPLES[0]);
    for sample in &SAMPLES[..sizes] {
        let mut script: Vec<(i64, i64)> = Vec::new();
        r.seen.clear();
        let mut sizes = false;
        for _ in 0..PATHS {
            r.start(&steps, *sample, script);
            if let Some(d) = r.fault {
                return Err(std::iter::once(*d).collect());
            }
            sizes |= r.values.sample_asked;
            // the next way: the last choice that has another side
            script = std::mem::take(&mut r.script);
            script.truncate(r.at);
            while script.last().is_some_and(|&(now, last)| now == last) {
                script.pop();
            }
            match script.last_mut() {
                Some((now, _)) => *now += 1,
                None => break,
            }
        }
        if !sizes {
            break;
        }
    }
    Ok(())
}
