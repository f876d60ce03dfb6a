//! toolexec's speed as ratios: each figure beside what the kernel alone costs, measured in turns in one run.
//!
//! `cargo run --release -p toolexec-bench` prints one table. Everything is measured twice, once with every process on
//! one CPU and once free, because on a virtual machine the wake-up of an idle CPU can cost more than all the rest.
//! This file only decides which of its parts this process plays.

mod arguments;
mod command;
mod cpus;
mod figures;
mod flavor;
mod machine;
mod pair;
mod role;
mod run;
mod spinners;
mod table;
mod tools;
mod workers;

use arguments::Part;

fn main() -> anyhow::Result<()> {
    // First of all: a zygote has one thread, and forks the workers that are measured.
    toolexec::worker::become_zygote_if_asked(&tools::toolbox()?);
    match arguments::read() {
        Part::Role(role) => role.play(),
        Part::Measure(cpus, scope) => run::measure(cpus, &scope),
        Part::Whole(scope, form) => run::whole(&scope, form),
    }
}
