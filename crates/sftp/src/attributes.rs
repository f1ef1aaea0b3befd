//! Attributes of files (draft-ietf-secsh-filexfer-02, section 5).

use crate::wire::{Malformed, Reader, Writer};

const SIZE: u32 = 1;
const UIDGID: u32 = 2;
const PERMISSIONS: u32 = 4;
const ACMODTIME: u32 = 8;
const EXTENDED: u32 = 0x8000_0000;

/// Type of a file in `mode`: the mask, folders, regular files, symbolic links (POSIX `S_IFMT` and so on).
pub const TYPE: u32 = 0o170_000;
/// A folder.
pub const FOLDER: u32 = 0o040_000;
/// A regular file.
pub const REGULAR: u32 = 0o100_000;
/// A symbolic link.
pub const LINK: u32 = 0o120_000;

/// What is known of a file, or what a client asks to set. Extended attributes are read and ignored, as OpenSSH does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Bytes.
    pub size: Option<u64>,
    /// User and group, by number.
    pub owner: Option<(u32, u32)>,
    /// Permissions and type, as in POSIX' `st_mode`.
    pub mode: Option<u32>,
    /// Times of the last access and of the last modification, in seconds since 1970.
    pub times: Option<(u32, u32)>,
}

impl Attributes {
    /// Takes attributes from a packet.
    ///
    /// # Errors
    /// The packet ends before they do.
    pub fn read(reader: &mut Reader) -> Result<Self, Malformed> {
        let flags = reader.u32()?;
        let mut found = Self::default();
        if flags & SIZE != 0 {
            found.size = Some(reader.u64()?);
        }
        if flags & UIDGID != 0 {
            found.owner = Some((reader.u32()?, reader.u32()?));
        }
        if flags & PERMISSIONS != 0 {
            found.mode = Some(reader.u32()?);
        }
        if flags & ACMODTIME != 0 {
            found.times = Some((reader.u32()?, reader.u32()?));
        }
        if flags & EXTENDED != 0 {
            // Each takes 8 bytes at least, so that the packet's length bounds the loop.
            for _ in 0..reader.u32()? {
                reader.string()?;
                reader.string()?;
            }
        }
        Ok(found)
    }

    /// Appends the attributes to a packet.
    pub fn write(&self, writer: &mut Writer) {
        let flag = |is_there: bool, flag: u32| if is_there { flag } else { 0 };
        writer.u32(
            flag(self.size.is_some(), SIZE)
                | flag(self.owner.is_some(), UIDGID)
                | flag(self.mode.is_some(), PERMISSIONS)
                | flag(self.times.is_some(), ACMODTIME),
        );
        if let Some(size) = self.size {
            writer.u64(size);
        }
        if let Some((user, group)) = self.owner {
            writer.u32(user);
            writer.u32(group);
        }
        if let Some(mode) = self.mode {
            writer.u32(mode);
        }
        if let Some((access, modification)) = self.times {
            writer.u32(access);
            writer.u32(modification);
        }
    }

    /// A folder that exists only in a view.
    #[must_use]
    pub fn virtual_folder() -> Self {
        Self { size: Some(0), owner: None, mode: Some(FOLDER | 0o755), times: None }
    }

    /// Whether they are of a folder.
    #[must_use]
    pub fn is_folder(&self) -> bool {
        self.is(FOLDER)
    }

    /// Whether they are of a regular file.
    #[must_use]
    pub fn is_regular(&self) -> bool {
        self.is(REGULAR)
    }

    /// Whether they are of a symbolic link.
    #[must_use]
    pub fn is_link(&self) -> bool {
        self.is(LINK)
    }

    fn is(&self, kind: u32) -> bool {
        self.mode.is_some_and(|mode| mode & TYPE == kind)
    }
}
