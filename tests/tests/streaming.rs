//! Output on its way to a reader: as it comes, and never in the way of a kill.

use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolexec::call::{OutputMode, OutputStream};
use toolexec_tests::bound::{GONE, LATENESS, PATIENCE, assert_gone, assert_in_time, assert_within};
use toolexec_tests::house::{House, LONG, await_sleeps, builder};
use toolexec_tests::marker::Marker;
use toolexec_tests::shell::{self};

const PROGRAM: &str = env!("CARGO_BIN_EXE_toolexec_under_test");

#[test]
fn streamed_output_comes_while_the_tool_runs_and_is_whole() {
    let house = House::new(builder(PROGRAM, 1));
    let marker = Marker::new(40648);
    let token = CancellationToken::new();
    let (sender, mut chunks) = mpsc::channel(1);
    let mut call = shell::call(&format!("echo one; echo two >&2; sleep {marker}"), LONG).cancelled_by(token.clone());
    call.options.output = OutputMode::Stream(sender);
    let call = house.begin(call);
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    house.runtime.block_on(async {
        while stdout != b"one\n" || stderr != b"two\n" {
            let chunk = tokio::time::timeout(PATIENCE, chunks.recv()).await.unwrap().unwrap();
            match chunk.stream {
                OutputStream::Stdout => stdout.extend_from_slice(&chunk.bytes),
                OutputStream::Stderr => stderr.extend_from_slice(&chunk.bytes),
            }
        }
    });
    await_sleeps(&marker, 1);
    token.cancel();
    house.end(call).assert_end("cancelled CANCELLED killed");
    assert!(house.runtime.block_on(chunks.recv()).is_none(), "the stream has no end");
}

#[test]
fn reader_that_is_dropped_ends_the_call() {
    let house = House::new(builder(PROGRAM, 1));
    let marker = Marker::new(40649);
    let (sender, chunks) = mpsc::channel(1);
    let mut call = shell::call(&format!("setsid -f sleep {marker}; yes"), LONG);
    call.options.output = OutputMode::Stream(sender);
    let call = house.begin(call);
    await_sleeps(&marker, 1);
    drop(chunks);
    let told = house.end(call);
    told.assert_end("cancelled CANCELLED killed").assert_killed_for("reader_gone");
    assert_gone(GONE, "the call whose reader is gone", || marker.anywhere());
    house.assert_next_call_works();
}

#[test]
fn reader_that_does_not_read_delays_no_kill() {
    let house = House::new(builder(PROGRAM, 1));
    let marker = Marker::new(40651);
    let (sender, mut chunks) = mpsc::channel(1);
    let limit = Duration::from_secs(3);
    let mut call = shell::call(&format!("setsid -f sleep {marker}; yes"), 3000);
    call.options.output = OutputMode::Stream(sender);
    let begun = Instant::now();
    let call = house.begin(call);
    await_sleeps(&marker, 1);
    assert_within(limit + LATENESS, "the tool's end while nobody reads", || marker.anywhere().is_empty());
    assert!(begun.elapsed() >= limit, "dead before its time: {:?}", begun.elapsed());
    assert_in_time("the tool's end", limit, begun.elapsed());
    // Now somebody reads: what was on its way, and then the end.
    let bytes = house.runtime.block_on(async {
        let mut bytes = 0;
        while let Some(chunk) = tokio::time::timeout(PATIENCE, chunks.recv()).await.unwrap() {
            bytes += chunk.bytes.len();
        }
        bytes
    });
    assert!(bytes > 0 && bytes < 16 * 1024 * 1024, "{bytes} bytes were kept for the reader");
    house.end(call).assert_end("timed_out TOOL_TIMEOUT killed").assert_killed_for("deadline");
}
