//! A sum's terms in their order: few, so that a sorted list is faster than a tree.

use crate::affine::Term;

#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Terms(Vec<(Term, i64)>);

impl Terms {
    pub fn one(term: Term, factor: i64) -> Terms {
        Terms(vec![(term, factor)])
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn get(&self, term: &Term) -> Option<&i64> {
        self.at(term).ok().map(|i| &self.0[i].1)
    }

    fn at(&self, term: &Term) -> Result<usize, usize> {
        self.0.binary_search_by(|(t, _)| t.cmp(term))
    }

    pub fn remove(&mut self, term: &Term) {
        if let Ok(i) = self.at(term) {
            self.0.remove(i);
        }
    }

    pub fn insert(&mut self, term: Term, factor: i64) {
        match self.at(&term) {
            Ok(i) => self.0[i].1 = factor,
            Err(i) => self.0.insert(i, (term, factor)),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Term, &i64)> {
        self.0.iter().map(|(t, f)| (t, f))
    }

    pub fn keys(&self) -> impl Iterator<Item = &Term> {
        self.0.iter().map(|(t, _)| t)
    }

    pub fn values(&self) -> impl Iterator<Item = &i64> {
        self.0.iter().map(|(_, f)| f)
    }

    /// `by · self + other_by · other`, without terms whose factor is 0; `None` on overflow.
    pub fn sum(&self, by: i64, other: &Terms, other_by: i64) -> Option<Terms> {
        let mut out = Vec::with_capacity(self.len() + other.len());
        let mut push = |term: &Term, factor: i64| {
            if factor != 0 {
                out.push((term.clone(), factor));
            }
        };
        let (mut a, mut b) = (self.0.iter().peekable(), other.0.iter().peekable());
        loop {
            let first = match (a.peek(), b.peek()) {
                (None, None) => break,
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some((x, _)), Some((y, _))) => x.cmp(y),
            };
            let mine = if first.is_le() { a.next() } else { None };
            let theirs = if first.is_ge() { b.next() } else { None };
            let scaled = |t: Option<&(Term, i64)>, by: i64| t.map_or(Some(0), |(_, f)| f.checked_mul(by));
            let factor = scaled(mine, by)?.checked_add(scaled(theirs, other_by)?)?;
            if let Some((term, _)) = mine.or(theirs) {
                push(term, factor);
            }
        }
        Some(Terms(out))
    }
}

impl FromIterator<(Term, i64)> for Terms {
    fn from_iter<I: IntoIterator<Item = (Term, i64)>>(list: I) -> Terms {
        let mut out = Terms::default();
        list.into_iter().for_each(|(t, f)| out.insert(t, f));
        out
    }
}
