//! What must hold of an architecture once all its tables are laid over one another.

use super::arch::{Arch, Backend};
use super::known::Fact;
use super::read::quoted;
use crate::codes;
use crate::diag::{Diagnostic, Diagnostics};
use crate::layout::Xor;

/// Checks one architecture; a failed step ends it, since later ones would only repeat the complaint.
pub(super) fn arch(a: &Arch, out: &mut Diagnostics) {
    for step in [present, widths, words, super::check_maps::maps] {
        let before = out.len();
        step(a, out);
        if out.len() > before {
            return;
        }
    }
}

/// The facts without which nothing can be verified for an architecture.
fn present(a: &Arch, out: &mut Diagnostics) {
    let f = &a.facts;
    let mut needed = vec![
        ("threads.warp_size", f.threads.warp_size.is_some()),
        ("threads.shuffle_width", f.threads.shuffle_width.is_some()),
        ("threads.max_per_block", f.threads.max_per_block.is_some()),
        ("shared.max_bytes", f.shared.max_bytes.is_some()),
        ("registers.per_block", f.registers.per_block.is_some()),
        ("access.vector_bytes", f.access.vector_bytes.is_some()),
        ("access.max_bytes", f.access.max_bytes.is_some()),
    ];
    if a.backend == Backend::Cpu {
        needed.extend([
            ("simd.bits", f.simd.bits.is_some()),
            ("simd.machine", f.simd.machine.is_some()),
            ("simd.features", f.simd.features.is_some()),
        ]);
    }
    let missing: Vec<&str> = needed.iter().filter(|(_, known)| !known).map(|(key, _)| *key).collect();
    if !missing.is_empty() {
        let message = format!("architecture `{}` does not know {}", a.name, quoted(missing));
        out.push(
            Diagnostic::error(codes::TARGET_MISSING, a.span, message)
                .help("state them, or inherit from an architecture that does"),
        );
    }
}

/// Widths that the layout algebra splits into bits must be powers of two, and parts must fit their whole.
fn widths(a: &Arch, out: &mut Diagnostics) {
    let f = &a.facts;
    let powers = [
        (&f.threads.warp_size, "threads.warp_size"),
        (&f.threads.shuffle_width, "threads.shuffle_width"),
        (&f.threads.group_size, "threads.group_size"),
        (&f.access.max_bytes, "access.max_bytes"),
        (&f.access.vector_bytes, "access.vector_bytes"),
        (&f.shared.banks, "shared.banks"),
        (&f.shared.bank_bytes, "shared.bank_bytes"),
        (&f.shared.phase_bytes, "shared.phase_bytes"),
        (&f.simd.bits, "simd.bits"),
    ];
    for (fact, key) in powers {
        if let Some(k) = fact.as_ref().filter(|k| !k.value.is_power_of_two()) {
            let message = format!("`{key}` of `{}` is {}, which is no power of two", a.name, k.value);
            out.push(Diagnostic::error(codes::TARGET_VALUE, k.span, message));
        }
    }
    let orders = [
        (&f.threads.shuffle_width, "threads.shuffle_width", &f.threads.warp_size, "threads.warp_size"),
        (&f.threads.warp_size, "threads.warp_size", &f.threads.max_per_block, "threads.max_per_block"),
        (&f.access.vector_bytes, "access.vector_bytes", &f.access.max_bytes, "access.max_bytes"),
        (&f.shared.default_bytes, "shared.default_bytes", &f.shared.max_bytes, "shared.max_bytes"),
    ];
    for (low, low_key, high, high_key) in orders {
        order(a, (low, low_key), (high, high_key), out);
    }
}

fn order(a: &Arch, low: (&Fact<u32>, &str), high: (&Fact<u32>, &str), out: &mut Diagnostics) {
    let ((Some(l), low_key), (Some(h), high_key)) = (low, high) else { return };
    if l.value > h.value {
        let message =
            format!("`{low_key}` of `{}` is {}, more than `{high_key}`, {}", a.name, l.value, h.value);
        out.push(Diagnostic::error(codes::TARGET_VALUE, l.span, message).also(h.span, "the bound"));
    }
}

/// Words that passes read must be ones they know.
fn words(a: &Arch, out: &mut Diagnostics) {
    let mut known = |key: &str, fact: &Fact<String>, all: &[&str]| {
        if let Some(k) = fact.as_ref().filter(|k| !all.contains(&k.value.as_str())) {
            let message = format!("`{key}` of `{}` cannot be `{}`", a.name, k.value);
            out.push(
                Diagnostic::error(codes::TARGET_VALUE, k.span, message)
                    .help(format!("it is one of {}", quoted(all.iter().copied()))),
            );
        }
    };
    known("barriers.unit", &a.facts.barriers.unit, &["thread", "warp"]);
    for e in &a.engines {
        let key = |k: &str| format!("{k}` of engine `{}", e.name);
        known(&key("direction"), &e.facts.direction, &["load", "store", "both"]);
        known(&key("completion"), &e.facts.completion, &["now", "fifo", "counted"]);
        known(&key("proxy"), &e.facts.proxy, &["generic", "async"]);
        known(&key("issue"), &e.facts.issue, &["thread", "one"]);
    }
    for m in &a.moves {
        if !["load", "store", "exchange"].contains(&m.direction.as_str()) {
            let message = format!("a move cannot go `{}`", m.direction);
            let d = Diagnostic::error(codes::TARGET_VALUE, m.span, message);
            out.push(d.help("it is one of `load`, `store` and `exchange`"));
        }
    }
    for e in &a.engines {
        for text in e.facts.swizzles.iter().flat_map(|k| &k.value) {
            if let Err(why) = text.parse::<Xor>() {
                let span = e.facts.swizzles.as_ref().map_or(e.span, |k| k.span);
                let d = Diagnostic::error(codes::TARGET_VALUE, span, why.message);
                out.push(why.help.into_iter().fold(d, Diagnostic::help));
            }
        }
    }
}
