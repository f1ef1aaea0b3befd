//! What one user sees: volumes at places of one tree, with rights by folder, names that are hidden, and a quota.
//!
//! A view never follows symbolic links if rules or hidden names tell its folders apart, because a link would otherwise
//! carry the rights of its own folder to its target.

mod listing;
mod metered;
mod usage;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::attributes::Attributes;
use crate::error::{Error, Result, Status};
use crate::owners::Owners;
use crate::path::RemotePath;
use crate::quota::{Quota, Usage};
use crate::rights::Rights;
use crate::volume::{Entry, File, Follow, Listing, OpenHow, Space, Volume};

pub use usage::measure;

/// A volume at a place of the tree.
struct Mount {
    at: RemotePath,
    volume: Arc<dyn Volume>,
    /// What is stored there counts against it.
    quota: Option<Arc<Quota>>,
}

/// Rights in a folder and everything below it, unless another rule is closer.
struct Rule {
    at: RemotePath,
    rights: Rights,
}

/// A user's view. It is shared by the threads that run the user's operations.
pub struct View {
    mounts: Vec<Mount>,
    rules: Vec<Rule>,
    hidden: Vec<Vec<u8>>,
    allowed: Rights,
    owners: Owners,
    home: RemotePath,
    user: Vec<u8>,
    now: fn() -> i64,
}

/// What is at a path.
enum Spot<'a> {
    /// A path of a volume.
    In(&'a Mount, RemotePath),
    /// A folder that exists only because something is mounted below it.
    Virtual,
}

impl View {
    /// An empty view. `now` gives the time in seconds since 1970, for listings.
    #[must_use]
    pub fn new(now: fn() -> i64) -> Self {
        Self {
            mounts: Vec::new(),
            rules: Vec::new(),
            hidden: Vec::new(),
            allowed: Rights::ALL,
            owners: Owners::default(),
            home: RemotePath::root(),
            user: Vec::new(),
            now,
        }
    }

    /// Adds a volume at a place. A deeper place hides what the volume of a higher one has there.
    #[must_use]
    pub fn mount(self, at: RemotePath, volume: Arc<dyn Volume>) -> Self {
        self.mount_with(at, volume, None)
    }

    /// Adds a volume at a place; what is stored in it counts against the quota.
    #[must_use]
    pub fn mount_with(
        mut self,
        at: RemotePath,
        volume: Arc<dyn Volume>,
        quota: Option<Arc<Quota>>,
    ) -> Self {
        let volume = if self.tells_folders_apart() { volume.without_links() } else { volume };
        self.mounts.push(Mount { at, volume, quota });
        // The deepest first: the first that contains a path is the closest.
        self.mounts.sort_by_key(|mount| std::cmp::Reverse(mount.at.as_bytes().len()));
        self
    }

    /// Gives rights in a folder and below it.
    #[must_use]
    pub fn rule(mut self, at: RemotePath, rights: Rights) -> Self {
        self.rules.push(Rule { at, rights });
        self.rules.sort_by_key(|rule| std::cmp::Reverse(rule.at.as_bytes().len()));
        self.stop_following()
    }

    /// Hides files and folders of a name, everywhere.
    #[must_use]
    pub fn hide(mut self, name: &[u8]) -> Self {
        self.hidden.push(name.to_vec());
        self.stop_following()
    }

    /// Takes away all rights that are not among these, everywhere.
    #[must_use]
    pub fn only(mut self, rights: Rights) -> Self {
        self.allowed = rights;
        self
    }

    /// Counts what is stored in all volumes that were added before against a quota.
    #[must_use]
    pub fn quota(mut self, quota: &Arc<Quota>) -> Self {
        for mount in &mut self.mounts {
            mount.quota = Some(Arc::clone(quota));
        }
        self
    }

    /// Names for owners.
    #[must_use]
    pub fn owners(mut self, owners: Owners) -> Self {
        self.owners = owners;
        self
    }

    /// Folder at which relative paths begin; `/` otherwise.
    #[must_use]
    pub fn home(mut self, home: RemotePath) -> Self {
        self.home = home;
        self
    }

    /// Name of the user whose home it is; the home can be asked for by it.
    #[must_use]
    pub fn user(mut self, name: &[u8]) -> Self {
        self.user = name.to_vec();
        self
    }

    fn tells_folders_apart(&self) -> bool {
        !self.rules.is_empty() || !self.hidden.is_empty()
    }

    fn stop_following(mut self) -> Self {
        for mount in &mut self.mounts {
            mount.volume = Arc::clone(&mount.volume).without_links();
        }
        self
    }

    /// A client's path, absolute and normal.
    ///
    /// # Errors
    /// It is no path.
    pub fn path(&self, text: &[u8]) -> Result<RemotePath> {
        RemotePath::parse(text, &self.home)
    }

    /// Folder at which relative paths begin.
    #[must_use]
    pub fn home_path(&self) -> &RemotePath {
        &self.home
    }

    /// The home of a user, of the one who is asking if the name is empty.
    ///
    /// # Errors
    /// It is another user's, who may not exist: the answer is the same.
    pub fn home_of(&self, user: &[u8]) -> Result<&RemotePath> {
        if user.is_empty() || user == self.user {
            return Ok(&self.home);
        }
        Err(Error::failure("only your own home is known here"))
    }

    /// Names for owners.
    #[must_use]
    pub fn owner_names(&self) -> &Owners {
        &self.owners
    }

    /// The time, in seconds since 1970.
    #[must_use]
    pub fn now(&self) -> i64 {
        (self.now)()
    }

    /// Rights at a path.
    #[must_use]
    pub fn rights(&self, path: &RemotePath) -> Rights {
        self.governing(path).map_or(Rights::ALL, |rule| rule.rights).and(self.allowed)
    }

    fn governing(&self, path: &RemotePath) -> Option<&Rule> {
        self.rules.iter().find(|rule| path.below(&rule.at).is_some())
    }

    fn spot(&self, path: &RemotePath) -> Result<Spot<'_>> {
        if path.components().any(|name| self.is_hidden(name)) {
            return Err(Error::not_found());
        }
        for mount in &self.mounts {
            if let Some(inner) = path.below(&mount.at) {
                return Ok(Spot::In(mount, inner));
            }
        }
        if path.is_root() || self.mounts.iter().any(|mount| mount.at.below(path).is_some()) {
            return Ok(Spot::Virtual);
        }
        Err(Error::not_found())
    }

    fn is_hidden(&self, name: &[u8]) -> bool {
        self.hidden.iter().any(|hidden| hidden == name)
    }

    /// The volume at a path that is to be changed.
    fn changeable(&self, path: &RemotePath, needed: Rights) -> Result<(&Mount, RemotePath)> {
        let spot = self.spot(path)?;
        self.rights(path).demand(needed)?;
        match spot {
            Spot::In(mount, inner) => Ok((mount, inner)),
            Spot::Virtual => Err(fixed()),
        }
    }

    /// Refuses to remove or rename a folder that a mount or rule names or is below: the mount would stay, and the rule would
    /// no longer apply to what it was written for.
    fn refuse_fixed(&self, path: &RemotePath) -> Result<()> {
        let mut named =
            self.mounts.iter().map(|mount| &mount.at).chain(self.rules.iter().map(|rule| &rule.at));
        if path.is_root() || named.any(|at| at.below(path).is_some()) {
            return Err(fixed());
        }
        Ok(())
    }

    /// Opens a file.
    ///
    /// # Errors
    /// It cannot be opened, or the user may not.
    pub fn open(&self, path: &RemotePath, how: &OpenHow) -> Result<Box<dyn File>> {
        // Without any flag OpenSSH opens for reading.
        let how = OpenHow { read: how.read || !(how.write || how.append), ..*how };
        let how = OpenHow { write: how.write || how.append, ..how };
        let spot = self.spot(path)?;
        let rights = self.rights(path);
        if how.read {
            rights.demand(Rights::READ)?;
        }
        if how.changes() {
            rights.demand(Rights::WRITE)?;
        }
        let Spot::In(Mount { volume, quota, .. }, inner) = spot else {
            return Err(Error::failure("it is a folder"));
        };
        match quota {
            // The rest of the file's life is counted, too, so that it needs its volume.
            Some(quota) => metered::open(Arc::clone(volume), inner, &how, quota),
            None => volume.open(&inner, &how),
        }
    }

    /// Attributes of a file.
    ///
    /// # Errors
    /// It does not exist, or the user may not know.
    pub fn attributes(&self, path: &RemotePath, follow: Follow) -> Result<Attributes> {
        let attributes = match self.spot(path)? {
            Spot::In(mount, inner) => match mount.volume.attributes(&inner, follow) {
                Err(error) if self.leads_to_mount(path, &error) => Attributes::virtual_folder(),
                found => found?,
            },
            Spot::Virtual => Attributes::virtual_folder(),
        };
        // A user who may only write somewhere still has to get there.
        let rights = self.rights(path);
        if !attributes.is_folder() && !rights.has(Rights::READ) {
            rights.demand(Rights::LIST)?;
        }
        Ok(attributes)
    }

    /// Sets attributes.
    ///
    /// # Errors
    /// One cannot be set, or the user may not.
    pub fn set_attributes(&self, path: &RemotePath, to: &Attributes, follow: Follow) -> Result<()> {
        let (Mount { volume, quota, .. }, inner) = self.changeable(path, needed_to_set(to))?;
        let Some((quota, size)) = quota.as_deref().zip(to.size) else {
            return volume.set_attributes(&inner, to, follow);
        };
        let _gate = quota.gate();
        let before = volume.attributes(&inner, follow)?.size.unwrap_or(0);
        quota.take(Usage { bytes: size.saturating_sub(before), files: 0 })?;
        let set = volume.set_attributes(&inner, to, follow);
        // The size may have been set although another attribute was not.
        let found = volume.attributes(&inner, follow).ok().and_then(|found| found.size);
        let after = found.unwrap_or(before);
        quota.give(Usage { bytes: before.max(size).saturating_sub(after), files: 0 });
        set
    }

    /// Refuses to set attributes of an open file without the right to.
    ///
    /// # Errors
    /// The user may not.
    pub fn may_set(&self, path: &RemotePath, to: &Attributes) -> Result<()> {
        self.rights(path).demand(needed_to_set(to))
    }

    /// Begins to list a folder.
    ///
    /// # Errors
    /// It cannot be opened, or the user may not.
    pub fn list(&self, path: &RemotePath) -> Result<Box<dyn Listing>> {
        let spot = self.spot(path)?;
        self.rights(path).demand(Rights::LIST)?;
        let inner = match spot {
            Spot::In(mount, inner) => match mount.volume.list(&inner) {
                Err(error) if self.leads_to_mount(path, &error) => None,
                found => Some(found?),
            },
            Spot::Virtual => None,
        };
        let mounted = self.mounted_in(path);
        if inner.is_some() && mounted.is_empty() && self.hidden.is_empty() {
            return inner.ok_or_else(Error::not_found);
        }
        let dots = if inner.is_none() { &[&b"."[..], b".."][..] } else { &[] };
        let virtual_entry = |name: &[u8]| Entry {
            name: name.to_vec(),
            attributes: Attributes::virtual_folder(),
            links: 1,
        };
        let mut first: VecDeque<Entry> = dots.iter().map(|name| virtual_entry(name)).collect();
        for name in &mounted {
            let attributes = self.attributes(&path.join(name), Follow::No);
            let attributes = attributes.unwrap_or_else(|_| Attributes::virtual_folder());
            first.push_back(Entry { attributes, ..virtual_entry(name) });
        }
        let hidden = self.hidden.iter().cloned().chain(mounted).collect();
        Ok(Box::new(listing::Merged { first, inner, hidden }))
    }

    /// Whether a path that a volume does not have leads to another one's place all the same.
    fn leads_to_mount(&self, path: &RemotePath, error: &Error) -> bool {
        error.status == Status::NoSuchFile && !self.mounted_in(path).is_empty()
    }

    /// Names in a folder below which something is mounted.
    fn mounted_in(&self, path: &RemotePath) -> Vec<Vec<u8>> {
        let below = self.mounts.iter().filter_map(|mount| mount.at.below(path));
        let mut names: Vec<Vec<u8>> =
            below.filter_map(|rest| rest.components().next().map(<[u8]>::to_vec)).collect();
        names.sort();
        names.dedup();
        names.retain(|name| !self.is_hidden(name));
        names
    }

    /// Removes a file or link.
    ///
    /// # Errors
    /// It cannot be removed, or the user may not.
    pub fn remove(&self, path: &RemotePath) -> Result<()> {
        let (mount, inner) = self.changeable(path, Rights::DELETE)?;
        mount.removing(&inner, || mount.volume.remove(&inner))
    }

    /// Makes a folder.
    ///
    /// # Errors
    /// It cannot be made, or the user may not.
    pub fn make_folder(&self, path: &RemotePath, mode: Option<u32>) -> Result<()> {
        let (mount, inner) = self.changeable(path, Rights::MKDIR)?;
        mount.making(&inner, || mount.volume.make_folder(&inner, mode))
    }

    /// Removes an empty folder.
    ///
    /// # Errors
    /// It cannot be removed, or the user may not.
    pub fn remove_folder(&self, path: &RemotePath) -> Result<()> {
        let (mount, inner) = self.changeable(path, Rights::DELETE)?;
        if self.mounts.iter().any(|mount| mount.at.below(path).is_some()) {
            return Err(fixed());
        }
        let Some(quota) = &mount.quota else { return mount.volume.remove_folder(&inner) };
        // A rename that replaces the folder gives it back, and must not do so twice.
        let _gate = quota.gate();
        mount.volume.remove_folder(&inner)?;
        quota.give(Usage { bytes: 0, files: 1 });
        Ok(())
    }

    /// Renames a file, link or folder within one volume.
    ///
    /// # Errors
    /// It cannot be renamed, or the user may not.
    pub fn rename(&self, from: &RemotePath, to: &RemotePath, replace: bool) -> Result<()> {
        let (mount, inner_from) = self.changeable(from, Rights::RENAME)?;
        let (other, inner_to) = self.changeable(to, Rights::RENAME)?;
        self.refuse_fixed(from)?;
        self.refuse_fixed(to)?;
        same(mount, other, "rename")?;
        let at = |path| self.governing(path).map(|rule| &rule.at);
        if at(from) != at(to) {
            return Err(Error::denied(
                "these folders have different rights: copy the file, then remove it",
            ));
        }
        // Clients ask to replace without meaning it: OpenSSH's always does. What the user may neither remove nor
        // write must not be destroyed that way.
        let rights = self.rights(to);
        let replace = replace && (rights.has(Rights::DELETE) || rights.has(Rights::WRITE));
        let Some(quota) = &mount.quota else {
            return mount.volume.rename(&inner_from, &inner_to, replace);
        };
        // A copy that remains must not be made again and again.
        quota.refuse_more_copies()?;
        let renames = mount.volume.renaming(inner_from.clone(), inner_to.clone(), replace)?;
        let _gate = quota.gate();
        quota.refuse_more_copies()?;
        let volume = &*mount.volume;
        let look = || [&inner_from, &inner_to].map(|path| usage::look(volume, path));
        let [old, new] = look();
        let before = [old?, new?];
        // A rename between two names of one file does nothing. Afterwards the old name may be somebody else's again.
        let id = |path| volume.inode(path).ok().flatten().map(|inode| inode.id);
        let is_one = inner_from == inner_to
            || id(&inner_from).zip(id(&inner_to)).is_some_and(|(old, new)| old == new);
        if let Err(error) = renames() {
            // S3 may have made the new name, and perhaps removed the old one without saying so.
            if inner_from != inner_to {
                let files = before.map(|found| found.filter(|name| !name.is_folder));
                let now = [&inner_from, &inner_to].map(|path| usage::look_for_file(volume, path));
                quota.correct_names(
                    files.map(|name| Some(usage::of(name))),
                    now.each_ref().map(usage::used),
                );
            }
            return Err(error);
        }
        // In S3 a folder stays beside a file that gets its name; elsewhere only a folder replaces a folder.
        let [old, replaced] = before;
        let was_folder = old.is_some_and(|old| old.is_folder);
        let replaced = replaced.filter(|name| name.is_folder == was_folder);
        if let Some(replaced) = replaced.filter(|_| replace && !is_one) {
            quota.gone(replaced);
        }
        Ok(())
    }

    /// Target of a link.
    ///
    /// # Errors
    /// It is none, or the user may not know.
    pub fn read_link(&self, path: &RemotePath) -> Result<Vec<u8>> {
        let spot = self.spot(path)?;
        self.rights(path).demand(Rights::LIST)?;
        match spot {
            Spot::In(mount, inner) => mount.volume.read_link(&inner),
            Spot::Virtual => Err(Error::failure("it is not a symbolic link")),
        }
    }

    /// Makes a symbolic link.
    ///
    /// # Errors
    /// It cannot be made, or the user may not.
    pub fn symlink(&self, target: &[u8], link: &RemotePath) -> Result<()> {
        let (mount, inner) = self.changeable(link, Rights::SYMLINK)?;
        let inner_target;
        let target = if target.first() == Some(&b'/') {
            let Spot::In(other, path) = self.spot(&self.path(target)?)? else {
                return Err(Error::failure("a link cannot lead to another volume"));
            };
            same(mount, other, "link")?;
            inner_target = path;
            inner_target.as_bytes()
        } else {
            target
        };
        mount.making(&inner, || mount.volume.symlink(target, &inner))
    }

    /// Makes a second name of a file.
    ///
    /// # Errors
    /// It cannot be made, or the user may not.
    pub fn hard_link(&self, from: &RemotePath, to: &RemotePath) -> Result<()> {
        // Through the new name the file can be read and written with the rights of the new name's folder.
        let (mount, inner_from) = self.changeable(from, Rights::READ.or(Rights::WRITE))?;
        let (other, inner_to) = self.changeable(to, Rights::SYMLINK)?;
        same(mount, other, "link")?;
        // Removing one of two names would give back what the other still uses.
        if mount.quota.is_some() {
            return Err(Error::unsupported("a home with a quota has no hard links; copy the file"));
        }
        mount.volume.hard_link(&inner_from, &inner_to)
    }

    /// Space at a path: that of its quota where it has one.
    ///
    /// # Errors
    /// It cannot be found out.
    pub fn space(&self, path: &RemotePath) -> Result<Space> {
        match self.spot(path)? {
            Spot::In(Mount { volume, quota, .. }, inner) => {
                let space = volume.space(&inner)?;
                Ok(quota.as_deref().map_or(space, |quota| quota.space(space)))
            }
            Spot::Virtual => Err(Error::unsupported("this folder has no space of its own")),
        }
    }

    /// Counts what the view contains. It reads every folder.
    ///
    /// # Errors
    /// A folder cannot be read.
    pub fn measure(&self) -> Result<Usage> {
        let mut used = Usage::default();
        for Mount { volume, .. } in &self.mounts {
            used = used.and(measure(&**volume)?);
        }
        Ok(used)
    }
}

impl Mount {
    /// Removes a file or link. Another change that looks which names are there must not see it half-way.
    fn removing(&self, inner: &RemotePath, act: impl FnOnce() -> Result<()>) -> Result<()> {
        let Some(quota) = &self.quota else { return act() };
        let _gate = quota.gate();
        let before = usage::look_for_file(&*self.volume, inner)?;
        let done = act();
        match (&done, before) {
            (Ok(()), Some(name)) => quota.gone(name),
            (Ok(()), None) => {}
            // S3 may have done it without saying so.
            (Err(_), _) => {
                let now = usage::look_for_file(&*self.volume, inner);
                quota.correct(Some(usage::of(before)), usage::used(&now));
            }
        }
        done
    }

    /// Makes a folder or a link, which counts as one file.
    fn making(&self, inner: &RemotePath, act: impl FnOnce() -> Result<()>) -> Result<()> {
        let Some(quota) = &self.quota else { return act() };
        let _gate = quota.gate();
        let before = usage::look(&*self.volume, inner)?;
        let one = Usage { bytes: 0, files: 1 };
        quota.take(one)?;
        act().inspect_err(|_| {
            quota.give(one);
            let now = usage::look(&*self.volume, inner);
            quota.correct(Some(usage::of(before)), usage::used(&now));
        })
    }
}

/// A new size is written, everything else is set.
fn needed_to_set(to: &Attributes) -> Rights {
    let only_size = Attributes { size: to.size, ..Attributes::default() } == *to;
    match (to.size.is_some(), only_size) {
        (true, true) => Rights::WRITE,
        (true, false) => Rights::WRITE.or(Rights::SETSTAT),
        (false, _) => Rights::SETSTAT,
    }
}

fn same(one: &Mount, other: &Mount, act: &str) -> Result<()> {
    if std::ptr::eq(one, other) {
        return Ok(());
    }
    Err(Error::failure(format!("cannot {act} between two storages; copy the file, then remove it")))
}

fn fixed() -> Error {
    Error::denied("this folder belongs to the layout of your home and cannot be changed")
}
