//! Object code into memory: ORC's LLJIT behind a small safe face.

use super::CpuError;
use inkwell::llvm_sys::core::LLVMCreateMemoryBufferWithMemoryRangeCopy;
use inkwell::llvm_sys::error::{LLVMDisposeErrorMessage, LLVMErrorRef, LLVMGetErrorMessage};
use inkwell::llvm_sys::orc2::lljit::{
    LLVMOrcCreateLLJIT, LLVMOrcDisposeLLJIT, LLVMOrcLLJITAddObjectFile, LLVMOrcLLJITGetMainJITDylib,
    LLVMOrcLLJITLookup, LLVMOrcLLJITMangleAndIntern, LLVMOrcLLJITRef,
};
use inkwell::llvm_sys::orc2::{
    LLVMJITEvaluatedSymbol, LLVMJITSymbolFlags, LLVMJITSymbolGenericFlags, LLVMOrcAbsoluteSymbols,
    LLVMOrcCSymbolMapPair, LLVMOrcJITDylibDefine,
};
use std::ffi::{CStr, CString};

/// Code of one object file, alive as long as this value.
pub struct Jit {
    lljit: LLVMOrcLLJITRef,
}

// SAFETY: LLJIT's lookups are thread safe, and loaded code is immutable.
unsafe impl Send for Jit {}
unsafe impl Sync for Jit {}

impl Jit {
    /// Loads an object that [`super::build`] made.
    pub fn load(object: &[u8]) -> Result<Jit, CpuError> {
        let externs = super::externs::table();
        // SAFETY: plain calls of LLVM's C interface; every handle is checked and owned by `jit`.
        unsafe {
            let mut lljit = std::ptr::null_mut();
            check(LLVMOrcCreateLLJIT(&mut lljit, std::ptr::null_mut()))?;
            let jit = Jit { lljit };
            let dylib = LLVMOrcLLJITGetMainJITDylib(lljit);
            let mut pairs = Vec::with_capacity(externs.len());
            for (name, address) in externs {
                let name = symbol_name(name)?;
                let flags = LLVMJITSymbolFlags {
                    GenericFlags: LLVMJITSymbolGenericFlags::LLVMJITSymbolGenericFlagsCallable as u8,
                    TargetFlags: 0,
                };
                pairs.push(LLVMOrcCSymbolMapPair {
                    Name: LLVMOrcLLJITMangleAndIntern(lljit, name.as_ptr()),
                    Sym: LLVMJITEvaluatedSymbol { Address: address as u64, Flags: flags },
                });
            }
            let unit = LLVMOrcAbsoluteSymbols(pairs.as_mut_ptr(), pairs.len());
            check(LLVMOrcJITDylibDefine(dylib, unit))?;
            let buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(
                object.as_ptr().cast(),
                object.len(),
                c"kernels".as_ptr(),
            );
            check(LLVMOrcLLJITAddObjectFile(lljit, dylib, buffer))?;
            Ok(jit)
        }
    }

    /// Address of an exported function.
    pub fn address(&self, name: &str) -> Result<usize, CpuError> {
        let name = symbol_name(name)?;
        let mut address = 0;
        // SAFETY: the handle is live and the name ends in NUL.
        unsafe { check(LLVMOrcLLJITLookup(self.lljit, &mut address, name.as_ptr()))? };
        Ok(address as usize)
    }
}

impl Drop for Jit {
    fn drop(&mut self) {
        // SAFETY: created in `load`, disposed once; an error at disposal has no remedy.
        unsafe {
            let error = LLVMOrcDisposeLLJIT(self.lljit);
            let _ = check(error);
        }
    }
}

fn symbol_name(name: &str) -> Result<CString, CpuError> {
    CString::new(name).map_err(|_| CpuError::Llvm(format!("a symbol's name holds a NUL: {name:?}")))
}

/// Takes an LLVM error apart; null is success.
///
/// # Safety
/// `error` is null or an error that nobody else consumes.
unsafe fn check(error: LLVMErrorRef) -> Result<(), CpuError> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: the message is ours until disposed.
    unsafe {
        let text = LLVMGetErrorMessage(error);
        let message = CStr::from_ptr(text).to_string_lossy().into_owned();
        LLVMDisposeErrorMessage(text);
        Err(CpuError::Llvm(message))
    }
}
