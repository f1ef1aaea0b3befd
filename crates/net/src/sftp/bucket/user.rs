//! The buckets as one user opens them, so that the uploads of one user cannot take what those of all users share.

use std::sync::Arc;

use outlast_sftp::error::Result;
use outlast_sftp::volume::Volume;

use crate::sftp::home::Buckets;

pub(crate) struct OfUser {
    buckets: Arc<dyn Buckets>,
    user: String,
}

impl OfUser {
    /// `user` is the same for all sessions of a user, and another one for each user.
    pub(crate) fn new(buckets: Arc<dyn Buckets>, user: impl Into<String>) -> Self {
        Self { buckets, user: user.into() }
    }
}

impl Buckets for OfUser {
    fn open(&self, bucket: &str) -> Result<Arc<dyn Volume>> {
        let volume = self.buckets.open(bucket)?;
        Ok(volume.of_user(&self.user).unwrap_or(volume))
    }

    fn make(&self, bucket: &str) -> Result<()> {
        self.buckets.make(bucket)
    }
}
