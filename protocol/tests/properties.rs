//! What holds for every message and for every string of bytes, whoever made it.

#![allow(clippy::unwrap_used, reason = "helpers of tests, which fail by panicking")]

use proptest::collection::vec;
use proptest::prelude::*;
use std::fmt::Debug;
use toolexec_protocol::encoding::{self, EncodeError};
use toolexec_protocol::failure::{ErrorClass, Failure};
use toolexec_protocol::frame::{self, FrameReader};
use toolexec_protocol::handshake::{Answer, Hello, Refusal, Welcome, accept, answer};
use toolexec_protocol::id::{Nonce, WorkerId};
use toolexec_protocol::limits::MAX_FRAME;
use toolexec_protocol::message::*;
use toolexec_protocol::strength::KillStrength;

/// A message of any type, so that one connection can be tried with all of them.
trait Message: toolexec_protocol::Decode + toolexec_protocol::Encode + PartialEq + Debug {}
impl<T: toolexec_protocol::Decode + toolexec_protocol::Encode + PartialEq + Debug> Message for T {}

fn round_trips<T: Message>(message: &T) -> Result<(), TestCaseError> {
    let mut bytes = Vec::new();
    encoding::encode_into(message, &mut bytes).unwrap();
    let read: T = encoding::decode(&bytes).unwrap();
    prop_assert_eq!(&read, message);
    Ok(())
}

/// What these bytes read as, if anything, is written as these bytes.
fn is_canonical<T: Message>(bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Ok(message) = encoding::decode::<T>(bytes) {
        let mut again = Vec::new();
        encoding::encode_into(&message, &mut again).unwrap();
        prop_assert_eq!(again, bytes);
    }
    Ok(())
}

fn is_canonical_as_anything(bytes: &[u8]) -> Result<(), TestCaseError> {
    is_canonical::<Hello>(bytes)?;
    is_canonical::<Answer>(bytes)?;
    is_canonical::<ToZygote>(bytes)?;
    is_canonical::<FromZygote>(bytes)?;
    is_canonical::<ToWorker>(bytes)?;
    is_canonical::<FromWorker>(bytes)
}

proptest! {
    #[test]
    fn every_message_round_trips(
        hello in hello(),
        answer in an_answer(),
        to_zygote in to_zygote(),
        from_zygote in from_zygote(),
        to_worker in to_worker(),
        from_worker in from_worker(),
    ) {
        round_trips(&hello)?;
        round_trips(&answer)?;
        round_trips(&to_zygote)?;
        round_trips(&from_zygote)?;
        round_trips(&to_worker)?;
        round_trips(&from_worker)?;
    }

    #[test]
    fn any_bytes_are_a_message_or_none_and_never_two(bytes in vec(any::<u8>(), 0..200)) {
        is_canonical_as_anything(&bytes)?;
    }

    /// Arbitrary bytes seldom get far; these are close to a message.
    #[test]
    fn a_damaged_message_is_a_message_or_none(
        to_worker in to_worker(),
        from_worker in from_worker(),
        damage in vec((any::<prop::sample::Index>(), small_or_any()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        for mut bytes in [encoded(&to_worker), encoded(&from_worker)] {
            for (place, byte) in &damage {
                let place = place.index(bytes.len());
                bytes[place] = *byte;
            }
            is_canonical_as_anything(&bytes)?;
            is_canonical_as_anything(&bytes[..cut.index(bytes.len())])?;
        }
    }

    #[test]
    fn frames_are_the_same_messages_however_they_are_split(
        messages in vec(from_worker(), 0..20),
        cuts in vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let mut wire = Vec::new();
        messages.iter().for_each(|message| frame::write(message, &mut wire).unwrap());
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(wire.len() + 1)).collect();
        places.extend([0, wire.len()]);
        places.sort_unstable();

        let mut reader = FrameReader::new();
        let mut read = Vec::new();
        let mut pushed = 0;
        for pair in places.windows(2) {
            reader.push(&wire[pair[0]..pair[1]]);
            pushed = pair[1];
            // One message at most is taken, so that some pushes meet frames that nobody asked for yet.
            read.extend(reader.next::<FromWorker>().unwrap());
            let taken: usize = read.iter().map(|message| encoded(message).len() + frame::HEADER).sum();
            prop_assert_eq!(reader.buffered(), pushed - taken);
        }
        while let Some(message) = reader.next::<FromWorker>().unwrap() {
            read.push(message);
        }
        prop_assert_eq!(pushed, wire.len());
        prop_assert_eq!(read, messages);
        prop_assert_eq!(reader.buffered(), 0);
        prop_assert!(reader.end().is_ok());
    }

    #[test]
    fn any_stream_ends_in_messages_or_an_error(chunks in vec(vec(small_or_any(), 0..50), 0..20)) {
        let mut reader = FrameReader::new();
        'stream: for chunk in &chunks {
            reader.push(chunk);
            loop {
                match reader.next::<FromZygote>() {
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(_) => break 'stream,
                }
            }
        }
        let _ = reader.end();
    }

    #[test]
    fn a_version_is_agreed_on_exactly_when_both_speak_it(hello in hello()) {
        let wanted = hello.magic == toolexec_protocol::handshake::MAGIC && hello.oldest <= 1 && hello.newest >= 1;
        let agreed = matches!(answer(&hello), Answer::Welcome(Welcome { version: 1, .. }));
        prop_assert_eq!(agreed, wanted);
        prop_assert_eq!(accept(answer(&hello)).is_ok(), wanted);
    }
}

/// The serializer counts lists by their size in memory, which is the larger the shorter their elements are.
#[test]
fn what_fits_into_a_frame_can_be_read() {
    fn call(arguments: usize, environment: usize) -> ToWorker {
        let task = CommandTask {
            program: Vec::new(),
            arguments: vec![Vec::new(); arguments],
            environment: vec![(Vec::new(), Vec::new()); environment],
            directory: WorkingDirectory::Scratch,
            stdin: Stdin::Empty,
        };
        ToWorker::Call { nonce: Nonce(0), last: true, task: Task::Command(task) }
    }
    fn is_read(message: &ToWorker) {
        assert!(&encoding::decode::<ToWorker>(&encoded(message)).unwrap() == message);
    }
    let overhead = encoded(&call(0, 0)).len();
    // Around each border between the limits that `decode` chooses from.
    for size in [1024, 4 * 1024, 256 * 1024] {
        let room = size - overhead;
        for (arguments, environment) in [(room / 8, 0), (0, room / 16), (room / 16, room / 32)] {
            (0..3).for_each(|more| is_read(&call(arguments + more, environment)));
        }
    }
    let most = (MAX_FRAME - overhead) / 8;
    is_read(&call(most, 0));
    let refused = encoding::encode_into(&call(most + 1, 0), &mut Vec::new());
    assert!(matches!(refused, Err(EncodeError::TooLarge { length }) if length > MAX_FRAME));
}

fn encoded(message: &impl toolexec_protocol::Encode) -> Vec<u8> {
    let mut bytes = Vec::new();
    encoding::encode_into(message, &mut bytes).unwrap();
    bytes
}

/// Small numbers are lengths and variants that make sense.
fn small_or_any() -> impl Strategy<Value = u8> {
    prop_oneof![4 => 0_u8..8, 1 => any::<u8>()]
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..40)
}

fn text() -> impl Strategy<Value = String> {
    any::<String>()
}

fn magic() -> impl Strategy<Value = [u8; 8]> {
    prop_oneof![Just(toolexec_protocol::handshake::MAGIC), any::<[u8; 8]>()]
}

fn version() -> impl Strategy<Value = u16> {
    prop_oneof![0_u16..4, any::<u16>()]
}

fn hello() -> impl Strategy<Value = Hello> {
    (magic(), version(), version(), text()).prop_map(|(magic, oldest, newest, software)| Hello {
        magic,
        oldest,
        newest,
        software,
    })
}

fn an_answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        (magic(), version(), text()).prop_map(|(magic, version, software)| Answer::Welcome(Welcome {
            magic,
            version,
            software
        })),
        (version(), version(), text()).prop_map(|(oldest, newest, reason)| Answer::Refusal(Refusal {
            oldest,
            newest,
            reason
        })),
    ]
}

fn strength() -> impl Strategy<Value = KillStrength> {
    use KillStrength::{Cgroup, PidNamespace, ProcessGroup, Subreaper};
    prop_oneof![Just(ProcessGroup), Just(Subreaper), Just(Cgroup), Just(PidNamespace)]
}

fn worker() -> impl Strategy<Value = WorkerId> {
    any::<u64>().prop_map(WorkerId)
}

fn setup_failure() -> impl Strategy<Value = SetupFailure> {
    (text(), any::<i32>()).prop_map(|(step, errno)| SetupFailure { step, errno })
}

fn exit() -> impl Strategy<Value = Exit> {
    prop_oneof![any::<i32>().prop_map(Exit::Code), any::<i32>().prop_map(Exit::Signal)]
}

fn usage() -> impl Strategy<Value = Usage> {
    any::<(u64, u64)>().prop_map(|(cpu_us, max_rss_bytes)| Usage { cpu_us, max_rss_bytes })
}

fn to_zygote() -> impl Strategy<Value = ToZygote> {
    prop_oneof![
        (bytes(), prop::option::of(strength()))
            .prop_map(|(scratch_root, strength)| ToZygote::Configure(Configuration { scratch_root, strength })),
        worker().prop_map(|worker| ToZygote::Fork { worker }),
    ]
}

fn from_zygote() -> impl Strategy<Value = FromZygote> {
    prop_oneof![
        (worker(), strength()).prop_map(|(worker, strength)| FromZygote::Forked { worker, strength }),
        (worker(), setup_failure()).prop_map(|(worker, failure)| FromZygote::ForkFailed { worker, failure }),
        (worker(), exit(), usage(), any::<u32>(), any::<u32>(), any::<bool>()).prop_map(
            |(worker, exit, usage, swept, survivors, scratch_left)| FromZygote::Exited {
                worker,
                exit,
                usage,
                swept,
                survivors,
                scratch_left,
            }
        ),
    ]
}

fn command() -> impl Strategy<Value = CommandTask> {
    let directory = prop_oneof![Just(WorkingDirectory::Scratch), bytes().prop_map(WorkingDirectory::Path)];
    let stdin = prop_oneof![Just(Stdin::Empty), bytes().prop_map(Stdin::Bytes), Just(Stdin::Descriptor)];
    (bytes(), vec(bytes(), 0..6), vec((bytes(), bytes()), 0..6), directory, stdin).prop_map(
        |(program, arguments, environment, directory, stdin)| CommandTask {
            program,
            arguments,
            environment,
            directory,
            stdin,
        },
    )
}

fn to_worker() -> impl Strategy<Value = ToWorker> {
    let task = prop_oneof![
        command().prop_map(Task::Command),
        (text(), bytes()).prop_map(|(name, arguments)| Task::Tool { name, arguments }),
        (text(), bytes(), bytes()).prop_map(|(name, arguments, context)| Task::ToolInContext {
            name,
            arguments,
            context
        }),
    ];
    (any::<u64>(), any::<bool>(), task).prop_map(|(nonce, last, task)| ToWorker::Call {
        nonce: Nonce(nonce),
        last,
        task,
    })
}

fn report() -> impl Strategy<Value = Report> {
    let start_failure = prop_oneof![
        Just(StartFailure::NotFound),
        any::<i32>().prop_map(|errno| StartFailure::NotExecutable { errno }),
        Just(StartFailure::ArgumentsTooLong),
        any::<i32>().prop_map(|errno| StartFailure::Directory { errno }),
        (text(), any::<i32>()).prop_map(|(step, errno)| StartFailure::Host { step, errno }),
    ];
    let class = prop_oneof![Just(ErrorClass::Transient), Just(ErrorClass::Semantic), Just(ErrorClass::Environment)];
    prop_oneof![
        exit().prop_map(Report::Command),
        start_failure.prop_map(Report::NotStarted),
        bytes().prop_map(Report::Value),
        (bytes(), bytes()).prop_map(|(value, writes)| Report::Written { value, writes }),
        (class, text()).prop_map(|(class, message)| Report::Failure(Failure { class, message })),
        Just(Report::UnknownTool),
    ]
}

fn from_worker() -> impl Strategy<Value = FromWorker> {
    prop_oneof![
        4 => (any::<u64>(), report(), any::<u32>(), usage(), any::<bool>()).prop_map(
            |(nonce, report, background_killed, usage, reusable)| FromWorker::Reply {
                nonce: Nonce(nonce),
                report,
                background_killed,
                usage,
                reusable,
            }
        ),
        1 => setup_failure().prop_map(FromWorker::SetupFailed),
        1 => Just(FromWorker::Swept),
    ]
}
