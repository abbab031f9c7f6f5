//! Files that appear whole or not at all: each is written beside its place and renamed.
//!
//! The list of files under way is the one thing here that outlives a call: a signal handler has no other way to them.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

static UNDER_WAY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn under_way() -> MutexGuard<'static, Vec<PathBuf>> {
    // the list is whole after any panic
    UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes all that is half-written. For a process that ends at once: nobody writes to new places after this.
pub fn abandon() {
    let list = under_way();
    for part in list.iter() {
        // one that is gone is what is wanted
        let _ = fs::remove_file(part);
    }
    std::mem::forget(list);
}

/// A file under way. Dropped before [`Part::keep`], it goes.
#[derive(Debug)]
pub struct Part {
    /// Where it is written; `None` for a device or a pipe, which is written in place.
    beside: Option<PathBuf>,
    place: PathBuf,
}

impl Part {
    pub fn open(path: &Path) -> io::Result<(Part, File)> {
        let Some(beside) = beside(path)? else {
            let file = File::options().write(true).open(path)?;
            return Ok((Part { beside: None, place: path.to_path_buf() }, file));
        };
        let mut list = under_way();
        let file = File::create(&beside)?;
        list.push(beside.clone());
        Ok((Part { beside: Some(beside), place: target(path)? }, file))
    }

    /// Puts the file into its place, with the permissions of the one that was there.
    pub fn keep(mut self) -> io::Result<()> {
        let Some(beside) = &self.beside else { return Ok(()) };
        if let Ok(old) = fs::metadata(&self.place) {
            fs::set_permissions(beside, old.permissions())?;
        }
        let mut list = under_way();
        fs::rename(beside, &self.place)?;
        list.retain(|p| p != beside);
        self.beside = None;
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if let Some(beside) = &self.beside {
            let mut list = under_way();
            // it may have been removed by others
            let _ = fs::remove_file(beside);
            list.retain(|p| p != beside);
        }
    }
}

/// Writes a whole file.
pub fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (part, mut file) = Part::open(path)?;
    file.write_all(bytes)?;
    part.keep()
}

/// The name that a file has while it is written; `None` where what is there is no file to be replaced.
pub(super) fn beside(path: &Path) -> io::Result<Option<PathBuf>> {
    if fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir()) {
        return Ok(None);
    }
    let place = target(path)?;
    let mut name = place.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.part", std::process::id()));
    Ok(Some(place.with_file_name(name)))
}

/// Where links lead, also to a file that is not there yet.
fn target(path: &Path) -> io::Result<PathBuf> {
    const MOST_LINKS: usize = 40;
    let mut at = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        let Ok(to) = fs::read_link(&at) else { return Ok(at) };
        at = at.parent().unwrap_or(Path::new("")).join(to);
    }
    Err(io::Error::other("its links lead round in a circle"))
}
