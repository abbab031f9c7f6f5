//! Tiles that are named once and used once, element for element, go to where they are used: one loop over a thread's
//! elements instead of two, and no array between them.
//!
//! Part of `simplify`. The value must say the same at its use: it hangs on names that never change, and on no memory. Its
//! use must ask each element once, so nothing is computed twice: no stretching, transposing or slicing around it, no
//! product, and no loop that begins after the name. What is shown to people by its name, through a plan or a placement,
//! stays.

use crate::layout::classes::region_shape;
use pantile_ir::builder::{KernelBuilder, Result, Substitution};
use pantile_ir::program::*;
use std::collections::{HashMap, HashSet};

/// Occurrences of names that one kernel is searched for.
const FUEL: u32 = 1 << 20;

/// The statements with such tiles in the place of their names.
pub fn forward(k: &mut KernelBuilder, mut block: Block) -> Result<Block> {
    let mut search = Search {
        k: k.kernel(),
        uses: HashMap::new(),
        values: HashMap::new(),
        rounds: Vec::new(),
        loops: 0,
        fuel: FUEL,
    };
    search.block(&block);
    let Search { uses, values, fuel, .. } = search;
    if fuel == 0 {
        return Ok(block);
    }
    let once =
        |l: &LocalId, rounds: usize| matches!(uses.get(l), Some(Use::Once { rounds: r }) if *r == rounds);
    let chosen = values.into_iter().filter(|(l, (_, rounds))| once(l, *rounds)).map(|(l, (e, _))| (l, e));
    let chosen: HashMap<LocalId, ExprId> = chosen.collect();
    replace(k, &mut block, &chosen)?;
    Ok(block)
}

#[derive(Clone, Copy)]
enum Use {
    /// in the loop of that number
    Once { rounds: usize },
    /// more often, or where elements are asked more than once
    Other,
}

struct Search<'k> {
    k: &'k Kernel,
    uses: HashMap<LocalId, Use>,
    /// candidates with their values and the loop of their definition
    values: HashMap<LocalId, (ExprId, usize)>,
    rounds: Vec<usize>,
    loops: usize,
    fuel: u32,
}

impl Search<'_> {
    fn block(&mut self, block: &Block) {
        for s in block {
            self.stmt(s);
        }
    }

    fn stmt(&mut self, s: &Stmt) {
        let rounds = self.rounds.last().copied().unwrap_or(0);
        if let StmtKind::Let { local, value } = &s.kind
            && self.may_move(*local, *value)
        {
            self.values.insert(*local, (*value, rounds));
        }
        let asked = self.asked(&s.kind);
        s.kind.operands(|e| self.expr(e, asked.as_deref().unwrap_or_default(), asked.is_some()));
        let again = matches!(
            s.kind,
            StmtKind::For { .. } | StmtKind::While { .. } | StmtKind::Parallel { .. } | StmtKind::Roles(_)
        );
        if again {
            self.loops += 1;
            self.rounds.push(self.loops);
        }
        s.kind.blocks().into_iter().for_each(|b| self.block(b));
        if again {
            self.rounds.pop();
        }
    }

    /// The shape of what a statement asks of its operands, each element once; `None` where it asks otherwise.
    fn asked(&self, kind: &StmtKind) -> Option<Shape> {
        let body = &self.k.body;
        match kind {
            StmtKind::Let { local, .. } | StmtKind::Assign { local, .. } | StmtKind::Update { local, .. } => {
                Some(body.locals[*local].ty.shape().into())
            }
            StmtKind::Op { op: Op::Reduce { inputs, .. }, .. } => {
                let mut shapes = inputs.iter().map(|&e| body.type_of(e).shape());
                let first = shapes.next()?;
                shapes.all(|s| s == first).then(|| first.into())
            }
            StmtKind::Op { op: Op::Write { to, .. }, .. } => Some(region_shape(to).into()),
            _ => None,
        }
    }

    /// Notes the names in an expression; `shape` is what each of its elements is asked for once, while `plain`.
    fn expr(&mut self, e: ExprId, shape: &[u32], plain: bool) {
        if self.fuel == 0 {
            return;
        }
        self.fuel -= 1;
        let body = &self.k.body;
        let plain = plain && (body.type_of(e).shape() == shape || body.type_of(e).is_scalar());
        match &body.exprs[e] {
            Expr::Local(l) => {
                let rounds = self.rounds.last().copied().unwrap_or(0);
                let now = if plain { Use::Once { rounds } } else { Use::Other };
                let seen = self.uses.contains_key(l);
                self.uses.insert(*l, if seen { Use::Other } else { now });
            }
            x => {
                let inner = plain && elementwise(x);
                let mut operands = Args::new();
                x.operands(|o| operands.push(o));
                operands.iter().for_each(|&o| self.expr(o, shape, inner));
            }
        }
    }

    fn may_move(&self, l: LocalId, value: ExprId) -> bool {
        let local = &self.k.body.locals[l];
        let named = self.k.plan.entries.iter().any(|e| e.subject.as_deref() == Some(local.name.as_str()));
        let placed = local.home != Home::Open
            || local.layout.is_some()
            || local.team.is_some()
            || local.partial.is_some();
        local.kind == LocalKind::Let
            && local.ty.is_tile()
            && !named
            && !placed
            && *self.k.body.type_of(value) == local.ty
            && self.constant(value, &mut HashSet::new())
    }

    /// The same wherever its names are in sight.
    fn constant(&self, e: ExprId, seen: &mut HashSet<ExprId>) -> bool {
        if !seen.insert(e) {
            return true;
        }
        let body = &self.k.body;
        let mut same = match &body.exprs[e] {
            Expr::Local(l) => body.locals[*l].kind != LocalKind::Var,
            x => elementwise(x),
        };
        body.exprs[e].operands(|o| same = same && self.constant(o, seen));
        same
    }
}

/// Asks each operand's element once for an element, as far as the shapes are the same.
fn elementwise(x: &Expr) -> bool {
    matches!(
        x,
        Expr::Const { .. }
            | Expr::Dim(_)
            | Expr::Arg(_)
            | Expr::Unary(..)
            | Expr::Binary(..)
            | Expr::Select { .. }
            | Expr::Math { .. }
            | Expr::Cast { .. }
            | Expr::Intrinsic { .. }
            | Expr::Splat { .. }
            | Expr::Iota { .. }
            | Expr::InsertAxis { .. }
            | Expr::Broadcast { .. }
    )
}

/// Puts values in the place of names; the names' own statements go.
fn replace(k: &mut KernelBuilder, block: &mut Block, values: &HashMap<LocalId, ExprId>) -> Result<()> {
    if values.is_empty() {
        return Ok(());
    }
    inner(k, block, values, &mut Substitution::new([]))
}

fn inner(
    k: &mut KernelBuilder,
    block: &mut Block,
    values: &HashMap<LocalId, ExprId>,
    with: &mut Substitution,
) -> Result<()> {
    for mut s in std::mem::take(block) {
        s.kind.replace_operands(|e| with.apply(k, e))?;
        if let StmtKind::Let { local, value } = s.kind
            && values.contains_key(&local)
        {
            // values hold each other: those after it are made with it
            let more = std::mem::take(&mut with.locals).into_iter().chain([(local, value)]);
            *with = Substitution::new(more);
            continue;
        }
        for b in s.kind.blocks_mut() {
            inner(k, b, values, with)?;
        }
        block.push(s);
    }
    Ok(())
}
