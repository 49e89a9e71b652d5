//! What Python objects in a pickle mean: containers, tensors, arrays, and everything else.

use crate::source::pickle::{Child, Id, Look, Node, Object, Pickle, keyed, numbered};

/// What a leaf is.
pub(super) enum Leaf {
    /// A call of one of torch's `_rebuild_tensor` functions, with these arguments.
    Tensor {
        /// Its version: 1, 2 or 3.
        version: u8,
        arguments: Id,
    },
    /// An array of numpy's.
    Array,
    /// A tensor that is not read, and why.
    Refused(&'static str),
}

/// Objects whose attributes are those of a module's parts, so that names are those of its `state_dict`.
const TRANSPARENT: &[&str] = &["_parameters", "_buffers", "_modules"];

/// What the object `id` is, if it is a leaf.
pub(super) fn leaf(pickle: &Pickle, id: Id) -> Option<Leaf> {
    let Node::Object(object) = pickle.node(id) else { return None };
    let (module, name) = pickle.global(object.callable)?;
    match (module, name) {
        ("torch._tensor", "_rebuild_from_type_v2") => {
            let &[function, _, arguments, ..] = pickle.items(object.arguments)? else { return None };
            function_leaf(pickle.global(function)?, arguments)
        }
        _ => function_leaf((module, name), object.arguments),
    }
}

fn function_leaf((module, name): (&str, &str), arguments: Id) -> Option<Leaf> {
    let numpy = module.starts_with("numpy.");
    Some(match (module, name) {
        ("torch._utils", "_rebuild_tensor") => Leaf::Tensor { version: 1, arguments },
        ("torch._utils", "_rebuild_tensor_v2") => Leaf::Tensor { version: 2, arguments },
        ("torch._utils", "_rebuild_tensor_v3") => Leaf::Tensor { version: 3, arguments },
        ("torch._utils", "_rebuild_sparse_tensor") => Leaf::Refused("is sparse; save its to_dense()"),
        ("torch._utils", "_rebuild_qtensor") => {
            Leaf::Refused("is quantized to integers; save its dequantize() or int_repr()")
        }
        ("torch._utils", "_rebuild_nested_tensor") => {
            Leaf::Refused("is nested; save the tensors it consists of")
        }
        ("torch._utils", "_rebuild_meta_tensor_no_storage") => {
            Leaf::Refused("is on the meta device and has no data")
        }
        (_, "_reconstruct") if numpy && module.ends_with(".multiarray") => Leaf::Array,
        (_, "_frombuffer") if numpy && module.ends_with(".numeric") => Leaf::Array,
        _ => return None,
    })
}

/// What the object `id` is to the walk for leaves.
pub(super) fn look(pickle: &Pickle, id: Id) -> Look {
    if leaf(pickle, id).is_some() {
        return Look::Leaf;
    }
    let Node::Object(object) = pickle.node(id) else { return Look::Children(Vec::new()) };
    let arguments = pickle.items(object.arguments).unwrap_or_default();
    Look::Children(match pickle.global(object.callable) {
        // A parameter is its tensor.
        Some(("torch._utils", "_rebuild_parameter" | "_rebuild_parameter_with_state")) => {
            arguments.first().map(|&id| Child { segment: None, id }).into_iter().collect()
        }
        Some(names) if is_container(names) => container(pickle, object, arguments),
        Some(names) if is_plain(names) => Vec::new(),
        _ => unknown(pickle, object, arguments),
    })
}

/// Whether these are Python's own containers.
fn is_container(names: (&str, &str)) -> bool {
    matches!(
        names,
        ("collections", "OrderedDict" | "defaultdict" | "Counter" | "deque")
            | ("builtins" | "__builtin__", "set" | "frozenset" | "list" | "dict" | "tuple")
    )
}

/// Whether objects of this kind are known to hold no tensor.
fn is_plain((module, name): (&str, &str)) -> bool {
    match module {
        "torch" => true,
        "numpy" => matches!(name, "dtype" | "ndarray"),
        "_codecs"
        | "builtins"
        | "__builtin__"
        | "pathlib"
        | "datetime"
        | "decimal"
        | "fractions"
        | "uuid"
        | "torch.serialization" => true,
        _ => module.starts_with("numpy.") && name == "scalar",
    }
}

fn container(pickle: &Pickle, object: &Object, arguments: &[Id]) -> Vec<Child> {
    let given = arguments.iter().map(|&id| pickle.node(id)).find_map(|node| match node {
        Node::List(items) | Node::Tuple(items) | Node::Set(items) => Some(numbered(items)),
        Node::Dict(pairs) => Some(keyed(pickle, pairs)),
        _ => None,
    });
    let mut children = given.unwrap_or_default();
    children.extend(numbered(&object.items));
    children.extend(keyed(pickle, &object.pairs));
    children
}

/// An object of a class that is not known may have tensors in what it was made from.
fn unknown(pickle: &Pickle, object: &Object, arguments: &[Id]) -> Vec<Child> {
    let mut children = Vec::new();
    if !arguments.is_empty() {
        children.push(Child { segment: Some("args".to_owned()), id: object.arguments });
    }
    if let Some(state) = object.state {
        match pickle.node(state) {
            Node::Dict(pairs) => children.extend(keyed(pickle, pairs)),
            _ => children.push(Child { segment: Some("state".to_owned()), id: state }),
        }
    }
    children.extend(numbered(&object.items));
    children.extend(keyed(pickle, &object.pairs));
    for child in &mut children {
        if child.segment.as_deref().is_some_and(|segment| TRANSPARENT.contains(&segment)) {
            child.segment = None;
        }
    }
    children
}

/// The classes of objects that are passed over, each once, in the order of the pickle.
pub(super) fn unknown_classes(pickle: &Pickle) -> Vec<String> {
    let mut classes = Vec::new();
    for (id, node) in (0..).zip(pickle.nodes()) {
        let Node::Object(object) = node else { continue };
        let Some((module, name)) = pickle.global(object.callable) else { continue };
        let known = matches!(module, "torch._utils" | "torch._tensor" | "torch.storage")
            || is_container((module, name))
            || is_plain((module, name))
            || leaf(pickle, id).is_some();
        let full = format!("{module}.{name}");
        if !known && !classes.contains(&full) {
            classes.push(full);
        }
    }
    classes
}
