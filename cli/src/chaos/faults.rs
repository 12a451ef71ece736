//! What rules do to requests, one function per kind of fault.
//!
//! A request that is to be forwarded whatever the client does is read whole before anything is done with it, and then
//! forwarded by a task of its own: a client that has gone away does not take it along.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{CONTENT_LENGTH, HeaderMap, HeaderValue, TRANSFER_ENCODING};
use hyper::{Request, Response, StatusCode};
use tokio::sync::OwnedSemaphorePermit;

use super::body::{Body, Kept, cut, drain, keep, sendable, slow};
use super::journal::Touched;
use super::properties;
use super::proxy::{Proxy, Reset};
use super::rule::{Fault, Instead};
use super::upstream::NoReply;
use super::{answers, body};

/// The longest body that is kept; a longer one is forwarded as it comes.
const KEPT_BYTES: usize = 64 * 1024 * 1024;

/// What all kept bodies may take together; further requests wait.
pub(super) const ALL_KEPT_KIB: usize = 256 * 1024;

type Reply = Result<Response<Body>, Reset>;

/// Does what a rule says to a request.
pub(super) async fn act(proxy: Arc<Proxy>, rule: usize, fault: Fault, request: Request<Body>) -> Reply {
    let touched = Touched {
        rule: Some(rule),
        method: request.method().to_string(),
        target: request.uri().to_string(),
        did: fault.to_string(),
        upstream_status: None,
        note: None,
    };
    let act = Act { proxy, touched };
    match fault {
        Fault::Status(answer) => act.refuse(request, answers::made(&answer)).await,
        Fault::SlowDown => act.refuse(request, answers::slow_down()).await,
        Fault::Hang => {
            act.done();
            // The client may well wait for its request to be taken before it waits for the reply.
            let _ = drain(request.into_body()).await;
            pending().await
        }
        Fault::Reset => {
            act.done();
            Err(Reset)
        }
        Fault::Truncate(bytes) => act.change_reply(request, |body| cut(body, bytes)).await,
        Fault::TruncateRequest(bytes) => {
            act.change_reply(request.map(|body| cut(body, bytes)), |body| body).await
        }
        Fault::Slow(rate) => {
            act.change_reply(request.map(|body| slow(body, rate)), |body| slow(body, rate)).await
        }
        kept => act.keep(kept, request).await,
    }
}

/// A fault at work on one request.
#[derive(Debug)]
struct Act {
    proxy: Arc<Proxy>,
    touched: Touched,
}

/// A request that was read whole, with the memory that it takes.
#[derive(Debug)]
struct KeptRequest {
    request: Request<Bytes>,
    _memory: OwnedSemaphorePermit,
}

impl Act {
    fn done(&self) {
        self.proxy.journal.touched(&self.touched);
    }

    fn note(&mut self, note: impl Into<String>) {
        self.touched.note = Some(note.into());
    }

    /// Answers here. The request is read first: a client that still sends would not see the answer.
    async fn refuse(self, request: Request<Body>, answer: Response<Body>) -> Reply {
        let _ = drain(request.into_body()).await;
        self.done();
        Ok(answer)
    }

    /// Forwards, and passes the reply on with its body changed.
    async fn change_reply(mut self, request: Request<Body>, change: impl FnOnce(Body) -> Body) -> Reply {
        let reply = self.proxy.upstream.send(request).await;
        let reply = self.finish(reply)?;
        Ok(reply.map(change))
    }

    /// Notes how a forwarded request ended.
    fn finish(&mut self, reply: Result<Response<Body>, NoReply>) -> Reply {
        match reply {
            Ok(reply) => {
                self.touched.upstream_status = Some(reply.status().as_u16());
                self.done();
                Ok(reply)
            }
            Err(error) => {
                self.note(error.to_string());
                self.done();
                self.proxy.without_reply(&error)
            }
        }
    }

    /// Reads the request whole, and forwards it in a task of its own.
    async fn keep(mut self, fault: Fault, request: Request<Body>) -> Reply {
        let memory = self.memory(request.headers()).await;
        let request = match keep(request, KEPT_BYTES).await {
            Ok(Kept::Whole(request)) => KeptRequest { request, _memory: memory },
            Ok(Kept::TooLong(request)) => {
                self.note(format!("its body is longer than {KEPT_BYTES} bytes: forwarded as it is"));
                let reply = self.proxy.upstream.send(request).await;
                return self.finish(reply);
            }
            Err(error) => {
                self.note(error.to_string());
                self.done();
                return Err(Reset);
            }
        };
        let instead = match fault {
            Fault::Late(_) => {
                Some(answers::said(StatusCode::GATEWAY_TIMEOUT, "firn chaos: Gateway Timeout\n"))
            }
            _ => None,
        };
        let forwarding = tokio::spawn(self.forward(fault, request));
        match instead {
            Some(answer) => Ok(answer),
            // It is cancelled when the program ends, and then nobody waits for the reply.
            None => forwarding.await.unwrap_or(Err(Reset)),
        }
    }

    /// Waits until there is memory for a request.
    async fn memory(&self, headers: &HeaderMap) -> OwnedSemaphorePermit {
        let declared = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        let bytes = if headers.contains_key(TRANSFER_ENCODING) { KEPT_BYTES } else { declared.unwrap_or(0) };
        let kib = u32::try_from(bytes.min(KEPT_BYTES) / 1024 + 1).unwrap_or(u32::MAX);
        let semaphore = Arc::clone(&self.proxy.kept_kib);
        semaphore.acquire_many_owned(kib).await.expect("nobody closes the semaphore")
    }

    async fn forward(mut self, fault: Fault, kept: KeptRequest) -> Reply {
        let request = &kept.request;
        match fault {
            Fault::ApplyThen(instead) => self.apply_then(request, instead).await,
            Fault::Delay(time) | Fault::Late(time) => self.later(request, time).await,
            Fault::DropProperties(prefix) => self.drop_properties(request, &prefix).await,
            _ => self.duplicate(request).await,
        }
    }

    async fn send(&self, request: &Request<Bytes>) -> Result<Response<Body>, NoReply> {
        self.proxy.upstream.send(sendable(request)).await
    }

    /// Whether the upstream is done with a request shows only when its whole reply has come.
    async fn send_and_drop_reply(&self, request: &Request<Bytes>) -> Result<StatusCode, NoReply> {
        let reply = self.send(request).await?;
        let status = reply.status();
        let _ = drain(reply.into_body()).await;
        Ok(status)
    }

    async fn apply_then(&mut self, request: &Request<Bytes>, instead: Instead) -> Reply {
        match self.send_and_drop_reply(request).await {
            Ok(status) => self.touched.upstream_status = Some(status.as_u16()),
            Err(error) => self.note(error.to_string()),
        }
        self.done();
        match instead {
            Instead::Answer(answer) => Ok(answers::made(&answer)),
            Instead::Reset => Err(Reset),
        }
    }

    async fn later(&mut self, request: &Request<Bytes>, time: Duration) -> Reply {
        tokio::time::sleep(time).await;
        let reply = self.send(request).await;
        self.finish(reply)
    }

    async fn drop_properties(&mut self, request: &Request<Bytes>, prefix: &str) -> Reply {
        let Some((json, removed)) = properties::without(request.body(), prefix) else {
            self.note("its body is no JSON: forwarded as it is");
            let reply = self.send(request).await;
            return self.finish(reply);
        };
        self.note(format!("{removed} properties removed"));
        let length = HeaderValue::from(json.len());
        let mut changed = sendable(request);
        *changed.body_mut() = body::full(json);
        if changed.headers().contains_key(CONTENT_LENGTH) {
            changed.headers_mut().insert(CONTENT_LENGTH, length);
        }
        let reply = self.proxy.upstream.send(changed).await;
        self.finish(reply)
    }

    async fn duplicate(&mut self, request: &Request<Bytes>) -> Reply {
        let first = match self.send_and_drop_reply(request).await {
            Ok(status) => format!("the first reply was {}", status.as_u16()),
            Err(error) => format!("the first had {error}"),
        };
        self.note(first);
        let reply = self.send(request).await;
        self.finish(reply)
    }
}
