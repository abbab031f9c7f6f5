//! Who touched which memory, and after how many barriers.

use pantile_ir::effects::{Kind, Obj};
use pantile_ir::hash::{Map, Words};
use pantile_ir::layout::{Axis, Shared, contiguous};
use pantile_ir::program::*;
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};

/// One touch.
#[derive(Clone, Copy)]
pub struct Mark {
    /// in the uppermost bit whether its place is unknown
    thread: u32,
    /// barriers that the thread's warp has passed
    warp: u32,
    /// the statement's execution
    pub time: u32,
}

const LOST: u32 = 1 << 31;
const NOBODY: Mark = Mark { thread: u32::MAX, warp: 0, time: 0 };

/// Touches of one kind since the last barrier of the block. Two of different threads stand for all: whoever is not
/// ordered after some touch is not ordered after one of these.
type Two = [Mark; 2];

/// Touches of one kind of one place.
#[derive(Clone, Copy)]
struct Cell {
    /// barriers that the block has passed; what was touched before the last one is forgotten
    block: u32,
    two: Two,
}

/// The block counts from 1.
const UNTOUCHED: Cell = Cell { block: 0, two: [NOBODY; 2] };

/// Reads, writes and atomics of one place each, or of many places by their number: lists of their own, since most
/// intervals between barriers have one kind alone.
const KINDS: usize = 3;
type Cells = [Cell; KINDS];

/// Elements of tensors in frames, and those beside them that are kept from one interval to the next.
const MANY: usize = 1 << 17;

fn list(kind: Kind) -> usize {
    match kind {
        Kind::Read => 0,
        Kind::Write | Kind::Accumulate => 1,
        Kind::Atomic(_) => 2,
    }
}

/// The kinds that need an order with this one.
fn against(kind: Kind) -> &'static [usize] {
    match kind {
        Kind::Read => &[1, 2],
        Kind::Write | Kind::Accumulate => &[0, 1, 2],
        Kind::Atomic(_) => &[0, 1],
    }
}

/// Whose data a cell holds, and whose data that was written over; objects count from 1.
#[derive(Clone, Copy, Default, Hash)]
struct Owner {
    now: u16,
    lost: u16,
}

/// What a touch finds.
pub enum Found {
    /// an earlier touch that is not ordered before it
    Race(Mark),
    /// data of another object, which was written over its own
    Other(usize),
}

/// A box of a tensor's elements: its least indices, its extents, and the first of its cells.
struct Frame {
    axes: SmallVec<[(i64, i64); 4]>,
    first: usize,
}

impl Frame {
    fn at(&self, index: &[i64]) -> Option<usize> {
        let mut at = 0;
        for (&i, &(lo, n)) in index.iter().zip(&self.axes) {
            let i = i.checked_sub(lo).filter(|i| (0..n).contains(i))?;
            at = at * n as usize + i as usize;
        }
        Some(self.first + at)
    }
}

struct Object {
    obj: Obj,
    /// by axis and index: bytes from the start
    tables: Vec<Vec<u64>>,
    place: Option<Shared>,
    size: u64,
    /// objects that have memory in common with this one, itself too
    meets: Vec<usize>,
    /// where a tensor's elements of this interval stand in the grid
    frame: Option<Frame>,
    /// all touches, and those whose index is unknown
    all: Cells,
    open: Cells,
}

/// Whose data all cells hold.
pub struct Owned {
    owners: Vec<Owner>,
    owned: u64,
}

/// Cells stay: barriers are counted on, so that what lies before the last one counts as long ago.
pub struct Shadow {
    objects: Vec<Object>,
    by_obj: Map<Obj, usize>,
    /// bytes of a cell of the arena, and how many there are
    unit: u64,
    cells: usize,
    arena: [Vec<Cell>; KINDS],
    /// empty where no two objects have memory in common
    owners: Vec<Owner>,
    /// of all owners, so that equal ones are found without a look at each
    owned: u64,
    /// elements of tensors in frames, and those that no frame holds
    grid: [Vec<Cell>; KINDS],
    globals: [Map<(usize, u64), Cell>; KINDS],
    /// cells of the grid that frames have taken
    framed: usize,
    /// by thread
    warp: Vec<u32>,
    /// barriers passed by the block, and by each warp
    block: u32,
    warps: Vec<u32>,
    time: u32,
    /// of what comes before the next barrier
    ahead: Ahead,
}

/// What an interval between barriers has.
#[derive(Clone, Copy, Default)]
pub struct Ahead {
    /// some index is unknown
    pub opens: bool,
    kinds: [bool; KINDS],
}

impl Ahead {
    pub fn add(&mut self, kind: Kind) {
        self.kinds[list(kind)] = true;
    }
}

impl Shadow {
    pub fn new(k: &Kernel, threads: usize, warp: usize) -> Shadow {
        let mut objects: Vec<Object> = Vec::new();
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        let mut unit = 0;
        for (id, b) in k.buffers.iter().filter(|(_, b)| b.home == Home::Shared) {
            let size = Elem::D(b.elem).bytes();
            let shape: Vec<u64> = b.shape.iter().map(|&n| n.into()).collect();
            let plain = || Shared::plain(contiguous(&shape, size), 1);
            let place = b.layout.clone().unwrap_or_else(plain);
            let start = place.layout.offset[Axis::Mem];
            let table = |axis: usize| {
                let mut index = vec![0; shape.len()];
                let mut at = |i: u64| {
                    index[axis] = i;
                    place.layout.at(&index)[Axis::Mem] - start
                };
                (0..shape[axis]).map(&mut at).collect()
            };
            let tables = (0..shape.len()).map(table).collect();
            unit = gcd(unit, gcd(size, start));
            ranges.push((start, place.bytes(size).max(start)));
            objects.push(Object::new(Obj::Shared(id), tables, Some(place), size));
        }
        let shared = objects.len();
        for i in 0..shared {
            let meet = |j: &usize| i == *j || ranges[i].0 < ranges[*j].1 && ranges[*j].0 < ranges[i].1;
            objects[i].meets = (0..shared).filter(meet).collect();
        }
        for (arg, _) in k.args.iter().filter(|(_, a)| matches!(a.kind, ArgKind::Tensor(_))) {
            let mut o = Object::new(Obj::Global(arg), Vec::new(), None, 1);
            o.meets = vec![objects.len()];
            objects.push(o);
        }
        let unit = unit.max(1);
        let end = ranges.iter().map(|r| r.1).max().unwrap_or(0);
        let cells = end.div_ceil(unit) as usize;
        let meet = objects.iter().any(|o| o.meets.len() > 1);
        let by_obj = objects.iter().enumerate().map(|(i, o)| (o.obj, i)).collect();
        Shadow {
            objects,
            by_obj,
            unit,
            arena: Default::default(),
            cells,
            owners: vec![Owner::default(); if meet { cells } else { 0 }],
            owned: 0,
            grid: Default::default(),
            globals: Default::default(),
            framed: 0,
            warp: (0..threads).map(|t| (t / warp) as u32).collect(),
            block: 1,
            warps: vec![1; threads.div_ceil(warp)],
            time: 0,
            ahead: Ahead::default(),
        }
    }

    /// A run from the start: nobody has written anything.
    pub fn restart(&mut self) {
        self.owners.fill(Owner::default());
        self.owned = 0;
    }

    pub fn object(&self, obj: Obj) -> Option<usize> {
        self.by_obj.get(&obj).copied()
    }

    pub fn obj(&self, object: usize) -> Obj {
        self.objects[object].obj
    }

    /// The block has waited: what lies before that meets nothing any more.
    pub fn wait(&mut self, ahead: Ahead) {
        self.block += 1;
        (self.time, self.ahead, self.framed) = (0, ahead, 0);
        for old in self.globals.iter_mut().filter(|of| of.len() > MANY) {
            old.clear();
        }
        let objects = self.objects.iter_mut();
        objects.for_each(|o| o.frame = None);
        for (cells, _) in self.arena.iter_mut().zip(ahead.kinds).filter(|(_, has)| *has) {
            cells.resize(self.cells, UNTOUCHED);
        }
    }

    /// Elements of a tensor in this box are touched before the next barrier: axis by axis the least and the most index.
    pub fn frame(&mut self, object: usize, ranges: &[(i64, i64)]) {
        let first = self.framed;
        let mut cells = 1usize;
        let mut axes = SmallVec::new();
        for &(lo, hi) in ranges {
            let Some(n) = hi.checked_sub(lo).and_then(|n| n.checked_add(1)).filter(|&n| n > 0) else {
                return;
            };
            cells = cells.saturating_mul(n as usize);
            axes.push((lo, n));
        }
        if first.saturating_add(cells) > MANY {
            return;
        }
        self.framed += cells;
        for (grid, _) in
            self.grid.iter_mut().zip(self.ahead.kinds).filter(|(g, has)| *has && g.len() < first + cells)
        {
            grid.resize(first + cells, UNTOUCHED);
        }
        self.objects[object].frame = Some(Frame { axes, first });
    }

    pub fn is_tensor(&self, object: usize) -> bool {
        self.objects[object].place.is_none()
    }

    /// A warp waits.
    pub fn wait_warp(&mut self, warp: usize) {
        self.warps[warp] += 1;
    }

    /// A statement that touches begins.
    pub fn tick(&mut self) {
        self.time += 1;
    }

    pub fn mark(&self, thread: usize) -> Mark {
        let warp = self.warps[self.warp[thread] as usize];
        Mark { thread: thread as u32, warp, time: self.time }
    }

    /// Notes a touch of elements side by side in the last axis; `sure`: the thread does come here.
    pub fn touch(
        &mut self,
        object: usize,
        index: &[i64],
        lanes: u64,
        kind: Kind,
        new: Mark,
        sure: bool,
    ) -> Option<Found> {
        let o = &self.objects[object];
        if lanes == 1 || o.frame.is_some() || o.side_by_side(index, lanes) {
            return self.touch_cells(object, index, lanes, kind, new, sure);
        }
        let mut at: SmallVec<[i64; 4]> = SmallVec::from_slice(index);
        (0..lanes).find_map(|lane| {
            *at.last_mut()? = index.last()? + lane as i64;
            self.touch_cells(object, &at, 1, kind, new, sure)
        })
    }

    fn touch_cells(
        &mut self,
        object: usize,
        index: &[i64],
        lanes: u64,
        kind: Kind,
        new: Mark,
        sure: bool,
    ) -> Option<Found> {
        let (o, warp, block) = (&mut self.objects[object], &self.warp, self.block);
        let mut found = None;
        match &o.place {
            Some(place) => {
                let mut inner = 0;
                for (table, &i) in o.tables.iter().zip(index) {
                    // outside of its memory there is nothing to meet
                    inner += usize::try_from(i).ok().and_then(|i| table.get(i))?;
                }
                let first = (place.layout.offset[Axis::Mem] + place.swizzled(inner)) / self.unit;
                let cells = first as usize..(first + (o.size * lanes / self.unit).max(1)) as usize;
                if cells.end > self.cells {
                    return None;
                }
                for at in cells.clone() {
                    for &k in against(kind).iter().filter(|&&k| self.ahead.kinds[k]) {
                        found = self.arena[k][at].of(block).clash(&new, warp).or(found);
                    }
                    self.arena[list(kind)][at].of(block).keep(new, warp);
                }
                if o.meets.len() > 1 {
                    let mut other = None;
                    for at in cells {
                        other = own(&mut self.owners, &mut self.owned, at, kind, object, sure).or(other);
                    }
                    if let Some(other) = other {
                        return Some(Found::Other(usize::from(other) - 1));
                    }
                }
            }
            None if let Some(first) = o.frame.as_ref().and_then(|f| f.at(index)) => {
                for at in first..first + lanes as usize {
                    for &k in against(kind).iter().filter(|&&k| self.ahead.kinds[k]) {
                        found = self.grid[k][at].of(block).clash(&new, warp).or(found);
                    }
                    self.grid[list(kind)][at].of(block).keep(new, warp);
                }
            }
            None => {
                let key = index.iter().fold(0u64, |n, &i| n.wrapping_mul(0x0100_0003).wrapping_add(i as u64));
                for &k in against(kind).iter().filter(|&&k| self.ahead.kinds[k]) {
                    let cell = self.globals[k].get_mut(&(object, key));
                    found = cell.and_then(|c| c.of(block).clash(&new, warp)).or(found);
                }
                let cell = self.globals[list(kind)].entry((object, key)).or_insert(UNTOUCHED);
                cell.of(block).keep(new, warp);
            }
        }
        if self.ahead.opens {
            o.all[list(kind)].of(block).keep(new, warp);
            for i in 0..self.objects[object].meets.len() {
                let other = self.objects[object].meets[i];
                found = found.or_else(|| clash(&mut self.objects[other].open, block, kind, &new, &self.warp));
            }
        }
        found.map(Found::Race)
    }

    /// The same for an element that nobody knows.
    pub fn touch_any(&mut self, object: usize, kind: Kind, new: Mark) -> Option<Found> {
        let (block, new) = (self.block, Mark { thread: new.thread | LOST, ..new });
        let mut found = None;
        for i in 0..self.objects[object].meets.len() {
            let other = self.objects[object].meets[i];
            found = found.or_else(|| clash(&mut self.objects[other].all, block, kind, &new, &self.warp));
        }
        let (o, warp) = (&mut self.objects[object], &self.warp);
        o.open[list(kind)].of(block).keep(new, warp);
        o.all[list(kind)].of(block).keep(new, warp);
        found.map(Found::Race)
    }

    /// By object: whether its reads matter where these are written. Of memory that objects share, they always do: it may
    /// hold what another has written.
    pub fn concerned(&self, written: impl Iterator<Item = usize>) -> Vec<bool> {
        let mut concerned: Vec<bool> = self.objects.iter().map(|o| o.meets.len() > 1).collect();
        written.for_each(|o| concerned[o] = true);
        concerned
    }

    /// Whose data all cells hold, as one number.
    pub fn owned(&self) -> u64 {
        self.owned
    }

    pub fn all_owned(&self) -> Owned {
        Owned { owners: self.owners.clone(), owned: self.owned }
    }

    pub fn set_owned(&mut self, after: &Owned) {
        self.owners.copy_from_slice(&after.owners);
        self.owned = after.owned;
    }
}

/// Data that is read must be the object's own, as far as it has written any here.
fn own(
    owners: &mut [Owner],
    owned: &mut u64,
    at: usize,
    kind: Kind,
    object: usize,
    sure: bool,
) -> Option<u16> {
    let (cell, object) = (&mut owners[at], object as u16 + 1);
    match kind {
        Kind::Read => (cell.now != object && cell.lost == object).then_some(cell.now),
        _ if sure && cell.now != object => {
            let new = Owner { now: object, lost: cell.now };
            *owned ^= worth(at, *cell) ^ worth(at, new);
            *cell = new;
            None
        }
        _ => None,
    }
}

fn worth(at: usize, o: Owner) -> u64 {
    let mut h = Words::default();
    (at, o).hash(&mut h);
    if o.now == 0 && o.lost == 0 { 0 } else { h.finish() }
}

impl Object {
    /// Whether so many elements lie one after the other in memory, as they do in the last axis.
    fn side_by_side(&self, index: &[i64], lanes: u64) -> bool {
        let (Some(place), Some((&last, rest))) = (&self.place, index.split_last()) else { return false };
        let offset = |table: &Vec<u64>, i: i64| usize::try_from(i).ok().and_then(|i| table.get(i).copied());
        let others = self.tables.iter().zip(rest).map(|(table, &i)| offset(table, i)).sum::<Option<u64>>();
        let (Some(table), Some(others)) = (self.tables.last(), others) else { return false };
        let Some(first) = offset(table, last) else { return false };
        let in_line = |lane: u64| offset(table, last + lane as i64) == Some(first + lane * self.size);
        let bytes = lanes * self.size;
        // a swizzle moves granules as a whole
        let whole = place.xor.is_none_or(|x| (others + first) % bytes == 0 && (1 << x.base) % bytes == 0);
        whole && (1..lanes).all(in_line)
    }

    fn new(obj: Obj, tables: Vec<Vec<u64>>, place: Option<Shared>, size: u64) -> Object {
        Object {
            obj,
            tables,
            place,
            size,
            meets: Vec::new(),
            frame: None,
            all: [UNTOUCHED; KINDS],
            open: [UNTOUCHED; KINDS],
        }
    }
}

impl Cell {
    /// Without what lies before this barrier of the block.
    fn of(&mut self, block: u32) -> &mut Cell {
        if self.block != block {
            *self = Cell { block, ..UNTOUCHED };
        }
        self
    }

    fn clash(&self, new: &Mark, warp: &[u32]) -> Option<Mark> {
        self.two.iter().find(|m| m.races(new, warp)).copied()
    }

    fn keep(&mut self, new: Mark, warp: &[u32]) {
        let [a, b] = &mut self.two;
        let of = |m: &Mark| warp[m.thread()];
        if a.is_nobody() || a.thread() == new.thread() {
            *a = new;
        } else if b.is_nobody() || b.thread() == new.thread() {
            *b = new;
        } else if of(a) == of(b) {
            // one of another warp, or the one that its warp's barrier ordered longer ago, makes room
            if of(&new) != of(a) || b.warp <= a.warp {
                *b = new;
            } else {
                *a = new;
            }
        }
    }
}

fn clash(cells: &mut Cells, block: u32, kind: Kind, new: &Mark, warp: &[u32]) -> Option<Mark> {
    against(kind).iter().find_map(|&k| cells[k].of(block).clash(new, warp))
}

impl Mark {
    pub fn thread(&self) -> usize {
        (self.thread & !LOST) as usize
    }

    fn is_nobody(&self) -> bool {
        self.thread == NOBODY.thread
    }

    fn races(&self, new: &Mark, warp: &[u32]) -> bool {
        if self.is_nobody() || self.thread() == new.thread() {
            return false;
        }
        let near = warp[self.thread()] == warp[new.thread()];
        // the text lets threads scatter to places of which they know that they differ
        let scatter = self.time == new.time && (self.thread | new.thread) & LOST != 0;
        !(scatter || near && self.warp != new.warp)
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
