//! Array files: every type survives, foreign forms are read, damaged files are named errors.

use pantile_abi::{DType, PackOrder, Packing};
use pantile_runtime::files::{self, ArrayPath, Wanted};
use pantile_runtime::random::{Distribution, Recipe};
use pantile_runtime::{ErrorKind, HostTensor};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

fn at(path: &Path) -> ArrayPath {
    ArrayPath { path: path.to_path_buf(), key: None }
}

fn key(path: &Path, key: &str) -> ArrayPath {
    ArrayPath { path: path.to_path_buf(), key: Some(key.into()) }
}

fn some(dtype: DType, shape: &[usize], packed: Option<Packing>) -> HostTensor {
    Recipe::new(Distribution::Int { range: None }, 3).make(dtype, shape, packed).unwrap()
}

#[test]
fn every_type_survives_every_format() {
    let dir = tempfile::tempdir().unwrap();
    let shapes: [&[usize]; 6] = [&[1], &[33], &[0], &[7, 0], &[3, 8], &[2, 5, 4]];
    for suffix in ["npy", "npz", "safetensors"] {
        for dtype in DType::ALL {
            for shape in shapes {
                if dtype.bits() == 4 && shape.last().is_some_and(|e| e % 2 == 1) {
                    continue;
                }
                let t = some(dtype, shape, None);
                let path = dir.path().join(format!("x.{suffix}"));
                files::write(&[(at(&path), "X", &t)]).unwrap();
                let wanted = Wanted { dtype, packed: t.packed() };
                let back = files::read_tensor(&at(&path), Some(wanted)).unwrap();
                assert_eq!((back.dtype(), back.shape()), (dtype, shape), "{suffix}");
                assert_eq!(back.bytes(), t.bytes(), "{suffix} {dtype} {shape:?}");
            }
        }
    }
}

#[test]
fn scalars_have_no_axes() {
    let dir = tempfile::tempdir().unwrap();
    let t = HostTensor::from_f64(DType::F32, &[], &[2.5]).unwrap();
    for suffix in ["npy", "npz", "safetensors"] {
        let path = dir.path().join(format!("x.{suffix}"));
        files::write(&[(at(&path), "X", &t)]).unwrap();
        let back = files::read_tensor(&at(&path), None).unwrap();
        assert_eq!((back.shape(), back.to_f64()), (&[][..], vec![2.5]));
    }
}

#[test]
fn packed_words_keep_their_order() {
    let dir = tempfile::tempdir().unwrap();
    for order in [PackOrder::Linear, PackOrder::Gptq, PackOrder::Awq] {
        for axis in [0, 1] {
            let packed = Some(Packing { axis, order });
            let t = some(DType::U4, &[16, 24], packed);
            let path = dir.path().join("w.npy");
            files::write(&[(at(&path), "W", &t)]).unwrap();
            let wanted = Wanted { dtype: DType::U4, packed };
            let back = files::read_tensor(&at(&path), Some(wanted)).unwrap();
            assert_eq!((back.shape(), back.to_f64()), (&[16, 24][..], t.to_f64()), "{order:?} {axis}");
        }
    }
}

#[test]
fn archives_hold_several_arrays() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (some(DType::F32, &[3], None), some(DType::I64, &[2, 2], None));
    for suffix in ["npz", "safetensors"] {
        let path = dir.path().join(format!("x.{suffix}"));
        files::write(&[(key(&path, "a.b"), "A", &a), (at(&path), "B", &b)]).unwrap();
        assert_eq!(files::read_tensor(&key(&path, "a.b"), None).unwrap().to_f64(), a.to_f64());
        assert_eq!(files::read_tensor(&key(&path, "B"), None).unwrap().to_f64(), b.to_f64());
        let e = files::read(&at(&path)).unwrap_err();
        assert_eq!(e.kind, ErrorKind::KeyMissing);
        let help = e.help.unwrap();
        assert!(help.contains("`a.b`") && help.contains("`B`"), "{help}");
        let e = files::read(&key(&path, "C")).unwrap_err();
        assert!(e.message.ends_with("holds no array `C`"), "{e}");
        let mut names: Vec<_> = files::list(&path).unwrap().into_iter().map(|(n, ..)| n).collect();
        names.sort();
        assert_eq!(names, ["B", "a.b"]);
        let twice = files::write(&[(key(&path, "B"), "A", &a), (at(&path), "B", &b)]).unwrap_err();
        assert_eq!(twice.kind, ErrorKind::FileUnsupported);
    }
    let npy = dir.path().join("x.npy");
    let e = files::write(&[(at(&npy), "A", &a), (at(&npy), "B", &b)]).unwrap_err();
    assert_eq!(e.kind, ErrorKind::FileUnsupported);
    assert!(!npy.exists());
}

#[test]
fn other_arrays_of_an_archive_stay() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b, c) =
        (some(DType::F32, &[3], None), some(DType::F64, &[2, 2], None), some(DType::U8, &[5], None));
    for suffix in ["npz", "safetensors"] {
        let path = dir.path().join(format!("x.{suffix}"));
        // an empty file holds a place
        std::fs::write(&path, "").unwrap();
        files::write(&[(key(&path, "a"), "A", &a), (key(&path, "b"), "B", &b)]).unwrap();
        files::write(&[(key(&path, "c"), "C", &c), (key(&path, "a"), "A", &c)]).unwrap();
        for (name, want) in [("a", &c), ("b", &b), ("c", &c)] {
            let back = files::read_tensor(&key(&path, name), None).unwrap();
            assert_eq!((back.dtype(), back.to_f64()), (want.dtype(), want.to_f64()), "{suffix} {name}");
        }
        let short = dir.path().join(format!("short.{suffix}"));
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&short, &whole[..whole.len() - 30]).unwrap();
        let e = files::write(&[(key(&short, "d"), "A", &a)]).unwrap_err();
        assert_eq!(e.kind, ErrorKind::FileFormat, "{e}");
        assert_eq!(std::fs::read(&short).unwrap(), whole[..whole.len() - 30], "{suffix} was touched");
        std::fs::write(&short, "no archive").unwrap();
        let e = files::check_writable(&[(key(&short, "d"), "A")]).unwrap_err();
        assert!(e.help.is_some_and(|h| h.contains("another file")), "{suffix}");
    }
}

#[test]
fn metadata_of_safetensors_stays() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.safetensors");
    let head = r#"{"__metadata__":{"format":"pt"},"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}"#;
    let bytes = [&(head.len() as u64).to_le_bytes(), head.as_bytes(), &[7, 9]].concat();
    std::fs::write(&path, bytes).unwrap();
    files::write(&[(key(&path, "y"), "Y", &some(DType::F32, &[3], None))]).unwrap();
    assert!(String::from_utf8_lossy(&std::fs::read(&path).unwrap()).contains(r#"{"format":"pt"}"#));
    assert_eq!(files::read_tensor(&key(&path, "w"), None).unwrap().to_f64(), [7.0, 9.0]);
}

#[cfg(unix)]
#[test]
fn links_and_permissions_stay() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let dir = tempfile::tempdir().unwrap();
    let (file, link) = (dir.path().join("x.npy"), dir.path().join("link.npy"));
    std::fs::write(&file, "").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    symlink("x.npy", &link).unwrap();
    symlink("y.npy", dir.path().join("new.npy")).unwrap();
    let t = some(DType::F32, &[3], None);
    for name in ["link.npy", "new.npy"] {
        let path = dir.path().join(name);
        files::check_writable(&[(at(&path), "X")]).unwrap();
        files::write(&[(at(&path), "X", &t)]).unwrap();
        assert!(path.is_symlink(), "{name}");
    }
    for name in ["x.npy", "y.npy"] {
        let back = files::read_tensor(&at(&dir.path().join(name)), None).unwrap();
        assert_eq!(back.to_f64(), t.to_f64(), "{name}");
    }
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    symlink("round.npy", dir.path().join("round.npy")).unwrap();
    assert!(files::write(&[(at(&dir.path().join("round.npy")), "X", &t)]).is_err());
    // a device is written, not replaced
    files::put(Path::new("/dev/null"), b"x").unwrap();
    assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
}

/// A version 1 file with this header.
fn npy(dict: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((dict.len() as u16).to_le_bytes());
    bytes.extend(dict.bytes());
    bytes.extend(data);
    bytes
}

struct File {
    _dir: tempfile::TempDir,
    path: PathBuf,
}

fn file(name: &str, bytes: &[u8]) -> File {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    File { _dir: dir, path }
}

#[test]
fn foreign_orders_are_read() {
    let dict = "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }   \n";
    let columns: Vec<u8> = [1i16, 4, 2, 5, 3, 6].iter().flat_map(|v| v.to_be_bytes()).collect();
    let f = file("x.npy", &npy(dict, &columns));
    let t = files::read_tensor(&at(&f.path), None).unwrap();
    assert_eq!(t.to_f64(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(t.dtype(), DType::I16);

    let cube: Vec<u8> = (0..24).collect();
    let dict = "{\"shape\":(2L,3L,4L),\"fortran_order\":True,\"descr\":\"|u1\"}";
    let f = file("x.npy", &npy(dict, &cube));
    let t = files::read_tensor(&at(&f.path), None).unwrap();
    for (i, j, k) in [(0, 0, 0), (1, 2, 3), (1, 0, 2), (0, 2, 1)] {
        assert_eq!(t.get((i * 3 + j) * 4 + k), (i + 2 * (j + 3 * k)) as f64);
    }
}

#[test]
fn version_two_and_three_headers() {
    for version in [2, 3] {
        let dict = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}";
        let mut bytes = b"\x93NUMPY".to_vec();
        bytes.extend([version, 0]);
        bytes.extend((dict.len() as u32).to_le_bytes());
        bytes.extend(dict);
        bytes.extend(1.5f64.to_le_bytes());
        let f = file("x.npy", &bytes);
        assert_eq!(files::read_tensor(&at(&f.path), None).unwrap().to_f64(), [1.5]);
    }
}

#[test]
fn raw_bytes_take_the_type_that_is_wanted() {
    let two = npy("{'descr': '|V2', 'fortran_order': False, 'shape': (1,)}", &[0x80, 0x3f]);
    let f = file("x.npy", &two);
    assert_eq!(files::read_tensor(&at(&f.path), None).unwrap().to_f64(), [1.0]);
    let one = npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1,)}", &[0x38]);
    let f = file("x.npy", &one);
    let as_type =
        |dtype| files::read_tensor(&at(&f.path), Some(Wanted { dtype, packed: None })).unwrap().to_f64()[0];
    assert_eq!((as_type(DType::F8E4M3), as_type(DType::F8E5M2), as_type(DType::F32)), (1.0, 0.5, 56.0));
}

#[test]
fn flaws_are_named() {
    let head = |shape: &str| format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}");
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (b"".to_vec(), "it ends inside its head"),
        (b"PK\x03\x04 something else".to_vec(), "it is no .npy file"),
        (b"\x93NUMPY\x09\x00\x00\x00".to_vec(), "its format version 9 is not known"),
        (npy(&head("(2,)"), &[0; 7]), "shape [2] needs 8 bytes, but it holds 7"),
        (npy(&head("(2,)"), &[0; 9]), "shape [2] needs 8 bytes, but it holds 9"),
        (npy(&head("(4294967296, 4294967296)"), &[]), "is too large"),
        (npy(&head("(-1,)"), &[0; 4]), "no list of numbers"),
        (npy(&head("(99999999999999999999999,)"), &[]), "no list of numbers"),
        (npy("{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", &[0; 8]), "elements of type `<c8`"),
        (npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", &[0; 8]), "elements of type `|O`"),
        (npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", &[0; 4]), "several fields"),
        (npy("{'fortran_order': False, 'shape': (1,)}", &[0; 4]), "names no element type"),
        (npy("{'descr': '<f4", &[]), "open quote"),
        (npy(&(head("(1,)") + "x"), &[0; 4]), "goes on after its end"),
        (npy("{'descr': '|b1', 'fortran_order': False, 'shape': (1,)}", &[2]), "other bytes than 0 and 1"),
    ];
    for (bytes, says) in cases {
        let f = file("x.npy", &bytes);
        let e = files::read_tensor(&at(&f.path), None).unwrap_err();
        assert!(e.message.contains(says), "{e} does not say {says}");
        assert!(e.message.contains("x.npy"), "{e} does not name the file");
    }
    let e = files::read(&at(Path::new("/nowhere/x.npy"))).unwrap_err();
    assert_eq!(
        (e.kind, e.message.as_str()),
        (ErrorKind::FileMissing, "cannot read `/nowhere/x.npy`: no such file")
    );
    let e = files::read(&at(Path::new("x.txt"))).unwrap_err();
    assert_eq!(e.kind, ErrorKind::FileUnsupported);
}

#[test]
fn nothing_half_written_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let t = some(DType::F32, &[3], None);
    let e = files::write(&[(at(&dir.path().join("no/such/x.npy")), "X", &t)]).unwrap_err();
    assert_eq!(e.kind, ErrorKind::FileMissing);
    let folder = dir.path().join("x.npy");
    std::fs::create_dir(&folder).unwrap();
    assert!(files::write(&[(at(&folder), "X", &t)]).is_err());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "a part file was left");
}

#[test]
fn paths() {
    let parse = |t: &str| ArrayPath::parse(t).map(|p| (p.path.display().to_string(), p.key));
    assert_eq!(parse("a/b.npy"), Some(("a/b.npy".into(), None)));
    assert_eq!(
        parse("m.safetensors:model.layers.0:w"),
        Some(("m.safetensors".into(), Some("model.layers.0:w".into())))
    );
    assert_eq!(parse("c:/x.npz:k.npy"), Some(("c:/x.npz".into(), Some("k.npy".into()))));
    assert_eq!(parse("normal:3x4"), None);
    assert_eq!(parse("1e-5"), None);
}

fn sound(suffix: &str) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(format!("x.{suffix}"));
    let (a, b) = (some(DType::F32, &[3, 5], None), some(DType::BF16, &[4], None));
    match suffix {
        "npy" => files::write(&[(at(&path), "A", &a)]),
        _ => files::write(&[(at(&path), "A", &a), (at(&path), "B", &b)]),
    }
    .unwrap();
    std::fs::read(path).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Cut or damaged files give an error or an array, never a panic or a huge allocation.
    #[test]
    fn damage_is_survived(
        which in 0usize..3,
        cut in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
    ) {
        let suffix = ["npy", "npz", "safetensors"][which];
        let mut bytes = sound(suffix);
        for (i, b) in &edits {
            let i = i.index(bytes.len());
            bytes[i] = *b;
        }
        if edits.len() % 2 == 0 {
            bytes.truncate(cut.index(bytes.len() + 1));
        }
        let f = file(&format!("x.{suffix}"), &bytes);
        let from = if suffix == "npy" { at(&f.path) } else { key(&f.path, "A") };
        if let Err(e) = files::read_tensor(&from, None) {
            prop_assert!(!e.message.is_empty());
        }
        let _ = files::list(&f.path);
    }
}
