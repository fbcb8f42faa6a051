//! The JSON Schema of what this version writes: a record of any command, or a line of a study's `record.jsonl`.
//!
//! Types and descriptions come from the structs. Fields that are always written are required; readers must ignore unknown fields, since
//! later versions add some.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema, json_schema};
use serde_json::{Value, json};

use crate::{
    Cause, Cell, CheckpointCell, ExperimentSpec, IngestCell, ProbeCell, Record, SCHEMA, StudyLine, StudySpec,
    TraceCell, TrainCell, WorkloadCell,
};

/// In the dialect of draft 2020-12.
pub fn json_schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let records = [
        record_of::<IngestCell>(&mut generator),
        record_of::<ProbeCell>(&mut generator),
        record_of::<TrainCell>(&mut generator),
        record_of::<CheckpointCell>(&mut generator),
        record_of::<WorkloadCell>(&mut generator),
        record_of::<TraceCell>(&mut generator),
    ];
    let line = generator.subschema_for::<StudyLine>().to_value();
    let mut definitions = generator.take_definitions(true);
    definitions.retain(|name, _| !name.starts_with("Record_for_"));
    definitions["StudyHead"]["properties"]["schema"]["const"] = SCHEMA.into();
    definitions["StudyHead"]["properties"]["command"]["const"] = "study".into();
    let refs = records.iter().map(|(name, _)| json!({"$ref": format!("#/$defs/{name}")}));
    let any: Vec<Value> = refs.chain([line]).collect();
    definitions.extend(records);
    let mut schema = json_schema!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": SCHEMA,
        "description": "A record of forebay ingest, probe, train, checkpoint bench, workload run or trace, or one line of the \
                        record.jsonl of forebay study run.",
        "oneOf": any,
        "$defs": definitions,
    });
    RecursiveTransform(make_plain).transform(&mut schema);
    schema.to_value()
}

/// Of a study file: unlike in a record, most keys may be missing, and have a default.
pub fn study_schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().for_deserialize().into_generator();
    let study = generator.subschema_for::<StudySpec>().to_value();
    let mut definitions = generator.take_definitions(true);
    // An experiment is read as a type of its own, which has no comments.
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    generator.subschema_for::<ExperimentSpec>();
    let recorded = generator.take_definitions(true).remove("ExperimentSpec").expect("it has a definition");
    let experiment = &mut definitions["ExperimentSpec"];
    experiment["description"] = recorded["description"].clone();
    let keys = experiment["properties"].as_object_mut().expect("an experiment has keys");
    keys.iter_mut().for_each(|(name, key)| key["description"] = recorded["properties"][name]["description"].clone());
    let mut schema = json_schema!({"$ref": study["$ref"], "$defs": definitions});
    RecursiveTransform(without_null).transform(&mut schema);
    RecursiveTransform(make_words_plain).transform(&mut schema);
    schema.to_value()
}

/// TOML has no null: a key is left out.
fn without_null(schema: &mut Schema) {
    if let Some(Value::Array(kinds)) = schema.get_mut("type") {
        kinds.retain(|kind| kind != "null");
    }
    if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
        choices.retain(|choice| choice["type"] != "null");
    }
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace("`None`", "omitted");
    }
    schema.remove("format");
}

/// Each command has its own definition, which fixes the field `command`.
fn record_of<C: Cell + JsonSchema>(generator: &mut SchemaGenerator) -> (String, Value) {
    let mut schema = Record::<C>::json_schema(generator).to_value();
    schema["properties"]["schema"]["const"] = SCHEMA.into();
    schema["properties"]["command"]["const"] = C::STEP.name().into();
    (C::schema_name().replace("Cell", "Record"), schema)
}

/// schemars does not describe the keys of a map whose key type has several alternatives.
pub(crate) fn by_cause(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "propertyNames": generator.subschema_for::<Cause>(),
        "additionalProperties": {"type": "number"},
    })
}

/// Removes what only matters in Rust: formats such as `uint64`, defaults of missing fields, the name of null, and line ends in comments.
fn make_plain(schema: &mut Schema) {
    schema.remove("format");
    schema.remove("default");
    make_words_plain(schema);
}

fn make_words_plain(schema: &mut Schema) {
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace("\n\n", "\r").replace('\n', " ").replace('\r', "\n\n").replace("`None`", "null");
    }
}
