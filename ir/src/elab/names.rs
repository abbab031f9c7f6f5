//! Close spellings, for "did you mean".

/// The candidate nearest to `name`, if it is near enough to be a slip.
pub(crate) fn suggest<'c>(name: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    // short names are too alike: only their case is corrected
    let limit = match name.chars().count() {
        0..=2 => 0,
        3..=5 => 1,
        6..=8 => 2,
        _ => 3,
    };
    candidates
        .filter(|c| *c != name)
        .map(|c| (if c.eq_ignore_ascii_case(name) { 0 } else { distance(name, c, limit) }, c))
        .filter(|&(d, _)| d <= limit)
        .min_by_key(|&(d, c)| (d, c))
        .map(|(_, c)| c)
}

/// Edit distance in which a swap of neighbours counts once; above `limit` it may be any larger number.
fn distance(a: &str, b: &str, limit: usize) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > limit {
        return limit + 1;
    }
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let change = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (rows[i - 1][j] + 1).min(rows[i][j - 1] + 1).min(rows[i - 1][j - 1] + change);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
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
