//! Where objects are kept on a near disk, as a user gives it: `DIR` or `DIR:SIZE`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use forebay_units::{Bytes, PathText};

/// A folder for objects that were read from a store, and the space that they may take there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachePlace {
    pub dir: PathBuf,
    /// `None` for most of what is free there.
    pub size: Option<Bytes>,
}

impl FromStr for CachePlace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (dir, size) = match text.rsplit_once(':') {
            None => (text, None),
            Some((dir, size)) => {
                let size: Bytes =
                    size.parse().map_err(|why| format!("give DIR or DIR:SIZE such as nvme:200GB: {why}"))?;
                (dir, Some(size))
            }
        };
        if dir.trim().is_empty() || size == Some(Bytes(0)) {
            return Err("give a folder, and a size above 0 if any, such as nvme:200GB".to_owned());
        }
        Ok(Self { dir: dir.into(), size })
    }
}

impl fmt::Display for CachePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.dir.escaped())?;
        self.size.map_or(Ok(()), |size| write!(f, ":{}", size.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_may_have_a_size_and_what_follows_a_colon_is_one() {
        let place = |dir: &str, size| Ok(CachePlace { dir: dir.into(), size });
        assert_eq!("a/b".parse(), place("a/b", None));
        assert_eq!("a:1.5GB".parse(), place("a", Some(Bytes(1_500_000_000))));
        assert_eq!("a:b:4096".parse(), place("a:b", Some(Bytes(4096))));
        assert_eq!("a:b:4096".parse::<CachePlace>().unwrap().to_string(), "a:b:4096");
        for wrong in ["a:2XB", "a:", "s3://b", ":1GB", "a:0"] {
            assert!(wrong.parse::<CachePlace>().unwrap_err().starts_with("give "), "{wrong}");
        }
    }
}
