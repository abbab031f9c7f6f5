//! Which loops a vendor's compiler must leave alone. Left to itself it repeats any loop of a short count, also in code
//! that is repeated already, and takes seconds. Loops over a thread's array stay free: repeated, the array is registers.

use super::tree::{C, S};

/// Statements in a loop's body from which on repeating it gains nothing.
const LARGE: u64 = 24;
/// Copies of a loop from which on it is not repeated itself.
const MANY: u64 = 8;
pub const KEEP: &str = "#pragma unroll 1";

/// Marks loops without a hint that are large, or repeated by loops around them.
pub fn mark(block: &mut [S]) {
    let mut arrays = Vec::new();
    names(block, &mut arrays);
    marked(block, &arrays, 1);
}

fn names(block: &[S], out: &mut Vec<String>) {
    for s in block {
        if let S::Array { name, .. } = s {
            out.push(name.clone());
        }
        inner(s).into_iter().for_each(|b| names(b, out));
    }
}

fn inner(s: &S) -> Vec<&[S]> {
    match s {
        S::If { then, other, .. } => vec![then, other],
        S::For { body, .. } | S::While { body, .. } => vec![body],
        _ => Vec::new(),
    }
}

/// Rounds of a loop that is repeated.
fn rounds(s: &S) -> u64 {
    match s {
        S::For {
            hint: Some(hint),
            lo: C::Int(lo, _),
            cond: C::Binary("<", _, hi),
            step: C::Int(by, _),
            ..
        } if *hint != KEEP => {
            let C::Int(hi, _) = **hi else { return 1 };
            u64::try_from((hi - lo + by - 1).checked_div(*by).unwrap_or(1)).unwrap_or(1)
        }
        _ => 1,
    }
}

fn weight(block: &[S]) -> u64 {
    let one = |s: &S| {
        let below = inner(s).into_iter().map(weight).fold(0, u64::saturating_add);
        let own = u64::from(!matches!(s, S::For { .. } | S::Comment(_) | S::Array { .. }));
        below.saturating_mul(rounds(s)).saturating_add(own)
    };
    block.iter().map(one).fold(0, u64::saturating_add)
}

fn marked(block: &mut [S], arrays: &[String], copies: u64) {
    for s in block {
        let around = copies.saturating_mul(rounds(s));
        match s {
            S::If { then, other, .. } => {
                marked(then, arrays, copies);
                marked(other, arrays, copies);
            }
            S::While { body, .. } => marked(body, arrays, copies),
            S::For { hint, var, body, .. } => {
                if hint.is_none() && (copies >= MANY || weight(body) >= LARGE) && !walks(body, var, arrays) {
                    *hint = Some(KEEP);
                }
                marked(body, arrays, around);
            }
            _ => {}
        }
    }
}

/// Whether a body indexes an array of the thread by a loop's variable.
fn walks(block: &[S], var: &str, arrays: &[String]) -> bool {
    let seen = |c: &C| {
        holds(c, &|c| {
            let (C::Index(base, at) | C::Binary("+", base, at)) = c else { return false };
            let own = matches!(&**base, C::Name(n) if arrays.contains(n));
            own && holds(at, &|c| matches!(c, C::Name(n) if n == var))
        })
    };
    block.iter().any(|s| {
        let here = match s {
            S::Declare { init: Some(c), .. } | S::Do(c) | S::Return(c) => seen(c),
            S::Assign { to, value, .. } => seen(to) || seen(value),
            S::If { cond, .. } | S::While { cond, .. } => seen(cond),
            S::For { lo, cond, .. } => seen(lo) || seen(cond),
            _ => false,
        };
        here || inner(s).into_iter().any(|b| walks(b, var, arrays))
    })
}

fn holds(c: &C, wanted: &dyn Fn(&C) -> bool) -> bool {
    let any = |list: &[&C]| list.iter().any(|c| holds(c, wanted));
    wanted(c)
        || match c {
            C::Int(..) | C::Name(_) => false,
            C::Call(_, args) => args.iter().any(|c| holds(c, wanted)),
            C::Unary(_, a) | C::Cast(_, a) => any(&[a]),
            C::Binary(_, a, b) | C::Index(a, b) => any(&[a, b]),
            C::Choice(a, b, d) => any(&[a, b, d]),
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clike::tree::Ty;

    fn add(to: C) -> S {
        S::Assign { op: "+=", to, value: C::int(1) }
    }

    fn count(hint: Option<&'static str>, var: &str, n: i64, body: Vec<S>) -> S {
        let cond = C::binary("<", C::name(var), C::int(n));
        S::For { hint, ty: Ty::I32, var: var.into(), lo: C::int(0), cond, step: C::int(1), body }
    }

    fn hint(s: &S) -> Option<&'static str> {
        let S::For { hint, .. } = s else { return None };
        *hint
    }

    #[test]
    fn large_loops_and_repeated_ones_are_kept() {
        let small = || count(None, "i", 4, vec![add(C::name("x"))]);
        let many = count(Some("#pragma unroll"), "u", 32, vec![add(C::name("x"))]);
        let around = |n| count(Some("#pragma unroll"), "u", n, vec![small()]);
        let mut list = [small(), count(None, "k", 4, vec![many]), around(8), around(2)];
        mark(&mut list);
        let inside = |s: &S| inner(s).first().and_then(|b| b.first()).and_then(hint);
        assert_eq!(
            list.each_ref().map(hint),
            [None, Some(KEEP), Some("#pragma unroll"), Some("#pragma unroll")]
        );
        assert_eq!((inside(&list[2]), inside(&list[3])), (Some(KEEP), None));
    }

    #[test]
    fn a_loop_over_the_threads_array_stays_free() {
        let place = C::index(C::name("a"), C::name("i"));
        let walk = count(None, "i", 64, vec![add(place); 32]);
        let mut list = [S::Array { ty: Ty::F32, name: "a".into(), len: 64, align: 4 }, walk];
        mark(&mut list);
        assert_eq!(hint(&list[1]), None);
    }
}
