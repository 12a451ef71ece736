//! Where the tables of a run are: a file system of its own where the machine allows that, else a folder.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// How often a file system that is busy is asked to become read-only.
const TRIES: usize = 200;

/// The place of the tables.
#[derive(Debug)]
pub(super) enum Place {
    /// A file system in memory, of a fixed size: only root may mount one.
    Mounted(PathBuf),
    /// A folder.
    Folder(PathBuf),
}

impl Place {
    /// Makes it at this path.
    pub(super) fn make(path: &Path, size_mib: u64) -> Result<Self> {
        std::fs::create_dir_all(path)?;
        let options = format!("size={size_mib}m");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &options, "firn-tests"]).arg(path).output();
        match mounted {
            Ok(output) if output.status.success() => Ok(Self::Mounted(path.to_owned())),
            _ => Ok(Self::Folder(path.to_owned())),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Mounted(path) | Self::Folder(path) => path,
        }
    }

    /// Why it cannot be filled, where it cannot.
    pub(super) fn cannot_be_full(&self) -> Option<&'static str> {
        match self {
            Self::Mounted(_) => None,
            Self::Folder(_) => Some("no file system may be mounted here, so none can be filled"),
        }
    }

    /// Why it cannot be read-only, where it cannot.
    pub(super) fn cannot_be_read_only(&self) -> Option<&'static str> {
        // Root writes whatever the permissions say.
        let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| {
            use std::os::unix::fs::MetadataExt;
            own.uid() == 0
        });
        match self {
            Self::Folder(_) if is_root => {
                Some("root may write everywhere, and no file system may be mounted here")
            }
            _ => None,
        }
    }

    /// Lets nobody write.
    pub(super) fn set_read_only(&self) -> Result<()> {
        match self {
            Self::Mounted(path) => remount(path, "ro"),
            Self::Folder(path) => permit(path, "a-w"),
        }
    }

    /// Lets everybody write again.
    pub(super) fn set_writable(&self) -> Result<()> {
        match self {
            Self::Mounted(path) => remount(path, "rw"),
            Self::Folder(path) => permit(path, "u+w"),
        }
    }

    /// Fills it to the last byte.
    pub(super) fn fill(&self) -> Result<()> {
        let mut file = File::create(self.filler())?;
        for block in [vec![0; 1 << 20], vec![0; 4096]] {
            loop {
                match file.write_all(&block) {
                    Ok(()) => {}
                    Err(error) if error.kind() == ErrorKind::StorageFull => break,
                    Err(error) => return Err(error).context("filling the file system"),
                }
            }
        }
        Ok(())
    }

    /// Fills again what became free meanwhile.
    pub(super) fn top_up(&self) -> Result<()> {
        let mut file = OpenOptions::new().append(true).open(self.filler())?;
        while file.write_all(&[0; 4096]).is_ok() {}
        Ok(())
    }

    /// Makes room again.
    pub(super) fn make_room(&self) -> Result<()> {
        Ok(std::fs::remove_file(self.filler())?)
    }

    fn filler(&self) -> PathBuf {
        self.path().join("filler")
    }
}

fn remount(path: &Path, mode: &str) -> Result<()> {
    let mut said = String::new();
    for _ in 0..TRIES {
        let output = Command::new("mount").args(["-o", &format!("remount,{mode}")]).arg(path).output()?;
        if output.status.success() {
            return Ok(());
        }
        // A file is open for writing this moment.
        said = String::from_utf8_lossy(&output.stderr).into_owned();
        std::thread::sleep(Duration::from_millis(10));
    }
    ensure!(said.is_empty(), "{} cannot be made {mode}: {said}", path.display());
    Ok(())
}

fn permit(path: &Path, mode: &str) -> Result<()> {
    let status = Command::new("chmod").args(["-R", mode]).arg(path).status()?;
    ensure!(status.success(), "chmod {mode} {}", path.display());
    Ok(())
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Self::Mounted(path) = self {
            // What is left over ends with the last process that uses it.
            let _ = Command::new("umount").arg("-l").arg(path).status();
        }
    }
}
