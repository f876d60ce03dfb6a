//! The names of signals.

/// The name of a signal as signal(7) gives it for most machines, such as `SIGSEGV`; `SIGRTMIN+n` for a real-time
/// signal, counted from the first that the C library leaves to programs (34).
pub fn signal_name(number: i32) -> String {
    const NAMES: [&str; 31] = [
        "SIGHUP",
        "SIGINT",
        "SIGQUIT",
        "SIGILL",
        "SIGTRAP",
        "SIGABRT",
        "SIGBUS",
        "SIGFPE",
        "SIGKILL",
        "SIGUSR1",
        "SIGSEGV",
        "SIGUSR2",
        "SIGPIPE",
        "SIGALRM",
        "SIGTERM",
        "SIGSTKFLT",
        "SIGCHLD",
        "SIGCONT",
        "SIGSTOP",
        "SIGTSTP",
        "SIGTTIN",
        "SIGTTOU",
        "SIGURG",
        "SIGXCPU",
        "SIGXFSZ",
        "SIGVTALRM",
        "SIGPROF",
        "SIGWINCH",
        "SIGIO",
        "SIGPWR",
        "SIGSYS",
    ];
    const FIRST_REAL_TIME: i32 = 34;
    let known = usize::try_from(number).ok().and_then(|number| NAMES.get(number.checked_sub(1)?));
    match known {
        Some(name) => (*name).to_owned(),
        None if number >= FIRST_REAL_TIME => format!("SIGRTMIN+{}", number - FIRST_REAL_TIME),
        None => format!("signal {number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::signal_name;

    #[test]
    fn signals_have_the_names_of_the_manual() {
        let names =
            [(9, "SIGKILL"), (11, "SIGSEGV"), (31, "SIGSYS"), (34, "SIGRTMIN+0"), (0, "signal 0"), (32, "signal 32")];
        for (number, name) in names {
            assert_eq!(signal_name(number), name);
        }
    }
}
