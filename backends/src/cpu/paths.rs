//! How many ways lead through the arithmetic of a function.
//!
//! LLVM's loop vectoriser asks of each value whether it is uniform and walks to its operands without remembering
//! where it was (seen with 22.1): a chain like `b = a + a`, `c = b + b`, … costs 2ⁿ steps. What would take
//! noticeably long is not vectorised.

use inkwell::llvm_sys::LLVMOpcode;
use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::prelude::LLVMValueRef;
use inkwell::module::Module;
use std::collections::HashMap;

/// Steps of one function's walks that take well under a tenth of a second.
const FEW: u64 = 50_000;

/// Whether the walks of every function stay short.
pub(super) fn few(module: &Module<'_>) -> bool {
    // SAFETY: walks a live module without changing it.
    unsafe {
        let mut function = LLVMGetFirstFunction(module.as_mut_ptr());
        while !function.is_null() {
            if walks(function) > FEW {
                return false;
            }
            function = LLVMGetNextFunction(function);
        }
    }
    true
}

/// The steps of the walks from every value of a function, each to all of its operands.
unsafe fn walks(function: LLVMValueRef) -> u64 {
    let mut steps: HashMap<LLVMValueRef, u64> = HashMap::new();
    let mut total = 0u64;
    // SAFETY: as above; operands are asked for only within their number.
    unsafe {
        let mut block = LLVMGetFirstBasicBlock(function);
        while !block.is_null() {
            let mut instruction = LLVMGetFirstInstruction(block);
            while !instruction.is_null() {
                let mut own = 1u64;
                if LLVMGetInstructionOpcode(instruction) != LLVMOpcode::LLVMPHI {
                    for i in 0..LLVMGetNumOperands(instruction).max(0).cast_unsigned() {
                        let of = steps.get(&LLVMGetOperand(instruction, i));
                        own = own.saturating_add(of.copied().unwrap_or(0));
                    }
                }
                total = total.saturating_add(own);
                steps.insert(instruction, own);
                instruction = LLVMGetNextInstruction(instruction);
            }
            block = LLVMGetNextBasicBlock(block);
        }
    }
    total
}
