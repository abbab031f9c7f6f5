//! Walks: the operands of expressions, ops and statements, and the blocks inside a statement.
//! The one list of who holds which operand; every analysis goes through it.

use super::*;

impl Expr {
    /// Calls `f` on each operand in the order of evaluation.
    pub fn operands(&self, mut f: impl FnMut(ExprId)) {
        match self {
            Expr::Const { .. } | Expr::Local(_) | Expr::Dim(_) | Expr::Arg(_) | Expr::Iota { .. } => {}
            Expr::Unary(_, a)
            | Expr::Cast { value: a, .. }
            | Expr::Bits { value: a, .. }
            | Expr::Splat { value: a, .. }
            | Expr::Transpose(a)
            | Expr::InsertAxis { value: a, .. }
            | Expr::Broadcast { value: a, .. }
            | Expr::Reshape { value: a, .. } => f(*a),
            Expr::Binary(_, a, b) => {
                f(*a);
                f(*b);
            }
            Expr::Select { cond, then, other } => [*cond, *then, *other].into_iter().for_each(f),
            Expr::Math { args, .. } | Expr::Intrinsic { args, .. } => args.iter().copied().for_each(f),
            Expr::Element { index, or, .. } => index.iter().chain(or).copied().for_each(f),
            Expr::Pick { tile, index } => {
                f(*tile);
                index.iter().copied().for_each(f);
            }
            Expr::Slice { value, axes } => {
                f(*value);
                for axis in axes {
                    match axis {
                        SliceAxis::Span { start, .. } => f(*start),
                        SliceAxis::At(e) => f(*e),
                    }
                }
            }
        }
    }
}

impl Region {
    pub fn operands(&self, mut f: impl FnMut(ExprId)) {
        for axis in &self.axes {
            match axis {
                RegionAxis::At(e) | RegionAxis::Gather { index: e, .. } => f(*e),
                RegionAxis::Span { start, limit, .. } => {
                    f(*start);
                    limit.iter().copied().for_each(&mut f);
                }
                RegionAxis::New => {}
            }
        }
    }
}

impl Place {
    pub fn operands(&self, f: impl FnMut(ExprId)) {
        match self {
            Place::Element { index, .. } => index.iter().copied().for_each(f),
            Place::Region(region) => region.operands(f),
        }
    }

    pub fn mem(&self) -> Mem {
        match self {
            Place::Element { mem, .. } => *mem,
            Place::Region(region) => region.mem,
        }
    }
}

impl Op {
    /// Calls `f` on each expression that the op evaluates.
    pub fn operands(&self, mut f: impl FnMut(ExprId)) {
        let f = &mut f;
        match self {
            Op::Read { from, pad } => {
                from.operands(&mut *f);
                pad.iter().copied().for_each(f);
            }
            Op::Write { to, value } => {
                to.operands(&mut *f);
                f(*value);
            }
            Op::Gemm { a, b, init, .. } => {
                f(*a);
                f(*b);
                init_operand(*init, f);
            }
            Op::Reduce { inputs, .. } | Op::Scan { inputs, .. } | Op::AllReduce { inputs, .. } => {
                inputs.iter().copied().for_each(f);
            }
            Op::Fold { index, values, .. } => index.iter().chain(values).copied().for_each(f),
            Op::Shuffle { value, lane, .. } => {
                f(*value);
                f(*lane);
            }
            Op::Vote { cond: e, .. } | Op::Once { value: e } | Op::Assert { cond: e, .. } => f(*e),
            Op::Atomic { at, value, expected, .. } => {
                at.operands(&mut *f);
                expected.iter().copied().for_each(&mut *f);
                f(*value);
            }
            Op::Print { parts } => {
                for part in parts {
                    if let Text::Value(e) = part {
                        f(*e);
                    }
                }
            }
            Op::CopyAsync { from, to, pad, .. } => {
                from.operands(&mut *f);
                to.operands(&mut *f);
                pad.iter().copied().for_each(f);
            }
            Op::Issue { a, b, init, .. } => {
                for m in [a, b] {
                    match m {
                        MatOperand::Memory { region, .. } => region.operands(&mut *f),
                        MatOperand::Value(e) => f(*e),
                    }
                }
                init_operand(*init, f);
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

fn init_operand(init: Init, f: &mut impl FnMut(ExprId)) {
    if let Init::When(cond) = init {
        f(cond);
    }
}

impl StmtKind {
    /// Calls `f` on each expression that the statement itself evaluates (not those of its blocks).
    pub fn operands(&self, mut f: impl FnMut(ExprId)) {
        match self {
            StmtKind::Let { value, .. } | StmtKind::Assign { value, .. } | StmtKind::Update { value, .. } => {
                f(*value)
            }
            StmtKind::Store { index, value, .. } => {
                index.iter().copied().for_each(&mut f);
                f(*value);
            }
            StmtKind::Op { op, .. } => op.operands(f),
            StmtKind::If { cond, .. } | StmtKind::While { cond, .. } => f(*cond),
            StmtKind::For { segments, .. } => {
                for s in segments {
                    [s.lo, s.hi, s.step].iter().chain(&s.values).copied().for_each(&mut f);
                }
            }
            StmtKind::Parallel { extents, .. } => extents.iter().copied().for_each(f),
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
    pub fn blocks(&self) -> SmallVec<[&Block; 2]> {
        match self {
            StmtKind::If { then, other, .. } => [then, other].into_iter().collect(),
            StmtKind::For { body, .. } | StmtKind::While { body, .. } | StmtKind::Parallel { body, .. } => {
                std::iter::once(body).collect()
            }
            StmtKind::Roles(roles) => roles.iter().map(|r| &r.body).collect(),
            _ => SmallVec::new(),
        }
    }

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
