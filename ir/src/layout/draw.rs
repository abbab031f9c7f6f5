//! Pictures of layouts, as a text grid and as SVG: the first dim downwards, the last to the right, other dims at
//! index 0. The same layout always gives the same bytes.

use super::{At, Axis, Dim, Shared};
use std::fmt::Write;

/// Cells shown along each direction before the picture is cut.
const ROWS: u64 = 32;
const COLS: u64 = 32;

/// One axis value in a cell; threads and registers are what most fragments have.
fn cell(tile: &Shared, at: &At, used: &[Axis]) -> String {
    let part = |axis: &Axis| match axis {
        Axis::Thr => format!("T{}", at[Axis::Thr]),
        Axis::Reg => format!("r{}", at[Axis::Reg]),
        Axis::Group => format!("G{}", at[Axis::Group]),
        Axis::Cta => format!("B{}", at[Axis::Cta]),
        Axis::Simd => format!("L{}", at[Axis::Simd]),
        Axis::Mem => format!("{}", tile.swizzled(at[Axis::Mem])),
    };
    used.iter().map(part).collect::<Vec<_>>().join(".")
}

/// Axes on which anything moves, in the order in which cells name them.
fn used(tile: &Shared) -> Vec<Axis> {
    const ORDER: [Axis; 6] = [Axis::Cta, Axis::Group, Axis::Thr, Axis::Simd, Axis::Reg, Axis::Mem];
    let l = &tile.layout;
    let moves = |a: &Axis| l.size(*a) > 1;
    let found: Vec<Axis> = ORDER.into_iter().filter(moves).collect();
    if found.is_empty() { vec![Axis::Reg] } else { found }
}

/// The dims drawn downwards and to the right; a single dim is drawn to the right.
struct Grid<'a> {
    tile: &'a Shared,
    down: Option<usize>,
    right: usize,
    rows: u64,
    cols: u64,
}

impl Grid<'_> {
    fn of(tile: &Shared) -> Grid<'_> {
        let dims = &tile.layout.dims;
        let right = dims.len().saturating_sub(1);
        let down = (dims.len() > 1).then_some(0);
        let extent = |i: usize| dims.get(i).map_or(1, Dim::extent);
        Grid { tile, down, right, rows: down.map_or(1, extent), cols: extent(right) }
    }

    fn at(&self, row: u64, col: u64) -> At {
        let mut index = vec![0; self.tile.layout.dims.len()];
        if let Some(i) = index.get_mut(self.right) {
            *i = col;
        }
        if let Some(down) = self.down {
            index[down] = row;
        }
        self.tile.layout.at(&index)
    }

    fn name(&self, dim: Option<usize>) -> &str {
        dim.and_then(|i| self.tile.layout.dims.get(i)).map_or("", |d| d.name.as_str())
    }
}

/// A text grid. `T3.r1` is register 1 of thread 3, `L2` vector lane 2, a bare number a byte address behind the
/// swizzle; copies are not drawn.
pub fn draw(tile: &Shared) -> String {
    let grid = Grid::of(tile);
    let axes = used(tile);
    let (rows, cols) = (grid.rows.min(ROWS), grid.cols.min(COLS));
    let cells: Vec<Vec<String>> =
        (0..rows).map(|r| (0..cols).map(|c| cell(tile, &grid.at(r, c), &axes)).collect()).collect();
    let width = cells.iter().flatten().map(String::len).max().unwrap_or(1).max(grid.cols.to_string().len());
    let head = rows.to_string().len().max(grid.name(grid.down).len() + grid.name(Some(grid.right)).len() + 1);
    let mut out = String::new();
    let corner = match grid.down {
        Some(_) => format!("{}\\{}", grid.name(grid.down), grid.name(Some(grid.right))),
        None => grid.name(Some(grid.right)).to_string(),
    };
    let _ = write!(out, "{corner:>head$} ");
    (0..cols).for_each(|c| {
        let _ = write!(out, " {c:>width$}");
    });
    let more = if grid.cols > cols { format!("  … {} columns", grid.cols) } else { String::new() };
    let _ = writeln!(out, "{more}");
    for (r, row) in cells.iter().enumerate() {
        let label = if grid.down.is_some() { r.to_string() } else { String::new() };
        let _ = write!(out, "{label:>head$} ");
        row.iter().for_each(|c| {
            let _ = write!(out, " {c:>width$}");
        });
        out.push('\n');
    }
    if grid.rows > rows {
        let _ = writeln!(out, "{:>head$}  {} rows", "…", grid.rows);
    }
    out
}

/// An SVG picture; cells of one thread (or lane, or memory line) share a colour.
pub fn svg(tile: &Shared) -> String {
    const W: u64 = 54;
    const H: u64 = 22;
    let grid = Grid::of(tile);
    let axes = used(tile);
    let (rows, cols) = (grid.rows.min(2 * ROWS), grid.cols.min(2 * COLS));
    let (width, height) = ((cols + 1) * W, (rows + 1) * H);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" font-family=\"monospace\" font-size=\"10\" text-anchor=\"middle\">\n"
    );
    let mut text = |x: u64, y: u64, s: &str| {
        let _ = writeln!(out, "<text x=\"{}\" y=\"{}\">{s}</text>", x + W / 2, y + H / 2 + 4);
    };
    (0..cols).for_each(|c| text((c + 1) * W, 0, &c.to_string()));
    if grid.down.is_some() {
        (0..rows).for_each(|r| text(0, (r + 1) * H, &r.to_string()));
    }
    for r in 0..rows {
        for c in 0..cols {
            let at = grid.at(r, c);
            let (x, y) = ((c + 1) * W, (r + 1) * H);
            let _ = writeln!(
                out,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{W}\" height=\"{H}\" fill=\"{}\" stroke=\"#888\"/><text x=\"{}\" y=\"{}\">{}</text>",
                colour(tile, &at),
                x + W / 2,
                y + H / 2 + 4,
                cell(tile, &at, &axes)
            );
        }
    }
    out.push_str("</svg>\n");
    out
}

/// Twelve light colours, by owner.
fn colour(tile: &Shared, at: &At) -> String {
    let owner =
        at[Axis::Thr] + at[Axis::Simd] + at[Axis::Group] + at[Axis::Cta] + tile.swizzled(at[Axis::Mem]) / 16;
    format!("hsl({},70%,{}%)", owner % 12 * 30, 88 - owner / 12 % 3 * 6)
}
