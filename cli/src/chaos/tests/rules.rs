//! The rule language, and which rule acts.

use std::time::Duration;

use hyper::header::{HeaderMap, HeaderValue};
use hyper::{Method, Uri};

use crate::chaos::choice::{Choice, Counts};
use crate::chaos::parse::{Given, of_file, of_options, parse};
use crate::chaos::rule::{Head, Rule};

fn rules(texts: &[&str]) -> Vec<Rule> {
    let given: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    parse(&of_options(&given)).unwrap()
}

fn problems(texts: &[&str]) -> Vec<String> {
    let given: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    parse(&of_options(&given)).unwrap_err().iter().map(ToString::to_string).collect()
}

const SAMPLES: [&str; 19] = [
    "POST /v1/**/tables/* : apply-then 500 every 3",
    "PUT|POST /bucket/** : slowdown share 0.1",
    "* /** : status 503",
    "* /** : status 429 retry-after 30s first 4",
    "* /** : status 503 body 'out of order' retry-after 1m",
    "* /** : status 400 iceberg BadRequestException",
    "* /** : apply-then 409 iceberg CommitFailedException once",
    "* /** : apply-then reset after 5",
    "GET /bucket query list-type=2 query prefix : delay 5s",
    "GET /x header x-amz-meta-a='b c' : late 1500ms",
    "* /** : hang between 10s 40s",
    "* /** : reset every 2 first 3",
    "* /** : truncate 100",
    "* /** : truncate-request 4096",
    "* /** : slow 10240B/s",
    "* /** : drop-properties firn.",
    "* /** : duplicate",
    "* '/a b' : hang",
    "* /** : status 500 body 'it'\"'\"'s'",
];

#[test]
fn a_rule_reads_back_as_itself() {
    for text in SAMPLES {
        let read = rules(&[text]);
        assert_eq!(rules(&[&read[0].to_string()]), read, "{text} became {}", read[0]);
    }
    assert_eq!(rules(&[SAMPLES[0]])[0].to_string(), SAMPLES[0]);
}

#[test]
fn units_and_order_of_conditions_are_free() {
    let same = rules(&["* /** : slow 10KiB/s once after 5", "*  /** :\tslow 10240B/s after 5 first 1"]);
    assert_eq!(same[0], same[1]);
}

#[test]
fn meanings_say_all_of_a_rule() {
    let meaning = |text| rules(&[text])[0].meaning();
    assert_eq!(
        meaning("POST /v1/** header a=b* : apply-then 500 every 3 after 2 first 4"),
        "POST requests whose path fits `/v1/**`, whose header `a` fits `b*`: forwarded, the reply dropped, and \
         answered with 500; one in 3 of those after the first 2, at most 4 times"
    );
    assert_eq!(
        meaning("* /** query uploads : late 5s between 10s 40s share 0.5"),
        "requests whose path fits `/**`, whose query has `uploads`: answered with 504 at once, and forwarded \
         5.00 s later; a share of 0.5, drawn under the seed, from 10.0 s to 40.0 s after the start"
    );
}

#[test]
fn all_problems_of_all_rules_are_told_and_pointed_at() {
    let found = problems(&["post v1 : explode", "* /x : status 99 every 0 twice", "* /x : hang"]);
    assert_eq!(
        found.iter().map(|problem| problem.lines().last().unwrap_or_default()).collect::<Vec<_>>(),
        [
            "    ^^^^",
            "         ^^",
            "              ^^^^^^^",
            "                  ^^",
            "                           ^",
            "                             ^^^^^"
        ],
        "{found:#?}"
    );
    assert!(
        found[2].starts_with("--rule 1: `explode` is not a fault: faults are status, slowdown,"),
        "{found:#?}"
    );
    assert!(found[5].contains("`twice` is no condition; they are `every N`"), "{found:#?}");
}

#[test]
fn each_kind_of_mistake_has_its_message() {
    let cases = [
        ("GET /x status 503", "a colon with a space on either side"),
        ("GET /x?a=b : hang", "write `query a=b` behind the path"),
        ("GET : hang", "a path is missing here"),
        (": hang", "a method (`GET`"),
        ("GET /x :", "a fault is missing here"),
        ("GET /x foo : hang", "`foo` is neither `query NAME=VALUE` nor"),
        ("GET /x query =b : hang", "its name is missing"),
        ("GET /x header a : hang", "write its name, `=`"),
        ("GET /x header 'a b=c' : hang", "cannot be a header's name"),
        ("GET /x : delay", "a time (`5s`) is missing here"),
        ("GET /x : delay 5", "has no unit"),
        ("GET /x : slow 10KiB", "it ends with `/s`"),
        ("GET /x : slow 0B/s", "see `hang`"),
        ("GET /x : truncate many", "is not a number of bytes"),
        ("GET /x : status 503 retry-after 1500ms", "the header has no fractions"),
        ("GET /x : hang share 2", "one in ten"),
        ("GET /x : hang between 10s 5s", "it is not after the first"),
        ("GET /x : hang between 10s", "a later time (`40s`) is missing here"),
        ("GET /x : hang once first 3", "`first` is said twice"),
        ("GET /x : drop-properties ''", "it would fit all of them"),
        ("GET '/x : hang", "`'` is opened and not closed"),
    ];
    for (rule, message) in cases {
        let found = problems(&[rule]);
        assert!(found.iter().any(|problem| problem.contains(message)), "{rule}: {found:#?}");
    }
}

#[test]
fn a_file_has_a_rule_a_line_and_comments() {
    let text = "# an outage\n\n* /** : hang once\n  GET /x : explode\n";
    let given = of_file(std::path::Path::new("outage.rules"), text);
    let places: Vec<&str> = given.iter().map(|Given { place, .. }| place.as_str()).collect();
    assert_eq!(places, ["outage.rules:3", "outage.rules:4"]);
    assert!(parse(&given).unwrap_err()[0].to_string().starts_with("outage.rules:4: `explode`"));
}

/// The numbers of the rules that acted on `requests` GETs of a path, a second apart.
fn acted(choice: &Choice, path: &str, requests: u64) -> Vec<Option<usize>> {
    let uri: Uri = path.parse().unwrap();
    let (method, headers) = (Method::GET, HeaderMap::new());
    let head = Head { method: &method, uri: &uri, headers: &headers };
    (0..requests).map(|at| choice.decide(head, Duration::from_secs(at)).map(|hit| hit.rule)).collect()
}

fn fired(rule: &str, requests: u64) -> Vec<u64> {
    let choice = Choice::new(rules(&[rule]), 1);
    let acted = acted(&choice, "/x", requests);
    (1..).zip(acted).filter_map(|(number, rule)| rule.map(|_| number)).collect()
}

#[test]
fn conditions_count_the_requests_that_fit() {
    assert_eq!(fired("* /** : hang every 3", 10), [3, 6, 9]);
    assert_eq!(fired("* /** : hang first 2", 10), [1, 2]);
    assert_eq!(fired("* /** : hang once", 10), [1]);
    assert_eq!(fired("* /** : hang after 7", 10), [8, 9, 10]);
    assert_eq!(fired("* /** : hang after 2 every 3 first 2", 12), [5, 8]);
    // Requests come at 0 s, 1 s, …
    assert_eq!(fired("* /** : hang between 2s 4s", 10), [3, 4]);
    assert_eq!(fired("* /** : hang share 0", 100), Vec::<u64>::new());
    assert_eq!(fired("* /** : hang share 1", 3), [1, 2, 3]);
    assert_eq!(fired("POST /** : hang", 3), Vec::<u64>::new());
}

#[test]
fn a_share_is_met_and_is_the_same_under_a_seed_whatever_comes_between() {
    let share = "* /x : hang share 0.1";
    let once = fired(share, 10_000);
    assert!((900..1_100).contains(&once.len()), "{}", once.len());
    assert_eq!(once, fired(share, 10_000));
    let choice = Choice::new(rules(&[share]), 1);
    let mut again = Vec::new();
    for number in 1..=1_000_u64 {
        acted(&choice, "/elsewhere", number % 3);
        if acted(&choice, "/x", 1)[0].is_some() {
            again.push(number);
        }
    }
    assert_eq!(again, once.iter().copied().filter(|number| *number <= 1_000).collect::<Vec<_>>());
    let other_seed = Choice::new(rules(&[share]), 2);
    assert_ne!(acted(&other_seed, "/x", 1_000), acted(&Choice::new(rules(&[share]), 1), "/x", 1_000));
}

#[test]
fn the_first_rule_that_acts_wins_and_the_next_sees_what_it_left() {
    let choice = Choice::new(rules(&["* /** : hang every 2", "* /** : reset every 2", "* /y : hang"]), 1);
    let acted = acted(&choice, "/x", 8);
    assert_eq!(acted, [None, Some(1), Some(2), Some(1), None, Some(1), Some(2), Some(1)]);
    let counts = [(8, 4), (4, 2), (0, 0)].map(|(fitted, acted)| Counts { fitted, acted });
    assert_eq!(choice.counts(), counts);
}

#[test]
fn query_and_headers_are_matched_as_they_are_sent() {
    let rule = &rules(&["GET /b query list-type=2 query prefix=a%2F* header x-id=1* : hang"])[0];
    let fits = |target: &str, id: &str| {
        let uri: Uri = target.parse().unwrap();
        let headers = HeaderMap::from_iter([("x-id".parse().unwrap(), HeaderValue::from_str(id).unwrap())]);
        rule.pattern.fits(Head { method: &Method::GET, uri: &uri, headers: &headers })
    };
    assert!(fits("/b?list-type=2&prefix=a%2Fb", "12"));
    assert!(!fits("/b?list-type=2&prefix=a/b", "12"));
    assert!(!fits("/b?list-type=22&prefix=a%2Fb", "12"));
    assert!(!fits("/b?list-type=2&prefix=a%2Fb", "2"));
    assert!(!fits("/b", "12"));
}
