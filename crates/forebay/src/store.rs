//! How the program reaches object stores: flags, environment, and the profile files of AWS.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use forebay_storage::access::{self, Access};
use forebay_storage::is_url;
use forebay_units::PathText;

use crate::values::time;

/// Flags of commands that read data from object stores.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct StoreArgs {
    /// Option of the object store, such as aws_endpoint_url=http://host:9000; more than one may be given
    ///
    /// Options have the names of the environment variables of the stores in lower case, and take precedence over them:
    /// aws_region, aws_endpoint_url, aws_skip_signature, google_service_account, azure_storage_account_name and others.
    #[arg(long, value_name = "NAME=VALUE")]
    storage_option: Vec<String>,

    /// Give up a request to an object store that makes no progress for this long, retries included [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = time("from 1s to 1h", |limit| (1..=3_600).contains(&limit.as_secs())))]
    timeout: Option<Duration>,
}

impl StoreArgs {
    /// For commands without flags for object stores: the environment says how to reach them.
    pub(crate) fn of_environment() -> Self {
        Self { storage_option: Vec::new(), timeout: None }
    }

    /// Sets the access to object stores for the rest of the program; it has no effect on local data.
    pub(crate) fn apply<'a>(&self, data: impl IntoIterator<Item = &'a Path>) -> Result<()> {
        let (urls, local): (Vec<&Path>, Vec<&Path>) = data.into_iter().partition(|path| is_url(path));
        let given = [("--storage-option", !self.storage_option.is_empty()), ("--timeout", self.timeout.is_some())];
        // A list may name objects.
        if let (true, Some(folder), Some((flag, _))) =
            (urls.is_empty(), local.iter().find(|path| path.is_dir()), given.iter().find(|(_, is_given)| *is_given))
        {
            bail!("{flag} is for data on an object store, and {} is local", folder.escaped());
        }
        let mut access = Access::of_variables(variables());
        access.add_defaults(profile(&access));
        for option in &self.storage_option {
            access.set(option).map_err(|why| anyhow!("--storage-option: {why}"))?;
        }
        access::provide(access.with_timeout(self.timeout.unwrap_or(access::TIMEOUT)))?;
        Ok(())
    }
}

/// The arguments of this program, for records: without the values of options that may be secrets.
pub(crate) fn arguments() -> impl Iterator<Item = OsString> {
    let mut is_option = false;
    std::env::args_os().map(move |word| {
        let Some(text) = word.to_str() else { return word };
        let (flag, option) = match text.strip_prefix("--storage-option=") {
            Some(option) => ("--storage-option=", option),
            None => ("", text),
        };
        let is_value = is_option || !flag.is_empty();
        is_option = text == "--storage-option";
        match option.split_once('=').filter(|(name, _)| is_value && access::is_secret(name)) {
            Some((name, _)) => format!("{flag}{name}=***").into(),
            None => word,
        }
    })
}

fn variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// What the profile files of AWS say, as variables. Keys of a profile do not mix with keys of the environment.
fn profile(access: &Access) -> Vec<(String, String)> {
    let name = access.variable("AWS_PROFILE").unwrap_or("default");
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default().join(".aws");
    let place = |variable: &str, usual: &str| access.variable(variable).map_or_else(|| home.join(usual), PathBuf::from);
    let text = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default();
    let credentials = text(place("AWS_SHARED_CREDENTIALS_FILE", "credentials"));
    let config = text(place("AWS_CONFIG_FILE", "config"));
    let mut found = section(&credentials, name);
    found.extend(section(&config, name));
    found.extend(section(&config, &format!("profile {name}")));
    let has_keys = access.variable("AWS_ACCESS_KEY_ID").is_some();
    let of_keys = ["aws_access_key_id", "aws_secret_access_key", "aws_session_token"];
    let named = |(name, value): (String, String)| match name.as_str() {
        _ if of_keys.contains(&name.as_str()) => (!has_keys).then(|| (name.to_ascii_uppercase(), value)),
        "region" => Some(("AWS_REGION".to_owned(), value)),
        "endpoint_url" => Some(("AWS_ENDPOINT_URL".to_owned(), value)),
        _ => None,
    };
    found.into_iter().filter_map(named).collect()
}

/// The settings of a section of an INI file. Nested settings are indented and left out.
fn section(text: &str, wanted: &str) -> Vec<(String, String)> {
    let mut is_inside = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.trim().strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            is_inside = name.trim() == wanted;
        } else if let Some((name, value)) =
            line.split_once('=').filter(|_| is_inside && !line.starts_with([' ', '#', ';']))
        {
            found.push((name.trim().to_owned(), value.trim().to_owned()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::section;

    #[test]
    fn a_section_has_its_own_settings_without_nested_ones() {
        let text = "[default]\nregion = here\ns3 =\n  max_queue = 1\n# region = no\n[profile x]\nregion=there\n";
        let of =
            |name: &str| section(text, name).into_iter().filter(|(_, value)| !value.is_empty()).collect::<Vec<_>>();
        assert_eq!(of("default"), [("region".to_owned(), "here".to_owned())]);
        assert_eq!(of("profile x"), [("region".to_owned(), "there".to_owned())]);
        assert!(of("y").is_empty());
    }
}
