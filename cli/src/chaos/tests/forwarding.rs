//! What no rule acts on passes unchanged.

use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper::client::conn::http1 as client;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::servers::{LIMIT, Origin, RawOrigin, Standing, exchange};

const REPLY: &[u8] = b"HTTP/1.1 200 Fine\r\nX-Reply-CASE: v w\r\nETag: \"a\"\r\nContent-Length: 2\r\n\r\nok";

#[tokio::test]
async fn request_and_reply_are_the_same_bytes_on_either_side() {
    let origin = RawOrigin::start(REPLY, b"\r\n\r\nbody").await;
    let standing = Standing::before(origin.address, &[]).await;
    let request = "PUT /b/a%2Fb//c%20d/%C3%BC/%7e;x=1,2/../.?list-type=2&prefix=a%2F&x&y= HTTP/1.1\r\n\
                   Host: bucket.s3.test:9000\r\nX-Amz-Date: 20260101T000000Z\r\nAuthorization: AWS4 x/y, z=1\r\n\
                   x-MIXED: a\r\nX-Twice: 1\r\nx-twice: 2\r\nContent-Length: 4\r\n\r\nbody";
    let mut stream = TcpStream::connect(standing.address).await.unwrap();
    let reply = exchange(&mut stream, request.as_bytes(), b"ok").await;
    // The two spellings of a doubled header are kept; its values stand together.
    assert_eq!(origin.read(), request);
    // A reason is for people, and the one of the status is as good.
    assert_eq!(reply.replace("200 OK", "200 Fine"), String::from_utf8_lossy(REPLY));
}

#[tokio::test]
async fn a_connection_is_kept_on_either_side() {
    let origin = RawOrigin::start(REPLY, b"\r\n\r\n").await;
    let standing = Standing::before(origin.address, &[]).await;
    let mut stream = TcpStream::connect(standing.address).await.unwrap();
    for _ in 0..3 {
        exchange(&mut stream, b"GET /x HTTP/1.1\r\nhost: a\r\n\r\n", b"ok").await;
    }
    assert_eq!(origin.connections(), 1);
    assert_eq!(standing.proxy.journal.totals().requests, 3);
}

#[tokio::test]
async fn an_upstream_that_closed_its_connection_meanwhile_is_connected_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut buffer = [0; 4096];
            assert!(stream.read(&mut buffer).await.unwrap() > 0);
            // It says nothing of closing, and closes.
            stream.write_all(REPLY).await.unwrap();
        }
    });
    let standing = Standing::before(address, &[]).await;
    let mut stream = TcpStream::connect(standing.address).await.unwrap();
    for _ in 0..2 {
        let reply =
            exchange(&mut stream, b"POST /x HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n", b"ok").await;
        assert!(reply.ends_with("ok"), "{reply}");
        // The end of the upstream's connection comes behind its reply.
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    serving.await.unwrap();
}

#[tokio::test]
async fn chunked_bodies_pass_piece_by_piece() {
    let reply = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    let origin = RawOrigin::start(reply, b"0\r\n\r\n").await;
    let standing = Standing::before(origin.address, &[]).await;
    let mut stream = TcpStream::connect(standing.address).await.unwrap();
    stream
        .write_all(b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nxyz\r\n")
        .await
        .unwrap();
    // The first piece arrives while the second has not been sent.
    let first = async {
        while !origin.read().ends_with("3\r\nxyz\r\n") {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LIMIT, first).await.expect("the first piece arrives");
    let heard = exchange(&mut stream, b"1\r\n!\r\n0\r\n\r\n", b"0\r\n\r\n").await;
    assert_eq!(heard.as_bytes(), reply);
    assert!(origin.read().ends_with("3\r\nxyz\r\n1\r\n!\r\n0\r\n\r\n"), "{}", origin.read());
}

#[tokio::test]
async fn the_reply_to_a_head_request_keeps_the_length_of_the_object() {
    let origin = RawOrigin::start(b"HTTP/1.1 200 OK\r\nContent-Length: 123456\r\n\r\n", b"\r\n\r\n").await;
    let standing = Standing::before(origin.address, &[]).await;
    let mut stream = TcpStream::connect(standing.address).await.unwrap();
    let reply = exchange(&mut stream, b"HEAD /x HTTP/1.1\r\nHost: a\r\n\r\n", b"\r\n\r\n").await;
    assert_eq!(reply, "HTTP/1.1 200 OK\r\nContent-Length: 123456\r\n\r\n");
    // The connection is fit for the next request.
    let reply = exchange(&mut stream, b"HEAD /y HTTP/1.1\r\nHost: a\r\n\r\n", b"\r\n\r\n").await;
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
}

#[tokio::test]
async fn a_client_that_waits_for_continue_gets_it_and_sends_its_body() {
    let origin = Origin::start().await;
    let standing = Standing::before(origin.address, &[]).await;
    let mut stream = TcpStream::connect(standing.address).await.unwrap();
    let head = b"PUT /x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n";
    let go_on = exchange(&mut stream, head, b"\r\n\r\n").await;
    assert_eq!(go_on, "HTTP/1.1 100 Continue\r\n\r\n");
    let reply = exchange(&mut stream, b"body", b"body").await;
    assert!(reply.starts_with("HTTP/1.1 201"), "{reply}");
    assert_eq!(origin.got()[0].body.as_deref(), Some(&b"body"[..]));
}

#[tokio::test]
async fn large_bodies_pass_both_ways() {
    let origin = Origin::start().await;
    let standing = Standing::before(origin.address, &[]).await;
    let body = "0123456789abcdef".repeat(512 * 1024);
    let heard = standing.send("PUT", "/large", &body).await.unwrap();
    assert!(heard.whole && heard.text() == body);
}

#[tokio::test]
async fn an_upstream_that_is_not_there_is_told_with_its_address() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let standing = Standing::before(address, &[]).await;
    let heard = standing.send("GET", "/x", "").await.unwrap();
    assert_eq!(heard.status, 502);
    assert!(heard.text().contains(&address.to_string()), "{}", heard.text());
    assert_eq!(standing.proxy.journal.totals().unreachable, 1);
    assert_eq!(standing.log()[0]["did"], "forward");
}

#[tokio::test]
async fn a_reply_that_the_upstream_breaks_off_is_broken_off() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buffer = [0; 4096];
        assert!(stream.read(&mut buffer).await.unwrap() > 0);
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc").await.unwrap();
    });
    let standing = Standing::before(address, &[]).await;
    let heard = standing.send("GET", "/x", "").await.unwrap();
    assert!(!heard.whole, "{heard:?}");
}

#[tokio::test]
async fn a_stop_ends_connections_that_are_kept_and_requests_that_hang() {
    let origin = Origin::start().await;
    let mut standing = Standing::before(origin.address, &["GET /hang : hang"]).await;
    standing.send("GET", "/x", "").await.unwrap();
    let stream = TcpStream::connect(standing.address).await.unwrap();
    let (mut sender, connection) = client::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let hanging = Request::get("/hang").header("host", "a").body(Empty::<bytes::Bytes>::new()).unwrap();
    let hanging =
        tokio::spawn(
            async move { sender.send_request(hanging).await.map(|reply| reply.map(BodyExt::boxed)) },
        );
    while standing.log().is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    standing.stop().await;
    assert!(hanging.await.unwrap().is_err());
    assert_eq!(standing.proxy.journal.totals().requests, 2);
}
