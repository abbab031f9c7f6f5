//! Rings and their tokens.
//!
//! A slot is wiped when it is acquired, and what asynchronous copies bring into it appears only when a consumer's
//! `wait` succeeds: as late as the language allows. A token is used once, by the agent that got it, in order.

use super::cx::{Cx, Use};
use super::fault::{Exec, Fault, fault, malformed};
use super::frame::{ForFrame, Frame};
use super::memory::{Home, MemId, Memory};
use super::queue::{InFlight, QueueState, TurnState};
use super::run::Run;
use super::value::Value;
use crate::codes;
use crate::program::*;
use crate::span::Span;
use std::collections::{BTreeMap, HashMap};

/// Everything that orders agents or runs beside them, for one block.
#[derive(Default)]
pub(super) struct Engines<'p> {
    pub rings: Vec<RingState>,
    pub tokens: Vec<Token>,
    pub queues: BTreeMap<(QueueId, u8), QueueState<'p>>,
    pub turns: Vec<TurnState>,
    pub meetings: HashMap<super::agent::BarrierKey, super::roles::Meeting>,
    /// Team of each agent that runs now.
    pub members: Vec<(u8, TeamId)>,
    /// Copies whose sources are read but whose arrival nobody may rely on.
    pub draining: Vec<(u8, InFlight)>,
}

pub(super) struct RingState {
    slots: Vec<SlotState>,
    /// Slots acquired and committed so far.
    acquired: u64,
    committed: u64,
    pub readers: Vec<Reader>,
}

#[derive(Default)]
struct SlotState {
    fields: Vec<MemId>,
    copies: Vec<InFlight>,
    /// What had happened when it was committed.
    clock: Vec<u32>,
}

/// One consumer: a group of the consumer team.
#[derive(Clone, Default)]
pub(super) struct Reader {
    waited: u64,
    released: u64,
    clock: Vec<u32>,
}

#[derive(Clone, Debug)]
pub(super) struct Token {
    pub ring: RingId,
    number: u64,
    write: bool,
    pub owner: u8,
    pub alive: bool,
    pub born: Span,
}

impl<'p> Engines<'p> {
    /// The engines of a fresh block; slots get their memory.
    pub fn new(kernel: &Kernel, mems: &mut Vec<Memory>) -> Exec<Engines<'p>> {
        let mut held = 0;
        let mut rings = Vec::with_capacity(kernel.rings.len());
        for (_, ring) in kernel.rings.iter() {
            let mut slots = Vec::new();
            for _ in 0..ring.slots {
                let mut fields = Vec::with_capacity(ring.fields.len());
                for f in &ring.fields {
                    let dims = f.shape.iter().map(|&n| i64::from(n)).collect();
                    let name = format!("{}.{}", ring.name, f.name);
                    let memory = Memory::fresh(&name, f.elem, Home::Slot, dims, 1, true, held)?;
                    held += memory.bits.len();
                    fields.push(mems.len());
                    mems.push(memory);
                }
                slots.push(SlotState { fields, ..SlotState::default() });
            }
            rings.push(RingState { slots, acquired: 0, committed: 0, readers: Vec::new() });
        }
        let turns = kernel.turns.iter().map(|_| TurnState::default()).collect();
        Ok(Engines { rings, turns, ..Engines::default() })
    }
}

impl<'p> Cx<'_, 'p> {
    fn ring(&self, id: RingId) -> Exec<&'p Ring> {
        self.run.kernel.rings.get(id).ok_or_else(|| malformed("an unknown ring"))
    }

    fn new_token(&mut self, ring: RingId, number: u64, write: bool) -> usize {
        let (owner, born) = (self.agent.id, self.agent.span);
        self.run.engines.tokens.push(Token { ring, number, write, owner, alive: true, born });
        self.run.engines.tokens.len() - 1
    }

    /// The next slot to fill; `None` until one is empty.
    pub fn acquire(&mut self, id: RingId) -> Exec<Option<usize>> {
        self.need_collective("`acquire`")?;
        let ring = self.ring(id)?;
        self.touch();
        let access = self.agent.access(self.run.block_epoch);
        let state = &mut self.run.engines.rings[id.index()];
        let released = state.readers.iter().map(|r| r.released).min().unwrap_or(0);
        if state.acquired - released >= u64::from(ring.slots) {
            self.agent.waiting = Some(format!("an empty slot of `{}`", ring.name));
            return Ok(None);
        }
        let number = state.acquired;
        state.acquired += 1;
        let slot = (number % u64::from(ring.slots)) as usize;
        let clocks: Vec<Vec<u32>> = state.readers.iter().map(|r| r.clock.clone()).collect();
        for &mem in &state.slots[slot].fields {
            self.run.mems[mem].wipe(&access);
        }
        clocks.iter().for_each(|c| self.agent.join(c));
        Ok(Some(self.new_token(id, number, true)))
    }

    /// The next full slot; `None` until it is committed. Its copies land now.
    pub fn wait(&mut self, id: RingId) -> Exec<Option<usize>> {
        self.need_collective("`wait`")?;
        let ring = self.ring(id)?;
        let reader = self.agent.group.unwrap_or(0) as usize;
        let state = &mut self.run.engines.rings[id.index()];
        if state.readers.len() <= reader {
            state.readers.resize(reader + 1, Reader::default());
        }
        let number = state.readers[reader].waited;
        if number >= state.committed {
            self.agent.waiting = Some(format!("a full slot of `{}`", ring.name));
            return Ok(None);
        }
        state.readers[reader].waited += 1;
        let slot = &mut state.slots[(number % u64::from(ring.slots)) as usize];
        let copies = std::mem::take(&mut slot.copies);
        let clock = slot.clock.clone();
        if let Fill::Fifo(queue) = ring.fill {
            self.settle_fill(queue, id, number)?;
        }
        for copy in copies {
            self.run.land(copy)?;
        }
        self.agent.join(&clock);
        Ok(Some(self.new_token(id, number, false)))
    }

    pub fn commit(&mut self, local: LocalId) -> Exec<()> {
        self.need_collective("`commit`")?;
        let Some(at) = self.take_token(local)? else { return Err(self.no_token(local)) };
        let token = self.run.engines.tokens[at].clone();
        let name = self.name(local);
        if !token.write {
            return Err(self.misuse(
                local,
                &token,
                format!("`{name}` is a slot to read; it is released, not committed"),
            ));
        }
        let ring = self.ring(token.ring)?;
        let clock = self.agent.clock();
        let state = &mut self.run.engines.rings[token.ring.index()];
        if token.number != state.committed {
            let message = format!("`{name}` is committed before an earlier slot of `{}`", ring.name);
            return Err(self.misuse(local, &token, message));
        }
        state.committed += 1;
        state.slots[(token.number % u64::from(ring.slots)) as usize].clock = clock;
        self.run.engines.tokens[at].alive = false;
        if let Fill::Fifo(queue) = ring.fill {
            self.push_fill(queue, token.ring, token.number);
        }
        Ok(())
    }

    /// Gives a slot back; releasing no slot does nothing.
    pub fn release(&mut self, local: LocalId) -> Exec<()> {
        self.need_collective("`release`")?;
        let Some(at) = self.take_token(local)? else { return Ok(()) };
        let token = self.run.engines.tokens[at].clone();
        let name = self.name(local);
        if token.write {
            return Err(self.misuse(
                local,
                &token,
                format!("`{name}` is a slot to fill; it is committed, not released"),
            ));
        }
        let ring = self.ring(token.ring)?;
        let reader = self.agent.group.unwrap_or(0) as usize;
        let clock = self.agent.clock();
        let state = &mut self.run.engines.rings[token.ring.index()];
        let Some(r) = state.readers.get_mut(reader) else {
            return Err(malformed("a slot without its reader"));
        };
        if token.number != r.released {
            let message = format!("`{name}` is released before an earlier slot of `{}`", ring.name);
            return Err(self.misuse(local, &token, message));
        }
        r.released += 1;
        r.clock = clock;
        let fields = state.slots[(token.number % u64::from(ring.slots)) as usize].fields.clone();
        self.check_not_read(&fields, name)?;
        self.run.engines.tokens[at].alive = false;
        Ok(())
    }

    fn misuse(&self, local: LocalId, token: &Token, message: String) -> Box<Fault> {
        fault(codes::TOKEN_MISUSE, message).named(self.name(local)).also(token.born, "the slot is taken here")
    }

    fn no_token(&self, local: LocalId) -> Box<Fault> {
        let name = self.name(local);
        fault(codes::TOKEN_MISUSE, format!("`{name}` holds no slot"))
            .named(name)
            .help("a slot comes from `acquire` or `wait` and is used up by `commit` or `release`")
    }

    /// Moves the token out of a name; `None` where it holds none.
    pub fn take_token(&mut self, local: LocalId) -> Exec<Option<usize>> {
        let slot = &mut self.agent.slots[local.index()];
        let token = match &mut slot.value {
            Some(Value::Token(token)) => token.take(),
            None => return Err(self.no_token(local)),
            Some(_) => return Err(malformed("a value where a slot token is needed")),
        };
        match token {
            Some(at) if !self.run.engines.tokens[at].alive => Err(self.used_up(local, at)),
            other => Ok(other),
        }
    }

    fn used_up(&self, local: LocalId, at: usize) -> Box<Fault> {
        let name = self.name(local);
        self.misuse(
            local,
            &self.run.engines.tokens[at],
            format!("the slot that `{name}` held is already given back"),
        )
    }

    /// Names a token; one that is still held may not be lost that way.
    pub fn put_token(&mut self, local: LocalId, token: Option<usize>) -> Exec<()> {
        if let Some(Value::Token(Some(old))) = &self.agent.slots[local.index()].value
            && self.run.engines.tokens[*old].alive
            && token != Some(*old)
        {
            let old = self.run.engines.tokens[*old].clone();
            let message = format!("`{}` gets a new slot while the old one is still held", self.name(local));
            return Err(fault(codes::TOKEN_LOST, message)
                .named(self.name(local))
                .also(old.born, "the old slot is taken here")
                .help("commit or release it first"));
        }
        self.define(local, Value::Token(token));
        Ok(())
    }

    /// `next`: what a carried name holds in the coming iteration.
    pub fn next_token(&mut self, carry: LocalId, value: Option<LocalId>) -> Exec<()> {
        let token = value.map_or(Ok(None), |l| self.take_token(l))?;
        let mut frames = self.agent.frames.iter_mut().rev();
        let frame = frames.find_map(|f| match f {
            Frame::For(f) if f.carry.iter().any(|c| c.local == carry) => Some(f),
            _ => None,
        });
        let Some(frame) = frame else { return Err(malformed("`next` outside the loop of its carry")) };
        if frame.pending.iter().any(|p| p.0 == carry) {
            let name = &self.run.kernel.body.locals[carry].name;
            return Err(fault(
                codes::TOKEN_MISUSE,
                format!("`{name}` gets two values for the next iteration"),
            ));
        }
        frame.pending.push((carry, token));
        Ok(())
    }

    /// The carried names of a loop take their new values.
    pub fn roll_tokens(&mut self, frame: &mut ForFrame<'p>) -> Exec<()> {
        for c in frame.carry {
            let at = frame.pending.iter().position(|p| p.0 == c.local);
            let token = at.and_then(|i| frame.pending.swap_remove(i).1);
            self.put_token(c.local, token)?;
        }
        Ok(())
    }

    /// The memory of a field of the slot that a token holds.
    pub fn slot_memory(&self, local: LocalId, field: u8, access: Use) -> Exec<MemId> {
        let at = match &self.agent.slots[local.index()].value {
            Some(Value::Token(Some(at))) => *at,
            Some(Value::Token(None)) | None => return Err(self.no_token(local)),
            Some(_) => return Err(malformed("a value where a slot token is needed")),
        };
        let token = &self.run.engines.tokens[at];
        if !token.alive {
            return Err(self.used_up(local, at));
        }
        let name = self.name(local);
        let wrong = match (token.write, access) {
            (true, Use::Read) => {
                Some(format!("`{name}` is a slot to fill; its contents are read after `wait`"))
            }
            (false, Use::Write) => Some(format!("`{name}` is a slot to read; it is written after `acquire`")),
            _ => None,
        };
        if let Some(message) = wrong {
            return Err(self.misuse(local, token, message));
        }
        let state = &self.run.engines.rings[token.ring.index()];
        let slot = &state.slots[(token.number % state.slots.len() as u64) as usize];
        slot.fields.get(usize::from(field)).copied().ok_or_else(|| malformed("a slot without this field"))
    }

    /// A copy joins the slot that it fills.
    pub fn attach(&mut self, local: LocalId, copy: InFlight) -> Exec<()> {
        let Some(Value::Token(Some(at))) = &self.agent.slots[local.index()].value else {
            return Err(self.no_token(local));
        };
        let token = &self.run.engines.tokens[*at];
        let state = &mut self.run.engines.rings[token.ring.index()];
        let n = state.slots.len() as u64;
        state.slots[(token.number % n) as usize].copies.push(copy);
        Ok(())
    }

    /// The copies of one committed slot land, as its queue is awaited.
    pub fn land_slot(&mut self, ring: RingId, number: u64) -> Exec<()> {
        let state = &mut self.run.engines.rings[ring.index()];
        let n = state.slots.len() as u64;
        let copies = std::mem::take(&mut state.slots[(number % n) as usize].copies);
        copies.into_iter().try_for_each(|copy| self.run.land(copy))
    }

    /// At the end of an agent: every slot it took must be given back.
    pub fn check_tokens(&self) -> Exec<()> {
        let mine = |t: &&Token| t.alive && t.owner == self.agent.id;
        let Some(token) = self.run.engines.tokens.iter().find(mine) else { return Ok(()) };
        let ring = &self.ring(token.ring)?.name;
        let verb = if token.write { "committed" } else { "released" };
        let message = format!("a slot of `{ring}` is never {verb}");
        let f = fault(codes::TOKEN_LOST, message).at(token.born).named(ring);
        Err(f.help(format!("every slot that is taken is {verb} once on every path")))
    }
}

impl Run<'_> {
    /// At the end of a block: what was filled must have been read by every consumer.
    pub fn check_rings(&self) -> Exec<()> {
        for ((id, ring), state) in self.kernel.rings.iter().zip(&self.engines.rings) {
            let read = state.readers.iter().map(|r| r.waited).min().unwrap_or(0);
            let left = state.committed - read;
            if left > 0 {
                let slots = if left == 1 { "slot".into() } else { format!("{left} slots") };
                let message =
                    format!("the last {slots} of `{}` that its producer filled are never read", ring.name);
                return Err(fault(codes::TOKEN_LOST, message)
                    .at(self.kernel.rings.span(id))
                    .named(&ring.name)
                    .help("producer and consumer run the same number of steps"));
            }
        }
        Ok(())
    }
}
