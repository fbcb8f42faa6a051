//! What a failed request means, in words.
//!
//! The client's own texts hold the URL of the request, which for some stores holds a signature; only status, code
//! and message of the answer are taken from them. The client keeps its type of an answer to itself, so that status and
//! body come from its text, which begins with [`STATUS`].

use std::path::Path;
use std::time::Duration;

use object_store::client::{HttpError, HttpErrorKind};

use crate::{Error, Operation};

const STATUS: &str = "Server returned non-2xx status code: ";
/// An error in the body of an answer that says success.
const BODY: &str = "Server returned error response: ";
const REDIRECT: &str = "Received redirect without LOCATION";
/// Longest text of a server that is repeated.
const LONGEST: usize = 300;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// There is no such object.
    Missing,
    /// The object is not the one that was opened.
    Changed,
    /// The range begins past the end of the object.
    PastEnd,
    Silence(Duration),
    NoThread,
    /// There was no connection, or it broke.
    Unreachable(String),
    Other(String),
}

impl Cause {
    pub(super) fn of(error: &object_store::Error, timeout: Duration) -> Self {
        use object_store::Error as E;
        let mut next = std::error::Error::source(error);
        while let Some(cause) = next {
            if let Some(known) = Self::of_link(cause, timeout) {
                return known;
            }
            next = cause.source();
        }
        match error {
            E::NotFound { .. } => Self::Missing,
            E::Precondition { .. } => Self::Changed,
            E::InvalidPath { source } => Self::Other(format!("not the name of an object: {source}")),
            E::NotSupported { source } => Self::Other(format!("not supported: {source}")),
            E::NotImplemented { operation, implementer } => {
                Self::Other(format!("{implementer} does not support {operation}"))
            }
            other => Self::Other(shortened(&innermost(other))),
        }
    }

    /// What one error of a chain says about the answer.
    fn of_link(cause: &(dyn std::error::Error + 'static), timeout: Duration) -> Option<Self> {
        if let Some(error) = cause.downcast_ref::<HttpError>() {
            let why = || shortened(&innermost(error));
            return Some(match error.kind() {
                HttpErrorKind::Timeout => Self::Silence(timeout),
                HttpErrorKind::Connect => Self::Unreachable(format!("cannot connect: {}", why())),
                _ => Self::Unreachable(format!("the connection broke: {}", why())),
            });
        }
        let text = cause.to_string();
        if let Some(answer) = text.strip_prefix(STATUS) {
            let status = answer.get(..3)?.parse().ok()?;
            return Some(Self::of_status(status, answer.split_once(": ").map_or("", |(_, body)| body)));
        }
        if let Some(body) = text.strip_prefix(BODY) {
            return Some(Self::of_status(500, body));
        }
        text.starts_with(REDIRECT).then(|| Self::Other("the bucket is in another region: set AWS_REGION".to_owned()))
    }

    fn of_status(status: u16, body: &str) -> Self {
        let code = element(body, "Code").unwrap_or_default();
        let said = match (element(body, "Message"), code) {
            (Some(message), code) => format!("{} ({status} {code})", shortened(message)),
            (None, "") => format!("status {status}"),
            (None, code) => format!("status {status}, {code}"),
        };
        let known = match (status, code) {
            (_, "NoSuchBucket" | "ContainerNotFound") => "there is no such bucket",
            (404, _) => return Self::Missing,
            (412, _) => return Self::Changed,
            (416, _) => return Self::PastEnd,
            (_, "SignatureDoesNotMatch" | "AuthenticationFailed") => "the secret key is wrong",
            (_, "InvalidAccessKeyId") => "the access key is unknown",
            (_, "ExpiredToken" | "TokenRefreshRequired") => "the credentials have expired",
            (_, "RequestTimeTooSkewed") => "the clock of this machine is wrong",
            (401 | 403, _) => "permission denied",
            (301..=308, _) => {
                "the bucket is in another region or at another endpoint: set AWS_REGION or AWS_ENDPOINT_URL"
            }
            (400, "AuthorizationHeaderMalformed") => "the region is wrong",
            (429 | 503, _) => "the store throttles requests",
            (500.., _) => "the store failed",
            _ => "the store refused the request",
        };
        Self::Other(format!("{known}: {said}"))
    }

    /// Changes a text that may hold what must not be shown.
    pub(super) fn map_text(self, map: impl FnOnce(&str) -> String) -> Self {
        match self {
            Self::Other(text) => Self::Other(map(&text)),
            Self::Unreachable(text) => Self::Unreachable(map(&text)),
            other => other,
        }
    }

    /// Adds what the user may do about it.
    pub(super) fn with_hint(self, hint: impl FnOnce() -> Option<&'static str>) -> Self {
        match (self, hint()) {
            (Self::Other(text), Some(hint)) => Self::Other(format!("{text}; {hint}")),
            (Self::Unreachable(text), Some(hint)) => Self::Unreachable(format!("{text}; {hint}")),
            (Self::Silence(timeout), Some(hint)) => Self::Unreachable(format!("{}; {hint}", silence(timeout))),
            (other, _) => other,
        }
    }
}

pub(super) fn of(operation: Operation, path: &Path, cause: Cause) -> Error {
    let path = path.to_owned();
    let answered = !matches!(cause, Cause::Silence(_) | Cause::Unreachable(_));
    let what = match cause {
        Cause::Missing => return Error::NotFound { operation, path },
        Cause::Changed => "it changed since it was opened".to_owned(),
        Cause::PastEnd => "the object is shorter than when it was indexed".to_owned(),
        Cause::Silence(timeout) => silence(timeout),
        Cause::NoThread => "cannot start a thread for requests".to_owned(),
        Cause::Unreachable(what) | Cause::Other(what) => what,
    };
    Error::Remote { operation, path, what, answered }
}

fn silence(timeout: Duration) -> String {
    format!("no answer within {} s", timeout.as_secs_f64())
}

fn innermost(error: &dyn std::error::Error) -> String {
    let mut inner = error;
    while let Some(cause) = inner.source() {
        inner = cause;
    }
    inner.to_string()
}

fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(LONGEST).collect()
}

/// The content of an element of a small XML text.
fn element<'a>(body: &'a str, name: &str) -> Option<&'a str> {
    let start = body.find(&format!("<{name}>"))? + name.len() + 2;
    let len = body[start..].find("</")?;
    Some(body[start..start + len].trim()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(status: u16, body: &str) -> String {
        of(Operation::Read, Path::new("s3://b/k"), Cause::of_status(status, body)).to_string()
    }

    #[test]
    fn answers_are_told_by_what_they_mean() {
        let xml = |code: &str, message: &str| {
            format!("<?xml?><Error><Code>{code}</Code><Message>{message}</Message></Error>")
        };
        assert_eq!(said(404, ""), "reading s3://b/k: no such file or folder");
        let bucket = said(404, &xml("NoSuchBucket", "gone"));
        assert_eq!(bucket, "reading s3://b/k: there is no such bucket: gone (404 NoSuchBucket)");
        let key = said(403, "<Error><Code>SignatureDoesNotMatch</Code></Error>");
        assert_eq!(key, "reading s3://b/k: the secret key is wrong: status 403, SignatureDoesNotMatch");
        assert_eq!(said(403, ""), "reading s3://b/k: permission denied: status 403");
        assert!(said(503, &xml("SlowDown", "x")).contains("throttles requests: x (503 SlowDown)"));
        assert!(said(412, "").ends_with("it changed since it was opened"));
    }

    #[test]
    fn a_hint_follows_what_may_lack_credentials_and_nothing_else() {
        let hinted =
            |cause: Cause| of(Operation::Read, Path::new("s3://b"), cause.with_hint(|| Some("set it"))).to_string();
        assert_eq!(hinted(Cause::Missing), "reading s3://b: no such file or folder");
        assert_eq!(hinted(Cause::Silence(Duration::from_secs(3))), "reading s3://b: no answer within 3 s; set it");
    }
}
