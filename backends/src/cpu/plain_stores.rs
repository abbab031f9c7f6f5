//! A masked store of one known lane becomes a plain store of that element.
//!
//! LLVM's x86 code generator does the same, but where the value was truncated it stores the element as wide as it was
//! before (seen with 22.1 on AVX-512: four bytes for an i8), so it must not get the chance.

use inkwell::llvm_sys::LLVMOpcode;
use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::prelude::{LLVMBuilderRef, LLVMValueRef};
use inkwell::module::Module;

/// Rewrites the optimised module.
pub(super) fn rewrite(module: &Module<'_>) {
    let module = module.as_mut_ptr();
    // SAFETY: walks a live module; the next instruction is taken before the present one may be erased.
    unsafe {
        let builder = LLVMCreateBuilderInContext(LLVMGetModuleContext(module));
        let mut function = LLVMGetFirstFunction(module);
        while !function.is_null() {
            let mut block = LLVMGetFirstBasicBlock(function);
            while !block.is_null() {
                let mut instruction = LLVMGetFirstInstruction(block);
                while !instruction.is_null() {
                    let next = LLVMGetNextInstruction(instruction);
                    if let Some(lane) = only_lane(instruction) {
                        replace(builder, instruction, lane);
                    }
                    instruction = next;
                }
                block = LLVMGetNextBasicBlock(block);
            }
            function = LLVMGetNextFunction(function);
        }
        LLVMDisposeBuilder(builder);
    }
}

/// The lane that a masked store writes, if its mask is a constant with one.
unsafe fn only_lane(instruction: LLVMValueRef) -> Option<u32> {
    // SAFETY: `instruction` is live; calls have a callee and as many operands as they say.
    unsafe {
        if LLVMGetInstructionOpcode(instruction) != LLVMOpcode::LLVMCall {
            return None;
        }
        let mut length = 0;
        let name = LLVMGetValueName2(LLVMGetCalledValue(instruction), &mut length);
        let name = std::slice::from_raw_parts(name.cast::<u8>(), length);
        if !name.starts_with(b"llvm.masked.store.") {
            return None;
        }
        let mask = LLVMGetOperand(instruction, LLVMGetNumArgOperands(instruction) - 1);
        if LLVMIsConstant(mask) == 0 {
            return None;
        }
        let lanes = LLVMGetVectorSize(LLVMTypeOf(mask));
        let on = |&lane: &u32| {
            let bit = LLVMGetAggregateElement(mask, lane);
            !bit.is_null() && LLVMIsNull(bit) == 0 && LLVMIsUndef(bit) == 0
        };
        let mut chosen = (0..lanes).filter(on);
        let first = chosen.next()?;
        chosen.next().is_none().then_some(first)
    }
}

unsafe fn replace(builder: LLVMBuilderRef, store: LLVMValueRef, lane: u32) {
    // SAFETY: the operands of a masked store are the vector and the address; nothing uses its result.
    unsafe {
        LLVMPositionBuilderBefore(builder, store);
        let (vector, address) = (LLVMGetOperand(store, 0), LLVMGetOperand(store, 1));
        let i32t = LLVMInt32TypeInContext(LLVMGetTypeContext(LLVMTypeOf(vector)));
        let index = LLVMConstInt(i32t, lane.into(), 0);
        let element = LLVMBuildExtractElement(builder, vector, index, c"".as_ptr());
        let mut offsets = [index];
        let at = LLVMBuildGEP2(builder, LLVMTypeOf(element), address, offsets.as_mut_ptr(), 1, c"".as_ptr());
        let plain = LLVMBuildStore(builder, element, at);
        // the element may stand anywhere
        LLVMSetAlignment(plain, 1);
        LLVMInstructionEraseFromParent(store);
    }
}
