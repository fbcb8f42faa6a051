//! The trace file: what is written is read, and a file cut off or damaged anywhere gives what is before.

use forebay_trace::{Chunk, Entry, Error, Event, FileType, Head, MarkKind, Op, ProcessNote, Reader, Writer};
use proptest::prelude::*;

fn head() -> Head {
    Head { version: "0.2.0".to_owned(), started_ns: 5, command_line: vec!["python".to_owned()], ..Head::default() }
}

fn events() -> impl Strategy<Value = Event> {
    let op = prop::sample::select(vec![Op::PREAD, Op::READ, Op::OPEN, Op::MARK, Op::FSYNC, Op(60)]);
    (op, any::<(u64, u64, u32, u32, u32, i64, u64)>(), any::<(u8, u16)>()).prop_map(|(op, numbers, kinds)| {
        let (start_ns, duration_ns, thread, file, extra, result, arg) = numbers;
        let has_kinds = op == Op::MARK || op == Op::OPEN;
        let (file_type, mark) =
            if has_kinds { (FileType(kinds.0), MarkKind(kinds.1)) } else { (FileType(0), MarkKind(0)) };
        Event { op, file_type, mark, start_ns, duration_ns, thread, file, extra, result, arg }
    })
}

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let text = (any::<u32>(), prop::collection::vec(any::<u8>(), 0..50));
    let text = text.prop_map(|(file, text)| Entry::Text { file, text });
    prop::collection::vec(prop_oneof![4 => events().prop_map(Entry::Event), 1 => text], 1..40)
}

/// A trace with a process per list of entries, and its chunks.
fn written(lists: &[Vec<Entry>]) -> (Vec<u8>, Vec<Chunk>) {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &head()).unwrap();
    let mut chunks = vec![Chunk::Head(head())];
    for (i, list) in lists.iter().enumerate() {
        let note = ProcessNote { pid: i as u32, exe: "/usr/bin/python3".to_owned(), ..ProcessNote::default() };
        let process = writer.process(&note).unwrap();
        list.iter().for_each(|entry| writer.push(process, entry).unwrap());
        writer.flush().unwrap();
        chunks.extend([Chunk::Process(process, note), Chunk::Events { process, every: 1, entries: list.clone() }]);
    }
    assert_eq!(writer.n_written() as usize, {
        drop(writer);
        bytes.len()
    });
    (bytes, chunks)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_trace_cut_at_any_byte_gives_the_chunks_before(lists in prop::collection::vec(entries(), 1..4)) {
        let (bytes, chunks) = written(&lists);
        prop_assert_eq!(Reader::new(&bytes).unwrap().collect::<Vec<_>>(), chunks.clone());
        let mut n_before = 0;
        for cut in 0..bytes.len() {
            match Reader::new(&bytes[..cut]) {
                Err(error) => prop_assert!(cut < 12 && error == Error::NotATrace, "cut at {cut}: {error}"),
                Ok(mut reader) => {
                    let read: Vec<_> = reader.by_ref().collect();
                    prop_assert!(reader.at() <= cut && read.len() >= n_before, "cut at {cut}");
                    prop_assert_eq!(&read[..], &chunks[..read.len()], "cut at {}", cut);
                    n_before = read.len();
                }
            }
        }
        prop_assert_eq!(n_before, chunks.len() - 1, "only the last chunk is lost to the last byte");
    }

    #[test]
    fn a_flipped_bit_never_gives_another_trace(
        lists in prop::collection::vec(entries(), 1..3),
        at in any::<prop::sample::Index>(),
        bit in 0_u8..8,
    ) {
        let (mut bytes, chunks) = written(&lists);
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        if let Ok(reader) = Reader::new(&bytes) {
            let read: Vec<_> = reader.collect();
            prop_assert!(read.len() < chunks.len());
            prop_assert_eq!(&read[..], &chunks[..read.len()]);
        }
    }
}

#[test]
fn a_trace_of_a_newer_version_is_refused_by_its_number() {
    let (mut bytes, _) = written(&[vec![]]);
    bytes[8] = 7;
    assert_eq!(Reader::new(&bytes).unwrap_err().to_string(), "this trace has version 7; this forebay reads version 1");
    assert_eq!(Reader::new(b"PNG").unwrap_err(), Error::NotATrace);
}

/// Reads of two files by four threads with random times: what a data loader does, without anything that a compressor could guess.
#[test]
fn an_event_takes_at_most_nine_bytes() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &head()).unwrap();
    let process = writer.process(&ProcessNote::default()).unwrap();
    let (mut seed, mut now_ns, n) = (1_u64, 0_u64, 200_000);
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    for i in 0..n {
        now_ns += 300 + random(2_000);
        let event = Event {
            op: if i % 4 == 0 { Op::PREAD } else { Op::READ },
            start_ns: now_ns,
            duration_ns: 400 + random(1_000),
            thread: 100 + (i % 4) as u32,
            file: (i / 50) as u32,
            result: (random(120_000)) as i64,
            arg: 131_072,
            ..Event::default()
        };
        now_ns += event.duration_ns;
        writer.push(process, &Entry::Event(event)).unwrap();
    }
    writer.flush().unwrap();
    drop(writer);
    let per_event = bytes.len() as f64 / n as f64;
    assert!(per_event <= 9.0, "{per_event}");
}
