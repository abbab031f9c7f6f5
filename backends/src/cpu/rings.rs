//! Rings, their tokens, and turns: counters in the stack frame of the running block, slots in its scratch memory.
//!
//! A token is the number of its slot since the block began, or -1 for `none`; slot `n` of a ring stands in place
//! `n % slots`. Copies and products of engines are done when they are issued, so a slot is full once it is committed,
//! and queues hold nothing.

use super::emit::{Int, Ptr};
use super::frame::Frame;
use super::value::{Val, scratch_bytes};
use inkwell::IntPredicate;
use pantile_ir::codes;
use pantile_ir::program::{
    Carry, Elem, LocalId, LocalKind, RingField, RingId, Role, StmtKind, TeamDecl, TeamId, TurnId, walk,
};
use std::collections::BTreeMap;

/// What orders the roles of a block.
#[derive(Default)]
pub struct Engines<'c> {
    rings: BTreeMap<RingId, RingMem<'c>>,
    turns: BTreeMap<TurnId, TurnMem<'c>>,
    /// Barriers of the block (`None`) and of teams.
    meetings: BTreeMap<Option<TeamId>, Meeting<'c>>,
}

/// A barrier between agents.
#[derive(Clone, Copy)]
pub struct Meeting<'c> {
    pub round: Ptr<'c>,
    pub arrived: Ptr<'c>,
}

impl<'c> Engines<'c> {
    pub fn meeting(&self, team: Option<TeamId>) -> Meeting<'c> {
        self.meetings[&team]
    }
}

struct RingMem<'c> {
    /// The first slot of each field, and the bytes from one slot to the next.
    fields: Vec<(Ptr<'c>, u64)>,
    acquired: Ptr<'c>,
    committed: Ptr<'c>,
    /// Readers that have come so far.
    present: Ptr<'c>,
    readers: Vec<Reader<'c>>,
}

/// One group of the consumer team.
struct Reader<'c> {
    waited: Ptr<'c>,
    released: Ptr<'c>,
}

struct TurnMem<'c> {
    /// The group whose turn it is.
    next: Ptr<'c>,
    /// 1 between `take` and `pass`.
    held: Ptr<'c>,
}

/// Agents that a role stands for.
pub fn groups_of(role: &Role, team: &TeamDecl) -> u32 {
    if role.group.is_some() { team.groups.max(1) } else { 1 }
}

impl<'a, 'c> Frame<'a, 'c> {
    pub fn make_engines(&self) -> Engines<'c> {
        let counter = |name: &str| self.e.alloca(self.e.i64(), name);
        let mut engines = Engines::default();
        for (id, ring) in self.kernel.rings.iter() {
            let field = |f: &RingField| {
                let elements: u64 = f.shape.iter().map(|&n| n as u64).product();
                let bytes = (elements * scratch_bytes(f.elem) as u64).max(1).next_multiple_of(64);
                (self.reserve(bytes * ring.slots as u64), bytes)
            };
            let reader = |_| Reader { waited: counter("waited"), released: counter("released") };
            let ring = RingMem {
                fields: ring.fields.iter().map(field).collect(),
                acquired: counter("acquired"),
                committed: counter("committed"),
                present: counter("readers"),
                readers: (0..self.most_readers(id)).map(reader).collect(),
            };
            engines.rings.insert(id, ring);
        }
        for (id, _) in self.kernel.turns.iter() {
            engines.turns.insert(id, TurnMem { next: counter("turn"), held: counter("held") });
        }
        for team in std::iter::once(None).chain(self.kernel.teams.iter().map(|(id, _)| Some(id))) {
            let meeting = Meeting { round: counter("round"), arrived: counter("arrived") };
            engines.meetings.insert(team, meeting);
        }
        engines
    }

    fn most_readers(&self, ring: RingId) -> u32 {
        let (consumer, teams) = (self.kernel.rings[ring].consumer, &self.kernel.teams);
        let mut most = 1;
        walk(&self.kernel.stmts, &mut |s| {
            if let StmtKind::Roles(roles) = &s.kind {
                let readers = roles.iter().filter(|r| r.team == consumer);
                most = readers.map(|r| groups_of(r, &teams[r.team])).fold(most, u32::max);
            }
        });
        most
    }

    /// A new block begins.
    pub fn start_engines(&self) {
        let zero = |p| self.e.store(p, self.e.int(0), 8);
        for ring in self.engines.rings.values() {
            [ring.acquired, ring.committed, ring.present].into_iter().for_each(zero);
            ring.readers.iter().for_each(|r| [r.waited, r.released].into_iter().for_each(zero));
        }
        for turn in self.engines.turns.values() {
            [turn.next, turn.held].into_iter().for_each(zero);
        }
        for meeting in self.engines.meetings.values() {
            [meeting.round, meeting.arrived].into_iter().for_each(zero);
        }
    }

    /// A block ends: what was filled must have been read by every consumer.
    pub fn check_engines(&self) {
        self.here.set(None);
        for (id, ring) in self.kernel.rings.iter() {
            let mem = &self.engines.rings[&id];
            let read = self.least(mem, |r| r.waited);
            let all = self.e.cmp(IntPredicate::SLE, self.e.load_int(mem.committed), read);
            let message =
                format!("the last slots of `{}` that its producer filled are never read", ring.name);
            self.go_on_if(all, self.fault(codes::TOKEN_LOST, message));
        }
    }

    /// The least count of the readers that have come; 0 without any.
    fn least(&self, ring: &RingMem<'c>, of: impl Fn(&Reader<'c>) -> Ptr<'c>) -> Int<'c> {
        let e = self.e;
        let present = e.load_int(ring.present);
        let mut least: Option<Int<'c>> = None;
        for (i, r) in ring.readers.iter().enumerate() {
            let own = e.load_int(of(r));
            least = Some(match least {
                // the first reader comes with the first of all
                None => e.select(e.lt(e.int(0), present), own.into(), e.int(0).into()).into_int_value(),
                Some(l) => {
                    let here = e.lt(e.int(i as i64), present);
                    e.select(here, e.min(l, own).into(), l.into()).into_int_value()
                }
            });
        }
        least.unwrap_or(e.int(0))
    }

    /// The consumers of rings among these roles: a slot is empty once all of them have given it back.
    pub fn admit_readers(&self, roles: &[Role]) {
        for (id, ring) in self.kernel.rings.iter() {
            let readers = roles.iter().filter(|r| r.team == ring.consumer);
            if let Some(n) = readers.map(|r| groups_of(r, &self.kernel.teams[r.team])).max() {
                self.admit(id, n);
            }
        }
    }

    fn admit(&self, ring: RingId, readers: u32) {
        let present = self.engines.rings[&ring].present;
        let now = self.e.max(self.e.load_int(present), self.e.int(readers as i64));
        self.e.store(present, now, 8);
    }

    // ---- tokens

    pub fn acquire(&self, id: RingId, result: LocalId) {
        let e = self.e;
        let (ring, mem) = (&self.kernel.rings[id], &self.engines.rings[&id]);
        self.wait_until(&format!("an empty slot of `{}`", ring.name), &|| {
            let full = e.sub(e.load_int(mem.acquired), self.least(mem, |r| r.released));
            e.lt(full, e.int(ring.slots as i64))
        });
        self.set_scalar(result, Val::index(e.load_int(mem.acquired)));
        e.count(mem.acquired, e.int(1));
    }

    fn reader(&self, ring: RingId) -> &Reader<'c> {
        let group = self.agent.borrow().group.unwrap_or(0);
        &self.engines.rings[&ring].readers[group as usize]
    }

    pub fn wait(&self, id: RingId, result: LocalId) {
        let e = self.e;
        self.admit(id, self.agent.borrow().group.unwrap_or(0) + 1);
        let (mem, reader) = (&self.engines.rings[&id], self.reader(id));
        self.wait_until(&format!("a full slot of `{}`", self.kernel.rings[id].name), &|| {
            e.lt(e.load_int(reader.waited), e.load_int(mem.committed))
        });
        self.set_scalar(result, Val::index(e.load_int(reader.waited)));
        e.count(reader.waited, e.int(1));
    }

    fn ring_of(&self, token: LocalId) -> RingId {
        match self.kernel.body.locals[token].kind {
            LocalKind::Token(ring) => ring,
            other => unreachable!("a token of kind {other:?} in a verified program"),
        }
    }

    pub fn commit(&self, token: LocalId) {
        self.e.count(self.engines.rings[&self.ring_of(token)].committed, self.e.int(1));
    }

    /// Releasing no slot does nothing.
    pub fn release(&self, token: LocalId) {
        let e = self.e;
        let some = e.cmp(IntPredicate::SGE, self.get_scalar(token).int(), e.int(0));
        let one = e.zext(some.into(), e.i64().into()).into_int_value();
        e.count(self.reader(self.ring_of(token)).released, one);
    }

    pub fn slot_field(&self, token: LocalId, field: u8) -> &'a RingField {
        &self.kernel.rings[self.ring_of(token)].fields[field as usize]
    }

    /// Address of an element of a slot's field.
    pub fn slot_address(&self, token: LocalId, field: u8, at: &[Int<'c>]) -> (Ptr<'c>, Elem) {
        let e = self.e;
        let id = self.ring_of(token);
        let decl = &self.kernel.rings[id].fields[field as usize];
        let (base, bytes) = self.engines.rings[&id].fields[field as usize];
        let slots = e.int(self.kernel.rings[id].slots as i64);
        let place = e.b.build_int_unsigned_rem(self.get_scalar(token).int(), slots, "").unwrap();
        let slot = e.offset(base, e.mul(place, e.int(bytes as i64)));
        let mut off = e.int(0);
        for (&i, &n) in at.iter().zip(&decl.shape) {
            off = e.add(e.mul(off, e.int(n as i64)), i);
        }
        (self.scaled(slot, off, decl.elem), decl.elem)
    }

    // ---- tokens that loops carry

    pub fn carry_in(&self, carry: &[Carry]) {
        let none = self.e.int(-1);
        for c in carry {
            let first = c.init.map_or(none, |l| self.get_scalar(l).int());
            self.set_scalar(c.local, Val::index(first));
            let next = self.e.alloca(self.e.i64(), "next");
            self.e.store(next, none, 8);
            self.pending.borrow_mut().insert(c.local, next);
        }
    }

    /// An iteration ends: carried names take their new values.
    pub fn carry_on(&self, carry: &[Carry]) {
        for c in carry {
            let next = self.pending.borrow()[&c.local];
            self.set_scalar(c.local, Val::index(self.e.load_int(next)));
            self.e.store(next, self.e.int(-1), 8);
        }
    }

    pub fn next_token(&self, carry: LocalId, value: Option<LocalId>) {
        let value = value.map_or(self.e.int(-1), |l| self.get_scalar(l).int());
        self.e.store(self.pending.borrow()[&carry], value, 8);
    }

    // ---- turns

    /// The group that this code is of, if it may take the turn; else the kernel stops.
    fn turn_group(&self, id: TurnId) -> Option<u32> {
        let turn = &self.kernel.turns[id];
        let (team, group) = {
            let agent = self.agent.borrow();
            (agent.team, agent.group)
        };
        let group = group.filter(|_| team == Some(turn.team));
        if group.is_none() {
            let message = format!("`{}` is a turn of another team's groups", turn.name);
            self.go_on_if(self.e.bool(false), self.fault(codes::TOKEN_MISUSE, message));
        }
        group
    }

    pub fn take_turn(&self, id: TurnId) {
        let e = self.e;
        let Some(group) = self.turn_group(id) else { return };
        let mem = &self.engines.turns[&id];
        self.wait_until(&format!("its turn at `{}`", self.kernel.turns[id].name), &|| {
            let free = e.eq(e.load_int(mem.held), e.int(0));
            e.and(free, e.eq(e.load_int(mem.next), e.int(group as i64)))
        });
        e.store(mem.held, e.int(1), 8);
    }

    pub fn pass_turn(&self, id: TurnId) {
        let e = self.e;
        let Some(group) = self.turn_group(id) else { return };
        let groups = self.kernel.teams[self.kernel.turns[id].team].groups.max(1);
        let mem = &self.engines.turns[&id];
        e.store(mem.held, e.int(0), 8);
        e.store(mem.next, e.int(((group + 1) % groups) as i64), 8);
    }

    /// The end of a `roles` statement: every group must have had the turn equally often.
    pub fn check_turns(&self) {
        for (id, turn) in self.kernel.turns.iter() {
            let even = self.e.eq(self.e.load_int(self.engines.turns[&id].next), self.e.int(0));
            let message = format!("the groups take `{}` unequally often", turn.name);
            self.go_on_if(even, self.fault(codes::TOKEN_MISUSE, message));
        }
    }
}
