//! The objects of a bucket: what S3 can do with them, as far as files need it.

use std::ops::Range;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, ETAG, LAST_MODIFIED};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use md5::{Digest, Md5};
use outlast_api::wire::sigv4::{encode_component, encode_path};
use outlast_crypto::digests;
use outlast_pki::time::from_rfc3339;
use percent_encoding::percent_decode_str;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;

use super::client::{Call, Client, Failure, Only};
use super::xml::{self, leaves};
use crate::limits;

/// A bucket behind an endpoint.
#[derive(Debug, Clone)]
pub(crate) struct Bucket {
    client: Client,
    name: String,
}

/// What is known of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) size: u64,
    /// Seconds since 1970.
    pub(crate) modified: Option<i64>,
    /// Says whether the object is still the same.
    pub(crate) etag: String,
}

/// A part of a listing.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) objects: Vec<Listed>,
    /// Beginnings that keys share, up to the next slash.
    pub(crate) prefixes: Vec<String>,
    /// Where the next page begins; none at the end.
    pub(crate) next: Option<String>,
}

/// An object of a listing.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    pub(crate) key: String,
    pub(crate) size: u64,
    /// Seconds since 1970.
    pub(crate) modified: Option<i64>,
}

impl Bucket {
    pub(crate) fn new(client: Client, name: &str) -> Self {
        Self { client, name: name.to_owned() }
    }

    fn call<'a>(&'a self, method: Method, key: &'a str) -> Call<'a> {
        Call::new(method, &self.name, key)
    }

    async fn send(&self, call: Call<'_>) -> Result<Response<Bytes>, Failure> {
        self.client.send(&call).await
    }

    /// What is known of an object; none if there is none, or no such bucket.
    pub(crate) async fn head(&self, key: &str) -> Result<Option<Head>, Failure> {
        let response = match self.send(Call { max: 0, ..self.call(Method::HEAD, key) }).await {
            Ok(response) => response,
            Err(failure) if failure.status() == Some(404) => return Ok(None),
            Err(failure) => return Err(failure),
        };
        let text = |name| header(response.headers(), name);
        let size = text(CONTENT_LENGTH).and_then(|text| text.parse().ok());
        let modified =
            text(LAST_MODIFIED).and_then(|text| OffsetDateTime::parse(text, &Rfc2822).ok());
        Ok(Some(Head {
            size: size.ok_or_else(|| self.client.unreadable())?,
            modified: modified.map(OffsetDateTime::unix_timestamp),
            etag: text(ETAG).ok_or_else(|| self.client.unreadable())?.to_owned(),
        }))
    }

    /// Bytes of an object, which must still have this entity tag.
    pub(crate) async fn read(
        &self,
        key: &str,
        etag: &str,
        range: Range<u64>,
    ) -> Result<Bytes, Failure> {
        let unreadable = || self.client.unreadable();
        let len = usize::try_from(range.end - range.start).map_err(|_| unreadable())?;
        if len == 0 {
            return Ok(Bytes::new());
        }
        let bytes = format!("bytes={}-{}", range.start, range.end - 1);
        let call = self.call(Method::GET, key).header("range", &bytes)?.header("if-match", etag)?;
        let response = self.send(Call { max: len, ..call }).await?;
        if response.body().len() != len {
            return Err(unreadable());
        }
        // An endpoint that ignores the range sends the whole object.
        if response.status() != StatusCode::PARTIAL_CONTENT && range.start > 0 {
            return Err(unreadable());
        }
        Ok(response.into_body())
    }

    /// Writes an object; its entity tag.
    pub(crate) async fn write(
        &self,
        key: &str,
        body: Bytes,
        only: &Only,
    ) -> Result<String, Failure> {
        let call = Call { body, ..self.call(Method::PUT, key) }.only(only)?;
        let response = self.send(call).await?;
        self.etag_of(&response)
    }

    /// Writes an object of this type.
    pub(super) async fn write_as(
        &self,
        key: &str,
        content_type: &str,
        body: Bytes,
    ) -> Result<(), Failure> {
        let call = self.call(Method::PUT, key).header("content-type", content_type)?;
        self.send(Call { body, ..call }).await.map(drop)
    }

    /// Removes an object, if there is one.
    pub(crate) async fn remove(&self, key: &str) -> Result<(), Failure> {
        self.send(self.call(Method::DELETE, key)).await.map(drop)
    }

    /// Removes an object if it still has this entity tag, or is gone.
    pub(crate) async fn remove_same(&self, key: &str, etag: &str) -> Result<(), Failure> {
        self.remove_if(self.call(Method::DELETE, key), etag).await
    }

    /// The same, but not repeated if S3 may have carried it out: where S3 refuses it, the object was not removed.
    pub(crate) async fn remove_once(&self, key: &str, etag: &str) -> Result<(), Failure> {
        let call = Call { is_once: true, ..self.call(Method::DELETE, key) };
        self.remove_if(call, etag).await
    }

    async fn remove_if(&self, call: Call<'_>, etag: &str) -> Result<(), Failure> {
        match self.send(call.header("if-match", etag)?).await {
            Err(failure) if failure.status() == Some(404) => Ok(()),
            outcome => outcome.map(drop),
        }
    }

    /// Copies an object, which must still be as it was, with its metadata; the copy's entity tag.
    pub(crate) async fn copy(
        &self,
        from: &str,
        head: &Head,
        to: &str,
        only: &Only,
    ) -> Result<String, Failure> {
        let call = self.from(self.call(Method::PUT, to), from, &head.etag)?.only(only)?;
        let response = self.send(Call { work: copying(head.size), ..call }).await?;
        // An endpoint that does not know copies has written an empty object.
        let etag = xml::first(response.body(), "ETag").filter(|etag| !etag.is_empty());
        etag.ok_or_else(|| self.client.unreadable())
    }

    /// What S3 copies with an object as a whole, but not with its parts: type, metadata and tags of an object that must still have
    /// this entity tag, as headers for [`Bucket::begin_as`].
    pub(crate) async fn described(&self, key: &str, etag: &str) -> Result<HeaderMap, Failure> {
        let call = Call { max: 0, ..self.call(Method::HEAD, key) }.header("if-match", etag)?;
        let response = self.send(call).await?;
        let is_kept = |name: &HeaderName| {
            DESCRIPTION.contains(&name.as_str()) || name.as_str().starts_with("x-amz-meta-")
        };
        let kept = response.headers().iter().filter(|(name, _)| is_kept(name));
        let mut headers: HeaderMap =
            kept.map(|(name, value)| (name.clone(), value.clone())).collect();
        let tags = match self.tags(key).await {
            // Not every endpoint has tags.
            Err(failure) if failure.status() == Some(501) => Vec::new(),
            tags => tags?,
        };
        if !tags.is_empty() {
            let pair = |(key, value): &(String, String)| {
                format!("{}={}", encode_component(key), encode_component(value))
            };
            let pairs = tags.iter().map(pair).collect::<Vec<_>>().join("&");
            let pairs = HeaderValue::from_str(&pairs).map_err(|_| Failure::Unsendable)?;
            headers.insert("x-amz-tagging", pairs);
        }
        Ok(headers)
    }

    fn from<'a>(&self, call: Call<'a>, key: &str, etag: &str) -> Result<Call<'a>, Failure> {
        let source = encode_path(&format!("/{}/{key}", self.name));
        call.header("x-amz-copy-source", &source)?.header("x-amz-copy-source-if-match", etag)
    }

    /// Begins an upload in parts; its identifier.
    pub(crate) async fn begin(&self, key: &str) -> Result<String, Failure> {
        self.begin_as(key, HeaderMap::new()).await
    }

    /// The same for an object with these headers; the upload's identifier.
    pub(crate) async fn begin_as(&self, key: &str, headers: HeaderMap) -> Result<String, Failure> {
        let call = Call { headers, ..self.call(Method::POST, key) };
        let response = self.send(call.query("uploads", "")).await?;
        let id = xml::first(response.body(), "UploadId").filter(|id| !id.is_empty());
        id.ok_or_else(|| self.client.unreadable())
    }

    /// Writes a part, with a number from 1 on; its entity tag.
    pub(crate) async fn write_part(
        &self,
        key: &str,
        upload: &str,
        number: usize,
        body: Bytes,
    ) -> Result<String, Failure> {
        let call = Call { body, ..self.part(key, upload, number) };
        let response = self.send(call).await?;
        self.etag_of(&response)
    }

    /// Makes a part of a range of an object, which must still have this entity tag; the part's entity tag.
    pub(crate) async fn copy_part(
        &self,
        key: &str,
        upload: &str,
        number: usize,
        (from, etag, range): (&str, &str, Range<u64>),
    ) -> Result<String, Failure> {
        let bytes = format!("bytes={}-{}", range.start, range.end - 1);
        let call = self.from(self.part(key, upload, number), from, etag)?;
        let call = call.header("x-amz-copy-source-range", &bytes)?;
        let work = copying(range.end - range.start);
        let response = self.send(Call { work, ..call }).await?;
        let etag = xml::first(response.body(), "ETag").filter(|etag| !etag.is_empty());
        etag.ok_or_else(|| self.client.unreadable())
    }

    fn part<'a>(&'a self, key: &'a str, upload: &str, number: usize) -> Call<'a> {
        let call = self.call(Method::PUT, key).query("partNumber", number.to_string());
        call.query("uploadId", upload)
    }

    /// Makes the object of the parts; its entity tag.
    pub(crate) async fn complete(
        &self,
        key: &str,
        upload: &str,
        parts: impl Iterator<Item = (usize, String)>,
        only: &Only,
    ) -> Result<String, Failure> {
        let mut body = String::from(
            "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">",
        );
        for (number, etag) in parts {
            let etag = quick_xml::escape::escape(&etag);
            body.push_str(&format!(
                "<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>"
            ));
        }
        body.push_str("</CompleteMultipartUpload>");
        let call = self.call(Method::POST, key).query("uploadId", upload).only(only)?;
        let work = limits::S3_COMPLETION;
        // A second attempt would not find the upload that the first has completed.
        let response = self.send(Call { body: body.into(), is_once: true, work, ..call }).await?;
        let etag = xml::first(response.body(), "ETag").filter(|etag| !etag.is_empty());
        etag.ok_or_else(|| self.client.unreadable())
    }

    /// Forgets an upload and its parts.
    pub(crate) async fn abort(&self, key: &str, upload: &str) -> Result<(), Failure> {
        self.send(self.call(Method::DELETE, key).query("uploadId", upload)).await.map(drop)
    }

    /// The tags of an object.
    pub(crate) async fn tags(&self, key: &str) -> Result<Vec<(String, String)>, Failure> {
        let response = self.send(self.call(Method::GET, key).query("tagging", "")).await?;
        tags(response.body()).ok_or_else(|| self.client.unreadable())
    }

    /// Gives an object these tags, in place of those that it has.
    pub(crate) async fn set_tags(
        &self,
        key: &str,
        tags: &[(String, String)],
    ) -> Result<(), Failure> {
        let mut body =
            String::from("<Tagging xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><TagSet>");
        for (key, value) in tags {
            let (key, value) = (quick_xml::escape::escape(key), quick_xml::escape::escape(value));
            body.push_str(&format!("<Tag><Key>{key}</Key><Value>{value}</Value></Tag>"));
        }
        body.push_str("</TagSet></Tagging>");
        // S3 wants a checksum of this body, of any kind.
        let digest = STANDARD.encode(digests::sha256(body.as_bytes()));
        let call = self.call(Method::PUT, key).query("tagging", "");
        let call = call.header("x-amz-checksum-sha256", &digest)?;
        self.send(Call { body: body.into(), ..call }).await.map(drop)
    }

    /// Objects whose keys begin with a prefix and have no further slash, and the prefixes of the others.
    pub(crate) async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        most: u32,
    ) -> Result<Page, Failure> {
        let mut call = self.call(Method::GET, "").query("list-type", "2");
        if let Some(token) = after {
            call = call.query("continuation-token", token);
        }
        let call = call
            .query("delimiter", "/")
            // XML cannot contain every character of a key.
            .query("encoding-type", "url")
            .query("max-keys", most.to_string())
            .query("prefix", prefix);
        let response = self.send(call).await?;
        page(response.body()).ok_or_else(|| self.client.unreadable())
    }

    fn etag_of(&self, response: &Response<Bytes>) -> Result<String, Failure> {
        let etag = header(response.headers(), ETAG).ok_or_else(|| self.client.unreadable())?;
        Ok(etag.to_owned())
    }
}

/// Headers of an object that are not of its content alone, besides its user's metadata.
const DESCRIPTION: [&str; 6] = [
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-type",
    "expires",
];

/// Time in which S3 copies so many bytes.
fn copying(bytes: u64) -> Duration {
    Duration::from_secs(bytes / limits::S3_COPIES)
}

fn header(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

fn tags(body: &[u8]) -> Option<Vec<(String, String)>> {
    let (mut found, mut group) = (Vec::<(String, String)>::new(), 0);
    for leaf in leaves(body)?.into_iter().filter(|leaf| leaf.parent == "Tag") {
        if group != leaf.group {
            group = leaf.group;
            found.push(Default::default());
        }
        let tag = found.last_mut()?;
        match &*leaf.name {
            "Key" => tag.0 = leaf.text,
            "Value" => tag.1 = leaf.text,
            _ => {}
        }
    }
    Some(found)
}

fn page(body: &[u8]) -> Option<Page> {
    let mut page = Page::default();
    let (mut group, mut is_url, mut is_truncated) = (0, false, false);
    for leaf in leaves(body)? {
        match (&*leaf.parent, &*leaf.name) {
            ("Contents", name) => {
                if group != leaf.group {
                    group = leaf.group;
                    page.objects.push(Listed::default());
                }
                let object = page.objects.last_mut()?;
                match name {
                    "Key" => object.key = leaf.text,
                    "Size" => object.size = leaf.text.parse().ok()?,
                    "LastModified" => object.modified = from_rfc3339(&leaf.text),
                    _ => {}
                }
            }
            ("CommonPrefixes", "Prefix") => page.prefixes.push(leaf.text),
            (_, "EncodingType") => is_url = leaf.text == "url",
            (_, "IsTruncated") => is_truncated = leaf.text == "true",
            (_, "NextContinuationToken") => page.next = Some(leaf.text),
            _ => {}
        }
    }
    if is_url {
        page.objects.iter_mut().for_each(|object| object.key = decoded(&object.key));
        page.prefixes.iter_mut().for_each(|prefix| *prefix = decoded(prefix));
    }
    if !is_truncated {
        page.next = None;
    } else if page.next.is_none() {
        return None;
    }
    Some(page)
}

/// A key as S3 encodes it for URLs: like a form, so that a plus is a space.
fn decoded(text: &str) -> String {
    let text = text.replace('+', " ");
    percent_decode_str(&text).decode_utf8_lossy().into_owned()
}

/// Entity tag of an object that was sent in one request, without quotes: MD5 in hexadecimal, unless a key of KMS encrypts it (S3's
/// "Checking object integrity").
pub(crate) fn etag_of_whole(bytes: &[u8]) -> String {
    hex::encode(Md5::digest(bytes))
}

/// Entity tag of an object with parts of these entity tags: MD5 of their MD5s, and their number. None if one is no MD5.
pub(crate) fn etag_of_parts(parts: impl Iterator<Item = String>) -> Option<String> {
    let (mut hash, mut count) = (Md5::new(), 0);
    for part in parts {
        hash.update(hex::decode(part).ok().filter(|md5| md5.len() == 16)?);
        count += 1;
    }
    Some(format!("{}-{count}", hex::encode(hash.finalize())))
}

/// Bytes of a part with this index, from 0 on, and where it begins; none beyond the last.
pub(crate) fn part_range(index: usize) -> Option<Range<u64>> {
    let (mut left, mut begin) = (index as u64, 0);
    for (count, bytes) in limits::S3_PARTS {
        if left < count {
            let begin = begin + left * bytes;
            return Some(begin..begin + bytes);
        }
        left -= count;
        begin += count * bytes;
    }
    None
}

/// Index of the part that contains an offset; none beyond the last.
pub(crate) fn part_at(offset: u64) -> Option<usize> {
    let (mut index, mut begin) = (0, 0);
    for (count, bytes) in limits::S3_PARTS {
        if offset < begin + count * bytes {
            return usize::try_from(index + (offset - begin) / bytes).ok();
        }
        index += count;
        begin += count * bytes;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_thousand_parts_hold_the_largest_object() {
        let count: u64 = limits::S3_PARTS.iter().map(|(count, _)| count).sum();
        assert_eq!(count, 10_000);
        assert_eq!(part_range(9_999).unwrap().end, limits::S3_MAX_OBJECT);
        // One part that is collected, and those that are on their way.
        let largest = limits::S3_PARTS.iter().map(|(_, bytes)| *bytes).max().unwrap();
        let at_once = largest * (1 + limits::S3_SENDING_PARTS as u64);
        assert!(at_once <= limits::S3_MEMORY as u64);
        assert_eq!(part_range(10_000), None);
        let mut end = 0;
        for index in 0..10_000 {
            let range = part_range(index).unwrap();
            assert_eq!(range.start, end, "{index}");
            let size = range.end - range.start;
            assert!((5 << 20..=limits::S3_MAX_COPY).contains(&size), "{index}");
            assert_eq!(part_at(range.start), Some(index));
            assert_eq!(part_at(range.end - 1), Some(index));
            end = range.end;
        }
        assert_eq!(part_at(end), None);
    }

    #[test]
    fn tags_are_read_as_s3_writes_them() {
        let body = br#"<?xml version="1.0" encoding="UTF-8"?>
<Tagging xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><TagSet><Tag><Key>a</Key><Value>1 &amp; 2</Value></Tag>
<Tag><Key>b</Key><Value></Value></Tag></TagSet></Tagging>"#;
        let expected = [("a", "1 & 2"), ("b", "")].map(|(key, value)| (key.into(), value.into()));
        assert_eq!(tags(body).unwrap(), expected);
        let none = br"<Tagging><TagSet/></Tagging>";
        assert!(tags(none).unwrap().is_empty());
        assert_eq!(tags(b"<Tagging>"), None);
    }

    #[test]
    fn pages_are_read_as_s3_writes_them() {
        let body = br#"<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name><Prefix>a/</Prefix>
<NextContinuationToken>1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=</NextContinuationToken>
<EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>
<Contents><Key>a/x+y%2Bz%C3%A9</Key><LastModified>2026-11-21T02:00:00.000Z</LastModified>
<ETag>&quot;9b2cf535f27731c974343645a3985328&quot;</ETag><Size>12</Size></Contents>
<CommonPrefixes><Prefix>a/sub/</Prefix></CommonPrefixes></ListBucketResult>"#;
        let page = page(body).unwrap();
        let [object] = &page.objects[..] else { panic!("{page:?}") };
        assert_eq!((&*object.key, object.size), ("a/x y+z\u{e9}", 12));
        assert_eq!(object.modified, Some(1_795_226_400));
        assert_eq!(page.prefixes, ["a/sub/"]);
        assert!(page.next.unwrap().contains('/'));
        let cut = br"<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>";
        assert!(super::page(cut).is_none());
    }
}
