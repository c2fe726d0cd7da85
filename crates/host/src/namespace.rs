//! A network namespace of our own, held by a thread.
//!
//! A network namespace belongs to a thread and is inherited by the threads and processes it starts. One thread that
//! never ends stands for the namespace here; what is to happen inside is sent to it. The namespace has no name in the
//! file system, so nothing of it stays behind when the process dies, whatever of.

use rustix::thread::{LinkNameSpaceType, UnshareFlags};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

/// A handle; the namespace lives until the last handle, socket and process in it is gone.
#[derive(Clone)]
pub struct Namespace {
    name: Arc<str>,
    jobs: Sender<Job>,
    file: Arc<OwnedFd>,
}

type Job = Box<dyn FnOnce() + Send>;

/// A command that failed inside a namespace.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// A command could not be started.
    #[error("cannot run `{command}`: {error}")]
    Start {
        /// Command line.
        command: String,
        /// Error of the operating system.
        error: io::Error,
    },
    /// A command failed.
    #[error("`{command}` failed: {message}")]
    Failed {
        /// Command line.
        command: String,
        /// Its error output.
        message: String,
    },
}

impl Namespace {
    /// A new network namespace with its loopback interface up. `name` is for messages only.
    ///
    /// # Errors
    /// `PermissionDenied` without CAP_SYS_ADMIN in the user namespace of the caller.
    pub fn new(name: &str) -> io::Result<Self> {
        let (jobs, inbox) = channel::<Job>();
        let (ready, made) = channel();
        thread::Builder::new().name(format!("ns-{name}")).spawn(move || {
            let file = enter_new();
            let entered = file.is_ok();
            // Fails only if the caller has gone.
            let _ = ready.send(file);
            if entered {
                inbox.into_iter().for_each(|job| job());
            }
        })?;
        let file = made.recv().map_err(io::Error::other)??;
        let namespace = Namespace { name: name.into(), jobs, file: Arc::new(file) };
        namespace.command("ip", &["link", "set", "dev", "lo", "up"]).map_err(io::Error::other)?;
        Ok(namespace)
    }

    /// Name given at creation.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs `job` in the namespace and waits for its answer; a panic in it goes on here. Jobs run one after the other:
    /// what takes long belongs into [`Namespace::spawn`].
    pub fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (answer, result) = channel();
        let job = move || {
            let _ = answer.send(catch_unwind(AssertUnwindSafe(job)));
        };
        self.jobs.send(Box::new(job)).expect("the namespace's thread ends only with its last handle");
        let result = result.recv().expect("the namespace's thread answers each job");
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Runs `job` on a new thread in the namespace.
    pub fn spawn<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        self.run(move || thread::spawn(job))
    }

    /// Runs a program to its end and answers what it printed.
    pub fn command(&self, program: &str, arguments: &[&str]) -> Result<String, CommandError> {
        let command = [&[program], arguments].concat().join(" ");
        let mut child = Command::new(program);
        child.args(arguments).stdin(std::process::Stdio::null());
        let output = self
            .run(move || child.output())
            .map_err(|error| CommandError::Start { command: command.clone(), error })?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        let message = if said.is_empty() { output.status.to_string() } else { said };
        Err(CommandError::Failed { command, message })
    }

    /// Sets a kernel parameter of the namespace, for instance `net.ipv4.ip_forward`; with slashes where it has the name
    /// of an interface, which may have dots.
    pub fn sysctl(&self, key: &str, value: &str) -> io::Result<()> {
        let key = if key.contains('/') { key.to_owned() } else { key.replace('.', "/") };
        let path = format!("/proc/sys/{key}");
        let value = value.to_owned();
        let result = self.run({
            let path = path.clone();
            move || std::fs::write(path, value)
        });
        result.map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))
    }

    /// The namespace itself, as `setns(2)` and `ip link set … netns /proc/self/fd/N` take it.
    pub fn file(&self) -> &OwnedFd {
        &self.file
    }

    /// Moves the calling thread into the namespace, for good.
    pub fn enter(&self) -> io::Result<()> {
        Ok(rustix::thread::move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network))?)
    }
}

fn enter_new() -> io::Result<OwnedFd> {
    #[allow(deprecated)] // Its replacement is unsafe because of flags that are not used here.
    rustix::thread::unshare(UnshareFlags::NEWNET)?;
    Ok(File::open("/proc/thread-self/ns/net")?.into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_runs_inside_sees_other_interfaces_and_leaves_ours_alone() {
        let namespace = match Namespace::new("test") {
            Ok(namespace) => namespace,
            Err(error) => return println!("SKIPPED: no network namespaces here: {error}"),
        };
        namespace.command("ip", &["address", "add", "10.99.99.99/32", "dev", "lo"]).unwrap();
        let bind = || std::net::UdpSocket::bind("10.99.99.99:0").is_ok();
        assert!(namespace.run(bind), "the address is in the namespace");
        assert!(namespace.spawn(bind).join().unwrap(), "threads inherit it");
        assert!(!bind(), "and not here");
        namespace.sysctl("net.ipv4.ip_forward", "1").unwrap();
        let error = namespace.command("ip", &["link", "set", "dev", "nosuch", "up"]).unwrap_err();
        assert!(error.to_string().contains("nosuch"), "{error}");
    }
}
