//! Roles: agents of one block that take turns on one thread, in one function.
//!
//! Every role (and every group of a role that names its groups) is code of its own inside the kernel's function, with
//! a stack slot that says where it goes on. An agent runs until what it waits for is not there; then it notes its
//! place and jumps to the next agent, which goes on through a switch over its places. A round in which nobody moved is
//! a deadlock, which stops the kernel. What an agent holds across such a place stands in stack slots or scratch, never
//! in a register: the way into the middle of a loop is the switch. So an agent needs no stack of its own, and code
//! that is loaded from a file needs nothing from its host.

use super::emit::{Int, Ptr};
use super::error::Result;
use super::frame::{Frame, Place};
use super::rings::groups_of;
use super::value::{Val, scratch_bytes};
use inkwell::basic_block::BasicBlock;
use pantile_ir::codes;
use pantile_ir::program::{
    Block, BufferId, Elem, Expr, ExprId, Kernel, LocalId, LocalKind, Op, Role, StmtKind, Team, TeamId, walk,
};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Threads that run code together.
#[derive(Clone, Copy, Debug)]
pub struct Crew {
    pub from: u32,
    pub to: u32,
    /// The code works thread by thread, not as one.
    pub threaded: bool,
}

impl Crew {
    pub fn of(kernel: &Kernel) -> Crew {
        Crew {
            from: 0,
            to: kernel.threads.as_ref().map_or(1, |t| t.count()),
            threaded: kernel.threads.is_some(),
        }
    }
}

/// Whose code is being made.
pub struct Agent<'c> {
    pub name: String,
    pub team: Option<TeamId>,
    pub group: Option<u32>,
    /// Teams of all that run side by side, this one included.
    beside: Vec<TeamId>,
    /// `None` where nobody else could go on instead.
    post: Option<Rc<Post<'c>>>,
    /// Names of the block that this agent has to itself, with the mark that they were assigned.
    marks: HashMap<LocalId, Ptr<'c>>,
}

impl Agent<'_> {
    pub fn block() -> Self {
        Agent {
            name: "the block".into(),
            team: None,
            group: None,
            beside: Vec::new(),
            post: None,
            marks: HashMap::new(),
        }
    }
}

/// Where an agent stands while others run.
struct Post<'c> {
    /// 0 before it begins, `DONE` when it has ended, else 1 + the number of the place where it waits.
    state: Ptr<'c>,
    /// The fault of waiting there for ever.
    stuck: Ptr<'c>,
    /// Set when some agent goes on; one for all.
    moved: Ptr<'c>,
    /// The next agent.
    next: BasicBlock<'c>,
    places: RefCell<Vec<BasicBlock<'c>>>,
}

const DONE: i64 = -1;

/// One agent to be.
struct Plan<'r> {
    role: &'r Role,
    group: Option<u32>,
    name: String,
    crew: Crew,
    /// Names that its body declares.
    own: HashSet<LocalId>,
    uses: HashSet<LocalId>,
    assigns: HashSet<LocalId>,
}

/// What is set up for an agent before the first of them begins.
struct Prepared<'c> {
    /// The name of its number.
    group: Option<(LocalId, Place<'c>)>,
    privates: Vec<Private<'c>>,
}

/// A name of the block as one agent has it.
struct Private<'c> {
    local: LocalId,
    outer: Place<'c>,
    place: Place<'c>,
    mark: Ptr<'c>,
}

impl<'a, 'c> Frame<'a, 'c> {
    /// `role` statements that run side by side.
    pub fn roles(&self, roles: &[Role]) -> Result<()> {
        let e = self.e;
        let plans = self.plans(roles);
        self.admit_readers(roles);
        let moved = e.alloca(e.i64(), "moved");
        e.store(moved, e.int(0), 8);
        let turns: Vec<_> = plans.iter().map(|_| e.block("turn")).collect();
        let round = e.block("round");
        let mut posts = Vec::with_capacity(plans.len());
        let mut prepared = Vec::with_capacity(plans.len());
        for (i, plan) in plans.iter().enumerate() {
            let (state, stuck) = (e.alloca(e.i64(), "state"), e.alloca(e.i64(), "stuck"));
            e.store(state, e.int(0), 8);
            e.store(stuck, e.int(0), 8);
            let next = turns.get(i + 1).copied().unwrap_or(round);
            posts.push(Rc::new(Post { state, stuck, moved, next, places: RefCell::default() }));
            prepared.push(self.prepare(plan, &plans)?);
        }
        e.jump(turns.first().copied().unwrap_or(round));
        for ((plan, mine), (post, &turn)) in plans.iter().zip(&prepared).zip(posts.iter().zip(&turns)) {
            let start = e.block("role");
            e.b.position_at_end(start);
            e.store(moved, e.int(1), 8);
            self.run_agent(plan, &plans, mine, post)?;
            e.store(post.state, e.int(DONE), 8);
            e.jump(post.next);
            e.b.position_at_end(turn);
            let mut places = vec![(e.int(0), start)];
            places.extend((1..).map(|k| e.int(k)).zip(post.places.borrow().iter().copied()));
            e.b.build_switch(e.load_int(post.state), post.next, &places).unwrap();
        }
        e.b.position_at_end(round);
        self.end_round(&posts, moved, turns.first().copied().unwrap_or(round));
        for (plan, mine) in plans.iter().zip(&prepared) {
            mine.privates.iter().try_for_each(|p| self.give_back(p, plan.crew))?;
        }
        self.here.set(None);
        self.check_turns();
        Ok(())
    }

    /// After the last agent: the end, another round, or nobody moved.
    fn end_round(&self, posts: &[Rc<Post<'c>>], moved: Ptr<'c>, again: BasicBlock<'c>) {
        let e = self.e;
        let mut fault = e.int(0);
        for post in posts.iter().rev() {
            let done = e.eq(e.load_int(post.state), e.int(DONE));
            fault = e.select(done, fault.into(), e.load_int(post.stuck).into()).into_int_value();
        }
        let all = posts.iter().map(|p| e.eq(e.load_int(p.state), e.int(DONE))).reduce(|a, b| e.and(a, b));
        let (join, more) = (e.block("join"), e.block("more"));
        e.jump_if(all.unwrap_or(e.bool(true)), join, more);
        e.b.position_at_end(more);
        self.go_on_if(e.eq(e.load_int(moved), e.int(1)), fault);
        e.store(moved, e.int(0), 8);
        e.jump(again);
        e.b.position_at_end(join);
    }

    fn plans<'r>(&self, roles: &'r [Role]) -> Vec<Plan<'r>> {
        let whole = Crew::of(self.kernel);
        let mut plans = Vec::new();
        for role in roles {
            let team = &self.kernel.teams[role.team];
            let groups = groups_of(role, team);
            let threaded = whole.threaded && names_threads(self.kernel, &role.body);
            let size = team.threads.unwrap_or(whole.to / groups).max(1);
            let mut own = declared(&role.body);
            own.extend(role.group);
            let uses = used(self.kernel, &role.body);
            let mut assigns = assigned(&role.body);
            assigns.retain(|l| !own.contains(l));
            for g in 0..groups {
                let crew = if threaded && groups > 1 {
                    Crew { from: (g * size).min(whole.to), to: ((g + 1) * size).min(whole.to), threaded }
                } else {
                    Crew { threaded, ..whole }
                };
                let group = role.group.map(|_| g);
                let name = match group {
                    Some(g) => format!("role `{}`, group {g}", team.name),
                    None => format!("role `{}`", team.name),
                };
                let (own, uses, assigns) = (own.clone(), uses.clone(), assigns.clone());
                plans.push(Plan { role, group, name, crew, own, uses, assigns });
            }
        }
        plans
    }

    fn run_agent(
        &self,
        plan: &Plan<'_>,
        plans: &[Plan<'_>],
        mine: &Prepared<'c>,
        post: &Rc<Post<'c>>,
    ) -> Result<()> {
        let places = self.places.borrow().clone();
        {
            let mut here = self.places.borrow_mut();
            here.retain(|l, _| !plan.own.contains(l));
            here.extend(mine.group.clone());
            here.extend(mine.privates.iter().map(|p| (p.local, p.place.clone())));
        }
        let buffers = buffers(&plan.role.body);
        self.buffers.borrow_mut().retain(|b, _| !buffers.contains(b));
        let agent = Agent {
            name: plan.name.clone(),
            team: Some(plan.role.team),
            group: plan.group,
            beside: plans.iter().map(|p| p.role.team).collect(),
            post: Some(post.clone()),
            marks: mine.privates.iter().map(|p| (p.local, p.mark)).collect(),
        };
        let agent = self.agent.replace(agent);
        let crew = self.crew.replace(plan.crew);
        let loops = self.loops.take();
        let result = self.crew_block(&plan.role.body, &|l| plan.own.contains(&l));
        self.loops.replace(loops);
        self.crew.set(crew);
        self.agent.replace(agent);
        self.places.replace(places);
        result
    }

    /// Goes on once `ready` holds; until then the other agents run.
    pub fn wait_until(&self, what: &str, ready: &dyn Fn() -> Int<'c>) {
        let e = self.e;
        let (name, post) = {
            let agent = self.agent.borrow();
            (agent.name.clone(), agent.post.clone())
        };
        let stuck = self.fault(codes::DEADLOCK, format!("{name} waits for {what}, and nobody can go on"));
        let Some(post) = post else { return self.go_on_if(ready(), stuck) };
        let (check, stay, on) = (e.block("check"), e.block("stay"), e.block("on"));
        e.jump(check);
        e.b.position_at_end(check);
        e.jump_if(ready(), on, stay);
        e.b.position_at_end(stay);
        post.places.borrow_mut().push(check);
        e.store(post.state, e.int(post.places.borrow().len() as i64), 8);
        e.store(post.stuck, stuck, 8);
        e.jump(post.next);
        e.b.position_at_end(on);
        e.store(post.moved, e.int(1), 8);
    }

    /// A barrier that several agents share; alone, an agent passes.
    pub fn barrier(&self, team: Team) {
        let (mine, beside) = {
            let agent = self.agent.borrow();
            (agent.team, agent.beside.clone())
        };
        let expected = match team {
            Team::Warp | Team::Group => return,
            Team::Block | Team::Cluster => beside.len(),
            Team::Named(id) if beside.is_empty() || mine == Some(id) => {
                beside.iter().filter(|&&t| t == id).count()
            }
            Team::Named(_) => {
                let message = "a barrier of a team that this role does not belong to".into();
                return self.go_on_if(self.e.bool(false), self.fault(codes::NOT_VERIFIED, message));
            }
        };
        if expected <= 1 {
            return;
        }
        let e = self.e;
        let meeting = self.engines.meeting(if let Team::Named(id) = team { Some(id) } else { None });
        let mine = e.alloca(e.i64(), "arrived");
        e.store(mine, e.load_int(meeting.round), 8);
        e.count(meeting.arrived, e.int(1));
        let last = e.eq(e.load_int(meeting.arrived), e.int(expected as i64));
        e.if_(
            last,
            || {
                e.store(meeting.arrived, e.int(0), 8);
                e.count(meeting.round, e.int(1));
            },
            || {},
        );
        self.wait_until("the other roles at a barrier", &|| {
            let same = e.eq(e.load_int(mine), e.load_int(meeting.round));
            self.not(same)
        });
    }

    // ---- names of the block

    /// A statement is about to assign this name.
    pub fn changes(&self, local: LocalId) {
        if let Some(&mark) = self.agent.borrow().marks.get(&local) {
            self.e.store(mark, self.e.int(1), 8);
        }
    }

    /// What an agent assigns is its own until the roles join, unless nobody else knows the name.
    fn prepare(&self, plan: &Plan<'_>, plans: &[Plan<'_>]) -> Result<Prepared<'c>> {
        let group = plan.role.group.zip(plan.group).map(|(local, g)| {
            let elem = self.kernel.body.locals[local].ty.elem().unwrap_or(Elem::Index);
            let p = self.e.alloca(self.e.reg_type(elem), "group");
            let number = self.e.convert(Val::index(self.e.int(g as i64)), elem, false);
            self.e.b.build_store(p, number.v).unwrap();
            (local, Place::Scalar(p))
        });
        let mut privates = Vec::new();
        let mut assigns: Vec<LocalId> = plan.assigns.iter().copied().collect();
        assigns.sort();
        for local in assigns {
            let outer = self.place(local);
            let as_one = matches!(outer, Place::PerThread(_)) && !plan.crew.threaded;
            if !as_one && plans.iter().filter(|p| p.uses.contains(&local)).count() == 1 {
                continue;
            }
            let mark = self.e.alloca(self.e.i64(), "assigned");
            self.e.store(mark, self.e.int(0), 8);
            let place = self.copy_of(local, &outer, as_one)?;
            privates.push(Private { local, outer, place, mark });
        }
        Ok(Prepared { group, privates })
    }

    /// A copy of a name with its present value; `as_one`: one value of what each thread has its own of.
    fn copy_of(&self, local: LocalId, outer: &Place<'c>, as_one: bool) -> Result<Place<'c>> {
        let e = self.e;
        let l = &self.kernel.body.locals[local];
        let elem = l.ty.elem().unwrap_or(Elem::Index);
        Ok(match outer {
            Place::Tile(from, bounds) => {
                let (to, own) = (self.new_tile(elem, &from.shape), self.new_box(from.shape.len()));
                let valid = self.load_box(bounds);
                self.copy_tile(from, &to, &valid)?;
                self.store_box(&own, &valid);
                Place::Tile(to, own)
            }
            Place::Scalar(from) => {
                let to = e.alloca(e.reg_type(elem), &l.name);
                let v = e.b.build_load(e.reg_type(elem), *from, "").unwrap();
                e.b.build_store(to, v).unwrap();
                Place::Scalar(to)
            }
            Place::PerThread(from) if as_one => {
                let to = e.alloca(e.reg_type(elem), &l.name);
                e.b.build_store(to, e.load_val(*from, elem, 1).v).unwrap();
                Place::Scalar(to)
            }
            Place::PerThread(from) => {
                let to = self.reserve(scratch_bytes(elem) as u64 * self.thread_count() as u64);
                self.each_element_of(elem, &|at| {
                    let v = e.load_val(e.offset(*from, at), elem, 1);
                    e.store_val(e.offset(to, at), v);
                });
                Place::PerThread(to)
            }
        })
    }

    /// Runs `f` with the offset in bytes of each thread's element of an array.
    fn each_element_of(&self, elem: Elem, f: &dyn Fn(Int<'c>)) {
        let e = self.e;
        let n = e.int(self.thread_count() as i64);
        e.for_(e.int(0), n, e.int(1), |t| f(e.mul(t, e.int(scratch_bytes(elem) as i64))));
    }

    /// The roles join: a name that this agent assigned keeps its value.
    fn give_back(&self, p: &Private<'c>, crew: Crew) -> Result<()> {
        let e = self.e;
        let assigned = e.eq(e.load_int(p.mark), e.int(1));
        let mut result = Ok(());
        e.if_(assigned, || result = self.copy_back(p, crew), || {});
        result
    }

    fn copy_back(&self, p: &Private<'c>, crew: Crew) -> Result<()> {
        let e = self.e;
        let elem = self.kernel.body.locals[p.local].ty.elem().unwrap_or(Elem::Index);
        match (&p.place, &p.outer) {
            (Place::Tile(from, own), Place::Tile(to, bounds)) => {
                let valid = self.load_box(own);
                self.copy_tile(from, to, &valid)?;
                self.store_box(bounds, &valid);
            }
            (Place::Scalar(from), Place::Scalar(to)) => {
                let v = e.b.build_load(e.reg_type(elem), *from, "").unwrap();
                e.b.build_store(*to, v).unwrap();
            }
            (Place::Scalar(from), Place::PerThread(to)) => {
                let v = Val::scalar(e.b.build_load(e.reg_type(elem), *from, "").unwrap(), elem);
                self.each_element_of(elem, &|at| e.store_val(e.offset(*to, at), v));
            }
            (Place::PerThread(from), Place::PerThread(to)) => {
                // threads that are not of the role get what its first one has
                let size = scratch_bytes(elem) as i64;
                let first = e.load_val(e.offset(*from, e.int(crew.from as i64 * size)), elem, 1);
                self.each_element_of(elem, &|at| e.store_val(e.offset(*to, at), first));
                let (lo, hi) = (e.int(crew.from as i64), e.int(crew.to as i64));
                e.for_(lo, hi, e.int(1), |t| {
                    let bytes = e.mul(t, e.int(size));
                    e.store_val(e.offset(*to, bytes), e.load_val(e.offset(*from, bytes), elem, 1));
                });
            }
            _ => {}
        }
        Ok(())
    }
}

/// Names that a block and those inside it declare.
fn declared(block: &Block) -> HashSet<LocalId> {
    let mut own = HashSet::new();
    walk(block, &mut |s| match &s.kind {
        StmtKind::Assign { .. } | StmtKind::Update { .. } => {}
        StmtKind::Op { results, .. } => own.extend(results.iter().copied()),
        other => own.extend(other.defines()),
    });
    own
}

fn assigned(block: &Block) -> HashSet<LocalId> {
    let mut all = HashSet::new();
    walk(block, &mut |s| match &s.kind {
        StmtKind::Assign { local, .. } | StmtKind::Update { local, .. } => {
            all.insert(*local);
        }
        StmtKind::Op { op: Op::Gemm { into, .. } | Op::Issue { into, .. }, .. } => {
            all.insert(*into);
        }
        _ => {}
    });
    all
}

/// Names that a block and those inside it read or give a value.
fn used(kernel: &Kernel, block: &Block) -> HashSet<LocalId> {
    let mut all = HashSet::new();
    walk(block, &mut |s| all.extend(s.kind.defines()));
    each_expr(kernel, block, &mut |x| {
        if let Expr::Local(l) = x {
            all.insert(*l);
        }
    });
    all
}

fn buffers(block: &Block) -> HashSet<BufferId> {
    let mut all = HashSet::new();
    walk(block, &mut |s| {
        if let StmtKind::Buffer { buffer } = s.kind {
            all.insert(buffer);
        }
    });
    all
}

/// Whether a role's body works thread by thread.
fn names_threads(kernel: &Kernel, block: &Block) -> bool {
    let mut found = false;
    walk(block, &mut |s| {
        if let StmtKind::Op { op, .. } = &s.kind {
            found |=
                matches!(op, Op::AllReduce { .. } | Op::Shuffle { .. } | Op::Vote { .. } | Op::Once { .. });
        }
    });
    each_expr(kernel, block, &mut |x| {
        if let Expr::Local(l) = x {
            found |= matches!(kernel.body.locals[*l].kind, LocalKind::Thread(_));
        }
    });
    found
}

/// Every expression that a block evaluates, once.
fn each_expr(kernel: &Kernel, block: &Block, f: &mut dyn FnMut(&Expr)) {
    let mut open: Vec<ExprId> = Vec::new();
    walk(block, &mut |s| s.kind.operands(|x| open.push(x)));
    let mut seen = HashSet::new();
    while let Some(x) = open.pop() {
        if seen.insert(x) {
            f(&kernel.body.exprs[x]);
            kernel.body.exprs[x].operands(|o| open.push(o));
        }
    }
}
