//! Why something is bad, in words for a [`Fault`](forebay_record::Fault).

/// An error and its causes in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// What a storage error says about a file, without naming the file again.
pub(crate) fn why_unreadable(error: &forebay_storage::Error) -> String {
    use forebay_storage::Error as E;
    match error {
        E::NotFound { .. } => "no such file".to_owned(),
        E::Denied { .. } => "permission denied".to_owned(),
        E::Io { source, .. } => format!("cannot be read: {source}"),
        other => chain(other),
    }
}
