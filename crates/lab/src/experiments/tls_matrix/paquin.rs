//! Paquin, Stebila, Tamvada 2019: loss hurts what needs many packets.

use crate::error::LabError;
use crate::experiments::play::Contender;
use crate::model::Profile;
use crate::run::Run;

pub(super) fn run(_: &mut Run<'_>, _: &'static Profile, _: &[Contender]) -> Result<(), LabError> {
    Ok(())
}
