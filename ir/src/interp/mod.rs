//! The reference interpreter: what a program means. Sequential, exact, strict.
//!
//! * Blocks run one after another in a seeded order; what they touch is recorded, so that two blocks that meet in one
//!   element are found whatever the order ([`shadow`]).
//! * A tile holds its valid elements only ([`tile`]); a fold takes them in ascending index with one accumulator.
//! * Threads run statement by statement, all lanes at once ([`step`]), so that "each statement on all threads before
//!   the next" is the way it works; divergent lanes run under masks in lock step.
//! * Roles are agents that are stepped one at a time ([`block`]); asynchronous work lands as late as its token or
//!   queue allows ([`ring`], [`queue`]).
//! * Whatever has no meaning is a [`Fault`]: poison, an index outside, a race, an overflow, a misused token, a
//!   deadlock. Nothing is guessed.
//!
//! The interpreter runs every stage of a program. It knows no target (a warp's size is an option) and no array
//! library: arguments are canonical bits ([`Tensor`]).

mod agent;
mod args;
mod arith;
mod atomic;
mod block;
mod combine;
mod cx;
mod eval;
mod eval_one;
mod eval_tile;
mod fault;
mod fold;
mod frame;
mod head;
mod host;
mod launch;
mod memory;
mod ops;
mod pure;
mod queue;
mod reducer;
mod region;
mod ring;
mod rng;
mod roles;
mod run;
mod shadow;
mod step;
mod stmt;
mod threads;
mod tile;
mod traits;
mod value;

pub use args::{ArgValue, Tensor};
pub use fault::Fault;

use crate::program::{Body, Expr, KernelId, Program};
use fault::{Exec, malformed};
use host::HostRun;
use run::Session;

/// How to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Chooses every order that a program may not depend on. 0 keeps blocks and threads in ascending order.
    pub seed: u64,
    /// Runs the program this many times with different orders and compares the results.
    pub orders: u32,
    /// Statements that may run before the run is given up.
    pub max_steps: u64,
    /// An element of an `out` that is never written is a fault.
    pub require_coverage: bool,
    /// Threads of a warp and of a group.
    pub warp: u32,
    pub group: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options { seed: 1, orders: 1, max_steps: 200_000_000, require_coverage: true, warp: 32, group: 128 }
    }
}

/// What a run leaves beside its tensors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Lines of `print`, the first of them.
    pub prints: Vec<String>,
    /// How many more there were.
    pub more_prints: u64,
    /// Statements run.
    pub steps: u64,
}

/// Expressions nested deeper than this run on a stack of their own.
const DEEP: usize = 150;
/// Deeper ones are refused.
const TOO_DEEP: usize = 20_000;
const BIG_STACK: usize = 256 << 20;

/// Runs the program's entry. `dims` are values for its dims in order; what is `None` or missing is taken from the
/// shapes of `args`.
pub fn run_host(
    program: &Program,
    dims: &[Option<i64>],
    args: &mut [ArgValue],
    options: &Options,
) -> Result<Report, Box<Fault>> {
    guarded(program, || {
        let before = if options.orders > 1 { copies(args)? } else { Vec::new() };
        let report = run_entry(program, dims, args, options, options.seed)?;
        for n in 1..options.orders {
            let mut again = copies(&before)?;
            run_entry(program, dims, &mut again, options, options.seed.wrapping_add(u64::from(n)))?;
            let differs = (0..args.len()).find(|&i| !host::same(&args[i], &again[i]));
            if let Some(at) = differs.filter(|_| !host::has_float_atomics(program)) {
                return Err(host::order_fault(&program.entry, at, &args[at], &again[at]));
            }
        }
        Ok(report)
    })
}

/// Runs one kernel of a program, as an op of that launch.
pub fn run_kernel(
    program: &Program,
    kernel: KernelId,
    dims: &[Option<i64>],
    args: &mut [ArgValue],
    options: &Options,
) -> Result<Report, Box<Fault>> {
    let Some(k) = program.kernels.get(kernel) else { return Err(malformed("an unknown kernel")) };
    let alone = Program { entry: host::alone(k, kernel), ..program.clone() };
    run_host(&alone, dims, args, options)
}

/// The dims of the program's entry, in order, as the arguments' shapes give them.
pub fn infer_dims(program: &Program, args: &[ArgValue]) -> Result<Vec<i64>, Box<Fault>> {
    let head = head::Head::of_host(program, &program.entry);
    head.bind(&[], &host::shown(args))?.all_dims()
}

fn run_entry(
    program: &Program,
    dims: &[Option<i64>],
    args: &mut [ArgValue],
    options: &Options,
    seed: u64,
) -> Exec<Report> {
    let mut run = HostRun::new(program, options, seed);
    let ran = run.run(dims, args);
    let Session { prints, more_prints, steps, .. } = run.session;
    let report = Report { prints, more_prints, steps };
    match ran {
        Ok(()) => Ok(report),
        Err(mut fault) => {
            fault.before = report;
            Err(fault)
        }
    }
}

fn copies(args: &[ArgValue]) -> Exec<Vec<ArgValue>> {
    let one = |arg: &ArgValue| match arg {
        ArgValue::Scalar(bits) => Ok(ArgValue::Scalar(*bits)),
        ArgValue::Tensor(t) => t.try_clone().map(ArgValue::Tensor),
    };
    args.iter().map(one).collect()
}

/// Checks that recursion over expressions ends, and gives deep ones the stack they need.
fn guarded<T: Send>(program: &Program, run: impl FnOnce() -> Exec<T> + Send) -> Exec<T> {
    let mut deepest = 0;
    let kernels = program.kernels.iter().map(|(_, k)| &k.body);
    let pure = program.combines.iter().map(|(_, c)| &c.func.body);
    let intrinsics = program.intrinsics.iter().map(|(_, i)| &i.means.body);
    for body in kernels.chain(pure).chain(intrinsics).chain([&program.entry.body]) {
        deepest = deepest.max(depth(body)?);
    }
    if deepest <= DEEP {
        return run();
    }
    if deepest > TOO_DEEP {
        return Err(malformed(format!("an expression is nested {deepest} deep")));
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(BIG_STACK).spawn_scoped(scope, run);
        match thread.map(|t| t.join()) {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(e) => Err(malformed(format!("no memory for the stack of a deep expression: {e}"))),
        }
    })
}

/// The deepest nesting of expressions; operands stand before their users.
fn depth(body: &Body) -> Exec<usize> {
    let mut depths: Vec<usize> = Vec::with_capacity(body.exprs.len());
    for (id, expr) in body.exprs.iter() {
        let mut depth = 0;
        let mut ok = body.types.get(id.index()).is_some();
        Expr::operands(expr, |e| match depths.get(e.index()) {
            Some(&d) => depth = depth.max(d + 1),
            None => ok = false,
        });
        if !ok {
            return Err(malformed("an expression that uses what stands after it"));
        }
        depths.push(depth);
    }
    Ok(depths.into_iter().max().unwrap_or(0))
}
