//! Removing a scratch directory, whatever a tool left in it.
//!
//! A tool may leave a tree a hundred thousand levels deep, millions of entries, directories that their owner may
//! not enter, links to anywhere. Nothing here recurses, holds more than a handful of descriptors or spells a path
//! longer than one name: a directory that is not empty is moved up into the root of the tree under a fresh name,
//! and emptied there, so that no directory is ever more than two levels below the root when its turn comes. Each
//! is moved at most once.
//!
//! Symbolic links are removed and never followed. A mount point is not entered: the kernel refuses its removal
//! with `EBUSY` before it looks whether it is empty, and only what is "not empty" is entered.

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, SeekFrom};
use rustix::fs::{chmodat, fchmod, fstat, openat, renameat, seek, unlinkat};
use rustix::io::Errno;
use rustix::path::Arg;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

/// Removes the directory `name` of `parent` and all that is in it. What is not there counts as removed; what is
/// not a directory is removed too.
///
/// An empty directory costs one system call. The tool's processes should be dead: one that goes on making files
/// keeps this busy (up to a bound that no dead tree reaches), and can lead it nowhere else.
///
/// # Errors
/// `EINVAL` when `name` is not one component of a path; `ENOTEMPTY` when somebody still writes into the tree;
/// else what the kernel said about an entry that cannot be removed. If that is not `name` itself, everything that
/// can be removed is gone by then.
pub fn remove_tree(parent: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    // The kernel would follow links in the middle of a path, and `..` leads out of the tree.
    if matches!(name.as_bytes(), b"" | b"." | b"..") || name.as_bytes().contains(&b'/') {
        return Err(Errno::INVAL.into());
    }
    match remove_entry(parent, name, FileType::Directory)? {
        Removal::Gone => Ok(()),
        Removal::NotEmpty => match open_directory(parent, name) {
            Ok(root) => Ok(Tree::new(parent, name, root.as_fd()).remove()?),
            Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        },
    }
}

/// How often the root is read. Once is enough on most file systems, some skip entries while others are removed,
/// and where a directory takes only so many subdirectories each round makes room for that many more.
const MOST_ROUNDS: u32 = 10_000;

/// Each directory is read in pieces of this many bytes; one entry is at most 280.
const READ_BUFFER: usize = 16 * 1024;

/// A tree on its way out.
struct Tree<'a> {
    parent: BorrowedFd<'a>,
    name: &'a OsStr,
    root: BorrowedFd<'a>,
    /// The number that names the next directory moved up.
    next: u64,
    /// The number of the first directory moved up that was not looked at yet.
    pending: u64,
    /// What one round did.
    round: Round,
}

#[derive(Default)]
struct Round {
    /// Entries that were removed or moved. A round without any is the last.
    progress: u64,
    /// Why an entry could not be removed. It counts only without progress: a full disk may have room later.
    obstacle: Option<Errno>,
}

impl<'a> Tree<'a> {
    fn new(parent: BorrowedFd<'a>, name: &'a OsStr, root: BorrowedFd<'a>) -> Self {
        Self { parent, name, root, next: 0, pending: 0, round: Round::default() }
    }

    fn remove(mut self) -> Result<(), Errno> {
        let (mut of_root, mut of_directory) = (Vec::with_capacity(READ_BUFFER), Vec::with_capacity(READ_BUFFER));
        for _ in 0..MOST_ROUNDS {
            self.round = Round::default();
            self.empty_root(&mut of_root, &mut of_directory)?;
            match remove_entry(self.parent, self.name, FileType::Directory)? {
                Removal::Gone => return Ok(()),
                Removal::NotEmpty if self.round.progress == 0 => break,
                Removal::NotEmpty => {}
            }
        }
        Err(self.round.obstacle.unwrap_or(Errno::NOTEMPTY))
    }

    /// Reads the root once and removes what it meets.
    fn empty_root(&mut self, of_root: &mut Vec<u8>, of_directory: &mut Vec<u8>) -> Result<(), Errno> {
        let root = self.root;
        seek(root, SeekFrom::Start(0))?;
        let mut entries = RawDir::new(root, of_root.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = entry?;
            if matches!(entry.file_name().to_bytes(), b"." | b"..") {
                continue;
            }
            match remove_entry(root, entry.file_name(), entry.file_type()) {
                Ok(Removal::Gone) => self.round.progress += 1,
                Ok(Removal::NotEmpty) => self.empty_directory(entry.file_name(), of_directory),
                Err(error) => self.round.obstacle = Some(error),
            }
            // At once, so that the root stays short while it is read.
            while self.pending < self.next {
                let name = self.pending.to_string();
                self.pending += 1;
                self.empty_directory(name.as_str(), of_directory);
            }
        }
        Ok(())
    }

    /// Removes what is in a directory of the root, moves up what is not empty, then removes the directory.
    fn empty_directory(&mut self, name: impl Arg + Copy, buffer: &mut Vec<u8>) {
        match self.try_to_empty(name, buffer) {
            // `NOTDIR` and `LOOP`: the tool gave a file or a link the name of a directory that was to be moved
            // up. It has its turn when the root is read.
            Ok(()) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
            Err(error) => self.round.obstacle = Some(error),
        }
    }

    fn try_to_empty(&mut self, name: impl Arg + Copy, buffer: &mut Vec<u8>) -> Result<(), Errno> {
        let directory = open_directory(self.root, name)?;
        let mut entries = RawDir::new(directory.as_fd(), buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let inner = entry.file_name();
            if matches!(inner.to_bytes(), b"." | b"..") {
                continue;
            }
            let done = match remove_entry(directory.as_fd(), inner, entry.file_type()) {
                Ok(Removal::Gone) => Ok(()),
                Ok(Removal::NotEmpty) => self.move_up(directory.as_fd(), inner),
                Err(error) => Err(error),
            };
            match done {
                Ok(()) => self.round.progress += 1,
                Err(error) => self.round.obstacle = Some(error),
            }
        }
        // A directory that is still not empty is met again when the root is read the next time.
        if let Removal::Gone = remove_entry(self.root, name, FileType::Directory)? {
            self.round.progress += 1;
        }
        Ok(())
    }

    /// Moves a directory into the root, under the next number that the tool has not used for a name.
    fn move_up(&mut self, from: BorrowedFd<'_>, name: impl Arg + Copy) -> Result<(), Errno> {
        let mut made_accessible = false;
        loop {
            match renameat(from, name, self.root, self.next.to_string()) {
                Ok(()) => {
                    self.next += 1;
                    return Ok(());
                }
                Err(Errno::NOENT) => return Ok(()),
                // A directory that is not empty, or something else, has that name. An empty directory is replaced.
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => self.next += 1,
                // The directory's own `..` changes, for which its owner needs leave to write to it.
                Err(Errno::ACCESS) if !made_accessible => {
                    make_accessible(from, name)?;
                    made_accessible = true;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// What became of an entry.
enum Removal {
    Gone,
    /// It is a directory with something in it.
    NotEmpty,
}

/// Removes an entry unless it is a directory with something in it. `kind` saves a system call where it is right.
fn remove_entry(directory: BorrowedFd<'_>, name: impl Arg + Copy, kind: FileType) -> Result<Removal, Errno> {
    if kind != FileType::Directory {
        match unlinkat(directory, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => return Ok(Removal::Gone),
            // Linux says `ISDIR` of a directory and POSIX `PERM`.
            Err(Errno::ISDIR | Errno::PERM) => {}
            Err(error) => return Err(error),
        }
    }
    match unlinkat(directory, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(Removal::Gone),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(Removal::NotEmpty),
        Err(Errno::NOTDIR) => match unlinkat(directory, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(Removal::Gone),
            Err(error) => Err(error),
        },
        Err(error) => Err(error),
    }
}

/// Opens a directory for reading, and sees to it that its owner may change what is in it.
fn open_directory(at: BorrowedFd<'_>, name: impl Arg + Copy) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = match openat(at, name, flags, Mode::empty()) {
        Err(Errno::ACCESS) => {
            make_accessible(at, name)?;
            openat(at, name, flags, Mode::empty())?
        }
        opened => opened?,
    };
    if !Mode::from_raw_mode(fstat(&directory)?.st_mode).contains(Mode::RWXU) {
        // Who may not do this may still be allowed to remove entries, as root is; who may not is told then.
        let _ = fchmod(&directory, Mode::RWXU);
    }
    Ok(directory)
}

/// Gives a directory's owner every permission on it.
///
/// fchmodat(2) follows a link in the place of the name, and fchmod(2) wants a descriptor that could be opened;
/// the way through `/proc/self/fd` needs neither.
fn make_accessible(at: BorrowedFd<'_>, name: impl Arg) -> Result<(), Errno> {
    let place = openat(at, name, OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    match chmodat(CWD, format!("/proc/self/fd/{}", place.as_raw_fd()), Mode::RWXU, AtFlags::empty()) {
        // No `/proc` here: the directory is there all the same, and stays closed.
        Err(Errno::NOENT) => Err(Errno::ACCESS),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{IFlags, ioctl_setflags, mkdirat, mknodat, symlinkat};
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    use std::fs::{self, File};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use tempfile::TempDir;

    /// A directory with a tree to be removed, and beside it what has to survive.
    struct Room {
        directory: TempDir,
        opened: OwnedFd,
    }

    impl Room {
        /// In memory where there is such a place: some of the trees are large.
        fn new() -> Self {
            let directory = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap();
            let opened = File::open(directory.path()).unwrap().into();
            Self { directory, opened }
        }

        fn with_tree() -> Self {
            let room = Self::new();
            fs::create_dir(room.tree()).unwrap();
            room
        }

        fn tree(&self) -> PathBuf {
            self.path("tree")
        }

        fn path(&self, name: &str) -> PathBuf {
            self.directory.path().join(name)
        }

        /// Removes the tree, and looks whether exactly that is gone.
        #[track_caller]
        fn check(&self) {
            let before = self.names();
            self.remove("tree").unwrap();
            let after: Vec<_> = before.into_iter().filter(|name| name != "tree").collect();
            assert_eq!(self.names(), after);
        }

        fn remove(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
            remove_tree(self.opened.as_fd(), name.as_ref())
        }

        fn names(&self) -> Vec<String> {
            let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
            let mut names: Vec<_> = fs::read_dir(self.directory.path()).unwrap().map(name).collect();
            names.sort();
            names
        }
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
    }

    /// Makes `depth` directories inside one another without ever spelling a long path.
    fn dig(from: &Path, depth: usize, name: &str) {
        let mut at: OwnedFd = File::open(from).unwrap().into();
        for _ in 0..depth {
            mkdirat(&at, name, Mode::RWXU).unwrap();
            at = openat(&at, name, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        }
    }

    #[test]
    fn what_is_not_there_is_removed_already() {
        Room::new().remove("tree").unwrap();
    }

    #[test]
    fn an_empty_directory_goes() {
        Room::with_tree().check();
    }

    #[test]
    fn only_a_single_name_is_taken() {
        let room = Room::with_tree();
        fs::create_dir_all(room.path("tree/inner")).unwrap();
        for name in ["", ".", "..", "/", "tree/inner", "tree/", "/tmp", "./tree", "../tree"] {
            let error = room.remove(name).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(Errno::INVAL.raw_os_error()), "{name:?}");
        }
        room.remove(OsStr::from_bytes(b"tree\0x")).unwrap_err();
        room.remove("x".repeat(256)).unwrap_err();
        assert!(room.path("tree/inner").exists());
    }

    #[test]
    fn every_kind_of_entry_goes() {
        let room = Room::with_tree();
        let tree = room.tree();
        for directory in [tree.clone(), tree.join("a"), tree.join("a/b"), tree.join("a/b/c")] {
            fs::create_dir_all(&directory).unwrap();
            let at = File::open(&directory).unwrap();
            fs::write(directory.join("file"), "x").unwrap();
            fs::hard_link(directory.join("file"), directory.join("hard link")).unwrap();
            fs::create_dir(directory.join("empty")).unwrap();
            mknodat(&at, "fifo", FileType::Fifo, Mode::RUSR, 0).unwrap();
            mknodat(&at, "socket", FileType::Socket, Mode::empty(), 0).unwrap();
            let name_of_255_bytes = "é".repeat(127) + "x";
            fs::create_dir(directory.join(&name_of_255_bytes)).unwrap();
            fs::write(directory.join(&name_of_255_bytes).join(&name_of_255_bytes), "x").unwrap();
            fs::write(directory.join(OsStr::from_bytes(b"\xff\n\x01 *")), "x").unwrap();
            fs::write(directory.join("-rf"), "x").unwrap();
            fs::write(directory.join("..."), "x").unwrap();
        }
        let _bound = UnixListener::bind(tree.join("listening")).unwrap();
        room.check();
    }

    #[test]
    fn links_are_removed_and_never_followed() {
        let room = Room::with_tree();
        let victim = room.path("victim");
        fs::create_dir_all(victim.join("inner")).unwrap();
        fs::write(victim.join("inner/file"), "precious").unwrap();
        set_mode(&victim, 0o755);
        for directory in [room.tree(), room.path("tree/a"), room.path("tree/a/b"), room.path("tree/closed")] {
            fs::create_dir_all(&directory).unwrap();
            let at = File::open(&directory).unwrap();
            symlinkat(&victim, &at, "absolute").unwrap();
            symlinkat("../victim", &at, "up").unwrap();
            symlinkat("../../victim", &at, "upper").unwrap();
            symlinkat(victim.join("inner/file"), &at, "to a file").unwrap();
            symlinkat("loop", &at, "loop").unwrap();
            symlinkat("/nowhere", &at, "dangling").unwrap();
            symlinkat("..", &at, "parent").unwrap();
            // In the place of directories that are to be moved up.
            (0..4).for_each(|number| symlinkat(&victim, &at, number.to_string()).unwrap());
        }
        set_mode(&room.path("tree/closed"), 0);
        room.check();
        assert_eq!(fs::read_to_string(victim.join("inner/file")).unwrap(), "precious");
        assert_eq!(mode(&victim), 0o755);
    }

    #[test]
    fn a_link_in_the_place_of_the_tree_goes_and_not_its_goal() {
        let room = Room::new();
        fs::create_dir(room.path("victim")).unwrap();
        fs::write(room.path("victim/file"), "precious").unwrap();
        symlinkat("victim", &room.opened, "tree").unwrap();
        room.check();
        assert!(room.path("victim/file").exists());
        fs::write(room.tree(), "a file").unwrap();
        room.check();
    }

    /// For root every directory is open; an ordinary user is who this is for.
    #[test]
    fn closed_directories_go() {
        let room = Room::with_tree();
        let modes = [0o000, 0o100, 0o200, 0o300, 0o400, 0o500, 0o600, 0o1777, 0o1000, 0o3700, 0o007];
        let mut closed = vec![(room.tree(), 0)];
        for outer in modes {
            for inner in modes {
                let directory = room.path(&format!("tree/{outer:o}/{inner:o}"));
                fs::create_dir_all(directory.join("more/inside")).unwrap();
                fs::write(directory.join("file"), "x").unwrap();
                set_mode(&directory.join("file"), 0);
                set_mode(&directory.join("more/inside"), 0);
                set_mode(&directory.join("more"), inner);
                closed.push((directory, inner));
            }
            let empty = room.path(&format!("tree/{outer:o}/empty"));
            fs::create_dir(&empty).unwrap();
            set_mode(&empty, 0);
            closed.push((room.path(&format!("tree/{outer:o}")), outer));
        }
        closed.sort_by_key(|(path, _)| std::cmp::Reverse(path.components().count()));
        closed.iter().for_each(|(path, mode)| set_mode(path, *mode));
        room.check();
    }

    #[test]
    fn names_that_directories_would_be_given_are_no_obstacle() {
        let room = Room::with_tree();
        for number in 0..60 {
            let taken = room.tree().join(number.to_string());
            match number % 4 {
                0 => fs::write(taken, "x").unwrap(),
                1 => fs::create_dir_all(taken.join(number.to_string()).join("1/2/3/0/1")).unwrap(),
                2 => fs::create_dir(taken).unwrap(),
                _ => symlinkat("..", CWD, taken).unwrap(),
            }
        }
        for outer in 0..5 {
            for number in 0..20 {
                fs::create_dir_all(room.path(&format!("tree/deep {outer}/{number}/{number}/{number}"))).unwrap();
            }
        }
        room.check();
    }

    /// It runs a second time in a process of its own, whose descriptors and stack are few.
    #[test]
    fn a_hundred_thousand_levels_take_few_descriptors_and_little_stack() {
        const ALONE: &str = "TOOLEXEC_TEST_ALONE";
        if std::env::var_os(ALONE).is_none() {
            let test = "scratch::tests::a_hundred_thousand_levels_take_few_descriptors_and_little_stack";
            let output = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", test, "--nocapture"])
                .env(ALONE, "1")
                .output()
                .unwrap();
            let told = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && told.contains("1 passed"), "{told}{output:?}");
            return;
        }
        let room = Room::with_tree();
        dig(&room.tree(), 100_000, &"d".repeat(255));
        dig(&room.tree(), 1_000, "0");
        let limit = Rlimit { current: Some(12), ..getrlimit(Resource::Nofile) };
        setrlimit(Resource::Nofile, limit).unwrap();
        std::thread::scope(|scope| {
            let small = std::thread::Builder::new().stack_size(64 * 1024);
            small.spawn_scoped(scope, || room.check()).unwrap().join().unwrap();
        });
    }

    #[test]
    fn many_entries_go() {
        let room = Room::with_tree();
        fill(&room.tree(), 20_000, 3_000);
        room.check();
    }

    /// Files in one directory, and directories with three entries each in another.
    fn fill(tree: &Path, files: usize, directories: usize) {
        fs::create_dir_all(tree.join("files")).unwrap();
        fs::create_dir_all(tree.join("directories")).unwrap();
        let at = File::open(tree.join("files")).unwrap();
        for number in 0..files {
            mknodat(&at, format!("file {number}"), FileType::RegularFile, Mode::RUSR, 0).unwrap();
        }
        let at = File::open(tree.join("directories")).unwrap();
        for number in 0..directories {
            mkdirat(&at, number.to_string(), Mode::RWXU).unwrap();
            mkdirat(&at, format!("{number}/inner"), Mode::RWXU).unwrap();
            mknodat(&at, format!("{number}/inner/file"), FileType::RegularFile, Mode::RUSR, 0).unwrap();
            mkdirat(&at, format!("{number}/empty"), Mode::RWXU).unwrap();
        }
    }

    /// Root is stopped by an immutable file only, where the file system has such a thing; anyone else by a parent
    /// that may not be changed.
    #[test]
    fn what_cannot_go_is_told() {
        let room = Room::with_tree();
        fs::create_dir_all(room.path("tree/a/b/c")).unwrap();
        fs::write(room.path("tree/a/b/stays"), "x").unwrap();
        let stays = File::open(room.path("tree/a/b/stays")).unwrap();
        let error = if ioctl_setflags(&stays, IFlags::IMMUTABLE).is_ok() {
            let error = room.remove("tree").unwrap_err();
            ioctl_setflags(&stays, IFlags::empty()).unwrap();
            assert!(room.tree().exists());
            error
        } else if rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: nothing stops root on this file system");
            return;
        } else {
            set_mode(room.directory.path(), 0o500);
            let error = room.remove("tree").unwrap_err();
            set_mode(room.directory.path(), 0o700);
            error
        };
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(room.names(), ["tree"]);
        room.check();
    }
}
