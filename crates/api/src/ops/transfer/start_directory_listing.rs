//! `StartDirectoryListing`: lists a directory of the server of a connector into a file of a bucket.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_StartDirectoryListing.html>

use outlast_domain::identity::action;
use outlast_domain::transfer::connector::{Request, start};

pub use crate::aws::transfer::{
    StartDirectoryListing, StartDirectoryListingRequest as Input,
    StartDirectoryListingResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::connectors::find_connector;
use crate::model::transfer::authorize_tagged;
use crate::wire::ApiError;

impl Run for StartDirectoryListing {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let found = find_connector(call, &input.connector_id)?;
        let action = action::transfer::StartDirectoryListing;
        let allowed = authorize_tagged(call, action, &found.arn(), found.tags())?;
        call.notes.parameter("remoteDirectoryPath", input.remote_directory_path.as_str());
        call.notes.parameter("outputDirectoryPath", input.output_directory_path.as_str());
        let request = Request::List {
            from: input.remote_directory_path,
            max_items: input.max_items,
            to: input.output_directory_path,
        };
        let started = start(&mut call.work, &found, request, &allowed)?;
        call.notes.response("listingId", started.id.as_str());
        Ok(Output { listing_id: started.id, output_file_name: started.output })
    }
}
