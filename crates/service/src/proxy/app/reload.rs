//! Settings that change while the proxy runs.

use super::{Proxy, RESOLVER, SERVICE};
use crate::proxy::front::Host;
use crate::proxy::resolver::Resolver;
use crate::proxy::settings::{Direction, Limits, Timeouts, Users};
use anabranch_host::Context;
use std::net::SocketAddr;
use std::sync::Arc;

/// Outcome of SIGHUP.
pub enum Reload {
    /// Go on with these.
    Changed(Changes),
    /// They could not be read, for this reason: go on as before.
    Failed(String),
    /// The terminal is gone, which could have ended the proxy.
    End,
}

/// New settings. Running sessions keep the old ones.
pub struct Changes {
    /// The bounds on what clients may take up.
    pub limits: Limits,
    /// Time limits.
    pub timeouts: Timeouts,
    /// The service, in front of one: its name, which is looked up again, and port.
    pub service: Option<(String, u16)>,
    /// Users, in front of programs.
    pub users: Option<Arc<Users>>,
}

impl Proxy {
    /// Makes SIGHUP call `reload` for new settings; without it, SIGHUP ends the proxy as SIGTERM does.
    pub fn reloading(mut self, reload: impl FnMut() -> Reload + 'static) -> Self {
        self.reload = Some(Box::new(reload));
        self
    }

    pub(super) fn read_again(&mut self, cx: &mut Context<'_>) {
        match self.reload.as_mut().map_or(Reload::End, |reload| reload()) {
            Reload::Changed(changes) => {
                self.change(cx, changes);
                tracing::info!(target: "anabranch::proxy", "settings reloaded: {}", self.describe());
            }
            Reload::Failed(error) => {
                tracing::error!(target: "anabranch::proxy", error, "settings not reloaded, the previous ones stay");
            }
            Reload::End => anabranch_host::Application::on_signal(self, cx, HANGUP),
        }
    }

    fn change(&mut self, cx: &mut Context<'_>, changes: Changes) {
        let Changes { limits, timeouts, service, users } = changes;
        self.settings.limits = limits;
        self.settings.timeouts = timeouts;
        self.admission.set_limits(limits);
        match &mut self.settings.direction {
            Direction::Listen { host, to_port, .. } => {
                let Some((name, port)) = service else { return };
                (*host, *to_port) = (name.clone(), port);
                if let Some(Host::Address(address)) = Host::parse(&name) {
                    self.service = vec![SocketAddr::new(address, port)];
                    return;
                }
                if let Err(error) = self.start_resolver(cx) {
                    return self.note_failure(cx.now, "cannot resolve names", &error);
                }
                if let Some(resolver) = &self.resolver {
                    // Until the answer comes the old addresses serve.
                    resolver.ask(SERVICE, &name, port);
                }
            }
            Direction::Socks { users: before, .. } => {
                // A proxy that began with passwords keeps requiring them.
                if users.is_some() {
                    *before = users;
                }
            }
        }
    }

    /// Starts the threads that look names up, unless they are there.
    pub(super) fn start_resolver(&mut self, cx: &mut Context<'_>) -> std::io::Result<()> {
        if self.resolver.is_none() {
            self.resolver = Some(Resolver::start(cx.registry, RESOLVER)?);
        }
        Ok(())
    }
}

/// Number of SIGHUP, for the log.
const HANGUP: i32 = 1;
