//! Users' targets files: what they may add, and what each mistake is answered with.

use pantile_ir::DType;
use pantile_ir::codes;
use pantile_ir::diag::{Code, Diagnostics};
use pantile_ir::span::Sources;
use pantile_ir::target::{Backend, Mark, Targets, UserFile};

fn load(text: &str) -> (Result<Targets, Diagnostics>, Sources) {
    let mut sources = Sources::default();
    let file = UserFile { path: "mine.toml".into(), text: text.into() };
    (Targets::with_user(&[file], &mut sources), sources)
}

/// The only mistake of a text: its code, the text under the caret, message and help together.
fn mistake(text: &str) -> (Code, String, String) {
    let (found, sources) = load(text);
    let all = found.expect_err(text);
    assert_eq!(
        all.len(),
        1,
        "one mistake, one message: {:?}",
        all.iter().map(|d| &d.message).collect::<Vec<_>>()
    );
    let d = all.iter().next().expect("one");
    assert_eq!(sources.file(d.primary.span.file).name, "mine.toml");
    (d.code, sources.text(d.primary.span).to_string(), format!("{} {}", d.message, d.help.join(" ")))
}

fn expect(text: &str, code: Code, caret: &str, words: &str) {
    let (found, under, message) = mistake(text);
    assert_eq!((found, under.as_str()), (code, caret), "{message}");
    assert!(message.contains(words), "`{words}` is not in `{message}`");
}

const MINE: &str = "[arch.mine]\ninherits = \"sm_80\"\n";

#[test]
fn a_new_architecture_inherits_and_overrides() {
    let text = format!(
        "{MINE}note = \"a cut-down part\"\nwithout = [\"mma.m8n8k4.f64\"]\n\
         [arch.mine.shared]\nsource = \"datasheet\"\nunmeasured = [\"max_bytes\"]\nmax_bytes = 65536\n\
         [chip.toy]\narch = \"mine\"\n[chip.toy.facts]\nsource = \"datasheet\"\nprocessors = 4\n"
    );
    let (found, _) = load(&text);
    let targets = found.unwrap_or_else(|ds| panic!("{:?}", ds.iter().collect::<Vec<_>>()));
    let mine = targets.arch("mine").expect("declared");
    assert_eq!((mine.backend, mine.chain.join(" ")), (Backend::Cuda, "mine sm_80 sm_75".into()));
    assert_eq!(mine.fact("shared_bytes", &[]), Some(65536));
    assert_eq!(mine.fact("warp", &[]), Some(32), "inherited from sm_75");
    assert!(!mine.default);
    assert!(mine.matrix.iter().all(|u| u.name != "mma.m8n8k4.f64"));
    assert!(targets.arch("sm_80").is_some_and(|a| a.matrix.iter().any(|u| u.name == "mma.m8n8k4.f64")));
    let rows = mine.describe();
    let row = |key: &str| rows.iter().find(|e| e.key == key).unwrap_or_else(|| panic!("{key} is listed"));
    let shared = row("shared.max_bytes");
    assert_eq!(
        (shared.value.as_str(), shared.source.as_str(), shared.mark),
        ("65536", "datasheet", Mark::Unmeasured)
    );
    assert_eq!((row("threads.warp_size").owner.as_str(), shared.owner.as_str()), ("sm_75", "mine"));
    assert_eq!(targets.chip("toy").map(|c| c.describe().len()), Some(1));
}

#[test]
fn a_shipped_architecture_can_be_corrected() {
    let (found, _) = load(
        "[arch.mp_31.threads]\nsource = \"my card\"\nmeasured = [\"max_per_block\"]\nmax_per_block = 512\n",
    );
    let targets = found.expect("sound");
    let entry = targets.arch("mp_31").expect("shipped").describe();
    let entry = entry.iter().find(|e| e.key == "threads.max_per_block").expect("listed");
    assert_eq!((entry.value.as_str(), entry.mark, entry.source.as_str()), ("512", Mark::Measured, "my card"));
    assert_eq!(targets.arch("mp_31").and_then(|a| a.fact("warp", &[])), Some(32), "the rest stays");
}

#[test]
fn mistakes_in_values_and_keys() {
    let threads = |body: &str| format!("{MINE}[arch.mine.threads]\nsource = \"s\"\n{body}\n");
    expect(&threads("warpsize = 32"), codes::TARGET_KEY, "warpsize", "did you mean `warp_size`?");
    expect(&threads("warp_size = \"32\""), codes::TARGET_VALUE, "\"32\"", "must be a whole number");
    expect(&threads("warp_size = -1"), codes::TARGET_VALUE, "-1", "must be a whole number");
    expect(&threads("warp_size = 48\nshuffle_width = 16"), codes::TARGET_VALUE, "48", "no power of two");
    expect(&threads("shuffle_width = 64"), codes::TARGET_VALUE, "64", "more than `threads.warp_size`, 32");
    expect(&threads("max_block = [1, \"x\"]"), codes::TARGET_VALUE, "[1, \"x\"]", "a list of whole numbers");
    expect(
        &threads("unmeasured = [\"group_size\"]"),
        codes::TARGET_KEY,
        "[\"group_size\"]",
        "does not state",
    );
    expect(
        &threads("group_size = 64\nmeasured = [\"group_size\"]\nunmeasured = [\"group_size\"]"),
        codes::TARGET_VALUE,
        "[\"group_size\"]",
        "both measured and unmeasured",
    );
    expect(
        &format!("{MINE}[arch.mine.threads]\ngroup_size = 64\n"),
        codes::TARGET_MISSING,
        "[arch.mine.threads]",
        "does not state `source`",
    );
    expect(&format!("{MINE}colour = 3\n"), codes::TARGET_KEY, "colour", "`arch.mine` has no key `colour`");
    expect(
        &format!("{MINE}[arch.mine.barriers]\nsource = \"s\"\nunit = \"wave\"\n"),
        codes::TARGET_VALUE,
        "\"wave\"",
        "one of `thread` and `warp`",
    );
    expect(
        &format!("{MINE}[arch.mine.access]\nsource = \"s\"\npreferred_bytes = {{ b8 = 1 }}\n"),
        codes::TARGET_VALUE,
        "{ b8 = 1 }",
        "widths by element size",
    );
    expect(
        &format!("{MINE}[arch.mine.atomics]\nsource = \"s\"\nadd = [\"i33\"]\n"),
        codes::TARGET_VALUE,
        "[\"i33\"]",
        "element types",
    );
    expect("[shelf.x]\n", codes::TARGET_KEY, "shelf", "has no key `shelf`");
}

#[test]
fn mistakes_in_the_file_itself() {
    let (code, _, message) = mistake("[arch.mine\nbackend = 3\n");
    assert_eq!(code, codes::TARGET_FILE, "{message}");
    assert!(message.contains("cannot be read"), "{message}");
    let (found, _) = load("a = = 1\n[arch.x]\nb = \n");
    assert!(found.expect_err("two faults").len() >= 2, "all mistakes of a file in one run");
}

#[test]
fn mistakes_in_inheritance() {
    expect("[arch.mine]\ninherits = \"sm_81\"\n", codes::TARGET_INHERITS, "\"sm_81\"", "did you mean");
    expect(
        "[arch.a]\ninherits = \"b\"\n[arch.b]\ninherits = \"c\"\n[arch.c]\ninherits = \"a\"\n",
        codes::TARGET_INHERITS,
        "\"a\"",
        "`a` -> `b` -> `c` -> `a`",
    );
    expect("[arch.a]\ninherits = \"a\"\n", codes::TARGET_INHERITS, "\"a\"", "inherits from itself");
    expect(
        "[arch.sm_90a]\ninherits = \"sm_75\"\n",
        codes::TARGET_INHERITS,
        "\"sm_75\"",
        "already inherits from `sm_89`",
    );
    expect(
        "[arch.mine]\ninherits = \"sm_80\"\nbackend = \"cpu\"\n",
        codes::TARGET_INHERITS,
        "mine",
        "cannot change its back end",
    );
    expect("[arch.mine]\nnote = \"n\"\n", codes::TARGET_MISSING, "mine", "does not state `backend`");
    expect("[arch.mine]\nbackend = \"vulkan\"\n", codes::TARGET_VALUE, "\"vulkan\"", "no back end is called");
    expect(
        "[arch.mine]\ninherits = \"sm_80\"\nwithout = [\"wgmma\"]\n",
        codes::TARGET_KEY,
        "[\"wgmma\"]",
        "no row called `wgmma`",
    );
    expect("[chip.toy]\narch = \"sm_80x\"\n", codes::TARGET_INHERITS, "\"sm_80x\"", "did you mean `sm_80`?");
    expect("[chip.toy]\ntitle = \"t\"\n", codes::TARGET_MISSING, "toy", "does not state `arch`");
}

#[test]
fn an_architecture_from_nothing_must_state_the_needful() {
    let (found, _) = load("[arch.mine]\nbackend = \"cuda\"\n");
    let all = found.expect_err("empty");
    assert_eq!(
        all.iter().map(|d| d.code).collect::<Vec<_>>(),
        [codes::TARGET_MISSING],
        "one message for all"
    );
    for key in ["threads.warp_size", "shared.max_bytes", "registers.per_block", "access.vector_bytes"] {
        assert!(all.iter().any(|d| d.message.contains(key)), "{key} is asked for");
    }
}

#[test]
fn a_new_warp_size_asks_for_rows_to_be_dropped_once() {
    let text = format!("{MINE}[arch.mine.threads]\nsource = \"s\"\nwarp_size = 64\n");
    expect(&text, codes::TARGET_MAP, "64", "without = [\"mma.m16n8k8.f16\"");
}

fn row(body: &str) -> String {
    format!(
        "{MINE}[[arch.mine.matrix]]\nname = \"new\"\nkind = \"mma\"\nsource = \"s\"\ninstruction = \"i\"\nteam = \"warp\"\n{body}\n"
    )
}

fn map(a: &str) -> String {
    row(&format!("m = 16\nn = 8\nk = 8\ntypes = [[\"f16\", \"f16\", \"f32\"]]\na.regs = \"{a}\""))
}

#[test]
fn mistakes_in_lane_maps() {
    assert!(load(&map("m: 2@reg*2, 8@thr*4 ; k: 4@thr, 2@reg")).0.is_ok());
    let bad = |text: &str, caret: &str, words: &str| expect(&map(text), codes::TARGET_MAP, caret, words);
    let whole = |text: &str, words: &str| bad(text, &format!("\"{text}\""), words);
    whole("m: 2@reg*2, 8@thr*4 ; k: 2@thr, 2@reg", "`k` has 4 indices, the instruction 8");
    whole("m: 2@reg*2, 8@thr*2 ; k: 4@thr, 2@reg", "leave or share places");
    whole("m: 2@reg*2, 8@thr ; k: 4@reg*4, 2@reg", "8 threads, the team has 32");
    whole("m: 2@reg*2, 8@thr*4 ; j: 4@thr, 2@reg", "the dims must be `m` and `k`");
    whole("m: 2@reg*2, 8@thr*4 ; k: Q@thr, 2@reg", "`Q` has no value");
    bad("m: 2@rex*2, 8@thr*4 ; k: 4@thr, 2@reg", "rex", "no axis is called `rex`");
    whole("m: 2@reg*2, 8@thr ; k: 4@mem, 2@reg", "no digits on mem");
    assert!(load(&map("m: 2@reg, 8@thr ; k: 8@reg*2 ; rep 4@thr*8")).0.is_ok(), "declared copies count");
}

#[test]
fn mistakes_in_rows() {
    let types = "types = [[\"f16\", \"f16\", \"f32\"]]";
    expect(
        &row(&format!("m = 16\nn = \"8..=4\"\nk = 8\n{types}")),
        codes::TARGET_VALUE,
        "\"8..=4\"",
        "an extent: 16",
    );
    expect(
        &row(&format!("m = 16\nn = 8\nk = 8\n{types}")).replace("team = \"warp\"", "team = \"crew\""),
        codes::TARGET_VALUE,
        "\"crew\"",
        "the teams are",
    );
    expect(
        &row(&format!("m = \"1..=4000\"\nn = \"1..=4000\"\nk = 8\n{types}")),
        codes::TARGET_VALUE,
        "\"1..=4000\"",
        "at most 4096 shapes",
    );
    let (found, _) = load(&row("m = 16\nn = 8\ntypes = []"));
    let all = found.expect_err("no k, no types");
    assert!(all.iter().any(|d| d.message.contains("does not state `k`")));
    let template = |text: &str| row(&format!("m = 16\nn = 8\nk = 8\n{types}\nb.shared_k = \"{text}\""));
    expect(
        &template("n: N@thr*P ; k: K@mem*2"),
        codes::TARGET_MAP,
        "\"n: N@thr*P ; k: K@mem*2\"",
        "lies on `mem`",
    );
    let short = "n: N@mem*P ; k: K@mem*2 ; xor<3,4,3> align 512";
    expect(&template(short), codes::TARGET_MAP, &format!("\"{short}\""), "repeats every 1024 bytes");
    let engine =
        format!("{MINE}[[arch.mine.engine]]\nname = \"dma\"\nsource = \"s\"\nswizzles = [\"xor<9>\"]\n");
    let (code, caret, _) = mistake(&engine);
    assert_eq!((code, caret.as_str()), (codes::TARGET_VALUE, "[\"xor<9>\"]"));
}

#[test]
fn target_names() {
    let targets = Targets::shipped();
    let name = |target: &str| {
        targets.arch_for_target(target).map(|a| a.name.clone()).map_err(|d| {
            assert_eq!(d.code, codes::UNKNOWN_TARGET);
            format!("{} {}", d.message, d.help.join(" "))
        })
    };
    assert_eq!(name("cuda:sm_80").as_deref(), Ok("sm_80"));
    assert_eq!(name("sm_80").as_deref(), Ok("sm_80"));
    assert_eq!(name("cuda").as_deref(), Ok("sm_90a"));
    assert_eq!(name("musa").as_deref(), Ok("mp_31"));
    assert_eq!(name("interp").as_deref(), Ok("reference"));
    let cpu = targets.arch_for_target("cpu").expect("this machine has a default");
    assert_eq!(cpu.facts.simd.machine.as_ref().map(|m| m.value.as_str()), Some(std::env::consts::ARCH));
    assert!(name("cuda:sm_8").expect_err("unknown").contains("did you mean `sm_80`?"));
    assert!(name("musa:sm_80").expect_err("another back end").contains("write `cuda:sm_80`"));
    assert!(name("metal").expect_err("unknown").contains("back ends: `interp`, `cpu`, `cuda` and `musa`"));
}

#[test]
fn processors_are_chosen_by_features() {
    let targets = Targets::shipped();
    let best =
        |machine: &str, has: &[&str]| targets.best_cpu(machine, |f| has.contains(&f)).map(|a| a.name.clone());
    let v3 = ["avx2", "bmi2", "f16c", "fma", "lzcnt", "movbe"];
    let v4 = [&v3[..], &["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"]].concat();
    assert_eq!(best("x86_64", &v3).as_deref(), Some("x86-64-v3"));
    assert_eq!(best("x86_64", &v4).as_deref(), Some("x86-64-v4"));
    assert_eq!(best("x86_64", &["sse2"]), None);
    assert_eq!(best("aarch64", &["neon"]).as_deref(), Some("aarch64-neon"));
}

#[test]
fn every_shipped_value_has_a_source_and_vectors_are_as_wide_as_documented() {
    let targets = Targets::shipped();
    let names: Vec<&str> = targets.archs().map(|a| a.name.as_str()).collect();
    for name in [
        "reference",
        "sm_75",
        "sm_80",
        "sm_86",
        "sm_89",
        "sm_90a",
        "sm_100a",
        "mp_22",
        "mp_31",
        "x86-64-v3",
        "x86-64-v4",
        "x86-64-amx",
        "aarch64-neon",
    ] {
        assert!(names.contains(&name), "{name} is shipped");
    }
    for title in ["H200", "H100", "A100", "RTX 4090", "S5000", "S4000"] {
        assert!(targets.chip(title).is_some(), "{title} is shipped");
    }
    let rows: Vec<_> = targets
        .archs()
        .flat_map(|a| a.describe())
        .chain(targets.chips().flat_map(|c| c.describe()))
        .collect();
    assert!(rows.iter().all(|e| !e.source.is_empty() && !e.value.is_empty()));
    assert!(
        [Mark::Measured, Mark::Documented, Mark::Unmeasured]
            .iter()
            .all(|m| rows.iter().any(|e| e.mark == *m))
    );
    let vec = |arch: &str, t| targets.arch(arch).and_then(|a| a.fact("vec", &[t]));
    assert_eq!(vec("sm_80", DType::F16), Some(8));
    assert_eq!(vec("mp_31", DType::F32), Some(4));
    assert_eq!(vec("x86-64-v4", DType::F32), Some(16));
    assert_eq!(targets.fact_range("vec", &[DType::F16]), Some((8, 32)));
    assert_eq!(targets.fact_range("warp", &[]), Some((32, 128)));
}

/// Random damage to the shipped file: never a panic, and every complaint points into the text.
#[test]
fn damaged_files_are_answered_not_crashed_on() {
    let mut seed = 0x9E37_79B9_7F4A_7C15u64;
    let mut next = |n: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 33) as usize % n
    };
    let lines: Vec<&str> = Targets::SHIPPED.lines().collect();
    let numbers = ["0", "3", "4294967295", "-1", "\"\"", "[]", "9e99", "{}", "true"];
    let mut refused = 0;
    for _ in 0..300 {
        let mut text: Vec<String> = lines.iter().map(|l| l.to_string()).collect();
        for _ in 0..1 + next(3) {
            let at = next(text.len());
            match next(5) {
                0 => drop(text.remove(at)),
                1 => {
                    let other = (at + 1) % text.len();
                    text.swap(at, other);
                }
                2 => {
                    if let Some((key, _)) = text[at].clone().split_once('=') {
                        text[at] = format!("{key}= {}", numbers[next(numbers.len())]);
                    }
                }
                3 => {
                    let line = text[at].clone();
                    let cut = next(line.len() + 1);
                    text[at] = line.chars().take(cut).collect();
                }
                _ => text[at] = text[at].replace(['8', '4'], ["0", "7", "99999999999"][next(3)]),
            }
        }
        let text =
            text.join("\n").replace("[arch.", "[arch.my-").replace("inherits = \"", "inherits = \"my-");
        let (found, sources) = load(&text);
        let Err(all) = found else { continue };
        refused += 1;
        for d in all.iter() {
            let file = sources.file(d.primary.span.file);
            assert!(d.primary.span.end as usize <= file.text.len(), "{}", d.message);
        }
    }
    assert!(refused > 100, "{refused} of 300 were refused");
}
