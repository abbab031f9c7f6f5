//! The replay notices a barrier that is gone or too weak.

mod support;

use pantile_ir::elab::Request;
use pantile_ir::program::*;
use pantile_passes::pipeline::Cx;
use pantile_passes::{order, reduce, share, verify_order};
use support::*;

/// The program with its `n`th barrier of the block deleted, or one of warps.
fn mutant(p: &Program, n: usize, weaken: bool) -> Option<Program> {
    fn block(b: &mut Block, left: &mut usize, weaken: bool) -> bool {
        for i in 0..b.len() {
            if let StmtKind::Op { op: Op::Barrier { team: team @ Team::Block }, .. } = &mut b[i].kind {
                if *left == 0 {
                    *team = Team::Warp;
                    if !weaken {
                        b.remove(i);
                    }
                    return true;
                }
                *left -= 1;
            }
            if b[i].kind.blocks_mut().into_iter().any(|inner| block(inner, left, weaken)) {
                return true;
            }
        }
        false
    }
    let mut p = p.clone();
    let id = p.kernels.handles().next()?;
    let mut left = n;
    block(&mut p.kernels[id].stmts, &mut left, weaken).then_some(p)
}

#[test]
fn deleted_and_weakened_barriers_are_noticed() {
    let text = std::fs::read_to_string("../tests/cases/shared.tile").unwrap();
    let arch = arch("sm_80");
    let cx = Cx { arch: &arch };
    let (mut caught, mut missed) = (0, Vec::new());
    for (name, consts) in [
        ("cross", "RT"),
        ("under_guard", ""),
        ("masked", ""),
        ("tree", ""),
        ("rotate", "BY"),
        ("elected", ""),
    ] {
        let mut request = Request::new(name);
        if !consts.is_empty() {
            request = request.with_const(consts, 64);
        }
        let mut p = compile(&text, &request, &arch);
        for pass in [reduce::run, share::run, order::run, verify_order::run] {
            p = pass(p, &cx).unwrap_or_else(|d| panic!("{name}: {d:#?}"));
        }
        for weaken in [false, true] {
            for n in 0.. {
                let Some(m) = mutant(&p, n, weaken) else { break };
                match verify_order::run(m, &cx) {
                    Err(_) => caught += 1,
                    Ok(_) => missed.push((name, n, weaken)),
                }
            }
        }
    }
    assert!(caught >= 14 && missed.is_empty(), "{caught} caught, missed {missed:?}");
}
