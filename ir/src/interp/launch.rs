//! One launch: parameters bound, blocks run one after another in a seeded order.

use super::Options;
use super::fault::{Exec, fault, malformed};
use super::head::{Head, Shown};
use super::memory::{MOST_OF_A_BLOCK, MemId, Memory};
use super::ring::Engines;
use super::rng::Rng;
use super::run::{Bound, Run, Session, Spans};
use super::traits::Traits;
use crate::codes;
use crate::program::*;
use pantile_abi::DType;
use std::rc::Rc;

/// What to do where a value is held in parts.
const SPLIT_HELP: &str = "run it in one part: one group, no cluster, `ways = 1`; or write the parts to a workspace and add them in a second launch";
/// More blocks than a run can order.
const MOST_BLOCKS: i64 = 1 << 24;

/// What is handed to a kernel for each parameter.
#[derive(Clone, Copy, Debug)]
pub(super) enum Handed {
    Scalar(u64),
    Memory(MemId),
}

pub(super) struct Launch<'p> {
    pub program: &'p Program,
    pub kernel: KernelId,
    pub traits: Rc<Traits>,
    pub options: &'p Options,
    pub seed: u64,
}

impl<'p> Launch<'p> {
    /// Runs the kernel on memories that the host keeps; they come back changed, whatever happens.
    pub fn run(
        &self,
        given: &[Option<i64>],
        handed: &[Handed],
        mems: &mut Vec<Memory>,
        session: &mut Session,
    ) -> Exec<()> {
        let Some(kernel) = self.program.kernels.get(self.kernel) else {
            return Err(malformed("a launch of an unknown kernel"));
        };
        if let Some(split) = kernel.split_value() {
            let text = format!(
                "`{}` is held in {} parts over {}, and nothing joins them here",
                split.name,
                split.parts,
                split.over.name()
            );
            return Err(fault(codes::UNSUPPORTED, text).at(split.span).help(SPLIT_HELP));
        }
        let shown: Vec<Shown> = handed.iter().map(|h| show(*h, mems)).collect::<Exec<_>>()?;
        let named = |f: Box<super::Fault>| f.at(kernel.span);
        let mut heads = Head::of_kernel(self.program, kernel).bind(given, &shown).map_err(named)?;
        let dims = heads.all_dims().map_err(named)?;
        let mut extents = Vec::with_capacity(kernel.grid.extents.len());
        for &e in &kernel.grid.extents {
            extents.push(heads.index(e).map_err(|f| f.at(kernel.body.exprs.span(e)))?);
        }
        self.modes(kernel, handed, mems).map_err(named)?;
        tiles_fit(kernel)?;
        let args = handed.iter().map(|h| match h {
            Handed::Scalar(v) => Bound::Scalar(*v),
            Handed::Memory(id) => Bound::Memory(*id),
        });
        let globals = mems.len();
        let mut run = Run {
            program: self.program,
            kernel,
            options: self.options,
            session: std::mem::take(session),
            traits: self.traits.clone(),
            dims,
            args: args.collect(),
            mems: std::mem::take(mems),
            globals,
            engines: Engines::default(),
            rng: Rng::new(self.seed),
            epoch: 0,
            block_epoch: 0,
            extents,
            block_starts: Vec::new(),
            spans: Spans::default(),
        };
        let result = run.run_blocks();
        run.mems.truncate(globals);
        *mems = run.mems;
        *session = run.session;
        result
    }

    /// Sets modes, shadows and poison; one memory under two parameters must be read only.
    fn modes(&self, kernel: &Kernel, handed: &[Handed], mems: &mut [Memory]) -> Exec<()> {
        let mut owners: Vec<Option<(&str, Mode)>> = vec![None; mems.len()];
        for ((_, arg), h) in kernel.args.iter().zip(handed) {
            let (ArgKind::Tensor(t), Handed::Memory(id)) = (&arg.kind, h) else { continue };
            if let Some((other, mode)) = owners[*id]
                && (mode != Mode::In || t.mode != Mode::In)
            {
                let message = format!(
                    "`{other}` and `{}` of `{}` are the same memory, and one of them is written",
                    arg.name, kernel.name
                );
                return Err(fault(codes::BIND_OVERLAP, message).help("hand in two tensors, or one `inout`"));
            }
            if owners[*id].is_none() {
                mems[*id].enter(t.mode)?;
            }
            owners[*id] = Some((&arg.name, t.mode));
        }
        Ok(())
    }
}

/// The tiles that a block may hold at once: those of its variables, and operands.
fn tiles_fit(kernel: &Kernel) -> Exec<()> {
    let large = |ty: &Type| if ty.is_tile() { ty.count() } else { 0 };
    let held: usize = kernel.body.locals.iter().map(|(_, l)| large(&l.ty)).sum();
    let exprs = kernel.body.types.iter().enumerate().map(|(i, ty)| (large(ty), i));
    let Some((most, at)) = exprs.max().filter(|(most, _)| held.saturating_add(*most) > MOST_OF_A_BLOCK)
    else {
        return Ok(());
    };
    let message = format!("`{}` works on tiles that are more than the interpreter holds", kernel.name);
    let span = kernel.body.exprs.iter().nth(at).map_or(kernel.span, |(id, _)| kernel.body.exprs.span(id));
    Err(fault(codes::MEMORY, message)
        .at(span)
        .label("the largest")
        .value("its variables and this value", format!("{} elements", held.saturating_add(most)))
        .help(format!(
            "a block may hold {MOST_OF_A_BLOCK} elements: cut them into smaller tiles and loop over them"
        )))
}

fn show(h: Handed, mems: &[Memory]) -> Exec<Shown> {
    Ok(match h {
        Handed::Scalar(v) => Shown::Scalar(v),
        Handed::Memory(id) => {
            let m = mems.get(id).ok_or_else(|| malformed("an unknown tensor"))?;
            let dtype: Option<DType> = m.elem.dtype();
            let dtype = dtype.ok_or_else(|| malformed("a tensor of indices"))?;
            Shown::Tensor { dtype, shape: m.dims.clone(), strides: m.strides.clone() }
        }
    })
}

impl Run<'_> {
    fn run_blocks(&mut self) -> Exec<()> {
        let extents = self.extents.clone();
        if extents.iter().any(|&n| n <= 0) {
            return Ok(());
        }
        let total = extents.iter().try_fold(1i64, |n, &e| n.checked_mul(e)).unwrap_or(i64::MAX);
        if total > MOST_BLOCKS {
            return Err(fault(
                codes::STEP_LIMIT,
                format!("`{}` has more blocks than can be run here", self.kernel.name),
            )
            .value("the blocks", total.to_string())
            .at(self.kernel.span)
            .help("run it on smaller tensors"));
        }
        let mut order: Vec<u32> = (0..total as u32).collect();
        if self.options.seed != 0 || self.options.orders > 1 {
            self.rng.shuffle(&mut order);
        }
        for n in order {
            self.run_block(n)?;
        }
        Ok(())
    }
}
