//! Walks: the operands of expressions, ops and statements, and the blocks inside a statement.
//! The one list of who holds which operand; every analysis and every rewriting goes through it.

use super::*;

/// The lists, once for looking and once for replacing: the same patterns bind both ways.
macro_rules! lists {
    ($each:ident, $blocks:ident, $iter:ident, $($mutable:tt)?) => {
        impl Expr {
            /// Each operand in the order of evaluation.
            fn $each(&$($mutable)? self, f: &mut impl FnMut(&$($mutable)? ExprId)) {
                match self {
                    Expr::Const { .. } | Expr::Local(_) | Expr::Dim(_) | Expr::Arg(_) | Expr::Iota { .. } => {}
                    Expr::Unary(_, a)
                    | Expr::Cast { value: a, .. }
                    | Expr::Bits { value: a, .. }
                    | Expr::Splat { value: a, .. }
                    | Expr::Transpose(a)
                    | Expr::InsertAxis { value: a, .. }
                    | Expr::Broadcast { value: a, .. }
                    | Expr::Reshape { value: a, .. } => f(a),
                    Expr::Binary(_, a, b) => [a, b].into_iter().for_each(f),
                    Expr::Select { cond, then, other } => [cond, then, other].into_iter().for_each(f),
                    Expr::Math { args, .. } | Expr::Intrinsic { args, .. } => args.$iter().for_each(f),
                    Expr::Element { index, or, .. } => index.$iter().chain(or).for_each(f),
                    Expr::Pick { tile, index } => {
                        f(tile);
                        index.$iter().for_each(f);
                    }
                    Expr::Slice { value, axes } => {
                        f(value);
                        for axis in axes {
                            match axis {
                                SliceAxis::Span { start, .. } => f(start),
                                SliceAxis::At(e) => f(e),
                            }
                        }
                    }
                }
            }
        }

        impl Region {
            fn $each(&$($mutable)? self, f: &mut impl FnMut(&$($mutable)? ExprId)) {
                for axis in self.axes.$iter() {
                    match axis {
                        RegionAxis::At(e) | RegionAxis::Gather { index: e, .. } => f(e),
                        RegionAxis::Span { start, limit, .. } => {
                            f(start);
                            limit.$iter().for_each(&mut *f);
                        }
                        RegionAxis::New => {}
                    }
                }
            }
        }

        impl Place {
            fn $each(&$($mutable)? self, f: &mut impl FnMut(&$($mutable)? ExprId)) {
                match self {
                    Place::Element { index, .. } => index.$iter().for_each(f),
                    Place::Region(region) => region.$each(f),
                }
            }
        }

        impl Init {
            fn $each(&$($mutable)? self, f: &mut impl FnMut(&$($mutable)? ExprId)) {
                match self {
                    Init::When(cond) => f(cond),
                    Init::Accumulate | Init::Overwrite => {}
                }
            }
        }

        impl Op {
            /// Each expression that the op evaluates.
            fn $each(&$($mutable)? self, f: &mut impl FnMut(&$($mutable)? ExprId)) {
                match self {
                    Op::Read { from, pad } => {
                        from.$each(f);
                        pad.$iter().for_each(f);
                    }
                    Op::Write { to, value } => {
                        to.$each(f);
                        f(value);
                    }
                    Op::Gemm { a, b, init, .. } => {
                        [a, b].into_iter().for_each(&mut *f);
                        init.$each(f);
                    }
                    Op::Reduce { inputs, .. } | Op::Scan { inputs, .. } | Op::AllReduce { inputs, .. } => {
                        inputs.$iter().for_each(f);
                    }
                    Op::Fold { index, values, .. } => index.$iter().chain(values).for_each(f),
                    Op::Shuffle { value, lane, .. } => [value, lane].into_iter().for_each(f),
                    Op::Vote { cond: e, .. } | Op::Once { value: e } | Op::Assert { cond: e, .. } => f(e),
                    Op::Atomic { at, value, expected, .. } => {
                        at.$each(f);
                        expected.$iter().for_each(&mut *f);
                        f(value);
                    }
                    Op::Print { parts } => {
                        for part in parts {
                            if let Text::Value(e) = part {
                                f(e);
                            }
                        }
                    }
                    Op::CopyAsync { from, to, pad, .. } => {
                        from.$each(f);
                        to.$each(f);
                        pad.$iter().for_each(f);
                    }
                    Op::Issue { a, b, init, .. } => {
                        for m in [a, b] {
                            match m {
                                MatOperand::Memory { region, .. } => region.$each(f),
                                MatOperand::Value(e) => f(e),
                            }
                        }
                        init.$each(f);
                    }
                    Op::Join { .. }
                    | Op::Barrier { .. }
                    | Op::Acquire { .. }
                    | Op::Wait { .. }
                    | Op::Commit { .. }
                    | Op::Release { .. }
                    | Op::Await { .. }
                    | Op::Take { .. }
                    | Op::Pass { .. }
                    | Op::Fence { .. } => {}
                }
            }
        }

        impl StmtKind {
            /// Each expression that the statement itself evaluates (not those of its blocks).
            fn $each(&$($mutable)? self, f: &mut impl FnMut(&$($mutable)? ExprId)) {
                match self {
                    StmtKind::Let { value, .. }
                    | StmtKind::Assign { value, .. }
                    | StmtKind::Update { value, .. } => f(value),
                    StmtKind::Store { index, value, .. } => {
                        index.$iter().for_each(&mut *f);
                        f(value);
                    }
                    StmtKind::Op { op, .. } => op.$each(f),
                    StmtKind::If { cond, .. } | StmtKind::While { cond, .. } => f(cond),
                    StmtKind::For { segments, .. } => {
                        for Segment { lo, hi, step, values } in segments {
                            [lo, hi, step].into_iter().chain(values).for_each(&mut *f);
                        }
                    }
                    StmtKind::Parallel { extents, .. } => extents.$iter().for_each(f),
                    StmtKind::Declare { .. }
                    | StmtKind::Buffer { .. }
                    | StmtKind::Reducer { .. }
                    | StmtKind::Break
                    | StmtKind::Continue
                    | StmtKind::Next { .. }
                    | StmtKind::Roles(_) => {}
                }
            }

            /// The blocks inside, in the order of the text.
            pub fn $blocks(&$($mutable)? self) -> SmallVec<[&$($mutable)? Block; 2]> {
                match self {
                    StmtKind::If { then, other, .. } => [then, other].into_iter().collect(),
                    StmtKind::For { body, .. }
                    | StmtKind::While { body, .. }
                    | StmtKind::Parallel { body, .. } => std::iter::once(body).collect(),
                    StmtKind::Roles(roles) => roles.$iter().map(|r| &$($mutable)? r.body).collect(),
                    _ => SmallVec::new(),
                }
            }
        }
    };
}

lists!(each, blocks, iter,);
lists!(each_mut, blocks_mut, iter_mut, mut);

/// For passes: the same with other operands.
macro_rules! operands {
    ($($ty:ident)*) => { $(
        impl $ty {
            /// Calls `f` on each operand in the order of evaluation.
            pub fn operands(&self, mut f: impl FnMut(ExprId)) {
                self.each(&mut |e| f(*e));
            }

            /// Puts `f` of each operand in its place; stops at the first that fails.
            pub fn replace_operands<E>(
                &mut self,
                mut f: impl FnMut(ExprId) -> Result<ExprId, E>,
            ) -> Result<(), E> {
                let mut done = Ok(());
                self.each_mut(&mut |e| {
                    if done.is_ok() {
                        done = f(*e).map(|new| *e = new);
                    }
                });
                done
            }
        }
    )* };
}

operands! { Expr Region Place Op StmtKind }

macro_rules! mapped {
    ($($ty:ident)*) => { $(
        impl $ty {
            /// The same over other operands; locals, buffers and tokens stay.
            pub fn map_operands<E>(&self, f: impl FnMut(ExprId) -> Result<ExprId, E>) -> Result<$ty, E> {
                let mut new = self.clone();
                new.replace_operands(f)?;
                Ok(new)
            }
        }
    )* };
}

mapped! { Expr Op }

impl Place {
    pub fn mem(&self) -> Mem {
        match self {
            Place::Element { mem, .. } => *mem,
            Place::Region(region) => region.mem,
        }
    }
}

impl StmtKind {
    /// Locals that the statement itself gives a value or brings to life.
    pub fn defines(&self) -> SmallVec<[LocalId; 4]> {
        match self {
            StmtKind::Let { local, .. }
            | StmtKind::Declare { local }
            | StmtKind::Assign { local, .. }
            | StmtKind::Update { local, .. } => std::iter::once(*local).collect(),
            StmtKind::Op { results, op } => {
                let into = match op {
                    Op::Gemm { into, .. } | Op::Issue { into, .. } => Some(*into),
                    _ => None,
                };
                results.iter().copied().chain(into).collect()
            }
            StmtKind::For { var, named, carry, .. } => std::iter::once(*var)
                .chain(named.iter().copied())
                .chain(carry.iter().map(|c| c.local))
                .collect(),
            StmtKind::Parallel { vars, .. } => vars.iter().copied().collect(),
            StmtKind::Roles(roles) => roles.iter().filter_map(|r| r.group).collect(),
            _ => SmallVec::new(),
        }
    }
}

/// Calls `f` on every statement of a block and of the blocks inside it, outer ones first.
pub fn walk<'a>(block: &'a Block, f: &mut impl FnMut(&'a Stmt)) {
    for stmt in block {
        f(stmt);
        for inner in stmt.kind.blocks() {
            walk(inner, f);
        }
    }
}
