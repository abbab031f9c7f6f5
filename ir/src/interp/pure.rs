//! Pure scalar functions: what intrinsics mean and what combiners do, over many elements at once.

use super::arith::{Dense, Failed};
use super::eval::{Memo, Scope, scalar, shared_exprs};
use super::fault::{Exec, malformed};
use super::value::{Lanes, Mask, Value};
use crate::program::*;

struct Pure<'p> {
    program: &'p Program,
    func: &'p PureFn,
    width: u32,
    mask: Mask,
    memo: Memo,
    locals: Vec<Option<Lanes>>,
}

/// The results for `n` argument tuples, one run for each result.
pub(super) fn call<'p>(
    program: &'p Program,
    func: &'p PureFn,
    args: &Dense,
    n: usize,
) -> Result<Vec<Vec<u64>>, Failed> {
    let failed = |fault| Failed { at: 0, fault };
    if args.len() != func.params.len() {
        return Err(failed(malformed("a function with the wrong number of arguments")));
    }
    let width = u32::try_from(n).map_err(|_| failed(malformed("too many elements")))?;
    let mut scope = Pure {
        program,
        func,
        width,
        mask: Mask::All(width),
        memo: Memo::new(shared_exprs(&func.body)),
        locals: vec![None; func.body.locals.len()],
    };
    scope.memo.begin();
    for (&param, arg) in func.params.iter().zip(args) {
        let value = if arg.len() == 1 { Lanes::One(arg[0]) } else { Lanes::many(arg.to_vec()) };
        scope.locals[param.index()] = Some(value);
    }
    let results = scope.run().map_err(|f| Failed { at: f.lane.unwrap_or(0) as usize, fault: f })?;
    Ok(results.into_iter().map(|r| (0..width).map(|i| r.get(i)).collect()).collect())
}

impl<'p> Pure<'p> {
    fn run(&mut self) -> Exec<Vec<Lanes>> {
        let func = self.func;
        for &(local, value) in &func.lets {
            let value = scalar(self, value)?;
            self.locals[local.index()] = Some(value);
        }
        func.results.iter().map(|&e| scalar(self, e)).collect()
    }
}

impl<'p> Scope<'p> for Pure<'p> {
    fn program(&self) -> &'p Program {
        self.program
    }

    fn body(&self) -> &'p Body {
        &self.func.body
    }

    fn width(&self) -> u32 {
        self.width
    }

    fn mask(&self) -> &Mask {
        &self.mask
    }

    fn set_mask(&mut self, mask: Mask) -> Mask {
        std::mem::replace(&mut self.mask, mask)
    }

    fn memo(&mut self) -> &mut Memo {
        &mut self.memo
    }

    fn local(&mut self, id: LocalId) -> Exec<Value> {
        let value = self.locals.get(id.index()).cloned().flatten();
        value.map(Value::Scalar).ok_or_else(|| malformed("a name without a value in a pure function"))
    }

    fn dim(&self, _: DimId) -> Exec<i64> {
        Err(malformed("a dim in a pure function"))
    }

    fn arg(&self, _: ArgId) -> Exec<u64> {
        Err(malformed("a parameter of a kernel in a pure function"))
    }

    fn element(&mut self, _: Mem, _: &[Lanes], _: Option<ExprId>) -> Exec<Lanes> {
        Err(malformed("memory in a pure function"))
    }

    fn local_one(&mut self, id: LocalId) -> Exec<u64> {
        match self.locals.get(id.index()) {
            Some(Some(lanes)) => Ok(lanes.get(0)),
            _ => Err(malformed("a name without a value in a pure function")),
        }
    }

    fn element_one(&mut self, _: Mem, _: &[i64], _: bool) -> Exec<Option<u64>> {
        Err(malformed("memory in a pure function"))
    }
}
