//! Partitions: the parts of AWS that share nothing with each other, named by the second component of an ARN.
//!
//! Source: `partitions.json`, which every AWS SDK contains. A Region belongs to the partition whose pattern its name
//! matches, and to `aws` if none does. `docs/decisions/0022-partitions.md` says what follows for ARNs without a
//! Region.

/// A partition.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Partition {
    /// Its name in ARNs.
    pub id: &'static str,
    /// Prefixes of its Regions' names; a hyphen, a word, a hyphen and a number follow.
    prefixes: &'static [&'static str],
    /// Pseudo-Region that SDKs use for the whole partition.
    whole: Option<&'static str>,
}

/// The partition of most Regions. Decisions and records use it for principals and other resources without a Region.
pub static AWS: &Partition = &PARTITIONS[0];

/// All partitions.
pub static PARTITIONS: &[Partition] = &[
    Partition {
        id: "aws",
        prefixes: &["us", "eu", "ap", "sa", "ca", "me", "af", "il", "mx"],
        whole: Some("aws-global"),
    },
    Partition { id: "aws-cn", prefixes: &["cn"], whole: Some("aws-cn-global") },
    Partition { id: "aws-eusc", prefixes: &["eusc-de"], whole: None },
    Partition { id: "aws-iso", prefixes: &["us-iso"], whole: Some("aws-iso-global") },
    Partition { id: "aws-iso-b", prefixes: &["us-isob"], whole: Some("aws-iso-b-global") },
    Partition { id: "aws-iso-e", prefixes: &["eu-isoe"], whole: Some("aws-iso-e-global") },
    Partition { id: "aws-iso-f", prefixes: &["us-isof"], whole: Some("aws-iso-f-global") },
    Partition { id: "aws-us-gov", prefixes: &["us-gov"], whole: Some("aws-us-gov-global") },
];

impl Partition {
    /// The partition with this id.
    pub fn by_id(id: &str) -> Option<&'static Self> {
        PARTITIONS.iter().find(|row| row.id == id)
    }

    /// The partition of a Region.
    pub fn of(region: &str) -> &'static Self {
        PARTITIONS.iter().find(|row| row.has(region)).unwrap_or(AWS)
    }

    fn has(&self, region: &str) -> bool {
        self.whole == Some(region)
            || self.prefixes.iter().any(|prefix| {
                let rest = region.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('-'));
                rest.and_then(|rest| rest.split_once('-')).is_some_and(|(word, number)| {
                    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
                    !word.is_empty()
                        && word.bytes().all(is_word)
                        && !number.is_empty()
                        && number.bytes().all(|byte| byte.is_ascii_digit())
                })
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_have_the_partitions_of_the_sdks() {
        for (region, id) in [
            ("eu-west-1", "aws"),
            ("cn-north-1", "aws-cn"),
            ("cn-northwest-1", "aws-cn"),
            ("us-gov-west-1", "aws-us-gov"),
            ("us-iso-east-1", "aws-iso"),
            ("us-isob-east-1", "aws-iso-b"),
            ("eu-isoe-west-1", "aws-iso-e"),
            ("us-isof-south-1", "aws-iso-f"),
            ("eusc-de-east-1", "aws-eusc"),
            ("aws-cn-global", "aws-cn"),
            // No pattern matches these.
            ("local", "aws"),
            ("cn-north", "aws"),
            ("cn-north-1a", "aws"),
            ("eusc-fr-west-1", "aws"),
            ("us-gov-", "aws"),
            ("", "aws"),
        ] {
            assert_eq!(Partition::of(region).id, id, "{region}");
        }
        assert!(Partition::by_id("aws-x").is_none() && Partition::by_id("AWS").is_none());
    }
}
