//! The columns of a file: of a tree of fields, the leaves that hold numbers.

use super::thrift::{Kind, Reader};
use crate::{Element, Error};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    pub name: String,
    /// What it is made of; `None`: fields of bytes.
    pub element: Option<Element>,
    /// Values per row: 1, or the fixed length of a list.
    pub width: usize,
    /// Bytes of a value, as it is handed out.
    pub value_bytes: usize,
    /// Bytes of a value in a plain page.
    pub(super) stored_bytes: usize,
    pub(super) max_definition: u32,
    pub(super) max_repetition: u32,
}

impl Leaf {
    pub fn row_bytes(&self) -> usize {
        self.value_bytes.saturating_mul(self.width)
    }

    pub(super) fn is_list(&self) -> bool {
        self.max_repetition > 0
    }
}

/// A field of the schema as it is written down.
#[derive(Debug, Default, Clone)]
pub(super) struct Field {
    physical: Option<i32>,
    type_length: i32,
    /// The standard's code: 0 required, 1 optional, 2 repeated.
    repetition: i32,
    name: String,
    n_children: usize,
    converted: Option<i32>,
    logical: Option<Logical>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Logical {
    List,
    Integer { bits: u8, signed: bool },
    Half,
    Other,
}

pub(super) fn fields(reader: &mut Reader<'_>) -> Result<Vec<Field>, Error> {
    let (len, _) = reader.list()?;
    (0..len).map(|_| field(reader)).collect()
}

fn field(reader: &mut Reader<'_>) -> Result<Field, Error> {
    let mut field = Field::default();
    reader.fields(|reader, id, _| {
        match id {
            1 => field.physical = Some(reader.i32()?),
            2 => field.type_length = reader.i32()?,
            3 => field.repetition = reader.i32()?,
            4 => field.name = reader.string()?.to_owned(),
            5 => field.n_children = usize::try_from(reader.count()?).unwrap_or(usize::MAX),
            6 => field.converted = Some(reader.i32()?),
            10 => field.logical = Some(logical(reader)?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(field)
}

fn logical(reader: &mut Reader<'_>) -> Result<Logical, Error> {
    let mut found = Logical::Other;
    reader.fields(|reader, id, _| {
        match id {
            3 => found = Logical::List,
            10 => {
                found = integer(reader)?;
                return Ok(true);
            }
            15 => found = Logical::Half,
            _ => {}
        }
        Ok(false)
    })?;
    Ok(found)
}

fn integer(reader: &mut Reader<'_>) -> Result<Logical, Error> {
    let (mut bits, mut signed) = (0, true);
    reader.fields(|reader, id, kind| {
        match (id, kind) {
            (1, Kind::Byte) => bits = reader.byte()?,
            (2, Kind::True | Kind::False) => signed = kind == Kind::True,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(Logical::Integer { bits, signed })
}

/// A top-level field with its first leaf's number and its own place in the list.
struct Top {
    at: usize,
    first_leaf: usize,
}

/// The chosen columns with their numbers among all leaves, in the order of the names.
pub(super) fn choose(fields: &[Field], names: Option<&[String]>) -> Result<Vec<(usize, Leaf)>, Error> {
    let tops = tops(fields)?;
    let leaf = |top: &Top| leaf_of(fields, top.at).map(|leaf| (top.first_leaf, leaf));
    match names {
        None => tops.iter().map(leaf).collect(),
        Some(names) => names
            .iter()
            .map(|name| {
                let top = tops.iter().find(|top| fields[top.at].name == *name);
                leaf(top.ok_or_else(|| absent(name, tops.iter().map(|top| fields[top.at].name.as_str())))?)
            })
            .collect(),
    }
}

fn absent<'a>(name: &str, there: impl Iterator<Item = &'a str>) -> Error {
    let there: Vec<&str> = there.take(8).collect();
    Error::invalid("Parquet columns", 0, format!("a column {name:?}"), there.join(", "))
}

/// Walks the tree in its written order and notes the fields below the root.
fn tops(fields: &[Field]) -> Result<Vec<Top>, Error> {
    let root = fields.first().ok_or_else(|| Error::invalid("Parquet schema", 0, "a root", "nothing"))?;
    let mut tops = Vec::new();
    let (mut at, mut n_leaves) = (1, 0);
    for _ in 0..root.n_children {
        tops.push(Top { at, first_leaf: n_leaves });
        let mut open = 1_usize;
        while open > 0 {
            let field = fields
                .get(at)
                .ok_or_else(|| Error::truncated("Parquet schema", 0, at as u64 + 1, fields.len() as u64))?;
            open = (open - 1).saturating_add(field.n_children);
            n_leaves += usize::from(field.n_children == 0);
            at += 1;
        }
    }
    Ok(tops)
}

/// The leaf of a top-level field: the field itself, or the numbers of a list.
fn leaf_of(fields: &[Field], at: usize) -> Result<Leaf, Error> {
    let top = &fields[at];
    let nested =
        || Error::unsupported(format!("Parquet column {:?}: nested, neither a number nor a list of numbers", top.name));
    let optional = |field: &Field| u32::from(field.repetition == 1);
    if top.repetition == 2 {
        return Err(nested());
    }
    if top.n_children == 0 {
        return number(top, &top.name, optional(top), 0);
    }
    let is_list = top.converted == Some(3) || top.logical == Some(Logical::List);
    let inner = fields.get(at + 1).ok_or_else(nested)?;
    if !is_list || top.n_children != 1 || inner.repetition != 2 {
        return Err(nested());
    }
    match inner.n_children {
        0 => number(inner, &top.name, optional(top) + 1, 1),
        1 => {
            let item =
                fields.get(at + 2).filter(|item| item.n_children == 0 && item.repetition != 2).ok_or_else(nested)?;
            number(item, &top.name, optional(top) + 1 + optional(item), 1)
        }
        _ => Err(nested()),
    }
}

fn number(field: &Field, name: &str, max_definition: u32, max_repetition: u32) -> Result<Leaf, Error> {
    let physical = field.physical.unwrap_or(-1);
    let (element, stored_bytes) = match (physical, integer_of(field)) {
        (1, None) => (Some(Element::I32), 4),
        (1, Some(element)) if element.bytes() <= 4 => (Some(element), 4),
        (2, None) => (Some(Element::I64), 8),
        (2, Some(element)) => (Some(element), 8),
        (4, _) => (Some(Element::F32), 4),
        (5, _) => (Some(Element::F64), 8),
        (7, _) if field.logical == Some(Logical::Half) && field.type_length == 2 => (Some(Element::F16), 2),
        (7, _) if field.type_length > 0 => (None, field.type_length as usize),
        _ => {
            const KINDS: [&str; 8] =
                ["truth values", "", "", "96-bit numbers", "", "", "strings", "fields of no bytes"];
            let kind = usize::try_from(physical).ok().and_then(|i| KINDS.get(i)).copied().unwrap_or("an unknown type");
            return Err(Error::unsupported(format!(
                "Parquet column {name:?} of {kind}; numbers and fields of a fixed length are read"
            )));
        }
    };
    let value_bytes = element.map_or(stored_bytes, |element| element.bytes() as usize);
    let name = name.to_owned();
    Ok(Leaf { name, element, width: 0, value_bytes, stored_bytes, max_definition, max_repetition })
}

fn integer_of(field: &Field) -> Option<Element> {
    let (bits, signed) = match (field.logical, field.converted) {
        (Some(Logical::Integer { bits, signed }), _) => (bits, signed),
        (_, Some(converted @ 11..=14)) => (8 << (converted - 11), false),
        (_, Some(converted @ 15..=18)) => (8 << (converted - 15), true),
        _ => return None,
    };
    Some(match (bits, signed) {
        (8, false) => Element::U8,
        (8, true) => Element::I8,
        (16, false) => Element::U16,
        (16, true) => Element::I16,
        (32, false) => Element::U32,
        (32, true) => Element::I32,
        (64, false) => Element::U64,
        (64, true) => Element::I64,
        _ => return None,
    })
}
