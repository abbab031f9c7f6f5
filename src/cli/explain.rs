//! `pantile explain`: what a rule means, what a layout looks like.

use super::report::{Failure, Session, print, table};
use super::{Exit, Outcome};
use pantile::ir::codes::{self, TABLE};
use pantile::ir::diag::Code;
use pantile::ir::explain::page;
use pantile::ir::layout;

/// Explain a rule by its code, with a wrong and a right example; or draw a layout.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  pantile explain P0302                                            a rule
  pantile explain                                                  all rules, a line each
  pantile explain --layout 'm: 4@thr*32, 2@reg*2, 8@thr*4 ; n: 16@reg*4, 4@thr, 2@reg'
  pantile explain --layout 'm: 8@mem*64 ; n: 64@mem ; xor<3,4,3>' --svg > layout.svg")]
pub struct Args {
    /// A code as errors show it: P0302, or 302.
    #[arg(value_name = "CODE", value_parser = code, conflicts_with = "layout")]
    code: Option<Code>,
    /// A layout's text: what it maps where, drawn.
    #[arg(long, value_name = "TEXT")]
    layout: Option<String>,
    /// Draw the layout as an SVG picture.
    #[arg(long, requires = "layout")]
    svg: bool,
}

fn code(text: &str) -> Result<Code, String> {
    let digits = text.strip_prefix(['P', 'p']).unwrap_or(text);
    digits.parse().map(Code).map_err(|_| "a code looks like P0302".into())
}

pub fn run(args: &Args, session: &mut Session) -> Outcome {
    let text = match (&args.layout, args.code) {
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
        (None, Some(code)) => rule(code)?,
        (None, None) => {
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
