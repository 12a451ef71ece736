//! File writers: encode on worker threads, upload, a bounded number at a time.

use std::sync::Arc;
use std::time::Duration;

use firn_table::files::{EncodedFile, FileTarget, NewFile, data_file_location, upload};
use firn_table::storage::Stores;
use object_store::ObjectStoreExt;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::flush::Buffer;
use super::order::RowOrder;
use super::{Cpu, on_cpu};
use crate::{Error, ErrorKind, Result};

/// Files on their way to the store.
#[derive(Debug)]
pub(crate) struct FileWrites {
    lanes: Lanes,
    tasks: JoinSet<FileDone>,
}

/// What all file writers share.
#[derive(Debug, Clone)]
struct Lanes {
    stores: Stores,
    cpu: Cpu,
    order: RowOrder,
    uploads: Arc<Semaphore>,
    cores: Arc<Semaphore>,
}

/// A file to be written.
#[derive(Debug)]
pub(crate) struct FileWork {
    /// The flush it belongs to.
    pub flush: u64,
    pub name: String,
    pub buffer: Buffer,
    /// The flush was discarded.
    pub discarded: CancellationToken,
}

/// What became of a file.
#[derive(Debug)]
pub(crate) struct FileDone {
    pub flush: u64,
    pub outcome: Result<Option<NewFile>>,
    pub encode: Duration,
    pub upload: Duration,
}

/// The first and the longest wait between two tries of an upload.
const FIRST_RETRY_WAIT: Duration = Duration::from_millis(50);
const MAX_RETRY_WAIT: Duration = Duration::from_secs(5);

impl FileWrites {
    pub(crate) fn new(stores: Stores, cpu: Cpu, order: RowOrder, concurrency: usize) -> Self {
        let uploads = Arc::new(Semaphore::new(concurrency));
        let cores = Arc::new(Semaphore::new(cpu.parallelism()));
        Self { lanes: Lanes { stores, cpu, order, uploads, cores }, tasks: JoinSet::new() }
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.tasks.len()
    }

    pub(crate) fn start(&mut self, work: FileWork) {
        let lanes = self.lanes.clone();
        self.tasks.spawn(async move {
            let (flush, discarded) = (work.flush, work.discarded.clone());
            let mut done = FileDone::nothing(flush);
            let Ok(_slot) = lanes.uploads.acquire().await else { return done };
            if discarded.is_cancelled() {
                return done;
            }
            done.outcome = lanes.write(work, &mut done.encode, &mut done.upload).await;
            if discarded.is_cancelled()
                && let Ok(Some(file)) = &done.outcome
            {
                delete(&lanes.stores, std::slice::from_ref(file)).await;
                done.outcome = Ok(None);
            }
            done
        });
    }

    /// The next finished file; pending for ever where none is being written. Safe to cancel.
    pub(crate) async fn next(&mut self) -> Result<FileDone> {
        match self.tasks.join_next().await {
            Some(Ok(done)) => Ok(done),
            Some(Err(e)) => Err(Error::new(ErrorKind::Internal, "a file writer panicked").with_source(e)),
            None => std::future::pending().await,
        }
    }

    /// Deletes files that no commit was ever asked to hold.
    pub(crate) fn delete_unsent(&mut self, flush: u64, files: impl IntoIterator<Item = NewFile>) {
        let files: Vec<NewFile> = files.into_iter().collect();
        if files.is_empty() {
            return;
        }
        let stores = self.lanes.stores.clone();
        self.tasks.spawn(async move {
            delete(&stores, &files).await;
            FileDone::nothing(flush)
        });
    }
}

impl FileDone {
    fn nothing(flush: u64) -> Self {
        Self { flush, outcome: Ok(None), encode: Duration::ZERO, upload: Duration::ZERO }
    }
}

impl Lanes {
    async fn write(
        &self,
        work: FileWork,
        encode_time: &mut Duration,
        upload_time: &mut Duration,
    ) -> Result<Option<NewFile>> {
        let FileWork { name, buffer, discarded, .. } = work;
        let Buffer { shape, partition, batches, mut charge, .. } = buffer;
        let location = data_file_location(&shape.table, &shape.spec, &partition, &name)?;
        let encoded = {
            let Ok(_core) = self.cores.acquire().await else { return Ok(None) };
            let began = Instant::now();
            let (order, format) = (self.order, shape.format.clone());
            let encoded = on_cpu(self.cpu, move || order.encode(&format, &batches)).await??;
            *encode_time = began.elapsed();
            encoded
        };
        let Some(encoded) = encoded else { return Ok(None) };
        charge.set(encoded.bytes().len());
        let target = FileTarget { spec: Arc::clone(&shape.spec), partition, location };
        let began = Instant::now();
        let stored = self.upload(&target, &encoded, &discarded).await;
        *upload_time = began.elapsed();
        stored
    }

    /// Uploads until the store takes the file. The name is this file's alone, so a second try overwrites nothing else.
    async fn upload(
        &self,
        target: &FileTarget,
        encoded: &EncodedFile,
        discarded: &CancellationToken,
    ) -> Result<Option<NewFile>> {
        let mut wait = FIRST_RETRY_WAIT;
        loop {
            match upload(&self.stores, target, encoded.clone()).await {
                Ok(file) => return Ok(Some(file)),
                Err(e) if e.kind() == ErrorKind::Unavailable && !discarded.is_cancelled() => {
                    tracing::warn!(location = target.location, error = %e, "upload failed, trying again");
                    tokio::select! {
                        biased;
                        () = discarded.cancelled() => return Ok(None),
                        () = tokio::time::sleep(wait) => wait = (wait * 2).min(MAX_RETRY_WAIT),
                    }
                }
                Err(e) => return Err(e),
            }
        }
    }
}

/// Deletes files that no commit was asked to hold.
pub(super) async fn delete(stores: &Stores, files: &[NewFile]) {
    for file in files {
        let location = file.file.file_path();
        let deleted = match stores.resolve(location) {
            Ok((store, path)) => store.delete(&path).await.map_err(|e| e.to_string()),
            Err(e) => Err(e.to_string()),
        };
        if let Err(error) = deleted {
            tracing::warn!(location, error, "a discarded file stays behind for orphan removal");
        }
    }
}
