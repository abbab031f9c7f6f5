//! Built code on disk, found again by the hash of everything that went into it.
//!
//! An entry is a file `v1/ab/cdef…` under the cache folder: magic, length and hash of the payload, payload. Entries
//! appear by rename, so a reader sees a whole one or none; a damaged one counts as absent and is removed. Makers of one
//! entry wait for each other by a file lock, in one process or many. Every failure of the disk is soft: the cache then
//! holds nothing. When the bound is passed, entries unused for longest go first.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

const MAGIC: &[u8; 8] = b"pantile1";
const HEAD: usize = 8 + 8 + 32;
/// Bytes that the cache keeps unless `PANTILE_CACHE_SIZE` says otherwise.
const DEFAULT_BOUND: u64 = 2 << 30;
/// Left-overs of makers that died are removed after this time.
const STALE: Duration = Duration::from_secs(24 * 3600);

/// What an entry is found by.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key(blake3::Hash);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.to_hex())
    }
}

/// Collects everything that changes a result.
#[derive(Clone, Debug)]
pub struct KeyBuilder(blake3::Hasher);

impl KeyBuilder {
    /// `kind` keeps results of different makers apart, and names the version of their form.
    pub fn new(kind: &str) -> KeyBuilder {
        KeyBuilder(blake3::Hasher::new()).field(kind.as_bytes())
    }

    /// Adds one part; parts cannot run into each other.
    pub fn field(mut self, part: &[u8]) -> KeyBuilder {
        self.0.update(&(part.len() as u64).to_le_bytes());
        self.0.update(part);
        self
    }

    pub fn finish(self) -> Key {
        Key(self.0.finalize())
    }
}

#[derive(Debug)]
pub struct Cache {
    dir: PathBuf,
    bound: u64,
    /// Bytes written since the folder was last measured, plus what it held then; `u64::MAX` before that.
    held: AtomicU64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub entries: u64,
    pub bytes: u64,
}

/// The folder that [`Cache::open`] uses: `PANTILE_CACHE_DIR`, else `pantile` in the user's cache folder.
pub fn default_dir() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    if let Some(dir) = set("PANTILE_CACHE_DIR") {
        return Some(dir);
    }
    let user =
        set("XDG_CACHE_HOME").filter(|p| p.is_absolute()).or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(user.join("pantile"))
}

fn asked_bound() -> Option<String> {
    let value = std::env::var_os("PANTILE_CACHE_SIZE")?.to_string_lossy().into_owned();
    (!value.is_empty()).then_some(value)
}

/// What is wrong with `PANTILE_CACHE_SIZE`, whose default then holds.
pub fn wrong_bound() -> Option<String> {
    let value = asked_bound()?;
    match value.parse::<u64>() {
        Ok(_) => None,
        Err(_) => Some(format!("PANTILE_CACHE_SIZE is `{value}`, which is no number of bytes")),
    }
}

impl Cache {
    /// The user's cache; `None` where there is no place for one.
    pub fn open() -> Option<Cache> {
        let bound = asked_bound().and_then(|v| v.parse().ok());
        Some(Cache::at(default_dir()?, bound.unwrap_or(DEFAULT_BOUND)))
    }

    /// A cache in `dir` of at most about `bound` bytes. Nothing is created before the first entry.
    pub fn at(dir: impl Into<PathBuf>, bound: u64) -> Cache {
        Cache { dir: dir.into().join("v1"), bound, held: AtomicU64::new(u64::MAX) }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn bound(&self) -> u64 {
        self.bound
    }

    fn path(&self, key: &Key) -> PathBuf {
        let hex = key.0.to_hex();
        self.dir.join(&hex[..2]).join(&hex[2..])
    }

    /// The payload, if there is a sound one.
    pub fn get(&self, key: &Key) -> Option<Vec<u8>> {
        let path = self.path(key);
        let mut file = File::open(&path).ok()?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        let Some(payload) = sound_payload(&bytes) else {
            drop(file);
            let _ = fs::remove_file(&path);
            return None;
        };
        let payload = payload.to_vec();
        // the time of last use orders eviction; not being able to set it costs little
        if let Ok(file) = File::options().append(true).open(&path) {
            let _ = file.set_modified(SystemTime::now());
        }
        Some(payload)
    }

    /// Stores a payload. A failure leaves no trace under the key.
    pub fn put(&self, key: &Key, payload: &[u8]) -> io::Result<()> {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let path = self.path(key);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let part = path.with_extension(format!("{}-{serial}.part", std::process::id()));
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let write = || {
            let mut file = File::create(&part)?;
            file.write_all(MAGIC)?;
            file.write_all(&(payload.len() as u64).to_le_bytes())?;
            file.write_all(blake3::hash(payload).as_bytes())?;
            file.write_all(payload)?;
            drop(file);
            fs::rename(&part, &path)
        };
        write().inspect_err(|_| {
            let _ = fs::remove_file(&part);
        })?;
        self.keep_bound((payload.len() + HEAD) as u64);
        Ok(())
    }

    /// The payload from disk, or made now and stored. Of several makers of one key, in any process, one works and the
    /// others wait for it.
    pub fn get_or_make<E>(&self, key: &Key, make: impl FnOnce() -> Result<Vec<u8>, E>) -> Result<Vec<u8>, E> {
        if let Some(found) = self.get(key) {
            return Ok(found);
        }
        let lock = self.lock(key);
        if lock.is_some()
            && let Some(found) = self.get(key)
        {
            return Ok(found);
        }
        let made = make();
        if let Ok(payload) = &made {
            let _ = self.put(key, payload);
        }
        made
    }

    /// `None` where the file system has no locks; then work may be done twice, never wrongly.
    fn lock(&self, key: &Key) -> Option<File> {
        let path = self.path(key).with_extension("lock");
        fs::create_dir_all(path.parent()?).ok()?;
        let file = File::options().create(true).truncate(false).write(true).open(path).ok()?;
        file.lock().ok()?;
        Some(file)
    }

    /// Entries and bytes on disk.
    pub fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        for f in self.files().iter().filter(|f| f.is_entry()) {
            usage.entries += 1;
            usage.bytes += f.bytes;
        }
        usage
    }

    /// Removes every entry; what it removed.
    pub fn clear(&self) -> io::Result<Usage> {
        let usage = self.usage();
        match fs::remove_dir_all(&self.dir) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => {
                self.held.store(u64::MAX, Ordering::Relaxed);
                Ok(usage)
            }
        }
    }

    /// Can the folder hold entries, as far as can be told without making it?
    pub fn usable(&self) -> io::Result<()> {
        for folder in self.dir.ancestors().filter(|p| !p.as_os_str().is_empty()) {
            match fs::metadata(folder) {
                Ok(meta) if meta.is_dir() => break,
                Ok(_) => return Err(io::ErrorKind::NotADirectory.into()),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
        if self.dir.is_dir() { self.writable() } else { Ok(()) }
    }

    /// Can entries be written?
    pub fn writable(&self) -> io::Result<()> {
        fs::create_dir_all(&self.dir)?;
        let probe = self.dir.join(format!("{}.probe", std::process::id()));
        fs::write(&probe, b"")?;
        fs::remove_file(probe)
    }

    fn files(&self) -> Vec<Found> {
        let folders = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let inside = folders.flat_map(|f| fs::read_dir(f.path()).into_iter().flatten().flatten());
        (inside.filter_map(|f| {
            let meta = f.metadata().ok()?;
            let used = meta.modified().ok()?;
            Some(Found { path: f.path(), bytes: meta.len(), used })
        }))
        .collect()
    }

    /// Measures the folder once a process and again whenever the bound is passed; then the oldest entries go until a
    /// tenth is free, so that this is rare.
    fn keep_bound(&self, added: u64) {
        let before = self.held.load(Ordering::Relaxed);
        if before != u64::MAX {
            let held = self.held.fetch_add(added, Ordering::Relaxed) + added;
            if held <= self.bound {
                return;
            }
        }
        let now = SystemTime::now();
        let mut files = self.files();
        files.retain(|f| {
            let stale = !f.is_entry() && now.duration_since(f.used).is_ok_and(|age| age > STALE);
            if stale {
                let _ = fs::remove_file(&f.path);
            }
            f.is_entry()
        });
        let mut held: u64 = files.iter().map(|f| f.bytes).sum();
        if held > self.bound {
            files.sort_by_key(|f| f.used);
            for f in &files {
                if held <= self.bound / 10 * 9 {
                    break;
                }
                if fs::remove_file(&f.path).is_ok() {
                    held -= f.bytes;
                }
            }
        }
        self.held.store(held, Ordering::Relaxed);
    }
}

struct Found {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

impl Found {
    /// Entries have no suffix; locks and parts do.
    fn is_entry(&self) -> bool {
        self.path.extension().is_none()
    }
}

fn sound_payload(bytes: &[u8]) -> Option<&[u8]> {
    let (head, payload) = bytes.split_at_checked(HEAD)?;
    let length = u64::from_le_bytes(head[8..16].try_into().ok()?);
    let sound = head.starts_with(MAGIC)
        && length == payload.len() as u64
        && blake3::hash(payload).as_bytes()[..] == head[16..HEAD];
    sound.then_some(payload)
}
