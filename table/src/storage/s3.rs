//! Iceberg's property names for S3, turned into an S3 client.

use std::collections::HashMap;
use std::time::Duration;

use iceberg::io::{
    CLIENT_REGION, S3_ACCESS_KEY_ID, S3_ALLOW_ANONYMOUS, S3_ENDPOINT, S3_PATH_STYLE_ACCESS, S3_REGION,
    S3_SECRET_ACCESS_KEY, S3_SESSION_TOKEN, S3_SSE_KEY, S3_SSE_TYPE,
};
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey, AwsCredentialProvider};
use object_store::{BackoffConfig, ClientOptions, RetryConfig};

use crate::{Error, ErrorKind, Result};

/// PyIceberg's name for the opposite of `s3.path-style-access`.
const S3_FORCE_VIRTUAL: &str = "s3.force-virtual-addressing";
/// Requests signed by the catalog's server, in the spellings of Java and PyIceberg.
const S3_REMOTE_SIGNING: [&str; 2] = ["s3.remote-signing-enabled", "s3.remote-signing"];

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// For a whole request with its body: a part of an upload, or a range that is read.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(25);
/// How long after the first try another one begins. With the last one's own time the client gives up within a minute.
const RETRY_TIMEOUT: Duration = Duration::from_secs(30);
/// Time decides, not the number.
const MAX_RETRIES: usize = 100;
const MAX_BACKOFF: Duration = Duration::from_secs(4);

/// Opens the store of one bucket. `credentials` sign its requests where they are given, else those of the properties.
pub(super) fn open(
    bucket: &str,
    properties: &HashMap<String, String>,
    credentials: Option<AwsCredentialProvider>,
) -> Result<AmazonS3> {
    let mut builder = builder(bucket, properties)?;
    if let Some(credentials) = credentials {
        builder = builder.with_credentials(credentials);
    }
    builder.build().map_err(|error| {
        let message = format!("cannot open the store of bucket `{bucket}` with the given `s3.*` properties");
        Error::new(ErrorKind::Configuration, message).with_source(error)
    })
}

fn builder(bucket: &str, properties: &HashMap<String, String>) -> Result<AmazonS3Builder> {
    let property = |name: &str| properties.get(name).map(String::as_str).filter(|value| !value.is_empty());
    for name in S3_REMOTE_SIGNING {
        if is_true(property(name)) {
            let message =
                format!("`{name}` is set, and firn signs requests itself: give it credentials instead");
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
    }
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(bucket)
        .with_region(property(CLIENT_REGION).or(property(S3_REGION)).unwrap_or("us-east-1"))
        .with_skip_signature(is_true(property(S3_ALLOW_ANONYMOUS)))
        .with_retry(RetryConfig {
            max_retries: MAX_RETRIES,
            retry_timeout: RETRY_TIMEOUT,
            backoff: BackoffConfig { max_backoff: MAX_BACKOFF, ..BackoffConfig::default() },
        });
    if let Some(id) = property(S3_ACCESS_KEY_ID) {
        builder = builder.with_access_key_id(id);
    }
    if let Some(secret) = property(S3_SECRET_ACCESS_KEY) {
        builder = builder.with_secret_access_key(secret);
    }
    if let Some(token) = property(S3_SESSION_TOKEN) {
        builder = builder.with_token(token);
    }
    let client = ClientOptions::new().with_connect_timeout(CONNECT_TIMEOUT).with_timeout(REQUEST_TIMEOUT);
    let builder = address(builder.with_client_options(client), bucket, properties)?;
    encrypt(builder, property(S3_SSE_TYPE), property(S3_SSE_KEY))
}

/// Endpoint and addressing. Iceberg's default is the virtual-hosted style, which servers other than Amazon's seldom
/// have: with an endpoint of its own, and for buckets with a dot (no certificate covers them), the path style is the
/// default.
fn address(
    builder: AmazonS3Builder,
    bucket: &str,
    properties: &HashMap<String, String>,
) -> Result<AmazonS3Builder> {
    let property = |name: &str| properties.get(name).map(String::as_str).filter(|value| !value.is_empty());
    let endpoint = property(S3_ENDPOINT).map(|endpoint| endpoint.trim_end_matches('/'));
    let virtual_hosted = match (property(S3_PATH_STYLE_ACCESS), property(S3_FORCE_VIRTUAL)) {
        (Some(path_style), _) => !is_true(Some(path_style)),
        (None, Some(forced)) => is_true(Some(forced)),
        (None, None) => endpoint.is_none() && !bucket.contains('.'),
    };
    let builder = builder.with_virtual_hosted_style_request(virtual_hosted);
    let Some(endpoint) = endpoint else { return Ok(builder) };
    let Some((scheme, host)) = endpoint.split_once("://") else {
        let message = format!("`{S3_ENDPOINT}` is `{endpoint}`, which is no URL: write `https://host:port`");
        return Err(Error::new(ErrorKind::Configuration, message));
    };
    let builder = builder.with_allow_http(scheme.eq_ignore_ascii_case("http"));
    Ok(if virtual_hosted && !host.starts_with(&format!("{bucket}.")) {
        builder.with_endpoint(format!("{scheme}://{bucket}.{host}"))
    } else {
        builder.with_endpoint(endpoint)
    })
}

fn encrypt(builder: AmazonS3Builder, kind: Option<&str>, key: Option<&str>) -> Result<AmazonS3Builder> {
    let encryption = |value: &str| -> Result<AmazonS3ConfigKey> {
        value.parse().map_err(|error: object_store::Error| {
            Error::new(ErrorKind::Internal, "the S3 client does not know its encryption setting")
                .with_source(error)
        })
    };
    Ok(match (kind.unwrap_or("none").to_ascii_lowercase().as_str(), key) {
        ("none", _) => builder,
        ("s3", _) => builder.with_config(encryption("aws_server_side_encryption")?, "AES256"),
        ("kms", Some(key)) => builder.with_sse_kms_encryption(key),
        ("kms", None) => builder.with_config(encryption("aws_server_side_encryption")?, "aws:kms"),
        ("dsse-kms", Some(key)) => builder.with_dsse_kms_encryption(key),
        ("custom", Some(key)) => builder.with_ssec_encryption(key),
        (other, _) => {
            let message = format!(
                "`{S3_SSE_TYPE}` is `{other}` without what it needs: use none, s3, kms, or dsse-kms and custom with `{S3_SSE_KEY}`"
            );
            return Err(Error::new(ErrorKind::Configuration, message));
        }
    })
}

fn is_true(value: Option<&str>) -> bool {
    value.is_some_and(|value| matches!(value.to_ascii_lowercase().as_str(), "true" | "t" | "1" | "on"))
}
