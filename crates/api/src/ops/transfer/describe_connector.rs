//! `DescribeConnector`: describes an SFTP connector.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_DescribeConnector.html>

use outlast_domain::identity::action;

pub use crate::aws::transfer::{
    DescribeConnector, DescribeConnectorRequest as Input, DescribeConnectorResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::connectors::{described, find_connector};
use crate::model::transfer::authorize_tagged;
use crate::wire::ApiError;

impl Run for DescribeConnector {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let found = find_connector(call, &input.connector_id)?;
        let action = action::transfer::DescribeConnector;
        let _ = authorize_tagged(call, action, &found.arn(), found.tags())?;
        Ok(Output { connector: described(call, &found) })
    }
}
