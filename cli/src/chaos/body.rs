//! Bodies on their way: whole, kept, cut, slowed.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use hyper::{Request, header};

/// A body of either side.
pub(super) type Body = UnsyncBoxBody<Bytes, BodyError>;

/// Why a body ends early.
#[derive(Debug)]
pub(super) enum BodyError {
    /// A rule cut it.
    Cut,
    /// The side that sends it broke off.
    Broken(hyper::Error),
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut => f.write_str("the body was cut by a rule"),
            Self::Broken(error) => write!(f, "the body broke off: {error}"),
        }
    }
}

impl Error for BodyError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Cut => None,
            Self::Broken(error) => Some(error),
        }
    }
}

/// A body as it comes.
pub(super) fn passing(body: hyper::body::Incoming) -> Body {
    body.map_err(BodyError::Broken).boxed_unsync()
}

/// A body made of these bytes.
pub(super) fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// Reads a body to its end, and forgets it.
pub(super) async fn drain(mut body: Body) -> Result<(), BodyError> {
    while let Some(frame) = body.frame().await {
        frame?;
    }
    Ok(())
}

/// A request whose body was read before anything is done with it.
#[derive(Debug)]
pub(super) enum Kept {
    /// All of it.
    Whole(Request<Bytes>),
    /// It is longer than is kept: what was read, and the rest as it comes.
    TooLong(Request<Body>),
}

/// Reads a request's body, as long as it is no longer than `limit`. Trailers are dropped.
pub(super) async fn keep(request: Request<Body>, limit: usize) -> Result<Kept, BodyError> {
    let (head, mut body) = request.into_parts();
    let mut read: Vec<Bytes> = Vec::new();
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        length += data.len();
        read.push(data);
        if length > limit {
            return Ok(Kept::TooLong(Request::from_parts(head, chained(read, body))));
        }
    }
    Ok(Kept::Whole(Request::from_parts(head, read.concat().into())))
}

fn chained(read: Vec<Bytes>, rest: Body) -> Body {
    let frames = stream::unfold((read.into_iter(), rest), |(mut read, mut rest)| async move {
        let next = match read.next() {
            Some(bytes) => Ok(Frame::data(bytes)),
            None => rest.frame().await?,
        };
        Some((next, (read, rest)))
    });
    StreamBody::new(frames).boxed_unsync()
}

/// A kept request to be sent; its length is said as it was.
pub(super) fn sendable(request: &Request<Bytes>) -> Request<Body> {
    let mut copy = Request::new(full(request.body().clone()));
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.version_mut() = request.version();
    *copy.headers_mut() = request.headers().clone();
    *copy.extensions_mut() = request.extensions().clone();
    // It was answered when the body was read.
    copy.headers_mut().remove(header::EXPECT);
    copy
}

/// A body that passes so many bytes, and then breaks off; one that is not longer passes whole.
pub(super) fn cut(body: Body, bytes: u64) -> Body {
    Cut { body, left: bytes, state: CutState::Passing }.boxed_unsync()
}

#[derive(Debug)]
struct Cut {
    body: Body,
    left: u64,
    state: CutState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CutState {
    Passing,
    /// More came than may pass.
    Over,
    /// The connection had its turn to send what passed.
    Flushed,
}

impl HttpBody for Cut {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.state {
            CutState::Passing => {}
            // An error ends the connection at once, together with what it has not sent yet: it gets a turn before.
            CutState::Over => {
                self.state = CutState::Flushed;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            CutState::Flushed => return Poll::Ready(Some(Err(BodyError::Cut))),
        }
        let frame = std::task::ready!(Pin::new(&mut self.body).poll_frame(context));
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(|data| self.pass(data)))))
    }

    fn is_end_stream(&self) -> bool {
        self.state == CutState::Passing && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Cut {
    fn pass(&mut self, mut data: Bytes) -> Bytes {
        let length = data.len() as u64;
        if length > self.left {
            self.state = CutState::Over;
        }
        let passing = length.min(self.left);
        self.left -= passing;
        // It is not more than the length.
        data.split_to(passing as usize)
    }
}

/// How often a slow body moves.
const TURNS_PER_SECOND: u64 = 10;

/// A body that passes so many bytes a second.
pub(super) fn slow(body: Body, bytes_per_second: u64) -> Body {
    if body.is_end_stream() {
        return body;
    }
    let piece_bytes = usize::try_from(bytes_per_second / TURNS_PER_SECOND).unwrap_or(usize::MAX).max(1);
    let frames = stream::unfold((body, Bytes::new()), move |(mut body, mut rest)| async move {
        while rest.is_empty() {
            match body.frame().await? {
                Ok(frame) => match frame.into_data() {
                    Ok(data) => rest = data,
                    Err(trailers) => return Some((Ok(trailers), (body, rest))),
                },
                Err(error) => return Some((Err(error), (body, rest))),
            }
        }
        let piece = rest.split_to(piece_bytes.min(rest.len()));
        tokio::time::sleep(Duration::from_secs_f64(piece.len() as f64 / bytes_per_second as f64)).await;
        Some((Ok(Frame::data(piece)), (body, rest)))
    });
    StreamBody::new(frames).boxed_unsync()
}
