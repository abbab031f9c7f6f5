//! Relations, boxes, slices and chunk choice against enumeration.

mod layout_support;

use layout_support::{Rng, fragment, indices, place, reorder};
use pantile_ir::layout::{
    At, Axis, Chunked, Dim, Fit, Layout, Mismatch, Relation, Symbols, fit, parse_layout, relate, relate_boxes,
};

fn layout(text: &str) -> Layout {
    parse_layout(text, &Symbols::default()).unwrap_or_else(|e| panic!("{text}: {}", e.message)).layout
}

/// Where the pieces say that an element goes: its source and destination places.
fn through(relation: &Relation, index: &[u64]) -> (At, At) {
    let (mut src, mut dst) = (relation.src_offset, relation.dst_offset);
    for p in &relation.pieces {
        let digit = index[p.dim] / p.place % p.extent;
        src[p.src.0] += digit * p.src.1;
        dst[p.dst.0] += digit * p.dst.1;
    }
    (src, dst)
}

fn agrees(a: &Layout, b: &Layout, relation: &Relation) {
    for index in indices(a) {
        let wanted = (place(a, &index), place(b, &reorder(a, b, &index)));
        assert_eq!(through(relation, &index), wanted, "{a} to {b} at {index:?}");
    }
}

#[test]
fn pieces_reproduce_the_composition() {
    let mut rng = Rng(11);
    let (mut related, mut refused) = (0, 0);
    for _ in 0..4000 {
        let (m, n) = (rng.pick(&[1, 8, 12, 16]), rng.pick(&[6, 16, 24]));
        let a = fragment(&mut rng, &[("m", m), ("n", n)], 1);
        let b = fragment(&mut rng, &[("n", n), ("m", m)], 1);
        match relate(&a, &b) {
            Ok(relation) => {
                related += 1;
                agrees(&a, &b, &relation);
                let all: u64 = relation.pieces.iter().map(|p| p.extent).product();
                assert_eq!(all, m * n, "the pieces cover every element once");
            }
            Err(Mismatch::Cuts { lower, upper, .. }) => {
                refused += 1;
                assert_ne!(upper % lower, 0);
            }
            Err(why) => panic!("{why}"),
        }
    }
    assert!(related > 500 && refused > 100, "{related} related, {refused} refused");
}

#[test]
fn refinement_exists_where_the_cuts_divide() {
    let one = |digits: &str| layout(&format!("n: {digits}"));
    assert!(relate(&one("7@reg*8, 2@reg*1, 8@thr"), &one("7@mem*32, 16@mem*2")).is_ok());
    assert!(relate(&one("14@reg*4, 4@thr, 2@reg"), &one("2@mem*1024, 64@mem*2 < 112")).is_err());
    assert!(relate(&one("4@reg, 3@thr"), &one("3@mem*8, 4@mem")).is_err());
    let why =
        relate(&one("14@reg*4, 4@thr, 2@reg"), &one("2@mem*1024, 64@mem*2 < 112")).expect_err("112 in 64s");
    assert_eq!(why, Mismatch::Cuts { dim: "n".into(), lower: 64, upper: 112 });
}

#[test]
fn different_shapes_are_named() {
    assert!(matches!(relate(&layout("m: 4@reg"), &layout("n: 4@reg")), Err(Mismatch::Dim { .. })));
    let why = relate(&layout("m: 4@reg"), &layout("m: 5@reg")).expect_err("4 is not 5");
    assert_eq!(why, Mismatch::Extent { dim: "m".into(), src: 4, dst: 5 });
}

#[test]
fn a_guarded_source_drives() {
    let a = layout("n: 5@reg*8, 32@thr, 8@reg < 1152");
    let b = layout("n: 1152@mem*2");
    let relation = relate(&a, &b).expect("memory follows");
    assert_eq!(relation.guards, [(0, 1152)]);
    assert_eq!(relation.pieces.iter().map(|p| p.extent).product::<u64>(), 1280);
    agrees(&a, &b, &relation);
}

#[test]
fn boxes_cut_where_one_side_ends() {
    let a = layout("m: 2@reg*14, 8@thr*4 ; n: 7@reg*2, 4@thr, 2@reg");
    let b = layout("m: 16@mem*64 ; n: 2@mem*1024, 32@mem*2 < 56");
    assert!(relate(&a, &b).is_err());
    let parts = relate_boxes(&a, &b, 2).expect("32 + 24");
    let extents: Vec<_> = parts.iter().map(|p| (p.start[1], p.extent[1])).collect();
    assert_eq!(extents, [(0, 32), (32, 24)]);
    for p in &parts {
        for m in 0..p.extent[0] {
            for n in 0..p.extent[1] {
                let index = [m + p.start[0], n + p.start[1]];
                assert_eq!(through(&p.relation, &[m, n]), (place(&a, &index), place(&b, &index)));
            }
        }
    }
    assert!(relate_boxes(&layout("n: 4@reg, 3@thr"), &layout("n: 3@mem*8, 4@mem"), 2).is_err());
}

#[test]
fn slices_keep_the_parents_places() {
    let mut rng = Rng(17);
    let mut cut = 0;
    for _ in 0..4000 {
        let l = fragment(&mut rng, &[("m", 24), ("n", 4)], 1);
        let start = rng.below(24);
        let len = 1 + rng.below(24 - start);
        let Some(s) = l.slice("m", start, len) else { continue };
        cut += 1;
        assert_eq!(s.dims[0].extent(), len);
        for index in indices(&s) {
            assert_eq!(
                place(&s, &index),
                place(&l, &[index[0] + start, index[1]]),
                "{l} from {start}, {len} long"
            );
        }
    }
    assert!(cut > 1000, "{cut} slices are runs of digits");
    assert_eq!(layout("m: 24@mem").slice("m", 20, 5), None, "beyond the end");
    assert_eq!(layout("m: 4@thr, 6@reg").slice("m", 3, 6), None, "no run of digits");
}

fn wgmma(n: u64) -> Layout {
    layout(&format!("m: 4@thr*32, 2@reg*2, 8@thr*4 ; n: {}@reg*4, 4@thr, 2@reg", n / 8))
}

#[test]
fn chunks_shrink_to_the_common_divisor_then_boxes_then_elements() {
    let tile = |n: u64, most: u64, least: u64| Chunked {
        slow: ("m".into(), 64),
        fast: ("n".into(), n),
        element_bytes: 2,
        most,
        least,
    };
    let chunk = |n, most, least| match fit(&wgmma(n), &tile(n, most, least)) {
        Fit::Whole { chunk, relation } => {
            agrees(&wgmma(n), &tile(n, most, least).layout(chunk), &relation);
            chunk
        }
        other => panic!("{n}: {other:?}"),
    };
    assert_eq!(chunk(128, 64, 8), 64);
    assert_eq!(chunk(112, 64, 8), 16);
    assert_eq!(chunk(160, 64, 8), 32);
    match fit(&wgmma(112), &tile(112, 32, 32)) {
        Fit::Boxes { first, chunks, .. } => assert_eq!((first, chunks), (96, [32, 16])),
        other => panic!("{other:?}"),
    }
    let odd = Layout::new(vec![
        Dim::new("m", layout("m: 64@thr").dims[0].digits.clone()),
        Dim::new("n", layout("n: 4@reg*3, 3@reg").dims[0].digits.clone()),
    ]);
    assert!(matches!(fit(&odd, &tile(12, 12, 4)), Fit::Whole { chunk: 12, .. }));
    let apart = layout("m: 64@thr ; n: 3@reg, 5@reg*3");
    assert!(matches!(fit(&apart, &tile(15, 4, 4)), Fit::Elements { .. }));
}

#[test]
fn row_vectors_relate_as_well() {
    let a = layout("m: 4@thr*32, 2@reg, 8@thr*4 ; rep 4@thr");
    let relation = relate(&a, &layout("m: 64@mem*4")).expect("one dim");
    assert_eq!(relation.src_rep.len(), 1);
    agrees(&a, &layout("m: 64@mem*4"), &relation);
    assert_eq!(relation.on(Axis::Reg, Axis::Mem).count(), 1);
}
