//! The binary format of revocation lists.

use std::collections::BTreeMap;

use super::{Certificates, Krl, KrlError};
use crate::error::{Error, printable};
use crate::wire::{Reader, Writer};

/// `SSHKRL`, a line feed and a zero.
const MAGIC: &[u8] = b"SSHKRL\n\0";
const FORMAT_VERSION: u32 = 1;

const CERTIFICATES: u8 = 1;
const EXPLICIT_KEY: u8 = 2;
const FINGERPRINT_SHA1: u8 = 3;
const SIGNATURE: u8 = 4;
const FINGERPRINT_SHA256: u8 = 5;
const EXTENSION: u8 = 255;

const SERIAL_LIST: u8 = 0x20;
const SERIAL_RANGE: u8 = 0x21;
const SERIAL_BITMAP: u8 = 0x22;
const KEY_ID: u8 = 0x23;
const CERTIFICATES_EXTENSION: u8 = 0x39;

impl From<Error> for KrlError {
    fn from(_: Error) -> Self {
        Self::Malformed("its fields do not have the lengths that they claim")
    }
}

/// Whether bytes begin as the binary format does.
pub(super) fn is_binary(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

pub(super) fn read(bytes: &[u8]) -> Result<Krl, KrlError> {
    let mut reader = Reader::new(bytes);
    reader.bytes(MAGIC.len())?;
    if reader.u32()? != FORMAT_VERSION {
        return Err(KrlError::Unsupported("another version of the format"));
    }
    let (version, generated_s) = (reader.u64()?, reader.u64()?);
    // Flags, and a reserved field: OpenSSH ignores both.
    reader.u64()?;
    reader.string()?;
    let comment = printable(reader.string()?);
    let mut list = Krl { version, generated_s, comment, ..Krl::default() };
    while !reader.is_empty() {
        let kind = reader.byte()?;
        let mut section = Reader::new(reader.string()?);
        match kind {
            CERTIFICATES => certificates(&mut list, &mut section)?,
            EXPLICIT_KEY => {
                while !section.is_empty() {
                    list.revoke_blob(section.string()?.to_vec())?;
                }
            }
            FINGERPRINT_SHA1 => {
                while !section.is_empty() {
                    let is_new = list.sha1.insert(fixed(section.string()?)?);
                    list.count(is_new)?;
                }
            }
            FINGERPRINT_SHA256 => {
                while !section.is_empty() {
                    let is_new = list.sha256.insert(fixed(section.string()?)?);
                    list.count(is_new)?;
                }
            }
            SIGNATURE => return Err(KrlError::Unsupported("a signature")),
            EXTENSION => extension(&mut section)?,
            _ => return Err(KrlError::Unsupported("a section of an unknown type")),
        }
    }
    Ok(list)
}

fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N], KrlError> {
    bytes.try_into().map_err(|_| KrlError::Malformed("a fingerprint has a wrong length"))
}

fn extension(section: &mut Reader<'_>) -> Result<(), KrlError> {
    section.string()?;
    let is_critical = section.bool()?;
    section.string()?;
    section.end()?;
    if is_critical {
        return Err(KrlError::Unsupported("a critical extension"));
    }
    Ok(())
}

fn certificates(list: &mut Krl, section: &mut Reader<'_>) -> Result<(), KrlError> {
    let authority = section.string()?.to_vec();
    section.string()?;
    // The authority is part of the list even if nothing follows.
    list.certificates.entry(authority.clone()).or_default();
    while !section.is_empty() {
        let kind = section.byte()?;
        let mut part = Reader::new(section.string()?);
        match kind {
            SERIAL_LIST => {
                while !part.is_empty() {
                    let serial = part.u64()?;
                    list.insert_serials(&authority, serial, serial)?;
                }
            }
            SERIAL_RANGE => {
                let (first, last) = (part.u64()?, part.u64()?);
                part.end()?;
                list.insert_serials(&authority, first, last)?;
            }
            SERIAL_BITMAP => {
                let first = part.u64()?;
                let bits = part.unsigned()?;
                part.end()?;
                bitmap(list, &authority, first, bits)?;
            }
            KEY_ID => {
                while !part.is_empty() {
                    let key_id = part.string()?.to_vec();
                    list.insert_key_id(&authority, key_id)?;
                }
            }
            CERTIFICATES_EXTENSION => extension(&mut part)?,
            _ => return Err(KrlError::Unsupported("a section of an unknown type")),
        }
    }
    Ok(())
}

/// Bit n, counted from the end, stands for the serial number `first + n`.
fn bitmap(list: &mut Krl, authority: &[u8], first: u64, bits: &[u8]) -> Result<(), KrlError> {
    let bits = bits.iter().rev().flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1 == 1));
    let mut range: Option<(u64, u64)> = None;
    for (n, is_revoked) in (0_u64..).zip(bits) {
        if is_revoked {
            let serial = first.checked_add(n).ok_or(KrlError::Serial)?;
            range = Some((range.map_or(serial, |(begin, _)| begin), serial));
        } else if let Some((begin, end)) = range.take() {
            list.insert_serials(authority, begin, end)?;
        }
    }
    match range {
        Some((begin, end)) => list.insert_serials(authority, begin, end),
        None => Ok(()),
    }
}

pub(super) fn write(list: &Krl) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.put_u32(FORMAT_VERSION);
    out.put_u64(list.version);
    out.put_u64(list.generated_s);
    out.put_u64(0);
    out.put_string(b"");
    out.put_string(list.comment.as_bytes());
    for (authority, of) in &list.certificates {
        let mut section = Vec::new();
        section.put_string(authority);
        section.put_string(b"");
        put_certificates(&mut section, of);
        put_section(&mut out, CERTIFICATES, &section);
    }
    put_strings(&mut out, EXPLICIT_KEY, list.keys.iter().map(Vec::as_slice));
    put_strings(&mut out, FINGERPRINT_SHA1, list.sha1.iter().map(<[u8; 20]>::as_slice));
    put_strings(&mut out, FINGERPRINT_SHA256, list.sha256.iter().map(<[u8; 32]>::as_slice));
    out
}

fn put_certificates(section: &mut Vec<u8>, of: &Certificates) {
    let (single, ranges): (BTreeMap<&u64, &u64>, BTreeMap<&u64, &u64>) =
        of.serials.iter().partition(|(first, last)| first == last);
    if !single.is_empty() {
        let mut serials = Vec::with_capacity(single.len() * 8);
        for serial in single.keys() {
            serials.put_u64(**serial);
        }
        put_section(section, SERIAL_LIST, &serials);
    }
    for (first, last) in ranges {
        let mut range = Vec::with_capacity(16);
        range.put_u64(*first);
        range.put_u64(*last);
        put_section(section, SERIAL_RANGE, &range);
    }
    put_strings(section, KEY_ID, of.key_ids.iter().map(Vec::as_slice));
}

fn put_strings<'a>(out: &mut Vec<u8>, kind: u8, values: impl Iterator<Item = &'a [u8]>) {
    let mut section = Vec::new();
    for value in values {
        section.put_string(value);
    }
    if !section.is_empty() {
        put_section(out, kind, &section);
    }
}

fn put_section(out: &mut Vec<u8>, kind: u8, section: &[u8]) {
    out.put_byte(kind);
    out.put_string(section);
}
