//! Paths that cost more than they must, each with what would make them fast.

use super::memory;
use pantile_ir::program::{ArgKind, Expr, Home, Kernel, Mem, Op, Program, StmtKind, Tensor, walk};
use pantile_ir::target::Arch;
use pantile_passes::facts::Access;

/// What is seen while the passes run: tiles read in place, reductions that go through shared memory.
pub struct Watch {
    /// By kernel.
    told: Vec<Vec<String>>,
    /// Folds over threads and shared buffers of each kernel, as the pass before left them.
    before: Vec<(usize, Vec<String>)>,
}

impl Watch {
    pub fn new(program: &Program) -> Watch {
        let n = program.kernels.iter().count();
        Watch { told: vec![Vec::new(); n], before: vec![(0, Vec::new()); n] }
    }

    /// Of the kernel at this place of the program.
    pub fn told(&self, kernel: usize) -> &[String] {
        self.told.get(kernel).map_or(&[], Vec::as_slice)
    }

    /// What a pass left.
    pub fn see(&mut self, program: &Program) {
        for ((_, k), (told, before)) in program.kernels.iter().zip(self.told.iter_mut().zip(&mut self.before))
        {
            for (_, l) in k.body.locals.iter().filter(|(_, l)| l.home == Home::Direct) {
                let line = format!(
                    "`{}` is read in place: shared memory has no room for it; smaller tiles would fit",
                    l.name
                );
                if !told.contains(&line) {
                    told.push(line);
                }
            }
            let now = (folds(k), shared(k));
            let new = now.1.iter().filter(|n| !before.1.contains(n)).map(|n| format!("`{n}`"));
            let new: Vec<String> = new.collect();
            if now.0 == 0 && before.0 > 0 && !new.is_empty() {
                let names = new.join(", ");
                told.push(format!("folds over threads go through shared memory ({names}): they cross warps"));
            }
            *before = now;
        }
    }
}

fn folds(k: &Kernel) -> usize {
    let mut n = 0;
    walk(&k.stmts, &mut |s| {
        n += usize::from(matches!(s.kind, StmtKind::Op { op: Op::AllReduce { .. } | Op::Once { .. }, .. }));
    });
    n
}

fn shared(k: &Kernel) -> Vec<String> {
    let found = k.buffers.iter().filter(|(_, b)| b.home == Home::Shared);
    found.map(|(_, b)| b.name.clone()).collect()
}

/// Tensors that are never touched by a wide access.
pub fn narrow(k: &Kernel, accesses: &[Access], arch: &Arch) -> Vec<String> {
    let best = arch.facts.access.vector_bytes.as_ref().map_or(0, |b| u64::from(b.value) * 8);
    let mut told = Vec::new();
    for a in accesses {
        let Mem::Tensor(arg) = a.mem else { continue };
        let ArgKind::Tensor(t) = &k.args[arg].kind else { continue };
        let element = u64::from(t.elem.bits());
        let same = accesses.iter().filter(|o| o.mem == a.mem && o.store == a.store);
        let widest = same.map(|o| o.bits).max().unwrap_or(0);
        if widest > element || best <= element {
            continue;
        }
        let way = if a.store { "written" } else { "read" };
        let name = memory(k, a.mem);
        let line = format!("`{name}` is {way} one element at a time: {}", reason(k, t, best / element));
        if !told.contains(&line) {
            told.push(line);
        }
    }
    told
}

fn reason(k: &Kernel, t: &Tensor, lanes: u64) -> String {
    let row = t.dims.last().filter(|_| t.dims.len() > 1);
    let dim = row.and_then(|&e| match &k.body.exprs[e] {
        Expr::Dim(d) => Some(k.dims[*d].name.clone()),
        _ => None,
    });
    match (dim, &t.strides) {
        (_, Some(_)) => "it has strides of its own, which may separate neighbours".into(),
        (Some(d), None) => {
            format!(
                "its rows are `{d}` long, which may be no multiple of {lanes}; or a thread's elements are no neighbours"
            )
        }
        (None, None) => "a thread's elements are no neighbours, or one is all it needs".into(),
    }
}
