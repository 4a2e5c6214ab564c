//! Notes that hooks of coding agents add to the agent's context: what a hook is about, and the form of its answer.
//!
//! [`Event::read`] reads the JSON that a client passes to a hook, [`Event::reply`] writes the text that it expects.
//! `command` finds out what a tool call searches for. Start at [`Event`].

mod command;
mod event;

pub(crate) use event::{Event, MAX_INPUT_BYTES, Occasion};
