//! Writing tables as pandas' `to_csv` writes a frame: a row of column numbers, then one row per sample that begins with its number.
//!
//! A row may have millions of values, so a table is written in pieces of rows.

use std::io::Write;

use crate::Element;

/// Appends the names of the columns `from..to` out of `n_columns`, with the line's end behind the last.
///
/// ```
/// let mut text = Vec::new();
/// forebay_format::csv::write::header(0, 2, 3, &mut text);
/// forebay_format::csv::write::header(2, 3, 3, &mut text);
/// assert_eq!(text, b",0,1,2\n");
/// ```
pub fn header(from: u64, to: u64, n_columns: u64, out: &mut Vec<u8>) {
    let mut name = from.to_string().into_bytes();
    out.reserve((to - from) as usize * (name.len() + 2));
    for _ in from..to {
        out.push(b',');
        out.extend_from_slice(&name);
        count_up(&mut name);
    }
    if to == n_columns {
        out.push(b'\n');
    }
}

/// The text of the next number: formatting each one from scratch takes longer than writing the values.
fn count_up(digits: &mut Vec<u8>) {
    for digit in digits.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return;
        }
        *digit = b'0';
    }
    digits.insert(0, b'1');
}

pub fn begin_row(number: u64, out: &mut Vec<u8>) {
    write!(out, "{number}").expect("a vector takes every text");
}

pub fn end_row(out: &mut Vec<u8>) {
    out.push(b'\n');
}

/// Appends values of a row, each after a comma. `bytes` are whole values.
pub fn values(kind: Element, bytes: &[u8], out: &mut Vec<u8>) {
    match kind {
        Element::U8 => bytes_as_text(bytes, out),
        Element::I8 => each(bytes, out, |[byte]: [u8; 1]| byte as i8),
        Element::U16 => each(bytes, out, u16::from_le_bytes),
        Element::I16 => each(bytes, out, i16::from_le_bytes),
        Element::U32 => each(bytes, out, u32::from_le_bytes),
        Element::I32 => each(bytes, out, i32::from_le_bytes),
        Element::U64 => each(bytes, out, u64::from_le_bytes),
        Element::I64 => each(bytes, out, i64::from_le_bytes),
        Element::F16 => each_float(bytes, out, |two| half(u16::from_le_bytes(two))),
        Element::Bf16 => each_float(bytes, out, |[low, high]: [u8; 2]| f32::from_le_bytes([0, 0, low, high])),
        Element::F32 => each_float(bytes, out, f32::from_le_bytes),
        Element::F64 => each_float(bytes, out, f64::from_le_bytes),
    }
}

/// A table of ",0" to ",255": all four bytes are stored, and the next store overwrites the excess.
const TEXTS: [([u8; 4], u8); 256] = {
    let mut texts = [([b','; 4], 0); 256];
    let mut value = 0;
    while value < 256 {
        let digits = [(value / 100) as u8 + b'0', (value / 10 % 10) as u8 + b'0', (value % 10) as u8 + b'0'];
        texts[value] = match value {
            0..10 => ([b',', digits[2], 0, 0], 2),
            10..100 => ([b',', digits[1], digits[2], 0], 3),
            _ => ([b',', digits[0], digits[1], digits[2]], 4),
        };
        value += 1;
    }
    texts
};

fn bytes_as_text(bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + 4 * bytes.len(), 0);
    let mut at = start;
    for &byte in bytes {
        let (text, len) = TEXTS[usize::from(byte)];
        out[at..at + 4].copy_from_slice(&text);
        at += usize::from(len);
    }
    out.truncate(at);
}

fn each<const N: usize, T: std::fmt::Display>(bytes: &[u8], out: &mut Vec<u8>, value: impl Fn([u8; N]) -> T) {
    for &bytes in bytes.as_chunks().0 {
        write!(out, ",{}", value(bytes)).expect("a vector takes every text");
    }
}

/// Floats with an exponent: the shortest text that reads back as the same value.
fn each_float<const N: usize, T: std::fmt::LowerExp>(bytes: &[u8], out: &mut Vec<u8>, value: impl Fn([u8; N]) -> T) {
    for &bytes in bytes.as_chunks().0 {
        write!(out, ",{:e}", value(bytes)).expect("a vector takes every text");
    }
}

/// An IEEE half: a sign, five bits of exponent, ten of fraction.
fn half(bits: u16) -> f32 {
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1F), f32::from(bits & 0x3FF));
    match exponent {
        0 => sign * fraction * 2f32.powi(-24),
        31 if fraction == 0.0 => sign * f32::INFINITY,
        31 => f32::NAN,
        _ => sign * (1024.0 + fraction) * 2f32.powi(exponent - 25),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(kind: Element, bytes: &[u8]) -> String {
        let mut out = Vec::new();
        values(kind, bytes, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn names_are_counted_through_every_number_of_digits() {
        let mut out = Vec::new();
        header(0, 7, 1_002, &mut out);
        header(7, 1_002, 1_002, &mut out);
        let expected: String = (0..1_002).map(|column| format!(",{column}")).collect();
        assert_eq!(String::from_utf8(out).unwrap(), expected + "\n");
    }

    #[test]
    fn bytes_are_written_as_their_numbers() {
        let all: Vec<u8> = (0..=255).collect();
        let expected: String = (0..=255).map(|value| format!(",{value}")).collect();
        assert_eq!(text(Element::U8, &all), expected);
    }

    #[test]
    fn other_types_keep_their_sign_and_width() {
        assert_eq!(text(Element::I8, &[255, 127]), ",-1,127");
        assert_eq!(text(Element::U16, &[1, 2]), ",513");
        assert_eq!(text(Element::I32, &(-70_000i32).to_le_bytes()), ",-70000");
        assert_eq!(text(Element::I64, &i64::MIN.to_le_bytes()), ",-9223372036854775808");
        assert_eq!(text(Element::F32, &0.15625f32.to_le_bytes()), ",1.5625e-1");
        assert_eq!(text(Element::F16, &0x3555u16.to_le_bytes()), ",3.3325195e-1");
        assert_eq!(text(Element::F16, &0x8001u16.to_le_bytes()), ",-5.9604645e-8");
        assert_eq!(text(Element::Bf16, &0x3FC0u16.to_le_bytes()), ",1.5e0");
    }

    #[test]
    fn a_table_is_what_pandas_writes() {
        let mut out = Vec::new();
        header(0, 3, 3, &mut out);
        for (number, row) in [(0, [1, 22, 255]), (1, [0, 9, 100])] {
            begin_row(number, &mut out);
            values(Element::U8, &row, &mut out);
            end_row(&mut out);
        }
        assert_eq!(String::from_utf8(out).unwrap(), ",0,1,2\n0,1,22,255\n1,0,9,100\n");
    }
}
