//! LLVM instructions with less ceremony: integers, pointers, loops, branches, vectors.
//!
//! Knows nothing of tiles or kernels. Values that only depend on constants fold in LLVM's builder.

use inkwell::attributes::AttributeLoc;
use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::intrinsics::Intrinsic;
use inkwell::module::Module;
use inkwell::types::{BasicMetadataTypeEnum, BasicType, BasicTypeEnum, IntType, PointerType, VectorType};
use inkwell::values::{
    BasicMetadataValueEnum, BasicValue, BasicValueEnum, FunctionValue, IntValue, PointerValue, VectorValue,
};
use inkwell::{AddressSpace, IntPredicate};

pub type Int<'c> = IntValue<'c>;
pub type Ptr<'c> = PointerValue<'c>;
pub type Any<'c> = BasicValueEnum<'c>;

/// Builds one function at a time. Building never fails here: every call gets values of one context and types that
/// this module chose, so the `unwrap`s on builder results state an invariant of this back end.
pub struct Emit<'c> {
    pub ctx: &'c Context,
    pub b: Builder<'c>,
    pub module: Module<'c>,
    func: Option<FunctionValue<'c>>,
    entry: Option<BasicBlock<'c>>,
}

impl<'c> Emit<'c> {
    pub fn new(ctx: &'c Context, name: &str) -> Self {
        Emit { ctx, b: ctx.create_builder(), module: ctx.create_module(name), func: None, entry: None }
    }

    /// Starts `i64 name(ptr, …)`; all parameters are pointers or i64 by `sig` (`p`, `i`).
    pub fn begin(&mut self, name: &str, sig: &str, vector_bits: u32) -> Vec<Any<'c>> {
        let types: Vec<BasicMetadataTypeEnum> =
            sig.chars().map(|c| if c == 'p' { self.ptr_type().into() } else { self.i64().into() }).collect();
        let f = self.module.add_function(name, self.i64().fn_type(&types, false), None);
        let kind = inkwell::attributes::Attribute::get_named_enum_kind_id("nounwind");
        f.add_attribute(AttributeLoc::Function, self.ctx.create_enum_attribute(kind, 0));
        for key in ["prefer-vector-width", "min-legal-vector-width"] {
            let attr = self.ctx.create_string_attribute(key, &vector_bits.to_string());
            f.add_attribute(AttributeLoc::Function, attr);
        }
        let noalias = inkwell::attributes::Attribute::get_named_enum_kind_id("noalias");
        for (i, c) in sig.chars().enumerate() {
            if c == 'p' {
                f.add_attribute(AttributeLoc::Param(i as u32), self.ctx.create_enum_attribute(noalias, 0));
            }
        }
        let entry = self.ctx.append_basic_block(f, "entry");
        let start = self.ctx.append_basic_block(f, "start");
        self.b.position_at_end(start);
        self.func = Some(f);
        self.entry = Some(entry);
        f.get_params()
    }

    /// Ends the function with result 0: joins the block of allocas with the body.
    pub fn end(&mut self) {
        self.b.build_return(Some(&self.int(0))).unwrap();
        let (Some(f), Some(entry)) = (self.func.take(), self.entry.take()) else { return };
        let start = entry.get_next_basic_block().unwrap_or(entry);
        self.b.position_at_end(entry);
        self.b.build_unconditional_branch(start).unwrap();
        let _ = f;
    }

    pub fn function(&self) -> FunctionValue<'c> {
        self.func.expect("inside a function")
    }

    pub fn block(&self, name: &str) -> BasicBlock<'c> {
        self.ctx.append_basic_block(self.function(), name)
    }

    pub fn jump(&self, to: BasicBlock<'c>) {
        self.b.build_unconditional_branch(to).unwrap();
    }

    pub fn jump_if(&self, cond: Int<'c>, yes: BasicBlock<'c>, no: BasicBlock<'c>) {
        self.b.build_conditional_branch(cond, yes, no).unwrap();
    }

    pub fn load_int(&self, p: Ptr<'c>) -> Int<'c> {
        self.load(self.i64(), p, 8).into_int_value()
    }

    /// Adds to a counter in memory.
    pub fn count(&self, p: Ptr<'c>, by: Int<'c>) {
        self.store(p, self.add(self.load_int(p), by), 8);
    }

    pub fn eq(&self, a: Int<'c>, b: Int<'c>) -> Int<'c> {
        self.cmp(IntPredicate::EQ, a, b)
    }

    pub fn i64(&self) -> IntType<'c> {
        self.ctx.i64_type()
    }

    pub fn ptr_type(&self) -> PointerType<'c> {
        self.ctx.ptr_type(AddressSpace::default())
    }

    pub fn int(&self, v: i64) -> Int<'c> {
        self.i64().const_int(v as u64, true)
    }

    pub fn bool(&self, v: bool) -> Int<'c> {
        self.ctx.bool_type().const_int(v as u64, false)
    }

    pub fn add(&self, a: Int<'c>, b: Int<'c>) -> Int<'c> {
        self.b.build_int_nsw_add(a, b, "").unwrap()
    }

    pub fn sub(&self, a: Int<'c>, b: Int<'c>) -> Int<'c> {
        self.b.build_int_nsw_sub(a, b, "").unwrap()
    }

    pub fn mul(&self, a: Int<'c>, b: Int<'c>) -> Int<'c> {
        self.b.build_int_nsw_mul(a, b, "").unwrap()
    }

    pub fn cmp(&self, p: IntPredicate, a: Int<'c>, b: Int<'c>) -> Int<'c> {
        self.b.build_int_compare(p, a, b, "").unwrap()
    }

    pub fn lt(&self, a: Int<'c>, b: Int<'c>) -> Int<'c> {
        self.cmp(IntPredicate::SLT, a, b)
    }

    pub fn and(&self, a: Int<'c>, b: Int<'c>) -> Int<'c> {
        self.b.build_and(a, b, "").unwrap()
    }

    pub fn min(&self, a: Int<'c>, b: Int<'c>) -> Int<'c> {
        self.select(self.lt(a, b), a.into(), b.into()).into_int_value()
    }

    pub fn max(&self, a: Int<'c>, b: Int<'c>) -> Int<'c> {
        self.select(self.lt(a, b), b.into(), a.into()).into_int_value()
    }

    pub fn select(&self, c: Int<'c>, a: Any<'c>, b: Any<'c>) -> Any<'c> {
        self.b.build_select(c, a, b, "").unwrap()
    }

    /// The constant that `v` is, if it is one.
    pub fn known(&self, v: Int<'c>) -> Option<i64> {
        v.get_sign_extended_constant()
    }

    pub fn known_bool(&self, v: Int<'c>) -> Option<bool> {
        v.get_zero_extended_constant().map(|x| x != 0)
    }

    pub fn offset(&self, p: Ptr<'c>, bytes: Int<'c>) -> Ptr<'c> {
        // SAFETY: a pointer computation; what is accessed through it is the caller's concern.
        unsafe { self.b.build_gep(self.ctx.i8_type(), p, &[bytes], "").unwrap() }
    }

    pub fn load<T: BasicType<'c>>(&self, ty: T, p: Ptr<'c>, align: u32) -> Any<'c> {
        let v = self.b.build_load(ty, p, "").unwrap();
        if let Some(inst) = v.as_instruction_value() {
            inst.set_alignment(align).unwrap();
        }
        v
    }

    pub fn store<V: BasicValue<'c>>(&self, p: Ptr<'c>, v: V, align: u32) {
        self.b.build_store(p, v).unwrap().set_alignment(align).unwrap();
    }

    /// `p + bytes`, computed in the entry block and so usable everywhere; `p` must be a parameter.
    pub fn entry_offset(&self, p: Ptr<'c>, bytes: i64) -> Ptr<'c> {
        let here = self.b.get_insert_block();
        self.b.position_at_end(self.entry.expect("inside a function"));
        let at = self.offset(p, self.int(bytes));
        if let Some(here) = here {
            self.b.position_at_end(here);
        }
        at
    }

    /// A stack slot in the entry block, so that loops do not grow the stack.
    pub fn alloca<T: BasicType<'c>>(&self, ty: T, name: &str) -> Ptr<'c> {
        let here = self.b.get_insert_block();
        let entry = self.entry.expect("inside a function");
        self.b.position_at_end(entry);
        let p = self.b.build_alloca(ty, name).unwrap();
        if let Some(here) = here {
            self.b.position_at_end(here);
        }
        p
    }

    pub fn intrinsic(
        &self,
        name: &str,
        types: &[BasicTypeEnum<'c>],
        args: &[BasicMetadataValueEnum<'c>],
    ) -> Option<Any<'c>> {
        let found = Intrinsic::find(name).and_then(|i| i.get_declaration(&self.module, types));
        let f = found.unwrap_or_else(|| panic!("LLVM has no intrinsic {name} for these types"));
        self.b.build_call(f, args, "").unwrap().try_as_basic_value().basic()
    }

    /// Calls a function of the back end's run-time table by name; it is declared on first use.
    pub fn call_extern(
        &self,
        name: &str,
        result: Option<BasicTypeEnum<'c>>,
        args: &[BasicMetadataValueEnum<'c>],
        types: &[BasicMetadataTypeEnum<'c>],
    ) -> Option<Any<'c>> {
        let f = self.module.get_function(name).unwrap_or_else(|| {
            let ty = match result {
                Some(t) => t.fn_type(types, false),
                None => self.ctx.void_type().fn_type(types, false),
            };
            self.module.add_function(name, ty, None)
        });
        self.b.build_call(f, args, "").unwrap().try_as_basic_value().basic()
    }

    /// `for i in (lo..hi).step(step)`, carrying values; the body may create blocks.
    pub fn for_carry(
        &self,
        lo: Int<'c>,
        hi: Int<'c>,
        step: Int<'c>,
        init: &[Any<'c>],
        body: impl FnOnce(Int<'c>, &[Any<'c>]) -> Vec<Any<'c>>,
    ) -> Vec<Any<'c>> {
        let pre = self.b.get_insert_block().expect("position");
        let (head, exit) = (self.block("loop"), self.block("done"));
        self.b.build_conditional_branch(self.lt(lo, hi), head, exit).unwrap();
        self.b.position_at_end(head);
        let iv = self.b.build_phi(self.i64(), "i").unwrap();
        iv.add_incoming(&[(&lo, pre)]);
        let phis: Vec<_> = init
            .iter()
            .map(|v| {
                let phi = self.b.build_phi(v.get_type(), "").unwrap();
                phi.add_incoming(&[(v, pre)]);
                phi
            })
            .collect();
        let i = iv.as_basic_value().into_int_value();
        let carried: Vec<Any> = phis.iter().map(|p| p.as_basic_value()).collect();
        let out = body(i, &carried);
        let latch = self.b.get_insert_block().expect("position");
        let next = self.add(i, step);
        iv.add_incoming(&[(&next, latch)]);
        for (phi, v) in phis.iter().zip(&out) {
            phi.add_incoming(&[(v, latch)]);
        }
        self.b.build_conditional_branch(self.lt(next, hi), head, exit).unwrap();
        self.b.position_at_end(exit);
        let join = |(v, o): (&Any<'c>, &Any<'c>)| {
            let phi = self.b.build_phi(v.get_type(), "").unwrap();
            phi.add_incoming(&[(v, pre), (o, latch)]);
            phi.as_basic_value()
        };
        init.iter().zip(&out).map(join).collect()
    }

    pub fn for_(&self, lo: Int<'c>, hi: Int<'c>, step: Int<'c>, body: impl FnOnce(Int<'c>)) {
        self.for_carry(lo, hi, step, &[], |i, _| {
            body(i);
            Vec::new()
        });
    }

    pub fn if_(&self, cond: Int<'c>, then: impl FnOnce(), other: impl FnOnce()) {
        let (t, e, join) = (self.block("then"), self.block("else"), self.block("join"));
        self.b.build_conditional_branch(cond, t, e).unwrap();
        self.b.position_at_end(t);
        then();
        self.b.build_unconditional_branch(join).unwrap();
        self.b.position_at_end(e);
        other();
        self.b.build_unconditional_branch(join).unwrap();
        self.b.position_at_end(join);
    }

    /// A value chosen by control flow: only the chosen side is evaluated.
    pub fn if_value(
        &self,
        cond: Int<'c>,
        then: impl FnOnce() -> Any<'c>,
        other: impl FnOnce() -> Any<'c>,
    ) -> Any<'c> {
        let (t, e, join) = (self.block("then"), self.block("else"), self.block("join"));
        self.b.build_conditional_branch(cond, t, e).unwrap();
        self.b.position_at_end(t);
        let a = then();
        let from_t = self.b.get_insert_block().expect("position");
        self.b.build_unconditional_branch(join).unwrap();
        self.b.position_at_end(e);
        let b = other();
        let from_e = self.b.get_insert_block().expect("position");
        self.b.build_unconditional_branch(join).unwrap();
        self.b.position_at_end(join);
        let phi = self.b.build_phi(a.get_type(), "").unwrap();
        phi.add_incoming(&[(&a, from_t), (&b, from_e)]);
        phi.as_basic_value()
    }

    /// All lanes equal to `v`.
    pub fn splat(&self, v: Any<'c>, lanes: u32) -> VectorValue<'c> {
        let ty = vector_of(v.get_type(), lanes);
        let zero = self.ctx.i32_type().const_zero();
        let one = self.b.build_insert_element(ty.get_poison(), v, zero, "").unwrap();
        let mask = self.ctx.i32_type().vec_type(lanes).const_zero();
        self.b.build_shuffle_vector(one, ty.get_poison(), mask, "").unwrap()
    }

    /// 0, 1, 2 … as i64 lanes.
    pub fn lane_numbers(&self, lanes: u32) -> VectorValue<'c> {
        let all: Vec<Int> = (0..lanes).map(|k| self.int(k as i64)).collect();
        VectorType::const_vector(&all)
    }

    /// Lanes whose number is below `count`.
    pub fn lane_mask(&self, count: Int<'c>, lanes: u32) -> VectorValue<'c> {
        let i32t = self.ctx.i32_type();
        let all: Vec<Int> = (0..lanes).map(|k| i32t.const_int(k as u64, false)).collect();
        let clamped = self.max(self.min(count, self.int(lanes as i64)), self.int(0));
        let narrow = self.b.build_int_truncate(clamped, i32t, "").unwrap();
        let bound = self.splat(narrow.into(), lanes);
        self.b.build_int_compare(IntPredicate::SLT, VectorType::const_vector(&all), bound, "").unwrap()
    }

    pub fn masked_load(
        &self,
        ty: VectorType<'c>,
        p: Ptr<'c>,
        mask: VectorValue<'c>,
        align: u32,
    ) -> VectorValue<'c> {
        let zero: BasicMetadataValueEnum = ty.const_zero().into();
        let mut args: Vec<BasicMetadataValueEnum> = vec![p.into()];
        self.push_align(&mut args, align);
        args.extend([mask.into(), zero]);
        let types = [ty.into(), self.ptr_type().into()];
        self.intrinsic("llvm.masked.load", &types, &args).expect("a value").into_vector_value()
    }

    pub fn masked_store(&self, v: VectorValue<'c>, p: Ptr<'c>, mask: VectorValue<'c>, align: u32) {
        let mut args: Vec<BasicMetadataValueEnum> = vec![v.into(), p.into()];
        self.push_align(&mut args, align);
        args.push(mask.into());
        self.intrinsic("llvm.masked.store", &[v.get_type().into(), self.ptr_type().into()], &args);
    }

    /// LLVM 22 takes the alignment of masked accesses as an attribute (default 1), older ones as an operand.
    fn push_align(&self, args: &mut Vec<BasicMetadataValueEnum<'c>>, align: u32) {
        if cfg!(feature = "cpu-llvm19") {
            args.push(self.ctx.i32_type().const_int(align as u64, false).into());
        }
    }
}

/// `<lanes x ty>` of a scalar type.
pub fn vector_of(ty: BasicTypeEnum<'_>, lanes: u32) -> VectorType<'_> {
    match ty {
        BasicTypeEnum::IntType(t) => t.vec_type(lanes),
        BasicTypeEnum::FloatType(t) => t.vec_type(lanes),
        BasicTypeEnum::PointerType(t) => t.vec_type(lanes),
        BasicTypeEnum::VectorType(t) => t,
        other => unreachable!("{other:?} has no vector form"),
    }
}
