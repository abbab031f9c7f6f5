//! Layouts: where each element of a tile lives, as mixed-radix digits on named axes.
//!
//! A dim's index is cut into digits, outermost first; each digit adds `value * stride` on one axis: registers of a
//! thread, threads of a team, groups, blocks of a cluster, vector lanes, bytes of memory. Extents may be any
//! number; only digits that meet an address swizzle, a warp's edge or a vector access must be powers of two.
//! Swizzles stand beside the digits, as an XOR on the address ([`Xor`]).
//!
//! Everything works dim by dim on small tables, never on the product of the dims. Nothing here knows a target:
//! limits and prices come in as arguments.

mod banks;
mod blocks;
mod canon;
mod convert;
mod cover;
mod draw;
mod explain;
mod print;
mod relate;
mod swizzle;
mod text;
mod tile;
mod unify;
mod vector;

pub use banks::{Banks, Conflicts, bank_conflicts, bank_conflicts_of};
pub use blocks::{BlockFit, BlockMove};
pub use canon::{Inverse, Source, Uneven};
pub use convert::{Access, Conversion, Prices, Scope, Step, convert};
pub use cover::{Cover, cover, cover_layout};
pub use draw::{draw, svg};
pub use explain::{explain, explain_in};
pub use relate::{Chunked, Fit, Mismatch, Part, Piece, Relation, fit, relate, relate_boxes};
pub use swizzle::{Candidate, Score, User, choose_swizzle, free_candidates};
pub use text::{Expr, OpenDigit, OpenDim, Parsed, Symbols, TextError, parse, parse_layout};
pub use tile::{contiguous, fragment_text, tile_text};
pub use unify::{Refusal, Solution, unify};
pub use vector::{VectorLimits, vector_width};

use std::fmt;

/// Where a digit's value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Axis {
    /// element number inside one thread's fragment; 32-bit words follow by division
    Reg,
    /// thread of the team
    Thr,
    /// group of a role
    Group,
    /// block of a cluster
    Cta,
    /// lane of a processor's vector
    Simd,
    /// byte of memory
    Mem,
}

impl Axis {
    pub const ALL: [Axis; 6] = [Axis::Reg, Axis::Thr, Axis::Group, Axis::Cta, Axis::Simd, Axis::Mem];

    pub const fn name(self) -> &'static str {
        match self {
            Axis::Reg => "reg",
            Axis::Thr => "thr",
            Axis::Group => "group",
            Axis::Cta => "cta",
            Axis::Simd => "simd",
            Axis::Mem => "mem",
        }
    }

    pub fn from_name(name: &str) -> Option<Axis> {
        Axis::ALL.into_iter().find(|a| a.name() == name)
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// `extent@axis*stride`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digit {
    pub extent: u64,
    pub axis: Axis,
    pub stride: u64,
}

impl Digit {
    pub const fn new(extent: u64, axis: Axis, stride: u64) -> Digit {
        Digit { extent, axis, stride }
    }
}

/// One dim of a tile: its digits outermost first, and the number of valid indices where the digits cover more.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Dim {
    pub name: String,
    pub digits: Vec<Digit>,
    pub guard: Option<u64>,
}

impl Dim {
    pub fn new(name: impl Into<String>, digits: impl Into<Vec<Digit>>) -> Dim {
        Dim { name: name.into(), digits: digits.into(), guard: None }
    }

    /// Indices that the digits cover, padding included.
    pub fn covered(&self) -> u64 {
        self.digits.iter().map(|d| d.extent).product()
    }

    /// Valid indices.
    pub fn extent(&self) -> u64 {
        self.guard.unwrap_or_else(|| self.covered())
    }

    /// What index `i` adds to the coordinates.
    pub fn at(&self, mut i: u64) -> At {
        let mut at = At::default();
        for d in self.digits.iter().rev() {
            at[d.axis] += (i % d.extent) * d.stride;
            i /= d.extent;
        }
        at
    }
}

/// A place: one number an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct At(pub [u64; 6]);

impl std::ops::Index<Axis> for At {
    type Output = u64;
    fn index(&self, axis: Axis) -> &u64 {
        &self.0[axis as usize]
    }
}

impl std::ops::IndexMut<Axis> for At {
    fn index_mut(&mut self, axis: Axis) -> &mut u64 {
        &mut self.0[axis as usize]
    }
}

impl std::ops::Add for At {
    type Output = At;
    fn add(mut self, other: At) -> At {
        self.0.iter_mut().zip(other.0).for_each(|(a, b)| *a += b);
        self
    }
}

/// Where each element of a tile lives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Layout {
    pub dims: Vec<Dim>,
    /// copies: each element lives at every sum of these digits' values
    pub rep: Vec<Digit>,
    pub offset: At,
}

impl Layout {
    pub fn new(dims: impl Into<Vec<Dim>>) -> Layout {
        Layout { dims: dims.into(), ..Layout::default() }
    }

    pub fn dim(&self, name: &str) -> Option<&Dim> {
        self.dims.iter().find(|d| d.name == name)
    }

    /// The place of an element, in its copy number 0.
    pub fn at(&self, index: &[u64]) -> At {
        self.dims.iter().zip(index).fold(self.offset, |at, (dim, i)| at + dim.at(*i))
    }

    /// All digits of the dims, with the position of their dim.
    pub fn digits(&self) -> impl Iterator<Item = (usize, &Digit)> {
        self.dims.iter().enumerate().flat_map(|(i, dim)| dim.digits.iter().map(move |d| (i, d)))
    }

    /// One more than the largest number on an axis, copies included.
    pub fn size(&self, axis: Axis) -> u64 {
        let reach = |d: &Digit| if d.axis == axis { (d.extent - 1) * d.stride } else { 0 };
        self.offset[axis]
            + self.digits().map(|(_, d)| reach(d)).sum::<u64>()
            + self.rep.iter().map(reach).sum::<u64>()
            + 1
    }

    /// Number of copies of each element.
    pub fn copies(&self) -> u64 {
        self.rep.iter().map(|d| d.extent).product()
    }

    /// Valid elements.
    pub fn elements(&self) -> u64 {
        self.dims.iter().map(Dim::extent).product()
    }

    /// The layout of what a reduction over a dim leaves: the dim's registers vanish and the others move together,
    /// its threads (and lanes, groups, blocks) become copies.
    pub fn drop_dim(&self, name: &str) -> Layout {
        let mut out = self.clone();
        let Some(at) = out.dims.iter().position(|d| d.name == name) else { return out };
        let gone = out.dims.remove(at);
        out.rep.extend(gone.digits.iter().filter(|d| d.axis != Axis::Reg && d.axis != Axis::Mem));
        for dim in &mut out.dims {
            for d in dim.digits.iter_mut().filter(|d| d.axis == Axis::Reg) {
                d.stride = compact(d.stride, &gone.digits);
            }
        }
        out.canon()
    }
}

/// The register stride after the registers of dropped digits are squeezed out.
fn compact(stride: u64, gone: &[Digit]) -> u64 {
    let below = gone.iter().filter(|d| d.axis == Axis::Reg && d.stride < stride);
    below.fold(stride, |s, d| if s % d.extent == 0 { s / d.extent } else { s })
}

/// `xor<bits, base, shift>`: bits `base..base+bits` of a byte address are XORed with those `shift` higher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Xor {
    pub bits: u32,
    pub base: u32,
    pub shift: u32,
}

impl Xor {
    pub const fn new(bits: u32, base: u32, shift: u32) -> Xor {
        Xor { bits, base, shift }
    }

    pub const fn apply(self, address: u64) -> u64 {
        address ^ ((address >> self.shift) & (((1 << self.bits) - 1) << self.base))
    }

    /// Bytes after which the pattern repeats.
    pub const fn cycle(self) -> u64 {
        1 << (self.base + self.bits + self.shift)
    }
}

/// A tile in shared memory, or in a processor's scratch: digits to bytes, then the swizzle.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shared {
    pub layout: Layout,
    pub xor: Option<Xor>,
    /// alignment of the tile's first byte; at least the swizzle's cycle, or slices would see another pattern
    pub align: u64,
}

impl Shared {
    pub fn plain(layout: Layout, align: u64) -> Shared {
        Shared { layout, xor: None, align }
    }

    /// The byte address of an element, relative to the tile's aligned start.
    pub fn address(&self, index: &[u64]) -> u64 {
        self.swizzled(self.layout.at(index)[Axis::Mem])
    }

    pub fn swizzled(&self, address: u64) -> u64 {
        self.xor.map_or(address, |x| x.apply(address))
    }

    /// Bytes from the tile's start to behind its last element.
    pub fn bytes(&self, element_bytes: u64) -> u64 {
        self.layout.size(Axis::Mem) - 1 + element_bytes
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
