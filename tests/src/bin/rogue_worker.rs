//! A worker program that does not keep to the protocol; which rule it breaks is the first argument of the command that
//! it is asked to run, and a number to answer with is the second. The command itself is never run.
//!
//! Its zygote is the real one, and so are its processes: only what a worker writes to its call socket is not.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;
use toolexec_protocol::encoding;
use toolexec_protocol::frame::{self, HEADER};
use toolexec_protocol::id::Nonce;
use toolexec_protocol::message::{Exit, FromWorker, Report, Task, ToWorker, Usage};
use toolexec_worker::zygote_serving;

fn main() {
    zygote_serving(&|socket| serve(socket).unwrap_or(1));
    eprintln!("this program is only of use as a worker program");
    std::process::exit(2);
}

fn serve(mut socket: UnixStream) -> io::Result<i32> {
    while let Some((nonce, behaviour, number)) = next_call(&mut socket)? {
        match behaviour.as_str() {
            // The way it should be: the number comes back as the command's exit status.
            "honest" => socket.write_all(&reply(nonce, number))?,
            "slow" => {
                thread::sleep(Duration::from_millis(500));
                socket.write_all(&reply(nonce, number))?;
            }
            "garbage" => socket.write_all(&[&16_u32.to_le_bytes()[..], &[0xFF; 16]].concat())?,
            "babble" => socket.write_all(b"Hello, I am a worker, and this is no frame at all.\n")?,
            // Announces 4 GiB, and gives all that the supervisor is willing to take.
            "huge-frame" => {
                socket.write_all(&u32::MAX.to_le_bytes())?;
                loop {
                    socket.write_all(&[0; 64 * 1024])?;
                }
            }
            "truncated-frame" => {
                let whole = reply(nonce, number);
                socket.write_all(&whole[..whole.len() / 2])?;
                return Ok(0);
            }
            "unfinished-frame" => {
                let whole = reply(nonce, number);
                socket.write_all(&whole[..whole.len() / 2])?;
                silence();
            }
            "trailing-bytes" => {
                let mut whole = reply(nonce, number);
                whole.push(0);
                let length = u32::try_from(whole.len() - HEADER).expect("a short frame");
                whole[..HEADER].copy_from_slice(&length.to_le_bytes());
                socket.write_all(&whole)?;
            }
            "wrong-nonce" => socket.write_all(&reply(Nonce(nonce.0 ^ 1), number))?,
            "two-replies" => socket.write_all(&[reply(nonce, number), reply(nonce, 99)].concat())?,
            // The second reply is for a call that is yet to come, should nonces be numbered through.
            "prophecy" => socket.write_all(&[reply(nonce, number), reply(Nonce(nonce.0 + 1), 99)].concat())?,
            "exit" => return Ok(0),
            "silence" => silence(),
            other => panic!("no behaviour is called {other}"),
        }
    }
    Ok(0)
}

fn silence() -> ! {
    loop {
        thread::sleep(Duration::from_secs(3600));
    }
}

/// The next call's nonce, and its command's two arguments.
fn next_call(socket: &mut UnixStream) -> io::Result<Option<(Nonce, String, i32)>> {
    let mut header = [0; HEADER];
    match socket.read_exact(&mut header) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let mut message = vec![0; frame::checked_length(header).map_err(io::Error::other)?];
    socket.read_exact(&mut message)?;
    let ToWorker::Call { nonce, task, .. } = encoding::decode(&message).map_err(io::Error::other)?;
    let Task::Command(command) = task else { return Err(io::Error::other("not a command")) };
    let [behaviour, number] =
        [0, 1].map(|place| command.arguments.get(place).map_or("".into(), |bytes| String::from_utf8_lossy(bytes)));
    let number = number.parse().map_err(io::Error::other)?;
    Ok(Some((nonce, behaviour.into_owned(), number)))
}

fn reply(nonce: Nonce, number: i32) -> Vec<u8> {
    let reply = FromWorker::Reply {
        nonce,
        report: Report::Command(Exit::Code(number)),
        background_killed: 0,
        usage: Usage::default(),
        reusable: true,
    };
    let mut bytes = Vec::new();
    frame::write(&reply, &mut bytes).expect("a short message");
    bytes
}
