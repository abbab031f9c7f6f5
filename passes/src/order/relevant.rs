//! What the walk must look at: statements that touch memory of several threads or that wait, and names that their
//! indices and conditions are computed from. The rest of a kernel, mostly loops over registers, is passed by.

use pantile_ir::effects::{Access, Ctx, Kind, Obj, Part, stmt_effects, sync};
use pantile_ir::hash::{Map, Set};
use pantile_ir::program::*;

use std::rc::Rc;

#[derive(Default)]
pub struct Relevant {
    touches: Map<*const Stmt, Rc<[Access]>>,
    idle: Set<*const Stmt>,
    reading: Set<*const Stmt>,
    needed: Set<LocalId>,
}

impl Relevant {
    pub fn of(k: &Kernel) -> Relevant {
        let mut r = Relevant::default();
        k.stmts.iter().for_each(|s| {
            r.visit(k, s);
        });
        // definitions ask for further names
        loop {
            let before = r.needed.len();
            walk(&k.stmts, &mut |s| {
                if let StmtKind::Let { local, value } | StmtKind::Assign { local, value } = &s.kind
                    && r.needed.contains(local)
                {
                    need(k, *value, &mut r.needed);
                }
            });
            if r.needed.len() == before {
                return r;
            }
        }
    }

    pub fn is_idle(&self, s: &Stmt) -> bool {
        self.idle.contains(&std::ptr::from_ref(s))
    }

    /// In and below it, threads read what others see, and do not wait.
    pub fn only_reads(&self, s: &Stmt) -> bool {
        self.reading.contains(&std::ptr::from_ref(s))
    }

    pub fn is_needed(&self, l: LocalId) -> bool {
        self.needed.contains(&l)
    }

    /// What the statement itself touches of memory that several threads see and that changes.
    pub fn touches(&self, s: &Stmt) -> Rc<[Access]> {
        self.touches.get(&std::ptr::from_ref(s)).cloned().unwrap_or_default()
    }

    /// Whether the statement is idle.
    fn visit(&mut self, k: &Kernel, s: &Stmt) -> bool {
        let all = stmt_effects(&s.kind, &Ctx { kernel: k, team: None, span: s.span });
        let touches: Rc<[Access]> = all.into_iter().filter(|a| counts(k, a.obj)).collect();
        let mut idle = touches.is_empty();
        for a in touches.iter() {
            if let Part::Element(list) = &a.part {
                list.iter().for_each(|&e| need(k, e, &mut self.needed));
            }
        }
        let mut reading = touches.iter().all(|a| a.kind == Kind::Read);
        if !touches.is_empty() {
            self.touches.insert(s, touches);
        }
        let passes_by = match &s.kind {
            StmtKind::Op { op, .. } => sync(op).is_none(),
            StmtKind::Break | StmtKind::Continue => false,
            _ => true,
        };
        idle &= passes_by;
        reading &= passes_by;
        for inner in s.kind.blocks() {
            for s in inner {
                let inner = self.visit(k, s);
                idle &= inner;
                reading &= inner || self.only_reads(s);
            }
        }
        if reading {
            self.reading.insert(s);
        }
        if idle {
            self.idle.insert(s);
        } else {
            s.kind.operands(|e| need(k, e, &mut self.needed));
        }
        idle
    }
}

fn counts(k: &Kernel, obj: Obj) -> bool {
    match obj {
        Obj::Shared(_) => true,
        Obj::Global(arg) => !matches!(&k.args[arg].kind, ArgKind::Tensor(t) if t.mode == Mode::In),
        _ => false,
    }
}

fn need(k: &Kernel, root: ExprId, needed: &mut Set<LocalId>) {
    let (mut open, mut seen) = (vec![root], Set::default());
    while let Some(e) = open.pop() {
        if !seen.insert(e) {
            continue;
        }
        if let Expr::Local(l) = k.body.exprs[e] {
            needed.insert(l);
        }
        k.body.exprs[e].operands(|o| open.push(o));
    }
}
