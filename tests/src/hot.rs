//! The loop of a kernel's assembly in which it spends its time: the innermost one with the most vector arithmetic.

/// What is known of it.
#[derive(Debug, PartialEq)]
pub struct Hot {
    /// Its lines, labels renumbered.
    pub text: String,
    /// loops of the whole code, innermost ones
    pub loops: usize,
    pub instructions: usize,
    /// bits of the widest registers in it
    pub bits: u32,
    pub fma: usize,
    /// accesses to the stack: values that found no register
    pub stack: usize,
}

/// Lines of a loop that are shown.
const SHOWN: usize = 160;

/// Finds it in AT&T or Intel syntax; `None` where the code has no loop.
pub fn hot_loop(asm: &str) -> Option<Hot> {
    let lines: Vec<&str> = asm.lines().map(code).filter(|l| !l.is_empty()).collect();
    let label = |l: &str| l.strip_suffix(':').filter(|n| n.starts_with(".L")).map(str::to_string);
    let mut places = std::collections::HashMap::new();
    let mut loops: Vec<(usize, usize)> = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        if let Some(name) = label(line) {
            places.insert(name, i);
        } else if line.starts_with('j')
            && let Some(&to) = line.split_whitespace().nth(1).and_then(|t| places.get(t))
        {
            loops.push((to, i));
        }
    }
    let inner: Vec<(usize, usize)> = loops
        .iter()
        .copied()
        .filter(|&(a, b)| !loops.iter().any(|&(c, d)| (c, d) != (a, b) && a <= c && d <= b))
        .collect();
    let work = |&(a, b): &(usize, usize)| {
        let vector = lines[a..=b].iter().filter(|l| is_vector(l)).count();
        (vector, b - a)
    };
    // of equals the first
    let &(a, b) = inner.iter().rev().max_by_key(|r| work(r))?;
    let body: Vec<&str> = lines[a..=b].to_vec();
    let instructions: Vec<&&str> = body.iter().filter(|l| !l.ends_with(':')).collect();
    let has = |what: &str| instructions.iter().filter(|l| l.contains(what)).count();
    let bits = [("zmm", 512), ("ymm", 256), ("xmm", 128)]
        .into_iter()
        .find(|(r, _)| has(r) > 0)
        .map_or(0, |(_, b)| b);
    Some(Hot {
        loops: inner.len(),
        instructions: instructions.len(),
        bits,
        fma: instructions.iter().filter(|l| l.starts_with("vfm") || l.starts_with("vfnm")).count(),
        stack: has("rsp"),
        text: shown(&body),
    })
}

fn code(line: &str) -> &str {
    let line = line.split('#').next().unwrap_or("").trim();
    // directives; labels of blocks begin so too
    if line.starts_with('.') && !line.ends_with(':') { "" } else { line }
}

fn is_vector(line: &str) -> bool {
    line.starts_with('v') && ["xmm", "ymm", "zmm"].iter().any(|r| line.contains(r))
}

/// Labels in the order in which they appear, so that other code before the loop does not show.
fn shown(body: &[&str]) -> String {
    let mut names: Vec<String> = Vec::new();
    let mut out = String::new();
    for line in body.iter().take(SHOWN) {
        let mut rest = *line;
        let mut text = String::new();
        while let Some(at) = rest.find(".L") {
            let end = rest[at + 2..]
                .find(|c: char| !(c.is_alphanumeric() || c == '_'))
                .map_or(rest.len(), |e| at + 2 + e);
            let name = &rest[at..end];
            let n = names.iter().position(|k| k == name).unwrap_or_else(|| {
                names.push(name.into());
                names.len() - 1
            });
            text += &format!("{}.L{n}", &rest[..at]);
            rest = &rest[end..];
        }
        text += rest;
        let words: Vec<&str> = text.split_whitespace().collect();
        let indent = if text.ends_with(':') { "" } else { "    " };
        out += &format!("{indent}{}\n", words.join(" "));
    }
    if body.len() > SHOWN {
        out += &format!("    … {} more\n", body.len() - SHOWN);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_with_vectors() {
        let asm = "\
f:\n.LBB0_1:\n\tmovq %rax, %rbx\n.LBB0_2: # inner\n\tvfmadd231ps (%rax), %zmm0, %zmm1\n\taddq $64, %rax\n\tjne .LBB0_2\n\
\tdecq %rcx\n\tjne .LBB0_1\n.LBB0_3:\n\tmovq 8(%rsp), %rax\n\tjb .LBB0_3\n\tretq\n";
        let hot = hot_loop(asm).unwrap();
        assert_eq!(hot.text, ".L0:\n    vfmadd231ps (%rax), %zmm0, %zmm1\n    addq $64, %rax\n    jne .L0\n");
        assert_eq!((hot.loops, hot.instructions, hot.bits, hot.fma, hot.stack), (2, 3, 512, 1, 0));
        assert_eq!(hot_loop("f:\n\tretq\n"), None);
    }
}
