//! The helper process: carries out its orders ([`super::orders`]).

use std::io::Write;

use outlast_harness::agent::Agent;

use super::orders::{Line, Offer, Order};
use super::rounds::perform;
use super::{helper, stack, turns};
use crate::error::LabError;
use crate::subject::Subject;

/// The agent's row.
pub const AGENT: Agent = Agent { name: helper::NAME, run: answer };

fn answer(argument: &str) -> Result<(), LabError> {
    let order: Order = serde_json::from_str(argument).map_err(LabError::failed)?;
    let mut out = std::io::stdout().lock();
    let mut tell = |line: Line| {
        let mut text = serde_json::to_vec(&line).map_err(LabError::failed)?;
        text.push(b'\n');
        out.write_all(&text).and_then(|()| out.flush()).map_err(LabError::failed)
    };
    match obey(&order, &mut tell) {
        Err(LabError::Unavailable { what, needs }) => tell(Line::Unavailable { what, needs }),
        other => other,
    }
}

fn obey(order: &Order, tell: &mut dyn FnMut(Line) -> Result<(), LabError>) -> Result<(), LabError> {
    match order {
        Order::Ask { stack: name, subjects } => {
            let stack = stack(name)?;
            let version = stack.version()?;
            let supports = |names| Subject::try_from(names).map(|subject| stack.supports(&subject));
            let supported = subjects.iter().map(supports).collect::<Result<_, LabError>>()?;
            tell(Line::Offer(Offer { version, supported }))
        }
        Order::Rounds(rounds) => perform(rounds, tell),
        Order::Typical { stack: name, subject, rounds } => {
            let subject = Subject::try_from(subject)?;
            let traces = super::typical(stack(name)?, &[subject], *rounds, &|| false)?;
            let trace = traces.and_then(|mut traces| traces.pop()).ok_or(LabError::Interrupted)?;
            tell(Line::Trace(trace))
        }
        Order::Serve { stack: name, subject } => {
            let subject = Subject::try_from(subject)?;
            let mut handshaker = stack(name).and_then(|stack| stack.prepare(&subject));
            for line in std::io::stdin().lines() {
                line.map_err(LabError::failed)?;
                let outcome = match &mut handshaker {
                    Ok(handshaker) => handshaker.handshake().map_err(|error| error.to_string()),
                    Err(error) => Err(error.to_string()),
                };
                tell(outcome.map_or_else(Line::Failed, Line::Trace))?;
            }
            Ok(())
        }
        Order::Repeat { stack: name, subjects, count, named } => {
            turns::take_no_times();
            let stack = stack(name)?;
            let mut ready = subjects
                .iter()
                .map(|names| stack.prepare(&Subject::try_from(names)?))
                .collect::<Result<Vec<_>, LabError>>()?;
            for handshaker in &mut ready {
                for _ in 0..3 {
                    handshaker.handshake()?;
                }
            }
            if *named {
                turns::name_turns();
            }
            for handshaker in &mut ready {
                turns::outlast_profile_mark();
                for _ in 0..*count {
                    handshaker.handshake()?;
                }
            }
            turns::outlast_profile_mark();
            Ok(())
        }
    }
}
