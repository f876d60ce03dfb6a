//! The bytes of version 1, as they are stored here for ever: a frame that was written by any build of
//! version 1 is read by every other.
//!
//! A test that fails here is not to be mended by storing other bytes. It says that the bytes of a message have
//! changed, and that is a new version of the protocol; see `handshake::NEWEST_VERSION`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests, which fail by panicking")]

use std::collections::BTreeSet;
use std::fmt::Debug;
use toolexec_protocol::encoding::{self, DecodeError, EncodeError};
use toolexec_protocol::failure::{ErrorClass, Failure};
use toolexec_protocol::frame::{self, FrameError, FrameReader, HEADER};
use toolexec_protocol::handshake::{Answer, Hello, MAGIC, NEWEST_VERSION, OLDEST_VERSION, Refusal, Welcome};
use toolexec_protocol::id::{Nonce, WorkerId};
use toolexec_protocol::limits::MAX_FRAME;
use toolexec_protocol::message::*;
use toolexec_protocol::strength::KillStrength;

/// A message, the name of its form, and its bytes in hexadecimal digits and spaces.
struct Golden<T> {
    form: &'static str,
    message: T,
    bytes: &'static str,
}

/// Checks every golden message of one type in every way, and that each of `forms` is among them.
#[track_caller]
fn check<T>(golden: Vec<Golden<T>>, form_of: fn(&T) -> Vec<&'static str>, forms: &[&str])
where
    T: toolexec_protocol::Decode + toolexec_protocol::Encode + PartialEq + Debug,
{
    let mut met = BTreeSet::new();
    for Golden { form, message, bytes } in &golden {
        met.extend(form_of(message));
        let bytes = unhex(bytes);
        assert_eq!(hex(&encoded(message)), hex(&bytes), "the bytes of {form} have changed");
        assert_eq!(&encoding::decode::<T>(&bytes).unwrap(), message, "{form} reads as something else");
        cut_anywhere_it_is_refused::<T>(form, &bytes);
        followed_by_anything_it_is_refused::<T>(form, &bytes);
    }
    assert_eq!(met, forms.iter().copied().collect(), "every form has to be stored");

    // All of them one after the other, a byte at a time, as one connection may bring them.
    let mut reader = FrameReader::new();
    let mut wire = Vec::new();
    golden.iter().for_each(|golden| frame::write(&golden.message, &mut wire).unwrap());
    let mut read = Vec::new();
    for byte in wire {
        reader.push(&[byte]);
        read.extend(reader.next::<T>().unwrap());
    }
    reader.end().unwrap();
    assert_eq!(read, golden.into_iter().map(|golden| golden.message).collect::<Vec<_>>());
}

#[track_caller]
fn cut_anywhere_it_is_refused<T: toolexec_protocol::Decode + Debug>(form: &str, bytes: &[u8]) {
    let mut frame = u32::try_from(bytes.len()).unwrap().to_le_bytes().to_vec();
    frame.extend_from_slice(bytes);
    for cut in 0..bytes.len() {
        match encoding::decode::<T>(&bytes[..cut]) {
            Err(DecodeError::Malformed(_)) => {}
            other => panic!("{form} cut after {cut} bytes: {other:?}"),
        }
    }
    for cut in 0..frame.len() {
        let mut reader = FrameReader::new();
        reader.push(&frame[..cut]);
        assert!(reader.next::<T>().unwrap().is_none(), "{form}, a frame cut after {cut} bytes");
        match (cut, reader.end()) {
            (0, Ok(())) => {}
            (1.., Err(FrameError::Truncated { missing })) => {
                assert_eq!(missing, if cut < HEADER { HEADER - cut } else { frame.len() - cut });
            }
            (_, other) => panic!("{form}, the end after {cut} bytes: {other:?}"),
        }
    }
}

#[track_caller]
fn followed_by_anything_it_is_refused<T: toolexec_protocol::Decode + Debug>(form: &str, bytes: &[u8]) {
    for extra in [1, 8, 5000] {
        match encoding::decode::<T>(&[bytes, &vec![0; extra]].concat()) {
            Err(DecodeError::TrailingBytes { extra: told }) => assert_eq!(told, extra),
            other => panic!("{form} with {extra} bytes behind it: {other:?}"),
        }
    }
}

fn encoded(message: &impl toolexec_protocol::Encode) -> Vec<u8> {
    let mut bytes = Vec::new();
    encoding::encode_into(message, &mut bytes).unwrap();
    bytes
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    assert!(digits.len().is_multiple_of(2));
    digits.chunks(2).map(byte).collect()
}

// The functions `*_forms` have no wildcard: a new variant is a compiler error here until it is named, and a
// failed test until its bytes are stored.

#[test]
fn the_greeting() {
    let hello = Hello { magic: MAGIC, oldest: 1, newest: 0x0203, software: "0.1.0".into() };
    let bytes = "746f6f6c65786563 0100 0302 0500000000000000 302e312e30";
    check(vec![Golden { form: "Hello", message: hello, bytes }], |_| vec!["Hello"], &["Hello"]);
}

#[test]
fn the_answer_to_the_greeting() {
    fn forms(answer: &Answer) -> Vec<&'static str> {
        match answer {
            Answer::Welcome(_) => vec!["Welcome"],
            Answer::Refusal(_) => vec!["Refusal"],
        }
    }
    check(
        vec![
            Golden {
                form: "Welcome",
                message: Answer::Welcome(Welcome { magic: MAGIC, version: 1, software: "0.1.0".into() }),
                bytes: "00000000 746f6f6c65786563 0100 0500000000000000 302e312e30",
            },
            Golden {
                form: "Refusal",
                message: Answer::Refusal(Refusal { oldest: 2, newest: 0x0405, reason: "né".into() }),
                bytes: "01000000 0200 0504 0300000000000000 6ec3a9",
            },
        ],
        forms,
        &["Welcome", "Refusal"],
    );
}

#[test]
fn these_are_the_bytes_of_the_only_version() {
    assert_eq!((OLDEST_VERSION, NEWEST_VERSION), (1, 1), "a new version has golden bytes of its own");
}

#[test]
fn supervisor_to_zygote() {
    fn forms(message: &ToZygote) -> Vec<&'static str> {
        match message {
            ToZygote::Configure(Configuration { scratch_root: _, strength: None }) => vec!["Configure", "no strength"],
            ToZygote::Configure(Configuration { scratch_root: _, strength: Some(strength) }) => {
                vec!["Configure", strength_form(*strength)]
            }
            ToZygote::Fork { worker: _ } => vec!["Fork"],
        }
    }
    fn configure(form: &'static str, strength: Option<KillStrength>, bytes: &'static str) -> Golden<ToZygote> {
        let message = ToZygote::Configure(Configuration { scratch_root: b"/t\xff".to_vec(), strength });
        Golden { form, message, bytes }
    }
    check(
        vec![
            configure("Configure", None, "00000000 0300000000000000 2f74ff 00"),
            configure(
                "Configure, process group",
                Some(KillStrength::ProcessGroup),
                "00000000 0300000000000000 2f74ff 01 00000000",
            ),
            configure(
                "Configure, subreaper",
                Some(KillStrength::Subreaper),
                "00000000 0300000000000000 2f74ff 01 01000000",
            ),
            configure("Configure, cgroup", Some(KillStrength::Cgroup), "00000000 0300000000000000 2f74ff 01 02000000"),
            configure(
                "Configure, PID namespace",
                Some(KillStrength::PidNamespace),
                "00000000 0300000000000000 2f74ff 01 03000000",
            ),
            Golden {
                form: "Fork",
                message: ToZygote::Fork { worker: WorkerId(0x0102_0304_0506_0708) },
                bytes: "01000000 0807060504030201",
            },
        ],
        forms,
        &["Configure", "Fork", "no strength", "process-group", "subreaper", "cgroup", "pid-namespace"],
    );
}

#[test]
fn zygote_to_supervisor() {
    fn forms(message: &FromZygote) -> Vec<&'static str> {
        match message {
            FromZygote::Forked { worker: _, strength } => vec!["Forked", strength_form(*strength)],
            FromZygote::ForkFailed { worker: _, failure: SetupFailure { step: _, errno: _ } } => vec!["ForkFailed"],
            FromZygote::Exited { worker: _, exit, usage: _, swept: _, survivors: _, scratch_left: _ } => {
                vec!["Exited", exit_form(*exit)]
            }
        }
    }
    fn forked(form: &'static str, strength: KillStrength, bytes: &'static str) -> Golden<FromZygote> {
        Golden { form, message: FromZygote::Forked { worker: WorkerId(7), strength }, bytes }
    }
    let usage = Usage { cpu_us: 0x0a0b, max_rss_bytes: u64::MAX };
    check(
        vec![
            forked("Forked, process group", KillStrength::ProcessGroup, "00000000 0700000000000000 00000000"),
            forked("Forked, subreaper", KillStrength::Subreaper, "00000000 0700000000000000 01000000"),
            forked("Forked, cgroup", KillStrength::Cgroup, "00000000 0700000000000000 02000000"),
            forked("Forked, PID namespace", KillStrength::PidNamespace, "00000000 0700000000000000 03000000"),
            Golden {
                form: "ForkFailed",
                message: FromZygote::ForkFailed {
                    worker: WorkerId(8),
                    failure: SetupFailure { step: "clone3".into(), errno: 11 },
                },
                bytes: "01000000 0800000000000000 0600000000000000 636c6f6e6533 0b000000",
            },
            Golden {
                form: "Exited, code",
                message: FromZygote::Exited {
                    worker: WorkerId(9),
                    exit: Exit::Code(255),
                    usage,
                    swept: 3,
                    survivors: 4,
                    scratch_left: true,
                },
                bytes: "02000000 0900000000000000 00000000 ff000000
                        0b0a000000000000 ffffffffffffffff 03000000 04000000 01",
            },
            Golden {
                form: "Exited, signal",
                message: FromZygote::Exited {
                    worker: WorkerId(9),
                    exit: Exit::Signal(9),
                    usage: Usage::default(),
                    swept: 0,
                    survivors: u32::MAX,
                    scratch_left: false,
                },
                bytes: "02000000 0900000000000000 01000000 09000000
                        0000000000000000 0000000000000000 00000000 ffffffff 00",
            },
        ],
        forms,
        &["Forked", "ForkFailed", "Exited", "code", "signal", "process-group", "subreaper", "cgroup", "pid-namespace"],
    );
}

#[test]
fn supervisor_to_worker() {
    fn forms(message: &ToWorker) -> Vec<&'static str> {
        let ToWorker::Call { nonce: _, last: _, task } = message;
        match task {
            Task::Command(CommandTask { program: _, arguments: _, environment: _, directory, stdin }) => {
                let directory = match directory {
                    WorkingDirectory::Scratch => "in scratch",
                    WorkingDirectory::Path(_) => "in a directory",
                };
                let stdin = match stdin {
                    Stdin::Empty => "no input",
                    Stdin::Bytes(_) => "bytes as input",
                    Stdin::Descriptor => "a descriptor as input",
                };
                vec!["Command", directory, stdin]
            }
            Task::Tool { name: _, arguments: _ } => vec!["Tool"],
            Task::ToolInContext { name: _, arguments: _, context: _ } => vec!["ToolInContext"],
        }
    }
    let command = CommandTask {
        program: b"sh".to_vec(),
        arguments: Vec::new(),
        environment: Vec::new(),
        directory: WorkingDirectory::Scratch,
        stdin: Stdin::Empty,
    };
    let call = |task| ToWorker::Call { nonce: Nonce(0x1122_3344_5566_7788), last: true, task };
    check(
        vec![
            Golden {
                form: "Command with little",
                message: call(Task::Command(command.clone())),
                bytes: "00000000 8877665544332211 01 00000000
                        0200000000000000 7368 0000000000000000 0000000000000000 00000000 00000000",
            },
            Golden {
                form: "Command with everything",
                message: ToWorker::Call {
                    nonce: Nonce(1),
                    last: false,
                    task: Task::Command(CommandTask {
                        arguments: vec![b"-c".to_vec(), Vec::new(), b"\xff\0".to_vec()],
                        environment: vec![(b"A".to_vec(), b"1".to_vec()), (b"B".to_vec(), Vec::new())],
                        directory: WorkingDirectory::Path(b"/".to_vec()),
                        stdin: Stdin::Bytes(b"in".to_vec()),
                        ..command.clone()
                    }),
                },
                bytes: "00000000 0100000000000000 00 00000000
                        0200000000000000 7368
                        0300000000000000 0200000000000000 2d63 0000000000000000 0200000000000000 ff00
                        0200000000000000 0100000000000000 41 0100000000000000 31
                                         0100000000000000 42 0000000000000000
                        01000000 0100000000000000 2f
                        01000000 0200000000000000 696e",
            },
            Golden {
                form: "Command with a descriptor",
                message: call(Task::Command(CommandTask { stdin: Stdin::Descriptor, ..command })),
                bytes: "00000000 8877665544332211 01 00000000
                        0200000000000000 7368 0000000000000000 0000000000000000 00000000 02000000",
            },
            Golden {
                form: "Tool",
                message: call(Task::Tool { name: "add".into(), arguments: b"{}".to_vec() }),
                bytes: "00000000 8877665544332211 01 01000000 0300000000000000 616464 0200000000000000 7b7d",
            },
            Golden {
                form: "ToolInContext",
                message: call(Task::ToolInContext {
                    name: "add".into(),
                    arguments: b"{}".to_vec(),
                    context: b"{ }".to_vec(),
                }),
                bytes: "00000000 8877665544332211 01 02000000
                        0300000000000000 616464 0200000000000000 7b7d 0300000000000000 7b207d",
            },
        ],
        forms,
        &[
            "Command",
            "Tool",
            "ToolInContext",
            "in scratch",
            "in a directory",
            "no input",
            "bytes as input",
            "a descriptor as input",
        ],
    );
}

#[test]
fn worker_to_supervisor() {
    fn forms(message: &FromWorker) -> Vec<&'static str> {
        let report = match message {
            FromWorker::SetupFailed(SetupFailure { step: _, errno: _ }) => return vec!["SetupFailed"],
            FromWorker::Swept => return vec!["Swept"],
            FromWorker::Reply { nonce: _, report, background_killed: _, usage: _, reusable: _ } => report,
        };
        match report {
            Report::Command(exit) => vec!["Command", exit_form(*exit)],
            Report::NotStarted(failure) => vec![
                "NotStarted",
                match failure {
                    StartFailure::NotFound => "NotFound",
                    StartFailure::NotExecutable { errno: _ } => "NotExecutable",
                    StartFailure::ArgumentsTooLong => "ArgumentsTooLong",
                    StartFailure::Directory { errno: _ } => "Directory",
                    StartFailure::Host { step: _, errno: _ } => "Host",
                },
            ],
            Report::Value(_) => vec!["Value"],
            Report::Failure(Failure { class, message: _ }) => vec![
                "Failure",
                match class {
                    ErrorClass::Transient => "transient",
                    ErrorClass::Semantic => "semantic",
                    ErrorClass::Environment => "environment",
                },
            ],
            Report::UnknownTool => vec!["UnknownTool"],
            Report::Written { value: _, writes: _ } => vec!["Written"],
        }
    }
    fn reply(form: &'static str, report: Report, bytes: &'static str) -> Golden<FromWorker> {
        let usage = Usage { cpu_us: 5, max_rss_bytes: 6 };
        let message = FromWorker::Reply { nonce: Nonce(0x10), report, background_killed: 0x20, usage, reusable: true };
        Golden { form, message, bytes }
    }
    let failed = |class, text: &str| Report::Failure(Failure { class, message: text.into() });
    // Each line of bytes: the variant and the nonce, the report, and what follows it.
    check(
        vec![
            reply(
                "exit code",
                Report::Command(Exit::Code(-1)),
                "00000000 1000000000000000
                 00000000 00000000 ffffffff
                 20000000 0500000000000000 0600000000000000 01",
            ),
            reply(
                "signal",
                Report::Command(Exit::Signal(15)),
                "00000000 1000000000000000
                 00000000 01000000 0f000000
                 20000000 0500000000000000 0600000000000000 01",
            ),
            reply(
                "not found",
                Report::NotStarted(StartFailure::NotFound),
                "00000000 1000000000000000
                 01000000 00000000
                 20000000 0500000000000000 0600000000000000 01",
            ),
            reply(
                "not executable",
                Report::NotStarted(StartFailure::NotExecutable { errno: 13 }),
                "00000000 1000000000000000
                 01000000 01000000 0d000000
                 20000000 0500000000000000 0600000000000000 01",
            ),
            reply(
                "arguments too long",
                Report::NotStarted(StartFailure::ArgumentsTooLong),
                "00000000 1000000000000000
                 01000000 02000000
                 20000000 0500000000000000 0600000000000000 01",
            ),
            reply(
                "directory",
                Report::NotStarted(StartFailure::Directory { errno: 2 }),
                "00000000 1000000000000000
                 01000000 03000000 02000000
                 20000000 0500000000000000 0600000000000000 01",
            ),
            reply(
                "host",
                Report::NotStarted(StartFailure::Host { step: "fork".into(), errno: 12 }),
                "00000000 1000000000000000
                 01000000 04000000 0400000000000000 666f726b 0c000000
                 20000000 0500000000000000 0600000000000000 01",
            ),
            reply(
                "value",
                Report::Value(b"[1]".to_vec()),
                "00000000 1000000000000000
                 02000000 0300000000000000 5b315d
                 20000000 0500000000000000 0600000000000000 01",
            ),
            reply(
                "written",
                Report::Written { value: b"[1]".to_vec(), writes: b"{}".to_vec() },
                "00000000 1000000000000000
                 05000000 0300000000000000 5b315d 0200000000000000 7b7d
                 20000000 0500000000000000 0600000000000000 01",
            ),
            reply(
                "transient failure",
                failed(ErrorClass::Transient, "no"),
                "00000000 1000000000000000
                 03000000 00000000 0200000000000000 6e6f
                 20000000 0500000000000000 0600000000000000 01",
            ),
            reply(
                "semantic failure",
                failed(ErrorClass::Semantic, ""),
                "00000000 1000000000000000
                 03000000 01000000 0000000000000000
                 20000000 0500000000000000 0600000000000000 01",
            ),
            reply(
                "environment failure",
                failed(ErrorClass::Environment, "🦀"),
                "00000000 1000000000000000
                 03000000 02000000 0400000000000000 f09fa680
                 20000000 0500000000000000 0600000000000000 01",
            ),
            reply(
                "unknown tool",
                Report::UnknownTool,
                "00000000 1000000000000000
                 04000000
                 20000000 0500000000000000 0600000000000000 01",
            ),
            Golden {
                form: "setup failed",
                message: FromWorker::SetupFailed(SetupFailure { step: "mount".into(), errno: 1 }),
                bytes: "01000000 0500000000000000 6d6f756e74 01000000",
            },
            Golden { form: "swept", message: FromWorker::Swept, bytes: "02000000" },
        ],
        forms,
        &[
            "SetupFailed",
            "Swept",
            "Command",
            "code",
            "signal",
            "NotStarted",
            "NotFound",
            "NotExecutable",
            "ArgumentsTooLong",
            "Directory",
            "Host",
            "Value",
            "Failure",
            "transient",
            "semantic",
            "environment",
            "UnknownTool",
            "Written",
        ],
    );
}

fn strength_form(strength: KillStrength) -> &'static str {
    match strength {
        KillStrength::ProcessGroup | KillStrength::Subreaper | KillStrength::Cgroup | KillStrength::PidNamespace => {
            strength.as_str()
        }
    }
}

fn exit_form(exit: Exit) -> &'static str {
    match exit {
        Exit::Code(_) => "code",
        Exit::Signal(_) => "signal",
    }
}

#[test]
fn a_frame_is_its_length_and_its_message() {
    let mut buffer = b"before".to_vec();
    frame::write(&ToZygote::Fork { worker: WorkerId(1) }, &mut buffer).unwrap();
    assert_eq!(hex(&buffer[6..]), "0c000000010000000100000000000000");
    assert_eq!(&buffer[..6], b"before");
}

#[test]
fn a_frame_that_is_too_large_is_refused_at_its_announcement() {
    for length in [u32::MAX, u32::try_from(MAX_FRAME).unwrap() + 1] {
        let mut reader = FrameReader::new();
        // Not one byte of the frame is there yet, and none is waited for.
        reader.push(&length.to_le_bytes());
        for answer in [reader.next::<FromWorker>().map(|_| ()), reader.end(), reader.next::<Hello>().map(|_| ())] {
            match answer {
                Err(FrameError::TooLarge { length: told }) => assert_eq!(told, u64::from(length)),
                other => panic!("{length} bytes announced: {other:?}"),
            }
        }
    }
}

#[test]
fn a_message_may_be_as_large_as_a_frame_and_no_larger() {
    let fits = Stdin::Bytes(vec![0x5a; MAX_FRAME - 12]);
    let mut buffer = b"before".to_vec();
    frame::write(&fits, &mut buffer).unwrap();
    assert_eq!(buffer.len(), 6 + HEADER + MAX_FRAME);
    let mut reader = FrameReader::new();
    reader.push(&buffer[6..]);
    assert_eq!(reader.next::<Stdin>().unwrap(), Some(fits));

    for over in [1, MAX_FRAME] {
        let too_large = Stdin::Bytes(vec![0x5a; MAX_FRAME - 12 + over]);
        for write in [encoding::encode_into, frame::write] {
            let mut buffer = b"before".to_vec();
            match write(&too_large, &mut buffer) {
                Err(EncodeError::TooLarge { length }) => assert_eq!(length, MAX_FRAME + over),
                other => panic!("{over} bytes too many: {other:?}"),
            }
            assert_eq!(buffer, b"before");
            assert!(buffer.capacity() < 4096, "{} bytes are kept for nothing", buffer.capacity());
        }
    }
    match encoding::decode::<Stdin>(&vec![0; MAX_FRAME + 1]) {
        Err(DecodeError::TooLarge { length }) => assert_eq!(length, MAX_FRAME + 1),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_list_longer_than_its_frame_is_refused_before_memory_is_taken_for_it() {
    let lengths = [u64::MAX, 1 << 63, 1 << 40, u64::try_from(MAX_FRAME).unwrap() + 1, 1 << 20];
    for length in lengths {
        let length = hex(&length.to_le_bytes());
        let refused = |bytes: &str, outcome: Result<(), DecodeError>| {
            // `UnexpectedEnd` would mean that the memory was there already.
            let Err(DecodeError::Malformed(bincode::error::DecodeError::LimitExceeded)) = outcome else {
                panic!("{bytes}: {outcome:?}");
            };
        };
        let stdin = format!("01000000 {length} 61");
        refused(&stdin, encoding::decode::<Stdin>(&unhex(&stdin)).map(|_| ()));
        let value = format!("00000000 1000000000000000 02000000 {length} 61");
        refused(&value, encoding::decode::<FromWorker>(&unhex(&value)).map(|_| ()));
        let text = format!("01000000 {length} 61");
        refused(&text, encoding::decode::<FromWorker>(&unhex(&text)).map(|_| ()));
        let arguments = format!("00000000 1000000000000000 01 00000000 0000000000000000 {length} 61");
        refused(&arguments, encoding::decode::<ToWorker>(&unhex(&arguments)).map(|_| ()));
        let environment =
            format!("00000000 1000000000000000 01 00000000 0000000000000000 0000000000000000 {length} 61");
        refused(&environment, encoding::decode::<ToWorker>(&unhex(&environment)).map(|_| ()));
    }
}

#[test]
fn there_is_one_way_to_write_a_value() {
    let check = |bytes: &str| encoding::decode::<FromZygote>(&unhex(bytes)).map(|_| ());
    let exited = "02000000 0900000000000000 00000000 ff000000 0b0a000000000000 ffffffffffffffff 03000000 04000000";
    assert!(check(&format!("{exited} 01")).is_ok());
    for bytes in [
        format!("{exited} 02"),
        format!("{exited} ff"),
        exited.replacen("02000000", "03000000", 1),
        exited.replacen("02000000", "02000001", 1),
        "00000000 0700000000000000 04000000".into(),
    ] {
        assert!(matches!(check(&bytes), Err(DecodeError::Malformed(_))), "{bytes}");
    }
    let option = |bytes: &str| encoding::decode::<ToZygote>(&unhex(bytes)).map(|_| ());
    assert!(option("00000000 0000000000000000 00").is_ok());
    assert!(option("00000000 0000000000000000 02 00000000").is_err());
    let text = |bytes: &str| encoding::decode::<SetupFailure>(&unhex(bytes)).map(|_| ());
    assert!(text("0100000000000000 61 00000000").is_ok());
    assert!(text("0100000000000000 ff 00000000").is_err());
}
