//! Vector widths, bank conflicts and swizzle choice: golden numbers, and simulation of every access.

mod layout_support;

use layout_support::{Rng, address, fragment, holdings, indices, place, reorder};
use pantile_ir::layout::{
    Axis, Banks, Candidate, Conflicts, Layout, Shared, Symbols, User, VectorLimits, bank_conflicts,
    bank_conflicts_of, choose_swizzle, free_candidates, parse_layout, relate, vector_width,
};
use std::collections::{BTreeMap, BTreeSet};

const BANKS: Banks = Banks { count: 32, bytes: 4, phase: 128, lanes: 32 };

fn tile(text: &str) -> Shared {
    parse_layout(text, &Symbols::default()).unwrap_or_else(|e| panic!("{text}: {}", e.message))
}

fn layout(text: &str) -> Layout {
    tile(text).layout
}

fn width(frag: &Layout, memory: &Shared, element: u64, max_bytes: u64) -> u64 {
    let limits =
        VectorLimits { max_bytes, align: memory.align.max(element), xor_base: memory.xor.map(|x| x.base) };
    vector_width(&relate(frag, &memory.layout).expect("related"), element, &limits)
}

/// Serves every access of every warp word by word, from the elements themselves.
fn simulate(frag: &Layout, memory: &Shared, element: u64, vector: u64) -> Conflicts {
    let held = holdings(frag);
    let bytes = vector * element;
    // Accesses of one thread start where its addresses are multiples of the width.
    let mut starts: BTreeMap<u64, BTreeSet<(u64, u64)>> = BTreeMap::new();
    for ((t, r), index) in &held {
        let a = address(memory, &reorder(frag, &memory.layout, index));
        let plain = place(&memory.layout, &reorder(frag, &memory.layout, index))[Axis::Mem];
        if plain.is_multiple_of(bytes) {
            starts.entry(*t).or_default().insert((*r, a));
        }
    }
    let mut total = Conflicts { ways: 0, accesses: 0, cycles: 0, ideal: 0 };
    let threads = frag.size(Axis::Thr);
    for warp in 0..threads.div_ceil(32) {
        let list = |t: u64| starts.get(&t).map(|s| s.iter().copied().collect::<Vec<_>>()).unwrap_or_default();
        let steps = list(warp * 32).len();
        for step in 0..steps {
            let lanes: Vec<u64> =
                (0..32).filter_map(|l| list(warp * 32 + l).get(step).map(|s| s.1)).collect();
            total.accesses += 1;
            for phase in lanes.chunks((128 / bytes.max(4)) as usize) {
                let mut banks: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
                for a in phase {
                    for word in a / 4..=(a + bytes - 1) / 4 {
                        banks.entry(word % 32).or_default().insert(word);
                    }
                }
                let ways = banks.values().map(|w| w.len() as u64).max().unwrap_or(0);
                total.ways = total.ways.max(ways);
                total.cycles += ways;
            }
        }
    }
    total
}

#[test]
fn conflicts_equal_the_simulation() {
    let mut rng = Rng(23);
    let tiles = [
        "m: 32@mem*128 ; n: 64@mem*2 ; xor<3,4,3> align 1024",
        "m: 32@mem*64 ; n: 32@mem*2 ; xor<2,4,3> align 512",
        "m: 32@mem*144 ; n: 64@mem*2 ; align 16",
        "m: 32@mem*256 ; n: 64@mem*4",
        "n: 64@mem*64 ; m: 32@mem*2",
        "m: 32@mem*4 ; n: 64@mem*128 ; xor<3,5,3> align 2048",
    ];
    let mut seen = BTreeSet::new();
    for round in 0..600 {
        let memory = tile(tiles[round % tiles.len()]);
        let element = memory.layout.digits().map(|(_, d)| d.stride).min().expect("digits");
        let (m, n) =
            (memory.layout.dim("m").expect("m").extent(), memory.layout.dim("n").expect("n").extent());
        let frag = loop {
            let f = fragment(&mut rng, &[("m", m), ("n", n)], 1);
            if f.size(Axis::Thr) >= 32 {
                break f;
            }
        };
        let vector = width(&frag, &memory, element, 16);
        let found = bank_conflicts(&frag, &memory, element, vector, &BANKS).expect("related");
        let wanted = simulate(&frag, &memory, element, vector);
        assert_eq!(
            (found.ways, found.cycles, found.accesses),
            (wanted.ways, wanted.cycles, wanted.accesses),
            "{frag} in {memory}"
        );
        seen.insert(found.ways);
    }
    assert!(seen.len() > 4, "the sample must hold several degrees of conflict: {seen:?}");
}

#[test]
fn vectors_are_whole_aligned_runs_of_one_thread() {
    let mut rng = Rng(29);
    let mut widths = BTreeSet::new();
    for _ in 0..600 {
        let frag = fragment(&mut rng, &[("m", 16), ("n", 24)], 1);
        let memory = tile(rng.pick(&[
            "m: 16@mem*48 ; n: 24@mem*2 ; align 16",
            "m: 16@mem*64 ; n: 24@mem*2 ; xor<2,4,3> align 512",
            "m: 16@mem*52 ; n: 24@mem*2 ; align 4",
        ]));
        let w = width(&frag, &memory, 2, 16);
        widths.insert(w);
        let mut held: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for ((t, _), index) in holdings(&frag) {
            held.entry(t).or_default().insert(address(&memory, &index));
        }
        for addresses in held.values() {
            for a in addresses {
                let start = a / (2 * w) * (2 * w);
                let run = (0..w).all(|i| addresses.contains(&(start + 2 * i)));
                assert!(run, "{frag} in {memory}: {w} elements at {start}");
            }
        }
    }
    assert_eq!(widths, BTreeSet::from([1, 2, 4, 8]), "all widths occur");
}

#[test]
fn what_narrows_a_vector() {
    let frag = layout("m: 8@thr*4 ; n: 4@thr, 8@reg");
    let w = |memory: &str| width(&frag, &tile(memory), 2, 16);
    assert_eq!(w("m: 8@mem*64 ; n: 32@mem*2 ; align 16"), 8);
    assert_eq!(w("m: 8@mem*64 ; n: 32@mem*2 ; align 8"), 4, "alignment of the base");
    assert_eq!(w("m: 8@mem*66 ; n: 32@mem*2 ; align 16"), 1, "row pitch");
    assert_eq!(w("m: 8@mem*72 ; n: 32@mem*2 ; align 16"), 4, "row pitch");
    assert_eq!(w("m: 8@mem*2 ; n: 32@mem*16 ; align 16"), 1, "the wrong dim is contiguous");
    assert_eq!(w("m: 8@mem*64 ; n: 32@mem*2 ; xor<2,2,2> align 64"), 2, "the swizzle reaches into it");
    assert_eq!(w("m: 8@mem*64 ; n: 32@mem*2 ; offset 4@mem ; align 16"), 2, "offset of a slice");
    let limits = VectorLimits { max_bytes: 4, align: 16, xor_base: None };
    let relation = relate(&frag, &layout("m: 8@mem*64 ; n: 32@mem*2")).expect("related");
    assert_eq!(vector_width(&relation, 2, &limits), 2, "the target");
    let guarded = layout("n: 4@thr, 8@reg < 30");
    assert_eq!(
        width(&guarded, &tile("n: 30@mem*2 ; align 16"), 2, 16),
        2,
        "a vector must not straddle the end"
    );
    let six = layout("n: 4@thr, 6@reg");
    assert_eq!(width(&six, &tile("n: 24@mem*2 ; align 16"), 2, 16), 2, "six is no power of two");
}

#[test]
fn golden_ways_of_the_hopper_accumulator() {
    let acc = layout("m: 4@thr*32, 2@reg*2, 8@thr*4 ; n: 16@reg*4, 4@thr, 2@reg");
    let ways = |memory: &str| {
        let memory = tile(memory);
        let vector = width(&acc, &memory, 2, 16);
        assert_eq!(vector, 2, "one 32-bit word");
        bank_conflicts(&acc, &memory, 2, vector, &BANKS).expect("related").ways
    };
    assert_eq!(ways("m: 64@mem*256 ; n: 128@mem*2 ; align 16"), 8);
    assert_eq!(ways("m: 64@mem*128 ; n: 2@mem*8192, 64@mem*2 ; xor<3,4,3> align 1024"), 1);
}

#[test]
fn golden_ways_of_matrix_stores() {
    // A store of four 8x8 blocks: lane l gives the address of row l % 16, 16 bytes at column 8 * (l / 16).
    let boxes = ["xor<3,4,3>", "xor<2,4,3>", "xor<1,4,3>"];
    for (columns, xor) in [64u64, 32, 16].into_iter().zip(boxes) {
        let memory = tile(&format!("r: 64@mem*{} ; c: {columns}@mem*2 ; {xor} align 1024", columns * 2));
        for j in 0..columns / 16 {
            let rows: Vec<u64> = (0..32).map(|l| memory.address(&[l % 16, j * 16 + l / 16 * 8])).collect();
            assert_eq!(bank_conflicts_of(&rows, 16, &BANKS), [1, 1, 1, 1], "{columns} columns");
        }
    }
}

#[test]
fn golden_ways_of_the_squad_accumulator() {
    // P as f16 into a panel of rows of `pitch` bytes with 16-byte granules swizzled, as SQMMA reads it.
    let ways = |frag: &str, pitch: u64, vector: u64| {
        let memory = tile(&format!("m: 16@mem*{pitch} ; n: {}@mem*2 ; xor<4,4,4> align 4096", pitch / 2));
        let frag = layout(&frag.replace('N', &(pitch / 16).to_string()));
        assert_eq!(width(&frag, &memory, 2, 16), vector);
        bank_conflicts(&frag, &memory, 2, vector, &BANKS).expect("related").ways
    };
    let as_is = "m: 16@thr*8 ; n: N@reg, 8@thr";
    let one_exchange = |n: u64| format!("m: 16@thr*8 ; n: {}@reg*2, 2@thr, 4@thr*2, 2@reg", n);
    let full = |n: u64| format!("m: 16@thr*8 ; n: {}@reg*8, 8@thr, 8@reg", n);
    assert_eq!([64, 128, 256].map(|p| ways(as_is, p, 1)), [2, 2, 1]);
    assert_eq!([64, 128, 256].map(|p| ways(&one_exchange(p / 32), p, 2)), [2, 4, 2]);
    assert_eq!([128, 256].map(|p| ways(&full(p / 128), p, 8)), [1, 1]);
}

#[test]
fn swizzles_are_chosen_by_all_users() {
    let acc = layout("m: 4@thr*32, 2@reg*2, 8@thr*4 ; n: 8@reg*4, 4@thr, 2@reg");
    let rows = layout("m: 4@reg*8, 16@thr*8 ; n: 8@thr, 8@reg");
    let users = [User { frag: acc, weight: 1, max_bytes: 16 }, User { frag: rows, weight: 1, max_bytes: 16 }];
    let all = free_candidates(&[("m", 64), ("n", 64)], 2);
    let names: Vec<&str> = all.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["plain", "pad 16", "xor<3,4,3>"]);
    let (scores, refused) = choose_swizzle(&all, &users, 2, &BANKS);
    assert!(refused.is_empty());
    assert_eq!(
        all[scores[0].candidate].name, "xor<3,4,3>",
        "free of conflicts and without padding: {scores:?}"
    );
    assert_eq!(scores[0].ways, 1);
    assert_eq!(scores.last().map(|s| all[s.candidate].name.as_str()), Some("plain"));
    let odd = Candidate { name: "odd".into(), shared: tile("m: 64@mem*128 ; n: 3@mem*8192, 21@mem*2 < 63") };
    assert_eq!(
        choose_swizzle(&[odd], &users, 2, &BANKS).1.len(),
        1,
        "a candidate that does not relate is named"
    );
}

#[test]
fn lanes_that_share_a_word_do_not_conflict() {
    let row: Vec<u64> = vec![64; 32];
    assert_eq!(bank_conflicts_of(&row, 4, &BANKS), [1]);
    let column: Vec<u64> = (0..32).map(|l| l * 128).collect();
    assert_eq!(bank_conflicts_of(&column, 4, &BANKS), [32]);
    let halves: Vec<u64> = (0..32).map(|l| l * 2).collect();
    assert_eq!(bank_conflicts_of(&halves, 2, &BANKS), [1]);
    assert_eq!(indices(&layout("m: 2@thr ; n: 3@reg")).len(), 6);
}
