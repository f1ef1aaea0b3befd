//! `DescribeHostKey`: describes a host key of an SFTP server.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_DescribeHostKey.html>

use outlast_domain::identity::action;

pub use crate::aws::transfer::{
    DescribeHostKey, DescribeHostKeyRequest as Input, DescribeHostKeyResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::transfer::{authorize_tagged, described_host_key, find_host_key};
use crate::wire::ApiError;

impl Run for DescribeHostKey {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let found = find_host_key(call, &input.server_id, &input.host_key_id)?;
        let action = action::transfer::DescribeHostKey;
        let _ = authorize_tagged(call, action, &found.arn(), found.tags())?;
        Ok(Output { host_key: described_host_key(&found)? })
    }
}
