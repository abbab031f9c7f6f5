//! Ops: which function does which, and what happens to the results.

use super::cx::Cx;
use super::eval::{eval, scalar};
use super::eval_tile::bounds_text;
use super::fault::{Exec, fault, malformed};
use super::step::Step;
use super::tile::Tile;
use super::value::{Lanes, Value};
use crate::codes;
use crate::num;
use crate::program::*;
use std::rc::Rc;

/// Lines that a run keeps; more are counted.
const MOST_PRINTS: usize = 10_000;

impl<'p> Cx<'_, 'p> {
    pub fn op(&mut self, results: &[LocalId], op: &'p Op) -> Exec<Step<'p>> {
        let values = match op {
            Op::Read { from, pad } => vec![Value::Tile(Rc::new(self.read(from, *pad)?))],
            Op::Reduce { comb, inputs, axis } => self.reduce(*comb, inputs, *axis)?,
            Op::Scan { comb, inputs, axis, reverse, exclusive } => {
                self.scan(*comb, inputs, usize::from(*axis), *reverse, *exclusive)?
            }
            Op::Join { reducer } => self.join_reducer(*reducer)?,
            Op::AllReduce { comb, inputs, over } => self.allreduce(*comb, inputs, over)?,
            Op::Shuffle { kind, value, lane, width } => vec![self.shuffle(*kind, *value, *lane, *width)?],
            Op::Vote { kind, cond, team } => vec![self.vote(*kind, *cond, *team)?],
            Op::Once { value } => vec![self.once(*value)?],
            Op::Atomic { op, at: Place::Element { mem, index }, value, expected } => {
                vec![self.atomic_element(*op, *mem, index, *value, *expected)?]
            }
            Op::Acquire { ring } | Op::Wait { ring } => {
                let token = match op {
                    Op::Acquire { .. } => self.acquire(*ring)?,
                    _ => self.wait(*ring)?,
                };
                let (Some(token), [local]) = (token, results) else {
                    return if token.is_none() { Ok(Step::Blocked) } else { Err(wrong_results()) };
                };
                self.put_token(*local, Some(token))?;
                return Ok(Step::Ran);
            }
            other => return self.effect(other),
        };
        if results.is_empty() && matches!(op, Op::Atomic { .. }) {
            return Ok(Step::Ran);
        }
        if values.len() != results.len() {
            return Err(wrong_results());
        }
        for (&local, value) in results.iter().zip(values) {
            self.not_in_flight(local)?;
            self.define(local, value);
        }
        Ok(Step::Ran)
    }

    /// Ops without results.
    fn effect(&mut self, op: &'p Op) -> Exec<Step<'p>> {
        match op {
            Op::Write { to, value } => self.write(to, *value)?,
            Op::Gemm { a, b, into, init, precision } => self.gemm(*a, *b, *into, *init, *precision)?,
            Op::Fold { reducer, index, values } => self.fold(*reducer, index, values)?,
            Op::Atomic { op, at: Place::Region(region), value, .. } => {
                self.atomic_region(*op, region, *value)?
            }
            Op::Print { parts } => self.print(parts)?,
            Op::Assert { cond, message } => self.assert(*cond, message)?,
            Op::Barrier { team } => return self.barrier(*team),
            Op::Commit { token } => self.commit(*token)?,
            Op::Release { token } => self.release(*token)?,
            Op::Await { queue, keep } => self.await_queue(*queue, *keep)?,
            Op::Take { turn } => return self.take_turn(*turn),
            Op::Pass { turn } => self.pass_turn(*turn)?,
            Op::CopyAsync { from, to, pad, queue } => self.copy_async(from, to, *pad, *queue)?,
            Op::Issue { queue, a, b, into, init, precision } => {
                self.issue(*queue, a, b, *into, *init, *precision)?
            }
            // Every access is visible at once here; fences order what only hardware reorders.
            Op::Fence { .. } => {}
            _ => return Err(malformed("an op that gives a value stands where none is taken")),
        }
        Ok(Step::Ran)
    }

    fn print(&mut self, parts: &[Text]) -> Exec<()> {
        let body = &self.run.kernel.body;
        let mut values = Vec::with_capacity(parts.len());
        for part in parts {
            values.push(match part {
                Text::Str(_) => None,
                Text::Value(e) => Some((eval(self, *e)?, body.type_of(*e).elem())),
            });
        }
        let varies = values.iter().any(|v| matches!(v, Some((Value::Scalar(Lanes::Many(_)), _))));
        let mask = Cx::mask(self);
        let lanes: Vec<u32> = if varies { mask.iter().collect() } else { mask.iter().take(1).collect() };
        for lane in lanes {
            let mut line = String::new();
            for (part, value) in parts.iter().zip(&values) {
                match (part, value) {
                    (Text::Str(s), _) => line += s,
                    (_, Some((Value::Scalar(v), Some(elem)))) => {
                        line += &num::print_value(*elem, v.get(lane))
                    }
                    (_, Some((Value::Tile(t), _))) => line += &tile_text(t),
                    _ => line += "?",
                }
            }
            if self.run.session.prints.len() < MOST_PRINTS {
                self.run.session.prints.push(line);
            } else {
                self.run.session.more_prints += 1;
            }
        }
        Ok(())
    }

    fn assert(&mut self, cond: ExprId, message: &str) -> Exec<()> {
        let cond = scalar(self, cond)?;
        match Cx::mask(self).iter().find(|&l| cond.get(l) == 0) {
            None => Ok(()),
            Some(lane) => {
                let text = if message.is_empty() { "an assertion failed" } else { message };
                Err(fault(codes::ASSERT_FAILED, text).on(lane).label("this is false"))
            }
        }
    }
}

fn wrong_results() -> Box<super::Fault> {
    malformed("an op with the wrong number of results")
}

/// `[2, 3]: 1 2 3 4 5 6`, with the valid box where it is not full.
fn tile_text(t: &Tile) -> String {
    let shape: Vec<String> = t.shape.iter().map(|n| n.to_string()).collect();
    let mut text = format!("[{}]", shape.join(", "));
    if !t.is_full() {
        text += &format!(" valid {}", bounds_text(&t.valid));
    }
    text += ":";
    for &v in t.data.iter().take(PRINTED) {
        text += " ";
        text += &num::print_value(t.elem, v);
    }
    if t.data.len() > PRINTED {
        text += " ...";
    }
    text
}
