//! Which axes of which tiles must be spread alike: those that one element-wise loop walks together.
//!
//! Nodes are axes of tile locals and of the loops that ops without a local of their own need ([`Space`]). Walking
//! together joins two nodes. Two axes of one loop may never be joined, since they need different digits; and an axis
//! that is contiguous in memory for one op may not be joined into a loop where another axis is. A local that would do
//! so lives in shared memory instead, where any index reaches any element.

use super::Facts;
use pantile_ir::program::*;
use std::collections::{HashMap, HashSet};

pub type Node = usize;

/// A loop over the elements of a tile.
#[derive(Clone, Debug)]
pub struct Space {
    pub axes: Vec<Node>,
    /// It holds the accumulator of a product.
    pub product: bool,
}

#[derive(Default)]
pub struct Classes {
    parent: Vec<Node>,
    /// By root: the spaces in which the class has an axis.
    members: Vec<HashSet<usize>>,
    pub extent: Vec<u32>,
    /// By root: elements of the widest access to memory that runs along the class; 0 where none does.
    vector: Vec<u32>,
    /// By root: an access of a tile of more than one axis runs along it.
    strong: Vec<bool>,
    pub spaces: Vec<Space>,
    nodes: HashMap<(LocalId, usize), Node>,
    /// Axes of reducers.
    pub reducers: HashMap<ReducerId, Vec<Node>>,
    /// Spaces of ops that have no tile local of their own, by statement number.
    pub of_stmt: HashMap<usize, Vec<usize>>,
    pub shared: HashSet<LocalId>,
    /// Axes of loops that walk over rows of a tile in shared memory, not along them.
    crossing: Vec<Node>,
    /// Bytes of operands of products that are computed, and copied to shared memory for it.
    pub copied_bytes: u64,
}

impl Classes {
    pub fn find(&self, mut n: Node) -> Node {
        while self.parent[n] != n {
            n = self.parent[n];
        }
        n
    }

    pub fn vector(&self, n: Node) -> u32 {
        self.vector[self.find(n)]
    }

    /// An access of a tile of more than one axis runs along the class.
    pub fn strong(&self, n: Node) -> bool {
        self.strong[self.find(n)]
    }

    /// The class runs along memory for one op and over rows of shared memory for another.
    pub fn crosses(&self, n: Node) -> bool {
        let root = self.find(n);
        self.strong[root] && self.crossing.iter().any(|&c| self.find(c) == root)
    }

    /// The loops that a class is an axis of.
    pub fn around(&self, n: Node) -> impl Iterator<Item = &Space> {
        self.members[self.find(n)].iter().map(|&s| &self.spaces[s])
    }

    fn node(&mut self, extent: u32) -> Node {
        let n = self.parent.len();
        self.parent.push(n);
        self.members.push(HashSet::new());
        self.extent.push(extent);
        self.vector.push(0);
        self.strong.push(false);
        n
    }

    pub fn local_axes(&self, l: LocalId, rank: usize) -> Option<Vec<Node>> {
        (0..rank).map(|i| self.nodes.get(&(l, i)).copied()).collect()
    }

    fn space(&mut self, axes: Vec<Node>, product: bool) -> usize {
        let id = self.spaces.len();
        for &a in &axes {
            let root = self.find(a);
            self.members[root].insert(id);
        }
        self.spaces.push(Space { axes, product });
        id
    }

    /// A walk along `axis` of a space touches `vector` neighbouring elements of memory at once.
    fn wants(&mut self, axis: Node, vector: u32, strong: bool) {
        let root = self.find(axis);
        self.vector[root] = if self.vector[root] == 0 { vector } else { self.vector[root].min(vector) };
        self.strong[root] |= strong;
    }

    /// Another axis of a space that `root` is in wants to be contiguous, and so would the class `with`.
    fn rivals(&self, root: Node, with: Node) -> bool {
        let strong_beside = |of: Node, but: Node| {
            self.members[of].iter().any(|&s| {
                let axes = &self.spaces[s].axes;
                axes.iter().map(|&a| self.find(a)).any(|a| a != of && a != but && self.strong[a])
            })
        };
        (self.strong[with] && strong_beside(root, with)) || (self.strong[root] && strong_beside(with, root))
    }

    /// Joins two nodes where that is allowed.
    fn join(&mut self, a: Node, b: Node) -> bool {
        let (a, b) = (self.find(a), self.find(b));
        if a == b {
            return true;
        }
        let (small, large) = if self.members[a].len() < self.members[b].len() { (a, b) } else { (b, a) };
        if self.extent[a] != self.extent[b]
            || self.members[small].iter().any(|s| self.members[large].contains(s))
            || self.rivals(a, b)
        {
            return false;
        }
        let moved = std::mem::take(&mut self.members[small]);
        self.members[large].extend(moved);
        self.parent[small] = large;
        self.vector[large] = match (self.vector[large], self.vector[small]) {
            (0, v) | (v, 0) => v,
            (v, w) => v.min(w),
        };
        self.strong[large] |= self.strong[small];
        true
    }
}

/// Collects the classes of a kernel.
pub struct Collect<'k> {
    k: &'k Kernel,
    facts: &'k Facts,
    pub classes: Classes,
    /// Indices of enclosing `parallel`s, each an axis.
    running: HashMap<LocalId, Node>,
    stmt: usize,
}

impl<'k> Collect<'k> {
    pub fn of(k: &'k Kernel, facts: &'k Facts) -> Classes {
        let mut c = Collect { k, facts, classes: Classes::default(), running: HashMap::new(), stmt: 0 };
        for (id, l) in k.body.locals.iter() {
            for (i, &n) in l.ty.shape().iter().enumerate() {
                let node = c.classes.node(n);
                c.classes.nodes.insert((id, i), node);
            }
            if !l.ty.shape().is_empty() && matches!(l.home, Home::Shared | Home::Direct) {
                c.classes.shared.insert(id);
            }
        }
        for (id, r) in k.reducers.iter() {
            let shape = r.parts.first().map_or(&[][..], |p| p.shape());
            let axes: Vec<Node> = shape.iter().map(|&n| c.classes.node(n)).collect();
            c.classes.space(axes.clone(), false);
            c.classes.reducers.insert(id, axes);
        }
        // contiguity is known before the first join
        let mut wanted = Vec::new();
        walk(&k.stmts, &mut |s| {
            if let StmtKind::Op { results, op: Op::Read { from, .. } } = &s.kind
                && let Some(&r) = results.first()
            {
                wanted.push((r, from));
            }
        });
        for (r, from) in wanted {
            if let Some(axes) = c.classes.local_axes(r, k.body.locals[r].ty.shape().len()) {
                c.contiguous(from, &axes);
            }
        }
        c.block(&k.stmts);
        c.classes
    }

    fn shape(&self, e: ExprId) -> &'k [u32] {
        self.k.body.types[e.index()].shape()
    }

    /// The axes of a local as a space.
    fn local_space(&mut self, l: LocalId, product: bool) -> Vec<Node> {
        let axes = self.classes.local_axes(l, self.k.body.locals[l].ty.shape().len()).unwrap_or_default();
        if !axes.is_empty() {
            self.classes.space(axes.clone(), product);
        }
        axes
    }

    /// A space of the statement itself.
    fn own_space(&mut self, shape: &[u32]) -> Vec<Node> {
        let axes: Vec<Node> = shape.iter().map(|&n| self.classes.node(n)).collect();
        let id = self.classes.space(axes.clone(), false);
        self.classes.of_stmt.entry(self.stmt).or_default().push(id);
        axes
    }

    /// The axis along which a region's elements are neighbours in memory.
    fn contiguous(&mut self, region: &Region, axes: &[Node]) {
        let Some(axis) = contiguous_axis(self.k, region) else { return };
        let bits = match region.mem {
            Mem::Tensor(a) => match &self.k.args[a].kind {
                ArgKind::Tensor(t) => t.elem.bits(),
                ArgKind::Scalar(_) => return,
            },
            Mem::Buffer(b) => self.k.buffers[b].elem.bits(),
            Mem::Slot { .. } => return,
        };
        let Some(&node) = axes.get(axis) else { return };
        let rest: u64 =
            axes.iter().filter(|&&a| a != node).map(|&a| u64::from(self.classes.extent[a])).product();
        let vector = (self.facts.vector_bytes * 8 / bits.max(1)).max(1);
        self.classes.wants(node, vector, rest > 1);
    }

    fn block(&mut self, block: &'k Block) {
        for s in block {
            self.stmt(s);
            self.stmt += 1;
            if let StmtKind::Parallel { vars, extents, .. } = &s.kind {
                self.parallel(vars, extents);
            }
            for inner in s.kind.blocks() {
                self.block(inner);
            }
            if let StmtKind::Parallel { vars, .. } = &s.kind {
                vars.iter().for_each(|v| {
                    self.running.remove(v);
                });
            }
        }
    }

    fn parallel(&mut self, vars: &[LocalId], extents: &[ExprId]) {
        let fixed: Option<Vec<u32>> = extents.iter().map(|&e| constant(&self.k.body, e)).collect();
        let Some(shape) = fixed else { return };
        self.stmt -= 1;
        let axes = self.own_space(&shape);
        self.stmt += 1;
        self.running.extend(vars.iter().copied().zip(axes));
    }

    fn stmt(&mut self, s: &'k Stmt) {
        match &s.kind {
            StmtKind::Let { local, value }
            | StmtKind::Assign { local, value }
            | StmtKind::Update { local, value, .. } => {
                let axes = self.local_space(*local, false);
                self.value(*value, &axes);
            }
            StmtKind::Declare { local } => {
                self.local_space(*local, false);
            }
            StmtKind::Op { results, op } => self.op(results, op),
            other => other.operands(|e| self.value(e, &[])),
        }
    }

    fn op(&mut self, results: &[LocalId], op: &'k Op) {
        match op {
            Op::Read { from, .. } => {
                let axes = results.first().map(|&r| self.local_space(r, false)).unwrap_or_default();
                self.region(from, &axes);
            }
            Op::Write { to, value } | Op::Atomic { at: Place::Region(to), value, .. } => {
                let shape = region_shape(to);
                let axes = self.own_space(&shape);
                self.contiguous(to, &axes);
                self.region(to, &axes);
                self.value(*value, &axes);
                for &r in results {
                    let mine = self.local_space(r, false);
                    self.join_or_share(r, &mine, &axes);
                }
            }
            Op::Gemm { a, b, into, init, .. } => {
                self.local_space(*into, true);
                for e in [*a, *b] {
                    self.operand(e);
                }
                if let Init::When(c) = init {
                    self.value(*c, &[]);
                }
            }
            Op::Reduce { inputs, axis, .. } => {
                let shape = self.joint(inputs);
                let axes = self.own_space(&shape);
                inputs.iter().for_each(|&e| self.value(e, &axes));
                if let Some(axis) = axis {
                    let mut kept = axes;
                    kept.remove(usize::from(*axis));
                    for &r in results {
                        let mine = self.local_space(r, false);
                        self.join_or_share(r, &mine, &kept);
                    }
                }
            }
            Op::Scan { inputs, .. } => {
                let shape = self.joint(inputs);
                let axes = self.own_space(&shape);
                inputs.iter().for_each(|&e| self.value(e, &axes));
                for &r in results {
                    let mine = self.local_space(r, false);
                    self.join_or_share(r, &mine, &axes);
                }
            }
            Op::Fold { reducer, index, values } => {
                let shape = self.joint(values);
                let axes = if shape.is_empty() { Vec::new() } else { self.own_space(&shape) };
                values.iter().for_each(|&e| self.value(e, &axes));
                index.iter().for_each(|&e| self.value(e, &[]));
                let parts = self.classes.reducers.get(reducer).cloned().unwrap_or_default();
                if index.is_empty() && parts.len() == axes.len() {
                    parts.iter().zip(&axes).for_each(|(&p, &a)| {
                        self.classes.join(p, a);
                    });
                }
                for (&i, &part) in index.iter().zip(&parts) {
                    if let Expr::Local(l) = self.k.body.exprs[i]
                        && let Some(&axis) = self.running.get(&l)
                    {
                        self.classes.join(part, axis);
                    }
                }
            }
            Op::Join { reducer } => {
                let parts = self.classes.reducers.get(reducer).cloned().unwrap_or_default();
                for &r in results {
                    let mine = self.local_space(r, false);
                    self.join_or_share(r, &mine, &parts);
                }
            }
            other => other.operands(|e| self.value(e, &[])),
        }
    }

    /// The shape of tiles that one op takes together.
    fn joint(&self, values: &[ExprId]) -> Vec<u32> {
        let mut out: Vec<u32> = Vec::new();
        for &e in values {
            let shape = self.shape(e);
            if out.is_empty() {
                out = shape.to_vec();
            }
            out.iter_mut().zip(shape).for_each(|(o, &n)| *o = (*o).max(n));
        }
        out
    }

    fn region(&mut self, region: &'k Region, axes: &[Node]) {
        let mut at = 0;
        for axis in &region.axes {
            match axis {
                RegionAxis::At(e) => self.value(*e, &[]),
                RegionAxis::Span { start, limit, .. } => {
                    self.value(*start, &[]);
                    limit.iter().for_each(|&e| self.value(e, &[]));
                    at += 1;
                }
                RegionAxis::Gather { index, .. } => {
                    let axis = axes.get(at).copied();
                    self.reads(*index, &[axis]);
                    at += 1;
                }
                RegionAxis::New => at += 1,
            }
        }
    }

    /// An operand of a product is read at indices that its own layout does not give.
    fn operand(&mut self, e: ExprId) {
        match self.k.body.exprs[e] {
            Expr::Local(l) => {
                self.classes.shared.insert(l);
            }
            Expr::Transpose(inner) if matches!(self.k.body.exprs[inner], Expr::Local(_)) => {
                self.operand(inner)
            }
            _ => {
                let axes = self.own_space(self.shape(e));
                let ty = &self.k.body.types[e.index()];
                self.classes.copied_bytes += ty.count() as u64 * ty.elem().map_or(8, Elem::bytes);
                self.value(e, &axes);
            }
        }
    }

    fn join_or_share(&mut self, l: LocalId, mine: &[Node], axes: &[Node]) {
        for (&a, &b) in mine.iter().zip(axes) {
            if self.classes.extent[a] > 1 && !self.classes.join(a, b) {
                self.classes.shared.insert(l);
            }
        }
    }

    fn value(&mut self, e: ExprId, axes: &[Node]) {
        let all: Vec<Option<Node>> = axes.iter().map(|&a| Some(a)).collect();
        // a smaller operand of an update or a write is stretched
        let shape = self.shape(e);
        let fit: Vec<Option<Node>> = match shape.len() == all.len() {
            true => all,
            false => vec![None; shape.len()],
        };
        self.reads(e, &fit);
    }

    /// `e` is read at positions along `axes`; `None` is a position that is no loop's.
    fn reads(&mut self, e: ExprId, axes: &[Option<Node>]) {
        let body = &self.k.body;
        match &body.exprs[e] {
            Expr::Local(l) => self.read_local(*l, axes),
            Expr::Transpose(v) => {
                let mut inner = axes.to_vec();
                let n = inner.len();
                if n >= 2 {
                    inner.swap(n - 1, n - 2);
                }
                self.reads(*v, &inner);
            }
            Expr::InsertAxis { value, axis } => {
                let mut inner = axes.to_vec();
                if usize::from(*axis) < inner.len() {
                    inner.remove(usize::from(*axis));
                }
                self.reads(*value, &inner);
            }
            Expr::Slice { value, axes: parts } => {
                parts.iter().for_each(|p| match p {
                    SliceAxis::Span { start: e, .. } | SliceAxis::At(e) => self.reads(*e, &[]),
                });
                let shape = self.shape(*value).to_vec();
                let mut at = 0;
                let inner: Vec<Option<Node>> = parts
                    .iter()
                    .zip(&shape)
                    .map(|(p, &n)| match p {
                        SliceAxis::Span { start, len } => {
                            at += 1;
                            let whole = *len == n && constant(body, *start) == Some(0);
                            axes.get(at - 1).copied().flatten().filter(|_| whole)
                        }
                        SliceAxis::At(_) => None,
                    })
                    .collect();
                self.reads(*value, &inner);
            }
            Expr::Reshape { value, .. } => {
                let rank = self.shape(*value).len();
                self.reads(*value, &vec![None; rank]);
            }
            Expr::Bits { value, .. } if self.shape(*value) != self.shape(e) => {
                let rank = self.shape(*value).len();
                self.reads(*value, &vec![None; rank]);
            }
            Expr::Pick { tile, index } => {
                index.iter().for_each(|&i| self.reads(i, &[]));
                let inner: Vec<Option<Node>> = index
                    .iter()
                    .map(|&i| match body.exprs[i] {
                        Expr::Local(l) => self.running.get(&l).copied(),
                        _ => None,
                    })
                    .collect();
                self.reads(*tile, &inner);
            }
            other => {
                let mut operands = Vec::new();
                other.operands(|o| operands.push(o));
                for o in operands {
                    let rank = self.shape(o).len();
                    let inner = if rank == axes.len() { axes.to_vec() } else { vec![None; rank] };
                    self.reads(o, &inner);
                }
            }
        }
    }

    fn read_local(&mut self, l: LocalId, axes: &[Option<Node>]) {
        let shape = self.k.body.locals[l].ty.shape();
        for (i, axis) in axes.iter().enumerate().take(shape.len()) {
            let fits = match (axis, self.classes.nodes.get(&(l, i)).copied()) {
                _ if shape[i] == 1 => true,
                (Some(a), Some(mine)) if self.classes.extent[*a] == shape[i] => self.classes.join(mine, *a),
                _ => false,
            };
            if !fits {
                self.classes.shared.insert(l);
                self.classes.crossing.extend(axis.filter(|_| i + 1 < shape.len()));
            }
        }
    }
}

/// The value of a constant index.
pub fn constant(body: &Body, e: ExprId) -> Option<u32> {
    match body.exprs[e] {
        Expr::Const { elem, bits } if elem.is_integer() => u32::try_from(bits).ok(),
        _ => None,
    }
}

/// The extents of a region's tile.
pub fn region_shape(region: &Region) -> Vec<u32> {
    let one = |axis: &RegionAxis| match axis {
        RegionAxis::At(_) => None,
        RegionAxis::Span { len, .. } | RegionAxis::Gather { len, .. } => Some(*len),
        RegionAxis::New => Some(1),
    };
    region.axes.iter().filter_map(one).collect()
}

/// The axis of a region's tile whose neighbours are neighbours in memory.
pub fn contiguous_axis(k: &Kernel, region: &Region) -> Option<usize> {
    let unit = |e: ExprId| constant(&k.body, e) == Some(1);
    let strides = match region.mem {
        Mem::Tensor(a) => match &k.args[a].kind {
            ArgKind::Tensor(t) => t.strides.clone(),
            ArgKind::Scalar(_) => None,
        },
        _ => None,
    };
    let rank = region.axes.iter().filter(|a| !matches!(a, RegionAxis::New)).count();
    let fast = match &strides {
        Some(s) => s.iter().rposition(|&e| unit(e))?,
        None => rank.checked_sub(1)?,
    };
    let (mut memory, mut tile) = (0, 0);
    for axis in &region.axes {
        match axis {
            RegionAxis::New => tile += 1,
            RegionAxis::At(_) => {
                if memory == fast {
                    return None;
                }
                memory += 1;
            }
            RegionAxis::Span { .. } | RegionAxis::Gather { .. } => {
                if memory == fast {
                    return matches!(axis, RegionAxis::Span { .. }).then_some(tile);
                }
                memory += 1;
                tile += 1;
            }
        }
    }
    None
}
