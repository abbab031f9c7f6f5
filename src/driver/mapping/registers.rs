//! How many registers a thread needs at most, by what is alive in the program's text. Compilers keep more (addresses,
//! unrolled steps) and less (what they compute again); the number compares variants of one kernel.

use pantile_ir::program::{
    Body, BufferId, Elem, Expr, ExprId, Home, Kernel, LocalId, Mem, Stmt, StmtKind, Type,
};
use std::collections::HashMap;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Value {
    Local(LocalId),
    Array(BufferId),
}

/// 32-bit words alive at one statement, at most.
pub fn estimate(k: &Kernel) -> u64 {
    let mut lives = Lives { k, at: 0, lives: HashMap::new() };
    lives.block(&k.stmts);
    let mut change: Vec<i64> = vec![0; lives.at + 2];
    for (value, (first, last)) in &lives.lives {
        let words = lives.words(*value) as i64;
        change[*first] += words;
        change[*last + 1] -= words;
    }
    let mut now = 0;
    let most = change.iter().map(|c| {
        now += c;
        now
    });
    most.max().unwrap_or(0).unsigned_abs()
}

struct Lives<'a> {
    k: &'a Kernel,
    at: usize,
    /// first and last statement that touches it
    lives: HashMap<Value, (usize, usize)>,
}

impl Lives<'_> {
    fn words(&self, value: Value) -> u64 {
        match value {
            Value::Local(l) => match &self.k.body.locals[l].ty {
                Type::Scalar(e) => words(e.bytes()),
                _ => 0,
            },
            Value::Array(b) => {
                let b = &self.k.buffers[b];
                let count: u64 = b.shape.iter().map(|&n| u64::from(n)).product();
                words(count * Elem::D(b.elem).bytes())
            }
        }
    }

    fn touch(&mut self, value: Value) {
        let at = self.at;
        let life = self.lives.entry(value).or_insert((at, at));
        life.1 = at;
    }

    fn memory(&mut self, mem: Mem) {
        if let Mem::Buffer(b) = mem
            && self.k.buffers[b].home == Home::Thread
        {
            self.touch(Value::Array(b));
        }
    }

    fn expr(&mut self, body: &Body, e: ExprId) {
        let expr = &body.exprs[e];
        expr.operands(|o| self.expr(body, o));
        match expr {
            // what the hardware or the launch holds costs nothing here
            Expr::Local(l) => self.touch(Value::Local(*l)),
            Expr::Element { mem, .. } => self.memory(*mem),
            _ => {}
        }
    }

    fn block(&mut self, block: &[Stmt]) {
        for s in block {
            self.at += 1;
            let k = self.k;
            s.kind.operands(|e| self.expr(&k.body, e));
            match &s.kind {
                StmtKind::Let { local, .. }
                | StmtKind::Assign { local, .. }
                | StmtKind::Update { local, .. } => {
                    self.touch(Value::Local(*local));
                }
                StmtKind::For { var, .. } => self.touch(Value::Local(*var)),
                StmtKind::Store { mem, .. } => self.memory(*mem),
                StmtKind::Op { results, .. } => results.iter().for_each(|r| self.touch(Value::Local(*r))),
                _ => {}
            }
            let start = self.at;
            s.kind.blocks().iter().for_each(|b| self.block(b));
            if matches!(s.kind, StmtKind::For { .. } | StmtKind::While { .. }) {
                let end = self.at;
                // the next step needs what lives from before the loop
                for life in self.lives.values_mut().filter(|l| l.0 <= start && l.1 >= start) {
                    life.1 = life.1.max(end);
                }
            }
        }
    }
}

fn words(bytes: u64) -> u64 {
    bytes.div_ceil(4)
}
