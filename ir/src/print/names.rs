//! Names of printed things: unique among what is in sight, never hiding what the language declares.

use crate::arena::Handle;
use crate::program::*;
use std::collections::{HashMap, HashSet};

/// Names that stand in the text of one kernel or op.
#[derive(Default)]
pub struct Names {
    taken: HashSet<String>,
    /// What the last name made from this one was numbered.
    last: HashMap<String, u32>,
    /// For each open scope its names, and what `last` was before them.
    open: Vec<Vec<(String, String, Option<u32>)>>,
    pub locals: Table<Local>,
    pub dims: Table<Dim>,
    pub args: Table<Arg>,
    pub buffers: Table<Buffer>,
    pub reducers: Table<Reducer>,
    pub teams: Table<TeamDecl>,
    pub rings: Table<Ring>,
    pub queues: Table<Queue>,
    pub turns: Table<Turn>,
    pub workspaces: Table<Workspace>,
}

/// Names given to the entries of an arena.
pub struct Table<T>(HashMap<Handle<T>, String>);

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table(HashMap::new())
    }
}

impl<T> Table<T> {
    pub fn set(&mut self, id: Handle<T>, name: String) {
        self.0.insert(id, name);
    }

    /// The name; one that was never declared still prints as something.
    pub fn get(&self, id: Handle<T>) -> String {
        self.0.get(&id).cloned().unwrap_or_else(|| format!("undeclared_{}", id.index()))
    }
}

impl Names {
    /// Takes a name that must stay as it is.
    pub fn reserve(&mut self, name: &str) {
        self.taken.insert(name.to_owned());
    }

    /// A free name made from `wish`, taken until its scope closes.
    pub fn declare(&mut self, wish: &str) -> String {
        let base = clean(wish);
        let before = self.last.get(&base).copied();
        let mut number = before.unwrap_or(1);
        let mut name = if number == 1 { base.clone() } else { format!("{base}_{number}") };
        while self.taken.contains(&name) || hides(&name) {
            number += 1;
            name = format!("{base}_{number}");
        }
        self.last.insert(base.clone(), number);
        self.taken.insert(name.clone());
        if let Some(scope) = self.open.last_mut() {
            scope.push((name.clone(), base, before));
        }
        name
    }

    /// A free name at file level. A kernel may be called like a function of the language.
    pub fn declare_item(&mut self, wish: &str) -> String {
        let base = clean(wish);
        if !self.taken.contains(&base) && !crate::text::words::is_reserved(&base) {
            self.taken.insert(base.clone());
            return base;
        }
        self.declare(wish)
    }

    pub fn open(&mut self) {
        self.open.push(Vec::new());
    }

    pub fn close(&mut self) {
        for (name, base, before) in self.open.pop().unwrap_or_default().into_iter().rev() {
            self.taken.remove(&name);
            match before {
                Some(n) => self.last.insert(base, n),
                None => self.last.remove(&base),
            };
        }
    }

    pub fn declare_local(&mut self, id: LocalId, body: &Body) -> String {
        let wish = body.locals.get(id).map_or("", |l| l.name.as_str());
        let name = self.declare(wish);
        self.locals.set(id, name.clone());
        name
    }
}

/// The wish as a name of the language.
fn clean(wish: &str) -> String {
    let mut name: String =
        wish.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, '_');
    }
    if name.chars().all(|c| c == '_') {
        name.push('v');
    }
    name
}

fn hides(name: &str) -> bool {
    crate::text::words::is_reserved(name) || crate::text::words::INFIX.contains(&name) || predeclared(name)
}

fn predeclared(name: &str) -> bool {
    let other = ["index", "inf", "none", "target", "warp", "group", "block", "cluster"];
    other.contains(&name)
        || pantile_abi::DType::from_name(name).is_some()
        || crate::elab::functions::is_predeclared(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_numbers_return_with_their_scope() {
        let mut n = Names::default();
        n.open();
        assert_eq!(n.declare("k"), "k");
        assert_eq!(n.declare("k"), "k_2");
        n.open();
        assert_eq!(n.declare("k"), "k_3");
        assert_eq!(n.declare("j"), "j");
        n.close();
        assert_eq!(n.declare("k"), "k_3");
        assert_eq!(n.declare("j"), "j");
        assert_eq!(n.declare("k_4"), "k_4");
        assert_eq!(n.declare("k"), "k_5");
    }

    #[test]
    fn names_never_hide_the_language() {
        let mut n = Names::default();
        assert_eq!(n.declare("f32"), "f32_2");
        assert_eq!(n.declare("for"), "for_2");
        assert_eq!(n.declare("sum"), "sum_2");
        assert_eq!(n.declare("a b"), "a_b");
        assert_eq!(n.declare("3x"), "_3x");
        assert_eq!(n.declare(""), "v");
        assert_eq!(n.declare("_"), "_v");
    }
}
