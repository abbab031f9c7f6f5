//! Close spellings, for "did you mean".

use crate::text::words::distance;

/// The candidate nearest to `name`, if it is near enough to be a slip; among equals the first in the alphabet.
pub(crate) fn suggest<'c>(name: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    // short names are too alike: only their case is corrected
    let limit = match name.chars().count() {
        0..=2 => 0,
        3..=5 => 1,
        6..=8 => 2,
        _ => 3,
    };
    let lower = name.to_lowercase();
    candidates
        .filter(|c| *c != name && c.len().abs_diff(name.len()) <= 4 * limit)
        .map(|c| (distance(&lower, &c.to_lowercase()), c))
        .filter(|&(d, _)| d <= limit)
        .min()
        .map(|(_, c)| c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found_and_other_words_are_not() {
        let names = ["rowmax", "rowsum", "ceildiv", "x", "BM"];
        let near = |n| suggest(n, names.into_iter());
        assert_eq!(near("rowmx"), Some("rowmax"));
        assert_eq!(near("cieldiv"), Some("ceildiv"));
        assert_eq!(near("bm"), Some("BM"));
        assert_eq!(near("y"), None);
        assert_eq!(near("attention"), None);
        assert_eq!(near("rowsum"), None);
    }
}
