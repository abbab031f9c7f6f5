//! The plan's schedule: a value that can be read and that fits the grid. What a target or a pass cannot do is theirs to
//! say.

use super::Verifier;
use crate::codes;
use crate::program::plan::Key;
use crate::program::schedule::Schedule;

pub(super) fn kernel(v: &mut Verifier) {
    let k = v.kernel;
    for e in k.plan.entries.iter().filter(|e| e.key == Key::Schedule) {
        if let Some(subject) = &e.subject {
            let message = format!("a schedule is of the whole kernel, not of `{subject}`");
            v.error(codes::SCHEDULE, e.span, message).help("write `schedule = …`");
            continue;
        }
        let schedule = match Schedule::read(&e.value) {
            Ok(schedule) => schedule,
            Err(wrong) => {
                v.error(codes::SCHEDULE, e.span, wrong.message).help(wrong.help);
                continue;
            }
        };
        let axes = k.grid.extents.len();
        if schedule.walk().is_some() && axes < 2 {
            let message = format!("the grid of `{}` has no rows and columns of tiles", k.name);
            v.error(codes::SCHEDULE, e.span, message)
                .help("leave out `raster` and `group`, or give the grid two axes");
        }
    }
}
