//! Teams, rings, queues and turns: who works, and what orders them. Definitions: `docs/language.md`.

use super::{Combiner, Elem, Shape};
use crate::arena::Handle;
use crate::layout::Shared;

pub type TeamId = Handle<TeamDecl>;
pub type RingId = Handle<Ring>;
pub type QueueId = Handle<Queue>;
pub type TurnId = Handle<Turn>;

/// Ordered, disjoint sets of whole warps.
#[derive(Clone, Debug, PartialEq)]
pub struct TeamDecl {
    pub name: String,
    pub groups: u32,
    /// threads of a group; `None` takes the target's group size
    pub threads: Option<u32>,
    /// one elected thread does the work
    pub elected: bool,
    /// register quota of a thread
    pub regs: Option<u32>,
}

/// `slots` copies of a struct of tiles between one producer and one consumer team.
#[derive(Clone, Debug, PartialEq)]
pub struct Ring {
    pub name: String,
    pub slots: u32,
    pub producer: TeamId,
    pub consumer: TeamId,
    pub fields: Vec<RingField>,
    pub fill: Fill,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RingField {
    pub name: String,
    pub elem: Elem,
    /// empty for a scalar
    pub shape: Shape,
    pub layout: Option<Shared>,
    pub align: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fill {
    /// the copies' bytes complete the slot
    Counted,
    /// `commit` completes the slot after the writers' fence
    Generic,
    /// completion in the order of a copy queue
    Fifo(QueueId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    Matrix,
    Copy,
    Store,
}

/// First in, first out: `await q keep n` completes all groups but the `n` newest.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    pub name: String,
    pub team: TeamId,
    /// one queue for each group of the team
    pub per_group: bool,
    pub engine: Engine,
    pub max_keep: Option<u32>,
    pub per_thread_one: bool,
    pub read_completion: bool,
}

/// Mutual exclusion in cyclic order over a team's groups, group 0 first.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    pub name: String,
    pub team: TeamId,
}

/// A value that the members of an axis hold in parts; it is whole only once it was folded over them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Partial {
    /// `add` or `max`
    pub comb: Combiner,
    pub over: Spread,
}

/// What a split value is spread over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Spread {
    /// the blocks of a cluster
    Cluster,
    /// the groups of the team that holds it
    Groups,
    /// blocks of the grid
    Blocks,
}

impl Spread {
    pub const ALL: [Spread; 3] = [Spread::Cluster, Spread::Groups, Spread::Blocks];

    pub const fn name(self) -> &'static str {
        match self {
            Spread::Cluster => "cluster",
            Spread::Groups => "groups",
            Spread::Blocks => "blocks",
        }
    }

    pub fn from_name(name: &str) -> Option<Spread> {
        Spread::ALL.into_iter().find(|a| a.name() == name)
    }
}
