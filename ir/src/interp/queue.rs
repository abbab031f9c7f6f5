//! Queues of engines that work beside the agents, and turns.
//!
//! A copy or product runs at an unknown time between its issue and the await that completes it. So its target reads
//! as poison until then, and whatever it reads may not change until then; both are faults when they happen.

use super::cx::{Cx, Use};
use super::eval::uniform;
use super::eval_tile::tile;
use super::fault::{Exec, fault, malformed};
use super::fold::Factors;
use super::memory::MemId;
use super::run::Run;
use super::step::Step;
use super::tile::{Bounds, Tile};
use super::value::Value;
use crate::codes;
use crate::program::*;
use crate::span::Span;
use std::collections::VecDeque;
use std::rc::Rc;

/// An asynchronous copy.
#[derive(Clone, Debug)]
pub(super) struct InFlight {
    sources: Vec<(MemId, Vec<usize>)>,
    to: MemId,
    addresses: Vec<usize>,
    bits: Vec<u64>,
    epoch: u32,
    span: Span,
}

/// An asynchronous product.
struct Product {
    into: LocalId,
    result: Rc<Tile>,
    sources: Vec<(MemId, Vec<usize>)>,
    locals: Vec<LocalId>,
    epoch: u32,
    span: Span,
}

enum Work {
    Copy(InFlight),
    Product(Product),
    /// The copies into one slot of a ring.
    Fill(RingId, u64),
}

/// One queue of one agent, oldest work first.
pub(super) struct QueueState<'p> {
    work: VecDeque<Work>,
    decl: &'p Queue,
}

#[derive(Default)]
pub(super) struct TurnState {
    next: u32,
    holder: Option<u8>,
    clock: Vec<u32>,
}

fn changed(run: &Run, sources: &[(MemId, Vec<usize>)], since: u32, issued: Span, what: &str) -> Exec<()> {
    for (mem, addresses) in sources {
        let m = &run.mems[*mem];
        for &addr in addresses {
            if let Some((_, span)) = m.last_write(addr).filter(|w| w.0 > since) {
                let message = format!("{} changes while {what} that reads it is in flight", m.text(addr));
                let mut f = fault(codes::CHANGED_IN_FLIGHT, message)
                    .of(&m.name, m.index_of(addr))
                    .also(issued, format!("{what} starts here"))
                    .help("await its queue before the memory is written or its slot given back");
                if let Some(span) = run.spans.get(span) {
                    f = f.also(span, "changed here");
                }
                return Err(f);
            }
        }
    }
    Ok(())
}

impl Run<'_> {
    /// A copy arrives.
    pub fn land(&mut self, copy: InFlight) -> Exec<()> {
        changed(self, &copy.sources, copy.epoch, copy.span, "a copy")?;
        let m = &mut self.mems[copy.to];
        for (addr, bits) in copy.addresses.into_iter().zip(copy.bits) {
            m.land(addr, bits);
        }
        Ok(())
    }
}

impl<'p> Cx<'_, 'p> {
    fn queue(&mut self, id: QueueId) -> Exec<&mut QueueState<'p>> {
        let decl = self.run.kernel.queues.get(id).ok_or_else(|| malformed("an unknown queue"))?;
        let fresh = || QueueState { work: VecDeque::new(), decl };
        Ok(self.run.engines.queues.entry((id, self.agent.id)).or_insert_with(fresh))
    }

    pub fn push_fill(&mut self, queue: QueueId, ring: RingId, number: u64) {
        if let Ok(q) = self.queue(queue) {
            q.work.push_back(Work::Fill(ring, number));
        }
    }

    /// A wait for a slot filled in queue order completes everything up to it.
    pub fn settle_fill(&mut self, queue: QueueId, ring: RingId, number: u64) -> Exec<()> {
        let q = self.queue(queue)?;
        let mine = |w: &Work| matches!(w, Work::Fill(r, n) if *r == ring && *n == number);
        let Some(at) = q.work.iter().position(mine) else { return Ok(()) };
        for _ in 0..=at {
            self.complete_oldest(queue)?;
        }
        Ok(())
    }

    pub fn copy_async(
        &mut self,
        from: &Region,
        to: &Region,
        pad: Option<ExprId>,
        queue: Option<QueueId>,
    ) -> Exec<()> {
        self.need_collective("an asynchronous copy")?;
        let pad = pad.map_or(Ok(None), |e| uniform(self, e).map(Some))?;
        let source = self.resolve(from, Use::Read)?;
        let part = self.load(&source)?;
        let sources = vec![(source.mem, source.addresses(&source.valid))];
        let target = self.resolve(to, Use::Write)?;
        let tile = pad.map_or(part.clone(), |v| super::region::padded(part, v));
        let valid: Bounds = target.valid.intersect(&tile.valid);
        let addresses = target.addresses(&valid);
        self.check_distinct(&target, &addresses)?;
        let bits = tile.over(&tile.shape, &valid).into_owned();
        let thread = self.agent.team_thread();
        self.touch();
        let access = self.agent.access(self.run.block_epoch);
        let m = &mut self.run.mems[target.mem];
        for &addr in &addresses {
            m.launch_into(addr, thread, &access, self.run.spans.all())?;
        }
        let (epoch, span) = (self.agent.epoch, self.agent.span);
        let copy = InFlight { sources, to: target.mem, addresses, bits, epoch, span };
        match (to.mem, queue) {
            (Mem::Slot { token, .. }, _) => self.attach(token, copy),
            (_, Some(queue)) => {
                self.queue(queue)?.work.push_back(Work::Copy(copy));
                Ok(())
            }
            (_, None) => Err(malformed("an asynchronous copy with neither a slot nor a queue")),
        }
    }

    pub fn issue(
        &mut self,
        queue: QueueId,
        a: &MatOperand,
        b: &MatOperand,
        into: LocalId,
        init: Init,
        precision: Precision,
    ) -> Exec<()> {
        self.need_collective("a product of tiles")?;
        let (mut sources, mut locals) = (Vec::new(), Vec::new());
        let a = self.mat_operand(a, &mut sources, &mut locals)?;
        let b = self.mat_operand(b, &mut sources, &mut locals)?;
        let overwrites = self.overwrites(init)?;
        let old = if overwrites { None } else { Some(self.running_value(queue, into)?) };
        let elem = self.accumulator(into)?;
        let result = Rc::new(Factors::new(elem, &a, &b, precision)?.product(old.as_deref())?);
        if overwrites {
            self.check_one_queue(queue, into)?;
        }
        let (epoch, span) = (self.agent.epoch, self.agent.span);
        self.agent.slots[into.index()].in_flight += 1;
        let product = Product { into, result, sources, locals, epoch, span };
        self.queue(queue)?.work.push_back(Work::Product(product));
        Ok(())
    }

    /// What an accumulator will hold once everything issued on this queue has landed.
    fn running_value(&mut self, queue: QueueId, into: LocalId) -> Exec<Rc<Tile>> {
        self.check_one_queue(queue, into)?;
        let latest = self.queue(queue)?.work.iter().rev().find_map(|w| match w {
            Work::Product(p) if p.into == into => Some(p.result.clone()),
            _ => None,
        });
        match latest {
            Some(tile) => Ok(tile),
            None => self.tile_local(into),
        }
    }

    /// Products into one accumulator stay in order only on one queue.
    fn check_one_queue(&mut self, queue: QueueId, into: LocalId) -> Exec<()> {
        let all = self.agent.slots[into.index()].in_flight;
        let is_mine = |w: &&Work| matches!(w, Work::Product(p) if p.into == into);
        let here = self.queue(queue)?.work.iter().filter(is_mine).count() as u32;
        if all == here {
            return Ok(());
        }
        let name = self.name(into);
        let message = format!("products into `{name}` are in flight on two queues, which are not ordered");
        Err(fault(codes::CHANGED_IN_FLIGHT, message).named(name).help("await the other queue first"))
    }

    fn mat_operand(
        &mut self,
        operand: &MatOperand,
        sources: &mut Vec<(MemId, Vec<usize>)>,
        locals: &mut Vec<LocalId>,
    ) -> Exec<Rc<Tile>> {
        match operand {
            MatOperand::Value(e) => {
                self.named_storage(*e, locals);
                tile(self, *e)
            }
            MatOperand::Memory { region, transposed } => {
                let r = self.resolve(region, Use::Read)?;
                let part = self.load(&r)?;
                sources.push((r.mem, r.addresses(&r.valid)));
                Ok(Rc::new(if *transposed { part.transposed() } else { part }))
            }
        }
    }

    /// The variable whose storage an operand is, seen through views; other expressions make a value of their own.
    fn named_storage(&self, e: ExprId, locals: &mut Vec<LocalId>) {
        match &self.run.kernel.body.exprs[e] {
            Expr::Local(l) => locals.push(*l),
            Expr::Transpose(v)
            | Expr::InsertAxis { value: v, .. }
            | Expr::Slice { value: v, .. }
            | Expr::Broadcast { value: v, .. }
            | Expr::Reshape { value: v, .. }
            | Expr::Bits { value: v, .. } => self.named_storage(*v, locals),
            _ => {}
        }
    }

    pub fn await_queue(&mut self, id: QueueId, keep: u32) -> Exec<()> {
        self.need_collective("`await`")?;
        while self.queue(id)?.work.len() > keep as usize {
            self.complete_oldest(id)?;
        }
        Ok(())
    }

    fn complete_oldest(&mut self, id: QueueId) -> Exec<()> {
        let q = self.queue(id)?;
        let reads_only = q.decl.read_completion;
        match q.work.pop_front() {
            None => Ok(()),
            Some(Work::Fill(ring, number)) => self.land_slot(ring, number),
            Some(Work::Copy(mut copy)) if reads_only => {
                changed(self.run, &copy.sources, copy.epoch, copy.span, "a copy")?;
                copy.sources.clear();
                self.run.engines.draining.push((self.agent.id, copy));
                Ok(())
            }
            Some(Work::Copy(copy)) => self.run.land(copy),
            Some(Work::Product(p)) => self.land_product(p),
        }
    }

    fn land_product(&mut self, p: Product) -> Exec<()> {
        changed(self.run, &p.sources, p.epoch, p.span, "a product")?;
        for &local in &p.locals {
            if self.agent.slots[local.index()].written > p.epoch {
                let name = self.name(local);
                let message = format!("`{name}` changes while a product that reads it is in flight");
                return Err(fault(codes::CHANGED_IN_FLIGHT, message)
                    .named(name)
                    .also(p.span, "the product starts here")
                    .help("await the queue before the variable is assigned"));
            }
        }
        let epoch = self.agent.epoch;
        let slot = &mut self.agent.slots[p.into.index()];
        slot.in_flight = slot.in_flight.saturating_sub(1);
        slot.value = Some(Value::Tile(p.result));
        slot.written = epoch;
        Ok(())
    }

    /// A slot may not be given back while an engine still reads it.
    pub fn check_not_read(&self, fields: &[MemId], name: &str) -> Exec<()> {
        for ((_, agent), q) in &self.run.engines.queues {
            let reads = |s: &[(MemId, Vec<usize>)]| s.iter().any(|(m, _)| fields.contains(m));
            let busy = q.work.iter().find_map(|w| match w {
                Work::Product(p) if reads(&p.sources) => Some((p.span, "a product")),
                Work::Copy(c) if reads(&c.sources) => Some((c.span, "a copy")),
                _ => None,
            });
            if let (Some((span, what)), true) = (busy, *agent == self.agent.id) {
                let message = format!("`{name}` is released while {what} in flight still reads it");
                return Err(fault(codes::RELEASED_EARLY, message)
                    .named(name)
                    .also(span, format!("{what} starts here"))
                    .help(format!("await `{}` first", q.decl.name)));
            }
        }
        Ok(())
    }

    /// At the end of an agent: all its work must have been awaited; what only drains lands.
    pub fn check_queues(&mut self) -> Exec<()> {
        let me = self.agent.id;
        let mut queues = self.run.engines.queues.iter();
        if let Some((_, q)) = queues.find(|((_, a), q)| *a == me && !q.work.is_empty()) {
            let span = match q.work.front() {
                Some(Work::Copy(c)) => c.span,
                Some(Work::Product(p)) => p.span,
                _ => Span::default(),
            };
            let name = &q.decl.name;
            let message = format!("work on `{name}` is never awaited");
            return Err(fault(codes::NOT_AWAITED, message)
                .at(span)
                .named(name)
                .help(format!("write `await {name} keep 0`")));
        }
        let draining = std::mem::take(&mut self.run.engines.draining);
        for (agent, copy) in draining {
            if agent == me {
                self.run.land(copy)?;
            } else {
                self.run.engines.draining.push((agent, copy));
            }
        }
        Ok(())
    }

    fn turn_group(&self, id: TurnId) -> Exec<(u32, &'p Turn)> {
        let turn = self.run.kernel.turns.get(id).ok_or_else(|| malformed("an unknown turn"))?;
        match self.agent.group {
            Some(g) if self.agent.team == Some(turn.team) => Ok((g, turn)),
            _ => {
                let message = format!("`{}` is a turn of another team's groups", turn.name);
                Err(fault(codes::TOKEN_MISUSE, message).help("take it in `role TEAM as g` of its own team"))
            }
        }
    }

    pub fn take_turn(&mut self, id: TurnId) -> Exec<Step<'p>> {
        self.need_collective("`take`")?;
        let (group, turn) = self.turn_group(id)?;
        let me = self.agent.id;
        let state = &mut self.run.engines.turns[id.index()];
        match state.holder {
            Some(holder) if holder == me => {
                Err(fault(codes::TOKEN_MISUSE, format!("`{}` is taken twice without `pass`", turn.name)))
            }
            None if state.next == group => {
                state.holder = Some(me);
                let clock = state.clock.clone();
                self.agent.join(&clock);
                Ok(Step::Ran)
            }
            _ => {
                self.agent.waiting = Some(format!("its turn at `{}`", turn.name));
                Ok(Step::Blocked)
            }
        }
    }

    pub fn pass_turn(&mut self, id: TurnId) -> Exec<()> {
        self.need_collective("`pass`")?;
        let (_, turn) = self.turn_group(id)?;
        let groups = self.run.kernel.teams.get(turn.team).map_or(1, |t| t.groups.max(1));
        let clock = self.agent.clock();
        let state = &mut self.run.engines.turns[id.index()];
        if state.holder != Some(self.agent.id) {
            return Err(fault(
                codes::TOKEN_MISUSE,
                format!("`{}` is passed by a group that does not hold it", turn.name),
            ));
        }
        state.holder = None;
        state.next = (state.next + 1) % groups;
        state.clock = clock;
        Ok(())
    }
}

impl Run<'_> {
    /// At the end of a `roles` statement: every group must have had the turn equally often.
    pub fn check_turns(&self) -> Exec<()> {
        for ((_, turn), state) in self.kernel.turns.iter().zip(&self.engines.turns) {
            if state.holder.is_some() {
                return Err(fault(codes::TOKEN_MISUSE, format!("`{}` is taken but never passed", turn.name)));
            }
            if state.next != 0 {
                let message = format!("the groups take `{}` unequally often", turn.name);
                return Err(fault(codes::TOKEN_MISUSE, message)
                    .help("every group takes a turn the same number of times"));
            }
        }
        Ok(())
    }
}
