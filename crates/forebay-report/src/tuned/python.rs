//! The settings that were found, as a loader and a saver in Python.

use forebay_record::{Level, Levels};
use forebay_units::{Bytes, unescape};

use super::{Tried, flag_of};

/// Settings that the loader and the saver have no argument for.
const WITHOUT_ARGUMENT: [&str; 7] =
    ["io", "interleave", "decode", "keep_fast", "keep_slow", "checkpoint_behind", "drain_rate"];

/// A loader of `data`, an escaped path, that does what the pipeline of the run did.
pub(super) fn loader(tried: &Tried<'_>, data: &str) -> String {
    let (train, settings) = (tried.train, &tried.tuning.settings);
    let mut arguments = vec![path(data), format!("batch_size={}", train.batch)];
    // Tensor shards have a size of their own, which is the loader's default.
    let output = train.output.as_deref().filter(|_| tried.tuning.dataset().is_none());
    arguments.extend(output.and_then(size).map(|(width, height)| format!("image_size=({width}, {height})")));
    arguments.push(format!("threads={}", train.threads));
    arguments.push(format!("prefetch={}", train.prefetch));
    arguments.push(format!("shuffle={}", if is(settings, "shuffle", "none") { "False" } else { "True" }));
    arguments.push("drop_last=True".to_owned());
    let crop = settings.get("crop").map_or_else(|| "none".to_owned(), ToString::to_string);
    arguments.push(format!("crop={}", quoted(&crop)));
    arguments.push(format!("flip={}", if is_on(settings, "flip") { "0.5" } else { "0.0" }));
    arguments.push(format!("antialias={}", if is_on(settings, "antialias") { "True" } else { "False" }));
    arguments.extend(settings.get("seed").map(|seed| format!("seed={seed}")));
    let most = settings.get("max_sample_size").and_then(|size| size.to_string().parse::<Bytes>().ok());
    arguments.extend(most.map(|size| format!("max_sample_size={}", size.0)));
    let keys = ["image_key", "label_key"].into_iter();
    let given = keys.filter_map(|name| Some((name, tried.tuning.data_flags.get(name)?)));
    arguments.extend(given.map(|(name, key)| format!("{name}={}", quoted(&key.to_string()))));
    let arguments: String = arguments.into_iter().map(|argument| format!("    {argument},\n")).collect();
    let os = if arguments.contains("os.fsdecode(") { "import os\n\n" } else { "" };
    let saver = saver(tried).unwrap_or_default();
    format!("{os}import forebay\n\n{}loader = forebay.ImageLoader(\n{arguments})\n{saver}", missing(settings))
}

/// `None` for runs without checkpoints.
fn saver(tried: &Tried<'_>) -> Option<String> {
    let (flags, settings) = (&tried.tuning.data_flags, &tried.tuning.settings);
    let dir = path(&flags.get("checkpoint_dir")?.to_string());
    let burst = flags.get("burst_dir").map(|dir| format!(", burst_dir={}", path(&dir.to_string())));
    let usual = if burst.is_some() { "burst" } else { "direct" };
    let mode = settings.get("checkpoint_mode").map_or_else(|| usual.to_owned(), ToString::to_string);
    let given = [("keep", "keep"), ("checkpoint_format", "format")].into_iter().filter_map(|(setting, argument)| {
        let value = settings.get(setting)?;
        let value = if let Level::Text(text) = value { quoted(text) } else { value.to_string() };
        Some(format!(", {argument}={value}"))
    });
    let (burst, given) = (burst.unwrap_or_default(), given.collect::<String>());
    let every = settings.get("checkpoint_every").map(|every| format!("# saver.save(step, …) every {every} steps\n"));
    let every = every.unwrap_or_default();
    Some(format!("{every}saver = forebay.Checkpointer({dir}{burst}, mode={}{given})\n", quoted(&mode)))
}

/// A comment on the flags that the loader does not have; empty if there are none.
fn missing(settings: &Levels) -> String {
    let has_order = |level: &Level| ["full", "none"].contains(&level.to_string().as_str());
    let is_missing = |name: &str, level: &Level| match name {
        "shuffle" => !has_order(level),
        name => WITHOUT_ARGUMENT.contains(&name),
    };
    let flags = settings.iter().filter(|(name, level)| is_missing(name, level));
    let flags: Vec<String> = flags.filter_map(|(name, level)| flag_of(name, level)).collect();
    if flags.is_empty() { String::new() } else { format!("# Not in Python: {}.\n", flags.join(", ")) }
}

fn is(settings: &Levels, name: &str, value: &str) -> bool {
    settings.get(name).is_some_and(|level| level.to_string() == value)
}

fn is_on(settings: &Levels, name: &str) -> bool {
    settings.get(name) == Some(&Level::Flag(true))
}

/// Width and height of "224x224 f32 nhwc".
fn size(output: &str) -> Option<(u32, u32)> {
    let (width, height) = output.split_whitespace().next()?.split_once('x')?;
    Some((width.parse().ok()?, height.parse().ok()?))
}

/// A path as Python writes it; one that is not UTF-8 by its bytes.
fn path(escaped: &str) -> String {
    let Ok(path) = unescape(escaped) else { return quoted(escaped) };
    match path.to_str() {
        Some(text) => quoted(text),
        None => {
            let bytes = path.as_encoded_bytes().iter();
            let bytes: String = bytes.map(|byte| format!("\\x{byte:02x}")).collect();
            format!("os.fsdecode(b\"{bytes}\")")
        }
    }
}

/// A string of JSON is one of Python.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}
