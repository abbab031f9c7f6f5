//! The relation of two layouts: which digit of one each digit of the other comes from. Everything that moves data
//! reads this list.

use super::{At, Axis, Digit, Dim, Layout, gcd};

/// A stretch of one dim in which both layouts are regular.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Piece {
    /// position of the dim in the source layout
    pub dim: usize,
    /// what one step of the piece adds to the dim's index
    pub place: u64,
    pub extent: u64,
    pub src: (Axis, u64),
    pub dst: (Axis, u64),
}

/// From the places of a source layout to those of a destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation {
    pub pieces: Vec<Piece>,
    /// dims whose source covers more than the valid indices, with their number
    pub guards: Vec<(usize, u64)>,
    pub src_offset: At,
    pub dst_offset: At,
    pub src_rep: Vec<Digit>,
    pub dst_rep: Vec<Digit>,
}

/// Why two layouts have no common refinement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// one has a dim that the other lacks
    Dim {
        name: String,
    },
    Extent {
        dim: String,
        src: u64,
        dst: u64,
    },
    /// the digits cut the dim at places of which neither divides the other
    Cuts {
        dim: String,
        lower: u64,
        upper: u64,
    },
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Mismatch::Dim { name } => write!(f, "only one of the layouts has a dim `{name}`"),
            Mismatch::Extent { dim, src, dst } => write!(f, "`{dim}` has {src} indices here and {dst} there"),
            Mismatch::Cuts { dim, lower, upper } => {
                write!(f, "`{dim}` is cut every {lower} on one side and every {upper} on the other")
            }
        }
    }
}

/// A merged digit with its place value, innermost first.
struct Step {
    place: u64,
    digit: Digit,
}

fn steps(dim: &Dim) -> Vec<Step> {
    let merged = Dim { guard: None, ..dim.clone() }.canon();
    let mut place = 1;
    let each = merged.digits.iter().rev().map(|d| {
        let step = Step { place, digit: *d };
        place *= d.extent;
        step
    });
    each.collect()
}

/// The place's step on an axis; beyond the last digit the outermost one goes on.
fn covering(steps: &[Step], place: u64) -> (Axis, u64) {
    let step = steps.iter().rev().find(|s| s.place <= place);
    step.map_or((Axis::Reg, 0), |s| (s.digit.axis, s.digit.stride * (place / s.place)))
}

/// Composes `dst` after the inverse of `src`. The source drives: where it covers more than the valid indices, so do
/// the pieces, and `guards` says how many are valid.
pub fn relate(src: &Layout, dst: &Layout) -> Result<Relation, Mismatch> {
    for (a, b) in [(src, dst), (dst, src)] {
        if let Some(lone) = a.dims.iter().find(|d| b.dim(&d.name).is_none()) {
            return Err(Mismatch::Dim { name: lone.name.clone() });
        }
    }
    let mut out = Relation {
        pieces: Vec::new(),
        guards: Vec::new(),
        src_offset: src.offset,
        dst_offset: dst.offset,
        src_rep: src.rep.clone(),
        dst_rep: dst.rep.clone(),
    };
    for (i, a) in src.dims.iter().enumerate() {
        let Some(b) = dst.dim(&a.name) else { continue };
        relate_dim(i, a, b, &mut out)?;
    }
    Ok(out)
}

fn relate_dim(i: usize, a: &Dim, b: &Dim, out: &mut Relation) -> Result<(), Mismatch> {
    if a.extent() != b.extent() {
        return Err(Mismatch::Extent { dim: a.name.clone(), src: a.extent(), dst: b.extent() });
    }
    let total = a.covered();
    if total > a.extent() {
        out.guards.push((i, a.extent()));
    }
    let (from, to) = (steps(a), steps(b));
    let mut cuts: Vec<u64> = from.iter().chain(&to).map(|s| s.place).filter(|p| *p < total).collect();
    cuts.extend([1, total]);
    cuts.sort_unstable();
    cuts.dedup();
    for pair in cuts.windows(2) {
        let (place, next) = (pair[0], pair[1]);
        if !next.is_multiple_of(place) {
            return Err(Mismatch::Cuts { dim: a.name.clone(), lower: place, upper: next });
        }
        let (src, dst) = (covering(&from, place), covering(&to, place));
        out.pieces.push(Piece { dim: i, place, extent: next / place, src, dst });
    }
    Ok(())
}

impl Relation {
    pub fn on(&self, src: Axis, dst: Axis) -> impl Iterator<Item = &Piece> {
        self.pieces.iter().filter(move |p| p.src.0 == src && p.dst.0 == dst)
    }
}

/// One box of a tile with its relation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// first index along each dim of the source
    pub start: Vec<u64>,
    pub extent: Vec<u64>,
    pub relation: Relation,
}

/// Relates two layouts by cutting the tile into at most `most` boxes where no single relation exists.
pub fn relate_boxes(src: &Layout, dst: &Layout, most: usize) -> Result<Vec<Part>, Mismatch> {
    let whole = Part {
        start: vec![0; src.dims.len()],
        extent: src.dims.iter().map(Dim::extent).collect(),
        relation: Relation {
            pieces: Vec::new(),
            guards: Vec::new(),
            src_offset: At::default(),
            dst_offset: At::default(),
            src_rep: Vec::new(),
            dst_rep: Vec::new(),
        },
    };
    let mut open = vec![(whole, src.clone(), dst.clone())];
    let mut done = Vec::new();
    while let Some((mut part, a, b)) = open.pop() {
        let why = match relate(&a, &b) {
            Ok(relation) => {
                part.relation = relation;
                done.push(part);
                continue;
            }
            Err(why) => why,
        };
        let Mismatch::Cuts { dim, lower, .. } = &why else { return Err(why) };
        let Some(i) = a.dims.iter().position(|d| d.name == *dim) else { return Err(why) };
        let extent = part.extent[i];
        let first = extent / lower * lower;
        if done.len() + open.len() + 2 > most || first == 0 || first == extent {
            return Err(why);
        }
        // The later box first, so that the earlier one is taken next.
        for (start, len) in [(first, extent - first), (0, first)] {
            let cut = |l: &Layout| l.slice(dim, start, len);
            let (Some(x), Some(y)) = (cut(&a), cut(&b)) else { return Err(why) };
            let mut piece = part.clone();
            piece.start[i] += start;
            piece.extent[i] = len;
            open.push((piece, x, y));
        }
    }
    Ok(done)
}

impl Layout {
    /// The layout of indices `start..start + len` of a dim: the same places, by an offset. `None` where they are
    /// no run of digits.
    pub fn slice(&self, dim: &str, start: u64, len: u64) -> Option<Layout> {
        let mut out = self.clone();
        let at = out.dims.iter().position(|d| d.name == dim)?;
        let old = &self.dims[at];
        if len == 0 || start + len > old.extent() {
            return None;
        }
        let digits: Vec<Digit> = old.digits.iter().filter(|d| d.extent > 1).copied().collect();
        let (digits, offset) = slice_digits(&digits, start, len)?;
        let covered: u64 = digits.iter().map(|d| d.extent).product();
        out.dims[at] = Dim { name: old.name.clone(), digits, guard: (len < covered).then_some(len) };
        out.offset = out.offset + offset;
        Some(out)
    }
}

fn slice_digits(digits: &[Digit], start: u64, len: u64) -> Option<(Vec<Digit>, At)> {
    let Some((outer, inner)) = digits.split_first() else {
        return (start == 0 && len == 1).then(|| (Vec::new(), At::default()));
    };
    let below: u64 = inner.iter().map(|d| d.extent).product();
    let mut offset = At::default();
    offset[outer.axis] = start / below * outer.stride;
    if start / below == (start + len - 1) / below {
        let (digits, rest) = slice_digits(inner, start % below, len)?;
        return Some((digits, offset + rest));
    }
    if !start.is_multiple_of(below) {
        return None;
    }
    let mut all = vec![Digit { extent: len.div_ceil(below), ..*outer }];
    all.extend(inner);
    Some((all, offset))
}

/// A family of two-dim tiles in memory: the fast dim is cut into chunks, each chunk stored whole, one behind the
/// other. Copy engines and matrix units set the greatest chunk; smaller ones are slower but may fit.
#[derive(Clone, Debug)]
pub struct Chunked {
    pub slow: (String, u64),
    pub fast: (String, u64),
    pub element_bytes: u64,
    /// greatest and least chunk, in elements
    pub most: u64,
    pub least: u64,
}

impl Chunked {
    /// The tile with chunks of a given length; a last part of a chunk is padded.
    pub fn layout(&self, chunk: u64) -> Layout {
        self.layout_of(self.fast.1, chunk)
    }

    fn layout_of(&self, extent: u64, chunk: u64) -> Layout {
        let chunk = chunk.min(extent).max(1);
        let row = chunk * self.element_bytes;
        let chunks = extent.div_ceil(chunk);
        let outer = Digit::new(chunks, Axis::Mem, self.slow.1 * row);
        let inner = Digit::new(chunk, Axis::Mem, self.element_bytes);
        let mut fast = Dim::new(&self.fast.0, vec![outer, inner]);
        fast.guard = (chunks * chunk > extent).then_some(extent);
        Layout::new(vec![Dim::new(&self.slow.0, vec![Digit::new(self.slow.1, Axis::Mem, row)]), fast])
    }
}

/// How a fragment meets a chunked tile, best first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fit {
    /// one relation, with chunks of this length
    Whole { chunk: u64, relation: Relation },
    /// two boxes along the fast dim: elements `0..first` in chunks of one length, the rest in chunks of another
    Boxes { first: u64, chunks: [u64; 2], relations: [Relation; 2] },
    /// element by element: right, slow, and to be reported
    Elements { why: Mismatch },
}

/// Finds the largest chunk that relates to a fragment: the greatest, else the common divisor with the extent, else
/// two boxes, else single elements.
pub fn fit(frag: &Layout, tile: &Chunked) -> Fit {
    let extent = tile.fast.1;
    let most = tile.most.min(extent);
    let whole = relate(frag, &tile.layout(most));
    let why = match whole {
        Ok(relation) => return Fit::Whole { chunk: most, relation },
        Err(why) => why,
    };
    let common = gcd(extent, most);
    if common >= tile.least
        && let Ok(relation) = relate(frag, &tile.layout(common))
    {
        return Fit::Whole { chunk: common, relation };
    }
    let first = extent / most * most;
    let boxes = |start: u64, len: u64, chunk: u64| {
        let part = frag.slice(&tile.fast.0, start, len)?;
        relate(&part, &tile.layout_of(len, chunk)).ok()
    };
    if first > 0 && first < extent {
        let last = gcd(extent - first, most);
        if let (Some(a), Some(b)) = (boxes(0, first, most), boxes(first, extent - first, last)) {
            return Fit::Boxes { first, chunks: [most, last], relations: [a, b] };
        }
    }
    Fit::Elements { why }
}
