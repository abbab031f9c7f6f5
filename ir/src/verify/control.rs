//! Jumps and `next` have the loop that they belong to.

use super::Verifier;
use crate::codes;
use crate::program::*;
use crate::span::Span;

pub fn kernel(v: &mut Verifier) {
    let k = v.kernel;
    block(v, &k.stmts, &mut Vec::new());
}

#[derive(Clone, Copy)]
enum Around<'a> {
    /// A loop that may be left.
    Loop(&'a [Carry]),
    /// A construct whose steps cannot be left, with its name.
    Closed(&'static str, Span),
}

fn block<'a>(v: &mut Verifier<'a, '_>, stmts: &'a Block, around: &mut Vec<Around<'a>>) {
    for pair in stmts.windows(2) {
        if matches!((&pair[0].kind, &pair[1].kind), (StmtKind::Roles(_), StmtKind::Roles(_))) {
            v.error(codes::ROLE_TEAM, pair[1].span, "two sets of roles stand side by side")
                .also(pair[0].span, "the first")
                .help("roles that follow each other run side by side: make them one set, or put `barrier` between");
        }
    }
    for s in stmts {
        match &s.kind {
            StmtKind::Break => jump(v, "break", s.span, around.last()),
            StmtKind::Continue => jump(v, "continue", s.span, around.last()),
            StmtKind::Next { carry, .. } => next(v, *carry, s.span, around.last()),
            StmtKind::If { then, other, .. } => {
                block(v, then, around);
                block(v, other, around);
            }
            StmtKind::For { kind: LoopKind::Vectorized, body, .. } => {
                inside(v, body, around, Around::Closed("`vectorized`", s.span));
            }
            StmtKind::For { carry, body, .. } => inside(v, body, around, Around::Loop(carry)),
            StmtKind::While { body, .. } => inside(v, body, around, Around::Loop(&[])),
            StmtKind::Parallel { body, .. } => {
                inside(v, body, around, Around::Closed("`parallel`", s.span));
            }
            StmtKind::Roles(roles) => {
                for r in roles {
                    inside(v, &r.body, around, Around::Closed("a role", r.span));
                }
            }
            _ => {}
        }
    }
}

fn inside<'a>(v: &mut Verifier<'a, '_>, body: &'a Block, around: &mut Vec<Around<'a>>, new: Around<'a>) {
    around.push(new);
    block(v, body, around);
    around.pop();
}

fn jump(v: &mut Verifier, word: &str, span: Span, around: Option<&Around>) {
    match around {
        Some(Around::Loop(_)) => {}
        Some(&Around::Closed(what, place)) => {
            v.error(codes::NO_LOOP, span, format!("`{word}` cannot leave {what}"))
                .also(place, "its steps do not run one after the other")
                .help("guard the rest of the body with an `if`");
        }
        None => {
            v.error(codes::NO_LOOP, span, format!("`{word}` stands in no loop"));
        }
    }
}

fn next(v: &mut Verifier, carry: LocalId, span: Span, around: Option<&Around>) {
    let found = matches!(around, Some(Around::Loop(list)) if list.iter().any(|c| c.local == carry));
    if !found {
        let name = v.local_name(carry);
        v.error(codes::CARRY, span, format!("the loop around does not carry `{name}`"))
            .help("declare it at the loop: `for k in 0..n carry (held: slot(ring)? = none)`");
    }
}
