//! The same walks as [`super::visit`], replacing what they meet: for passes, which make new statements out of old ones.

use super::*;

impl Expr {
    /// The same expression over other operands.
    pub fn map_operands<E>(&self, mut f: impl FnMut(ExprId) -> Result<ExprId, E>) -> Result<Expr, E> {
        let mut new = self.clone();
        match &mut new {
            Expr::Const { .. } | Expr::Local(_) | Expr::Dim(_) | Expr::Arg(_) | Expr::Iota { .. } => {}
            Expr::Unary(_, a)
            | Expr::Cast { value: a, .. }
            | Expr::Bits { value: a, .. }
            | Expr::Splat { value: a, .. }
            | Expr::Transpose(a)
            | Expr::InsertAxis { value: a, .. }
            | Expr::Broadcast { value: a, .. }
            | Expr::Reshape { value: a, .. } => set(a, &mut f)?,
            Expr::Binary(_, a, b) => {
                set(a, &mut f)?;
                set(b, &mut f)?;
            }
            Expr::Select { cond, then, other } => {
                [cond, then, other].into_iter().try_for_each(|e| set(e, &mut f))?
            }
            Expr::Math { args, .. } | Expr::Intrinsic { args, .. } => all(args, &mut f)?,
            Expr::Element { index, or, .. } => {
                all(index, &mut f)?;
                all(or, &mut f)?;
            }
            Expr::Pick { tile, index } => {
                set(tile, &mut f)?;
                all(index, &mut f)?;
            }
            Expr::Slice { value, axes } => {
                set(value, &mut f)?;
                for axis in axes {
                    match axis {
                        SliceAxis::Span { start, .. } => set(start, &mut f)?,
                        SliceAxis::At(e) => set(e, &mut f)?,
                    }
                }
            }
        }
        Ok(new)
    }
}

fn set<E>(e: &mut ExprId, f: &mut impl FnMut(ExprId) -> Result<ExprId, E>) -> Result<(), E> {
    *e = f(*e)?;
    Ok(())
}

fn all<'a, E>(
    list: impl IntoIterator<Item = &'a mut ExprId>,
    f: &mut impl FnMut(ExprId) -> Result<ExprId, E>,
) -> Result<(), E> {
    list.into_iter().try_for_each(|e| set(e, f))
}

impl Region {
    pub fn map_operands<E>(&self, mut f: impl FnMut(ExprId) -> Result<ExprId, E>) -> Result<Region, E> {
        let mut new = self.clone();
        region(&mut new, &mut f)?;
        Ok(new)
    }
}

fn region<E>(r: &mut Region, f: &mut impl FnMut(ExprId) -> Result<ExprId, E>) -> Result<(), E> {
    for axis in &mut r.axes {
        match axis {
            RegionAxis::At(e) | RegionAxis::Gather { index: e, .. } => set(e, f)?,
            RegionAxis::Span { start, limit, .. } => {
                set(start, f)?;
                all(limit, f)?;
            }
            RegionAxis::New => {}
        }
    }
    Ok(())
}

fn init<E>(i: &mut Init, f: &mut impl FnMut(ExprId) -> Result<ExprId, E>) -> Result<(), E> {
    match i {
        Init::When(e) => set(e, f),
        Init::Accumulate | Init::Overwrite => Ok(()),
    }
}

impl Op {
    /// The same op over other operands; locals, buffers and tokens stay.
    pub fn map_operands<E>(&self, mut f: impl FnMut(ExprId) -> Result<ExprId, E>) -> Result<Op, E> {
        let mut new = self.clone();
        let f = &mut f;
        match &mut new {
            Op::Read { from, pad } => {
                region(from, f)?;
                all(pad, f)?;
            }
            Op::Write { to, value } => {
                region(to, f)?;
                set(value, f)?;
            }
            Op::Gemm { a, b, init: i, .. } => {
                set(a, f)?;
                set(b, f)?;
                init(i, f)?;
            }
            Op::Reduce { inputs, .. } | Op::Scan { inputs, .. } | Op::AllReduce { inputs, .. } => {
                all(inputs, f)?
            }
            Op::Fold { index, values, .. } => {
                all(index, f)?;
                all(values, f)?;
            }
            Op::Shuffle { value, lane, .. } => {
                set(value, f)?;
                set(lane, f)?;
            }
            Op::Vote { cond: e, .. } | Op::Once { value: e } | Op::Assert { cond: e, .. } => set(e, f)?,
            Op::Atomic { at, value, expected, .. } => {
                match at {
                    Place::Element { index, .. } => all(index, f)?,
                    Place::Region(r) => region(r, f)?,
                }
                all(expected, f)?;
                set(value, f)?;
            }
            Op::Print { parts } => {
                for part in parts {
                    if let Text::Value(e) = part {
                        set(e, f)?;
                    }
                }
            }
            Op::CopyAsync { from, to, pad, .. } => {
                region(from, f)?;
                region(to, f)?;
                all(pad, f)?;
            }
            Op::Issue { a, b, init: i, .. } => {
                for m in [a, b] {
                    match m {
                        MatOperand::Memory { region: r, .. } => region(r, f)?,
                        MatOperand::Value(e) => set(e, f)?,
                    }
                }
                init(i, f)?;
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
        Ok(new)
    }
}

impl StmtKind {
    /// Replaces the expressions that the statement itself evaluates (not those of its blocks).
    pub fn map_operands<E>(&mut self, mut f: impl FnMut(ExprId) -> Result<ExprId, E>) -> Result<(), E> {
        let f = &mut f;
        match self {
            StmtKind::Let { value, .. } | StmtKind::Assign { value, .. } | StmtKind::Update { value, .. } => {
                set(value, f)
            }
            StmtKind::Store { index, value, .. } => {
                all(index, f)?;
                set(value, f)
            }
            StmtKind::Op { op, .. } => {
                *op = op.map_operands(f)?;
                Ok(())
            }
            StmtKind::If { cond, .. } | StmtKind::While { cond, .. } => set(cond, f),
            StmtKind::For { segments, .. } => segments.iter_mut().try_for_each(|s| {
                [&mut s.lo, &mut s.hi, &mut s.step].into_iter().try_for_each(|e| set(e, f))?;
                all(&mut s.values, f)
            }),
            StmtKind::Parallel { extents, .. } => all(extents, f),
            StmtKind::Declare { .. }
            | StmtKind::Buffer { .. }
            | StmtKind::Reducer { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Next { .. }
            | StmtKind::Roles(_) => Ok(()),
        }
    }

    /// The blocks inside, to be replaced.
    pub fn blocks_mut(&mut self) -> SmallVec<[&mut Block; 2]> {
        match self {
            StmtKind::If { then, other, .. } => [then, other].into_iter().collect(),
            StmtKind::For { body, .. } | StmtKind::While { body, .. } | StmtKind::Parallel { body, .. } => {
                std::iter::once(body).collect()
            }
            StmtKind::Roles(roles) => roles.iter_mut().map(|r| &mut r.body).collect(),
            _ => SmallVec::new(),
        }
    }
}
