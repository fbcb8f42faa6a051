//! Object stores on real servers: moto from PyPI, which is quick to start, and Ceph's gateway from Debian.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::shell::{cargo, program, root, run, scratch, target};
use crate::{ci, python, system};

const BUCKET: &str = "forebay";
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that ends with this.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Checks the laws of storage on moto, or with `--ceph` on Ceph.
pub fn run_campaign(args: &[&str]) -> Result<()> {
    ci::build_like_tests(&["--example", "object_laws"])?;
    let python = python::environment_of("objects")?;
    let port = free_port()?;
    let endpoint = format!("http://127.0.0.1:{port}");
    match args {
        [] => {
            let mut moto = program(&python);
            moto.args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()]);
            let log = std::fs::File::create(scratch("objects")?.join("moto.log"))?;
            moto.stdout(log.try_clone()?).stderr(log);
            let _server = Server(moto.spawn().context("cannot start moto")?);
            await_port(port)?;
            check(&python, &endpoint)
        }
        ["--ceph"] => on_ceph(port, || check(&python, &endpoint)),
        _ => bail!("cargo xtask objects [--ceph]"),
    }
}

/// Does `work` while Ceph's gateway listens on a port.
fn on_ceph(port: u16, work: impl FnOnce() -> Result<()>) -> Result<()> {
    system::need("radosgw", "radosgw ceph-mon ceph-osd ceph-common")?;
    let folder = scratch("ceph")?;
    let script = root().join("tests/objects/ceph.sh");
    let port = port.to_string();
    let ceph = |word: &str| run(program("bash").arg(&script).arg(word).arg(&folder).arg(&port));
    ceph("start")?;
    let outcome = work();
    ceph("stop")?;
    outcome
}

/// Reads the same objects with forebay and with other clients, with `bench/objects/run.py`.
pub fn compare(options: &[&str]) -> Result<()> {
    let build = ["build", "--release", "--quiet", "-p", "forebay-storage", "--features", "object"];
    run(cargo(&build).args(["--example", "object_reads"]))?;
    let scripts = root().join("bench/objects");
    let python = python::environment("objects-bench", &scripts.join("requirements.txt"))?;
    let port = free_port()?;
    on_ceph(port, || {
        let mut command = program(&python);
        command.arg(scripts.join("run.py")).arg(format!("http://127.0.0.1:{port}"));
        run(command.arg("--program").arg(target().join("release/examples/object_reads")).args(options))
    })
}

fn check(python: &std::path::Path, endpoint: &str) -> Result<()> {
    run(program(python).arg(root().join("tests/objects/bucket.py")).args([endpoint, BUCKET]))?;
    let mut laws = Command::new(target().join("debug/examples/object_laws"));
    laws.arg(format!("s3://{BUCKET}"));
    let variables = [
        ("AWS_ENDPOINT_URL", endpoint),
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "testtest"),
        ("AWS_REGION", "us-east-1"),
    ];
    run(laws.envs(variables))
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn await_port(port: u16) -> Result<()> {
    let start = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if start.elapsed() > PATIENCE {
            bail!("the server does not listen on port {port}");
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}
