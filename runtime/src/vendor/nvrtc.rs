//! NVIDIA's run-time compiler: CUDA C++ to a device image and PTX, in this process.
//!
//! The library has no search path for its companion, so that is loaded first, by its full path.

use super::find;
use crate::error::{Error, ErrorKind, Result};
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Names the library file or its folder; nothing else is then looked at.
pub const VARIABLE: &str = "PANTILE_NVRTC";
const STEM: &str = "libnvrtc";
const HELP: &str = "install a CUDA toolkit, or `pip install nvidia-cuda-nvrtc` in the active Python environment, or set \
                    PANTILE_NVRTC to the library or its folder";

type Handle = *mut c_void;
type Size = unsafe extern "C" fn(Handle, *mut usize) -> c_int;
type Bytes = unsafe extern "C" fn(Handle, *mut c_char) -> c_int;

/// The loaded compiler. It stays loaded: what it holds per process cannot be taken away safely.
pub struct Nvrtc {
    path: PathBuf,
    version: (u32, u32),
    api: Api,
}

struct Api {
    error: unsafe extern "C" fn(c_int) -> *const c_char,
    create: unsafe extern "C" fn(
        *mut Handle,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> c_int,
    destroy: unsafe extern "C" fn(*mut Handle) -> c_int,
    compile: unsafe extern "C" fn(Handle, c_int, *const *const c_char) -> c_int,
    log_size: Size,
    log: Bytes,
    cubin_size: Size,
    cubin: Bytes,
    ptx_size: Size,
    ptx: Bytes,
}

/// What came of a source.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// Machine code; empty where only an abstract architecture (`compute_90`) was asked for.
    pub cubin: Vec<u8>,
    pub ptx: String,
    /// Warnings, and the assembler's report on registers and memory.
    pub log: String,
}

impl Nvrtc {
    /// The compiler of this machine, looked for once.
    pub fn find() -> Result<&'static Nvrtc> {
        static FOUND: OnceLock<std::result::Result<Nvrtc, String>> = OnceLock::new();
        let found = FOUND.get_or_init(|| search().map_err(|e| e.message));
        found.as_ref().map_err(|m| Error::new(ErrorKind::Library, m.clone()).help(HELP))
    }

    /// Loads a library file.
    pub fn open(path: &Path) -> Result<Nvrtc> {
        let bad = |what: String| {
            Error::new(ErrorKind::Library, format!("`{}` cannot be loaded: {what}", path.display()))
                .help(HELP)
        };
        if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
            for companion in find::libraries(folder, "libnvrtc-builtins") {
                // SAFETY: a data library of the vendor; its initialisers do nothing that could disturb us.
                if let Ok(library) = unsafe { Library::new(&companion) } {
                    std::mem::forget(library);
                }
            }
        }
        // SAFETY: the vendor's compiler; loading it runs only its own initialisers.
        let library = unsafe { Library::new(path) }.map_err(|e| bad(e.to_string()))?;
        // SAFETY: types are those of nvrtc.h, unchanged since the functions exist.
        let (api, version) = unsafe { (Api::of(&library), version(&library)) };
        let (api, version) = (api.map_err(bad)?, version.map_err(bad)?);
        std::mem::forget(library);
        Ok(Nvrtc { path: path.into(), version, api })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// As its toolkit counts: 13.0.
    pub fn version(&self) -> (u32, u32) {
        self.version
    }

    /// Compiles a source for `sm_90a` and the like. `name` stands in messages; the error of a refused source carries
    /// the compiler's words.
    pub fn compile(&self, source: &str, name: &str, arch: &str, options: &[&str]) -> Result<Compiled> {
        let fixed = [format!("-arch={arch}"), "--std=c++17".into(), "--ptxas-options=-v".into()];
        let all = fixed.iter().map(String::as_str).chain(options.iter().copied());
        let options = all.map(|o| c_text(o, "an option")).collect::<Result<Vec<CString>>>()?;
        let program = Program::new(&self.api, &c_text(source, "the source")?, &c_text(name, "the name")?)?;
        let pointers: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
        let count = c_int::try_from(pointers.len()).unwrap_or(c_int::MAX);
        // SAFETY: the handle is live, the options are as many terminated strings.
        let status = unsafe { (self.api.compile)(program.handle, count, pointers.as_ptr()) };
        let log = text(program.get(self.api.log_size, self.api.log)?);
        if status != 0 {
            let (major, minor) = self.version;
            let words = self.api.words(status);
            let message =
                format!("NVRTC {major}.{minor} refused `{name}` for {arch}: {words}\n{}", log.trim_end());
            return Err(Error::new(ErrorKind::Compiler, message));
        }
        let cubin = match arch.starts_with("sm_") {
            true => program.get(self.api.cubin_size, self.api.cubin)?,
            false => Vec::new(),
        };
        Ok(Compiled { cubin, ptx: text(program.get(self.api.ptx_size, self.api.ptx)?), log })
    }
}

impl std::fmt::Debug for Nvrtc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NVRTC {}.{} ({})", self.version.0, self.version.1, self.path.display())
    }
}

fn search() -> Result<Nvrtc> {
    if let Some(asked) = find::set(VARIABLE) {
        let file = match asked.is_dir() {
            false => Some(asked.clone()),
            true => find::libraries(&asked, STEM).into_iter().next(),
        };
        let file = file.ok_or_else(|| {
            let message = format!("{VARIABLE} names `{}`, which holds no {STEM}.so", asked.display());
            Error::new(ErrorKind::Library, message)
        })?;
        return Nvrtc::open(&file);
    }
    let mut refused = Vec::new();
    for folder in find::library_folders() {
        for file in find::libraries(&folder, STEM) {
            match Nvrtc::open(&file) {
                Ok(found) => return Ok(found),
                Err(e) => refused.push(e.message),
            }
        }
    }
    // the system's own folders are known to the loader alone
    for name in ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"] {
        if let Ok(found) = Nvrtc::open(Path::new(name)) {
            return Ok(found);
        }
    }
    let mut message = String::from("NVIDIA's run-time compiler (libnvrtc) is not on this machine");
    refused.iter().for_each(|r| message += &format!("\n{r}"));
    Err(Error::new(ErrorKind::Library, message))
}

fn c_text(text: &str, what: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::new(ErrorKind::Compiler, format!("{what} holds a zero byte")))
}

/// Up to the first zero byte: sizes count it, and logs have more behind it.
fn text(mut bytes: Vec<u8>) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    bytes.truncate(end);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// # Safety
/// The library must be NVRTC.
unsafe fn version(library: &Library) -> std::result::Result<(u32, u32), String> {
    // SAFETY: the function's type is that of nvrtc.h.
    unsafe {
        let get: unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int = symbol(library, "nvrtcVersion")?;
        let (mut major, mut minor) = (0, 0);
        match get(&mut major, &mut minor) {
            0 => Ok((major.unsigned_abs(), minor.unsigned_abs())),
            _ => Err("it does not tell its version".into()),
        }
    }
}

/// # Safety
/// `T` must be the type of the function of that name.
unsafe fn symbol<T: Copy>(library: &Library, name: &str) -> std::result::Result<T, String> {
    // SAFETY: the caller's promise.
    unsafe { library.get::<T>(name.as_bytes()) }
        .map(|s| *s)
        .map_err(|_| format!("it has no `{name}`; version 11.3 or newer is needed"))
}

impl Api {
    /// # Safety
    /// The library must be NVRTC.
    unsafe fn of(library: &Library) -> std::result::Result<Api, String> {
        // SAFETY: the fields have the types of nvrtc.h.
        unsafe {
            Ok(Api {
                error: symbol(library, "nvrtcGetErrorString")?,
                create: symbol(library, "nvrtcCreateProgram")?,
                destroy: symbol(library, "nvrtcDestroyProgram")?,
                compile: symbol(library, "nvrtcCompileProgram")?,
                log_size: symbol(library, "nvrtcGetProgramLogSize")?,
                log: symbol(library, "nvrtcGetProgramLog")?,
                cubin_size: symbol(library, "nvrtcGetCUBINSize")?,
                cubin: symbol(library, "nvrtcGetCUBIN")?,
                ptx_size: symbol(library, "nvrtcGetPTXSize")?,
                ptx: symbol(library, "nvrtcGetPTX")?,
            })
        }
    }

    fn words(&self, status: c_int) -> String {
        // SAFETY: the library gives a static string for every number.
        let words = unsafe { (self.error)(status) };
        match words.is_null() {
            true => format!("status {status}"),
            // SAFETY: not null, terminated, never freed.
            false => unsafe { CStr::from_ptr(words) }.to_string_lossy().into_owned(),
        }
    }

    fn check(&self, status: c_int) -> Result<()> {
        match status {
            0 => Ok(()),
            _ => Err(Error::new(ErrorKind::Compiler, format!("NVRTC failed: {}", self.words(status)))),
        }
    }
}

struct Program<'a> {
    api: &'a Api,
    handle: Handle,
}

impl<'a> Program<'a> {
    fn new(api: &'a Api, source: &CStr, name: &CStr) -> Result<Program<'a>> {
        let mut handle = std::ptr::null_mut();
        let none = std::ptr::null();
        // SAFETY: terminated strings, which the library copies; no headers.
        let status = unsafe { (api.create)(&mut handle, source.as_ptr(), name.as_ptr(), 0, none, none) };
        api.check(status)?;
        Ok(Program { api, handle })
    }

    fn get(&self, size: Size, bytes: Bytes) -> Result<Vec<u8>> {
        let mut n = 0;
        // SAFETY: the handle is live.
        self.api.check(unsafe { size(self.handle, &mut n) })?;
        let mut out = vec![0u8; n];
        // SAFETY: the buffer has the size that the library asked for.
        self.api.check(unsafe { bytes(self.handle, out.as_mut_ptr().cast()) })?;
        Ok(out)
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is live and not used again.
        let _ = unsafe { (self.api.destroy)(&mut self.handle) };
    }
}
