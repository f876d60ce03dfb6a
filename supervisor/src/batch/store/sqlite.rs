//! One row a key, in a database that several processes may have open.

use super::{PauseStore, StoreError};
use crate::batch::pause::{PauseState, UnreadablePause};
use rusqlite::{Connection, ErrorCode, OptionalExtension, TransactionBehavior};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long one process waits for another's transaction: 5 s, where each takes some milliseconds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How long it is left alone between two attempts to set it up: 5 ms.
const PAUSE: Duration = Duration::from_millis(5);

/// What `user_version` says of a database of this form.
const SCHEMA: i64 = 1;

/// A database of paused batches. Its journal is a write-ahead log, so it cannot be on a network file system.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    connection: Mutex<Connection>,
}

impl SqliteStore {
    /// A store in this file, which is made for this user alone if it is not there.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let path = path.into();
        // SQLite would make it readable for others; its log takes over the permissions of this file.
        OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(|source| StoreError::File { doing: "made", path: path.clone(), source })?;
        let mut connection = Connection::open(&path).map_err(database_error("opened", &path))?;
        let prepared = patiently(|| prepare(&mut connection)).map_err(database_error("set up", &path))?;
        prepared.map_err(|found| StoreError::Schema { path: path.clone(), found })?;
        Ok(Self { path, connection: Mutex::new(connection) })
    }

    /// A panic inside of SQLite's own calls leaves no transaction behind: it is rolled back as it is dropped.
    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unreadable(&self, key: &str, source: UnreadablePause) -> StoreError {
        StoreError::Unreadable { key: key.to_owned(), path: self.path.clone(), source }
    }
}

impl PauseStore for SqliteStore {
    fn save(&self, key: &str, state: &PauseState) -> Result<(), StoreError> {
        let json = state.to_json().map_err(|source| StoreError::Unstorable {
            key: key.to_owned(),
            path: self.path.clone(),
            source,
        })?;
        self.connection()
            .execute("INSERT OR REPLACE INTO pause (key, state) VALUES (?1, ?2)", (key, json))
            .map_err(database_error("written to", &self.path))?;
        Ok(())
    }

    fn load(&self, key: &str) -> Result<Option<PauseState>, StoreError> {
        let json = select(&self.connection(), key).map_err(database_error("read", &self.path))?;
        json.map(|json| PauseState::from_json(json.as_bytes()))
            .transpose()
            .map_err(|source| self.unreadable(key, source))
    }

    fn take(&self, key: &str) -> Result<Option<PauseState>, StoreError> {
        let mut connection = self.connection();
        let error = || database_error("written to", &self.path);
        // The lock is taken before the look: of two who take only one sees the row.
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(error())?;
        let Some(json) = select(&transaction, key).map_err(error())? else {
            return Ok(None);
        };
        // A transaction that is dropped is rolled back: what cannot be read stays.
        let state = PauseState::from_json(json.as_bytes()).map_err(|source| self.unreadable(key, source))?;
        transaction.execute("DELETE FROM pause WHERE key = ?1", [key]).map_err(error())?;
        transaction.commit().map_err(error())?;
        Ok(Some(state))
    }

    fn remove(&self, key: &str) -> Result<bool, StoreError> {
        let removed = self
            .connection()
            .execute("DELETE FROM pause WHERE key = ?1", [key])
            .map_err(database_error("written to", &self.path))?;
        Ok(removed > 0)
    }
}

fn select(connection: &Connection, key: &str) -> rusqlite::Result<Option<String>> {
    connection.query_row("SELECT state FROM pause WHERE key = ?1", [key], |row| row.get(0)).optional()
}

/// Tries again while another process has the database: SQLite waits for that by itself, but not where a file gets its
/// write-ahead log, which several that open a new one all want to do.
fn patiently<T>(mut attempt: impl FnMut() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let deadline = Instant::now() + BUSY_TIMEOUT;
    loop {
        match attempt() {
            Err(error) if is_busy(&error) && Instant::now() < deadline => thread::sleep(PAUSE),
            result => return result,
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Brings a new database into its form; `Err` in `Ok` says what else the database is.
fn prepare(connection: &mut Connection) -> rusqlite::Result<Result<(), String>> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    match transaction.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))? {
        SCHEMA => {}
        0 => {
            let tables: i64 = transaction.query_row("SELECT count(*) FROM sqlite_schema", (), |row| row.get(0))?;
            if tables > 0 {
                return Ok(Err("it has other tables".into()));
            }
            transaction.execute_batch("CREATE TABLE pause (key TEXT PRIMARY KEY, state TEXT NOT NULL) STRICT")?;
            transaction.pragma_update(None, "user_version", SCHEMA)?;
        }
        other => return Ok(Err(format!("its version is {other} and not {SCHEMA}"))),
    }
    transaction.commit()?;
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        return Ok(Err(format!("it cannot have a write-ahead log, its journal mode is {mode}")));
    }
    // Each commit reaches the disk, also in this journal mode: a row that was taken must not come back.
    connection.pragma_update(None, "synchronous", "FULL")?;
    Ok(Ok(()))
}

fn database_error(doing: &'static str, path: &Path) -> impl FnOnce(rusqlite::Error) -> StoreError {
    move |source| StoreError::Database { doing, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::script::paused_before;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use tempfile::TempDir;

    #[test]
    fn a_database_is_for_this_user_alone_and_so_is_its_log() {
        let directory = TempDir::new().unwrap();
        let store = SqliteStore::open(directory.path().join("pauses.db")).unwrap();
        store.save("talk", &paused_before()).unwrap();
        let mut seen = 0;
        for entry in fs::read_dir(directory.path()).unwrap() {
            assert_eq!(entry.unwrap().metadata().unwrap().permissions().mode() & 0o7777, 0o600);
            seen += 1;
        }
        assert!(seen >= 2, "{seen}");
    }

    #[test]
    fn what_cannot_be_read_is_named_and_stays() {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("pauses.db");
        let store = SqliteStore::open(&path).unwrap();
        store.connection().execute("INSERT INTO pause VALUES ('talk', '{\"version\":9}')", ()).unwrap();
        for error in [store.load("talk").unwrap_err(), store.take("talk").unwrap_err()] {
            assert_eq!(error.to_string(), format!("the pause of \"talk\" in {} cannot be resumed", path.display()));
            assert!(matches!(error, StoreError::Unreadable { source: UnreadablePause::Newer(9), .. }));
        }
        assert_eq!(select(&store.connection(), "talk").unwrap().as_deref(), Some("{\"version\":9}"));
        assert!(store.remove("talk").unwrap());
    }

    #[test]
    fn a_database_of_something_else_is_left_alone() {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("other.db");
        let other = Connection::open(&path).unwrap();
        other.execute_batch("CREATE TABLE mine (x)").unwrap();
        let error = SqliteStore::open(&path).unwrap_err();
        assert!(error.to_string().ends_with("this build understands: it has other tables"), "{error}");
        other.execute_batch("DROP TABLE mine; PRAGMA user_version = 7").unwrap();
        let error = SqliteStore::open(&path).unwrap_err();
        assert!(error.to_string().ends_with("its version is 7 and not 1"), "{error}");
        fs::write(&path, "x".repeat(4096)).unwrap();
        assert!(matches!(SqliteStore::open(&path), Err(StoreError::Database { .. })));
    }
}
