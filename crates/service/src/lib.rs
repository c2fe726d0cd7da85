//! What runs on the wire: built-in services, a download client, the proxy. State machines over an endpoint, so that they
//! can be tested without a network.
#![forbid(unsafe_code)]
