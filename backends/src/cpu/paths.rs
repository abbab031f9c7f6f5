//! How many ways lead through the arithmetic of a function.
//!
//! LLVM's loop vectoriser asks of each value whether it is uniform and walks to its operands without remembering
//! where it was (seen with 22.1). A chain like `b = a + a`, `c = b + b`, … then costs 2ⁿ steps, and so do branches one
//! after another, whose conditions become masks. What would take noticeably long is not vectorised.

use inkwell::llvm_sys::LLVMOpcode;
use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::prelude::{LLVMBasicBlockRef, LLVMValueRef};
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
            if Walks::default().of_function(function) > FEW {
                return false;
            }
            function = LLVMGetNextFunction(function);
        }
    }
    true
}

/// Steps of the walk that starts at each value, and at the mask of each block and edge. What was not met before, as over
/// the back edge of a loop, counts nothing.
#[derive(Default)]
struct Walks {
    values: HashMap<LLVMValueRef, u64>,
    blocks: HashMap<LLVMBasicBlockRef, u64>,
    edges: HashMap<(LLVMBasicBlockRef, LLVMBasicBlockRef), u64>,
}

impl Walks {
    /// The walks from every value together.
    unsafe fn of_function(&mut self, function: LLVMValueRef) -> u64 {
        let mut total = 0u64;
        // SAFETY: walks live blocks and instructions.
        unsafe {
            let mut block = LLVMGetFirstBasicBlock(function);
            while !block.is_null() {
                self.blocks.entry(block).or_insert(0);
                let mut instruction = LLVMGetFirstInstruction(block);
                while !instruction.is_null() {
                    total = total.saturating_add(self.instruction(block, instruction));
                    instruction = LLVMGetNextInstruction(instruction);
                }
                block = LLVMGetNextBasicBlock(block);
            }
        }
        total
    }

    unsafe fn instruction(&mut self, block: LLVMBasicBlockRef, instruction: LLVMValueRef) -> u64 {
        // SAFETY: `instruction` is live in `block`; operands and successors are asked for within their number.
        unsafe {
            let known = |walks: &Walks, v| walks.values.get(&v).copied().unwrap_or(0);
            let mut own = 1u64;
            for i in 0..LLVMGetNumOperands(instruction).max(0).cast_unsigned() {
                own = own.saturating_add(known(self, LLVMGetOperand(instruction, i)));
            }
            match LLVMGetInstructionOpcode(instruction) {
                LLVMOpcode::LLVMPHI => {
                    for i in 0..LLVMCountIncoming(instruction) {
                        let edge = (LLVMGetIncomingBlock(instruction, i), block);
                        own = own.saturating_add(self.edges.get(&edge).copied().unwrap_or(0));
                    }
                }
                LLVMOpcode::LLVMLoad | LLVMOpcode::LLVMStore | LLVMOpcode::LLVMCall => {
                    own = own.saturating_add(self.blocks[&block]);
                }
                _ => {}
            }
            if !LLVMIsATerminatorInst(instruction).is_null() {
                self.leave(block, instruction, own);
            }
            self.values.insert(instruction, own);
            own
        }
    }

    /// The mask of each edge is the block's and the condition; the mask of a block joins those of its edges.
    unsafe fn leave(&mut self, block: LLVMBasicBlockRef, terminator: LLVMValueRef, condition: u64) {
        // SAFETY: as above.
        unsafe {
            let ways = LLVMGetNumSuccessors(terminator);
            let decides = if ways > 1 { condition } else { 0 };
            let mask = self.blocks[&block].saturating_add(decides);
            for i in 0..ways {
                let next = LLVMGetSuccessor(terminator, i);
                self.edges.insert((block, next), mask);
                let known = self.blocks.entry(next).or_insert(0);
                *known = known.saturating_add(mask);
            }
        }
    }
}
