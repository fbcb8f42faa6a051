//! How object stores are reached: endpoints, credentials, time limit.
//!
//! Credentials belong to a program, not to an experiment, so that no plan or record can hold them: the program calls
//! [`provide`] once, before the first URL is used. Their values are never shown.

use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use crate::Error;

/// Prefixes of the environment variables that object stores define.
const PREFIXES: [&str; 3] = ["AWS_", "GOOGLE_", "AZURE_"];
/// Long enough for a store that throttles, short enough to notice that a network is gone.
pub const TIMEOUT: Duration = Duration::from_secs(60);

static PROVIDED: OnceLock<Access> = OnceLock::new();

/// Options of object stores by name: those of the environment (`AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID`,
/// `GOOGLE_SERVICE_ACCOUNT`, `AZURE_STORAGE_ACCOUNT_NAME`, …), and others given by the user, which take precedence.
#[derive(Clone)]
pub struct Access {
    variables: Vec<(String, String)>,
    options: Vec<(String, String)>,
    timeout: Duration,
}

impl Default for Access {
    fn default() -> Self {
        Self { variables: Vec::new(), options: Vec::new(), timeout: TIMEOUT }
    }
}

/// Names without values, some of which are secrets.
impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |all: &[(String, String)]| all.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        f.debug_struct("Access")
            .field("variables", &names(&self.variables))
            .field("options", &names(&self.options))
            .field("timeout", &self.timeout)
            .finish()
    }
}

impl Access {
    /// Takes those variables that belong to an object store.
    pub fn of_variables(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let ours = |(name, value): &(String, String)| {
            PREFIXES.iter().any(|prefix| name.starts_with(prefix)) && !value.is_empty()
        };
        Self { variables: variables.into_iter().filter(ours).collect(), ..Self::default() }
    }

    /// Adds variables that are used where the environment has none of that name, such as those of a profile.
    pub fn add_defaults(&mut self, defaults: impl IntoIterator<Item = (String, String)>) {
        for (name, value) in defaults {
            if self.variable(&name).is_none() {
                self.variables.push((name, value));
            }
        }
    }

    /// The value of an environment variable.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Sets an option given as `name=value`.
    ///
    /// # Errors
    /// Why it is not an option. The value is not part of the text, because it may be a secret.
    pub fn set(&mut self, option: &str) -> Result<(), String> {
        let Some((name, value)) = option.split_once('=') else {
            return Err("give NAME=VALUE, such as aws_region=eu-west-1".to_owned());
        };
        let name = name.trim().to_ascii_lowercase();
        if !is_option(&name) {
            return Err(format!("\"{name}\" is not an option of an object store, such as aws_region"));
        }
        self.options.retain(|(known, _)| *known != name);
        self.options.push((name, value.to_owned()));
        Ok(())
    }

    /// Gives up a request that makes no progress for this long; retries included.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Names in lower case with values; later ones take precedence.
    #[cfg(feature = "object")]
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (String, &str)> {
        self.variables.iter().chain(&self.options).map(|(name, value)| (name.to_ascii_lowercase(), value.as_str()))
    }

    /// Replaces every secret in a text, which may come from a server.
    #[cfg(feature = "object")]
    pub(crate) fn masked(&self, text: &str) -> String {
        let secrets = self.pairs().filter(|(name, value)| is_secret(name) && value.len() >= 4);
        secrets.fold(text.to_owned(), |text, (_, secret)| text.replace(secret, "***"))
    }
}

/// Whether the value of an option or variable must not be shown.
pub fn is_secret(name: &str) -> bool {
    const WORDS: [&str; 7] = ["secret", "token", "sas", "password", "account_key", "access_key", "service_account_key"];
    let name = name.to_ascii_lowercase();
    WORDS.iter().any(|word| name.contains(word)) && !name.ends_with("_id")
}

#[cfg(feature = "object")]
fn is_option(name: &str) -> bool {
    use object_store::{ClientConfigKey, aws::AmazonS3ConfigKey, azure::AzureConfigKey, gcp::GoogleConfigKey};
    name.parse::<AmazonS3ConfigKey>().is_ok()
        || name.parse::<GoogleConfigKey>().is_ok()
        || name.parse::<AzureConfigKey>().is_ok()
        || name.parse::<ClientConfigKey>().is_ok()
}

/// Without object stores in the build, no option has an effect; the URL it is for is refused.
#[cfg(not(feature = "object"))]
fn is_option(_: &str) -> bool {
    true
}

/// Sets how this program reaches object stores.
///
/// # Errors
/// [`Error::Unsupported`] when it was set before, or a URL was already used.
pub fn provide(access: Access) -> Result<(), Error> {
    PROVIDED.set(access).map_err(|_| Error::Unsupported {
        operation: crate::Operation::Open,
        path: "object stores".into(),
        what: "the access to object stores is already set".to_owned(),
    })
}

/// What the program provided, or nothing.
#[cfg(feature = "object")]
pub(crate) fn provided() -> &'static Access {
    PROVIDED.get_or_init(Access::default)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let variables = [("AWS_SECRET_ACCESS_KEY", "hush-hush"), ("HOME", "/root"), ("AWS_REGION", "")];
        let mut access = Access::of_variables(variables.map(|(name, value)| (name.to_owned(), value.to_owned())));
        access.set("aws_session_token=quiet-now").unwrap();
        let shown = format!("{access:?}");
        assert!(shown.contains("AWS_SECRET_ACCESS_KEY") && shown.contains("aws_session_token"), "{shown}");
        assert!(!shown.contains("hush") && !shown.contains("quiet") && !shown.contains("HOME"), "{shown}");
        assert!(!shown.contains("AWS_REGION"), "an empty variable counts as not set: {shown}");
    }

    #[test]
    fn the_environment_goes_before_the_defaults() {
        let mut access = Access::of_variables([("AWS_REGION".to_owned(), "here".to_owned())]);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        access.add_defaults([pair("AWS_REGION", "there"), pair("AWS_ACCESS_KEY_ID", "me")]);
        assert_eq!((access.variable("AWS_REGION"), access.variable("AWS_ACCESS_KEY_ID")), (Some("here"), Some("me")));
    }

    #[test]
    fn an_option_needs_a_value_and_errors_do_not_repeat_it() {
        let mut access = Access::default();
        assert!(access.set("aws_region").unwrap_err().starts_with("give NAME=VALUE"));
        assert!(!access.set("aws_secret_acces_key=hush").err().unwrap_or_default().contains("hush"));
    }

    #[cfg(feature = "object")]
    #[test]
    fn unknown_options_are_refused_and_secrets_masked() {
        let mut access = Access::default();
        assert!(access.set("aws_regoin=x").unwrap_err().contains("\"aws_regoin\" is not an option"));
        access.set("aws_secret_access_key=hush").unwrap();
        access.set("AWS_REGION=eu-west-1").unwrap();
        assert_eq!(access.masked("hush in eu-west-1"), "*** in eu-west-1");
    }
}
