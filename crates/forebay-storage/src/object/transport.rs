//! The HTTP client below the object stores: counts requests, and limits how long one may make no progress.
//!
//! A request gets a third of the time limit, so a lost one can be sent again within it. The limit of the HTTP client
//! itself would include the transfer of the body, and so fail large objects on slow networks; it is off.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};

use crate::Requests;

/// Enough to send a lost request twice again.
const TRIES_WITHIN_TIMEOUT: u32 = 3;
const CONNECT: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct Counts {
    sent: AtomicU64,
    throttled: AtomicU64,
    failed: AtomicU64,
    /// Requests for the content of an object, and those of them that failed.
    gets: AtomicU64,
    failed_gets: AtomicU64,
    /// Objects and ranges asked for by this program.
    wanted: AtomicU64,
}

impl Counts {
    /// Called for each object or range before it is requested.
    pub(super) fn want(&self) {
        self.wanted.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn throttled(&self) -> u64 {
        self.throttled.load(Ordering::Relaxed)
    }

    pub(super) fn snapshot(&self) -> Requests {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        // A request beyond the wanted ones that replaces no failed one continues a broken transfer.
        let resumed = of(&self.gets).saturating_sub(of(&self.wanted) + of(&self.failed_gets));
        Requests {
            sent: of(&self.sent),
            throttled: of(&self.throttled),
            failed: of(&self.failed),
            resumed,
            ..Requests::default()
        }
    }
}

/// Makes the clients of a store.
#[derive(Debug, Clone)]
pub(super) struct Transport {
    pub(super) counts: Arc<Counts>,
    pub(super) timeout: Duration,
}

impl HttpConnector for Transport {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let patience = self.timeout / TRIES_WITHIN_TIMEOUT;
        let options = options.clone().with_timeout_disabled().with_connect_timeout(patience.min(CONNECT));
        // While a body is sent nothing is read, which must not count as silence.
        let writes = ReqwestConnector::default().connect(&options)?;
        let reads = ReqwestConnector::default().connect(&options.with_read_timeout(patience))?;
        Ok(HttpClient::new(Service { reads, writes, counts: Arc::clone(&self.counts), timeout: self.timeout }))
    }
}

#[derive(Debug)]
struct Service {
    reads: HttpClient,
    writes: HttpClient,
    counts: Arc<Counts>,
    timeout: Duration,
}

#[derive(Debug, thiserror::Error)]
#[error("no answer within {0:?}")]
struct Silence(Duration);

#[async_trait::async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let is_get = request.method().as_str() == "GET";
        let is_read = is_get || request.method().as_str() == "HEAD";
        // Listings have a query.
        let is_content = is_get && request.uri().query().is_none();
        self.counts.sent.fetch_add(1, Ordering::Relaxed);
        if is_content {
            self.counts.gets.fetch_add(1, Ordering::Relaxed);
        }
        let outcome = if is_read {
            self.reads.execute(request).await
        } else {
            let silence = |_| Err(HttpError::new(HttpErrorKind::Timeout, Silence(self.timeout)));
            tokio::time::timeout(self.timeout, self.writes.execute(request)).await.unwrap_or_else(silence)
        };
        let status = outcome.as_ref().map(|response| response.status().as_u16());
        let counter = match status {
            Ok(429 | 503) => &self.counts.throttled,
            Ok(408 | 500..) | Err(_) => &self.counts.failed,
            Ok(_) => return outcome,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        if is_content {
            self.counts.failed_gets.fetch_add(1, Ordering::Relaxed);
        }
        outcome
    }
}
