//! The syntax tree: what the parser reads and the formatter writes.
//!
//! It mirrors the text one to one (generics, `fn`, `param`, sugar, comments at the side) and means nothing by
//! itself; [`crate::elab`] gives it meaning by building typed IR. Only the text modules and `elab` may use it.

use crate::span::Span;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ident {
    pub name: String,
    pub span: Span,
}

/// A comment, kept for `fmt`. `///` doc comments are comments too.
#[derive(Clone, Debug, PartialEq)]
pub struct Comment {
    pub span: Span,
    /// The text with its slashes.
    pub text: String,
    /// Nothing but white space stands before it on its line.
    pub own_line: bool,
}

#[derive(Clone, Debug, Default)]
pub struct File {
    /// `stage threaded` at the top of a dump; `None` is source text.
    pub stage: Option<Ident>,
    pub items: Vec<Item>,
    pub comments: Vec<Comment>,
    /// Byte offsets where the lines of the text begin; empty for a tree that was not read from text. `fmt` uses
    /// it to keep blank lines and trailing comments where they were.
    pub lines: Vec<u32>,
}

#[derive(Clone, Debug)]
pub struct Item {
    pub kind: ItemKind,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum ItemKind {
    Use(Use),
    Const(ConstDecl),
    Fn(Fn),
    Kernel(Kernel),
    Op(Op),
    Combine(Combine),
    Intrinsic(Intrinsic),
    Test(Test),
}

/// `use "path"::{a, b}`
#[derive(Clone, Debug)]
pub struct Use {
    pub path: String,
    pub path_span: Span,
    pub names: Vec<Ident>,
}

/// `T: float`, `const N: int`, `const C: bool`, `E: fn = identity`
#[derive(Clone, Debug)]
pub struct Generic {
    pub name: Ident,
    pub kind: GenericKind,
    pub default: Option<Expr>,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GenericKind {
    Float,
    Float8,
    Int,
    DType,
    ConstInt,
    ConstBool,
    Fn,
}

/// A type as written.
#[derive(Clone, Debug)]
pub struct Type {
    pub kind: TypeKind,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum TypeKind {
    /// `f32`, `T`, `index`, `acc(T)`
    Elem(Elem),
    /// `tile f32[R, C]`
    Tile {
        elem: Elem,
        shape: Vec<Expr>,
    },
    /// `f16[VEC]` as a per-thread array or (in a parameter list) a tensor
    Array {
        elem: Elem,
        shape: Vec<Expr>,
    },
    /// `&shared f32[64, 72]`
    Shared {
        elem: Elem,
        shape: Vec<Expr>,
    },
    /// `reducer(add) f32[BM]`; `comb` names a built-in or user combiner
    Reducer {
        comb: Ident,
        value: Box<Type>,
    },
    Tuple(Vec<Type>),
}

#[derive(Clone, Debug)]
pub enum Elem {
    Name(Ident),
    Acc(Ident, Span),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    #[default]
    In,
    Out,
    InOut,
}

/// One kernel or op parameter: a tensor (`shape` is `Some`) or a scalar.
#[derive(Clone, Debug)]
pub struct Param {
    pub name: Ident,
    pub mode: Mode,
    pub elem: Elem,
    pub shape: Option<Vec<Expr>>,
    /// `strides (1, ldb)`
    pub strides: Option<Vec<Expr>>,
    /// `align 16`, bytes
    pub align: Option<Expr>,
    /// `base 16`, bytes
    pub base: Option<Expr>,
    /// `packed(K, order = linear)`
    pub packed: Option<Packed>,
    /// `prepacked(W, operand A)` as a marker on the parameter: `W: u4[N, K] prepacked(operand A)`
    pub prepacked: Option<Ident>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Packed {
    pub axis: Expr,
    pub order: Option<Ident>,
    pub span: Span,
}

/// `math exact | contract`, `deterministic`
#[derive(Clone, Debug, Default)]
pub struct Attrs {
    pub math: Option<Ident>,
    pub deterministic: Option<Span>,
}

#[derive(Clone, Debug)]
pub struct Fn {
    pub name: Ident,
    pub generics: Vec<Generic>,
    pub params: Vec<(Ident, Type)>,
    pub result: Option<Type>,
    pub body: Block,
}

#[derive(Clone, Debug)]
pub struct Kernel {
    pub name: Ident,
    pub generics: Vec<Generic>,
    pub params: Vec<Param>,
    pub attrs: Attrs,
    /// comma-separated conditions of the header's `where`
    pub wheres: Vec<Expr>,
    pub body: Block,
}

#[derive(Clone, Debug)]
pub struct Op {
    pub name: Ident,
    pub generics: Vec<Generic>,
    pub params: Vec<Param>,
    pub attrs: Attrs,
    pub wheres: Vec<Expr>,
    pub body: Block,
}

#[derive(Clone, Debug)]
pub struct Combine {
    pub name: Ident,
    pub params: Vec<(Ident, Type)>,
    pub result: Type,
    pub identity: Expr,
    /// `commutative` written after the identity
    pub commutative: bool,
    pub body: Block,
}

#[derive(Clone, Debug)]
pub struct Intrinsic {
    pub name: Ident,
    pub params: Vec<(Ident, Type)>,
    pub result: Type,
    pub means: Block,
    pub bound: Bound,
    pub spellings: Vec<Spelling>,
}

#[derive(Clone, Debug)]
pub struct Bound {
    /// `within N ulp` or `within abs X`
    pub value: Expr,
    pub ulp: bool,
    pub span: Span,
}

/// `cuda(sm_75..) "asm: …"`
#[derive(Clone, Debug)]
pub struct Spelling {
    pub backend: Ident,
    pub from: Ident,
    pub to: Option<Ident>,
    pub open_ended: bool,
    pub text: String,
    pub text_span: Span,
}

/// `test NAME { … }`
#[derive(Clone, Debug)]
pub struct Test {
    pub name: Ident,
    pub entries: Vec<TestEntry>,
}

#[derive(Clone, Debug)]
pub struct TestEntry {
    pub kind: TestKind,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum TestKind {
    /// `kernel gemm`: which item is tested, where the test's name does not begin with it
    Subject(Ident),
    /// `dims M = 33, N in [1, 100]`
    Dims(Vec<Choice>),
    /// `type T in [f16, f32]`
    Type(Vec<Choice>),
    /// `param BM = 64`, `const D = 64`
    Param(Vec<Choice>),
    /// `A = normal(seed 1) * 3 + 1000`, `eps = 1e-5`
    Input { name: Ident, value: Expr },
    /// `Y ~ ref(A, B) rtol 1e-2 atol 0` or `Y == ref(A, B)`
    Expect { name: Ident, exact: bool, reference: Expr, rtol: Option<Expr>, atol: Option<Expr> },
    /// `only cpu, interp`
    Only(Vec<Ident>),
}

#[derive(Clone, Debug)]
pub struct Choice {
    pub name: Ident,
    pub values: Vec<Expr>,
    /// written with `in [..]`
    pub list: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Block {
    pub stmts: Vec<Stmt>,
    /// The value of the block where it ends in an expression. Bodies that give no value (of kernels, ops, loops,
    /// roles, `if` statements) have none: there a last expression is a statement.
    pub tail: Option<Box<Expr>>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Stmt {
    pub kind: StmtKind,
    pub span: Span,
    /// `@stage(1, 0)` before the statement: pipeline stage and rank
    pub stage: Option<Box<(Expr, Expr)>>,
}

impl Stmt {
    pub fn new(kind: StmtKind, span: Span) -> Stmt {
        Stmt { kind, span, stage: None }
    }
}

/// `NAME = value`, in a `const` or a `param`
#[derive(Clone, Debug)]
pub struct ConstDecl {
    pub name: Ident,
    pub value: Expr,
}

#[derive(Clone, Debug)]
pub struct ParamDecl {
    pub name: Ident,
    pub default: Expr,
    pub range: Option<ParamRange>,
    /// `for { mp_31: 4 }`
    pub per_target: Vec<(Ident, Expr)>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum ParamRange {
    Span { lo: Expr, hi: Expr, step: Option<Expr> },
    List(Vec<Expr>),
}

#[derive(Clone, Debug)]
pub struct Range {
    pub lo: Expr,
    pub hi: Expr,
    pub step: Option<Expr>,
    pub span: Span,
}

/// A range of a loop with constants of its own: `0..n`, or a part of `seg(0..m: mask = true; m..n: mask = false)`
#[derive(Clone, Debug)]
pub struct Segment {
    pub range: Range,
    pub consts: Vec<Named>,
}

#[derive(Clone, Debug)]
pub enum LoopKind {
    Serial,
    Const,
    Unroll,
    NoUnroll,
    Vectorized,
    /// `pipelined(range, stages = n)`
    Pipelined {
        stages: Option<Expr>,
    },
    /// `for const v in [1, 2, 4]`, `for t in tiles`: runs over the elements of `of`; there is no segment then
    Each {
        of: Expr,
        is_const: bool,
    },
}

#[derive(Clone, Debug)]
pub enum Pattern {
    Name(Ident),
    /// `t @ shared align 128`
    Placed(Ident, Box<Placement>),
    /// `_`
    Ignore(Span),
    Tuple(Vec<Pattern>, Span),
}

/// Where something lives, as the plan decides: `shared xor<3, 4, 3> align 1024`, `fragment over math`. Behind `@` for
/// values, behind the declaration for memory.
#[derive(Clone, Debug)]
pub struct Placement {
    pub home: Option<Home>,
    /// `xor<3, 4, 3>`, else a layout as it stands between the quotes of `layout "…"`
    pub layout: Option<String>,
    pub align: Option<Expr>,
    /// the team that holds it
    pub over: Option<Ident>,
    /// `partial(add, cluster)`: combiner and axis
    pub partial: Option<(Ident, Ident)>,
    pub span: Span,
}

impl Placement {
    pub fn none(span: Span) -> Placement {
        Placement { home: None, layout: None, align: None, over: None, partial: None, span }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Home {
    /// a block's memory
    Shared,
    /// registers of a team
    Fragment,
    /// a thread's array
    Thread,
    /// a processor's scratch
    Scratch,
    /// nowhere: read in place by its user
    Direct,
    /// a ring's slots
    Ring(Ident),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssignOp {
    /// `=`
    Set,
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    /// `op=` on a reducer
    Fold,
}

/// `carry (held: slot(ab)? = none)`
#[derive(Clone, Debug)]
pub struct Carry {
    pub name: Ident,
    pub ring: Ident,
    pub optional: bool,
    pub init: Expr,
}

#[derive(Clone, Debug)]
pub enum StmtKind {
    // declarations of the kernel's frame
    Param {
        decls: Vec<ParamDecl>,
        filter: Option<Expr>,
    },
    Const(Vec<ConstDecl>),
    Grid {
        extents: Vec<Expr>,
        names: Vec<Ident>,
        cost: Option<Expr>,
    },
    Threads {
        extents: Vec<Expr>,
        names: Vec<Ident>,
        ordered: bool,
    },
    StaticAssert {
        cond: Expr,
        message: Option<String>,
    },
    Plan(Vec<PlanEntry>),

    // values and memory
    Let {
        pattern: Pattern,
        ty: Option<Type>,
        value: Expr,
        options: Vec<Named>,
    },
    Var {
        pattern: Pattern,
        ty: Option<Type>,
        value: Option<Expr>,
        options: Vec<Named>,
    },
    /// `shared t: f16[64, 72] align 128`, `fragment c: f32[64, 64] over math`; `place` names the home
    Memory {
        name: Ident,
        elem: Elem,
        shape: Vec<Expr>,
        place: Placement,
    },
    Assign {
        place: Expr,
        op: AssignOp,
        value: Expr,
        options: Vec<Named>,
    },

    // control
    If {
        is_const: bool,
        cond: Expr,
        then: Block,
        other: Option<Block>,
    },
    For {
        var: Ident,
        kind: LoopKind,
        segments: Vec<Segment>,
        carry: Vec<Carry>,
        body: Block,
    },
    While {
        cond: Expr,
        body: Block,
    },
    Parallel {
        names: Vec<Ident>,
        extents: Vec<Expr>,
        body: Block,
    },
    Break,
    Continue,

    /// An expression evaluated for its effect: `atomic_add(…)`, `print(…)`, `assert(…)`, `barrier`
    Expr(Expr),
    /// `barrier`, `barrier warp`
    Barrier {
        team: Option<Ident>,
    },
    /// Statement forms `copy a -> b`, `gemm a, b -> c`, `reduce(add, s, axis = 1) -> m`, `scan(…) -> t`
    Form(Form),

    // teams and tokens
    Team(TeamDecl),
    Ring(RingDecl),
    Queue(QueueDecl),
    Turn {
        name: Ident,
        team: Ident,
        groups: bool,
    },
    Role {
        team: Ident,
        group: Option<Ident>,
        body: Block,
    },
    Commit(Ident),
    Release(Ident),
    Await {
        queue: Ident,
        keep: Expr,
    },
    Take(Ident),
    Pass(Ident),
    Next(Ident),

    // op bodies
    Workspace {
        name: Ident,
        elem: Elem,
        shape: Vec<Expr>,
        zeroed: bool,
    },
    Launch {
        kernel: Ident,
        generics: Vec<GenericArg>,
        args: Vec<Expr>,
        params: Vec<Named>,
    },
}

#[derive(Clone, Debug)]
pub enum Form {
    /// `copy a -> b`, `copy.async a pad 0 -> w.a`, `issue st: copy t -> C[…]`
    Copy { asynchronous: bool, queue: Option<Ident>, from: Expr, to: Expr, pad: Option<Expr> },
    /// `issue mm: gemm a, b -> c (init = cond)`; without a queue it is synchronous
    Gemm { queue: Option<Ident>, a: Expr, b: Expr, to: Expr, init: Option<Expr>, options: Vec<Named> },
    /// `reduce(…) -> m` and `scan(…) -> t`: a call and its targets
    Call { call: Expr, to: Vec<Expr> },
}

/// `team math: 2 groups of 128 { regs 232 }`; `team load: 1 thread of 1 group`
#[derive(Clone, Debug)]
pub struct TeamDecl {
    pub name: Ident,
    pub groups: Expr,
    /// threads of a group
    pub threads: Option<Expr>,
    /// one elected thread does the work
    pub elected: bool,
    pub regs: Option<Expr>,
}

/// `ring ab[4] load -> math { a: shared f16[128, 64], … } fill counted`
#[derive(Clone, Debug)]
pub struct RingDecl {
    pub name: Ident,
    pub slots: Expr,
    pub producer: Ident,
    pub consumer: Ident,
    pub fields: Vec<RingField>,
    pub fill: Fill,
}

#[derive(Clone, Debug)]
pub struct RingField {
    pub name: Ident,
    pub elem: Elem,
    /// empty for a scalar
    pub shape: Vec<Expr>,
    /// `xor<3, 4, 3>`, else a layout as it stands between the quotes of `layout "…"`
    pub layout: Option<String>,
    pub align: Option<Expr>,
}

#[derive(Clone, Debug)]
pub enum Fill {
    Counted,
    Generic,
    Fifo(Ident),
}

/// `queue mm of math.group: matrix, keep <= 7`
#[derive(Clone, Debug)]
pub struct QueueDecl {
    pub name: Ident,
    pub team: Ident,
    pub per_group: bool,
    pub engine: Ident,
    pub keep: Option<Expr>,
    pub options: Vec<Ident>,
}

/// One line of `plan { … }`: `key(subject) = value` with a note on the alternatives.
#[derive(Clone, Debug)]
pub struct PlanEntry {
    pub key: Ident,
    pub subject: Option<Ident>,
    pub value: Expr,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Named {
    pub name: Ident,
    pub value: Expr,
}

#[derive(Clone, Debug)]
pub enum GenericArg {
    Positional(Expr),
    Named(Named),
}

#[derive(Clone, Debug)]
pub struct Expr {
    pub kind: ExprKind,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    Neg,
    /// `!`: logical on bool, bitwise on integers
    Not,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOp {
    OrOr,
    AndAnd,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    BitOr,
    BitXor,
    BitAnd,
    Shl,
    Shr,
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    /// `@`, on the level of `*`
    MatMul,
}

#[derive(Clone, Debug)]
pub enum ExprKind {
    /// Digits as written: `128`, `0x7f`, `1_000`
    Int(String),
    /// `1e-30`, `0.5`
    Float(String),
    Bool(bool),
    Str(String),
    /// A bare name: variable, dim, constant, `inf`, `none`, a type or function used as a value
    Name(Ident),
    /// `acc(T)` used as an expression, as in the cast `acc(T)(x)`; a named type (`f16`, `T`) is a `Name`
    Elem(Elem),
    Unary(UnaryOp, Box<Expr>),
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `x[i] or 0`
    Or(Box<Expr>, Box<Expr>),
    /// `A[…] pad 0`
    Pad(Box<Expr>, Box<Expr>),
    /// `A[i, j +: n, :]`
    Index(Box<Expr>, Vec<AxisIndex>),
    /// `a.0`, `q.T`, `target.warp`, `w.a`, `exp2.approx`
    Field(Box<Expr>, Ident),
    /// `f(x, axis = 1)`, `f<…>(x)`, `T(x)`, `T.sat(x)`
    Call {
        callee: Box<Expr>,
        generics: Vec<GenericArg>,
        args: Vec<Arg>,
    },
    Tuple(Vec<Expr>),
    /// compile-time list `[1, 2, 4]`
    List(Vec<Expr>),
    If {
        is_const: bool,
        cond: Box<Expr>,
        then: Block,
        other: Block,
    },
    Block(Block),
    /// `once { e }`
    Once(Block),
    /// `zeros f32[BM, BN]`, `full f32[BM](-inf)`
    Fill {
        value: Option<Box<Expr>>,
        elem: Elem,
        shape: Vec<Expr>,
    },
    /// `acquire ab`, `wait ab`
    Acquire(Ident),
    Wait(Ident),
    /// `D in [64, 128]`
    In(Box<Expr>, Box<Expr>),
    /// `seed 1` inside `normal(seed 1)`
    Keyed(Ident, Box<Expr>),
    /// Stands where the parser could not read an expression; an error was reported.
    Error,
}

#[derive(Clone, Debug)]
pub struct Arg {
    pub name: Option<Ident>,
    pub value: Expr,
}

#[derive(Clone, Debug)]
pub enum AxisIndex {
    /// `e`, drops the axis; an index tile gathers
    At(Expr),
    /// `e +: n [limit m] [clip low]`
    Extent { start: Expr, len: Expr, limit: Option<Expr>, clip_low: bool, span: Span },
    /// `a..b`
    Range { lo: Expr, hi: Expr, span: Span },
    /// `:`
    Full(Span),
    /// `_`
    New(Span),
}
