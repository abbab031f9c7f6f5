//! Differences of two texts line by line, as other tools show them.

/// Unchanged lines around a change.
const AROUND: usize = 3;
/// Beyond this many changed lines the shortest difference is not looked for.
const MOST: usize = 4000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Edit {
    Same,
    Gone,
    New,
}

/// Nothing where the texts are equal.
pub fn unified(old_name: &str, old: &str, new_name: &str, new: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let edits = edits(&a, &b);
    if edits.iter().all(|e| *e == Edit::Same) {
        return String::new();
    }
    let mut out = format!("--- {old_name}\n+++ {new_name}\n");
    for hunk in hunks(&edits) {
        out += &shown(&a, &b, &edits, hunk);
    }
    out
}

/// Ranges of edits that are shown together.
fn hunks(edits: &[Edit]) -> Vec<std::ops::Range<usize>> {
    let mut all: Vec<std::ops::Range<usize>> = Vec::new();
    for (i, _) in edits.iter().enumerate().filter(|(_, e)| **e != Edit::Same) {
        let (start, end) = (i.saturating_sub(AROUND), (i + 1 + AROUND).min(edits.len()));
        match all.last_mut() {
            Some(last) if start <= last.end => last.end = end,
            _ => all.push(start..end),
        }
    }
    all
}

fn shown(a: &[&str], b: &[&str], edits: &[Edit], hunk: std::ops::Range<usize>) -> String {
    let count = |part: &[Edit], not: Edit| part.iter().filter(|e| **e != not).count();
    let (mut i, mut j) = (count(&edits[..hunk.start], Edit::New), count(&edits[..hunk.start], Edit::Gone));
    let part = &edits[hunk];
    let (n, m) = (count(part, Edit::New), count(part, Edit::Gone));
    // an empty side is named by the line before it
    let at = |start: usize, n: usize| if n == 0 { start } else { start + 1 };
    let mut out = format!("@@ -{},{n} +{},{m} @@\n", at(i, n), at(j, m));
    for edit in part {
        let (sign, line) = match edit {
            Edit::Same => (' ', a[i]),
            Edit::Gone => ('-', a[i]),
            Edit::New => ('+', b[j]),
        };
        out += &format!("{sign}{line}\n");
        i += usize::from(*edit != Edit::New);
        j += usize::from(*edit != Edit::Gone);
    }
    out
}

/// Equal heads and tails aside, the shortest way from one to the other (Myers).
fn edits(a: &[&str], b: &[&str]) -> Vec<Edit> {
    let head = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[head..], &b[head..]);
    let tail = a.iter().rev().zip(b.iter().rev()).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[..a.len() - tail], &b[..b.len() - tail]);
    let mut all = vec![Edit::Same; head];
    all.extend(shortest(a, b).unwrap_or_else(|| {
        let gone = std::iter::repeat_n(Edit::Gone, a.len());
        gone.chain(std::iter::repeat_n(Edit::New, b.len())).collect()
    }));
    all.extend(std::iter::repeat_n(Edit::Same, tail));
    all
}

fn shortest(a: &[&str], b: &[&str]) -> Option<Vec<Edit>> {
    let (n, m) = (a.len(), b.len());
    let most = (n + m).min(MOST);
    // furthest x on each diagonal x - y = k, at k + most + 1
    let mut furthest = vec![0usize; 2 * most + 3];
    let mut trace = Vec::new();
    for d in 0..=most {
        trace.push(furthest[most + 1 - d..=most + 1 + d].to_vec());
        for step in 0..=d {
            let k = 2 * step as isize - d as isize;
            let at = (k + most as isize + 1) as usize;
            let down = k == -(d as isize) || (k != d as isize && furthest[at - 1] < furthest[at + 1]);
            let mut x = if down { furthest[at + 1] } else { furthest[at - 1] + 1 };
            let mut y = (x as isize - k) as usize;
            while x < n && y < m && a[x] == b[y] {
                (x, y) = (x + 1, y + 1);
            }
            furthest[at] = x;
            if x >= n && y >= m {
                return Some(back(&trace, n, m));
            }
        }
    }
    None
}

/// The way that was found, from its end.
fn back(trace: &[Vec<usize>], n: usize, m: usize) -> Vec<Edit> {
    let (mut x, mut y) = (n as isize, m as isize);
    let mut all = Vec::new();
    for (d, furthest) in trace.iter().enumerate().rev() {
        let d = d as isize;
        let k = x - y;
        // the row of step d knows the diagonals -d..=d
        let of =
            |k: isize| usize::try_from(k + d).ok().and_then(|i| furthest.get(i)).map_or(-1, |&x| x as isize);
        let down = k == -d || (k != d && of(k - 1) < of(k + 1));
        let before = if down { k + 1 } else { k - 1 };
        let (px, py) = if d == 0 { (0, 0) } else { (of(before), of(before) - before) };
        while x > px && y > py {
            all.push(Edit::Same);
            (x, y) = (x - 1, y - 1);
        }
        if d > 0 {
            all.push(if down { Edit::New } else { Edit::Gone });
            (x, y) = (px, py);
        }
    }
    all.reverse();
    all
}

#[cfg(test)]
mod tests {
    use super::{Edit, edits, unified};

    #[test]
    fn a_changed_line_with_what_is_around_it() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let new = "1\n2\n3\n4\nfive\n6\n7\n8\n9\n";
        let want = "--- a\n+++ b\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n";
        assert_eq!(unified("a", old, "b", new), want);
        assert_eq!(unified("a", old, "b", old), "");
        assert_eq!(unified("a", "", "b", "x\n"), "--- a\n+++ b\n@@ -0,0 +1,1 @@\n+x\n");
    }

    /// Edits rebuild both texts, and are no more than they must be.
    #[test]
    fn the_shortest_way_between_all_small_texts() {
        let words = ["x", "y", "z"];
        let text = |mut n: usize| {
            let mut t = Vec::new();
            while n > 0 {
                t.push(words[(n - 1) % 3]);
                n = (n - 1) / 3;
            }
            t
        };
        for (p, q) in (0..121).flat_map(|p| (0..121).map(move |q| (p, q))) {
            let (a, b) = (text(p), text(q));
            let all = edits(&a, &b);
            let (mut i, mut j) = (0, 0);
            for e in &all {
                match e {
                    Edit::Same => {
                        assert_eq!(a[i], b[j]);
                        (i, j) = (i + 1, j + 1);
                    }
                    Edit::Gone => i += 1,
                    Edit::New => j += 1,
                }
            }
            assert_eq!((i, j), (a.len(), b.len()));
            let changes = all.iter().filter(|e| **e != Edit::Same).count();
            assert_eq!(changes, a.len() + b.len() - 2 * common(&a, &b), "{a:?} {b:?}");
        }
    }

    /// Length of the longest common subsequence.
    fn common(a: &[&str], b: &[&str]) -> usize {
        match (a.split_first(), b.split_first()) {
            (Some((x, a)), Some((y, b))) if x == y => 1 + common(a, b),
            (Some((_, ra)), Some((_, rb))) => common(ra, b).max(common(a, rb)),
            _ => 0,
        }
    }
}
