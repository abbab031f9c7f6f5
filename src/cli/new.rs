//! `pantile new`: a kernel to start from.

use super::report::{Failure, Session, print};
use super::{Exit, Outcome};
use pantile::ir::codes;
use pantile::runtime::files::put;
use pantile::runtime::io_words;
use std::path::PathBuf;

/// Write a first kernel of a kind, with a test, to change into your own.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  pantile new gemm                   writes gemm.tile
  pantile new rowwise my/norm.tile   writes my/norm.tile
  pantile new elementwise -          prints it")]
pub struct Args {
    #[arg(value_enum)]
    kind: Kind,
    /// Where to write; `-` prints. Without it, the kind's name in this folder.
    file: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Kind {
    /// a product of matrices
    Gemm,
    /// attention in one pass
    Attention,
    /// each row by itself: softmax, norms
    Rowwise,
    /// each element by itself
    Elementwise,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Gemm => "gemm",
            Kind::Attention => "attention",
            Kind::Rowwise => "rowwise",
            Kind::Elementwise => "elementwise",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Kind::Gemm => include_str!("../templates/gemm.tile"),
            Kind::Attention => include_str!("../templates/attention.tile"),
            Kind::Rowwise => include_str!("../templates/rowwise.tile"),
            Kind::Elementwise => include_str!("../templates/elementwise.tile"),
        }
    }
}

pub fn run(args: &Args, _: &mut Session) -> Outcome {
    let path = args.file.clone().unwrap_or_else(|| format!("{}.tile", args.kind.name()).into());
    let shown = path.display().to_string();
    if shown == "-" {
        print(&args.kind.text().replace("FILE", &format!("{}.tile", args.kind.name())));
        return Ok(Exit::Fine);
    }
    // the comment at the top names the file that is being written
    let text = args.kind.text().replace("FILE", &shown);
    if path.symlink_metadata().is_ok() {
        let message = format!("`{shown}` is there already");
        return Err(Failure::new(codes::FILE_ACCESS, message).help("give another name"));
    }
    put(&path, text.as_bytes())
        .map_err(|e| Failure::new(codes::FILE_ACCESS, format!("cannot write `{shown}`: {}", io_words(&e))))?;
    print(&format!("wrote {shown}\n"));
    Ok(Exit::Fine)
}
