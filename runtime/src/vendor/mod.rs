//! Compilers of vendors, found on the machine at run time: sources in, machine code and facts out.
//!
//! Nothing of a vendor is needed to build this; what is absent is an error that says where it was looked for and how to
//! get it. A compiler never runs unless somebody asks for it.

pub mod child;
mod disassemble;
pub mod facts;
mod find;
pub mod mcc;
pub mod nvrtc;

pub use disassemble::disassemble;
pub use facts::{EntryFacts, VendorFacts};
pub use mcc::Mcc;
pub use nvrtc::Nvrtc;
