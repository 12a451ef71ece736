//! The ids of topics, by librdkafka's `DescribeTopics`, which the Rust client does not offer.
//!
//! Ids tell a topic from another of the same name that was created after it was deleted (KIP-516).

#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::time::Duration;

use rdkafka::ClientContext;
use rdkafka::bindings as native;
use rdkafka::client::Client;

/// The ids of `topics` as Kafka prints them; topics that do not exist, and brokers that have no ids, give none.
pub(super) fn topic_ids<C: ClientContext>(
    client: &Client<C>,
    topics: &[String],
    timeout: Duration,
) -> BTreeMap<String, String> {
    let names: Vec<CString> = topics.iter().filter_map(|t| CString::new(t.as_str()).ok()).collect();
    let timeout_ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
    match Answer::ask(client, &names, timeout_ms) {
        Some(answer) => answer.ids(),
        None => BTreeMap::new(),
    }
}

/// The event that holds the reply; it owns what the reply's pointers refer to.
struct Answer(*mut native::rd_kafka_event_t);

impl Drop for Answer {
    fn drop(&mut self) {
        // SAFETY: the event came from `rd_kafka_queue_poll`, is owned by this value alone and destroyed once.
        unsafe { native::rd_kafka_event_destroy(self.0) }
    }
}

impl Answer {
    fn ask<C: ClientContext>(client: &Client<C>, names: &[CString], timeout_ms: i32) -> Option<Self> {
        let mut pointers: Vec<_> = names.iter().map(|n| n.as_ptr()).collect();
        let rk = client.native_ptr();
        // SAFETY: `rk` is alive as long as `client`. The collection copies the names. Options, collection and queue
        // are destroyed after the reply was taken from the queue, which `poll` waits for; a reply that comes after
        // the wait is dropped with the queue by librdkafka, which counts references to it.
        unsafe {
            let options = native::rd_kafka_AdminOptions_new(
                rk,
                native::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBETOPICS,
            );
            native::rd_kafka_AdminOptions_set_request_timeout(options, timeout_ms, std::ptr::null_mut(), 0);
            let collection =
                native::rd_kafka_TopicCollection_of_topic_names(pointers.as_mut_ptr(), pointers.len());
            let queue = native::rd_kafka_queue_new(rk);
            native::rd_kafka_DescribeTopics(rk, collection, options, queue);
            let event = native::rd_kafka_queue_poll(queue, timeout_ms);
            native::rd_kafka_queue_destroy(queue);
            native::rd_kafka_TopicCollection_destroy(collection);
            native::rd_kafka_AdminOptions_destroy(options);
            (!event.is_null()).then_some(Self(event))
        }
    }

    fn ids(&self) -> BTreeMap<String, String> {
        let mut ids = BTreeMap::new();
        // SAFETY: the pointers returned here belong to the event and live as long as `self`; each is checked for
        // null before it is followed, and text is copied out at once.
        unsafe {
            let result = native::rd_kafka_event_DescribeTopics_result(self.0);
            if result.is_null() {
                return ids;
            }
            let mut count = 0;
            let topics = native::rd_kafka_DescribeTopics_result_topics(result, &raw mut count);
            for i in 0..count {
                let topic = *topics.add(i);
                let name = native::rd_kafka_TopicDescription_name(topic);
                let id = native::rd_kafka_TopicDescription_topic_id(topic);
                if name.is_null() || id.is_null() || is_zero(id) {
                    continue;
                }
                let text = native::rd_kafka_Uuid_base64str(id);
                if !text.is_null() {
                    ids.insert(text_of(name), text_of(text));
                }
            }
        }
        ids
    }
}

/// The zero id is what brokers without ids give.
///
/// # Safety
/// `id` points to a live id.
unsafe fn is_zero(id: *const native::rd_kafka_Uuid_t) -> bool {
    // SAFETY: as the caller promises.
    unsafe {
        native::rd_kafka_Uuid_most_significant_bits(id) == 0
            && native::rd_kafka_Uuid_least_significant_bits(id) == 0
    }
}

/// # Safety
/// `text` points to a string that ends with a zero byte.
unsafe fn text_of(text: *const std::ffi::c_char) -> String {
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
