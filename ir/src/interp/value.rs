//! Values at run time: scalars over lanes, tiles, tokens; and the masks that say which lanes are active.

use super::tile::Tile;
use std::borrow::Cow;
use std::rc::Rc;

/// A scalar: the same for all lanes by construction, or one for each lane. `Many` counts as varying even if all of
/// its values are equal: what the analysis cannot prove uniform is not treated as uniform here.
#[derive(Clone, Debug)]
pub(super) enum Lanes {
    One(u64),
    Many(Rc<Vec<u64>>),
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Scalar(Lanes),
    Tile(Rc<Tile>),
    /// A ring slot's token, or none.
    Token(Option<usize>),
}

/// Active lanes, ascending.
#[derive(Clone, Debug)]
pub(super) enum Mask {
    All(u32),
    Some(Rc<Vec<u32>>),
}

impl Lanes {
    pub fn many(values: Vec<u64>) -> Lanes {
        Lanes::Many(Rc::new(values))
    }

    pub fn get(&self, lane: u32) -> u64 {
        match self {
            Lanes::One(v) => *v,
            Lanes::Many(values) => values[lane as usize],
        }
    }

    /// One value where the active lanes hold the same, however it was computed: control that follows it is uniform.
    pub fn agreed(self, mask: &Mask) -> Lanes {
        let Lanes::Many(values) = &self else { return self };
        let mut active = mask.iter().map(|l| values[l as usize]);
        match active.next() {
            Some(first) if active.all(|v| v == first) => Lanes::One(first),
            _ => self,
        }
    }

    /// Values of the active lanes without gaps; one value where all agree by construction.
    pub fn dense<'a>(&'a self, mask: &Mask) -> Cow<'a, [u64]> {
        match (self, mask) {
            (Lanes::One(v), _) => Cow::Owned(vec![*v]),
            (Lanes::Many(values), Mask::All(_)) => Cow::Borrowed(values),
            (Lanes::Many(values), Mask::Some(lanes)) => lanes.iter().map(|&l| values[l as usize]).collect(),
        }
    }

    /// The inverse of [`Lanes::dense`] for values that vary; lanes outside the mask get 0.
    pub fn spread(dense: Vec<u64>, mask: &Mask, width: u32) -> Lanes {
        match mask {
            Mask::All(_) => Lanes::many(dense),
            Mask::Some(lanes) => {
                let mut values = vec![0; width as usize];
                for (&lane, v) in lanes.iter().zip(dense) {
                    values[lane as usize] = v;
                }
                Lanes::many(values)
            }
        }
    }

    /// The one value that all active lanes hold.
    pub fn uniform(&self, mask: &Mask) -> Option<u64> {
        match self {
            Lanes::One(v) => Some(*v),
            Lanes::Many(values) => {
                let mut lanes = mask.iter();
                let first = values[lanes.next()? as usize];
                lanes.all(|l| values[l as usize] == first).then_some(first)
            }
        }
    }

    /// Lanes of `mask` take `new`, the others keep `self`.
    pub fn merged(self, new: &Lanes, mask: &Mask, width: u32) -> Lanes {
        let mut values = match self {
            Lanes::One(v) => Rc::new(vec![v; width as usize]),
            Lanes::Many(values) => values,
        };
        let slots = Rc::make_mut(&mut values);
        for lane in mask.iter() {
            slots[lane as usize] = new.get(lane);
        }
        Lanes::Many(values)
    }
}

impl Mask {
    pub fn of(lanes: Vec<u32>) -> Mask {
        Mask::Some(Rc::new(lanes))
    }

    pub fn len(&self) -> usize {
        match self {
            Mask::All(n) => *n as usize,
            Mask::Some(lanes) => lanes.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The `i`-th active lane.
    pub fn lane(&self, i: usize) -> u32 {
        match self {
            Mask::All(_) => i as u32,
            Mask::Some(lanes) => lanes[i],
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.len()).map(|i| self.lane(i))
    }

    pub fn contains(&self, lane: u32) -> bool {
        match self {
            Mask::All(n) => lane < *n,
            Mask::Some(lanes) => lanes.binary_search(&lane).is_ok(),
        }
    }

    pub fn filter(&self, mut keep: impl FnMut(u32) -> bool) -> Mask {
        Mask::of(self.iter().filter(|&l| keep(l)).collect())
    }

    /// The lanes where a bool holds, and where it does not.
    pub fn split(&self, cond: &Lanes) -> (Mask, Mask) {
        let (mut yes, mut no) = (Vec::new(), Vec::new());
        for lane in self.iter() {
            if cond.get(lane) != 0 { yes.push(lane) } else { no.push(lane) }
        }
        (Mask::of(yes), Mask::of(no))
    }
}

impl Value {
    pub fn one(bits: u64) -> Value {
        Value::Scalar(Lanes::One(bits))
    }
}
