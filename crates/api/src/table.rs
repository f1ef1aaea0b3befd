//! The rows of the tables of operations and services.

use crate::aws::schema::Shape;
use crate::aws::{Http, ServiceModel};
use crate::call::{Call, Run};
use crate::wire::{ApiError, Payload, Protocol};

/// Request in, body out.
pub type RunBody = fn(&mut Call<'_>, Protocol, Payload<'_>) -> Result<Vec<u8>, ApiError>;

/// An operation in a table.
pub struct Row {
    /// AWS's name.
    pub name: &'static str,
    /// Whether it changes nothing.
    pub read_only: bool,
    /// Whether it may take long.
    pub slow: bool,
    /// Decodes, runs, encodes.
    pub run: RunBody,
    /// What requests may be.
    pub input: &'static Shape,
    /// What answers are.
    pub output: &'static Shape,
    /// How it is called in REST protocols.
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

/// An AWS service as it is served.
pub struct ServiceRow {
    /// What it is called and speaks.
    pub model: &'static ServiceModel,
    /// Its operations.
    pub operations: &'static [Row],
}
