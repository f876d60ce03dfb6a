//! What people and programs read.

pub(super) mod outcome;
mod print;
pub(super) mod quantity;
mod remark;
#[cfg(test)]
pub(super) mod sample;

pub(super) use print::{complain, json, print};
#[cfg(test)]
pub(super) use remark::Weight;
pub(super) use remark::{Remark, render};
