//! The rows of the tables of operations and services.

use crate::aws::schema::Shape;
use crate::aws::{Http, ServiceModel};
use crate::call::{Call, Run};
use crate::wire::{ApiError, Payload, Protocol};

/// Request in, body out.
pub type RunBody = fn(&mut Call<'_>, Protocol, Payload<'_>) -> Result<Vec<u8>, ApiError>;

/// A row of the table of operations.
pub struct Row {
    /// AWS's name of the operation.
    pub name: &'static str,
    /// Whether the operation changes nothing.
    pub read_only: bool,
    /// Whether the operation may take long.
    pub slow: bool,
    /// Decodes the request, runs the operation and encodes the answer.
    pub run: RunBody,
    /// Schema of requests.
    pub input: &'static Shape,
    /// Schema of answers.
    pub output: &'static Shape,
    /// Method and path in REST protocols.
    pub http: Http,
}

impl Row {
    /// The row of an operation.
    pub const fn of<O: Run>() -> Self {
        Self {
            name: O::NAME,
            read_only: O::READ_ONLY,
            slow: O::SLOW,
            run: |call, protocol, payload| {
                let input = protocol.decode::<O>(payload)?;
                let output = O::run(call, input)?;
                protocol.encode_output(&output, O::OUTPUT)
            },
            input: O::INPUT,
            output: O::OUTPUT,
            http: O::HTTP,
        }
    }
}

/// An AWS service and the operations that are served.
pub struct ServiceRow {
    /// Names and protocols, from AWS's model.
    pub model: &'static ServiceModel,
    /// The operations that are served.
    pub operations: &'static [Row],
}
