//! A program that makes random calls for ever: `loaded_host SEED MARKER [STRENGTH]`.
//!
//! It says `wrong: …` and exits with 1 at the first wrong outcome. Meant to be killed at any moment.

use std::process::ExitCode;
use tokio::task::JoinSet;
use toolexec::worker::{Toolbox, become_zygote_if_asked};
use toolexec::{Executor, KillStrength};
use toolexec_tests::marker::Marker;
use toolexec_tests::mix::Planned;
use toolexec_tests::random::Random;

/// How many calls are under way at any moment: twice as many as there are workers, so that some wait.
const AT_ONCE: usize = 8;

fn main() -> ExitCode {
    become_zygote_if_asked(&Toolbox::default());
    let mut arguments = std::env::args().skip(1);
    let seed = arguments.next().and_then(|seed| seed.parse().ok()).expect("a seed");
    let marker = Marker::given(arguments.next().expect("a marker"));
    let strength = arguments.next().map(|name| KillStrength::from_name(&name).expect("a kill strength"));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let wrong = runtime.block_on(load(Random::seeded(seed), &marker, strength));
    println!("wrong: {wrong}");
    ExitCode::FAILURE
}

async fn load(mut random: Random, marker: &Marker, strength: Option<KillStrength>) -> String {
    let mut builder = Executor::builder();
    if let Some(strength) = strength {
        builder = builder.strength(strength);
    }
    let executor = std::sync::Arc::new(builder.start().await.expect("an executor"));
    let mut running = JoinSet::new();
    for number in 1.. {
        let planned = Planned::draw(&mut random, number, marker);
        let executor = std::sync::Arc::clone(&executor);
        running.spawn(async move { planned.run(&executor).await });
        if running.len() == AT_ONCE
            && let Some(done) = running.join_next().await
            && let Err(wrong) = done.unwrap_or_else(|error| Err(error.to_string()))
        {
            return wrong;
        }
    }
    "out of numbers".into()
}
