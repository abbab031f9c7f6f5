//! Names in snapshots: numbers that a pass gave are counted anew, so that a new temporary does not change every line
//! after it.

use std::collections::HashMap;

/// `x_17` becomes `x_0` where it is the first `x_N` of the text. Names stay distinct.
pub fn renumbered(text: &str) -> String {
    let mut seen: HashMap<String, HashMap<String, usize>> = HashMap::new();
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphabetic() || c == '_') {
        let end = rest[start..]
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .map_or(rest.len(), |e| start + e);
        // digits before a letter are a number: 0x1f, 1e5
        let number = rest[..start].ends_with(|c: char| c.is_ascii_digit());
        let word = &rest[start..end];
        out += &rest[..start];
        match word.rsplit_once('_') {
            Some((base, n))
                if !number && !base.is_empty() && !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()) =>
            {
                let of = seen.entry(base.into()).or_default();
                let next = of.len();
                let at = *of.entry(n.into()).or_insert(next);
                out += &format!("{base}_{at}");
            }
            _ => out += word,
        }
        rest = &rest[end..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::renumbered;

    #[test]
    fn numbers_follow_the_order_of_the_text() {
        assert_eq!(
            renumbered("let x_17 = y_3 + x_4; x_17 + 0x1f_5 + x2"),
            "let x_0 = y_0 + x_1; x_0 + 0x1f_5 + x2"
        );
        assert_eq!(renumbered("uint32_t a_b_9, _1"), "uint32_t a_b_0, _1");
    }
}
