//! Conversion plans, executed step by step on numbered elements.

mod layout_support;

use layout_support::{Rng, address, fragment, holdings, place, reorder};
use pantile_ir::layout::{
    Access, Axis, Banks, Conversion, Layout, Prices, Scope, Shared, Step, Symbols, convert, parse_layout,
};
use pantile_ir::target::Targets;
use std::collections::BTreeMap;

const PRICES: Prices<'static> = Prices {
    shuffle: 4.0,
    select: 2.0,
    shared_store: 4.0,
    shared_load: 4.0,
    barrier: 30.0,
    max_bytes: 16,
    banks: Banks { count: 32, bytes: 4, phase: 128, lanes: 32 },
    moves: &[],
};

fn layout(text: &str) -> Layout {
    parse_layout(text, &Symbols::default()).unwrap_or_else(|e| panic!("{text}: {}", e.message)).layout
}

type Element = Vec<u64>;
/// What each register of each thread holds; absent is garbage.
type Registers = BTreeMap<(u64, u64), Element>;

fn run(src: &Layout, dst: &Layout, plan: &Conversion, element_bytes: u64) {
    let mut now: Registers = holdings(src);
    let (threads, regs) = (dst.size(Axis::Thr), dst.size(Axis::Reg));
    for step in &plan.steps {
        let old = std::mem::take(&mut now);
        let mut put = |t: u64, r: u64, from: Option<&Element>| {
            if let Some(e) = from {
                now.insert((t, r), e.clone());
            }
        };
        match step {
            Step::Exchange { lane, reg } => {
                for ((t, r), e) in &old {
                    let (bit, digit) = (t / lane % 2, r / reg % 2);
                    assert!(
                        *lane < PRICES.banks.lanes && lane.is_power_of_two(),
                        "exchanges stay inside a warp"
                    );
                    put(t - bit * lane + digit * lane, r - digit * reg + bit * reg, Some(e));
                }
            }
            Step::Rename { from } => {
                for t in 0..threads.max(src.size(Axis::Thr)) {
                    from.iter().enumerate().for_each(|(r, f)| put(t, r as u64, old.get(&(t, *f))));
                }
            }
            Step::Select { by_reg, by_thread } => {
                for (t, a) in by_thread.iter().enumerate() {
                    let reg = |b: &u64| old.get(&(t as u64, a + b));
                    by_reg.iter().enumerate().for_each(|(r, b)| put(t as u64, r as u64, reg(b)));
                }
            }
            Step::Shuffle { from, by_reg, by_thread } => {
                for (t, a) in by_thread.iter().enumerate() {
                    for (r, f) in from.iter().enumerate() {
                        let source = a + by_reg[r];
                        assert_eq!(source / 32, t as u64 / 32, "shuffles stay inside a warp");
                        put(t as u64, r as u64, old.get(&(source, *f)));
                    }
                }
            }
            Step::Shared { tile, store, load, .. } => {
                vectors(&old, tile, src, store, element_bytes);
                let memory: BTreeMap<u64, Element> = old
                    .values()
                    .map(|e| (address(tile, &reorder(src, &tile.layout, e)), e.clone()))
                    .collect();
                let wanted = holdings(dst);
                vectors(&wanted, tile, dst, load, element_bytes);
                for ((t, r), e) in wanted {
                    let from = address(tile, &reorder(dst, &tile.layout, &e));
                    now.insert((t, r), reorder(src, src, memory.get(&from).expect("stored")));
                }
            }
        }
    }
    for ((t, r), e) in holdings(dst) {
        let wanted = reorder(dst, src, &e);
        assert_eq!(
            now.get(&(t, r)),
            Some(&wanted),
            "{src} to {dst}: thread {t} register {r} of {regs}, {plan:?}"
        );
    }
}

/// Every access is a whole aligned vector of one thread.
fn vectors(held: &Registers, tile: &Shared, frag: &Layout, access: &Access, element: u64) {
    let Access::Vector(width) = access else { return };
    let bytes = width * element;
    let mut per: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for ((t, _), e) in held {
        per.entry(*t).or_default().push(address(tile, &reorder(frag, &tile.layout, e)));
    }
    for list in per.values() {
        for a in list {
            let start = a / bytes * bytes;
            assert!((0..bytes / element).all(|i| list.contains(&(start + i * element))), "{frag} in {tile}");
        }
    }
}

fn plan(src: &str, dst: &str, bits: u32) -> Conversion {
    let (src, dst) = (layout(src), layout(dst));
    let found = convert(&src, &dst, bits, &PRICES).expect("convertible");
    run(&src, &dst, &found, u64::from(bits / 8));
    found
}

#[test]
fn any_two_fragments_convert() {
    let mut rng = Rng(31);
    let mut kinds: BTreeMap<String, u32> = BTreeMap::new();
    for _ in 0..3000 {
        let (m, n, copies) =
            rng.pick(&[(16, 16, 1), (8, 8, 4), (12, 16, 1), (4, 32, 2), (6, 10, 1), (64, 1, 1), (8, 4, 8)]);
        let src = fragment(&mut rng, &[("m", m), ("n", n)], copies);
        let other = if rng.below(2) == 0 { copies } else { 1 };
        let dst = fragment(&mut rng, &[("n", n), ("m", m)], other);
        let bits = rng.pick(&[8, 16, 32]);
        let found = convert(&src, &dst, bits, &PRICES).expect("bytes always convert");
        run(&src, &dst, &found, u64::from(bits / 8));
        let name = |s: &Step| format!("{s:?}").split([' ', '{']).next().unwrap_or("").to_string();
        found.steps.iter().for_each(|s| *kinds.entry(name(s)).or_default() += 1);
    }
    for kind in ["Rename", "Select", "Shuffle", "Exchange", "Shared"] {
        assert!(kinds.get(kind).is_some_and(|n| *n > 5), "{kind} must occur: {kinds:?}");
    }
}

/// Bits of lane and register permuted at random: all of it stays inside a warp.
#[test]
fn bit_permutations_inside_a_warp_need_no_memory() {
    let mut rng = Rng(37);
    let mut exchanged = 0;
    for _ in 0..500 {
        let make = |rng: &mut Rng| {
            let mut slots: Vec<String> = (0..5).map(|b| format!("2@thr*{}", 1 << b)).collect();
            slots.extend((0..3).map(|b| format!("2@reg*{}", 1 << b)));
            rng.shuffle(&mut slots);
            layout(&format!("m: {} ; n: {}", slots[..4].join(", "), slots[4..].join(", ")))
        };
        let (src, dst) = (make(&mut rng), make(&mut rng));
        let dear = Prices { barrier: 1e9, shared_store: 1e9, ..PRICES };
        let found = convert(&src, &dst, 32, &dear).expect("convertible");
        run(&src, &dst, &found, 4);
        assert!(!found.steps.iter().any(|s| matches!(s, Step::Shared { .. })), "{src} to {dst}");
        exchanged += found.steps.iter().filter(|s| matches!(s, Step::Exchange { .. })).count();
    }
    assert!(exchanged > 500, "{exchanged}");
}

#[test]
fn equal_functions_cost_nothing() {
    let acc = "m: 4@thr*32, 2@reg*2, 8@thr*4 ; n: 14@reg*4, 4@thr, 2@reg";
    let operand = "m: 4@thr*32, 2@reg*2, 8@thr*4 ; n: 7@reg*8, 2@reg*4, 4@thr, 2@reg";
    assert_eq!(plan(acc, operand, 16), Conversion { steps: vec![], cost: 0.0 });
}

#[test]
fn registers_of_whole_words_are_renamed_for_free() {
    let found = plan("m: 4@reg*8, 8@thr ; n: 8@reg", "m: 4@reg*2, 8@thr ; n: 4@reg*8, 2@reg", 16);
    assert!(matches!(found.steps[..], [Step::Rename { .. }]));
    assert_eq!(found.cost, 0.0);
    let halves = plan("m: 4@reg*8, 8@thr ; n: 8@reg", "m: 4@reg, 8@thr ; n: 8@reg*4", 16);
    assert!(halves.cost > 0.0, "halves of words must be picked apart");
}

#[test]
fn row_vectors_spread_and_gather() {
    let own = "m: 2@reg, 8@thr*4 ; rep 4@thr";
    let spread = plan(own, "m: 2@thr, 8@thr*2", 32);
    assert!(matches!(spread.steps[..], [Step::Shuffle { .. } | Step::Shared { .. }]), "{spread:?}");
    let select = plan("m: 4@reg, 8@thr*4 ; rep 4@thr", "m: 4@thr, 8@thr*4", 32);
    assert!(matches!(select.steps[..], [Step::Select { .. }]), "each thread has what it needs: {select:?}");
    let gather = plan("m: 8@thr*4, 4@thr", "m: 8@thr*4, 4@reg ; rep 4@thr", 32);
    assert!(matches!(gather.steps[..], [Step::Shuffle { .. }]), "four shuffles, no memory: {gather:?}");
}

#[test]
fn squad_accumulators_exchange_lanes_with_registers() {
    let src = "m: 16@thr*8 ; n: 8@reg, 8@thr";
    let dear = Prices { barrier: 1000.0, ..PRICES };
    let pairs = layout("m: 16@thr*8 ; n: 4@reg*2, 2@thr, 4@thr*2, 2@reg");
    let one = convert(&layout(src), &pairs, 16, &dear).expect("convertible");
    run(&layout(src), &pairs, &one, 2);
    assert!(matches!(one.steps[0], Step::Exchange { lane: 1, reg: 1 }), "{one:?}");
    let full =
        convert(&layout(src), &layout("m: 16@thr*8 ; n: 8@thr, 8@reg"), 16, &dear).expect("convertible");
    run(&layout(src), &layout("m: 16@thr*8 ; n: 8@thr, 8@reg"), &full, 2);
    let rounds = full.steps.iter().filter(|s| matches!(s, Step::Exchange { .. })).count();
    assert_eq!(rounds, 3, "log2(8) rounds: {full:?}");
}

#[test]
fn warps_and_wider_teams_meet_in_shared_memory() {
    let rows = plan("m: 4@thr*32, 8@reg ; n: 32@thr", "n: 4@thr*32, 8@reg ; m: 32@thr", 16);
    match &rows.steps[..] {
        [Step::Shared { scope: Scope::Team, .. }] => {}
        other => panic!("{other:?}"),
    }
    let inside = plan("m: 3@thr*8, 5@reg ; n: 8@thr", "m: 3@reg*8, 5@thr ; n: 8@reg", 32);
    match &inside.steps[..] {
        [Step::Shared { scope, .. }] => assert_eq!(*scope, Scope::Warp, "one warp holds all of it"),
        other => panic!("{other:?}"),
    }
    let (a, b) = ("m: 2@group, 8@reg ; n: 32@thr", "m: 8@reg, 2@group ; n: 32@thr");
    let groups = convert(&layout(a), &layout(b), 32, &PRICES).expect("convertible");
    assert!(matches!(&groups.steps[..], [Step::Shared { scope: Scope::Block, .. }]), "{groups:?}");
    let copies =
        convert(&layout("m: 32@thr"), &layout("m: 32@thr ; rep 2@group"), 32, &PRICES).expect("convertible");
    assert!(matches!(&copies.steps[..], [Step::Shared { scope: Scope::Block, .. }]), "{copies:?}");
    let kept =
        convert(&layout("m: 32@thr ; rep 2@group"), &layout("m: 32@thr"), 32, &PRICES).expect("convertible");
    assert_eq!(kept.cost, 0.0, "a copy less is free: {kept:?}");
}

#[test]
fn nibbles_never_go_through_memory() {
    let (src, dst) = (layout("m: 8@thr*4 ; n: 4@thr, 8@reg"), layout("m: 8@thr*4 ; n: 8@reg, 4@thr"));
    let why = convert(&src, &dst, 4, &PRICES);
    assert!(why.is_ok() || why.is_err_and(|e| e.contains("4 bits")));
    let wide = convert(
        &layout("m: 4@thr*32, 8@reg ; n: 32@thr"),
        &layout("n: 4@thr*32, 8@reg ; m: 32@thr"),
        4,
        &PRICES,
    );
    assert!(wide.expect_err("across warps").contains("4 bits"));
    assert_eq!(place(&src, &[1, 9])[Axis::Thr], 5);
}

/// The element that a matrix move hands to register `i` of thread `t` from the block at (row, col).
fn blocks_agree(frag: &Layout, map: &Layout, rows: usize, cols: usize, block: (u64, u64)) {
    let (m, n) = (frag.dims[rows].extent(), frag.dims[cols].extent());
    for (row, col) in (0..m / block.0).flat_map(|r| (0..n / block.1).map(move |c| (r * block.0, c * block.1)))
    {
        let at = |r: u64, c: u64| {
            let mut index = [0; 2];
            (index[rows], index[cols]) = (row + r, col + c);
            place(frag, &index)
        };
        let (base, warp) = (at(0, 0)[Axis::Reg], at(0, 0)[Axis::Thr]);
        for (r, c) in (0..block.0).flat_map(|r| (0..block.1).map(move |c| (r, c))) {
            let (found, wanted) = (at(r, c), place(map, &[r, c]));
            assert_eq!(found[Axis::Thr], warp + wanted[Axis::Thr], "{frag}");
            assert_eq!(found[Axis::Reg], base + wanted[Axis::Reg], "{frag}");
        }
    }
}

#[test]
fn matrix_moves_fit_where_the_digits_repeat_their_map() {
    let targets = Targets::shipped();
    let moves = targets.arch("sm_90a").expect("shipped").block_moves();
    assert_eq!(moves.len(), 4, "the exchange between registers goes nowhere near memory");
    let acc = layout("m: 4@thr*32, 2@reg*2, 8@thr*4 ; n: 8@reg*4, 4@thr, 2@reg");
    let swizzled = |text: &str| parse_layout(text, &Symbols::default()).expect("a tile");
    let rows = swizzled("m: 64@mem*128 ; n: 64@mem*2 ; xor<3,4,3> align 1024");
    let columns = swizzled("n: 64@mem*128 ; m: 64@mem*2 ; xor<3,4,3> align 1024");
    let named = |name: &str| moves.iter().find(|m| m.name == name).expect("shipped");
    let plain = named("stmatrix").fit(&acc, &rows, &PRICES.banks).expect("rows");
    assert_eq!((plain.rows.as_str(), plain.blocks, plain.ways), ("m", 64, 1));
    blocks_agree(&acc, &named("stmatrix").map, 0, 1, (8, 8));
    let turned = named("stmatrix.trans").fit(&acc, &columns, &PRICES.banks).expect("columns");
    assert_eq!((turned.rows.as_str(), turned.blocks, turned.ways), ("n", 64, 1));
    blocks_agree(&acc, &named("stmatrix.trans").map, 1, 0, (8, 8));
    assert!(named("stmatrix").fit(&acc, &columns, &PRICES.banks).is_none());
    assert!(named("stmatrix.trans").fit(&acc, &rows, &PRICES.banks).is_none());
    let unswizzled = swizzled("m: 64@mem*128 ; n: 64@mem*2 ; align 16");
    assert_eq!(named("stmatrix").fit(&acc, &unswizzled, &PRICES.banks).map(|f| f.ways), Some(8));
    let askew = swizzled("m: 64@mem*136 ; n: 64@mem*2 ; align 16");
    assert!(named("stmatrix").fit(&acc, &askew, &PRICES.banks).is_none(), "rows of a block must be aligned");
    let squad = layout("m: 4@reg*8, 16@thr*8 ; n: 8@reg, 8@thr");
    assert!(named("stmatrix").fit(&squad, &rows, &PRICES.banks).is_none());
}

#[test]
fn detours_use_matrix_moves_where_they_are_cheaper() {
    let targets = Targets::shipped();
    let arch = targets.arch("sm_90a").expect("shipped");
    let moves = arch.block_moves();
    let prices = arch.prices(&moves).expect("known");
    let acc = layout("m: 4@thr*32, 2@reg*2, 8@thr*4 ; n: 8@reg*4, 4@thr, 2@reg");
    let rows = layout("m: 4@reg*8, 16@thr*8 ; n: 8@thr, 8@reg");
    let found = convert(&acc, &rows, 16, &prices).expect("convertible");
    run(&acc, &rows, &found, 2);
    match &found.steps[..] {
        [Step::Shared { store: Access::Blocks(name), load: Access::Vector(8), .. }] => {
            assert_eq!(name, "stmatrix")
        }
        other => panic!("{other:?}"),
    }
}
