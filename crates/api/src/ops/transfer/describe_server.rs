//! `DescribeServer`: describes an SFTP server.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_DescribeServer.html>

use outlast_domain::identity::action;
use outlast_domain::transfer::{TransferError, oldest_fingerprint};

pub use crate::aws::transfer::{
    DescribeServer, DescribeServerRequest as Input, DescribeServerResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::transfer::{authorize_tagged, described_server, find_server};
use crate::wire::ApiError;

impl Run for DescribeServer {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let found = find_server(call, &input.server_id)?;
        let action = action::transfer::DescribeServer;
        let _ = authorize_tagged(call, action, &found.arn(), found.tags())?;
        let fingerprint = oldest_fingerprint(&call.work, &found).map_err(TransferError::from)?;
        Ok(Output { server: described_server(call, &found, fingerprint)? })
    }
}
