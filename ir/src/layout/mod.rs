//! Layouts: where each element of a tile lives.

/// A digit layout; see DESIGN-NOTES section 2.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Layout {}

/// A layout to memory with an XOR swizzle.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Shared {}
