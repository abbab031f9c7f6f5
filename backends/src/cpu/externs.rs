//! Functions that compiled code calls back: the language's `print`.
//!
//! A line is gathered in its thread and written whole, so that lines of blocks that run side by side do not mix.

use super::print::numbered_elem;
use pantile_ir::num;
use std::cell::RefCell;
use std::io::Write;

thread_local! {
    static LINE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Names and addresses for [`super::Jit::load`].
pub fn table() -> [(&'static str, usize); 3] {
    [
        ("pantile_print_text", print_text as *const () as usize),
        ("pantile_print_value", print_value as *const () as usize),
        ("pantile_print_end", print_end as *const () as usize),
    ]
}

fn append(text: &str) {
    LINE.with_borrow_mut(|line| line.push_str(text));
}

/// # Safety
/// `text` points to `len` bytes of UTF-8 in the code's constants.
unsafe extern "C" fn print_text(text: *const u8, len: u64) {
    // SAFETY: the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(text, len as usize) };
    append(&String::from_utf8_lossy(bytes));
}

/// Bits in the canonical form of [`pantile_ir::num`].
extern "C" fn print_value(elem: u64, bits: u64) {
    append(&num::print_value(numbered_elem(elem), bits));
}

extern "C" fn print_end() {
    LINE.with_borrow_mut(|line| {
        line.push('\n');
        // a closed pipe is the reader's wish, not a fault of the kernel
        let _ = std::io::stdout().lock().write_all(line.as_bytes());
        line.clear();
    });
}
