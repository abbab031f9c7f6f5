//! Who touched which memory, and after how many barriers.

use pantile_ir::effects::{Kind, Obj};
use pantile_ir::layout::{Axis, Shared, contiguous};
use pantile_ir::program::*;
use std::collections::HashMap;

/// One touch; no block has passed 0 barriers, so 0 is nobody.
#[derive(Clone, Copy, Default)]
pub struct Mark {
    pub thread: u32,
    /// barriers that the block, and the thread's warp, have passed
    pub block: u32,
    pub warp: u32,
    /// the statement's execution, and the statement
    pub time: u32,
    pub step: u32,
    pub lost: bool,
}

/// Touches of one kind since the last barrier of the block. Two of different threads stand for all: whoever is not
/// ordered after some touch is not ordered after one of these.
type Two = [Mark; 2];

#[derive(Clone, Copy, Default)]
struct Cell {
    reads: Two,
    writes: Two,
    atomics: Two,
    /// whose data it holds, and whose data that was written over; objects count from 1
    owner: u16,
    lost: u16,
}

/// What a touch finds.
pub enum Found {
    /// an earlier touch that is not ordered before it
    Race(Mark),
    /// data of another object, which was written over its own
    Other(usize),
}

struct Object {
    obj: Obj,
    /// by axis and index: bytes from the start
    tables: Vec<Vec<u64>>,
    place: Option<Shared>,
    size: u64,
    /// objects that have memory in common with this one, itself too
    meets: Vec<usize>,
    /// all touches, and those whose index is unknown
    all: Cell,
    open: Cell,
    any_open: bool,
}

pub struct Shadow {
    objects: Vec<Object>,
    by_obj: HashMap<Obj, usize>,
    /// bytes of a cell of the arena
    unit: u64,
    arena: Vec<Cell>,
    globals: HashMap<(usize, u64), Cell>,
    warp: u32,
}

impl Shadow {
    pub fn new(k: &Kernel, warp: usize) -> Shadow {
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
                let at = |i: u64| {
                    let mut index = vec![0; shape.len()];
                    index[axis] = i;
                    place.layout.at(&index)[Axis::Mem] - start
                };
                (0..shape[axis]).map(at).collect()
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
        let arena = vec![Cell::default(); end.div_ceil(unit) as usize];
        let by_obj = objects.iter().enumerate().map(|(i, o)| (o.obj, i)).collect();
        Shadow { objects, by_obj, unit, arena, globals: HashMap::new(), warp: warp as u32 }
    }

    pub fn object(&self, obj: Obj) -> Option<usize> {
        self.by_obj.get(&obj).copied()
    }

    pub fn obj(&self, object: usize) -> Obj {
        self.objects[object].obj
    }

    /// Notes a touch of one element; `sure`: the thread does come here.
    pub fn touch(
        &mut self,
        object: usize,
        index: &[i64],
        kind: Kind,
        new: Mark,
        sure: bool,
    ) -> Option<Found> {
        let warp = self.warp;
        let o = &self.objects[object];
        let found = match &o.place {
            Some(place) => {
                let mut inner = 0;
                for (table, &i) in o.tables.iter().zip(index) {
                    // outside of its memory there is nothing to meet
                    inner += usize::try_from(i).ok().and_then(|i| table.get(i))?;
                }
                let first = (place.layout.offset[Axis::Mem] + place.swizzled(inner)) / self.unit;
                let cells = first as usize..(first + (o.size / self.unit).max(1)) as usize;
                let mut found = None;
                let mut other = None;
                for cell in self.arena.get_mut(cells)? {
                    found = cell.note(kind, new, warp).or(found);
                    if o.meets.len() > 1 {
                        other = cell.own(kind, object as u16 + 1, sure).or(other);
                    }
                }
                if let Some(other) = other {
                    return Some(Found::Other(usize::from(other) - 1));
                }
                found
            }
            None => {
                let key = index.iter().fold(0u64, |n, &i| n.wrapping_mul(0x0100_0003).wrapping_add(i as u64));
                self.globals.entry((object, key)).or_default().note(kind, new, warp)
            }
        };
        let found = found.or_else(|| {
            let open = o.meets.iter().map(|&m| &self.objects[m]).filter(|m| m.any_open);
            open.filter_map(|m| m.open.clash(kind, &new, warp)).next()
        });
        self.objects[object].all.keep(kind, new, warp);
        found.map(Found::Race)
    }

    /// The same for an element that nobody knows.
    pub fn touch_any(&mut self, object: usize, kind: Kind, new: Mark) -> Option<Found> {
        let (warp, new) = (self.warp, Mark { lost: true, ..new });
        let meets = self.objects[object].meets.iter().map(|&m| &self.objects[m].all);
        let found = meets.filter_map(|all| all.clash(kind, &new, warp)).next();
        let o = &mut self.objects[object];
        o.any_open = true;
        o.open.keep(kind, new, warp);
        o.all.keep(kind, new, warp);
        found.map(Found::Race)
    }
}

impl Object {
    fn new(obj: Obj, tables: Vec<Vec<u64>>, place: Option<Shared>, size: u64) -> Object {
        let (all, open) = (Cell::default(), Cell::default());
        Object { obj, tables, place, size, meets: Vec::new(), all, open, any_open: false }
    }
}

impl Cell {
    fn note(&mut self, kind: Kind, new: Mark, warp: u32) -> Option<Mark> {
        let found = self.clash(kind, &new, warp);
        self.keep(kind, new, warp);
        found
    }

    /// Data that is read must be the object's own, as far as it has written any here.
    fn own(&mut self, kind: Kind, object: u16, sure: bool) -> Option<u16> {
        match kind {
            Kind::Read => (self.owner != object && self.lost == object).then_some(self.owner),
            _ if sure && self.owner != object => {
                self.lost = std::mem::replace(&mut self.owner, object);
                None
            }
            _ => None,
        }
    }

    fn clash(&self, kind: Kind, new: &Mark, warp: u32) -> Option<Mark> {
        let against: [Option<&Two>; 3] = match kind {
            Kind::Read => [None, Some(&self.writes), Some(&self.atomics)],
            Kind::Write | Kind::Accumulate => [Some(&self.reads), Some(&self.writes), Some(&self.atomics)],
            Kind::Atomic(_) => [Some(&self.reads), Some(&self.writes), None],
        };
        against.into_iter().flatten().flatten().find(|m| m.races(new, warp)).copied()
    }

    fn keep(&mut self, kind: Kind, new: Mark, warp: u32) {
        let two = match kind {
            Kind::Read => &mut self.reads,
            Kind::Write | Kind::Accumulate => &mut self.writes,
            Kind::Atomic(_) => &mut self.atomics,
        };
        let [a, b] = two;
        if a.block != new.block || a.thread == new.thread {
            if a.block != new.block {
                *b = Mark::default();
            }
            *a = new;
        } else if b.block != new.block || b.thread == new.thread {
            *b = new;
        } else if a.thread / warp == b.thread / warp {
            // one of another warp, or the one that its warp's barrier ordered longer ago, makes room
            if new.thread / warp != a.thread / warp || b.warp <= a.warp {
                *b = new;
            } else {
                *a = new;
            }
        }
    }
}

impl Mark {
    fn races(&self, new: &Mark, warp: u32) -> bool {
        let near = self.thread / warp == new.thread / warp;
        // the text lets threads scatter to places of which they know that they differ
        let scatter = self.time == new.time && (self.lost || new.lost);
        self.block == new.block && self.thread != new.thread && !(near && self.warp != new.warp) && !scatter
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
