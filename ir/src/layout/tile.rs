//! Tiles in memory as the language writes them beside a declaration: a swizzle alone (`xor<3,4,3>`), or a layout in
//! full. Dims have no names in the language; here they are `d0`, `d1` and so on.

use super::{Axis, Digit, Dim, Layout, Shared, Symbols, TextError, Xor, parse_layout};

/// Contiguous rows, the last dim fastest.
pub fn contiguous(shape: &[u64], element_bytes: u64) -> Layout {
    let mut stride = element_bytes;
    let mut dims = Vec::new();
    for (i, extent) in shape.iter().enumerate().rev() {
        dims.insert(0, Dim::new(format!("d{i}"), vec![Digit::new(*extent, Axis::Mem, stride)]));
        stride *= extent;
    }
    Layout::new(dims)
}

/// Reads the text beside a declaration of memory with the given shape. A layout in full must have the shape's dims in
/// order, whatever it calls them, and put each element into bytes of its own.
pub fn tile_text(text: &str, shape: &[u64], element_bytes: u64) -> Result<Shared, TextError> {
    let fail = |message: String| TextError { at: 0..text.len(), message, help: None };
    if !text.contains(':') {
        let xor: Xor = text.parse()?;
        return Ok(Shared { layout: contiguous(shape, element_bytes), xor: Some(xor), align: xor.cycle() });
    }
    let mut tile = shaped(text)?;
    tile.align = tile.align.max(tile.xor.map_or(1, Xor::cycle));
    tile.fits_memory(shape, element_bytes).map_err(fail)?;
    Ok(tile)
}

/// Reads the text beside a declaration of a fragment: a layout in full, on threads and registers, in which every
/// register holds one element.
pub fn fragment_text(text: &str, shape: &[u64]) -> Result<Layout, TextError> {
    let fail = |message: String| TextError { at: 0..text.len(), message, help: None };
    let tile = shaped(text)?;
    tile.fits_fragment(shape).map_err(fail)?;
    Ok(tile.layout)
}

/// A layout in full, its dims renamed.
fn shaped(text: &str) -> Result<Shared, TextError> {
    let mut tile = parse_layout(text, &Symbols::default())?;
    for (i, d) in tile.layout.dims.iter_mut().enumerate() {
        d.name = format!("d{i}");
    }
    Ok(tile)
}

/// By ascending stride, each digit must step over all that the smaller ones reach.
fn overlaps(layout: &Layout, element_bytes: u64) -> bool {
    let mut digits: Vec<Digit> = layout.digits().map(|(_, d)| *d).filter(|d| d.extent > 1).collect();
    digits.sort_by_key(|d| d.stride);
    let mut reach = element_bytes;
    digits.iter().any(|d| {
        let inside = d.stride < reach;
        reach += (d.extent - 1) * d.stride;
        inside
    })
}

impl Shared {
    /// Whether it is a place in memory for a tile of this shape; why not, in the user's words.
    pub fn fits_memory(&self, shape: &[u64], element_bytes: u64) -> Result<(), String> {
        self.has_shape(shape)?;
        if let Some(a) = Axis::ALL.into_iter().find(|a| *a != Axis::Mem && self.layout.size(*a) > 1) {
            return Err(format!("memory has no digits on {a}"));
        }
        if overlaps(&self.layout, element_bytes) {
            return Err("two elements share bytes".into());
        }
        let cycle = self.xor.map_or(1, Xor::cycle);
        if self.align < cycle {
            return Err(format!("it is aligned to {} bytes, its swizzle repeats after {cycle}", self.align));
        }
        Ok(())
    }

    /// Whether it is a place in registers for a tile of this shape; why not, in the user's words.
    pub fn fits_fragment(&self, shape: &[u64]) -> Result<(), String> {
        self.has_shape(shape)?;
        if self.layout.size(Axis::Mem) > 1 || self.xor.is_some() || self.align > 1 {
            return Err("a fragment has no digits on mem, no swizzle and no alignment".into());
        }
        self.layout.bijective(&[Axis::Thr, Axis::Reg]).map(|_| ()).map_err(|u| {
            format!(
                "the digits on {} leave or share places: {} where {} would follow",
                u.axis, u.stride, u.wanted
            )
        })
    }

    fn has_shape(&self, shape: &[u64]) -> Result<(), String> {
        let extents: Vec<u64> = self.layout.dims.iter().map(Dim::extent).collect();
        match extents == shape {
            true => Ok(()),
            false => Err(format!("the layout is for {extents:?}, the declaration has the shape {shape:?}")),
        }
    }

    /// What stands beside a declaration of memory with this shape: nothing for plain rows, the swizzle where only it
    /// differs, else the layout in full. Alignment stands apart.
    pub fn beside(&self, shape: &[u64], element_bytes: u64) -> Option<String> {
        match (self.layout.same(&contiguous(shape, element_bytes)), self.xor) {
            (true, None) => None,
            (true, Some(xor)) => Some(xor.to_string()),
            (false, _) => Some(Shared { align: 1, ..self.clone() }.to_string()),
        }
    }
}
