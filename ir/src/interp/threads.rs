//! Collectives over threads: allreduce, shuffles, votes, `once`, barriers.
//!
//! Threads stand in linear order, the last axis fastest; a warp is a run of consecutive threads.

use super::agent::{BarrierKey, LaneKind};
use super::combine::Folder;
use super::cx::Cx;
use super::eval::{index_lanes, scalar, under};
use super::fault::{Exec, fault, malformed};
use super::step::Step;
use super::value::{Lanes, Mask, Value};
use crate::codes;
use crate::program::*;
use std::borrow::Cow;

/// Threads of one collective, in the order of its fold.
type Group = Vec<u32>;

impl<'p> Cx<'_, 'p> {
    fn need_threads(&self, what: &str) -> Exec<()> {
        match self.agent.top().kind {
            LaneKind::Threads | LaneKind::Team => Ok(()),
            LaneKind::Iterations(_) => Err(fault(
                codes::DIVERGENT,
                format!("{what} stands inside a `parallel`, where there are no threads"),
            )),
        }
    }

    /// Threads of one instance of a team; the whole agent's where the team is that or larger.
    fn team_size(&self, team: Team) -> u32 {
        let width = self.agent.top().width;
        match team {
            Team::Warp => self.run.options.warp.max(1),
            Team::Group => self.run.options.group.max(1),
            Team::Block | Team::Cluster | Team::Named(_) => width,
        }
    }

    fn teams(&self, team: Team) -> Vec<Group> {
        let size = self.team_size(team);
        let mut groups: Vec<Group> = Vec::new();
        let mut last = None;
        for lane in self.agent.top().all.iter() {
            if last != Some(lane / size) {
                groups.push(Vec::new());
                last = Some(lane / size);
            }
            if let Some(group) = groups.last_mut() {
                group.push(lane);
            }
        }
        groups
    }

    fn groups(&self, over: &Over) -> Exec<Vec<Group>> {
        let axes = match over {
            Over::Team(team) => return Ok(self.teams(*team)),
            Over::Axes(axes) => axes,
        };
        let Some(threads) = &self.run.kernel.threads else {
            return Err(malformed("a thread axis in a kernel without threads"));
        };
        let mut positions = Vec::new();
        for &axis in axes {
            let at = threads.axes.iter().position(|&(l, _)| l == axis);
            positions.push(at.ok_or_else(|| malformed("`over` names no axis of `threads`"))?);
        }
        let mut keyed: Vec<(Vec<u32>, Vec<u32>, u32)> = Vec::new();
        for lane in self.agent.top().all.iter() {
            let mut rest = lane;
            let mut at = vec![0; threads.axes.len()];
            for (i, &(_, n)) in at.iter_mut().zip(&threads.axes).rev() {
                *i = rest % n;
                rest /= n;
            }
            let order = positions.iter().map(|&p| at[p]).collect();
            let kept = (0..at.len()).filter(|d| !positions.contains(d)).map(|d| at[d]).collect();
            keyed.push((kept, order, lane));
        }
        keyed.sort();
        let mut groups: Vec<Group> = Vec::new();
        let mut last = None;
        for (kept, _, lane) in keyed {
            if last.as_ref() != Some(&kept) {
                groups.push(Vec::new());
                last = Some(kept);
            }
            if let Some(group) = groups.last_mut() {
                group.push(lane);
            }
        }
        Ok(groups)
    }

    /// The groups that are here; each must be here as a whole.
    fn present(&self, groups: Vec<Group>, what: &str) -> Exec<Vec<Group>> {
        let mask = &self.agent.top().mask;
        let mut here = Vec::with_capacity(groups.len());
        for group in groups {
            let active = group.iter().filter(|&&l| mask.contains(l)).count();
            if active == group.len() {
                here.push(group);
            } else if active > 0 {
                let absent = group.iter().copied().find(|&l| !mask.contains(l)).unwrap_or(0);
                let message =
                    format!("only {active} of the {} threads that {what} joins come here", group.len());
                return Err(fault(codes::DIVERGENT, message)
                    .on(absent)
                    .note("the thread named is one that is absent")
                    .help("make the condition around it the same for all threads that it joins"));
            }
        }
        Ok(here)
    }

    /// A value for each thread, or one for all where a single group holds every thread.
    fn per_group(&self, groups: &[Group], values: Vec<u64>) -> Lanes {
        let top = self.agent.top();
        if let ([group], [value]) = (groups, &values[..])
            && group.len() == top.all.len()
        {
            return Lanes::One(*value);
        }
        let mut out = vec![0; top.width as usize];
        for (group, value) in groups.iter().zip(values) {
            for &lane in group {
                out[lane as usize] = value;
            }
        }
        Lanes::many(out)
    }

    pub fn allreduce(&mut self, comb: Combiner, inputs: &[ExprId], over: &Over) -> Exec<Vec<Value>> {
        self.need_threads("`allreduce`")?;
        let (mut values, mut elems) = (Vec::new(), Vec::new());
        for &e in inputs {
            values.push(scalar(self, e)?);
            elems.extend(self.run.kernel.body.type_of(e).elem());
        }
        let groups = self.present(self.groups(over)?, "`allreduce`")?;
        let folder = Folder::new(self.run.program, comb, elems);
        let identity = folder.identity()?;
        let mut out = vec![Vec::with_capacity(groups.len()); inputs.len()];
        for group in &groups {
            let mut runs = Vec::with_capacity(inputs.len());
            for (part, v) in values.iter().enumerate() {
                let run: Vec<u64> = group.iter().map(|&l| v.get(l)).collect();
                runs.push(folder.widen(part, Cow::Owned(run))?);
            }
            let mut acc = identity.clone();
            folder.run(&mut self.run.session, &mut acc, &runs).map_err(|f| f.fault.on(group[f.at]))?;
            for (part, v) in acc.into_iter().enumerate() {
                out[part].extend(folder.narrow(part, vec![v])?);
            }
        }
        Ok(out.into_iter().map(|run| Value::Scalar(self.per_group(&groups, run))).collect())
    }

    pub fn shuffle(
        &mut self,
        kind: ShuffleKind,
        value: ExprId,
        lane: ExprId,
        width: Option<u32>,
    ) -> Exec<Value> {
        self.need_threads("a shuffle")?;
        let by = index_lanes(self, lane)?;
        let value = scalar(self, value)?;
        let warp = self.run.options.warp.max(1);
        let size = width.unwrap_or(warp).clamp(1, warp);
        let mask = self.mask();
        let mut out = vec![0; self.agent.top().width as usize];
        for lane in mask.iter() {
            let (at, by) = (i64::from(lane % size), by.get(lane) as i64);
            let from = match kind {
                ShuffleKind::Index => by,
                ShuffleKind::Up => at.saturating_sub(by),
                ShuffleKind::Down => at.saturating_add(by),
                ShuffleKind::Xor => at ^ by,
            };
            let steps = matches!(kind, ShuffleKind::Up | ShuffleKind::Down);
            let inside = (0..i64::from(size)).contains(&from);
            if (steps && by < 0) || (!steps && !inside) {
                let message = format!("a shuffle names lane {by}, but its width is {size}");
                return Err(fault(codes::OUT_OF_BOUNDS, message).on(lane));
            }
            let source = if inside { lane - lane % size + from as u32 } else { lane };
            if !mask.contains(source) {
                let message = format!("a shuffle reads from thread {source}, which does not come here");
                return Err(fault(codes::INACTIVE_LANE, message).on(lane).help(
                    "run the shuffle on all threads of the warp, and guard what is done with its result",
                ));
            }
            out[lane as usize] = value.get(source);
        }
        Ok(Value::Scalar(Lanes::many(out)))
    }

    pub fn vote(&mut self, kind: VoteKind, cond: ExprId, team: Team) -> Exec<Value> {
        self.need_threads("a vote")?;
        let cond = scalar(self, cond)?;
        let groups = self.present(self.teams(team), "a vote")?;
        let mut values = Vec::with_capacity(groups.len());
        for group in &groups {
            let yes = || group.iter().filter(|&&l| cond.get(l) != 0);
            values.push(match kind {
                VoteKind::Any => u64::from(yes().next().is_some()),
                VoteKind::All => u64::from(yes().count() == group.len()),
                VoteKind::Ballot => {
                    if group.len() > 32 {
                        return Err(malformed("a ballot of more than 32 threads"));
                    }
                    yes().fold(0, |m, &l| m | 1 << (l - group[0]))
                }
            });
        }
        Ok(Value::Scalar(self.per_group(&groups, values)))
    }

    /// Evaluated on the first thread, given to all.
    pub fn once(&mut self, value: ExprId) -> Exec<Value> {
        self.need_threads("`once`")?;
        self.need_collective("`once`")?;
        let first = self.agent.top().all.lane(0);
        if self.agent.top().width == 1 {
            return eval_one(self, value);
        }
        let lanes = under(self, Mask::of(vec![first]), |s| scalar(s, value))?;
        Ok(Value::one(lanes.get(first)))
    }

    pub fn barrier(&mut self, team: Team) -> Exec<Step<'p>> {
        self.need_threads("a barrier")?;
        if self.agent.is_collective() {
            return match team {
                Team::Block | Team::Cluster => self.rendezvous(BarrierKey::Block),
                Team::Named(id) => self.rendezvous(BarrierKey::Team(id)),
                Team::Warp | Team::Group => Ok(Step::Ran),
            };
        }
        let groups = self.teams(team);
        self.present(groups, "a barrier")?;
        let epoch = self.run.next_epoch()?;
        let size = self.team_size(team);
        self.agent.epoch = epoch;
        self.agent.barriers.push((epoch, size));
        Ok(Step::Ran)
    }
}

fn eval_one(cx: &mut Cx, value: ExprId) -> Exec<Value> {
    scalar(cx, value).map(Value::Scalar)
}
