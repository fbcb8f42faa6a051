//! The graph of a checkpoint: a variable for each tensor, and the operations that save and restore them.
//!
//! TensorFlow's `import_meta_graph` builds the graph and returns a saver; its `restore` runs the named operation with
//! the checkpoint's path. A program can therefore load a checkpoint without the code of the model.

use std::collections::HashSet;

use super::entry::{DT_STRING, encode_shape, number_of};
use super::proto::Message;
use crate::Header;

/// The graph version that TensorFlow 2.21 writes.
const GRAPH_VERSION: u64 = 2474;
/// The saver's format number for these checkpoints.
const SAVER_V2: u64 = 2;

const PATH: &str = "save/Const";
const NAMES: &str = "save/tensor_names";
const SLICES: &str = "save/shape_and_slices";
const RESTORE: &str = "save/RestoreV2";
const RESTORE_ALL: &str = "save/restore_all";
const SAVE: &str = "save/SaveV2";
const SAVED: &str = "save/control_dependency";

/// A `MetaGraphDef` for these tensors. Without tensors the graph has no nodes, because TensorFlow has no operation that
/// saves nothing.
pub(super) fn graph<'a>(headers: impl Iterator<Item = &'a Header>) -> Vec<u8> {
    let headers: Vec<&Header> = headers.collect();
    let versions = Message::default().number(1, GRAPH_VERSION);
    let nodes = if headers.is_empty() { Vec::new() } else { nodes(&headers) };
    let graph = nodes.into_iter().fold(Message::default(), |graph, node| graph.message(1, node)).message(4, versions);
    let about = Message::default().bytes(4, "train").bytes(5, "2.21.0");
    let meta = Message::default().message(1, about).message(2, graph);
    if headers.is_empty() { meta.0 } else { meta.message(3, saver()).0 }
}

fn saver() -> Message {
    Message::default()
        .bytes(1, format!("{PATH}:0"))
        .bytes(2, format!("{SAVED}:0"))
        .bytes(3, RESTORE_ALL)
        .number(4, 5)
        .number(7, SAVER_V2)
}

fn nodes(headers: &[&Header]) -> Vec<Message> {
    let types: Vec<u64> = headers.iter().map(|header| number_of(header.dtype).expect("was planned")).collect();
    let variables = variable_names(headers);
    let n = headers.len();
    let dtypes = || types.iter().fold(Message::default(), |list, &dtype| list.bytes(6, packed(dtype)));
    let list = |message: Message| Message::default().message(1, message);
    let mut nodes = vec![
        node(PATH, "Placeholder", &[]).attr("dtype", of_type(DT_STRING)).attr("shape", of_shape(&[])),
        strings(NAMES, headers.iter().map(|header| header.name.as_str())),
        strings(SLICES, std::iter::repeat_n("", n)),
        node(RESTORE, "RestoreV2", &[PATH, NAMES, SLICES]).attr("dtypes", list(dtypes())),
    ];
    for (at, (header, variable)) in headers.iter().zip(&variables).enumerate() {
        let dtype = of_type(types[at]);
        let made =
            node(variable, "VariableV2", &[]).attr("dtype", dtype.clone()).attr("shape", of_shape(&header.shape));
        nodes.push(made.attr("container", text("")).attr("shared_name", text("")));
        let assign = node(&format!("save/Assign_{at}"), "Assign", &[variable, &format!("{RESTORE}:{at}")]);
        nodes.push(assign.attr("T", dtype).attr("use_locking", yes()).attr("validate_shape", yes()));
    }
    let assigned: Vec<String> = (0..n).map(|at| format!("^save/Assign_{at}")).collect();
    let assigned: Vec<&str> = assigned.iter().map(String::as_str).collect();
    nodes.push(node(RESTORE_ALL, "NoOp", &assigned));
    let saved: Vec<&str> = [PATH, NAMES, SLICES].into_iter().chain(variables.iter().map(String::as_str)).collect();
    nodes.push(node(SAVE, "SaveV2", &saved).attr("dtypes", list(dtypes())));
    nodes.push(node(SAVED, "Identity", &[PATH, &format!("^{SAVE}")]).attr("T", of_type(DT_STRING)));
    nodes
}

/// Node names: the tensor's name if TensorFlow allows it, otherwise a number.
fn variable_names(headers: &[&Header]) -> Vec<String> {
    let own = |header: &Header| is_node_name(&header.name) && !header.name.starts_with("save/");
    let taken: HashSet<&str> = headers.iter().filter(|header| own(header)).map(|header| header.name.as_str()).collect();
    let numbered = |at: usize| {
        let mut names = (0..).map(|n| format!("tensor_{at}{}", "_".repeat(n)));
        names.find(|name| !taken.contains(name.as_str())).expect("one of endlessly many is free")
    };
    let name = |(at, header): (usize, &&Header)| if own(header) { header.name.clone() } else { numbered(at) };
    headers.iter().enumerate().map(name).collect()
}

fn is_node_name(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-/\\".contains(&byte);
    let first = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'.';
    name.as_bytes().first().is_some_and(first) && name.bytes().all(inner)
}

fn node(name: &str, op: &str, inputs: &[&str]) -> Message {
    let node = Message::default().bytes(1, name).bytes(2, op);
    inputs.iter().fold(node, |node, input| node.bytes(3, input))
}

fn strings<'a>(name: &str, values: impl ExactSizeIterator<Item = &'a str>) -> Message {
    let tensor = Message::default().number(1, DT_STRING).message(2, encode_shape(&[values.len() as u64]));
    let tensor = values.fold(tensor, |tensor, value| tensor.bytes(8, value));
    node(name, "Const", &[]).attr("dtype", of_type(DT_STRING)).attr("value", Message::default().message(8, tensor))
}

impl Message {
    fn attr(self, key: &str, value: Message) -> Self {
        self.message(5, Message::default().bytes(1, key).message(2, value))
    }
}

fn text(value: &str) -> Message {
    Message::default().bytes(2, value)
}

fn yes() -> Message {
    Message::default().number(5, 1)
}

fn of_type(dtype: u64) -> Message {
    Message::default().number(6, dtype)
}

fn of_shape(shape: &[u64]) -> Message {
    Message::default().message(7, encode_shape(shape))
}

/// One element of a packed list of small numbers.
fn packed(number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    forebay_units::varint::put(&mut out, number);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dtype;

    #[test]
    fn tensors_keep_their_names_where_tensorflow_allows_them() {
        let named = |name: &str| Header { name: name.to_owned(), dtype: Dtype::F32, shape: Vec::new() };
        let headers = ["a/b", "größe", "save/Const", "tensor_1", "_x", ".y"].map(named);
        let names = variable_names(&headers.iter().collect::<Vec<_>>());
        assert_eq!(names, ["a/b", "tensor_1_", "tensor_2", "tensor_1", "tensor_4", ".y"]);
    }
}
