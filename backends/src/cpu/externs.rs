//! Functions that compiled code calls back: the language's `print`.
//!
//! A line is gathered in its thread and written whole, so that lines of blocks that run side by side do not mix.

use std::cell::RefCell;
use std::io::Write;

thread_local! {
    static LINE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Names and addresses for [`super::Jit::load`].
pub fn table() -> [(&'static str, usize); 4] {
    [
        ("pantile_print_text", print_text as *const () as usize),
        ("pantile_print_float", print_float as *const () as usize),
        ("pantile_print_int", print_int as *const () as usize),
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

extern "C" fn print_float(x: f64) {
    append(&x.to_string());
}

extern "C" fn print_int(x: i64) {
    append(&x.to_string());
}

extern "C" fn print_end() {
    LINE.with_borrow_mut(|line| {
        line.push('\n');
        // a closed pipe is the reader's wish, not a fault of the kernel
        let _ = std::io::stdout().lock().write_all(line.as_bytes());
        line.clear();
    });
}
