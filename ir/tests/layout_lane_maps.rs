//! Every lane map of the shipped targets, enumerated from index formulas as the vendors' documents and sources
//! state them: an element's row and column from thread and register.

mod layout_support;

use layout_support::place;
use pantile_ir::layout::{Axis, Layout, Symbols, parse_layout};
use pantile_ir::target::{MatrixUnit, Role, Shape, Targets, Types, symbols};

/// (first index, second index) of the element that register `i` of thread `t` holds.
type Formula = Box<dyn Fn(u64, u64) -> (u64, u64)>;

/// The layout puts exactly the elements that the formula names into each register of each thread.
fn check(what: &str, layout: &Layout, dims: [&str; 2], formula: &Formula) {
    let extent = |d: &str| layout.dim(d).unwrap_or_else(|| panic!("{what}: no dim {d}")).extent();
    let (rows, cols) = (extent(dims[0]), extent(dims[1]));
    let (threads, regs) = (layout.size(Axis::Thr), layout.size(Axis::Reg));
    assert_eq!(threads * regs, rows * cols, "{what}: every register holds one element");
    let swapped = layout.dims[0].name != dims[0];
    let mut seen = vec![false; (rows * cols) as usize];
    for t in 0..threads {
        for i in 0..regs {
            let (r, c) = formula(t, i);
            assert!(r < rows && c < cols, "{what}: thread {t} register {i} is ({r}, {c}) of {rows}x{cols}");
            let at = place(layout, &if swapped { [c, r] } else { [r, c] });
            assert_eq!((at[Axis::Thr], at[Axis::Reg]), (t, i), "{what}: ({r}, {c}) of {layout}");
            assert!(!std::mem::replace(&mut seen[(r * cols + c) as usize], true));
        }
    }
}

/// PTX ISA, fragments of mma and of wgmma's registers. `g` is the lane's group of four, `q` its number in it; the
/// rows of a warpgroup's warps follow one another.
fn ptx(role: Role, shape: Shape, bits: u32) -> Formula {
    let per = u64::from(32 / bits.min(32)); // elements of a 32-bit register
    let (m, k) = (u64::from(shape.m), u64::from(shape.k));
    let lane = |t: u64| (t % 32 / 4, t % 4);
    let warp = |t: u64| t / 32 * 16;
    match (role, bits) {
        // c0 c1: row g, columns 2q, 2q+1; c2 c3: row g + 8; further quartets: 8 columns on
        (Role::Acc, _) if m == 8 => Box::new(move |t, i| (lane(t).0, 2 * lane(t).1 + i)),
        (Role::Acc, _) => Box::new(move |t, i| {
            let (g, q) = lane(t);
            (warp(t) + g + if i % 4 >= 2 { 8 } else { 0 }, 8 * (i / 4) + 2 * q + i % 2)
        }),
        // one element a register: f64 and tf32
        (Role::A, 64) if m == 8 => Box::new(move |t, _| lane(t)),
        (Role::A, 32 | 64) => Box::new(move |t, i| {
            let (g, q) = lane(t);
            (warp(t) + g + if i % 2 == 1 { 8 } else { 0 }, q + 4 * (i / 2))
        }),
        (Role::B, 32 | 64) => Box::new(move |t, i| (lane(t).1 + 4 * i, lane(t).0)),
        // packed registers: the first `per` elements in row g, the next in row g + 8, the rest half of K further on
        (Role::A, _) if m == 8 => Box::new(move |t, i| (lane(t).0, per * lane(t).1 + i)),
        (Role::A, _) => Box::new(move |t, i| {
            let (g, q) = lane(t);
            let lower = if i / per % 2 == 1 { 8 } else { 0 };
            let right = if i >= 2 * per { k / 2 } else { 0 };
            (warp(t) + g + lower, per * q + i % per + right)
        }),
        (Role::B, _) => Box::new(move |t, i| {
            let (g, q) = lane(t);
            (per * q + i % per + if i >= per { k / 2 } else { 0 }, g)
        }),
    }
}

/// MUTLASS's fragments of warp WMMA (rows along K in registers) and the accumulators of WMMA and SQMMA.
fn mutlass(kind: &str, role: Role, shape: Shape, bits: u32) -> Formula {
    let (m, n, k, b) = (u64::from(shape.m), u64::from(shape.n), u64::from(shape.k), u64::from(bits));
    let e = 32 / b;
    let blocks = k * b / 128;
    let rows = if kind == "sqmma" { 16 } else { 4 };
    match role {
        Role::Acc => Box::new(move |t, v| (t / 8 + rows * (v / (n / 8)), t % 8 + 8 * (v % (n / 8)))),
        Role::A | Role::B => {
            assert!(m >= 8 && blocks >= 1);
            Box::new(move |l, v| {
                let (x, j1, j2) = (v % e, v / e % blocks, v / e / blocks);
                let row = l / 4 + 8 * j2;
                let col = l % 4 * e + x + 128 / b * j1;
                if role == Role::A { (row, col) } else { (col, row) }
            })
        }
    }
}

/// MUTLASS's fragments whose registers run along M or N.
fn mutlass_mn(role: Role, shape: Shape, bits: u32) -> Formula {
    let b = u64::from(bits);
    let e = 32 / b;
    let rows = u64::from(if role == Role::A { shape.m } else { shape.n }) / 8;
    Box::new(move |l, v| {
        let (x, j1, j2) = (v % e, v / e % rows, v / e / rows);
        let row = l % (b / 4) * e + x + 8 * j1;
        let col = l / (b / 4) + 128 / b * j2;
        if role == Role::A { (row, col) } else { (col, row) }
    })
}

/// Scalar units: one thread, registers along K.
fn scalar(role: Role) -> Formula {
    match role {
        Role::A => Box::new(|_, i| (0, i)),
        Role::B => Box::new(|_, i| (i, 0)),
        Role::Acc => Box::new(|_, _| (0, 0)),
    }
}

fn formula(unit: &MatrixUnit, role: Role, shape: Shape, bits: u32) -> Formula {
    match unit.kind.as_str() {
        "mma" | "wgmma" => ptx(role, shape, bits),
        "wmma" | "sqmma" => mutlass(&unit.kind, role, shape, bits),
        "fma" | "dot" => scalar(role),
        other => panic!("no formula for `{other}`"),
    }
}

#[test]
fn every_lane_map_of_a_gpu_equals_its_formula() {
    let targets = Targets::shipped();
    let mut checked = 0;
    for arch in targets.archs().filter(|a| a.facts.simd.bits.is_none()) {
        for unit in &arch.matrix {
            for (shape, types) in unit.shapes.iter().flat_map(|s| unit.types.iter().map(move |t| (*s, *t))) {
                for role in Role::ALL {
                    let bits = types.of(role).bits();
                    let what = format!("{} {} {role:?} {shape:?} {types}", arch.name, unit.name);
                    if let Some(map) = unit.lane_map(role, shape, types) {
                        check(&what, &map, role.dims(), &formula(unit, role, shape, bits));
                        checked += 1;
                    }
                    if let Some(text) = &unit.operand(role).regs_mn {
                        let map = text.bind(&symbols(shape, bits)).expect("checked on load");
                        check(&what, &map, role.dims(), &mutlass_mn(role, shape, bits));
                        checked += 1;
                    }
                }
            }
        }
    }
    assert!(checked > 1000, "{checked} maps");
}

#[test]
fn every_vector_map_of_a_processor_broadcasts_a_and_spreads_n() {
    let mut checked = 0;
    for arch in Targets::shipped().archs().filter(|a| a.facts.simd.bits.is_some()) {
        for unit in arch.matrix.iter().filter(|u| u.acc.regs.is_some()) {
            for (shape, types) in unit.shapes.iter().flat_map(|s| unit.types.iter().map(move |t| (*s, *t))) {
                let map = |role| unit.lane_map(role, shape, types).expect("all three in registers");
                let (a, b, acc) = (map(Role::A), map(Role::B), map(Role::Acc));
                let (n, k) = (u64::from(shape.n), u64::from(shape.k));
                for j in 0..n {
                    let at = place(&acc, &[0, j]);
                    assert_eq!((at[Axis::Simd], at[Axis::Reg]), (j, 0));
                    for x in 0..k {
                        let at = place(&b, &[x, j]);
                        assert_eq!((at[Axis::Simd], at[Axis::Reg]), (j, x), "{} {}", arch.name, unit.name);
                    }
                }
                assert_eq!((a.copies(), a.size(Axis::Reg)), (n, k), "one element of A meets every lane");
                let vector = n * u64::from(types.acc.bits());
                assert_eq!(Some(vector), arch.facts.simd.bits.as_ref().map(|k| u64::from(k.value)));
                checked += 1;
            }
        }
    }
    assert!(checked >= 10, "{checked} rows");
}

#[test]
fn matrix_moves_equal_their_formulas() {
    let targets = Targets::shipped();
    let hopper = targets.arch("sm_90a").expect("shipped");
    let names: Vec<&str> = hopper.moves.iter().map(|m| m.name.as_str()).collect();
    assert_eq!(names, ["ldmatrix", "ldmatrix.trans", "movmatrix.trans", "stmatrix", "stmatrix.trans"]);
    for m in &hopper.moves {
        let map = m.map.bind(&Symbols::default()).expect("checked on load");
        // ldmatrix: thread t holds row t / 4, columns 2 (t % 4) and the next; with .trans of the transposed block.
        let formula: Formula = match m.name.as_str() {
            "ldmatrix.trans" | "stmatrix.trans" => Box::new(|t, i| (t % 4 * 2 + i, t / 4)),
            _ => Box::new(|t, i| (t / 4, t % 4 * 2 + i)),
        };
        check(&m.name, &map, ["r", "c"], &formula);
    }
}

/// Shared tiles of operands: the address of each element by the vendors' formulas.
#[test]
fn swizzled_operand_tiles_equal_their_formulas() {
    let tile = |text: &str| parse_layout(text, &Symbols::default()).expect("a tile");
    let addresses = |text: &str, rows: u64, cols: u64, formula: &dyn Fn(u64, u64) -> u64| {
        let t = tile(text);
        for r in 0..rows {
            for c in 0..cols {
                assert_eq!(t.address(&[r, c]), formula(r, c), "{text} at ({r}, {c})");
            }
        }
    };
    // Hopper, 128-, 64- and 32-byte rows: 16-byte chunk number XOR row number, as TMA writes and wgmma reads them.
    addresses("r: 64@mem*128 ; k: 64@mem*2 ; xor<3,4,3> align 1024", 64, 64, &|r, c| {
        r * 128 + ((c / 8) ^ (r & 7)) * 16 + c % 8 * 2
    });
    addresses("r: 64@mem*64 ; k: 32@mem*2 ; xor<2,4,3> align 512", 64, 32, &|r, c| {
        r * 64 + ((c / 8) ^ (r >> 1 & 3)) * 16 + c % 8 * 2
    });
    addresses("r: 64@mem*32 ; k: 16@mem*2 ; xor<1,4,3> align 256", 64, 16, &|r, c| {
        r * 32 + ((c / 8) ^ (r >> 2 & 1)) * 16 + c % 8 * 2
    });
    // SQMMA: 256-byte lines, the granule's number XOR the line's.
    let granules = |a: u64, shift: u32, mask: u64| a ^ (a >> shift & mask);
    for pitch in [64u64, 128, 256] {
        let k = pitch / 2;
        addresses(&format!("m: 64@mem*{pitch} ; k: {k}@mem*2 ; xor<4,4,4> align 4096"), 64, k, &|r, c| {
            granules(r * pitch + c * 2, 4, 0xF0)
        });
        addresses(&format!("k: 64@mem*{pitch} ; n: {k}@mem*2 ; xor<3,5,3> align 2048"), 64, k, &|r, c| {
            granules(r * pitch + c * 2, 3, 0xE0)
        });
        addresses(
            &format!("k: 64@mem*{pitch} ; n: {}@mem*4 ; xor<2,6,2> align 1024", pitch / 4),
            64,
            pitch / 4,
            &|r, c| granules(r * pitch + c * 4, 2, 0xC0),
        );
    }
}

/// The accumulator of a product whose rows follow from a reduction, as attention uses it.
#[test]
fn packed_accumulators_are_register_operands() {
    let targets = Targets::shipped();
    let wgmma = |name: &str| {
        let arch = targets.arch("sm_90a").expect("shipped");
        arch.matrix.iter().find(|u| u.name == name).expect("a row").clone()
    };
    let unit = wgmma("wgmma.f16");
    let types: Types = unit.types[0];
    for n in (16..=256).step_by(16) {
        let shape = Shape { m: 64, n, k: 16 };
        let acc = unit.lane_map(Role::Acc, shape, types).expect("a map");
        let mut operand = unit.lane_map(Role::A, shape, types).expect("a map");
        // n / 16 instructions along K, each with its own eight registers.
        operand.dims[1].digits.insert(0, pantile_ir::layout::Digit::new(u64::from(n) / 16, Axis::Reg, 8));
        operand.dims[1].name = "n".into();
        assert!(acc.same(&operand), "{acc} and {operand}");
    }
}
