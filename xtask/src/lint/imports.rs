//! What code imports of its own crate: names at the crate's root, which are modules or what the root
//! re-exports.

/// Each name at the crate's root that the code of a file names, with where it does. `depth` is the file's;
/// `is_module` knows the crate's modules.
pub(super) fn imports(
    code: &str,
    depth: usize,
    is_module: impl Fn(&str) -> bool,
) -> Vec<(usize, &str)> {
    let mut found = by_crate(code);
    found.extend(by_super(code, depth, is_module));
    found
}

fn by_crate(code: &str) -> Vec<(usize, &str)> {
    const ROOT: &str = "crate::";
    let mut found = Vec::new();
    for (at, _) in code.match_indices(ROOT) {
        let is_whole_word = !code[..at].ends_with(|before: char| is_of_name(before));
        if is_whole_word {
            let start = at + ROOT.len();
            for (offset, name) in names(&code[start..]) {
                found.push((start + offset, name));
            }
        }
    }
    found
}

/// How many modules a file is in, its own among them.
pub(super) fn depth(path: &str) -> usize {
    let module = path.trim_end_matches(".rs").trim_end_matches("/mod");
    if module == "lib" { 0 } else { module.split('/').count() }
}

/// The same by as many `super::` as lead to the root. In a module inside of a file they lead less
/// far, so only names of modules count.
fn by_super(code: &str, depth: usize, is_module: impl Fn(&str) -> bool) -> Vec<(usize, &str)> {
    const UP: &str = "super::";
    let mut found = Vec::new();
    let mut after = 0;
    for (at, _) in code.match_indices(UP) {
        let is_whole_word = !code[..at].ends_with(|before: char| is_of_name(before));
        if at < after || !is_whole_word {
            continue;
        }
        let path = code[at..].trim_start_matches(UP);
        after = code.len() - path.len();
        if (after - at) / UP.len() >= depth {
            let known = names(path).into_iter().filter(|(_, name)| is_module(name));
            found.extend(known.map(|(offset, name)| (after + offset, name)));
        }
    }
    found
}

pub(super) fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// The first names of a path, or of all paths in braces.
fn names(path: &str) -> Vec<(usize, &str)> {
    let Some(list) = path.strip_prefix('{') else {
        return first_name(path, 0).into_iter().collect();
    };
    let (mut found, mut depth, mut is_first) = (Vec::new(), 0, true);
    for (at, letter) in list.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => is_first = true,
            letter if is_first && is_of_name(letter) => {
                found.extend(first_name(&list[at..], at + 1));
                is_first = false;
            }
            _ => {}
        }
    }
    found
}

fn first_name(path: &str, at: usize) -> Option<(usize, &str)> {
    let end = path.find(|letter| !is_of_name(letter)).unwrap_or(path.len());
    (end > 0).then(|| (at, &path[..end]))
}
