//! The disk cache under damage, bounds, and several processes.

use pantile_runtime::cache::{Cache, Key, KeyBuilder};
use std::path::{Path, PathBuf};
use std::process::Command;

fn key(i: u32) -> Key {
    KeyBuilder::new("test").field(&i.to_le_bytes()).finish()
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let folders = std::fs::read_dir(dir).unwrap().map(|f| f.unwrap().path());
    let files =
        folders.flat_map(|f| std::fs::read_dir(f).unwrap().map(|f| f.unwrap().path()).collect::<Vec<_>>());
    files.filter(|f| f.extension().is_none()).collect()
}

#[test]
fn stores_and_finds() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::at(dir.path(), 1 << 20);
    assert_eq!(cache.get(&key(1)), None);
    cache.put(&key(1), b"code").unwrap();
    cache.put(&key(2), b"").unwrap();
    assert_eq!(cache.get(&key(1)).unwrap(), b"code");
    assert_eq!(cache.get(&key(2)).unwrap(), b"");
    assert_eq!(cache.usage().entries, 2);
    assert_eq!(cache.clear().unwrap().entries, 2);
    assert_eq!((cache.get(&key(1)), cache.usage().entries), (None, 0));
}

#[test]
fn parts_of_a_key_do_not_run_together() {
    let two = |a: &[u8], b: &[u8]| KeyBuilder::new("k").field(a).field(b).finish();
    assert_ne!(two(b"ab", b"c"), two(b"a", b"bc"));
    assert_ne!(KeyBuilder::new("a").finish(), KeyBuilder::new("b").finish());
}

#[test]
fn damage_counts_as_absent_and_is_mended() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::at(dir.path(), 1 << 20);
    let damage: [fn(&mut Vec<u8>); 5] =
        [|b| b[0] ^= 1, |b| b[20] ^= 1, |b| *b.last_mut().unwrap() ^= 1, |b| b.truncate(50), |b| b.clear()];
    for spoil in damage {
        cache.put(&key(1), b"some machine code").unwrap();
        let [path] = entries(cache.dir()).try_into().unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        spoil(&mut bytes);
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(cache.get(&key(1)), None);
        assert!(!path.exists());
        let made = cache.get_or_make(&key(1), || Ok::<_, ()>(b"again".to_vec())).unwrap();
        assert_eq!((made, cache.get(&key(1)).unwrap()), (b"again".to_vec(), b"again".to_vec()));
    }
}

#[test]
fn failures_of_the_disk_are_soft() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, b"").unwrap();
    let cache = Cache::at(file.join("below"), 1 << 20);
    assert_eq!(cache.get_or_make(&key(1), || Ok::<_, ()>(vec![7])), Ok(vec![7]));
    assert_eq!(cache.get(&key(1)), None);
    assert!(cache.put(&key(1), b"x").is_err() && cache.writable().is_err());
    assert_eq!(cache.get_or_make(&key(2), || Err::<Vec<u8>, _>("no")), Err("no"));
}

#[test]
fn the_least_used_go_first() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::at(dir.path(), 10_000);
    let payload = vec![1u8; 1000];
    for i in 0..9 {
        cache.put(&key(i), &payload).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(15));
    }
    assert!(cache.get(&key(0)).is_some(), "used now, so it stays");
    std::thread::sleep(std::time::Duration::from_millis(15));
    cache.put(&key(9), &payload).unwrap();
    let usage = cache.usage();
    assert!(usage.bytes <= 9_000 && usage.entries == 8, "{usage:?}");
    assert!(cache.get(&key(0)).is_some() && cache.get(&key(9)).is_some());
    assert!(cache.get(&key(1)).is_none() && cache.get(&key(2)).is_none());
}

const CHILD: &str = "PANTILE_TEST_CACHE_CHILD";

/// Runs only as the child of the next test: makes each entry once, slowly, and writes down that it did.
#[test]
fn child() {
    let Some(dir) = std::env::var_os(CHILD).map(PathBuf::from) else { return };
    let cache = Cache::at(&dir, 1 << 30);
    for i in 0..20 {
        let payload = cache.get_or_make(&key(i), || {
            let mark = dir.join(format!("made-{i}-{}", std::process::id()));
            std::fs::write(mark, b"").unwrap();
            std::thread::sleep(std::time::Duration::from_millis(5));
            Ok::<_, ()>(vec![i as u8; 50_000])
        });
        assert_eq!(payload.unwrap(), vec![i as u8; 50_000]);
    }
}

#[test]
fn processes_share_the_work() {
    let dir = tempfile::tempdir().unwrap();
    let me = std::env::current_exe().unwrap();
    let start = || Command::new(&me).args(["--exact", "child"]).env(CHILD, dir.path()).spawn().unwrap();
    let children: Vec<_> = (0..6).map(|_| start()).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let made = std::fs::read_dir(dir.path()).unwrap();
    let made =
        made.filter(|f| f.as_ref().unwrap().file_name().to_string_lossy().starts_with("made-")).count();
    assert_eq!(made, 20, "each entry is made by one process");
    assert_eq!(Cache::at(dir.path(), 1 << 30).usage().entries, 20);
}
