//! `test` blocks as cases: every combination of dims, types, constants and params, with inputs and expectations.

use super::Elab;
use super::consts::Const;
use super::emit::FrameKind;
use super::library::{Entity, Library};
use super::names::suggest;
use super::request::{ArgInfo, Request, Setting};
use crate::ast::{self, Arg, BinaryOp, Choice, ExprKind, GenericKind, Ident, ItemKind, TestKind, UnaryOp};
use crate::codes;
use crate::diag::{Diagnostic, Diagnostics};
use crate::program::{ArgKind, BinOp, Body, Elem, Expr, ExprId, Host, MathFn};
use crate::span::{Sources, Span};
use crate::target::Targets;
use indexmap::IndexMap;

/// One run of a kernel or op: what is bound, what goes in, what must come out.
#[derive(Clone, Debug)]
pub struct TestCase {
    /// Name of the `test` block.
    pub name: String,
    /// What distinguishes the case within its block: `M = 33, T = f16`.
    pub label: String,
    pub span: Span,
    /// What to specialise; dims are not part of it.
    pub request: Request,
    pub dims: IndexMap<String, u64>,
    /// By parameter: every scalar, `in` and `inout` tensor.
    pub inputs: IndexMap<String, Input>,
    pub expects: Vec<Expectation>,
    /// Targets to which the case is limited; empty is all.
    pub only: Vec<String>,
}

/// How the elements of an input are made. Generators draw in row-major order of the elements.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    Normal {
        seed: u64,
    },
    /// In `lo..hi`.
    Uniform {
        lo: f64,
        hi: f64,
        seed: u64,
    },
    /// Whole numbers in `lo..hi`.
    Int {
        lo: i64,
        hi: i64,
        seed: u64,
    },
    /// 0, 1, 2, …
    Iota,
    Number(f64),
    Whole(i128),
    Neg(Box<Input>),
    Binary(InputOp, Box<Input>, Box<Input>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputOp {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
}

#[derive(Clone, Debug)]
pub struct Expectation {
    /// The tensor that is compared.
    pub tensor: String,
    /// `==`: bit for bit but for NaN and the sign of zero.
    pub exact: bool,
    pub reference: Reference,
    pub rtol: f64,
    /// Not written: `rtol` also counts relative to the size of all elements together.
    pub atol: Option<f64>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum Reference {
    /// The case's own request in f64.
    Widen,
    /// A kernel or op, run on inputs of the case.
    Run {
        request: Request,
        /// Parameter of the reference and what it is given.
        args: Vec<(String, Given)>,
        /// The reference's tensor that holds the expected values.
        result: String,
    },
    /// A function of tiles or scalars, applied to whole inputs.
    Call { function: String, args: Vec<Given> },
}

#[derive(Clone, Debug, PartialEq)]
pub enum Given {
    /// The input of this name, as it was before the run.
    Input(String),
    Number(f64),
    Whole(i128),
}

impl TestCase {
    /// Types and shapes of the entry's parameters under the case's dims. A dim that neither the case nor a
    /// constant tells is an error that names it.
    pub fn args(&self, host: &Host) -> Result<Vec<ArgInfo>, String> {
        let mut out = Vec::new();
        for (_, arg) in host.args.iter() {
            let (dtype, shape) = match &arg.kind {
                ArgKind::Scalar(elem) => (elem.dtype(), Vec::new()),
                ArgKind::Tensor(t) => {
                    let extents = t.dims.iter().map(|&d| self.extent(host, d)).collect::<Result<_, _>>();
                    (Some(t.elem), extents.map_err(|e| format!("{e} of `{}`", arg.name))?)
                }
            };
            out.push(ArgInfo { name: arg.name.clone(), dtype, shape });
        }
        Ok(out)
    }

    fn extent(&self, host: &Host, e: ExprId) -> Result<u64, String> {
        let name = |d| host.dims.get(d).map_or("", |d: &crate::program::Dim| d.name.as_str());
        let dim = |d| {
            self.dims
                .get(name(d))
                .copied()
                .ok_or_else(|| format!("the test gives no value for the dim `{}`", name(d)))
        };
        let n = value(&host.body, e, &dim)?;
        u64::try_from(n).map_err(|_| format!("an extent is {n}"))
    }

    /// The request of a reference, with the types and shapes of what it is given; `args` are the entry's own.
    pub fn reference_request(&self, expects: &Expectation, args: &[ArgInfo]) -> Option<Request> {
        match &expects.reference {
            Reference::Widen => Some(self.request.widen()),
            Reference::Call { .. } => None,
            Reference::Run { request, args: given, .. } => {
                let info = |(param, g): &(String, Given)| match g {
                    Given::Input(name) => {
                        let own = args.iter().find(|a| a.name == *name)?;
                        Some(ArgInfo { name: param.clone(), ..own.clone() })
                    }
                    _ => None,
                };
                Some(Request { args: Some(given.iter().filter_map(info).collect()), ..request.clone() })
            }
        }
    }
}

/// The value of an integer expression over dims.
fn value(
    body: &Body,
    e: ExprId,
    dim: &dyn Fn(crate::program::DimId) -> Result<u64, String>,
) -> Result<i128, String> {
    let go = |e: ExprId| value(body, e, dim);
    match &body.exprs[e] {
        Expr::Const { bits, .. } => Ok((*bits as i64).into()),
        Expr::Dim(d) => dim(*d).map(i128::from),
        Expr::Binary(op, a, b) => {
            let (a, b) = (go(*a)?, go(*b)?);
            match op {
                BinOp::Add => Ok(a + b),
                BinOp::Sub => Ok(a - b),
                BinOp::Mul => a.checked_mul(b).ok_or_else(|| "the extent overflows".into()),
                BinOp::Div if b != 0 => Ok(super::consts::floor_div(a, b)),
                BinOp::Rem if b != 0 => Ok(a - super::consts::floor_div(a, b) * b),
                _ => Err("an extent without a value".into()),
            }
        }
        Expr::Math { f, args, .. } => {
            let args = args.iter().map(|&a| go(a)).collect::<Result<Vec<_>, _>>()?;
            match (f, &args[..]) {
                (MathFn::CeilDiv, &[a, b]) if b != 0 => Ok(super::consts::ceil_div(a, b)),
                (MathFn::Min, &[a, b]) => Ok(a.min(b)),
                (MathFn::Max, &[a, b]) => Ok(a.max(b)),
                _ => Err("an extent without a value".into()),
            }
        }
        _ => Err("an extent that depends on more than dims".into()),
    }
}

/// Expands the main file's `test` blocks.
pub fn tests(lib: &Library, sources: &mut Sources) -> Result<Vec<TestCase>, Diagnostics> {
    let targets = Targets::shipped();
    let Some(arch) = targets.arch("reference").or_else(|| targets.archs().next()) else {
        return Ok(Vec::new());
    };
    let mut e = Elab::new(lib, arch, sources);
    let mut cases = Vec::new();
    for (_, item) in lib.main_items() {
        if let ItemKind::Test(t) = &item.kind {
            e.f.kind = FrameKind::Consts;
            cases.extend(e.test(t, item.span).unwrap_or_default());
        }
    }
    if e.errors > 0 { Err(e.diags) } else { Ok(cases) }
}

/// The most combinations of one `test` block.
const MAX_CASES: usize = 100_000;

/// One name that varies, with its values.
struct Axis {
    name: String,
    role: Role,
    values: Vec<Setting>,
}

#[derive(Clone, Copy, PartialEq)]
enum Role {
    Dim,
    Type,
    Const,
    Fn,
    Param,
}

struct Subject<'a> {
    name: &'a Ident,
    generics: &'a [ast::Generic],
    params: &'a [ast::Param],
}

impl<'a> Elab<'a> {
    pub(crate) fn test(&mut self, t: &'a ast::Test, span: Span) -> Option<Vec<TestCase>> {
        let before = self.errors();
        let subject = self.subject(t)?;
        let mut axes: Vec<Axis> = Vec::new();
        let mut inputs: IndexMap<String, Input> = IndexMap::new();
        let mut expects = Vec::new();
        let mut only = Vec::new();
        for entry in &t.entries {
            match &entry.kind {
                TestKind::Subject(_) => {}
                TestKind::Dims(c) => c.iter().for_each(|c| self.axis(c, Role::Dim, &subject, &mut axes)),
                TestKind::Type(c) => c.iter().for_each(|c| self.axis(c, Role::Type, &subject, &mut axes)),
                TestKind::Param(c) => c.iter().for_each(|c| self.axis(c, Role::Param, &subject, &mut axes)),
                TestKind::Input { name, value } => {
                    let known = subject.params.iter().any(|p| p.name.name == name.name);
                    if !known {
                        self.no_parameter(&subject, name);
                    }
                    if let Some(input) = self.input(value)
                        && inputs.insert(name.name.clone(), input).is_some()
                    {
                        let d = Diagnostic::error(
                            codes::TWICE,
                            name.span,
                            format!("`{}` is given twice", name.name),
                        );
                        self.report(d);
                    }
                }
                TestKind::Expect { .. } => expects.push(entry),
                TestKind::Only(names) => only.extend(names.iter().map(|n| n.name.clone())),
            }
        }
        // a slip in an input's name is told once
        if self.errors() == before {
            self.complete(&subject, &inputs, t);
        }
        if expects.is_empty() {
            let d = Diagnostic::error(codes::TEST, t.name.span, "the test expects nothing");
            self.report(d.help("say what must come out: `Y ~ widen rtol 1e-2`, or `Y == ref(X)`"));
        }
        let expects: Vec<Option<Expectation>> =
            expects.iter().map(|e| self.expectation(e, &subject)).collect();
        if self.errors() > before {
            return None;
        }
        let count =
            axes.iter().try_fold(1usize, |n, a| n.checked_mul(a.values.len()).filter(|&n| n <= MAX_CASES));
        if count.is_none() {
            let text = format!("the test has more than {MAX_CASES} cases");
            let d = Diagnostic::error(codes::TEST, t.name.span, text);
            self.report(d.help("split it into several tests that vary fewer names together"));
            return None;
        }
        let base = TestCase {
            name: t.name.name.clone(),
            label: String::new(),
            span,
            request: Request::new(&subject.name.name),
            dims: IndexMap::new(),
            inputs,
            expects: expects.into_iter().flatten().collect(),
            only,
        };
        Some(combinations(&base, &axes))
    }

    /// The item under test: as written, else the longest name with which the test's own begins.
    fn subject(&mut self, t: &'a ast::Test) -> Option<Subject<'a>> {
        let lib = self.lib;
        let written =
            t.entries.iter().find_map(|e| if let TestKind::Subject(id) = &e.kind { Some(id) } else { None });
        if let Some(id) = written {
            if let Some(s) = runnable(lib, &id.name) {
                return Some(s);
            }
            let entries: Vec<&str> = lib.entries();
            let mut d = Diagnostic::error(
                codes::UNKNOWN_ENTRY,
                id.span,
                format!("there is no kernel or op `{}`", id.name),
            );
            if let Some(near) = suggest(&id.name, entries.into_iter()) {
                d = d.help(format!("did you mean `{near}`?"));
            }
            self.report(d);
            return None;
        }
        let begins = |n: &&str| {
            t.name.name.strip_prefix(n).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        };
        if let Some(name) = lib.entries().into_iter().filter(begins).max_by_key(|n| n.len()) {
            return runnable(lib, name);
        }
        let d = Diagnostic::error(
            codes::TEST,
            t.name.span,
            format!("`{}` does not say what it tests", t.name.name),
        );
        self.report(d.help("begin its name with that of the kernel or op, or add a line `kernel NAME`"));
        None
    }

    fn no_parameter(&mut self, subject: &Subject<'a>, name: &Ident) {
        let names: Vec<&str> = subject.params.iter().map(|p| p.name.name.as_str()).collect();
        let text = format!("`{}` has no parameter `{}`", subject.name.name, name.name);
        let mut d = Diagnostic::error(codes::UNKNOWN_ARGUMENT, name.span, text);
        d = match suggest(&name.name, names.iter().copied()) {
            Some(near) => d.help(format!("did you mean `{near}`?")),
            None => d.help(format!("its parameters are {}", names.join(", "))),
        };
        self.report(d.also(subject.name.span, "declared here"));
    }

    fn complete(&mut self, subject: &Subject<'a>, inputs: &IndexMap<String, Input>, t: &'a ast::Test) {
        for p in subject.params {
            let name = &p.name.name;
            if p.mode == ast::Mode::Out {
                if inputs.contains_key(name) {
                    let text = format!("`{name}` is an output, it starts undefined");
                    let d = Diagnostic::error(codes::TEST, t.name.span, text).also(p.span, "declared here");
                    self.report(d.help(format!("leave its value away, or declare it `{name}: inout ...`")));
                }
            } else if !inputs.contains_key(name) {
                let d = Diagnostic::error(
                    codes::TEST,
                    t.name.span,
                    format!("the test gives no value for `{name}`"),
                );
                let example = if p.shape.is_some() { "normal(seed 1)" } else { "1" };
                self.report(d.also(p.span, "declared here").help(format!("add a line `{name} = {example}`")));
            }
        }
    }

    fn axis(&mut self, c: &'a Choice, role: Role, subject: &Subject<'a>, axes: &mut Vec<Axis>) {
        let generic = subject.generics.iter().find(|g| g.name.name == c.name.name);
        let role = match generic.map(|g| g.kind) {
            Some(GenericKind::ConstInt | GenericKind::ConstBool) => Role::Const,
            Some(GenericKind::Fn) => Role::Fn,
            Some(_) => Role::Type,
            None => role,
        };
        if axes.iter().any(|a| a.name == c.name.name) {
            let d = Diagnostic::error(codes::TWICE, c.name.span, format!("`{}` is given twice", c.name.name));
            return self.report(d);
        }
        let values: Vec<Option<Setting>> =
            c.values.iter().map(|v| self.choice_value(v, role, &c.name.name)).collect();
        if let Some(values) = values.into_iter().collect() {
            axes.push(Axis { name: c.name.name.clone(), role, values });
        }
    }

    fn choice_value(&mut self, e: &'a ast::Expr, role: Role, name: &str) -> Option<Setting> {
        let what = format!("`{name}`");
        match role {
            Role::Fn => {
                if let (ExprKind::Name(id), Some(Const::Fn(_))) = (&e.kind, self.constant(e, &what)) {
                    return Some(Setting::Name(id.name.clone()));
                }
                None
            }
            Role::Dim => {
                let n = self.const_int(e, &what)?;
                match i64::try_from(n) {
                    Ok(n) if n >= 0 => Some(Setting::Int(n)),
                    _ => {
                        let d = Diagnostic::error(
                            codes::WRONG_CONST,
                            e.span,
                            format!("a dim is not negative, but {what} is {n}"),
                        );
                        self.report(d);
                        None
                    }
                }
            }
            Role::Type => match self.constant(e, &what)? {
                Const::Type(Elem::D(d)) => Some(Setting::Type(d)),
                other => self.wrong_kind(e.span, &what, "an element type", &other),
            },
            Role::Const | Role::Param => self.constant(e, &what).map(Setting::from),
        }
    }

    // ---- inputs -------------------------------------------------------------------------------------------------

    fn input(&mut self, e: &'a ast::Expr) -> Option<Input> {
        match &e.kind {
            ExprKind::Call { callee, args, .. } => {
                if let ExprKind::Name(id) = &callee.kind
                    && let Some(made) = self.generator(id, args, e.span)
                {
                    return made;
                }
                self.input_number(e)
            }
            ExprKind::Unary(UnaryOp::Neg, a) if makes(a) => Some(Input::Neg(Box::new(self.input(a)?))),
            ExprKind::Binary(op, a, b) if makes(a) || makes(b) => {
                let op = match op {
                    BinaryOp::Add => InputOp::Add,
                    BinaryOp::Sub => InputOp::Sub,
                    BinaryOp::Mul => InputOp::Mul,
                    BinaryOp::Div => InputOp::Div,
                    BinaryOp::Rem => InputOp::Rem,
                    _ => {
                        let d = Diagnostic::error(codes::TEST, e.span, "inputs are made with + - * / %");
                        self.report(d);
                        return None;
                    }
                };
                let (a, b) = (self.input(a), self.input(b));
                Some(Input::Binary(op, Box::new(a?), Box::new(b?)))
            }
            _ => self.input_number(e),
        }
    }

    fn input_number(&mut self, e: &'a ast::Expr) -> Option<Input> {
        match self.constant(e, "an input")? {
            Const::Int(n) => Some(Input::Whole(n)),
            Const::Float(x) => Some(Input::Number(x)),
            Const::Bool(b) => Some(Input::Whole(b.into())),
            other => self.wrong_kind(e.span, "an input", "a number", &other),
        }
    }

    /// `None` if the name is no generator.
    fn generator(&mut self, id: &'a Ident, args: &'a [Arg], span: Span) -> Option<Option<Input>> {
        if !matches!(id.name.as_str(), "normal" | "uniform" | "int" | "iota") {
            return None;
        }
        let mut seed = 0;
        let mut numbers = Vec::new();
        for a in args {
            match (&a.name, &a.value.kind) {
                (None, ExprKind::Keyed(key, value)) if key.name == "seed" => {
                    seed = u64::from(self.const_u32(value, "a seed", 0)?);
                }
                (Some(key), _) if key.name == "seed" => {
                    seed = u64::from(self.const_u32(&a.value, "a seed", 0)?)
                }
                (None, ExprKind::Keyed(..)) | (Some(_), _) => {
                    let d = Diagnostic::error(
                        codes::UNKNOWN_ARGUMENT,
                        a.value.span,
                        "generators take numbers and a seed",
                    );
                    self.report(d.help("write `normal(seed 1)`, `uniform(lo, hi, seed 1)`, `int(lo, hi, seed 1)` or `iota()`"));
                    return Some(None);
                }
                (None, _) => numbers.push(self.const_number(&a.value, "a bound")?),
            }
        }
        Some(match (id.name.as_str(), &numbers[..]) {
            ("normal", []) => Some(Input::Normal { seed }),
            ("uniform", []) => Some(Input::Uniform { lo: 0.0, hi: 1.0, seed }),
            ("uniform", &[lo, hi]) if lo < hi => Some(Input::Uniform { lo, hi, seed }),
            ("int", &[lo, hi]) if lo < hi && lo.fract() == 0.0 && hi.fract() == 0.0 => {
                Some(Input::Int { lo: lo as i64, hi: hi as i64, seed })
            }
            ("iota", []) => Some(Input::Iota),
            _ => {
                let d = Diagnostic::error(codes::TEST, span, format!("`{}` is not given like this", id.name));
                self.report(d.help("write `normal(seed 1)`, `uniform(lo, hi, seed 1)`, `int(lo, hi, seed 1)` or `iota()`, with lo below hi"));
                None
            }
        })
    }

    // ---- expectations ---------------------------------------------------------------------------------------------

    fn expectation(&mut self, entry: &'a ast::TestEntry, subject: &Subject<'a>) -> Option<Expectation> {
        let TestKind::Expect { name, exact, reference, rtol, atol } = &entry.kind else { return None };
        match subject.params.iter().find(|p| p.name.name == name.name) {
            None => {
                self.no_parameter(subject, name);
                return None;
            }
            Some(p) if p.mode == ast::Mode::In => {
                let d = Diagnostic::error(
                    codes::TEST,
                    name.span,
                    format!("`{}` is an input, nothing comes out of it", name.name),
                );
                self.report(d.also(p.span, "declared here"));
                return None;
            }
            Some(_) => {}
        }
        let bound = |s: &mut Self, e: &'a Option<ast::Expr>, what: &str| match e {
            Some(e) => s.const_number(e, what),
            None => Some(0.0),
        };
        let (rtol, written) = (bound(self, rtol, "a tolerance")?, atol.is_some());
        let atol = bound(self, atol, "a tolerance")?;
        if *exact && (rtol != 0.0 || atol != 0.0) {
            let d = Diagnostic::error(codes::TEST, entry.span, "`==` leaves no room for tolerances");
            self.report(d.help("write `~` to compare within bounds"));
        }
        let reference = self.reference(reference, subject)?;
        Some(Expectation {
            tensor: name.name.clone(),
            exact: *exact,
            reference,
            rtol,
            atol: written.then_some(atol),
            span: entry.span,
        })
    }

    fn reference(&mut self, e: &'a ast::Expr, subject: &Subject<'a>) -> Option<Reference> {
        let (id, args): (&Ident, &'a [Arg]) = match &e.kind {
            ExprKind::Name(id) if id.name == "widen" => return Some(Reference::Widen),
            ExprKind::Name(id) => (id, &[]),
            ExprKind::Call { callee, args, .. } => match &callee.kind {
                ExprKind::Name(id) => (id, args),
                _ => return self.bad_reference(e.span),
            },
            _ => return self.bad_reference(e.span),
        };
        let lib = self.lib;
        let Some(Entity::Item(r)) = lib.lookup(0, &id.name) else {
            let d = self.unknown_name(id);
            self.report(d.help("a reference is a kernel, an op, a fn, or `widen`"));
            return None;
        };
        let mut given = Vec::new();
        for a in args {
            given.push(self.given(&a.value, subject)?);
        }
        match &lib.item(r).kind {
            ItemKind::Kernel(k) => self.run_reference(id, (&k.generics, &k.params), given, subject, e.span),
            ItemKind::Op(o) => self.run_reference(id, (&o.generics, &o.params), given, subject, e.span),
            ItemKind::Fn(f) if f.params.len() == given.len() => {
                Some(Reference::Call { function: id.name.clone(), args: given })
            }
            ItemKind::Fn(f) => {
                let text = format!("`{}` takes {} arguments, not {}", id.name, f.params.len(), given.len());
                let d = Diagnostic::error(codes::ARGUMENT_COUNT, e.span, text);
                self.report(d.also(f.name.span, "declared here"));
                None
            }
            _ => self.bad_reference(e.span),
        }
    }

    fn bad_reference(&mut self, span: Span) -> Option<Reference> {
        let d = Diagnostic::error(codes::TEST, span, "this is no reference");
        self.report(d.help("compare with a kernel, an op or a fn, `ref(A, B)`, or with `widen`"));
        None
    }

    fn given(&mut self, e: &'a ast::Expr, subject: &Subject<'a>) -> Option<Given> {
        if let ExprKind::Name(id) = &e.kind
            && subject.params.iter().any(|p| p.name.name == id.name)
        {
            return Some(Given::Input(id.name.clone()));
        }
        match self.constant(e, "an argument of a reference")? {
            Const::Int(n) => Some(Given::Whole(n)),
            Const::Float(x) => Some(Given::Number(x)),
            other => self.wrong_kind(
                e.span,
                "an argument of a reference",
                "an input of the test or a number",
                &other,
            ),
        }
    }

    /// Inputs in order for what the reference reads; its first output is compared.
    fn run_reference(
        &mut self,
        id: &Ident,
        (generics, params): (&'a [ast::Generic], &'a [ast::Param]),
        given: Vec<Given>,
        subject: &Subject<'a>,
        span: Span,
    ) -> Option<Reference> {
        let reads: Vec<&ast::Param> = params.iter().filter(|p| p.mode != ast::Mode::Out).collect();
        let result = params
            .iter()
            .find(|p| p.mode == ast::Mode::Out)
            .or_else(|| params.iter().find(|p| p.mode == ast::Mode::InOut));
        let Some(result) = result else {
            let d =
                Diagnostic::error(codes::TEST, span, format!("`{}` has no output to compare with", id.name));
            self.report(d);
            return None;
        };
        if reads.len() != given.len() {
            let names: Vec<&str> = reads.iter().map(|p| p.name.name.as_str()).collect();
            let text =
                format!("`{}` reads {} parameters, but {} are given", id.name, reads.len(), given.len());
            let d = Diagnostic::error(codes::ARGUMENT_COUNT, span, text);
            self.report(d.help(format!("write `{}({})`; outputs are not given", id.name, names.join(", "))));
            return None;
        }
        let mut request = Request::new(&id.name);
        // generics of the same name are handed on when the cases are made
        for g in generics {
            if subject.generics.iter().any(|s| s.name.name == g.name.name) {
                request.consts.insert(g.name.name.clone(), Setting::Name(String::new()));
            }
        }
        let args = reads.iter().map(|p| p.name.name.clone()).zip(given).collect();
        Some(Reference::Run { request, args, result: result.name.name.clone() })
    }
}

fn runnable<'a>(lib: &'a Library, name: &str) -> Option<Subject<'a>> {
    let Some(Entity::Item(r)) = lib.lookup(0, name) else { return None };
    match &lib.item(r).kind {
        ItemKind::Kernel(k) => Some(Subject { name: &k.name, generics: &k.generics, params: &k.params }),
        ItemKind::Op(o) => Some(Subject { name: &o.name, generics: &o.generics, params: &o.params }),
        _ => None,
    }
}

/// Whether an expression of a test has a generator in it.
fn makes(e: &ast::Expr) -> bool {
    match &e.kind {
        ExprKind::Call { callee, .. } => {
            matches!(&callee.kind, ExprKind::Name(id) if matches!(id.name.as_str(), "normal" | "uniform" | "int" | "iota"))
        }
        ExprKind::Unary(_, a) => makes(a),
        ExprKind::Binary(_, a, b) => makes(a) || makes(b),
        _ => false,
    }
}

/// The product of all axes, the first varying slowest.
fn combinations(base: &TestCase, axes: &[Axis]) -> Vec<TestCase> {
    let mut cases = vec![base.clone()];
    for axis in axes {
        let mut next = Vec::with_capacity(cases.len() * axis.values.len());
        for case in &cases {
            for value in &axis.values {
                let mut case = case.clone();
                bind(&mut case, axis, value);
                next.push(case);
            }
        }
        cases = next;
    }
    for case in &mut cases {
        hand_on(case);
    }
    cases
}

fn bind(case: &mut TestCase, axis: &Axis, value: &Setting) {
    let name = axis.name.clone();
    if !case.label.is_empty() {
        case.label += ", ";
    }
    case.label += &format!("{name} = {value}");
    let request = &mut case.request;
    match (axis.role, value) {
        (Role::Dim, Setting::Int(n)) => {
            case.dims.insert(name, *n as u64);
        }
        (Role::Type, Setting::Type(d)) => {
            request.types.insert(name, *d);
        }
        (Role::Fn, Setting::Name(f)) => {
            request.fns.insert(name, f.clone());
        }
        (Role::Const, v) => {
            request.consts.insert(name, v.clone());
        }
        (_, v) => {
            request.params.insert(name, v.clone());
        }
    }
}

/// A reference's generics take the values that the case binds to the same names.
fn hand_on(case: &mut TestCase) {
    let own = case.request.clone();
    for e in &mut case.expects {
        let Reference::Run { request, .. } = &mut e.reference else { continue };
        let names: Vec<String> = std::mem::take(&mut request.consts).into_keys().collect();
        for name in names {
            if let Some(d) = own.types.get(&name) {
                request.types.insert(name, *d);
            } else if let Some(f) = own.fns.get(&name) {
                request.fns.insert(name, f.clone());
            } else if let Some(v) = own.consts.get(&name) {
                request.consts.insert(name, v.clone());
            }
        }
    }
}
