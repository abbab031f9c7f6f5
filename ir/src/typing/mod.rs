//! The type rules, in one place.
//!
//! [`type_of`] gives an expression its type, [`op_results`] an op the types of its results, [`check_stmt`] tells
//! whether a statement's operands fit. All three look one level deep: the operands of an expression have their
//! types already (see [`Body::types`]), blocks inside a statement are somebody else's to visit. A rule that needs
//! scopes, control flow or a target stands in `verify`, never here; nothing here changes a program.
//!
//! Nothing converts by itself: two operands have one element type, `index` and the integer types included.
//! Scalars join any tile; tiles have equal rank, an extent of 1 stretches.

mod decls;
mod error;
mod exprs;
mod memory;
mod ops;
pub(crate) mod rules;
mod stmts;

pub use decls::{check_arg, check_buffer, check_local, check_ring};
pub use error::TypeError;
pub use exprs::{const_index, literal_fits, normal, type_of};
pub use memory::{index_type_ok, mem_elem, mem_extents, mem_name, mem_rank, region_type};
pub use ops::{combiner_parts, op_results, product_elem};
pub use rules::{broadcast, check_shape};
pub use stmts::{check_body, check_stmt};

use crate::arena::{Arena, Handle};
use crate::program::*;

/// The most axes of a tensor or tile.
pub const MAX_RANK: usize = 8;
/// The most elements of a tile.
pub const MAX_ELEMENTS: u64 = 1 << 28;

/// Whose expressions are being typed.
#[derive(Clone, Copy)]
pub enum Frame<'a> {
    Kernel(&'a Kernel),
    Host(&'a Host),
    /// A combiner's or an intrinsic's function.
    Pure,
}

/// Everything a type rule may look at.
#[derive(Clone, Copy)]
pub struct Ctx<'a> {
    pub body: &'a Body,
    pub frame: Frame<'a>,
    pub combines: &'a Arena<Combine>,
    pub intrinsics: &'a Arena<Intrinsic>,
}

type Answer<T> = std::result::Result<T, TypeError>;

impl<'a> Ctx<'a> {
    pub fn kernel(program: &'a Program, kernel: &'a Kernel) -> Ctx<'a> {
        Ctx {
            body: &kernel.body,
            frame: Frame::Kernel(kernel),
            combines: &program.combines,
            intrinsics: &program.intrinsics,
        }
    }

    pub fn host(program: &'a Program, host: &'a Host) -> Ctx<'a> {
        Ctx {
            body: &host.body,
            frame: Frame::Host(host),
            combines: &program.combines,
            intrinsics: &program.intrinsics,
        }
    }

    pub fn pure(program: &'a Program, func: &'a PureFn) -> Ctx<'a> {
        Ctx {
            body: &func.body,
            frame: Frame::Pure,
            combines: &program.combines,
            intrinsics: &program.intrinsics,
        }
    }

    /// The type of an operand; a handle of another program is an error.
    pub fn ty(&self, e: ExprId) -> Answer<&'a Type> {
        self.body.types.get(e.index()).ok_or_else(|| TypeError::foreign("value"))
    }

    pub fn expr(&self, e: ExprId) -> Answer<&'a Expr> {
        self.body.exprs.get(e).ok_or_else(|| TypeError::foreign("value"))
    }

    pub fn local(&self, l: LocalId) -> Answer<&'a Local> {
        self.body.locals.get(l).ok_or_else(|| TypeError::foreign("name"))
    }

    pub fn arg(&self, id: ArgId) -> Answer<&'a Arg> {
        let args = match self.frame {
            Frame::Kernel(k) => &k.args,
            Frame::Host(h) => &h.args,
            Frame::Pure => return Err(TypeError::foreign("parameter")),
        };
        args.get(id).ok_or_else(|| TypeError::foreign("parameter"))
    }

    pub fn dim(&self, id: DimId) -> Answer<&'a Dim> {
        let dims = match self.frame {
            Frame::Kernel(k) => &k.dims,
            Frame::Host(h) => &h.dims,
            Frame::Pure => return Err(TypeError::foreign("dim")),
        };
        dims.get(id).ok_or_else(|| TypeError::foreign("dim"))
    }

    pub fn buffer(&self, id: BufferId) -> Answer<&'a Buffer> {
        self.of_kernel(|k| &k.buffers, id, "buffer")
    }

    pub fn reducer(&self, id: ReducerId) -> Answer<&'a Reducer> {
        self.of_kernel(|k| &k.reducers, id, "reducer")
    }

    pub fn ring(&self, id: RingId) -> Answer<&'a Ring> {
        self.of_kernel(|k| &k.rings, id, "ring")
    }

    pub fn queue(&self, id: QueueId) -> Answer<&'a Queue> {
        self.of_kernel(|k| &k.queues, id, "queue")
    }

    pub fn turn(&self, id: TurnId) -> Answer<&'a Turn> {
        self.of_kernel(|k| &k.turns, id, "turn")
    }

    pub fn team(&self, id: TeamId) -> Answer<&'a TeamDecl> {
        self.of_kernel(|k| &k.teams, id, "team")
    }

    pub fn combine(&self, id: CombineId) -> Answer<&'a Combine> {
        self.combines.get(id).ok_or_else(|| TypeError::foreign("combiner"))
    }

    pub fn intrinsic(&self, id: IntrinsicId) -> Answer<&'a Intrinsic> {
        self.intrinsics.get(id).ok_or_else(|| TypeError::foreign("intrinsic"))
    }

    fn of_kernel<T>(
        &self,
        of: impl Fn(&'a Kernel) -> &'a Arena<T>,
        id: Handle<T>,
        what: &str,
    ) -> Answer<&'a T> {
        match self.frame {
            Frame::Kernel(k) => of(k).get(id).ok_or_else(|| TypeError::foreign(what)),
            Frame::Host(_) | Frame::Pure => Err(TypeError::foreign(what)),
        }
    }
}
