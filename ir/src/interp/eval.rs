//! Expressions. One evaluator serves kernels, hosts and pure functions; what they may name comes from a [`Scope`].
//!
//! A scalar is evaluated for all active lanes at once. `&&`, `||` and the branches of a scalar choice are evaluated
//! only for the lanes that need them.

use super::arith::{Ew, Failed, compute};
use super::eval_one::{one, pick as pick_one};
use super::eval_tile;
use super::fault::{Exec, fault, malformed};
use super::value::{Lanes, Mask, Value};
use crate::codes;
use crate::num;
use crate::program::*;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::rc::Rc;

/// What an expression's leaves mean.
pub(super) trait Scope<'p> {
    fn program(&self) -> &'p Program;
    fn body(&self) -> &'p Body;
    /// Lanes of the current context.
    fn width(&self) -> u32;
    fn mask(&self) -> &Mask;
    fn set_mask(&mut self, mask: Mask) -> Mask;
    fn memo(&mut self) -> &mut Memo;
    fn local(&mut self, id: LocalId) -> Exec<Value>;
    fn dim(&self, id: DimId) -> Exec<i64>;
    fn arg(&self, id: ArgId) -> Exec<u64>;
    fn element(&mut self, mem: Mem, index: &[Lanes], or: Option<ExprId>) -> Exec<Lanes>;
    /// A scalar local in a context of one lane.
    fn local_one(&mut self, id: LocalId) -> Exec<u64>;
    /// An element in a context of one lane; `None` where the index is outside and `padded` says that this is foreseen.
    fn element_one(&mut self, mem: Mem, index: &[i64], padded: bool) -> Exec<Option<u64>>;
}

/// Values of expressions that more than one expression uses, while one statement executes under one mask.
#[derive(Clone, Debug, Default)]
pub(super) struct Memo {
    shared: Rc<Vec<bool>>,
    entries: Vec<Option<(u32, Value)>>,
    generation: u32,
    last: u32,
}

impl Memo {
    pub fn new(shared: Rc<Vec<bool>>) -> Memo {
        Memo { entries: vec![None; shared.len()], shared, generation: 0, last: 0 }
    }

    /// Forgets everything: a statement begins.
    pub fn begin(&mut self) {
        self.last += 1;
        self.generation = self.last;
    }

    pub fn is_shared(&self, e: ExprId) -> bool {
        self.shared.get(e.index()).copied().unwrap_or(false)
    }

    pub fn bits(&self, e: ExprId) -> Option<u64> {
        match &self.entries[e.index()] {
            Some((generation, Value::Scalar(Lanes::One(bits)))) if *generation == self.generation => {
                Some(*bits)
            }
            _ => None,
        }
    }

    pub fn put_bits(&mut self, e: ExprId, bits: u64) {
        self.entries[e.index()] = Some((self.generation, Value::one(bits)));
    }

    fn get(&self, e: ExprId) -> Option<Value> {
        match self.entries.get(e.index()) {
            Some(Some((generation, value))) if *generation == self.generation => Some(value.clone()),
            _ => None,
        }
    }

    fn put(&mut self, e: ExprId, value: &Value) {
        self.entries[e.index()] = Some((self.generation, value.clone()));
    }
}

/// For each expression whether several expressions use it.
pub(super) fn shared_exprs(body: &Body) -> Rc<Vec<bool>> {
    let mut uses = vec![0u32; body.exprs.len()];
    for (_, expr) in body.exprs.iter() {
        expr.operands(|e| uses[e.index()] += 1);
    }
    Rc::new(uses.into_iter().map(|n| n > 1).collect())
}

pub(super) fn eval<'p, S: Scope<'p>>(s: &mut S, e: ExprId) -> Exec<Value> {
    let body = s.body();
    let expr = &body.exprs[e];
    match expr {
        Expr::Const { bits, .. } => return Ok(Value::one(*bits)),
        Expr::Local(l) => return s.local(*l).map_err(|f| f.at(body.exprs.span(e))),
        Expr::Dim(d) => return s.dim(*d).map(|v| Value::one(v as u64)),
        Expr::Arg(a) => return s.arg(*a).map(Value::one),
        _ => {}
    }
    if s.width() == 1 && !body.type_of(e).is_tile() {
        return one(s, e).map(Value::one);
    }
    let shared = s.memo().is_shared(e);
    if shared && let Some(value) = s.memo().get(e) {
        return Ok(value);
    }
    let value = node(s, e, expr).map_err(|f| f.at(body.exprs.span(e)))?;
    if shared {
        s.memo().put(e, &value);
    }
    Ok(value)
}

fn node<'p, S: Scope<'p>>(s: &mut S, e: ExprId, expr: &'p Expr) -> Exec<Value> {
    let ty = s.body().type_of(e);
    if ty.is_tile() {
        return eval_tile::node(s, expr, ty);
    }
    match expr {
        Expr::Binary(op, a, b) if op.is_logical() => {
            logical(s, *op == BinOp::LogicalAnd, *a, *b).map(Value::Scalar)
        }
        Expr::Select { cond, then, other } => select(s, *cond, *then, *other).map(Value::Scalar),
        Expr::Element { mem, index, or } => {
            let index = indices(s, index)?;
            s.element(*mem, &index, *or).map(Value::Scalar)
        }
        Expr::Pick { tile, index } => pick(s, *tile, index).map(Value::Scalar),
        _ => elementwise(s, expr),
    }
}

/// A scalar over the active lanes.
pub(super) fn scalar<'p, S: Scope<'p>>(s: &mut S, e: ExprId) -> Exec<Lanes> {
    if s.width() == 1 {
        return one(s, e).map(Lanes::One);
    }
    match eval(s, e)? {
        Value::Scalar(lanes) => Ok(lanes),
        _ => Err(malformed("a tile where a scalar is needed")),
    }
}

/// A scalar that the whole team must agree on.
pub(super) fn uniform<'p, S: Scope<'p>>(s: &mut S, e: ExprId) -> Exec<u64> {
    let lanes = scalar(s, e)?;
    agreed(s, &lanes).map_err(|f| f.at(s.body().exprs.span(e)))
}

pub(super) fn agreed<'p, S: Scope<'p>>(s: &S, lanes: &Lanes) -> Exec<u64> {
    lanes.uniform(s.mask()).ok_or_else(|| {
        fault(codes::NOT_UNIFORM, "this value differs between the threads that act together here").help(
            "tile statements and collectives act once for the block; give them a value all threads share",
        )
    })
}

pub(super) fn uniform_index<'p, S: Scope<'p>>(s: &mut S, e: ExprId) -> Exec<i64> {
    let bits = uniform(s, e)?;
    as_index(s.body().type_of(e), bits)
}

/// An integer of any type as a subscript.
pub(super) fn as_index(ty: &Type, bits: u64) -> Exec<i64> {
    match ty.elem() {
        Some(Elem::Index) => Ok(bits as i64),
        Some(elem) => num::to_i64(elem, bits).ok_or_else(|| {
            let text = num::print_value(elem, bits);
            fault(
                codes::INDEX_TOO_LARGE,
                format!("the subscript {text} does not fit into an index (64 bits)"),
            )
        }),
        None => Err(malformed("a token as a subscript")),
    }
}

/// Subscripts over the active lanes, as `index`.
pub(super) fn indices<'p, S: Scope<'p>>(s: &mut S, index: &[ExprId]) -> Exec<Vec<Lanes>> {
    index.iter().map(|&e| index_lanes(s, e)).collect()
}

pub(super) fn index_lanes<'p, S: Scope<'p>>(s: &mut S, e: ExprId) -> Exec<Lanes> {
    let lanes = scalar(s, e)?;
    let ty = s.body().type_of(e);
    match (ty.elem(), lanes) {
        (Some(Elem::Index), lanes) => Ok(lanes),
        (_, Lanes::One(bits)) => as_index(ty, bits).map(|i| Lanes::One(i as u64)),
        (_, Lanes::Many(mut values)) => {
            for lane in s.mask().iter() {
                let slot = &mut Rc::make_mut(&mut values)[lane as usize];
                *slot = as_index(ty, *slot).map_err(|f| f.on(lane))? as u64;
            }
            Ok(Lanes::Many(values))
        }
    }
}

/// Evaluates under a narrower mask.
pub(super) fn under<'p, S: Scope<'p>, T>(s: &mut S, mask: Mask, f: impl FnOnce(&mut S) -> T) -> T {
    let outer = s.set_mask(mask);
    let memo = s.memo();
    let generation = memo.generation;
    memo.begin();
    let result = f(s);
    s.memo().generation = generation;
    s.set_mask(outer);
    result
}

fn logical<'p, S: Scope<'p>>(s: &mut S, and: bool, a: ExprId, b: ExprId) -> Exec<Lanes> {
    let left = scalar(s, a)?;
    if let Lanes::One(v) = left {
        return if (v != 0) == and { scalar(s, b) } else { Ok(left) };
    }
    let (yes, no) = s.mask().split(&left);
    let open = if and { yes } else { no };
    if open.is_empty() {
        return Ok(left);
    }
    let right = under(s, open.clone(), |s| scalar(s, b))?;
    Ok(left.merged(&right, &open, s.width()))
}

fn select<'p, S: Scope<'p>>(s: &mut S, cond: ExprId, then: ExprId, other: ExprId) -> Exec<Lanes> {
    let cond = scalar(s, cond)?;
    if let Lanes::One(v) = cond {
        return scalar(s, if v != 0 { then } else { other });
    }
    let (yes, no) = s.mask().split(&cond);
    let mut out = Lanes::many(vec![0; s.width() as usize]);
    for (mask, e) in [(yes, then), (no, other)] {
        if !mask.is_empty() {
            let value = under(s, mask.clone(), |s| scalar(s, e))?;
            out = out.merged(&value, &mask, s.width());
        }
    }
    Ok(out)
}

fn pick<'p, S: Scope<'p>>(s: &mut S, tile: ExprId, index: &[ExprId]) -> Exec<Lanes> {
    let tile = eval_tile::tile(s, tile)?;
    let index = indices(s, index)?;
    let get = |lane: u32| -> Exec<u64> {
        let at: SmallVec<[i64; 4]> = index.iter().map(|i| i.get(lane) as i64).collect();
        pick_one(&tile, &at).map_err(|f| f.on(lane))
    };
    if index.iter().all(|i| matches!(i, Lanes::One(_))) {
        return get(s.mask().lane(0)).map(Lanes::One);
    }
    let mut out = vec![0; s.width() as usize];
    for lane in s.mask().iter() {
        out[lane as usize] = get(lane)?;
    }
    Ok(Lanes::many(out))
}

fn elementwise<'p, S: Scope<'p>>(s: &mut S, expr: &'p Expr) -> Exec<Value> {
    let Some(op) = Ew::of(expr, s.program())? else {
        return Err(malformed("a tile where a scalar is needed"));
    };
    let mut operands: SmallVec<[ExprId; 3]> = SmallVec::new();
    expr.operands(|e| operands.push(e));
    let (mut values, mut elems) = (SmallVec::<[Lanes; 3]>::new(), SmallVec::<[Elem; 3]>::new());
    for e in operands {
        values.push(scalar(s, e)?);
        elems.extend(s.body().type_of(e).elem());
    }
    map(s, op, &elems, &values).map(Value::Scalar)
}

/// An element-wise operation over the active lanes.
pub(super) fn map<'p, S: Scope<'p>>(s: &S, op: Ew<'p>, elems: &[Elem], values: &[Lanes]) -> Exec<Lanes> {
    let mask = s.mask();
    let same = values.iter().all(|v| matches!(v, Lanes::One(_)));
    let n = if same { 1 } else { mask.len() };
    let dense: Vec<Cow<[u64]>> = values.iter().map(|v| v.dense(mask)).collect();
    let out = compute(s.program(), op, elems, &dense, n).map_err(|Failed { at, fault }| {
        let lane = if same { mask.iter().next() } else { mask.iter().nth(at) };
        match lane {
            Some(lane) => fault.on(lane),
            None => fault,
        }
    })?;
    Ok(match out[..] {
        [v] if same => Lanes::One(v),
        _ => Lanes::spread(out, mask, s.width()),
    })
}
