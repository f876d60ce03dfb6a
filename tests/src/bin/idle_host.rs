//! A program with an executor in it that has made one call and now does nothing until its standard input ends.
//!
//! It says `idle` once its workers are ready and wait.

use std::io::Read as _;
use toolexec::Executor;
use toolexec::worker::{Toolbox, become_zygote_if_asked};
use toolexec_tests::shell;

fn main() {
    become_zygote_if_asked(&Toolbox::default());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let executor = Executor::builder().start().await.expect("an executor");
        let outcome = executor.call(shell::call("echo ready", 20_000)).await;
        assert_eq!(outcome.stdout.text, "ready\n");
        println!("idle");
        let waiting = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
        waiting.await.expect("the reader ends").expect("standard input can be read");
        executor.close().await;
    });
}
