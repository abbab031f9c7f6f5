//! Roles: agents that run side by side, barriers between them, and what is left when they join.

use super::agent::{Agent, BarrierKey, Ctx, LaneKind, Slot};
use super::cx::Cx;
use super::eval::Memo;
use super::fault::{Exec, malformed};
use super::frame::Frame;
use super::ring::Reader;
use super::step::Step;
use super::value::{Lanes, Mask, Value};
use crate::program::*;

/// More agents than the byte of an access record can name.
const MOST_AGENTS: usize = 200;

/// A barrier between agents.
#[derive(Default)]
pub(super) struct Meeting {
    generation: u64,
    arrived: usize,
    /// What happened before the arrivals of this generation, and of the last.
    gathering: Vec<u32>,
    known: Vec<u32>,
}

impl<'p> Cx<'_, 'p> {
    /// One agent for each role, or for each group of a role that names its groups.
    pub fn fork(&mut self, roles: &'p [Role]) -> Exec<Step<'p>> {
        self.need_collective("a `role`")?;
        if self.agent.id != 0 || self.agent.depth() != 0 {
            return Err(malformed("a role inside another role"));
        }
        let mut children = Vec::new();
        for role in roles {
            let Some(team) = self.run.kernel.teams.get(role.team) else {
                return Err(malformed("a role of an unknown team"));
            };
            let groups = if role.group.is_some() { team.groups.max(1) } else { 1 };
            for g in 0..groups {
                if children.len() == MOST_AGENTS {
                    return Err(malformed(format!("more than {MOST_AGENTS} groups run side by side")));
                }
                children.push(self.child(role, team, g, groups, children.len() + 1));
            }
            for (id, ring) in self.run.kernel.rings.iter() {
                let readers = &mut self.run.engines.rings[id.index()].readers;
                if ring.consumer == role.team && readers.len() < groups as usize {
                    readers.resize(groups as usize, Reader::default());
                }
            }
        }
        self.run.engines.members = children.iter().filter_map(|c: &Agent| Some((c.id, c.team?))).collect();
        self.agent.frames.push(Frame::Roles);
        Ok(Step::Fork(children))
    }

    fn child(&self, role: &'p Role, team: &TeamDecl, g: u32, groups: u32, id: usize) -> Agent<'p> {
        let kernel = self.run.kernel;
        let outer = self.agent.top();
        let threads = outer.width > 1 && names_threads(kernel, &role.body);
        let mut ctx = outer.clone();
        if threads && groups > 1 {
            let size = team.threads.unwrap_or(outer.width / groups).max(1);
            ctx.all = Mask::of((g * size..((g + 1) * size).min(outer.width)).collect());
            ctx.mask = ctx.all.clone();
        }
        let mut child = Agent::new(kernel, Memo::new(self.run.traits.shared.clone()), ctx);
        if !threads && outer.width > 1 {
            child.ctx.push(Ctx {
                width: 1,
                mask: Mask::All(1),
                all: Mask::All(1),
                divergent: 0,
                kind: LaneKind::Team,
                first_thread: 0,
                parallel: false,
            });
        }
        child.id = id as u8;
        child.team = Some(role.team);
        child.group = role.group.map(|_| g);
        child.name = match role.group {
            Some(_) => format!("role `{}`, group {g}", team.name),
            None => format!("role `{}`", team.name),
        };
        child.slots.clone_from(&self.agent.slots);
        child.buffers.clone_from(&self.agent.buffers);
        child.inherited = self.agent.buffers.iter().map(Option::is_some).collect();
        child.epoch = self.agent.epoch;
        child.section = self.agent.section;
        child.seen = self.agent.clock();
        child.span = role.span;
        child.frames.push(Frame::Block { stmts: &role.body, pc: 0 });
        if let Some(local) = role.group {
            let depth = child.depth();
            let value = Some(Value::one(u64::from(g)));
            child.slots[local.index()] = Slot { value, depth, ..Slot::default() };
        }
        child
    }

    /// The agents of a `roles` statement have ended: their past is this agent's past, and names that exactly one of
    /// them assigned keep its value.
    pub fn join_roles(&mut self, children: &[Agent<'p>]) -> Exec<()> {
        self.run.check_turns()?;
        self.run.engines.members.clear();
        for child in children {
            let clock = child.clock();
            self.agent.join(&clock);
        }
        for i in 0..self.agent.slots.len() {
            let before = self.agent.slots[i].written;
            let mut changed = children.iter().map(|c| &c.slots[i]).filter(|s| s.written > before);
            let Some(first) = changed.next() else { continue };
            let mut slot = first.clone();
            slot.contested = changed.next().is_some();
            if slot.depth > 0 {
                slot.depth = 0;
                if let Some(Value::Scalar(lanes)) = &slot.value {
                    slot.value = Some(Value::Scalar(Lanes::One(lanes.get(0))));
                }
            }
            self.agent.slots[i] = slot;
        }
        Ok(())
    }

    /// A barrier that several agents share; alone, an agent passes.
    pub fn rendezvous(&mut self, key: BarrierKey) -> Exec<Step<'p>> {
        let members = &self.run.engines.members;
        let me = self.agent.id;
        let expected = match key {
            BarrierKey::Block => members.len(),
            BarrierKey::Team(team) => members.iter().filter(|m| m.1 == team).count(),
        };
        let inside =
            members.iter().any(|m| m.0 == me && (key == BarrierKey::Block || key == BarrierKey::Team(m.1)));
        if expected <= 1 || !inside {
            return if inside || members.is_empty() {
                Ok(Step::Ran)
            } else {
                Err(malformed("a barrier of a team that this role does not belong to"))
            };
        }
        let clock = self.agent.clock();
        let meeting = self.run.engines.meetings.entry(key).or_default();
        if let Some((_, generation)) = self.agent.arrived {
            if meeting.generation == generation {
                return Ok(Step::Blocked);
            }
            let known = meeting.known.clone();
            self.agent.arrived = None;
            self.agent.join(&known);
            return Ok(Step::Ran);
        }
        merge(&mut meeting.gathering, &clock);
        meeting.arrived += 1;
        if meeting.arrived == expected {
            meeting.generation += 1;
            meeting.arrived = 0;
            meeting.known = std::mem::take(&mut meeting.gathering);
            let known = meeting.known.clone();
            self.agent.join(&known);
            return Ok(Step::Ran);
        }
        self.agent.arrived = Some((key, meeting.generation));
        self.agent.waiting = Some("the other roles at a barrier".into());
        // Arriving is progress that the others must see.
        Ok(Step::Blocked)
    }
}

fn merge(into: &mut Vec<u32>, clock: &[u32]) {
    if into.len() < clock.len() {
        into.resize(clock.len(), 0);
    }
    for (a, &b) in into.iter_mut().zip(clock) {
        *a = (*a).max(b);
    }
}

/// Whether a role's body works thread by thread.
fn names_threads(kernel: &Kernel, block: &Block) -> bool {
    let mut found = false;
    let mut todo = Vec::new();
    walk(block, &mut |s| {
        if let StmtKind::Op { op, .. } = &s.kind {
            found |=
                matches!(op, Op::AllReduce { .. } | Op::Shuffle { .. } | Op::Vote { .. } | Op::Once { .. });
        }
        s.kind.operands(|e| todo.push(e));
    });
    let mut seen = vec![false; kernel.body.exprs.len()];
    while let Some(e) = todo.pop() {
        if std::mem::replace(&mut seen[e.index()], true) {
            continue;
        }
        let expr = &kernel.body.exprs[e];
        if let Expr::Local(l) = expr {
            found |= matches!(kernel.body.locals[*l].kind, LocalKind::Thread(_));
        }
        expr.operands(|o| todo.push(o));
    }
    found
}
