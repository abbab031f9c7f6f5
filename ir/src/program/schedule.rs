//! The plan's word on the grid: in which order blocks take tiles, and how many blocks there are.
//!
//! `grid` launches a block a tile, in an order that is the back end's. With `raster` and `group`, bands of `group` rows (or
//! columns) of the last two axes are walked one after the other, the tiles of a band across it first, so that blocks
//! at work together read few rows and few columns. `persistent` launches `blocks` blocks, of which block b takes the
//! tiles b, b + blocks, … of that order.

use super::plan::Value;

/// How the tiles of the last two axes follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    pub raster: Raster,
    /// rows, or columns, of one band
    pub group: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raster {
    Rows,
    Columns,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Schedule {
    /// `None`: as the back end numbers blocks
    Grid(Option<Walk>),
    /// `blocks` is `None` where the target is to say how many fit.
    Persistent { blocks: Option<u32>, walk: Option<Walk> },
    /// A schedule that the language has and no pass makes: `dynamic`, `splitk`.
    Other(String),
}

/// What is wrong with a value, and what may stand there.
#[derive(Clone, Debug, PartialEq)]
pub struct Wrong {
    pub message: String,
    pub help: String,
}

const WORDS: &str = "write `grid`, `grid(raster = rows, group = 8)` or `persistent(blocks = 132, raster = rows, group = 8)`; `raster` is `rows` or `columns`";
const MOST_BLOCKS: i64 = i32::MAX as i64;
const MOST_GROUP: i64 = 65535;

impl Schedule {
    pub fn walk(&self) -> Option<Walk> {
        match self {
            Schedule::Grid(walk) | Schedule::Persistent { walk, .. } => *walk,
            Schedule::Other(_) => None,
        }
    }

    pub fn read(value: &Value) -> Result<Schedule, Wrong> {
        let (name, args) = match value {
            Value::Name(name) => (name, &[][..]),
            Value::Call(name, args) => (name, &args[..]),
            other => return Err(Wrong::new(format!("`{other}` is no schedule"))),
        };
        match name.as_str() {
            "grid" | "persistent" => {}
            "dynamic" | "splitk" => return Ok(Schedule::Other(name.clone())),
            _ => return Err(Wrong::new(format!("there is no schedule `{name}`"))),
        }
        let persistent = name == "persistent";
        let (mut raster, mut group, mut blocks) = (None, None, None);
        let mut seen: Vec<&str> = Vec::new();
        for (key, value) in args {
            let key = key.as_deref();
            let key = key.ok_or_else(|| Wrong::new(format!("`{value}` of `{name}` has no name")))?;
            if seen.contains(&key) {
                return Err(Wrong::new(format!("`{key}` of `{name}` stands twice")));
            }
            seen.push(key);
            match key {
                "raster" => raster = Some(Raster::read(value)?),
                "group" => group = Some(count(key, value, MOST_GROUP)?),
                "blocks" if persistent => blocks = Some(count(key, value, MOST_BLOCKS)?),
                _ => return Err(Wrong::new(format!("`{name}` has no `{key}`"))),
            }
        }
        let asked = raster.is_some() || group.is_some();
        let walk = asked.then(|| Walk { raster: raster.unwrap_or(Raster::Rows), group: group.unwrap_or(1) });
        Ok(match persistent {
            true => Schedule::Persistent { blocks, walk },
            false => Schedule::Grid(walk),
        })
    }
}

impl Raster {
    fn read(value: &Value) -> Result<Raster, Wrong> {
        match value {
            Value::Name(n) if n == "rows" => Ok(Raster::Rows),
            Value::Name(n) if n == "columns" => Ok(Raster::Columns),
            other => Err(Wrong::new(format!("there is no raster `{other}`"))),
        }
    }
}

fn count(key: &str, value: &Value, most: i64) -> Result<u32, Wrong> {
    let wrong = || Wrong::new(format!("`{key}` is a number from 1 to {most}, not `{value}`"));
    match value {
        Value::Int(n) if (1..=most).contains(n) => u32::try_from(*n).map_err(|_| wrong()),
        _ => Err(wrong()),
    }
}

impl Wrong {
    fn new(message: String) -> Wrong {
        Wrong { message, help: WORDS.to_owned() }
    }
}
