//! Requests that a store sends on to another host.
//!
//! S3 answers with 307 while a new bucket is not known everywhere, and gateways do so to spread their load. The signature of a
//! request covers the host, and the HTTP client that follows drops it, so the other host refuses the request. A refused request
//! is therefore sent once more by a client that does not follow, and signed again for the host that it is sent on to. From
//! then on, requests to this store go that way at once.
//!
//! Other stores authorise with a token, which is not for other hosts: there the HTTP client follows without it.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use object_store::ClientConfigKey;
use object_store::ClientOptions;
use object_store::aws::{AmazonS3, AwsAuthorizer, AwsCredentialProvider};
use object_store::client::{HttpClient, HttpError, HttpRequest, HttpResponse};
use url::Url;

/// As many as browsers and curl allow, by order of magnitude.
const MOST: usize = 10;

/// Signs requests to S3; known once the store is built.
#[derive(Clone, Default)]
pub(super) struct Signer(Arc<Signing>);

#[derive(Default)]
struct Signing {
    /// The credentials and the region.
    with: OnceLock<(AwsCredentialProvider, String)>,
    /// Whether this store has sent a request on to another host.
    sends_on: AtomicBool,
}

/// Without the credentials.
impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signer")
    }
}

impl Signer {
    /// Lets requests be signed as this store signs them.
    pub(super) fn learn(&self, store: &AmazonS3, region: Option<String>) {
        let region = region.unwrap_or_else(|| "us-east-1".to_owned());
        // A second call has the same credentials.
        let _ = self.0.with.set((Arc::clone(store.credentials()), region));
    }

    /// Sends a request with `usual`; if it may have been refused because it was sent on, with `bare`, which does not follow.
    pub(super) async fn execute(
        &self,
        usual: &HttpClient,
        bare: &HttpClient,
        request: HttpRequest,
    ) -> Result<HttpResponse, HttpError> {
        if self.0.with.get().is_none() {
            return usual.execute(request).await;
        }
        if !self.0.sends_on.load(Ordering::Relaxed) {
            let response = usual.execute(request.clone()).await?;
            if response.status().as_u16() != 403 {
                return Ok(response);
            }
        }
        self.follow(bare, request).await
    }

    async fn follow(&self, bare: &HttpClient, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let mut response = bare.execute(request.clone()).await?;
        for _ in 0..MOST {
            let Some(target) = target(&request, &response) else { break };
            let Some(moved) = self.moved(request, &target).await else { break };
            self.0.sends_on.store(true, Ordering::Relaxed);
            request = moved;
            response = bare.execute(request.clone()).await?;
        }
        Ok(response)
    }

    /// The request for another place; `None` if it cannot be signed.
    async fn moved(&self, mut request: HttpRequest, target: &Url) -> Option<HttpRequest> {
        let (credentials, region) = self.0.with.get()?;
        *request.uri_mut() = target.as_str().parse().ok()?;
        let was_signed = request.headers_mut().remove("authorization").is_some();
        request.headers_mut().remove("host");
        if was_signed {
            let credential = credentials.get_credential().await.ok()?;
            // The content was sent before with its digest; it need not be computed again.
            let authorizer = AwsAuthorizer::new(&credential, "s3", region).with_sign_payload(false);
            authorizer.try_authorize(&mut request, None).ok()?;
        }
        Some(request)
    }
}

/// Where an answer sends its request on; never from an encrypted connection to a plain one.
fn target(request: &HttpRequest, response: &HttpResponse) -> Option<Url> {
    if !matches!(response.status().as_u16(), 301 | 302 | 307 | 308) {
        return None;
    }
    let location = response.headers().get("location")?.to_str().ok()?;
    let from = Url::parse(&request.uri().to_string()).ok()?;
    let to = from.join(location).ok()?;
    (to.scheme() == from.scheme() || to.scheme() == "https").then_some(to)
}

/// The HTTP client that these options describe, but without redirects of its own.
pub(super) fn client(
    options: &ClientOptions,
    connect_timeout: Duration,
    read_timeout: Option<Duration>,
) -> object_store::Result<HttpClient> {
    let failed = |error| object_store::Error::Generic { store: "HTTP client", source: Box::new(error) };
    Ok(HttpClient::new(built(options, connect_timeout, read_timeout).map_err(failed)?))
}

fn built(
    options: &ClientOptions,
    connect_timeout: Duration,
    read_timeout: Option<Duration>,
) -> reqwest::Result<reqwest::Client> {
    use ClientConfigKey as K;
    let text = |key| options.get_config_value(&key);
    let is_set = |key| text(key).as_deref() == Some("true");
    let mut builder = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(connect_timeout)
        .user_agent(text(K::UserAgent).unwrap_or_else(|| concat!("forebay/", env!("CARGO_PKG_VERSION")).to_owned()))
        .https_only(!is_set(K::AllowHttp))
        .danger_accept_invalid_certs(is_set(K::AllowInvalidCertificates));
    if is_set(K::Http1Only) {
        builder = builder.http1_only();
    }
    if let Some(timeout) = read_timeout {
        builder = builder.read_timeout(timeout);
    }
    if let Some(url) = text(K::ProxyUrl) {
        let mut proxy = reqwest::Proxy::all(url)?;
        if let Some(excludes) = text(K::ProxyExcludes) {
            proxy = proxy.no_proxy(reqwest::NoProxy::from_string(&excludes));
        }
        builder = builder.proxy(proxy);
    }
    if let Some(certificate) = text(K::ProxyCaCertificate) {
        let certificate = reqwest::tls::Certificate::from_pem(certificate.as_bytes())?;
        builder = builder.tls_certs_merge(std::iter::once(certificate));
    }
    builder.build()
}
