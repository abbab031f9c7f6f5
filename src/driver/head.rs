//! The heads of a file's kernels and ops, as written.

use pantile_ir::ast::{Generic, GenericKind, ItemKind, Param};
use pantile_ir::codes;
use pantile_ir::diag::Diagnostic;
use pantile_ir::elab::Library;
use pantile_ir::span::Span;

#[derive(Clone, Copy)]
pub struct Head<'a> {
    pub name: &'a str,
    pub generics: &'a [Generic],
    pub params: &'a [Param],
}

/// Every kernel and op of the library's main file, in order.
pub fn heads(library: &Library) -> Vec<Head<'_>> {
    let items = library.main().map_or(&[][..], |u| &u.ast.items);
    let found = items.iter().filter_map(|i| match &i.kind {
        ItemKind::Kernel(k) => Some(Head { name: &k.name.name, generics: &k.generics, params: &k.params }),
        ItemKind::Op(o) => Some(Head { name: &o.name.name, generics: &o.generics, params: &o.params }),
        _ => None,
    });
    found.collect()
}

/// The kernel or op that is meant: the named one, or the only one.
pub fn entry<'a>(library: &'a Library, wanted: Option<&str>) -> Result<Head<'a>, Diagnostic> {
    let all = heads(library);
    let file = library.main().map_or("the file", |u| u.name.as_str());
    let fail = |message: String, help: String| {
        Err(Diagnostic::error(codes::NO_SUCH_ENTRY, Span::default(), message).help(help))
    };
    let names = || all.iter().map(|h| format!("`{}`", h.name)).collect::<Vec<_>>().join(", ");
    match (wanted, all.as_slice()) {
        (_, []) => {
            fail(format!("`{file}` holds no kernel or op"), "`pantile new` writes one to start from".into())
        }
        (Some(name), _) => match all.iter().find(|h| h.name == name) {
            Some(head) => Ok(*head),
            None => fail(format!("`{file}` holds no kernel or op `{name}`"), format!("it holds {}", names())),
        },
        (None, [only]) => Ok(*only),
        (None, [first, ..]) => fail(
            format!("`{file}` holds several kernels and ops: {}", names()),
            format!("name one: `{file}::{}`", first.name),
        ),
    }
}

impl Head<'_> {
    /// Is this a `const NAME: int` or `bool` of the head?
    pub fn has_const(&self, name: &str) -> bool {
        let consts = [GenericKind::ConstInt, GenericKind::ConstBool];
        self.generics.iter().any(|g| g.name.name == name && consts.contains(&g.kind))
    }

    pub fn has_generic(&self, name: &str) -> bool {
        self.generics.iter().any(|g| g.name.name == name)
    }

    pub fn param(&self, name: &str) -> Option<&Param> {
        self.params.iter().find(|p| p.name.name == name)
    }
}
