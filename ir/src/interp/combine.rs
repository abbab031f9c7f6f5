//! Combiners at work: identity, one step, a run of steps, and the check that a user's combiner is what it claims.

use super::arith::{Dense, Failed, num_fault};
use super::fault::{Exec, Fault, fault, malformed};
use super::pure;
use super::run::Session;
use crate::codes;
use crate::num::{self, Bin, Rounding};
use crate::program::*;
use pantile_abi::DType;
use std::borrow::Cow;

/// Comparisons made for each user's combiner in a run.
const CHECKS: u32 = 24;

/// Folds values of `elems` in accumulators of `fold`.
pub(super) struct Folder<'p> {
    program: &'p Program,
    comb: Combiner,
    pub elems: Vec<Elem>,
    fold: Vec<Elem>,
    block: usize,
}

impl<'p> Folder<'p> {
    pub fn new(program: &'p Program, comb: Combiner, elems: Vec<Elem>) -> Folder<'p> {
        let fold = elems.iter().map(|&e| fold_elem(comb, e)).collect();
        Folder { program, comb, elems, fold, block: usize::MAX }
    }

    /// The order of folds that a kernel's `math` leaves.
    pub fn under(mut self, math: MathMode) -> Folder<'p> {
        if math == MathMode::Contract {
            self.block = FOLD_BLOCK;
        }
        self
    }

    fn user(&self) -> Option<&'p Combine> {
        match self.comb {
            Combiner::User(id) => self.program.combines.get(id),
            _ => None,
        }
    }

    fn builtin(&self) -> Exec<Bin> {
        Bin::of_combiner(self.comb).ok_or_else(|| malformed("an unknown combiner"))
    }

    pub fn identity(&self) -> Exec<Vec<u64>> {
        if let Some(user) = self.user() {
            return Ok(user.identity.iter().map(|&(_, bits)| bits).collect());
        }
        let op = self.builtin()?;
        let id = |&e| num::identity(op, e).ok_or_else(|| malformed("a combiner on a type it does not take"));
        self.fold.iter().map(id).collect()
    }

    /// Values of part `part` in the accumulator's type.
    pub fn widen<'a>(&self, part: usize, values: Cow<'a, [u64]>) -> Exec<Cow<'a, [u64]>> {
        let (from, to) = (self.elems[part], self.fold[part]);
        if from == to { Ok(values) } else { converted(from, to, &values).map(Cow::Owned) }
    }

    /// Accumulators rounded once to the element type.
    pub fn narrow(&self, part: usize, values: Vec<u64>) -> Exec<Vec<u64>> {
        let (from, to) = (self.fold[part], self.elems[part]);
        if from == to { Ok(values) } else { converted(from, to, &values) }
    }

    /// `acc[i] = comb(acc[i], values[i])` for each element; a run of one value stands for all.
    pub fn step(&self, session: &mut Session, acc: &mut [Vec<u64>], values: &Dense) -> Result<(), Failed> {
        let n = acc.first().map_or(0, Vec::len);
        if n == 0 {
            return Ok(());
        }
        let Some(user) = self.user() else {
            let op = self.builtin().map_err(|fault| Failed { at: 0, fault })?;
            let mut out = vec![0; n];
            let mut faults = Vec::new();
            num::binary_slice(op, self.fold[0], &acc[0], &values[0], &mut out, &mut faults);
            if let Some(f) = faults.first() {
                return Err(Failed { at: f.at, fault: num_fault(f.error) });
            }
            acc[0] = out;
            return Ok(());
        };
        self.check(session, user, acc, values).map_err(|fault| Failed { at: 0, fault })?;
        let args: Vec<Cow<[u64]>> =
            acc.iter().map(|a| Cow::Borrowed(&a[..])).chain(values.iter().cloned()).collect();
        let results = pure::call(self.program, &user.func, &args, n)?;
        for (a, r) in acc.iter_mut().zip(results) {
            *a = r;
        }
        Ok(())
    }

    /// Folds runs of equal length, element after element, into single accumulators.
    pub fn run(&self, session: &mut Session, acc: &mut [u64], values: &Dense) -> Result<(), Failed> {
        if self.user().is_none() {
            let op = self.builtin().map_err(|fault| Failed { at: 0, fault })?;
            acc[0] = num::fold_slice(op, self.fold[0], acc[0], &values[0])
                .map_err(|f| Failed { at: f.at, fault: num_fault(f.error) })?;
            return Ok(());
        }
        let n = values.iter().map(|v| v.len()).max().unwrap_or(0);
        if n <= self.block {
            return self.run_in_order(session, acc, values, 0..n);
        }
        for start in (0..n).step_by(self.block) {
            let mut part = self.identity().map_err(|fault| Failed { at: start, fault })?;
            self.run_in_order(session, &mut part, values, start..(start + self.block).min(n))?;
            let part: Vec<Cow<[u64]>> = part.into_iter().map(|v| Cow::Owned(vec![v])).collect();
            self.run_in_order(session, acc, &part, 0..1).map_err(|f| Failed { at: start, ..f })?;
        }
        Ok(())
    }

    fn run_in_order(
        &self,
        session: &mut Session,
        acc: &mut [u64],
        values: &Dense,
        range: std::ops::Range<usize>,
    ) -> Result<(), Failed> {
        let mut state: Vec<Vec<u64>> = acc.iter().map(|&a| vec![a]).collect();
        for i in range {
            let one: Vec<Cow<[u64]>> =
                values.iter().map(|v| Cow::Owned(vec![if v.len() == 1 { v[0] } else { v[i] }])).collect();
            self.step(session, &mut state, &one).map_err(|f| Failed { at: i, ..f })?;
        }
        for (a, s) in acc.iter_mut().zip(state) {
            *a = s[0];
        }
        Ok(())
    }

    /// Identity, associativity and, where claimed, commutativity on the first values that come along.
    fn check(&self, session: &mut Session, user: &'p Combine, acc: &[Vec<u64>], values: &Dense) -> Exec<()> {
        let Combiner::User(id) = self.comb else { return Ok(()) };
        let done = session.combiner_checks.entry(id.index()).or_insert(0);
        if *done >= CHECKS {
            return Ok(());
        }
        *done += 1;
        let a: Vec<u64> = acc.iter().map(|v| v[0]).collect();
        let b: Vec<u64> = values.iter().map(|v| v[0]).collect();
        let c: Vec<u64> = values.iter().map(|v| v[v.len() - 1]).collect();
        let identity: Vec<u64> = user.identity.iter().map(|&(_, bits)| bits).collect();
        let law = Law { folder: self, user };
        let left = law.join(&identity, &b)?;
        law.demand(&left, &b, "its identity, put on the left, changes a value", &[("the value", &b)])?;
        let right = law.join(&b, &identity)?;
        law.demand(&right, &b, "its identity, put on the right, changes a value", &[("the value", &b)])?;
        let one = law.join(&law.join(&a, &b)?, &c)?;
        let other = law.join(&a, &law.join(&b, &c)?)?;
        let shown = [("a", &a), ("b", &b), ("c", &c)];
        law.demand(&one, &other, "it is not associative: (a, b), c and a, (b, c) differ", &shown)?;
        if user.commutative {
            let swapped = law.join(&b, &a)?;
            let law_text = "it is marked commutative, but a, b and b, a differ";
            law.demand(&law.join(&a, &b)?, &swapped, law_text, &shown[..2])?;
        }
        Ok(())
    }
}

fn converted(from: Elem, to: Elem, values: &[u64]) -> Exec<Vec<u64>> {
    let mut out = vec![0; values.len()];
    let mut faults = Vec::new();
    num::convert_slice(from, to, values, Rounding::Nearest, &mut out, &mut faults);
    faults.first().map_or(Ok(out), |f| Err(num_fault(f.error)))
}

/// Comparison of two ways to combine the same values.
struct Law<'a, 'p> {
    folder: &'a Folder<'p>,
    user: &'p Combine,
}

impl Law<'_, '_> {
    fn join(&self, a: &[u64], b: &[u64]) -> Exec<Vec<u64>> {
        let args: Vec<Cow<[u64]>> = a.iter().chain(b).map(|&v| Cow::Owned(vec![v])).collect();
        let out = pure::call(self.folder.program, &self.user.func, &args, 1).map_err(|f| f.fault)?;
        Ok(out.into_iter().map(|r| r[0]).collect())
    }

    fn demand(&self, x: &[u64], y: &[u64], broken: &str, shown: &[(&str, &Vec<u64>)]) -> Exec<()> {
        let values =
            || shown.iter().flat_map(|(_, v)| self.floats(v)).chain(self.floats(x)).chain(self.floats(y));
        if values().any(f64::is_nan) {
            return Ok(());
        }
        let scale = values().filter(|v| v.is_finite()).fold(0.0f64, |m, v| m.max(v.abs()));
        let same = (self.folder.elems.iter().zip(x.iter().zip(y))).all(|(&elem, (&x, &y))| {
            let (v, w) = (num::to_f64(elem, x), num::to_f64(elem, y));
            x == y || v == w || (elem.is_float() && (v - w).abs() <= tolerance(elem) * scale)
        });
        if same {
            return Ok(());
        }
        let mut f: Box<Fault> =
            fault(codes::BAD_COMBINER, format!("the combiner `{}` cannot be used: {broken}", self.user.name));
        for (name, value) in shown {
            f = f.value(*name, self.text(value));
        }
        f = f.value("one result", self.text(x)).value("the other", self.text(y));
        Err(f.also(self.user.span, "declared here"))
    }

    fn floats(&self, values: &[u64]) -> Vec<f64> {
        let parts = self.folder.elems.iter().zip(values);
        parts.filter(|(e, _)| e.is_float()).map(|(&e, &v)| num::to_f64(e, v)).collect()
    }

    fn text(&self, values: &[u64]) -> String {
        let parts: Vec<String> =
            self.folder.elems.iter().zip(values).map(|(&e, &v)| num::print_value(e, v)).collect();
        format!("({})", parts.join(", "))
    }
}

/// What rounding alone may make of a few operations, relative to the largest value.
fn tolerance(elem: Elem) -> f64 {
    match elem {
        Elem::D(DType::F64) => 1e-9,
        Elem::D(DType::F32) => 1e-4,
        Elem::D(DType::F16) => 1e-2,
        Elem::D(DType::BF16) => 5e-2,
        _ => 0.3,
    }
}
