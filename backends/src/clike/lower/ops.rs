//! Ops of threads: barriers, shuffles, votes, atomics, prints, assertions.

use super::memory::Spot;
use super::{Fun, Result, Val, is_narrow};
use crate::clike::range::Range;
use crate::clike::tree::{C, S, Ty};
use pantile_abi::DType;
use pantile_ir::codes;
use pantile_ir::diag::Diagnostic;
use pantile_ir::program::*;

impl<'a> Fun<'_, 'a> {
    pub(super) fn op(&mut self, results: &[LocalId], op: &'a Op) -> Result<()> {
        let mut roots = Vec::new();
        op.operands(|e| roots.push(e));
        if let Op::Barrier { team } = op {
            return self.barrier(*team);
        }
        if let Some(what) = block_level(op) {
            return Err(self.not_threaded(what));
        }
        self.share(&roots)?;
        let value = match op {
            Op::Shuffle { kind, value, lane, width } => self.shuffle(*kind, *value, *lane, *width)?,
            Op::Vote { kind, cond, team } => self.vote(*kind, *cond, *team)?,
            Op::Atomic { op, at: Place::Element { mem, index }, value, expected } => {
                self.atomic(*op, *mem, index, *value, *expected)?
            }
            Op::Print { parts } => return self.print(parts),
            Op::Assert { cond, message } => return self.assert(*cond, message),
            _ => return Err(self.not_threaded("this")),
        };
        match results {
            [] => self.push(S::Do(value.c)),
            [r, ..] if self.body.locals[*r].kind == LocalKind::Var && self.locals.contains_key(r) => {
                self.assign(*r, value)?
            }
            [r, ..] => self.define(*r, value)?,
        }
        Ok(())
    }

    fn threads(&self) -> u32 {
        self.kernel.and_then(|k| k.threads.as_ref()).map_or(1, Threads::count)
    }

    fn fact(&self, fact: &pantile_ir::target::Fact<u32>) -> u32 {
        fact.as_ref().map_or(32, |k| k.value)
    }

    /// Lanes that one shuffle or vote of the hardware joins, and those of the language's warp.
    fn warp(&self) -> (u32, u32) {
        let t = &self.cx.arch.facts.threads;
        (self.fact(&t.shuffle_width), self.fact(&t.warp_size))
    }

    /// All lanes of a warp: who is there is proven, never asked.
    fn lanes(&self) -> C {
        let n = self.threads();
        C::name(if n < 32 { format!("0x{:x}u", (1u64 << n) - 1) } else { "0xffffffffu".into() })
    }

    fn too_wide(&self, what: &str, width: u32) -> Diagnostic {
        let (lanes, _) = self.warp();
        let message =
            format!("{what} joins {width} threads, but {} joins {lanes} at most", self.cx.arch.name);
        Diagnostic::error(codes::WARP_WIDTH, self.span, message)
            .help(format!("give it a width of {lanes} or less, or use a block of one warp"))
    }

    fn barrier(&mut self, team: Team) -> Result<()> {
        let (lanes, warp) = self.warp();
        let c = match team {
            Team::Block if self.global_exchange => self.call("block_barrier", [])?,
            Team::Block => self.call("shared_barrier", [])?,
            Team::Warp if warp <= lanes => {
                let all = self.lanes();
                self.call("warp_barrier", [all])?
            }
            Team::Warp if self.threads() <= warp => self.call("block_barrier", [])?,
            Team::Warp => return Err(self.too_wide("this barrier", warp)),
            Team::Group | Team::Cluster | Team::Named(_) => {
                return Err(self.unsupported("a barrier of other threads than a warp or block".into()));
            }
        };
        self.facts.barriers += 1;
        self.push(S::Do(c));
        Ok(())
    }

    fn shuffle(&mut self, kind: ShuffleKind, value: ExprId, lane: ExprId, width: Option<u32>) -> Result<Val> {
        let (lanes, warp) = self.warp();
        // of a wider warp only the lanes that a block has can be named
        let width = width.unwrap_or(warp);
        let width = if self.threads() <= lanes { width.min(lanes) } else { width };
        if width > lanes {
            return Err(self.too_wide("this shuffle", width));
        }
        let elem = self.elem(value)?;
        let v = self.expr(value)?;
        let by = self.elem(lane)?;
        let l = self.expr(lane)?;
        let l = self.cast(l, by, Elem::D(DType::I32), false)?;
        let word = if v.ty.bytes() < 4 { Ty::I32 } else { v.ty };
        let name = match kind {
            ShuffleKind::Index => "shuffle_index",
            ShuffleKind::Up => "shuffle_up",
            ShuffleKind::Down => "shuffle_down",
            ShuffleKind::Xor => "shuffle_xor",
        };
        let args = [self.lanes(), v.c, l.c, C::int(width.into())];
        let c = self.call(&format!("{name}_{}", word.tag()), args)?;
        self.facts.shuffles += 1;
        Ok(match elem {
            Elem::BOOL => Val::new(C::binary("!=", c, C::int(0)), Ty::Bool, Range::BOOL),
            _ if word != v.ty => Val::new(C::cast(v.ty, c), v.ty, v.range),
            _ => Val::new(c, v.ty, v.range),
        })
    }

    fn vote(&mut self, kind: VoteKind, cond: ExprId, team: Team) -> Result<Val> {
        let (lanes, warp) = self.warp();
        let threads = self.threads();
        let size = match team {
            Team::Warp => warp.min(threads),
            Team::Block => threads,
            _ => return Err(self.unsupported("a vote of other threads than a warp or block".into())),
        };
        let cond = self.expr(cond)?.c;
        self.facts.votes += 1;
        if size <= lanes {
            let name = match kind {
                VoteKind::Any => "warp_any",
                VoteKind::All => "warp_all",
                VoteKind::Ballot => "warp_ballot",
            };
            let args = [self.lanes(), cond];
            let c = self.call(name, args)?;
            return Ok(vote_value(kind, c));
        }
        let name = match kind {
            VoteKind::Any => "block_any",
            VoteKind::All => "block_all",
            VoteKind::Ballot => return Err(self.too_wide("this ballot", size)),
        };
        if size != threads {
            return Err(self.too_wide("this vote", size));
        }
        let c = self.call(name, [cond])?;
        Ok(vote_value(kind, c))
    }

    fn atomic(
        &mut self,
        op: AtomicOp,
        mem: Mem,
        index: &Args,
        value: ExprId,
        expected: Option<ExprId>,
    ) -> Result<Val> {
        let d = self.mem_elem(mem)?;
        let at = self.subscripts(index)?;
        let Spot::Whole(place) = self.spot(mem, &at)? else {
            return Err(self.unsupported("an atomic on packed elements".into()));
        };
        let mut args = vec![C::address(place)];
        for e in expected.into_iter().chain([value]) {
            args.push(self.expr(e)?.c);
        }
        let name = match op {
            AtomicOp::CompareExchange => "atomic_cas",
            other => other.name(),
        };
        self.facts.atomics += 1;
        let c = self.call(&format!("{name}_{}", Ty::of(d).tag()), args)?;
        Ok(Val::of(c, Elem::D(d)))
    }

    /// A line from every thread that comes here; once a block where all would say the same.
    fn print(&mut self, parts: &'a [Text]) -> Result<()> {
        let mut format = String::new();
        let mut args = Vec::new();
        let mut same = true;
        for part in parts {
            match part {
                Text::Str(s) => format += &escaped(s).replace('%', "%%"),
                Text::Value(e) => {
                    same &= self.uniform(*e);
                    let elem = self.elem(*e)?;
                    let v = self.expr(*e)?;
                    let (f, c) = printed(elem, v);
                    format += f;
                    args.push(c);
                }
            }
        }
        args.insert(0, C::name(format!("\"{format}\\n\"")));
        let line = S::Do(C::call("printf", args));
        if same && self.branches == 0 && self.threads() > 1 {
            let first = C::binary("==", C::name("threadIdx.x"), C::int(0));
            self.push(S::If { cond: first, then: vec![line], other: Vec::new() });
        } else {
            self.push(line);
        }
        Ok(())
    }

    /// Made of what all threads of a block have alike.
    fn uniform(&self, e: ExprId) -> bool {
        match &self.body.exprs[e] {
            Expr::Const { .. } | Expr::Dim(_) | Expr::Arg(_) => true,
            Expr::Local(l) => matches!(self.body.locals[*l].kind, LocalKind::Grid(_)),
            Expr::Element { .. } => false,
            other => {
                let mut all = true;
                other.operands(|o| all &= self.uniform(o));
                all
            }
        }
    }

    fn assert(&mut self, cond: ExprId, message: &str) -> Result<()> {
        let cond = C::unary("!", self.expr(cond)?.c);
        let text = if message.is_empty() { "an assertion failed" } else { message };
        let line = C::name(format!("\"{}\\n\"", escaped(text).replace('%', "%%")));
        let stop = self.call("stop", [])?;
        let then = vec![S::Do(C::call("printf", [line])), S::Do(stop)];
        self.push(S::If { cond, then, other: Vec::new() });
        Ok(())
    }
}

/// What an op is called that concerns a block as a whole.
fn block_level(op: &Op) -> Option<&'static str> {
    Some(match op {
        Op::Read { .. } | Op::Write { .. } => "a region of memory",
        Op::Gemm { .. } | Op::Issue { .. } => "a product of tiles",
        Op::Reduce { .. } => "a reduction of a tile",
        Op::Scan { .. } => "a scan of a tile",
        Op::Fold { .. } | Op::Join { .. } => "a reducer",
        Op::AllReduce { .. } => "`allreduce`",
        Op::Once { .. } => "`once`",
        Op::Atomic { at: Place::Region(_), .. } => "an atomic on a region",
        Op::Acquire { .. } | Op::Wait { .. } | Op::Commit { .. } | Op::Release { .. } => "a slot of a ring",
        Op::Await { .. } | Op::CopyAsync { .. } => "a queue of copies",
        Op::Take { .. } | Op::Pass { .. } => "a turn",
        Op::Fence { .. } => "a fence",
        _ => return None,
    })
}

fn vote_value(kind: VoteKind, c: C) -> Val {
    match kind {
        VoteKind::Ballot => Val::of(c, Elem::D(DType::U32)),
        _ => Val::new(c, Ty::Bool, Range::BOOL),
    }
}

fn printed(elem: Elem, v: Val) -> (&'static str, C) {
    match elem {
        Elem::BOOL => ("%s", C::choice(v.c, C::name("\"true\""), C::name("\"false\""))),
        Elem::D(DType::F64) => ("%.17g", v.c),
        Elem::D(d) if is_narrow(d) => ("%.5g", C::cast(Ty::F64, v.c)),
        Elem::D(DType::F32) => ("%.9g", C::cast(Ty::F64, v.c)),
        Elem::D(d) if !d.is_signed() => ("%llu", C::cast(Ty::U64, v.c)),
        _ => ("%lld", C::cast(Ty::I64, v.c)),
    }
}

/// As a C string holds it.
fn escaped(s: &str) -> String {
    let mut out = String::new();
    for b in s.bytes() {
        match b {
            b'"' => out += "\\\"",
            b'\\' => out += "\\\\",
            b'\n' => out += "\\n",
            b'?' => out += "\\?",
            0x20..=0x7e => out.push(b as char),
            _ => out += &format!("\\{b:03o}"),
        }
    }
    out
}
