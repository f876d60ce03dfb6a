//! Where paused batches wait: a directory of files, or a database. Both block, and neither knows an engine.

mod file;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use file::FileStore;
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteStore;

use super::pause::{PauseState, UnreadablePause};
use std::io;
use std::path::PathBuf;

/// A place for paused batches, each under a key of the caller's, such as a conversation's id. All of it blocks.
pub trait PauseStore: Send + Sync {
    /// Stores this state in the place of any that is there; when this returns it outlives a loss of power.
    fn save(&self, key: &str, state: &PauseState) -> Result<(), StoreError>;

    /// Looks at the state; `None` where there is none. Whoever wants to resume it has to [`PauseStore::take`] it.
    fn load(&self, key: &str) -> Result<Option<PauseState>, StoreError>;

    /// Removes the state and returns it: of all who try, in whatever process, one gets it. What cannot be read stays
    /// where it is.
    fn take(&self, key: &str) -> Result<Option<PauseState>, StoreError>;

    /// Removes whatever is there, readable or not, and says whether something was.
    fn remove(&self, key: &str) -> Result<bool, StoreError>;
}

/// Why a store could not do its part.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There can be nothing under such a key.
    #[error("{key:?} cannot be a key of {}: {reason}", path.display())]
    Key {
        /// The key.
        key: String,
        /// The store.
        path: PathBuf,
        /// Why.
        reason: &'static str,
    },
    /// The file system failed.
    #[error("{} cannot be {doing}", path.display())]
    File {
        /// What could not be done.
        doing: &'static str,
        /// With what.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What is stored is not understood; it was left where it is.
    #[error("the pause of {key:?} in {} cannot be resumed", path.display())]
    Unreadable {
        /// The key.
        key: String,
        /// The file or database.
        path: PathBuf,
        /// Why.
        source: UnreadablePause,
    },
    /// The state could not be read again if it was stored; nothing was.
    #[error("the pause of {key:?} cannot be stored in {}", path.display())]
    Unstorable {
        /// The key.
        key: String,
        /// The file or database.
        path: PathBuf,
        /// Why.
        source: UnreadablePause,
    },
    /// The database failed.
    #[cfg(feature = "sqlite")]
    #[error("{} cannot be {doing}", path.display())]
    Database {
        /// What could not be done.
        doing: &'static str,
        /// The database.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
    /// The database is of another version, or is no database of this kind.
    #[cfg(feature = "sqlite")]
    #[error("{} is not a store of pauses that this build understands: {found}", path.display())]
    Schema {
        /// The database.
        path: PathBuf,
        /// What it is instead.
        found: String,
    },
}

/// What every store promises, tried with each of them.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::script::{any_pause, finished, known, log, paused_after, paused_before, returned, running};
    use crate::batch::{Decision, OnError, Writes, resume};
    use proptest::prelude::*;
    use std::fs;
    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::sync::Barrier;
    use std::thread;
    use tempfile::TempDir;

    /// A way to open a store in this directory once more, as another process would.
    type Open = fn(&Path) -> Box<dyn PauseStore>;

    fn stores() -> Vec<Open> {
        vec![
            |directory| Box::new(FileStore::open(directory.join("pauses")).unwrap()),
            #[cfg(feature = "sqlite")]
            |directory| Box::new(SqliteStore::open(directory.join("pauses.db")).unwrap()),
        ]
    }

    fn check(promise: impl Fn(&Path, Open)) {
        for open in stores() {
            promise(TempDir::new().unwrap().path(), open);
        }
    }

    #[test]
    fn what_is_saved_is_found_by_another_process_and_taken_once() {
        check(|directory, open| {
            let state = paused_after();
            open(directory).save("talk", &state).unwrap();
            let store = open(directory);
            assert_eq!(store.load("talk").unwrap(), Some(state.clone()));
            assert_eq!(store.load("another").unwrap(), None);
            assert_eq!(open(directory).take("talk").unwrap(), Some(state));
            assert_eq!(store.load("talk").unwrap(), None);
            assert_eq!(store.take("talk").unwrap(), None);
        });
    }

    #[test]
    fn the_last_save_counts_and_a_removed_pause_is_gone() {
        check(|directory, open| {
            let store = open(directory);
            store.save("talk", &paused_before()).unwrap();
            store.save("talk", &paused_after()).unwrap();
            assert_eq!(store.load("talk").unwrap(), Some(paused_after()));
            assert!(store.remove("talk").unwrap());
            assert!(!store.remove("talk").unwrap());
            assert_eq!(store.load("talk").unwrap(), None);
        });
    }

    #[test]
    fn keys_that_look_alike_are_different_pauses() {
        check(|directory, open| {
            let store = open(directory);
            let keys = ["a", "A", "a/b", "a%2fb", "..", ".", "../a", "/a", "a.json", "\u{e4}", "a\0b", "-", " "];
            for key in keys {
                assert_eq!(store.load(key).unwrap(), None, "{key:?}");
                store.save(key, &paused_before()).unwrap();
            }
            for key in keys {
                assert!(store.take(key).unwrap().is_some(), "{key:?}");
            }
        });
    }

    #[test]
    fn of_many_who_take_one_gets_it() {
        check(|directory, open| {
            for _ in 0..20 {
                open(directory).save("talk", &paused_after()).unwrap();
                let start = Barrier::new(4);
                let taken = thread::scope(|scope| {
                    let takers: Vec<_> = (0..4)
                        .map(|_| {
                            scope.spawn(|| {
                                let store = open(directory);
                                start.wait();
                                store.take("talk").unwrap()
                            })
                        })
                        .collect();
                    takers.into_iter().filter_map(|taker| taker.join().unwrap()).count()
                });
                assert_eq!(taken, 1);
            }
        });
    }

    #[test]
    fn two_who_write_at_once_leave_one_whole_state_for_whoever_reads() {
        check(|directory, open| {
            open(directory).save("talk", &paused_before()).unwrap();
            thread::scope(|scope| {
                let writers = [paused_before(), paused_after()].map(|state| {
                    scope.spawn(move || {
                        let store = open(directory);
                        for _ in 0..30 {
                            store.save("talk", &state).unwrap();
                        }
                    })
                });
                let store = open(directory);
                while !writers.iter().all(thread::ScopedJoinHandle::is_finished) {
                    let state = store.load("talk").unwrap().unwrap();
                    assert!(state == paused_before() || state == paused_after());
                }
            });
        });
    }

    #[test]
    fn many_who_open_a_new_store_at_once_all_get_it() {
        check(|_, open| {
            for _ in 0..5 {
                let directory = TempDir::new().unwrap();
                let start = Barrier::new(6);
                thread::scope(|scope| {
                    for number in 0..6 {
                        let (directory, start) = (directory.path(), &start);
                        scope.spawn(move || {
                            start.wait();
                            open(directory).save(&number.to_string(), &paused_before()).unwrap();
                        });
                    }
                });
            }
        });
    }

    /// Which store a process of [`of_many_processes_one_resumes_what_another_has_stored`] takes from, and where it is.
    const STORE: &str = "TOOLEXEC_TEST_STORE";
    const DIRECTORY: &str = "TOOLEXEC_TEST_STORE_DIRECTORY";

    #[test]
    fn of_many_processes_one_resumes_what_another_has_stored() {
        for (number, open) in stores().into_iter().enumerate() {
            let directory = TempDir::new().unwrap();
            open(directory.path()).save("talk", &paused_after()).unwrap();
            let takers: Vec<_> = (0..4)
                .map(|_| {
                    Command::new(std::env::current_exe().unwrap())
                        .args(["--exact", "batch::store::tests::takes_and_resumes"])
                        .env(STORE, number.to_string())
                        .env(DIRECTORY, directory.path())
                        .stdout(Stdio::null())
                        .spawn()
                        .unwrap()
                })
                .collect();
            for mut taker in takers {
                assert!(taker.wait().unwrap().success());
            }
            let results: Vec<_> = fs::read_dir(directory.path())
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .filter(|path| path.extension().is_some_and(|extension| extension == "result"))
                .collect();
            let [result] = results.as_slice() else { panic!("{results:?}") };
            assert_eq!(fs::read_to_string(result).unwrap(), r#"{"log":["a","d"],"digits":12345678901234567890123}"#);
            assert_eq!(open(directory.path()).load("talk").unwrap(), None);
        }
    }

    /// The other process, and nothing in this one: it leaves a file if the pause was its own to resume.
    #[test]
    fn takes_and_resumes() {
        let (Ok(number), Some(directory)) = (std::env::var(STORE), std::env::var_os(DIRECTORY)) else {
            return;
        };
        let open = stores()[number.parse::<usize>().unwrap()];
        let directory = PathBuf::from(directory);
        let Some(state) = open(&directory).take("talk").unwrap() else {
            return;
        };
        let mut batch = running(resume(&state, Decision::Retry, OnError::Proceed, known).unwrap());
        batch.on_outcome(3, returned("of d").with_writes(Writes::default().with("log", "d")));
        batch.on_outcome(1, returned("of b"));
        let context = finished(batch.finish(&log())).context;
        let result =
            format!(r#"{{"log":{},"digits":{}}}"#, context.get("log").unwrap(), context.get("digits").unwrap());
        fs::write(directory.join(format!("{}.result", std::process::id())), result).unwrap();
    }

    proptest! {
        // Each case waits for the disk.
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn any_pause_survives_any_store(state in any_pause(), key in "[^\0]{1,15}") {
            check(|directory, open| {
                open(directory).save(&key, &state).unwrap();
                assert_eq!(open(directory).take(&key).unwrap().as_ref(), Some(&state));
            });
        }
    }
}
