//! Python names that a dump has no reason to hold: what they are for is to run code.

/// Modules none of whose names are passed.
const MODULES: &[&str] = &[
    "_posixsubprocess",
    "asyncio",
    "bdb",
    "code",
    "codeop",
    "commands",
    "ctypes",
    "importlib",
    "marshal",
    "multiprocessing",
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
    "types",
    "webbrowser",
];

/// The names of Python's own that are passed; the others evaluate, import, open or look up.
const BUILTINS: &[&str] = &[
    "bool",
    "bytearray",
    "bytes",
    "complex",
    "dict",
    "float",
    "frozenset",
    "getattr",
    "int",
    "list",
    "object",
    "range",
    "set",
    "slice",
    "str",
    "tuple",
    "type",
];

/// Whether a dump has no business with this name.
pub(super) fn runs_code(module: &str, name: &str) -> bool {
    let root = module.split('.').next().unwrap_or(module);
    match root {
        "builtins" | "__builtin__" => !BUILTINS.contains(&name),
        _ => MODULES.contains(&root),
    }
}
