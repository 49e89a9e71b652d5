//! Python names that a dump has no reason to hold: what they are for is to run code.

/// Modules none of whose names are passed.
const MODULES: &[&str] = &[
    "_posixsubprocess",
    "bdb",
    "codeop",
    "commands",
    "ctypes",
    "importlib",
    "marshal",
    "nt",
    "os",
    "pdb",
    "pip",
    "posix",
    "pty",
    "runpy",
    "shutil",
    "socket",
    "subprocess",
    "sys",
    "timeit",
    "webbrowser",
];

/// Those of Python's own names that run, open or fetch what they are given.
const BUILTINS: &[&str] = &[
    "__import__",
    "apply",
    "breakpoint",
    "compile",
    "delattr",
    "eval",
    "exec",
    "execfile",
    "file",
    "globals",
    "input",
    "locals",
    "open",
    "reload",
    "setattr",
    "vars",
];

/// Whether a dump has no business with this name.
pub(super) fn runs_code(module: &str, name: &str) -> bool {
    let root = module.split('.').next().unwrap_or(module);
    match root {
        "builtins" | "__builtin__" => BUILTINS.contains(&name),
        _ => MODULES.contains(&root),
    }
}
