//! `toolexec completions`: what a shell needs to complete the options.

use super::args::Arguments;
use super::report;
use clap::CommandFactory;
use clap_complete::Shell;

/// Prints the script for `shell` and gives back the exit code.
pub(super) fn completions(shell: Shell) -> u8 {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "toolexec", &mut script);
    report::print(&String::from_utf8_lossy(&script))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn every_shell_gets_a_script() {
        for shell in Shell::value_variants() {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Arguments::command(), "toolexec", &mut script);
            let script = String::from_utf8(script).unwrap();
            assert!(script.contains("doctor"), "{shell}");
        }
    }
}
