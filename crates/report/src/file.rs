//! Files of results: all of one is written, or nothing that others could take for it.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// Writes a file that, if it is new, has this mode less what the process's umask takes away; on systems without modes,
/// the rights that its folder gives. It is written under another name and renamed; a device or a pipe is written to as
/// it is, and a link stays one.
///
/// # Errors
/// If it cannot be written; what was there then stays.
pub fn put(path: &Path, bytes: &mut dyn Read, mode: u32) -> io::Result<()> {
    match fs::metadata(path) {
        // A device or a pipe has no other file to take its place.
        Ok(there) if !there.is_file() => io::copy(bytes, &mut File::create(path)?).map(drop),
        // A link stays one.
        Ok(_) => fs::canonicalize(path).and_then(|file| replace(&file, bytes, mode)),
        Err(_) => replace(path, bytes, mode),
    }
}

/// The directory that a file is in.
pub fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn replace(path: &Path, bytes: &mut dyn Read, mode: u32) -> io::Result<()> {
    let mut builder = tempfile::Builder::new();
    if let Some(permissions) = fs::metadata(path).ok().map(|there| there.permissions()).or_else(|| of_mode(mode)) {
        builder.permissions(permissions);
    }
    let mut file = builder.tempfile_in(directory_of(path))?;
    // An error of the file itself names the path that was asked for, not the temporary one.
    io::copy(bytes, file.as_file_mut())?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(unix)]
fn of_mode(mode: u32) -> Option<fs::Permissions> {
    Some(std::os::unix::fs::PermissionsExt::from_mode(mode))
}

#[cfg(not(unix))]
fn of_mode(_: u32) -> Option<fs::Permissions> {
    None
}
