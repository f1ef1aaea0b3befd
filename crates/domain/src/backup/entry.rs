//! The entries of a backup as bytes: a tag, then fields of fixed length and texts with their length.

use outlast_crypto::Secret;
use outlast_store::{Event, Item, Record};

use super::stream::Reader;
use super::{BackupError, Counts};

const RECORD: u8 = 1;
const EVENT: u8 = 2;
const ROOT_KEY: u8 = 3;
const END: u8 = 4;

/// One entry.
pub(super) enum Entry {
    /// A record or an event.
    Item(Item),
    /// A root key and its record key.
    RootKey(String, Secret),
    /// The numbers of the entries before.
    End(Counts),
}

impl Entry {
    /// Encodes the entry.
    pub(super) fn encode(&self) -> Secret {
        let mut out = Bytes(Vec::with_capacity(self.length()));
        match self {
            Self::Item(Item::Record(key, record)) => {
                out.tag(RECORD).text(key.as_bytes()).number(record.version).text(&record.value);
            }
            Self::Item(Item::Event(event)) => {
                out.tag(EVENT).number(event.sequence).raw(&event.leaf).text(&event.body);
            }
            Self::RootKey(record_key, key) => {
                out.tag(ROOT_KEY).text(record_key.as_bytes()).text(key.expose());
            }
            Self::End(counts) => {
                out.tag(END).number(counts.records).number(counts.events).number(counts.root_keys);
            }
        }
        Secret::new(out.0)
    }

    /// Reads the next entry of a stream.
    pub(super) fn read(stream: &mut Reader<'_>) -> Result<Self, BackupError> {
        let mut input = Fields(stream);
        Ok(match input.array::<1>()? {
            [RECORD] => {
                let key = input.string()?;
                let version = input.number()?;
                Self::Item(Item::Record(key, Record { version, value: input.text()? }))
            }
            [EVENT] => {
                let sequence = input.number()?;
                let leaf = input.array()?;
                Self::Item(Item::Event(Event { sequence, leaf, body: input.text()? }))
            }
            [ROOT_KEY] => Self::RootKey(input.string()?, Secret::new(input.text()?)),
            [END] => Self::End(Counts {
                records: input.number()?,
                events: input.number()?,
                root_keys: input.number()?,
            }),
            _ => return Err(BackupError::Damaged("it holds an unknown entry".into())),
        })
    }

    /// The length in bytes, or more: the buffer may hold a secret and must not be reallocated.
    fn length(&self) -> usize {
        64 + match self {
            Self::Item(Item::Record(key, record)) => key.len() + record.value.len(),
            Self::Item(Item::Event(event)) => event.body.len(),
            Self::RootKey(record_key, key) => record_key.len() + key.len(),
            Self::End(_) => 0,
        }
    }
}

struct Bytes(Vec<u8>);

impl Bytes {
    fn tag(&mut self, tag: u8) -> &mut Self {
        self.0.push(tag);
        self
    }

    fn number(&mut self, number: u64) -> &mut Self {
        self.raw(&number.to_be_bytes())
    }

    fn text(&mut self, text: &[u8]) -> &mut Self {
        self.number(text.len() as u64).raw(text)
    }

    fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }
}

struct Fields<'a, 'b>(&'a mut Reader<'b>);

impl Fields<'_, '_> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], BackupError> {
        let mut out = [0; N];
        out.copy_from_slice(self.0.take(N)?.expose());
        Ok(out)
    }

    fn number(&mut self) -> Result<u64, BackupError> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    fn text(&mut self) -> Result<Vec<u8>, BackupError> {
        let too_long = |_| BackupError::Damaged("it holds an entry that is too long".into());
        let length = usize::try_from(self.number()?).map_err(too_long)?;
        Ok(self.0.take(length)?.expose().to_vec())
    }

    fn string(&mut self) -> Result<String, BackupError> {
        String::from_utf8(self.text()?)
            .map_err(|_| BackupError::Damaged("it holds a key that is not text".into()))
    }
}
