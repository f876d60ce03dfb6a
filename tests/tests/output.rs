//! Cases O16 to O19 and the streaming of a command's output: bounded, whole at its edges, and never lost.

use std::io::{BufRead as _, BufReader, Read as _};
use std::time::{Duration, Instant};
use toolexec_tests::bound::{GONE, LATENESS, PATIENCE, assert_gone, assert_in_time, assert_within, with_growing_limit};
use toolexec_tests::launch::Toolexec;
use toolexec_tests::marker::Marker;
use toolexec_tests::told::Told;

/// What every process of toolexec may need, whatever a tool writes.
const MEMORY: u64 = 100 * 1024 * 1024;

/// Writes without an end, as fast as it can.
const FLOOD: &str = "exec tr '\\0' z </dev/zero";

fn toolexec() -> Toolexec {
    Toolexec::new(env!("CARGO_BIN_EXE_toolexec_under_test"))
}

/// What was kept and what was dropped is together what was written. The line in the place of what was dropped is not
/// counted to the bound.
#[track_caller]
fn assert_counted(told: &Told, stream: &str, bound: usize) {
    let dropped = told.number(&format!("/{stream}/dropped"));
    let bytes = told.number(&format!("/{stream}/bytes"));
    assert!(dropped > 0, "nothing was dropped of {bytes} bytes");
    let text = told.text(&format!("/{stream}/text"));
    let mark = format!("\n[… {dropped} bytes dropped …]\n");
    let (head, tail) =
        text.split_once(&mark).unwrap_or_else(|| panic!("the text does not say what was dropped: {text}"));
    assert!(head.len() + tail.len() <= bound, "{} bytes were kept of {bound}", head.len() + tail.len());
    if *told.at(&format!("/{stream}/lossy")) == false {
        assert_eq!((head.len() + tail.len()) as u64 + dropped, bytes, "kept and dropped is not what was written");
    }
}

/// Case O16.
#[test]
fn flood_is_bounded_in_memory_and_does_not_delay_the_deadline() {
    let toolexec = toolexec();
    let marker = Marker::new(40616);
    let script = format!("sleep {marker} & {FLOOD}");
    let options = ["--timeout", "3", "--output", "1048576"];
    let finished = toolexec.run_shell(&options, &script).watching(&marker).finish();
    finished.assert_code(124).assert_took(Duration::from_secs(3)).assert_marker_gone(&marker);
    assert_eq!(finished.sleeps(&marker), 1);
    let told = finished.told();
    told.assert_end("timed_out TOOL_TIMEOUT killed").assert_killed_for("deadline");
    assert_counted(&told, "stdout", 1_048_576);
    assert!(told.number("/stdout/bytes") > 50_000_000, "that was no flood: {}", told.number("/stdout/bytes"));
    let text = told.text("/stdout/text");
    assert!(text.starts_with("zzzz") && text.ends_with("zzzz"), "head and tail");
    assert!(finished.peak_memory > 0, "nobody's memory was seen");
    assert!(finished.peak_memory < MEMORY, "{} bytes of memory", finished.peak_memory);
    toolexec.room().assert_swept();
    toolexec.assert_next_call_works();
}

/// Case O16 on the other stream, and on both at once.
#[test]
fn flood_of_both_streams_is_bounded() {
    let toolexec = toolexec();
    let script = "tr '\\0' e </dev/zero >&2 & exec tr '\\0' z </dev/zero";
    let finished = toolexec.run_shell(&["--timeout", "1", "--output", "64KiB"], script).finish();
    finished.assert_code(124).assert_took(Duration::from_secs(1)).assert_nothing_runs();
    let told = finished.told();
    assert_counted(&told, "stdout", 65_536);
    assert_counted(&told, "stderr", 65_536);
    assert!(told.text("/stderr/text").starts_with("eeee"), "{}", &told.text("/stderr/text")[..80]);
    assert!(finished.peak_memory < MEMORY, "{} bytes of memory", finished.peak_memory);
}

/// Exact numbers, where the flood has an end.
#[test]
fn dropped_bytes_are_counted_exactly() {
    let toolexec = toolexec();
    let script = "printf head; head -c 3000000 /dev/zero | tr '\\0' z; printf tail";
    let finished = toolexec.run_shell(&["--timeout", "20", "--output", "1000"], script).finish();
    finished.assert_code(0);
    let told = finished.told();
    told.assert_end("ok - returned").assert_at("/stdout/bytes", 3_000_008);
    assert_counted(&told, "stdout", 1000);
    let text = told.text("/stdout/text");
    assert!(text.starts_with("headzzz") && text.ends_with("zzztail"), "{text}");
    told.assert_at("/stdout/dropped", 3_000_008 - 1000);
}

/// Output that fits is never touched, up to the very bound.
#[test]
fn output_at_its_bound_is_whole() {
    let toolexec = toolexec();
    for (bytes, dropped) in [(999, 0), (1000, 0)] {
        let script = format!("head -c {bytes} /dev/zero | tr '\\0' z");
        let told = toolexec.run_shell(&["--timeout", "20", "--output", "1000"], &script).finish().told();
        told.assert_at("/stdout/text", "z".repeat(bytes)).assert_at("/stdout/dropped", dropped);
        told.assert_at("/stdout/bytes", bytes).assert_at("/stdout/lossy", false);
    }
}

/// Case O17.
#[test]
fn bytes_that_are_no_text_are_replaced_and_flagged() {
    for redirection in ["", " >&2"] {
        let toolexec = toolexec();
        let script = format!("printf 'A\\200\\377B\\000C\\n'{redirection}");
        let finished = toolexec.run_shell(&["--timeout", "20"], &script).finish();
        finished.assert_code(0);
        let told = finished.told();
        told.assert_end("ok - returned");
        let stream = if redirection.is_empty() { "stdout" } else { "stderr" };
        told.assert_at(&format!("/{stream}/text"), "A\u{FFFD}\u{FFFD}B\0C\n");
        told.assert_at(&format!("/{stream}/lossy"), true).assert_at(&format!("/{stream}/bytes"), 7);
    }
}

/// Case O17 without `--json`: a stream is passed on as it is.
#[test]
fn bytes_that_are_no_text_are_streamed_as_they_are() {
    let toolexec = toolexec();
    let finished = toolexec.run(["--", "printf", "A\\200\\377B\\000C\\n"]).finish();
    assert_eq!(finished.code(), Some(0));
    assert_eq!(finished.stdout_bytes(), b"A\x80\xffB\0C\n");
}

/// Case O18.
#[test]
fn cut_never_falls_into_a_character() {
    let text = "€🦀".repeat(2000);
    for bound in (1000..1008).chain([1, 2, 3, 4, 5, 6, 7]) {
        let toolexec = toolexec();
        let bound_text = bound.to_string();
        for script in [format!("printf %s '{text}'"), format!("printf %s '{text}' >&2; exit 3")] {
            let finished = toolexec.run_shell(&["--timeout", "20", "--output", &bound_text], &script).finish();
            let told = finished.told();
            let stream = if script.ends_with('3') { "stderr" } else { "stdout" };
            finished.assert_code(if script.ends_with('3') { 3 } else { 0 });
            assert_counted(&told, stream, bound);
            told.assert_at(&format!("/{stream}/lossy"), false).assert_at(&format!("/{stream}/bytes"), 14_000);
            let kept = told.text(&format!("/{stream}/text"));
            assert!(!kept.contains('\u{FFFD}'), "{kept}");
            if bound >= 1000 {
                assert!(kept.starts_with("€🦀€🦀") && kept.ends_with("€🦀€🦀"), "{kept}");
            }
        }
    }
}

/// Case O18 in what toolexec says itself: a name that is long and no ASCII.
#[test]
fn long_and_foreign_names_are_no_reason_to_panic() {
    let toolexec = toolexec();
    for length in 60..70 {
        let name = "🦀".repeat(length) + &"x".repeat(length % 4);
        let finished = toolexec.run(["--json", "--", &name]).finish();
        finished.assert_code(127);
        finished.told().assert_end("failed SPAWN_FAILED -");
        toolexec.run(["--log", "trace", "--", &name]).finish().assert_code(127);
        toolexec.run([&name]).finish().assert_code(125);
    }
}

/// Case O19.
#[test]
fn output_before_the_deadline_is_kept() {
    let toolexec = toolexec();
    let marker = Marker::new(40619);
    let script = format!("echo step-1; echo warn-1 >&2; sleep {marker}");
    with_growing_limit(|limit| {
        let seconds = limit.as_secs().to_string();
        let finished = toolexec.run_shell(&["--timeout", &seconds], &script).watching(&marker).finish();
        finished.assert_code(124).assert_took(limit).assert_marker_gone(&marker);
        let told = finished.told();
        told.assert_end("timed_out TOOL_TIMEOUT killed");
        let slept = finished.sleeps(&marker) == 1;
        if slept {
            told.assert_at("/stdout/text", "step-1\n").assert_at("/stderr/text", "warn-1\n");
        }
        slept
    });
    with_growing_limit(|limit| {
        let seconds = limit.as_secs().to_string();
        let launch = toolexec.run(["--timeout", &seconds, "--", "sh", "-c", &script]).watching(&marker);
        let finished = launch.finish();
        finished.assert_code(124).assert_took(limit).assert_marker_gone(&marker);
        let slept = finished.sleeps(&marker) == 1;
        if slept {
            assert_eq!(finished.stdout(), "step-1\n");
            assert!(finished.stderr().starts_with("warn-1\n"), "{}", finished.stderr());
        }
        slept
    });
}

/// The output reaches its reader while the tool runs.
#[test]
fn first_line_arrives_before_the_tool_ends() {
    let toolexec = toolexec();
    let marker = Marker::new(40625);
    let script = format!("echo first; echo warning >&2; sleep {marker}");
    let mut running = toolexec.run(["--timeout", "20", "--", "sh", "-c", &script]).watching(&marker).start();
    running.await_stdout("first\n");
    assert_within(PATIENCE, "the warning", || running.stderr_so_far().contains("warning\n"));
    running.await_sleeps(1);
    assert!(running.is_running());
    running.signal(rustix::process::Signal::TERM);
    running.finish().assert_code(143).assert_marker_gone(&marker);
}

/// The streams of a command are passed on whole and apart.
#[test]
fn streamed_output_is_whole() {
    let toolexec = toolexec();
    let script = "seq 1 200000; seq 200001 300000 >&2";
    let finished = toolexec.run(["--timeout", "20", "--quiet", "--", "sh", "-c", script]).finish();
    finished.assert_code(0);
    let lines = |from: u32, to: u32| (from..=to).map(|number| format!("{number}\n")).collect::<String>();
    assert!(finished.stdout() == lines(1, 200_000), "{} bytes of stdout", finished.stdout().len());
    assert!(finished.stderr() == lines(200_001, 300_000), "{} bytes of stderr", finished.stderr().len());
}

/// Without `--json` a bound is kept too, if there is one.
#[test]
fn streamed_output_is_bounded_on_demand() {
    let toolexec = toolexec();
    let text = "€🦀".repeat(2000);
    for bound in 1000..1004 {
        let bound_text = bound.to_string();
        let finished = toolexec.run(["--timeout", "20", "--output", &bound_text, "--", "printf", "%s", &text]).finish();
        finished.assert_code(0);
        let (head, rest) = finished.stdout().split_once("\n[… ").expect("a line in the place of what was dropped");
        let tail = rest.split_once(" bytes dropped …]\n").expect("a whole line").1;
        assert!(head.len() + tail.len() <= bound, "{} bytes with a bound of {bound}", head.len() + tail.len());
        assert!(head.starts_with("€🦀€🦀") && tail.ends_with("€🦀€🦀"), "{}", finished.stdout());
        let note = finished.stderr();
        assert!(note.starts_with("toolexec:") && note.contains("dropped"), "nothing is said of the rest: {note}");
    }
}

/// A reader that goes away ends the tool, and nobody complains about it.
#[test]
fn reader_that_goes_away_ends_the_tool() {
    for options in [&[][..], &["--strength", "subreaper"]] {
        let toolexec = toolexec();
        let marker = Marker::new(40626);
        let script = format!("setsid -f sleep {marker} >/dev/null 2>&1; yes");
        let launch = toolexec.run(options).arguments(["--", "sh", "-c", &script]).unread().watching(&marker);
        let mut running = launch.start();
        let mut reader = BufReader::new(running.unread_stdout.take().unwrap());
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert_eq!(line, "y\n");
        running.await_sleeps(1);
        drop(reader);
        assert_within(LATENESS, "the supervisor's end", || !running.is_running());
        let finished = running.finish();
        finished.assert_code(141).assert_marker_gone(&marker);
        toolexec.room().assert_swept();
    }
}

/// The same for a tool that is silent when its reader goes: it is a matter of seconds, not of its next line.
#[test]
fn reader_that_goes_away_ends_a_silent_tool() {
    let toolexec = toolexec();
    let marker = Marker::new(40627);
    let script = format!("echo once; sleep {marker}");
    let mut running = toolexec.run(["--", "sh", "-c", &script]).unread().watching(&marker).start();
    let mut reader = BufReader::new(running.unread_stdout.take().unwrap());
    reader.read_line(&mut String::new()).unwrap();
    running.await_sleeps(1);
    drop(reader);
    assert_within(LATENESS, "the supervisor's end", || !running.is_running());
    running.finish().assert_code(141).assert_marker_gone(&marker);
}

/// A reader that does not read slows the tool down; it fills no memory and delays no kill.
#[test]
fn reader_that_does_not_read_delays_no_kill_and_fills_no_memory() {
    let toolexec = toolexec();
    let marker = Marker::new(40628);
    let script = format!("sleep {marker} & {FLOOD}");
    let launch = toolexec.run(["--timeout", "3", "--", "sh", "-c", &script]).unread().watching(&marker);
    let mut running = launch.start();
    let started = Instant::now();
    let limit = Duration::from_secs(3);
    running.await_sleeps(1);
    // Looked at all the time, for the memory of it.
    assert_within(limit + LATENESS, "the tool's end while nobody reads", || {
        running.look();
        marker.sleeping().is_empty()
    });
    assert!(started.elapsed() >= limit, "the tool is gone before its time: {:?}", started.elapsed());
    assert_in_time("the tool's end", limit, started.elapsed());
    // What was on its way is still there to be read, and then there is an end.
    let mut output = running.unread_stdout.take().unwrap();
    let mut kept = Vec::new();
    output.read_to_end(&mut kept).unwrap();
    assert!(!kept.is_empty() && kept.iter().all(|byte| *byte == b'z'), "{} bytes were on their way", kept.len());
    let finished = running.finish();
    finished.assert_code(124).assert_marker_gone(&marker);
    assert!(finished.peak_memory > 0 && finished.peak_memory < MEMORY, "{} bytes of memory", finished.peak_memory);
    toolexec.room().assert_swept();
}

/// A slow reader gets everything all the same, when there is no time limit.
#[test]
fn slow_reader_gets_the_whole_output() {
    let toolexec = toolexec();
    let launch = toolexec.run(["--", "sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' z"]).unread();
    let mut running = launch.start();
    let mut output = running.unread_stdout.take().unwrap();
    let mut buffer = vec![0; 100_000];
    let mut total = 0;
    loop {
        match output.read(&mut buffer).unwrap() {
            0 => break,
            count => total += count,
        }
        if total < 1_000_000 {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    assert_eq!(total, 3_000_000);
    running.finish().assert_code(0);
}

/// The end of a tool's output is not the end of the tool.
#[test]
fn tool_that_closes_its_output_runs_on() {
    let toolexec = toolexec();
    for options in [&["--json"][..], &[]] {
        let launch = toolexec.run(["--timeout", "20"]).arguments(options);
        let finished = launch.arguments(["--", "sh", "-c", "echo last; exec >&- 2>&-; sleep 0.5; exit 7"]).finish();
        finished.assert_code(7);
        assert!(finished.took >= Duration::from_millis(500), "it was over after {:?}", finished.took);
        assert!(finished.stdout().contains("last"), "{}", finished.stdout());
    }
    // Nor does it delay the deadline.
    let marker = Marker::new(40629);
    let script = format!("exec >&- 2>&-; sleep {marker}");
    with_growing_limit(|limit| {
        let seconds = limit.as_secs().to_string();
        let finished = toolexec.run_shell(&["--timeout", &seconds], &script).watching(&marker).finish();
        finished.assert_code(124).assert_took(limit).assert_marker_gone(&marker);
        finished.sleeps(&marker) == 1
    });
}

/// A catalogue tool's output goes where a command's goes, collected and bounded.
#[test]
fn catalogue_tools_output_is_collected() {
    let toolexec = toolexec();
    let catalogue = toolexec.room().write(
        "toolexec.toml",
        "[tool.both]\ndescription = \"Both\"\ncommand = [\"sh\", \"-c\", \"echo out; echo err >&2; exit 7\"]\n",
    );
    let finished = toolexec.run(["--catalogue"]).arguments([&catalogue]).arguments(["both"]).finish();
    finished.assert_code(1);
    assert_eq!(finished.stdout(), "out\n");
    assert!(finished.stderr().starts_with("err\n"), "{}", finished.stderr());
    let told = toolexec.run(["--json", "--catalogue"]).arguments([&catalogue]).arguments(["both"]).finish().told();
    told.assert_end("error TOOL_ERROR returned").assert_at("/tool", "both").assert_at("/exit/code", 7);
    assert_gone(GONE, "files in TMPDIR", || toolexec.room().left());
}
