//! `pantile explain`: what a rule means, what a layout looks like, how a kernel is mapped.

mod mapping;

use super::entry::{Entry, Specialise, usage};
use super::report::{Failure, Session, print, table};
use super::{Exit, Outcome};
use pantile::ir::codes::{self, TABLE};
use pantile::ir::diag::Code;
use pantile::ir::explain::page;
use pantile::ir::layout;

/// Explain a rule by its code, with a wrong and a right example; how a kernel is mapped to a GPU; or draw a layout.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  pantile explain P0302                                            a rule
  pantile explain                                                  all rules, a line each
  pantile explain gemm.tile::gemm -p T=f16 --target cuda:sm_80     plan, layouts, shared memory, accesses, barriers
  pantile explain --layout 'm: 4@thr*32, 2@reg*2, 8@thr*4 ; n: 16@reg*4, 4@thr, 2@reg'
  pantile explain --layout 'm: 8@mem*64 ; n: 64@mem ; xor<3,4,3>' --svg > layout.svg")]
pub struct Args {
    /// A code as errors show it: P0302, or 302; or a kernel of a file.
    #[arg(value_name = "CODE|FILE[::NAME]", value_parser = what, conflicts_with = "layout")]
    what: Option<What>,
    /// For a kernel: cuda, cuda:ARCH, musa, musa:ARCH, or an architecture; several with commas.
    #[arg(long, short, value_delimiter = ',')]
    target: Vec<String>,
    #[command(flatten)]
    specialise: Specialise,
    /// For a kernel: print JSON, one object for each kernel and target.
    #[arg(long)]
    json: bool,
    /// A layout's text: what it maps where, drawn.
    #[arg(long, value_name = "TEXT")]
    layout: Option<String>,
    /// Draw the layout as an SVG picture.
    #[arg(long, requires = "layout")]
    svg: bool,
}

#[derive(Clone)]
enum What {
    Rule(Code),
    Kernel(Entry),
}

/// Digits alone, or behind a P, are a code; a file's name has more.
fn what(text: &str) -> Result<What, String> {
    let digits = text.strip_prefix(['P', 'p']).unwrap_or(text);
    match digits.parse() {
        Ok(code) => Ok(What::Rule(Code(code))),
        Err(_) if text.contains(['.', '/', ':']) => Entry::parse(text).map(What::Kernel),
        Err(_) => Err("a code looks like P0302, a kernel like FILE::NAME".into()),
    }
}

pub fn run(args: &Args, session: &mut Session) -> Outcome {
    if let Some(What::Kernel(entry)) = &args.what {
        let options =
            mapping::Options { specialise: &args.specialise, targets: &args.target, json: args.json };
        return mapping::run(entry, &options, session);
    }
    if args.json || !args.target.is_empty() || !args.specialise.is_plain() {
        return Err(usage("these options go with a kernel")
            .help("name one: `pantile explain FILE::NAME --target ARCH`"));
    }
    let text = match (&args.layout, &args.what) {
        (Some(text), _) if args.svg => {
            let file = session.sources.add("--layout", None, text.clone());
            // the page's own errors have a place in the text
            layout::explain_in(text, file)?;
            let tile = layout::parse_layout(text, &layout::Symbols::default());
            tile.map(|t| layout::svg(&t)).map_err(|e| Failure::new(codes::LAYOUT_TEXT, e.message))?
        }
        (Some(text), _) => {
            let file = session.sources.add("--layout", None, text.clone());
            layout::explain_in(text, file)?
        }
        (None, Some(What::Rule(code))) => rule(*code)?,
        (None, None | Some(What::Kernel(_))) => {
            let rows = TABLE.iter().map(|r| vec![r.code.to_string(), r.title.to_string()]);
            table(&rows.collect::<Vec<_>>())
        }
    };
    print(text.trim_end());
    print("\n");
    Ok(Exit::Fine)
}

fn rule(code: Code) -> Result<String, Failure> {
    let Some(row) = codes::row(code) else {
        return Err(Failure::new(codes::USAGE, format!("there is no rule {code}"))
            .help("`pantile explain` lists all rules"));
    };
    Ok(match page(code) {
        Some(text) => text.to_string(),
        None => format!("{code}: {}", row.title),
    })
}
