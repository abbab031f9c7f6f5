//! A scratch driver.
use pantile::driver::*;
use pantile::ir::elab::Request;
use pantile::ir::span::Sources;
use pantile::ir::target::Targets;
use pantile::ir::diag::render::{render_all, Style};
use std::path::Path;
fn main() {
    let mut a = std::env::args().skip(1);
    let file = a.next().unwrap();
    let entry = a.next().unwrap();
    let mut sources = Sources::default();
    let targets = Targets::shipped();
    let arch = targets.arch("x86-64-v4").unwrap();
    let lib = match load(Path::new(&file), &[], &mut sources) { Ok(l) => l, Err(d) => { println!("{}", render_all(&d, &sources, Style::Plain)); return } };
    let mut r = Request::new(entry);
    for s in a { let (k, v) = s.split_once('=').unwrap(); let v = pantile::ir::elab::Setting::parse(v); match v { pantile::ir::elab::Setting::Type(d) => { r.types.insert(k.into(), d); } v => { r.consts.insert(k.into(), v); } } }
    match compile(&lib, &r, arch, &mut sources) {
        Ok(c) => { println!("{}", pantile::ir::print::print(&c.program)); println!("{}", render_all(&c.warnings, &sources, Style::Plain));
          match cpu::texts(&c, arch) { Ok((l, asm)) => println!("{} {}", l.len(), asm.len()), Err(e) => println!("{e:?}") } }
        Err(d) => println!("{}", render_all(&d, &sources, Style::Plain)),
    }
}
