//! Valid boxes after loops: a tile that a loop leaves behind may not be ragged in a way that depends on the loop's
//! variable, since nobody could say which step it came from.

use super::lanes::Definitions;
use super::{Verifier, each_below, operands_of};
use crate::codes;
use crate::program::*;
use crate::span::Span;
use crate::typing;
use std::collections::HashMap;

pub fn kernel(v: &mut Verifier) {
    let k = v.kernel;
    let mut loops = Vec::new();
    let mut order: Vec<&Stmt> = Vec::new();
    walk(&k.stmts, &mut |s| {
        if let StmtKind::For { var, body, .. } = &s.kind {
            let mut inside = 0;
            walk(body, &mut |_| inside += 1);
            loops.push((order.len(), order.len() + inside, *var));
        }
        order.push(s);
    });
    if loops.is_empty() {
        return;
    }
    let defs = Definitions::of(k);
    let values = tile_values(&order);
    for (first, last, var) in loops {
        let mut boxes = Boxes { v, defs: &defs, values: &values, var, memo: HashMap::new() };
        let mut kept: Vec<(LocalId, Span, Option<&str>)> = Vec::new();
        let mut inner = Vec::new();
        for s in &order[first + 1..=last] {
            if let StmtKind::Let { local, .. } | StmtKind::Declare { local } = &s.kind {
                inner.push(*local);
            }
            let replaced = match &s.kind {
                StmtKind::Assign { local, value } if k.body.types[value.index()].is_tile() => {
                    (boxes.expr(*value) != 0).then_some(*local)
                }
                StmtKind::Op {
                    op: Op::Gemm { a, b, into, init: Init::Overwrite | Init::When(_), .. },
                    ..
                } => (boxes.product(*a, *b) != 0).then_some(*into),
                _ => None,
            };
            let pad = match &s.kind {
                StmtKind::Assign { value, .. } => neutral(&k.body, *value),
                _ => Some("0"),
            };
            kept.extend(replaced.filter(|l| !inner.contains(l)).map(|l| (l, s.span, pad)));
        }
        for (l, span, pad) in kept {
            if let Some(read) = read_after(k, &order[last + 1..], l) {
                let name = v.local_name(l);
                let var = v.local_name(var);
                let message = format!("`{name}` keeps an edge that depends on `{var}` after the loop");
                let pad = match pad {
                    Some(v) => {
                        format!("make the read full with what leaves `{name}` as it is: `A[...] pad {v}`")
                    }
                    None => {
                        "make the read full: `A[...] pad V`, with a V that leaves the result as it is".into()
                    }
                };
                v.error(codes::BOX_AFTER_LOOP, span, message)
                    .label(format!("its valid part depends on `{var}`"))
                    .also(read, "read here, where the loop has ended")
                    .help(format!("update in place, which keeps the box (`x += y`), or {pad}"));
            }
        }
    }
}

/// What a padded operand must hold to change nothing, where the outermost operation tells.
fn neutral(body: &Body, value: ExprId) -> Option<&'static str> {
    let float = body.types[value.index()].elem().and_then(|e| e.dtype()).is_some_and(|d| d.is_float());
    match &body.exprs[value] {
        Expr::Math { f: MathFn::Max, .. } if float => Some("-inf"),
        Expr::Math { f: MathFn::Min, .. } if float => Some("inf"),
        Expr::Binary(BinOp::Add | BinOp::Sub | BinOp::Or | BinOp::Xor, ..) => Some("0"),
        Expr::Binary(BinOp::Mul, ..) => Some("1"),
        _ => None,
    }
}

/// Where a local is read before it is replaced.
fn read_after(k: &Kernel, rest: &[&Stmt], l: LocalId) -> Option<Span> {
    for s in rest {
        let mut found = matches!(&s.kind, StmtKind::Update { local, .. } if *local == l);
        each_below(&k.body, &operands_of(&s.kind), |_, e| found |= *e == Expr::Local(l));
        if found {
            return Some(s.span);
        }
        if matches!(&s.kind, StmtKind::Assign { local, .. } if *local == l) {
            return None;
        }
    }
    None
}

/// What gives each tile its box.
enum Source<'a> {
    Value(ExprId),
    Read { from: &'a Region, padded: bool },
    Reduced { input: ExprId, axis: Option<u8> },
    Product(ExprId, ExprId),
}

fn tile_values<'a>(order: &[&'a Stmt]) -> HashMap<LocalId, Vec<Source<'a>>> {
    let mut out: HashMap<LocalId, Vec<Source>> = HashMap::new();
    for s in order {
        match &s.kind {
            StmtKind::Let { local, value } | StmtKind::Assign { local, value } => {
                out.entry(*local).or_default().push(Source::Value(*value));
            }
            StmtKind::Op { results, op } => {
                let source = |i: usize| match op {
                    Op::Read { from, pad } => Some(Source::Read { from, padded: pad.is_some() }),
                    Op::Reduce { inputs, axis, .. } => {
                        Some(Source::Reduced { input: inputs[i], axis: *axis })
                    }
                    Op::Scan { inputs, .. } => Some(Source::Value(inputs[i])),
                    _ => None,
                };
                for (i, &r) in results.iter().enumerate() {
                    out.entry(r).or_default().extend(source(i));
                }
                if let Op::Gemm { a, b, into, init: Init::Overwrite | Init::When(_), .. } = op {
                    out.entry(*into).or_default().push(Source::Product(*a, *b));
                }
            }
            _ => {}
        }
    }
    out
}

/// For one loop variable: on which axes the box of a tile depends on it, as bits.
struct Boxes<'v, 'a, 'o, 'c> {
    v: &'v Verifier<'a, 'o>,
    defs: &'c Definitions,
    values: &'c HashMap<LocalId, Vec<Source<'a>>>,
    var: LocalId,
    memo: HashMap<LocalId, u8>,
}

impl Boxes<'_, '_, '_, '_> {
    fn depends(&self, e: ExprId) -> bool {
        self.defs.sources(self.v.body(), e).contains(&self.var)
    }

    fn local(&mut self, l: LocalId) -> u8 {
        if let Some(&known) = self.memo.get(&l) {
            return known;
        }
        self.memo.insert(l, 0);
        let mut all = 0;
        for source in self.values.get(&l).map(Vec::as_slice).unwrap_or_default() {
            all |= match *source {
                Source::Value(e) => self.expr(e),
                Source::Read { from, padded } => {
                    if padded {
                        0
                    } else {
                        self.region(from)
                    }
                }
                Source::Reduced { input, axis: Some(axis) } => drop_bit(self.expr(input), axis),
                Source::Reduced { axis: None, .. } => 0,
                Source::Product(a, b) => self.product(a, b),
            };
        }
        self.memo.insert(l, all);
        all
    }

    fn product(&mut self, a: ExprId, b: ExprId) -> u8 {
        (self.expr(a) & 1) | (self.expr(b) & 2)
    }

    fn region(&mut self, r: &Region) -> u8 {
        let extents = typing::mem_extents(&self.v.ctx, r.mem).unwrap_or_default();
        let (mut out, mut bit, mut at) = (0, 0, 0);
        for axis in &r.axes {
            let extent = extents.get(at).copied().flatten();
            match axis {
                RegionAxis::At(_) => at += 1,
                RegionAxis::New => bit += 1,
                RegionAxis::Span { start, len, limit, .. } => {
                    // memory of a known extent is only clipped where its reader says so
                    let fixed = !matches!(r.mem, Mem::Tensor(_)) && limit.is_none();
                    let whole = extent == Some(u64::from(*len));
                    let ragged = !(fixed || whole && limit.is_none());
                    if ragged && (self.depends(*start) || limit.is_some_and(|l| self.depends(l))) {
                        out |= 1u8 << bit;
                    }
                    at += 1;
                    bit += 1;
                }
                RegionAxis::Gather { index, .. } => {
                    if self.expr(*index) != 0 {
                        out |= 1u8 << bit;
                    }
                    at += 1;
                    bit += 1;
                }
            }
        }
        out
    }

    fn expr(&mut self, e: ExprId) -> u8 {
        let body = self.v.body();
        if !body.types[e.index()].is_tile() {
            return 0;
        }
        let rank = body.types[e.index()].shape().len();
        match &body.exprs[e] {
            Expr::Local(l) => self.local(*l),
            Expr::Transpose(a) => {
                let inner = self.expr(*a);
                let (x, y) = (1u8 << (rank - 2), 1u8 << (rank - 1));
                let swapped = (if inner & x != 0 { y } else { 0 }) | (if inner & y != 0 { x } else { 0 });
                inner & !(x | y) | swapped
            }
            Expr::InsertAxis { value, axis } => {
                let inner = self.expr(*value);
                let low = inner & ((1u8 << axis) - 1);
                low | (inner & !low) << 1
            }
            Expr::Slice { value, axes } => {
                let inner = self.expr(*value);
                let (mut out, mut bit) = (0, 0);
                for (i, axis) in axes.iter().enumerate() {
                    if let SliceAxis::Span { .. } = axis {
                        out |= (inner >> i & 1) << bit;
                        bit += 1;
                    }
                }
                out
            }
            expr => {
                let mut operands = Vec::new();
                expr.operands(|o| operands.push(o));
                operands.into_iter().fold(0, |all, o| all | self.expr(o))
            }
        }
    }
}

fn drop_bit(bits: u8, axis: u8) -> u8 {
    let low = bits & ((1u8 << axis) - 1);
    low | (bits >> 1) & !((1u8 << axis) - 1)
}
