//! Combiners and intrinsics: functions of scalars, made once and referred to by handle.

use super::Elab;
use super::consts::Const;
use super::convert::literal_bits;
use super::emit::{Frame, FrameKind};
use super::library::ItemRef;
use super::scope::Value;
use crate::ast::{self, Ident, ItemKind, TypeKind};
use crate::codes;
use crate::diag::Diagnostic;
use crate::program::*;
use crate::span::Span;
use pantile_abi::DType;

impl<'a> Elab<'a> {
    pub(crate) fn combine(&mut self, r: ItemRef) -> Option<CombineId> {
        if let Some(&known) = self.combines.get(&r) {
            return known;
        }
        let lib = self.lib;
        let ItemKind::Combine(c) = &lib.item(r).kind else { return None };
        if self.stack.iter().any(|&(s, _)| s == r) {
            return None;
        }
        let before = self.errors();
        self.stack.push((r, FrameKind::Pure));
        let (made, frame) = self.framed(FrameKind::Pure, r.unit, |s| s.combine_parts(c));
        self.stack.pop();
        let id = match made {
            Some((identity, params, results)) if self.errors() == before => {
                let func = self.pure_fn(frame, params, results);
                let span = lib.item(r).span;
                let combine =
                    Combine { name: c.name.name.clone(), span, identity, commutative: c.commutative, func };
                Some(self.program.combines.push(combine, span))
            }
            _ => None,
        };
        self.combines.insert(r, id);
        id
    }

    #[allow(clippy::type_complexity)]
    fn combine_parts(
        &mut self,
        c: &'a ast::Combine,
    ) -> Option<(Vec<(Elem, u64)>, Vec<LocalId>, Vec<ExprId>)> {
        let types = self.part_types(&c.result)?;
        let [a, b] = &c.params[..] else {
            let d = Diagnostic::error(
                codes::COMBINE_SHAPE,
                self.sp(c.name.span),
                "a combiner takes two values, the left and the right part",
            );
            self.report(d.help(
                "write `combine f(a: (f32, i32), b: (f32, i32)) -> (f32, i32) identity (0, 0) { ... }`",
            ));
            return None;
        };
        let mut params = Vec::new();
        for (name, ty) in [a, b] {
            let own = self.part_types(ty)?;
            if own != types {
                let d = Diagnostic::error(
                    codes::COMBINE_SHAPE,
                    self.sp(ty.span),
                    format!("`{}` must have the type of the result", name.name),
                );
                self.report(d.also(self.sp(c.result.span), "the result"));
                return None;
            }
            self.scalar_params(name, ty, &own, &mut params);
        }
        let identity = self.identity(&c.identity, &types)?;
        let value = self.block_value(&c.body, types.first().copied());
        let results = self.results(value, &types, &c.name.name, c.body.span)?;
        Some((identity, params, results))
    }

    fn part_types(&mut self, ty: &'a ast::Type) -> Option<Vec<Elem>> {
        match &ty.kind {
            TypeKind::Elem(e) => Some(vec![self.elem_type(e)?]),
            TypeKind::Tuple(parts) => {
                let mut out = Vec::new();
                for p in parts {
                    match &p.kind {
                        TypeKind::Elem(e) => out.push(self.elem_type(e)?),
                        _ => return self.not_scalar(p.span),
                    }
                }
                Some(out)
            }
            _ => self.not_scalar(ty.span),
        }
    }

    fn not_scalar<T>(&mut self, span: Span) -> Option<T> {
        let d = Diagnostic::error(
            codes::WRONG_TYPE_FORM,
            self.sp(span),
            "combiners and intrinsics are functions of scalars",
        );
        self.report(
            d.help("they act element by element on tiles; write an element type, or a tuple of them"),
        );
        None
    }

    fn scalar_params(
        &mut self,
        name: &'a Ident,
        ty: &'a ast::Type,
        elems: &[Elem],
        params: &mut Vec<LocalId>,
    ) {
        let tuple = matches!(ty.kind, TypeKind::Tuple(_));
        let mut parts = Vec::new();
        for (i, &elem) in elems.iter().enumerate() {
            let part = if tuple { format!("{}{i}", name.name) } else { name.name.clone() };
            let local = self.new_local(&part, Type::Scalar(elem), LocalKind::Let, name.span);
            params.push(local);
            parts.push(self.read_local(local, name.span).map_or(Value::Poison, Value::Expr));
        }
        let value = match (tuple, parts.pop()) {
            (false, Some(one)) => one,
            (_, last) => {
                parts.extend(last);
                Value::Tuple(parts.into())
            }
        };
        self.declare(name, value);
    }

    fn identity(&mut self, e: &'a ast::Expr, types: &[Elem]) -> Option<Vec<(Elem, u64)>> {
        let parts: Vec<&'a ast::Expr> = match &e.kind {
            ast::ExprKind::Tuple(parts) => parts.iter().collect(),
            _ => vec![e],
        };
        if parts.len() != types.len() {
            let text = format!("the identity has {} parts, the result {}", parts.len(), types.len());
            let d = Diagnostic::error(codes::COMBINE_SHAPE, self.sp(e.span), text);
            self.report(d);
            return None;
        }
        let mut out = Vec::new();
        for (part, &elem) in parts.into_iter().zip(types) {
            let bits = match self.expr(part, Some(elem)) {
                Value::Const(c) => literal_bits(&c, elem),
                Value::Expr(v) => match self.f.body.exprs[v] {
                    Expr::Const { elem: have, bits } if have == elem => Ok(bits),
                    _ => Err("an identity is known at compile time".into()),
                },
                Value::Poison => return None,
                _ => Err("an identity is a number".into()),
            };
            match bits {
                Ok(bits) => out.push((elem, bits)),
                Err(text) => {
                    let d = Diagnostic::error(codes::NUMBER_RANGE, self.sp(part.span), text);
                    self.report(d);
                    return None;
                }
            }
        }
        Some(out)
    }

    fn results(&mut self, value: Value, types: &[Elem], name: &str, span: Span) -> Option<Vec<ExprId>> {
        let values: Vec<Value> = match value {
            Value::Poison => return None,
            Value::Tuple(parts) => parts.to_vec(),
            Value::Unit => Vec::new(),
            one => vec![one],
        };
        if values.len() != types.len() {
            let text = format!("`{name}` ends with {} values, its result has {}", values.len(), types.len());
            let d = Diagnostic::error(codes::COMBINE_SHAPE, self.sp(span), text);
            self.report(d);
            return None;
        }
        let mut out = Vec::new();
        for (v, &elem) in values.into_iter().zip(types) {
            let e = self.to_expr(v, Some(elem), span)?;
            let at = self.f.body.exprs.span(e);
            out.push(self.need_elem(e, elem, &format!("a result of `{name}`"), at)?);
        }
        Some(out)
    }

    fn pure_fn(&mut self, frame: Frame<'a>, params: Vec<LocalId>, results: Vec<ExprId>) -> PureFn {
        let lets = frame.block.into_iter().filter_map(|s| match s.kind {
            StmtKind::Let { local, value } => Some((local, value)),
            _ => None,
        });
        PureFn { body: frame.body, params, lets: lets.collect(), results }
    }

    pub(crate) fn intrinsic(&mut self, r: ItemRef) -> Option<IntrinsicId> {
        if let Some(&known) = self.intrinsics.get(&r) {
            return known;
        }
        let lib = self.lib;
        let ItemKind::Intrinsic(i) = &lib.item(r).kind else { return None };
        if self.stack.iter().any(|&(s, _)| s == r) {
            let d = Diagnostic::error(
                codes::RECURSION,
                self.sp(i.name.span),
                format!("`{}` is used in its own meaning", i.name.name),
            );
            self.report(d.help("write the meaning with the functions of the language"));
            return None;
        }
        let before = self.errors();
        self.stack.push((r, FrameKind::Pure));
        let (made, frame) = self.framed(FrameKind::Pure, r.unit, |s| s.intrinsic_parts(i));
        self.stack.pop();
        let id = match made {
            Some((params, results, bound)) if self.errors() == before => {
                let means = self.pure_fn(frame, params, results);
                let span = lib.item(r).span;
                let spellings = i.spellings.iter().map(|s| Spelling {
                    backend: s.backend.name.clone(),
                    from: s.from.name.clone(),
                    to: s.to.as_ref().map(|t| t.name.clone()),
                    open_ended: s.open_ended,
                    text: s.text.clone(),
                });
                let intrinsic = Intrinsic {
                    name: i.name.name.clone(),
                    span,
                    means,
                    bound,
                    spellings: spellings.collect(),
                };
                Some(self.program.intrinsics.push(intrinsic, span))
            }
            _ => None,
        };
        self.intrinsics.insert(r, id);
        id
    }

    fn intrinsic_parts(&mut self, i: &'a ast::Intrinsic) -> Option<(Vec<LocalId>, Vec<ExprId>, ErrorBound)> {
        let mut params = Vec::new();
        for (name, ty) in &i.params {
            let own = match &ty.kind {
                TypeKind::Elem(e) => vec![self.elem_type(e)?],
                _ => return self.not_scalar(ty.span),
            };
            self.scalar_params(name, ty, &own, &mut params);
        }
        let types = match &i.result.kind {
            TypeKind::Elem(e) => vec![self.elem_type(e)?],
            _ => return self.not_scalar(i.result.span),
        };
        let value = self.block_value(&i.means, types.first().copied());
        let results = self.results(value, &types, &i.name.name, i.means.span)?;
        let bound = self.const_number(&i.bound.value, "the error bound of an intrinsic")?;
        if bound.is_nan() || bound < 0.0 {
            let d = Diagnostic::error(
                codes::WRONG_CONST,
                self.sp(i.bound.span),
                "an error bound is not negative",
            );
            self.report(d);
            return None;
        }
        Some((params, results, if i.bound.ulp { ErrorBound::Ulp(bound) } else { ErrorBound::Abs(bound) }))
    }

    // ---- positions of extremes --------------------------------------------------------------------------------------

    /// The combiner behind `argmax` and `argmin`: value and position, the first position among equals, NaN foremost.
    pub(crate) fn position_combine(&mut self, largest: bool, elem: Elem) -> CombineId {
        if let Some(&known) = self.positions.get(&(largest, elem)) {
            return known;
        }
        let (made, frame) = self.framed(FrameKind::Pure, 0, |s| s.position_parts(largest, elem));
        let (params, results) = made.unwrap_or_default();
        let func = self.pure_fn(frame, params, results);
        let worst = if largest { crate::num::Bin::Max } else { crate::num::Bin::Min };
        let start = crate::num::identity(worst, elem).unwrap_or(0);
        let at = (Elem::D(DType::I32), i32::MAX as u64);
        let name = format!("{}_{elem}", if largest { "argmax" } else { "argmin" });
        let combine = Combine {
            name,
            span: Span::default(),
            identity: vec![(elem, start), at],
            commutative: true,
            func,
        };
        let id = self.program.combines.push(combine, Span::default());
        self.positions.insert((largest, elem), id);
        id
    }

    fn position_parts(&mut self, largest: bool, elem: Elem) -> Option<(Vec<LocalId>, Vec<ExprId>)> {
        let none = Span::default();
        let at = Elem::D(DType::I32);
        let mut params = Vec::new();
        let mut reads = Vec::new();
        for (name, e) in [("a0", elem), ("a1", at), ("b0", elem), ("b1", at)] {
            let local = self.new_local(name, Type::Scalar(e), LocalKind::Let, none);
            params.push(local);
            reads.push(self.read_local(local, none)?);
        }
        let [a, i, b, j] = reads[..] else { return None };
        let beats = if largest { BinOp::Gt } else { BinOp::Lt };
        let mut first = self.push(Expr::Binary(beats, b, a), none)?;
        let mut equal = self.push(Expr::Binary(BinOp::Eq, b, a), none)?;
        if elem.is_float() {
            let nan = |s: &mut Self, e| {
                s.push(Expr::Math { f: MathFn::IsNan, approx: false, args: Args::from_slice(&[e]) }, none)
            };
            let (nan_a, nan_b) = (nan(self, a)?, nan(self, b)?);
            let fine_a = self.push(Expr::Unary(UnOp::Not, nan_a), none)?;
            let only_b = self.push(Expr::Binary(BinOp::LogicalAnd, nan_b, fine_a), none)?;
            let both = self.push(Expr::Binary(BinOp::LogicalAnd, nan_a, nan_b), none)?;
            first = self.push(Expr::Binary(BinOp::LogicalOr, first, only_b), none)?;
            equal = self.push(Expr::Binary(BinOp::LogicalOr, equal, both), none)?;
        }
        let earlier = self.push(Expr::Binary(BinOp::Lt, j, i), none)?;
        let tie = self.push(Expr::Binary(BinOp::LogicalAnd, equal, earlier), none)?;
        let take = self.push(Expr::Binary(BinOp::LogicalOr, first, tie), none)?;
        let value = self.push(Expr::Select { cond: take, then: b, other: a }, none)?;
        let place = self.push(Expr::Select { cond: take, then: j, other: i }, none)?;
        Some((params, vec![value, place]))
    }

    /// What an item stands for where its name is used as a value.
    pub(crate) fn item_value(&mut self, r: ItemRef) -> Value {
        let lib = self.lib;
        let item = lib.item(r);
        match &item.kind {
            ItemKind::Const(c) => self.item_const(r, c),
            ItemKind::Fn(_) | ItemKind::Intrinsic(_) | ItemKind::Combine(_) => {
                Value::Const(Const::Fn(super::consts::Callable::Item(r)))
            }
            _ => Value::Unit,
        }
    }

    fn item_const(&mut self, r: ItemRef, c: &'a ast::ConstDecl) -> Value {
        if let Some(known) = self.item_consts.get(&r) {
            return known.clone();
        }
        if self.stack.iter().any(|&(s, _)| s == r) {
            let d = Diagnostic::error(
                codes::RECURSION,
                c.name.span,
                format!("`{}` is part of its own value", c.name.name),
            );
            self.report(d);
            return Value::Poison;
        }
        self.stack.push((r, FrameKind::Consts));
        let (value, _) =
            self.framed(FrameKind::Consts, r.unit, |s| s.constant(&c.value, &format!("`{}`", c.name.name)));
        self.stack.pop();
        let value = value.map_or(Value::Poison, Value::Const);
        self.item_consts.insert(r, value.clone());
        value
    }
}
