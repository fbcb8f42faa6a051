//! Connections to stores, and the threads that drive them.
//!
//! Callers block; a few threads of our own drive all requests. Each has a runtime and connections of its own, because
//! a runtime that shares its work between threads costs half as much processor time again. One is enough for
//! most networks; a machine of many cores gets more, for encryption and for networks of 100 Gbit/s.

use std::collections::HashMap;
use std::future::Future;
use std::ops::Deref;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::time::Duration;

use object_store::multipart::MultipartStore;
use object_store::{BackoffConfig, ObjectStore, RetryConfig, aws, azure, gcp, http};
use tokio::runtime::{Builder, Handle};

use super::failure::{self, Cause};
use super::location::Location;
use super::redirect::Signer;
use super::transport::{Counts, Transport};
use super::versions::Versions;
use crate::access::{self, Access};
use crate::{Operation, Result};

/// Cores per thread that drives requests.
const CORES_PER_LANE: usize = 8;
const MOST_LANES: usize = 8;
const MOST_RETRIES: usize = 10;

/// A store, as long as it is needed.
#[derive(Clone)]
pub(super) struct Store {
    objects: Arc<dyn ObjectStore>,
    /// `None` for stores that take no uploads in parts.
    parts: Option<Arc<dyn MultipartStore>>,
}

impl Store {
    fn of<S: ObjectStore + MultipartStore>(store: S) -> Self {
        let store = Arc::new(store);
        Self { objects: Arc::clone(&store) as Arc<dyn ObjectStore>, parts: Some(store) }
    }

    pub(super) fn parts(&self, operation: Operation, path: &Path) -> Result<Arc<dyn MultipartStore>> {
        let what = "this store takes no uploads in parts".to_owned();
        self.parts.clone().ok_or_else(|| failure::of(operation, path, Cause::Other(what)))
    }
}

impl Deref for Store {
    type Target = dyn ObjectStore;

    fn deref(&self) -> &Self::Target {
        self.objects.as_ref()
    }
}

pub(super) struct Client {
    pub(super) access: Access,
    lanes: Vec<Lane>,
    next: AtomicUsize,
    pub(super) counts: Arc<Counts>,
    pub(super) versions: Arc<Versions>,
}

struct Lane {
    handle: Handle,
    /// By the URL of the bucket.
    stores: Mutex<HashMap<String, Store>>,
}

impl Lane {
    fn start(number: usize) -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        std::thread::Builder::new()
            .name(format!("forebay:objects-{number}"))
            .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
        Ok(Self { handle, stores: Mutex::default() })
    }
}

impl Client {
    /// The client of this program: connections are shared by all that read objects.
    pub(super) fn shared() -> Arc<Self> {
        static CLIENT: OnceLock<Arc<Client>> = OnceLock::new();
        Arc::clone(CLIENT.get_or_init(|| Arc::new(Self::new(access::provided().clone()))))
    }

    pub(super) fn new(access: Access) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let wanted = (cores / CORES_PER_LANE).clamp(1, MOST_LANES);
        // A thread that cannot be started leaves its requests to the others.
        let lanes = (0..wanted).map_while(|number| Lane::start(number).ok()).collect();
        Self { access, lanes, next: AtomicUsize::new(0), counts: Arc::default(), versions: Arc::default() }
    }

    /// A client that knows one store, whatever its URL says.
    #[cfg(any(test, feature = "contract"))]
    pub(super) fn of_store(root: &str, store: &Arc<dyn ObjectStore>, access: Access) -> Self {
        let client = Self::new(access);
        for lane in &client.lanes {
            lane.stores
                .lock()
                .expect("no holder of this lock panics")
                .insert(root.to_owned(), Store { objects: Arc::clone(store), parts: None });
        }
        client
    }

    pub(super) fn timeout(&self) -> Duration {
        self.access.timeout()
    }

    /// Runs a future on one of the threads.
    pub(super) fn start<F>(
        self: &Arc<Self>,
        operation: Operation,
        path: &Path,
        location: &Location,
        work: impl FnOnce(Arc<Self>, Store) -> F,
    ) -> Result<tokio::task::JoinHandle<F::Output>>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let lane = match self.lanes.len() {
            0 => return Err(failure::of(operation, path, Cause::NoThread)),
            n => &self.lanes[number % n],
        };
        let store = self.store(lane, &location.root).map_err(|error| self.failed(operation, path, &error))?;
        Ok(lane.handle.spawn(work(Arc::clone(self), store)))
    }

    /// Runs a future and waits for what it returns.
    pub(super) fn wait<T, F>(
        self: &Arc<Self>,
        operation: Operation,
        path: &Path,
        location: &Location,
        work: impl FnOnce(Arc<Self>, Store) -> F,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.start(operation, path, location, |client, store| {
            let future = work(client, store);
            async move { drop(sender.send(future.await)) }
        })?;
        receiver.recv().unwrap_or_else(|_| Err(failure::of(operation, path, Cause::NoThread)))
    }

    fn store(&self, lane: &Lane, root: &str) -> object_store::Result<Store> {
        let mut stores = lane.stores.lock().expect("no holder of this lock panics");
        if let Some(store) = stores.get(root) {
            return Ok(store.clone());
        }
        let store = self.open(root)?;
        stores.insert(root.to_owned(), store.clone());
        Ok(store)
    }

    fn open(&self, root: &str) -> object_store::Result<Store> {
        // The first caller decides; a second call changes nothing.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let signer = Signer::default();
        let transport = Transport { counts: Arc::clone(&self.counts), timeout: self.timeout(), signer: signer.clone() };
        let retry = RetryConfig {
            max_retries: MOST_RETRIES,
            // The last try needs time too.
            retry_timeout: self.timeout() * 2 / 3,
            backoff: BackoffConfig {
                max_backoff: (self.timeout() / 6).max(Duration::from_millis(200)),
                ..BackoffConfig::default()
            },
        };
        macro_rules! built {
            ($builder:expr) => {{
                let builder = self.access.pairs().fold($builder, |builder, (name, value)| match name.parse() {
                    Ok(key) => builder.with_config(key, value),
                    Err(_) => builder,
                });
                builder.with_http_connector(transport).with_retry(retry).build()?
            }};
        }
        let scheme = root.split("://").next().unwrap_or_default();
        Ok(match scheme {
            "s3" | "s3a" => {
                // A plain endpoint is plain because the user gave it so.
                let is_plain =
                    self.access.pairs().any(|(name, url)| name.contains("endpoint") && url.starts_with("http://"));
                let builder = aws::AmazonS3Builder::new().with_url(root);
                let store = built!(if is_plain { builder.with_allow_http(true) } else { builder });
                const REGION: [&str; 4] = ["aws_region", "region", "aws_default_region", "default_region"];
                let region = self.access.pairs().filter(|(name, _)| REGION.contains(&name.as_str())).last();
                signer.learn(&store, region.map(|(_, region)| region.to_owned()));
                Store::of(store)
            }
            "gs" => Store::of(built!(gcp::GoogleCloudStorageBuilder::new().with_url(root))),
            "http" | "https" => {
                let options = object_store::ClientOptions::new().with_allow_http(scheme == "http");
                let store = built!(http::HttpBuilder::new().with_url(root).with_client_options(options));
                Store { objects: Arc::new(store), parts: None }
            }
            _ => {
                let is_plain = self.access.pairs().any(|(name, url)| {
                    (name.contains("endpoint") && url.starts_with("http://"))
                        || (name.contains("emulator") && url == "true")
                });
                let builder = azure::MicrosoftAzureBuilder::new().with_url(root);
                Store::of(built!(if is_plain { builder.with_allow_http(true) } else { builder }))
            }
        })
    }

    /// Whether credentials for stores of this scheme are among the options.
    fn has_credentials(&self, path: &Path) -> bool {
        let marks: &[&str] = match path.as_os_str().as_encoded_bytes() {
            [b's', b'3', ..] => {
                &["access_key_id", "web_identity", "container_credentials", "skip_signature", "container_authorization"]
            }
            [b'g', ..] => &["service_account", "application_credentials", "skip_signature"],
            [b'a', ..] => &[
                "account_key",
                "access_key",
                "sas",
                "client_secret",
                "token",
                "use_azure_cli",
                "emulator",
                "skip_signature",
                "identity",
            ],
            _ => return true,
        };
        self.access.pairs().any(|(name, _)| marks.iter().any(|mark| name.contains(mark)))
    }

    /// The error of a request: what the store or the network said, without secrets.
    pub(super) fn failed(&self, operation: Operation, path: &Path, error: &object_store::Error) -> crate::Error {
        let cause = Cause::of(error, self.timeout()).map_text(|text| self.access.masked(text));
        failure::of(operation, path, cause.with_hint(|| self.hint(operation, path)))
    }

    pub(super) fn silent(&self, operation: Operation, path: &Path) -> crate::Error {
        failure::of(operation, path, Cause::Silence(self.timeout()).with_hint(|| self.hint(operation, path)))
    }

    fn hint(&self, operation: Operation, path: &Path) -> Option<&'static str> {
        if operation == Operation::List && path.as_os_str().as_encoded_bytes().starts_with(b"http") {
            return Some("most web servers cannot list: give a list of URLs");
        }
        if self.has_credentials(path) {
            return None;
        }
        Some(match path.as_os_str().as_encoded_bytes() {
            [b's', b'3', ..] => {
                "no credentials are set: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SKIP_SIGNATURE=true for a \
                 public bucket"
            }
            [b'g', ..] => {
                "no credentials are set: set GOOGLE_SERVICE_ACCOUNT, or GOOGLE_SKIP_SIGNATURE=true for a public bucket"
            }
            _ => "no credentials are set: set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
        })
    }

    /// Waits for a step of a request; the step must make progress within the time limit.
    pub(super) async fn within<T>(
        &self,
        operation: Operation,
        path: &Path,
        step: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T> {
        match tokio::time::timeout(self.timeout(), step).await {
            Ok(outcome) => outcome.map_err(|error| self.failed(operation, path, &error)),
            Err(_) => Err(self.silent(operation, path)),
        }
    }
}
