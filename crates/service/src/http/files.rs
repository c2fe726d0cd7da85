//! A directory tree that is served. The kernel itself sees to it that no path leads out of it: not by `..`, not by a
//! symbolic link, not by one that changes between two looks (`RESOLVE_BENEATH`, openat2(2)).

use super::path::encode;
use rustix::fs::{Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, open, openat2};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fmt::Write;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Directory that is served, as far as the process may read it.
#[derive(Debug)]
pub struct Root {
    directory: OwnedFd,
}

/// Target of a path.
#[derive(Debug)]
pub(crate) enum Entry {
    File(Served),
    /// A directory without an index, as HTML.
    Listing(String),
    /// A directory that was asked for as a file.
    Directory,
}

/// A regular file, open.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) file: File,
    pub(crate) length: u64,
    /// Whole seconds since 1970.
    pub(crate) modified: i64,
    pub(crate) tag: String,
    pub(crate) kind: &'static str,
}

/// Entries of a listing; more are not shown.
const MAX_LISTED: usize = 5000;

impl Root {
    /// Serves `path`.
    ///
    /// # Errors
    /// If it is no directory that can be opened, or the kernel is older than 5.6 and cannot keep paths below it.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = Root { directory: open(path, flags, Mode::empty())? };
        root.look_up(OsStr::new("."))?;
        Ok(root)
    }

    /// Looks up the path `segments`; `directory` if a slash follows them.
    ///
    /// # Errors
    /// With an HTTP status.
    pub(crate) fn find(&self, segments: &[Vec<u8>], directory: bool) -> Result<Entry, u16> {
        let path = if segments.is_empty() { b".".to_vec() } else { segments.join(&b'/') };
        let file = self.look_up(OsStr::from_bytes(&path)).map_err(status)?;
        let stat = fstat(&file).map_err(status)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if directory => Err(404),
            FileType::RegularFile => Ok(Entry::File(served(file, &stat, &path))),
            FileType::Directory if !directory => Ok(Entry::Directory),
            FileType::Directory => {
                let index = [path.as_slice(), b"/index.html"].concat();
                if let Ok(index_file) = self.look_up(OsStr::from_bytes(&index))
                    && let Ok(stat) = fstat(&index_file)
                    && FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
                {
                    return Ok(Entry::File(served(index_file, &stat, &index)));
                }
                listing(&file, segments).map(Entry::Listing).map_err(status)
            }
            _ => Err(403),
        }
    }

    fn look_up(&self, path: &OsStr) -> Result<OwnedFd, Errno> {
        // A FIFO must not keep us waiting for its writer.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        loop {
            match openat2(&self.directory, path, flags, Mode::empty(), beneath) {
                // Something was renamed meanwhile, so that the kernel is not sure.
                Err(Errno::AGAIN) => {}
                result => return result,
            }
        }
    }
}

fn status(error: Errno) -> u16 {
    match error {
        Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG => 404,
        // XDEV: out of the tree; LOOP: links in a circle.
        Errno::ACCESS | Errno::PERM | Errno::XDEV | Errno::LOOP | Errno::NXIO => 403,
        Errno::MFILE | Errno::NFILE | Errno::NOMEM => 503,
        _ => 500,
    }
}

fn served(file: OwnedFd, stat: &Stat, path: &[u8]) -> Served {
    let length = u64::try_from(stat.st_size).unwrap_or(0);
    let tag = format!("\"{:x}-{:x}.{:x}\"", length, stat.st_mtime, stat.st_mtime_nsec);
    Served { file: file.into(), length, modified: stat.st_mtime, tag, kind: content_type(path) }
}

fn listing(directory: &OwnedFd, segments: &[Vec<u8>]) -> Result<String, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)?.take(MAX_LISTED) {
        let entry = entry?;
        let mut name = entry.file_name().to_bytes().to_vec();
        if name == b"." || name == b".." {
            continue;
        }
        if entry.file_type() == FileType::Directory {
            name.push(b'/');
        }
        names.push(name);
    }
    names.sort();
    let here = escape(&segments.iter().map(|name| format!("/{}", String::from_utf8_lossy(name))).collect::<String>());
    let mut html =
        format!("<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<title>{here}/</title>\n<h1>{here}/</h1>\n<ul>\n");
    if !segments.is_empty() {
        html += "<li><a href=\"../\">../</a>\n";
    }
    for name in names {
        let (slash, bare) = name.strip_suffix(b"/").map_or(("", name.as_slice()), |bare| ("/", bare));
        let shown = escape(&String::from_utf8_lossy(bare));
        writeln!(html, "<li><a href=\"./{}{slash}\">{shown}{slash}</a>", encode(bare))
            .expect("writing to a String cannot fail");
    }
    html += "</ul>\n";
    Ok(html)
}

/// Text as HTML shows it.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Returns the type by the name's extension; a browser that gets `application/octet-stream` saves it.
fn content_type(path: &[u8]) -> &'static str {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let extension = name.rsplit(|byte| *byte == b'.').next().filter(|extension| extension.len() < name.len());
    let extension = extension.unwrap_or_default().to_ascii_lowercase();
    match extension.as_slice() {
        b"html" | b"htm" => "text/html; charset=utf-8",
        b"txt" | b"log" | b"md" | b"toml" | b"csv" => "text/plain; charset=utf-8",
        b"css" => "text/css; charset=utf-8",
        b"js" | b"mjs" => "text/javascript; charset=utf-8",
        b"json" => "application/json",
        b"xml" => "application/xml",
        b"svg" => "image/svg+xml",
        b"png" => "image/png",
        b"jpg" | b"jpeg" => "image/jpeg",
        b"gif" => "image/gif",
        b"webp" => "image/webp",
        b"ico" => "image/x-icon",
        b"pdf" => "application/pdf",
        b"wasm" => "application/wasm",
        b"mp4" => "video/mp4",
        b"webm" => "video/webm",
        b"mp3" => "audio/mpeg",
        b"gz" | b"tgz" => "application/gzip",
        b"zip" => "application/zip",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    fn find(root: &Root, path: &str) -> Result<Entry, u16> {
        let (segments, directory) = super::super::path::segments(path).map_err(|_| 400u16)?;
        root.find(&segments, directory)
    }

    fn content(entry: Result<Entry, u16>) -> String {
        let Ok(Entry::File(mut served)) = entry else { panic!("a file: {entry:?}") };
        let mut text = String::new();
        served.file.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn nothing_outside_is_served() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "secret").unwrap();
        let tree = tempfile::tempdir().unwrap();
        let at = |name: &str| tree.path().join(name);
        std::fs::create_dir_all(at("a/b")).unwrap();
        std::fs::write(at("a/file.txt"), "text").unwrap();
        symlink(outside.path().join("secret"), at("absolute")).unwrap();
        symlink("../../../../../../etc/passwd", at("a/relative")).unwrap();
        symlink(outside.path(), at("a/elsewhere")).unwrap();
        symlink("file.txt", at("a/inside")).unwrap();
        symlink("circle", at("circle")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, at("fifo"), Mode::RUSR).unwrap();

        let root = Root::open(tree.path()).unwrap();
        assert_eq!(content(find(&root, "/a/file.txt")), "text");
        assert_eq!(content(find(&root, "/a/inside")), "text");
        for path in ["/absolute", "/a/relative", "/a/elsewhere/", "/a/elsewhere/secret", "/circle", "/fifo"] {
            assert_eq!(find(&root, path).err(), Some(403), "{path}");
        }
        for path in ["/b", "/a/file.txt/", "/a/file.txt/x"] {
            assert_eq!(find(&root, path).err(), Some(404), "{path}");
        }
        assert!(matches!(find(&root, "/a"), Ok(Entry::Directory)));
        assert!(Root::open(&at("a/file.txt")).is_err());
    }

    #[test]
    fn a_directory_shows_its_index_or_its_names() {
        let tree = tempfile::tempdir().unwrap();
        let name = tree.path().join("<b> & \"c\"");
        std::fs::write(name, "").unwrap();
        std::fs::create_dir(tree.path().join("sub")).unwrap();
        let root = Root::open(tree.path()).unwrap();
        let Ok(Entry::Listing(html)) = find(&root, "/") else { panic!("a listing") };
        assert!(html.contains("<a href=\"./%3Cb%3E%20%26%20%22c%22\">&lt;b&gt; &amp; &quot;c&quot;</a>"), "{html}");
        assert!(html.contains("<a href=\"./sub/\">sub/</a>"));
        std::fs::write(tree.path().join("index.html"), "index").unwrap();
        assert_eq!(content(find(&root, "/")), "index");
    }
}
