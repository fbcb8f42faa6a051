//! Writing a workload as our TOML: only values that differ from the defaults, with notes as comments.

use serde::Serialize;

use crate::spec::{
    Dataset, Evaluation, Hdf5, Limits, Model, Parallelism, Parquet, ParquetColumn, Reader, Train, Workflow,
};
use crate::{Checked, Checkpoint, Time, Transformer, Workload};

/// The TOML text; [`read`](crate::read()) reads it back as the same workload under the same name.
pub fn to_toml(checked: &Checked) -> String {
    let mut sheet = Sheet::default();
    for note in &checked.notes {
        sheet.lines.push(format!("# {}: {}", note.key, note.text));
    }
    if !checked.notes.is_empty() {
        sheet.lines.push(String::new());
    }
    fill(&mut sheet, &checked.workload);
    sheet.text()
}

/// The same with every key that has a value, including defaults.
pub(crate) fn with_defaults(workload: &Workload) -> String {
    let mut sheet = Sheet { writes_defaults: true, ..Sheet::default() };
    fill(&mut sheet, workload);
    sheet.text()
}

fn fill(sheet: &mut Sheet, workload: &Workload) {
    sheet.put("framework", &workload.framework, &Workload::default().framework);
    model(sheet, &workload.model);
    workflow(sheet, &workload.workflow);
    sheet.section("[storage]").put("storage_root", &workload.storage_root, &String::new());
    dataset(sheet, &workload.dataset);
    reader(sheet, &workload.reader);
    train(sheet, &workload.train);
    evaluation(sheet, &workload.evaluation);
    checkpoint(sheet, &workload.checkpoint);
    sheet.section("[output]").maybe("folder", workload.output_folder.as_ref());
    limits(sheet, &workload.limits);
}

fn model(sheet: &mut Sheet, model: &Model) {
    let default = Model::default();
    sheet.section("[model]").put("name", &model.name, &default.name);
    sheet.maybe("type", model.kind.as_ref());
    sheet.put("model_size_bytes", &model.size_bytes, &default.size_bytes);
    sheet.put("model_datatype", &model.weight, &default.weight);
    sheet.put("optimizer_datatype", &model.optimizer, &default.optimizer);
    sheet.put("optimization_groups", &model.optimization_groups, &Vec::new());
    sheet.maybe("num_layers", model.n_layers.as_ref());
    sheet.put("layer_parameters", &model.layer_parameters, &Vec::new());
    let (given, default) = (&model.parallelism, Parallelism::default());
    sheet.section("[model.parallelism]").put("tensor", &given.tensor, &default.tensor);
    sheet.put("pipeline", &given.pipeline, &default.pipeline);
    sheet.maybe("data", given.data.as_ref());
    sheet.put("zero_stage", &given.zero_stage, &default.zero_stage);
    if let Some(shape) = &model.transformer {
        transformer(sheet, shape);
    }
}

fn transformer(sheet: &mut Sheet, shape: &Transformer) {
    let default = Transformer::default();
    // The header alone marks a transformer, even if nothing in it differs.
    sheet.section("[model.transformer]").begin();
    sheet.put("vocab_size", &shape.vocab_size, &default.vocab_size);
    sheet.put("hidden_size", &shape.hidden_size, &default.hidden_size);
    sheet.put("ffn_hidden_size", &shape.ffn_hidden_size, &default.ffn_hidden_size);
    sheet.put("num_attention_heads", &shape.n_attention_heads, &default.n_attention_heads);
    sheet.put("num_kv_heads", &shape.n_kv_heads, &default.n_kv_heads);
}

fn workflow(sheet: &mut Sheet, workflow: &Workflow) {
    let default = Workflow::default();
    sheet.section("[workflow]").put("generate_data", &workflow.generate_data, &default.generate_data);
    sheet.put("train", &workflow.train, &default.train);
    sheet.put("evaluation", &workflow.evaluation, &default.evaluation);
    sheet.put("checkpoint", &workflow.checkpoint, &default.checkpoint);
}

fn dataset(sheet: &mut Sheet, dataset: &Dataset) {
    let default = Dataset::default();
    sheet.section("[dataset]").put("data_folder", &dataset.data_folder, &default.data_folder);
    sheet.put("format", &dataset.format, &default.format);
    sheet.put("num_files_train", &dataset.n_files_train, &default.n_files_train);
    sheet.put("num_files_eval", &dataset.n_files_eval, &default.n_files_eval);
    sheet.put("num_samples_per_file", &dataset.n_samples_per_file, &default.n_samples_per_file);
    sheet.number("record_length_bytes", dataset.record_length_bytes, default.record_length_bytes);
    sheet.number("record_length_bytes_stdev", dataset.record_length_bytes_stdev, 0.0);
    sheet.put("record_length_bytes_resize", &dataset.record_length_bytes_resize, &0);
    sheet.put("record_dims", &dataset.record_dims, &Vec::new());
    sheet.put("record_element_type", &dataset.element, &default.element);
    sheet.put("num_subfolders_train", &dataset.n_subfolders_train, &0);
    sheet.put("num_subfolders_eval", &dataset.n_subfolders_eval, &0);
    sheet.put("file_prefix", &dataset.file_prefix, &default.file_prefix);
    sheet.put("compression", &dataset.compression, &default.compression);
    sheet.put("compression_level", &dataset.compression_level, &default.compression_level);
    if dataset.chunk_bytes.is_some() {
        sheet.put("enable_chunking", &true, &false);
    }
    sheet.maybe("chunk_size", dataset.chunk_bytes.as_ref());
    sheet.put("keep_files", &dataset.keep_files, &default.keep_files);
    sheet.put("seed", &dataset.seed, &default.seed);
    hdf5(sheet, &dataset.hdf5);
    parquet(sheet, &dataset.parquet);
}

fn hdf5(sheet: &mut Sheet, hdf5: &Hdf5) {
    sheet.section("[dataset.hdf5]").put("chunk_dims", &hdf5.chunk_dims, &Vec::new());
    sheet.put("num_dset_per_record", &hdf5.n_dsets_per_record, &1);
    sheet.put("max_shape", &hdf5.max_shape, &Vec::new());
}

fn parquet(sheet: &mut Sheet, parquet: &Parquet) {
    sheet.section("[dataset.parquet]").put("row_group_size", &parquet.row_group_rows, &0);
    for ParquetColumn { name, element, width, count, is_read } in &parquet.columns {
        sheet.section("[[dataset.parquet.columns]]").maybe("name", Some(name));
        sheet.maybe("dtype", Some(element));
        sheet.put("size", width, &1);
        sheet.put("count", count, &1);
        sheet.put("read", is_read, &true);
    }
}

fn reader(sheet: &mut Sheet, reader: &Reader) {
    let default = Reader::default();
    sheet.section("[reader]").put("data_loader", &reader.loader, &default.loader);
    sheet.put("batch_size", &reader.batch_size, &default.batch_size);
    sheet.put("batch_size_eval", &reader.batch_size_eval, &default.batch_size_eval);
    sheet.put("read_threads", &reader.read_threads, &default.read_threads);
    sheet.put("computation_threads", &reader.computation_threads, &default.computation_threads);
    sheet.put("prefetch_size", &reader.prefetch_size, &default.prefetch_size);
    sheet.put("file_shuffle", &reader.file_shuffle, &default.file_shuffle);
    sheet.put("sample_shuffle", &reader.sample_shuffle, &default.sample_shuffle);
    sheet.put("shuffle_size", &reader.shuffle_size, &default.shuffle_size);
    if reader.in_memory {
        sheet.maybe("read_type", Some("memory"));
    }
    sheet.maybe("transfer_size", reader.transfer_size.as_ref());
    sheet.put("odirect", &reader.odirect, &default.odirect);
    sheet.time("preprocess_time", &reader.preprocess_time);
    sheet.put("transformed_record_dims", &reader.transformed_dims, &Vec::new());
    sheet.put("transformed_record_element_type", &reader.transformed_element, &default.transformed_element);
}

fn train(sheet: &mut Sheet, train: &Train) {
    let default = Train::default();
    sheet.section("[train]").put("epochs", &train.epochs, &default.epochs);
    sheet.time("computation_time", &train.computation_time);
    sheet.maybe("total_training_steps", train.max_steps.as_ref());
    sheet.put("seed", &train.seed, &default.seed);
    sheet.put("seed_change_epoch", &train.seed_change_epoch, &default.seed_change_epoch);
}

fn evaluation(sheet: &mut Sheet, evaluation: &Evaluation) {
    sheet.section("[evaluation]").time("eval_time", &evaluation.eval_time);
    sheet.put("eval_after_epoch", &evaluation.after_epoch, &1);
    sheet.put("epochs_between_evals", &evaluation.epochs_between, &1);
}

fn checkpoint(sheet: &mut Sheet, checkpoint: &Checkpoint) {
    let default = Checkpoint::default();
    sheet.section("[checkpoint]").put("checkpoint_folder", &checkpoint.folder, &default.folder);
    sheet.put("checkpoint_after_epoch", &checkpoint.after_epoch, &default.after_epoch);
    sheet.put("epochs_between_checkpoints", &checkpoint.epochs_between, &default.epochs_between);
    sheet.maybe("steps_between_checkpoints", checkpoint.steps_between.as_ref());
    if checkpoint.all_ranks {
        sheet.maybe("type", Some("all_ranks"));
    }
    sheet.put("fsync", &checkpoint.fsync, &default.fsync);
    sheet.number("time_between_checkpoints", checkpoint.time_between, default.time_between);
    sheet.put("num_checkpoints_write", &checkpoint.n_write, &default.n_write);
    sheet.put("num_checkpoints_read", &checkpoint.n_read, &default.n_read);
    sheet.put("recovery_rank_shift", &checkpoint.recovery_rank_shift, &default.recovery_rank_shift);
    sheet.put("rank_sync", &checkpoint.rank_sync, &default.rank_sync);
    sheet.put("mode", &checkpoint.mode, &default.mode);
    sheet.put("randomize_tensor", &checkpoint.randomize, &default.randomize);
}

fn limits(sheet: &mut Sheet, limits: &Limits) {
    let default = Limits::default();
    sheet.section("[output.metric]").put(
        "exclude_start_steps",
        &limits.exclude_start_steps,
        &default.exclude_start_steps,
    );
    sheet.put("exclude_end_steps", &limits.exclude_end_steps, &default.exclude_end_steps);
    sheet.section("[metric]").number("au", limits.au, default.au);
}

/// The lines so far. A section's header is written with its first key.
#[derive(Default)]
struct Sheet {
    lines: Vec<String>,
    header: Option<&'static str>,
    writes_defaults: bool,
}

impl Sheet {
    fn section(&mut self, header: &'static str) -> &mut Self {
        self.header = Some(header);
        self
    }

    fn begin(&mut self) {
        if let Some(header) = self.header.take() {
            if self.lines.last().is_some_and(|line| !line.is_empty()) {
                self.lines.push(String::new());
            }
            self.lines.push(header.to_owned());
        }
    }

    fn write(&mut self, key: &str, value: &toml::Value) {
        self.begin();
        self.lines.push(format!("{key} = {value}"));
    }

    /// Writes a key if its value differs from the default, or if defaults are written too.
    fn put<T: PartialEq + Serialize>(&mut self, key: &str, value: &T, default: &T) {
        if self.writes_defaults || value != default {
            self.maybe(key, Some(value));
        }
    }

    /// Writes a key that has a value.
    fn maybe<T: Serialize + ?Sized>(&mut self, key: &str, value: Option<&T>) {
        if let Some(value) = value {
            let value = toml::Value::try_from(value).expect("numbers, words, texts and lists of them are TOML");
            self.write(key, &value);
        }
    }

    /// Writes a number, without a decimal point if it is whole.
    fn number(&mut self, key: &str, value: f64, default: f64) {
        if self.writes_defaults || value != default {
            self.write(key, &plain(value));
        }
    }

    fn time(&mut self, key: &str, time: &Time) {
        match *time {
            _ if time.is_zero() && !self.writes_defaults => {}
            Time::Normal { mean, stdev: 0.0 } => self.write(key, &plain(mean)),
            _ => self.maybe(key, Some(time)),
        }
    }

    fn text(self) -> String {
        let mut text = self.lines.join("\n");
        text.push('\n');
        text
    }
}

fn plain(value: f64) -> toml::Value {
    match value.fract() == 0.0 && value.abs() < 1e15 {
        true => toml::Value::Integer(value as i64),
        false => toml::Value::Float(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{builtin, read};

    #[test]
    fn every_built_in_comes_back_as_it_was() {
        for builtin in builtin::all() {
            let checked = builtin.checked();
            let text = to_toml(&checked);
            let again = read(builtin.name, &text, &[]).unwrap_or_else(|problems| panic!("{problems:?} in\n{text}"));
            assert_eq!(again.workload, checked.workload, "{text}");
        }
    }

    #[test]
    fn only_what_differs_is_written_and_notes_are_comments() {
        let yaml = "model: {model_size: 5}\ndataset: {format: npz}\ntrain: {epochs: 1, computation_time: 0.5}\n";
        let text = to_toml(&read("x", yaml, &[]).unwrap());
        let wanted = "# model.model_size: DLIO ignores it, reads only model_size_bytes and saves 10,240 bytes; \
                      here it is the model size\n\n\
            [model]\nmodel_size_bytes = 5\n\n[dataset]\nformat = \"npz\"\n\n[train]\ncomputation_time = 0.5\n";
        assert_eq!(text, wanted);
    }
}
