//! One block from start to end: a single agent, and where it forks, a seeded interleaving of roles.

use super::agent::{Agent, Ctx, LaneKind};
use super::cx::Cx;
use super::eval::Memo;
use super::fault::{Exec, Fault, fault};
use super::frame::Frame;
use super::ring::Engines;
use super::run::Run;
use super::step::Step;
use super::value::{Lanes, Mask, Value};
use crate::codes;
use crate::program::*;

/// The most steps that one role runs before another may.
const QUANTUM: usize = 12;

impl<'p> Run<'p> {
    /// An agent with the kernel's threads and no grid index.
    pub fn agent(&self) -> Agent<'p> {
        let kernel = self.kernel;
        let width = kernel.threads.as_ref().map_or(1, Threads::count).max(1);
        let ctx = Ctx {
            width,
            mask: Mask::All(width),
            all: Mask::All(width),
            divergent: 0,
            kind: LaneKind::Threads,
            first_thread: 0,
            parallel: false,
        };
        let mut agent = Agent::new(kernel, Memo::new(self.traits.shared.clone()), ctx);
        let mut inner = 1;
        for &(local, n) in kernel.threads.iter().flat_map(|t| t.axes.iter().rev()) {
            let values = (0..width).map(|t| u64::from(t / inner % n.max(1))).collect();
            let lanes = if width == 1 { Lanes::One(0) } else { Lanes::many(values) };
            agent.slots[local.index()].value = Some(Value::Scalar(lanes));
            inner *= n.max(1);
        }
        agent
    }

    pub fn run_block(&mut self, n: u32) -> Exec<()> {
        let coords = &self.coords(n)[..];
        let kernel = self.kernel;
        self.mems.truncate(self.globals);
        self.engines = Engines::new(kernel, &mut self.mems).map_err(|f| f.at(kernel.span))?;
        self.block_epoch = self.next_epoch()?;
        self.block_starts.push((self.block_epoch, n));
        let mut agent = self.agent();
        for (&local, &i) in kernel.grid.locals.iter().zip(coords) {
            agent.slots[local.index()].value = Some(Value::one(i as u64));
        }
        agent.frames.push(Frame::Block { stmts: &kernel.stmts, pc: 0 });
        loop {
            let mut cx = Cx { run: self, agent: &mut agent };
            let step = cx.step();
            match step.map_err(|f| self.annotate(f, &agent, coords))? {
                Step::Ran => {}
                Step::Done => break,
                Step::Blocked => {
                    let f = self.deadlock(&[&agent]);
                    return Err(self.annotate(f, &agent, coords));
                }
                Step::Fork(children) => {
                    let children = self.run_roles(children, coords)?;
                    let mut cx = Cx { run: self, agent: &mut agent };
                    let joined = cx.join_roles(&children);
                    joined.map_err(|f| self.annotate(f, &agent, coords))?;
                }
            }
        }
        let ended = self.finish(&mut agent).and_then(|()| self.check_rings());
        ended.map_err(|f| self.annotate(f, &agent, coords))
    }

    /// Grid indices of a block by its row-major number.
    fn coords(&self, n: u32) -> Vec<i64> {
        let mut rest = i64::from(n);
        let mut coords = vec![0; self.extents.len()];
        for (c, &extent) in coords.iter_mut().zip(&self.extents).rev() {
            *c = rest % extent.max(1);
            rest /= extent.max(1);
        }
        coords
    }

    fn finish(&mut self, agent: &mut Agent<'p>) -> Exec<()> {
        let mut cx = Cx { run: self, agent };
        cx.check_tokens()?;
        cx.check_queues()
    }

    /// Runs agents until all have ended, switching at places that the seed chooses.
    fn run_roles(&mut self, mut agents: Vec<Agent<'p>>, coords: &[i64]) -> Exec<Vec<Agent<'p>>> {
        let mut blocked = vec![false; agents.len()];
        let mut done = vec![false; agents.len()];
        loop {
            let ready: Vec<usize> = (0..agents.len()).filter(|&i| !done[i] && !blocked[i]).collect();
            if ready.is_empty() {
                if done.iter().all(|&d| d) {
                    return Ok(agents);
                }
                let stuck: Vec<&Agent> =
                    agents.iter().zip(&done).filter(|(_, d)| !**d).map(|(a, _)| a).collect();
                let f = self.deadlock(&stuck);
                return Err(self.annotate(f, stuck[0], coords));
            }
            let i = ready[self.rng.below(ready.len())];
            for _ in 0..1 + self.rng.below(QUANTUM) {
                let agent = &mut agents[i];
                let arrived = agent.arrived;
                let mut cx = Cx { run: self, agent };
                let step = cx.step();
                let step = step.map_err(|f| self.annotate(f, &agents[i], coords))?;
                match step {
                    Step::Ran | Step::Fork(_) => blocked.fill(false),
                    Step::Blocked => {
                        if agents[i].arrived != arrived {
                            blocked.fill(false);
                        }
                        blocked[i] = true;
                        break;
                    }
                    Step::Done => {
                        let ended = self.finish(&mut agents[i]);
                        ended.map_err(|f| self.annotate(f, &agents[i], coords))?;
                        blocked.fill(false);
                        done[i] = true;
                        break;
                    }
                }
            }
        }
    }

    fn deadlock(&self, stuck: &[&Agent]) -> Box<Fault> {
        let message = match stuck {
            [one] => format!("{} waits for something that nobody will do", one.name),
            _ => "every role waits for another".to_owned(),
        };
        let mut f = fault(codes::DEADLOCK, message);
        for agent in stuck {
            let what = agent.waiting.as_deref().unwrap_or("something");
            let text = format!("{} waits for {what}", agent.name);
            if f.label.is_empty() {
                f.label = text;
            } else {
                f = f.also(agent.span, text);
            }
        }
        f.help("every slot that is filled must be read and given back, as often on both sides")
    }

    /// Says where an agent was when something went wrong.
    fn annotate(&self, f: Box<Fault>, agent: &Agent, coords: &[i64]) -> Box<Fault> {
        let mut f = f.at(agent.span);
        let kernel = self.kernel;
        f.kernel.get_or_insert_with(|| kernel.name.clone());
        if f.block.is_empty() {
            let names = kernel.grid.locals.iter().map(|&l| kernel.body.locals[l].name.clone());
            f.block = names.zip(coords.iter().copied()).collect();
        }
        if let Some(epoch) = f.other_epoch.take() {
            let n = self.block_starts.partition_point(|&(start, _)| start <= epoch);
            if let Some(&(_, other)) = n.checked_sub(1).and_then(|i| self.block_starts.get(i)) {
                f = f.value("the other block", tuple_text(kernel, &self.coords(other)));
            }
        }
        let top = agent.top();
        let lane = f.lane.take().or_else(|| (top.width == 1).then_some(0));
        if let (Some(lane), true) = (lane, f.thread.is_empty()) {
            f.thread = agent.lane_names(kernel, lane);
        }
        if agent.id != 0 {
            f = f.note(format!("in {}", agent.name));
        }
        f
    }
}

fn tuple_text(kernel: &Kernel, coords: &[i64]) -> String {
    let names = kernel.grid.locals.iter().map(|&l| &kernel.body.locals[l].name);
    let parts: Vec<String> = names.zip(coords).map(|(n, v)| format!("{n} = {v}")).collect();
    format!("({})", parts.join(", "))
}
