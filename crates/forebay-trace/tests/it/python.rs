//! The Python hook on packages that look like the real ones; `tests/interop` has the real ones.

use std::fs;
use std::process::Command;

use forebay_record::TraceCell;

use crate::job::Job;

/// A DataLoader, its fetcher, an optimiser and a saver with the names and calls of PyTorch's.
const TORCH: [(&str, &str); 7] = [
    ("torch/__init__.py", "from torch.serialization import save\n"),
    (
        "torch/serialization.py",
        "def save(state, path):\n    with open(path, 'wb') as file:\n        file.write(bytes(state))\n",
    ),
    ("torch/utils/__init__.py", ""),
    ("torch/utils/data/__init__.py", "from torch.utils.data.dataloader import DataLoader\n"),
    ("torch/utils/data/_utils/__init__.py", ""),
    (
        "torch/utils/data/_utils/fetch.py",
        "class _MapDatasetFetcher:\n    def __init__(self, dataset):\n        self.dataset = dataset\n\
         \x20   def fetch(self, indices):\n        return [self.dataset[i] for i in indices]\n",
    ),
    (
        "torch/utils/data/dataloader.py",
        "from torch.utils.data._utils import fetch\n\
         class _BaseDataLoaderIter:\n    def __init__(self, loader):\n        self.at = 0\n        self.loader = loader\n\
         \x20       self.fetcher = fetch._MapDatasetFetcher(loader.dataset)\n\
         \x20   def __iter__(self):\n        return self\n\
         \x20   def __next__(self):\n        n = self.loader.batch_size\n        if self.at + n > len(self.loader.dataset):\n\
         \x20           raise StopIteration\n        self.at += n\n        return self.fetcher.fetch(list(range(self.at - n, self.at)))\n\
         class DataLoader:\n    def __init__(self, dataset, batch_size, num_workers=0):\n\
         \x20       self.dataset, self.batch_size, self.num_workers = dataset, batch_size, num_workers\n\
         \x20   def __iter__(self):\n        return _BaseDataLoaderIter(self)\n",
    ),
];

/// Trains for two epochs of five steps; a sample is a file of 1,000 bytes.
const TRAIN: &str = r#"
import os, sys, time, torch
from torch.utils.data import DataLoader
for i in range(20):
    open(f"{i}.bin", "wb").write(bytes(1000))
class Files:
    def __len__(self): return 20
    def __getitem__(self, i):
        with open(f"{i}.bin", "rb", buffering=0) as file:
            found = file.read()
        end = time.monotonic() + float(sys.argv[1])
        while time.monotonic() < end: pass
        return found
assert DataLoader.__iter__.__name__ == "__iter__"
for epoch in range(2):
    for batch in DataLoader(Files(), batch_size=4):
        assert len(batch) == 4 and len(batch[0]) == 1000
        time.sleep(float(sys.argv[2]))
    torch.save(range(100), f"model-{epoch}.pt")
"#;

fn trained(decode_s: &str, compute_s: &str) -> TraceCell {
    let job = Job::new();
    let packages = job.dir.path().join("packages");
    for (name, text) in TORCH {
        fs::create_dir_all(packages.join(name).parent().unwrap()).unwrap();
        fs::write(packages.join(name), text).unwrap();
    }
    let mut command = job.python(TRAIN);
    let path = format!("{}:{}", job.dir.path().join("python").display(), packages.display());
    command.env("PYTHONPATH", path).args([decode_s, compute_s]);
    let ended = job.run(command);
    assert!(ended.status.success());
    ended.cell()
}

#[test]
fn steps_waits_fetches_and_checkpoints_are_exact() {
    let cell = trained("0.004", "0.15");
    assert_eq!(cell.totals.steps, Some(10), "two epochs of five batches");
    let fetch = cell.fetch.clone().unwrap();
    assert_eq!((fetch.batches, fetch.samples, fetch.workers), (10, Some(40), 0));
    assert!(fetch.compute_s >= 40.0 * 0.004 && fetch.compute_s > 0.8 * fetch.seconds, "{fetch:?}");
    assert_eq!(cell.saves.len(), 2);
    assert!(cell.saves.iter().all(|save| save.bytes == 100 && !save.is_restore), "{:?}", cell.saves);
    let wait_s = cell.totals.wait_s.unwrap();
    assert!(wait_s >= fetch.seconds && wait_s < cell.totals.loop_s.unwrap());
    // Fetches that computing would have hidden are charged to the lack of prefetch.
    assert_eq!((cell.limit.name.as_str(), cell.lever.name.as_str()), ("prefetch", "prefetch"), "{}", cell.verdict);
    let found: Vec<&str> =
        cell.rules.iter().filter(|rule| rule.applies == Some(true)).map(|rule| rule.id.as_str()).collect();
    assert!(found.contains(&"R0") && found.contains(&"R3") && !found.contains(&"R1"), "{found:?}");
}

#[test]
fn a_loop_that_computes_is_its_own_limit_and_one_that_decodes_waits_for_that() {
    let cell = trained("0", "0.3");
    assert_eq!((cell.limit.name.as_str(), cell.lever.name.as_str()), ("accelerator", "none"), "{}", cell.verdict);
    let cell = trained("0.02", "0");
    assert_eq!((cell.limit.name.as_str(), cell.lever.name.as_str()), ("decode", "decode"), "{}", cell.verdict);
}

#[test]
fn the_sitecustomize_of_the_user_still_runs_and_the_path_is_unchanged() {
    let job = Job::new();
    let own = job.dir.path().join("own");
    fs::create_dir(&own).unwrap();
    fs::write(own.join("sitecustomize.py"), "import builtins\nbuiltins.mine = 7\n").unwrap();
    let ours = job.dir.path().join("python");
    let mut command: Command = job.python("import sys, sitecustomize; print(mine, sitecustomize.__file__, sys.path)");
    let output = command.env("PYTHONPATH", format!("{}:{}", ours.display(), own.display())).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.starts_with(&format!("7 {}", own.join("sitecustomize.py").display())), "{said}");
    assert!(!said.contains(&ours.display().to_string()), "{said}");
    assert!(output.stderr.is_empty(), "{:?}", String::from_utf8(output.stderr));
}

/// What `forebay.step()` and `forebay.phase()` of the Python package do, beside an optimiser that the hook marks.
const OWN: &str = r#"
import ctypes, sys, time
library = ctypes.PyDLL(None)
library.forebay_phase.argtypes = [ctypes.c_char_p]
hook = sys.modules["_forebay_trace"]
hook._load()
library.forebay_phase(b"train")
for step in range(5):
    time.sleep(0.02)
    hook._step()
    if step > 0 or hook.own_steps() == 0:
        library.forebay_step()
library.forebay_phase(b"validate")
time.sleep(0.05)
open("end", "w").close()
"#;

#[test]
fn own_steps_replace_those_of_the_hook_and_phases_have_their_time() {
    let job = Job::new();
    let ended = job.run(job.python(OWN));
    assert!(ended.status.success());
    let cell = ended.cell();
    assert_eq!(cell.totals.steps, Some(5), "each step once");
    let phases: Vec<_> = cell.phases.iter().map(|phase| (phase.name.as_str(), phase.steps)).collect();
    assert_eq!(phases, [("train", 5), ("validate", 0)]);
    assert!((0.1..5.0).contains(&cell.phases[0].seconds), "{:?}", cell.phases);
    assert!((0.05..5.0).contains(&cell.phases[1].seconds), "{:?}", cell.phases);
}
