//! The HTTP client below the object stores: counts requests, and limits how long one may make no progress.
//!
//! A request gets a third of the time limit, so a lost one can be sent again within it. The limit of the HTTP client
//! itself would include the transfer of the body, and so fail large objects on slow networks; it is off. A request for
//! content that is slow to be answered is sent a second time (`hedge`).

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::{Either, select};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};

use super::hedge::Hedge;
use super::redirect::{self, Signer};
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
    /// Sent a second time because the answer was slow to come.
    hedged: AtomicU64,
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
            hedged: of(&self.hedged),
            ..Requests::default()
        }
    }
}

/// Makes the clients of a store.
#[derive(Debug, Clone)]
pub(super) struct Transport {
    pub(super) counts: Arc<Counts>,
    pub(super) timeout: Duration,
    pub(super) signer: Signer,
}

impl HttpConnector for Transport {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let patience = self.timeout / TRIES_WITHIN_TIMEOUT;
        let options = options.clone().with_timeout_disabled().with_connect_timeout(patience.min(CONNECT));
        let bare = |read_timeout| redirect::client(&options, patience.min(CONNECT), read_timeout);
        // While a body is sent nothing is read, which must not count as silence.
        let writes = ReqwestConnector::default().connect(&options)?;
        let (bare_reads, bare_writes) = (bare(Some(patience))?, bare(None)?);
        let reads = ReqwestConnector::default().connect(&options.with_read_timeout(patience))?;
        let (reads, writes) = ([reads, bare_reads], [writes, bare_writes]);
        let (counts, timeout, hedge) = (Arc::clone(&self.counts), self.timeout, Hedge::default());
        let signer = self.signer.clone();
        Ok(HttpClient::new(Service { reads, writes, counts, timeout, hedge, signer }))
    }
}

#[derive(Debug)]
struct Service {
    /// The usual client, and one that does not follow redirects.
    reads: [HttpClient; 2],
    writes: [HttpClient; 2],
    counts: Arc<Counts>,
    timeout: Duration,
    hedge: Hedge,
    signer: Signer,
}

impl Service {
    async fn execute(&self, clients: &[HttpClient; 2], request: HttpRequest) -> Result<HttpResponse, HttpError> {
        self.signer.execute(&clients[0], &clients[1], request).await
    }

    /// Requests content; if no answer comes within the usual time, a second time, and the first answer counts.
    async fn content(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let start = Instant::now();
        let outcome = match self.hedge.delay() {
            None => self.execute(&self.reads, request).await,
            Some(delay) => self.hedged(request, delay).await,
        };
        if outcome.as_ref().is_ok_and(|response| response.status().is_success()) {
            self.hedge.answered(start.elapsed());
        }
        outcome
    }

    async fn hedged(&self, request: HttpRequest, delay: Duration) -> Result<HttpResponse, HttpError> {
        let mut first = pin!(self.execute(&self.reads, request.clone()));
        if let Ok(outcome) = tokio::time::timeout(delay, first.as_mut()).await {
            return outcome;
        }
        if !self.hedge.may_hedge() {
            return first.await;
        }
        self.counts.sent.fetch_add(1, Ordering::Relaxed);
        self.counts.hedged.fetch_add(1, Ordering::Relaxed);
        let second = pin!(self.execute(&self.reads, request));
        // A request that fails leaves the answer to the other.
        match select(first, second).await {
            Either::Left((Err(_), other)) => other.await,
            Either::Right((Err(_), other)) => other.await,
            Either::Left((outcome, _)) | Either::Right((outcome, _)) => outcome,
        }
    }
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
        let outcome = if is_content {
            self.content(request).await
        } else if is_read {
            self.execute(&self.reads, request).await
        } else {
            let silence = |_| Err(HttpError::new(HttpErrorKind::Timeout, Silence(self.timeout)));
            tokio::time::timeout(self.timeout, self.execute(&self.writes, request)).await.unwrap_or_else(silence)
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
