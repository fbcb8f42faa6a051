//! What the store in the test's own process holds, and its answers.

use std::collections::BTreeMap;

use crate::s3::escaped;

pub(crate) struct Stored {
    /// By bucket and key: `bucket/key`.
    pub(crate) objects: BTreeMap<String, (Vec<u8>, u64)>,
    pub(crate) uploads: BTreeMap<u64, BTreeMap<u64, Vec<u8>>>,
    pub(crate) version: u64,
    /// Objects per page of a listing.
    pub(crate) page: usize,
    /// Whether conditions of a PUT are not looked at.
    pub(crate) ignores_conditions: bool,
}

impl Default for Stored {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), uploads: BTreeMap::new(), version: 0, page: 1_000, ignores_conditions: false }
    }
}

pub(crate) struct Request {
    pub(crate) method: String,
    /// `bucket/key`.
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    /// The body is announced and not sent.
    pub(crate) is_head: bool,
}

impl Answer {
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into(), is_head: false }
    }

    pub(crate) fn error(status: u16, code: &str) -> Self {
        Self::new(
            status,
            format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>{code} for a test</Message></Error>"),
        )
    }
}

impl Stored {
    pub(crate) fn answer(&mut self, request: &Request) -> Answer {
        let path = request.path.trim_end_matches('/');
        let upload = request.query("uploadId").and_then(|id| id.parse().ok());
        match (request.method.as_str(), upload) {
            _ if path.starts_with("no-such-bucket") => Answer::error(404, "NoSuchBucket"),
            ("GET", _) if request.query("list-type").is_some() => self.list(request, path),
            ("GET" | "HEAD", _) => self.read(request),
            ("PUT", Some(id)) => {
                let part = request.query("partNumber").and_then(|part| part.parse().ok()).unwrap_or(0);
                let Some(upload) = self.uploads.get_mut(&id) else { return Answer::error(404, "NoSuchUpload") };
                upload.insert(part, request.body.clone());
                Answer { headers: vec![("ETag", format!("\"{part}\""))], ..Answer::new(200, "") }
            }
            ("PUT", None) => {
                let found = self.objects.get(path).map(|(_, version)| format!("\"{version}\""));
                match (request.header("if-none-match"), request.header("if-match"), found) {
                    _ if self.ignores_conditions => self.write(path, request.body.clone()),
                    (Some("*"), _, Some(_)) => Answer::error(412, "PreconditionFailed"),
                    (_, Some(_), None) => Answer::error(404, "NoSuchKey"),
                    (_, Some(wanted), Some(found)) if *wanted != found => Answer::error(412, "PreconditionFailed"),
                    _ => self.write(path, request.body.clone()),
                }
            }
            ("POST", None) if request.query("uploads").is_some() => {
                self.version += 1;
                self.uploads.insert(self.version, BTreeMap::new());
                let id = self.version;
                Answer::new(
                    200,
                    format!("<InitiateMultipartUploadResult><UploadId>{id}</UploadId></InitiateMultipartUploadResult>"),
                )
            }
            ("POST", None) if request.query("delete").is_some() => {
                let body = String::from_utf8_lossy(&request.body).into_owned();
                let keys = body.split("<Key>").skip(1).filter_map(|rest| rest.split("</Key>").next());
                let deleted = keys.map(|key| {
                    self.objects.remove(&format!("{path}/{key}"));
                    format!("<Deleted><Key>{key}</Key></Deleted>")
                });
                Answer::new(200, format!("<DeleteResult>{}</DeleteResult>", deleted.collect::<String>()))
            }
            ("POST", Some(id)) => {
                let Some(parts) = self.uploads.remove(&id) else { return Answer::error(404, "NoSuchUpload") };
                let mut answer = self.write(path, parts.into_values().flatten().collect());
                let etag = self.version;
                answer.body =
                    format!("<CompleteMultipartUploadResult><ETag>\"{etag}\"</ETag></CompleteMultipartUploadResult>")
                        .into();
                answer
            }
            ("DELETE", Some(id)) => {
                self.uploads.remove(&id);
                Answer::new(204, "")
            }
            ("DELETE", None) => {
                self.objects.remove(path);
                Answer::new(204, "")
            }
            _ => Answer::error(405, "MethodNotAllowed"),
        }
    }

    fn write(&mut self, path: &str, bytes: Vec<u8>) -> Answer {
        self.version += 1;
        self.objects.insert(path.to_owned(), (bytes, self.version));
        Answer { headers: vec![("ETag", format!("\"{}\"", self.version))], ..Answer::new(200, "") }
    }

    fn read(&self, request: &Request) -> Answer {
        let Some((bytes, version)) = self.objects.get(&request.path) else { return Answer::error(404, "NoSuchKey") };
        let etag = format!("\"{version}\"");
        if request.header("if-match").is_some_and(|wanted| wanted != etag) {
            return Answer::error(412, "PreconditionFailed");
        }
        let date = "Thu, 19 Nov 2026 04:00:00 GMT".to_owned();
        let mut answer = Answer { headers: vec![("ETag", etag), ("Last-Modified", date)], ..Answer::new(200, "") };
        let range = request.header("range").and_then(|range| range.strip_prefix("bytes=")?.split_once('-'));
        match range {
            None => answer.body.clone_from(bytes),
            Some((start, end)) => {
                let start: usize = start.parse().unwrap_or(0);
                let end = end.parse::<usize>().map_or(bytes.len(), |end| end + 1).min(bytes.len());
                if start >= bytes.len() {
                    return Answer::error(416, "InvalidRange");
                }
                answer.status = 206;
                answer.headers.push(("Content-Range", format!("bytes {start}-{}/{}", end - 1, bytes.len())));
                answer.body = bytes[start..end].to_vec();
            }
        }
        answer
    }

    fn list(&self, request: &Request, bucket: &str) -> Answer {
        let prefix = request.query("prefix").unwrap_or_default();
        let delimiter = request.query("delimiter").filter(|text| !text.is_empty());
        let after = request.query("continuation-token").unwrap_or_default().to_owned();
        let (mut xml, mut n, mut seen, mut next) = (String::new(), 0, String::new(), None);
        let keys =
            self.objects.iter().filter_map(|(path, of)| Some((path.strip_prefix(bucket)?.strip_prefix('/')?, of)));
        for (key, (bytes, version)) in keys.filter(|(key, _)| key.starts_with(prefix) && *key > after.as_str()) {
            if n == self.page {
                next = Some(seen.clone());
                break;
            }
            key.clone_into(&mut seen);
            let below = delimiter
                .and_then(|of| key[prefix.len()..].split_once(of).map(|(name, _)| format!("{prefix}{name}{of}")));
            if let Some(below) = below {
                let element = format!("<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>", escaped(&below));
                if !xml.contains(&element) {
                    xml += &element;
                    n += 1;
                }
                // The next page goes on behind everything with this prefix.
                seen = format!("{below}\u{10ffff}");
                continue;
            }
            n += 1;
            xml += &format!(
                "<Contents><Key>{}</Key><LastModified>2026-11-19T04:00:00.000Z</LastModified><ETag>\"{version}\"</ETag>\
                 <Size>{}</Size></Contents>",
                escaped(key),
                bytes.len()
            );
        }
        let more = next.map(|token| format!("<NextContinuationToken>{}</NextContinuationToken>", escaped(&token)));
        let more = more.unwrap_or_default();
        Answer::new(200, format!("<?xml version=\"1.0\"?><ListBucketResult>{more}{xml}</ListBucketResult>"))
    }
}
