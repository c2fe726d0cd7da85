//! Multipath TCP under `AsyncRead` and `AsyncWrite`: the engine on a TUN device, with the kernel's MPTCP as its peer.
//!
//! Everything happens in a network namespace of its own, in which the kernel has an address on each of two paths and so
//! has the engine. `engine.rs` is what a program of yours would take over.
//!
//! ```text
//! sudo -E cargo run -p anabranch-host --example tokio_streams
//! ```

mod engine;

use anabranch_engine::{Config, LocalAddress, Profile, SubflowStats};
use anabranch_host::{Driver, Namespace, Tun};
use anabranch_wire::pattern;
use engine::Engine;
use socket2::{Domain, Protocol, Socket, Type};
use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Addresses on paths 1 and 2.
const KERNEL: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 79, 1, 1), Ipv4Addr::new(10, 79, 2, 1)];
const ENGINE: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 79, 1, 2), Ipv4Addr::new(10, 79, 2, 2)];
const PORT: u16 = 7;
/// Bytes echoed in each direction.
const LENGTH: usize = 8 << 20;
const MPTCP: Protocol = Protocol::MPTCP;

/// Runs the example.
pub fn main() -> Result<(), Box<dyn Error>> {
    let (namespace, tun) = place()?;
    let addresses = ENGINE.map(|ip| LocalAddress { ip: ip.into(), backup: false });
    let driver = Driver::new(Config::new(Profile::tcp(), addresses.to_vec()), Box::new(tun))?;
    let engine = Engine::new(driver);
    engine.listen(PORT);

    let listener = namespace.run(listen)?;
    let server = thread::spawn(move || echo(&listener.accept()?.0));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let subflows = runtime.block_on(async {
        let looping = tokio::spawn(engine.clone().run());
        let subflows = tokio::select! {
            result = as_client(&engine) => result?,
            end = looping => return Err(format!("the device failed: {end:?}").into()),
        };
        for subflow in &subflows {
            println!("as client, {} to {}: {} bytes sent", subflow.local, subflow.remote, subflow.bytes_sent);
        }
        let client = namespace.spawn(request);
        let echoed = as_server(&engine).await?;
        println!("as server: {echoed} bytes echoed");
        client.join().map_err(|_| "the kernel's client failed")??;
        Ok::<_, Box<dyn Error>>(subflows)
    })?;
    server.join().map_err(|_| "the kernel's server failed")??;
    match subflows.len() {
        2.. => Ok(()),
        n => Err(format!("{n} subflow; two were expected").into()),
    }
}

/// Connects to the kernel's echo, and holds what comes back against what was sent.
async fn as_client(engine: &Engine) -> Result<Vec<SubflowStats>, Box<dyn Error>> {
    let stream = engine.connect(IpAddr::V4(ENGINE[0]), SocketAddr::from((KERNEL[0], PORT))).await?;
    let (mut reader, mut writer) = tokio::io::split(stream);
    let data = pattern::whole(0, LENGTH);
    let write = async {
        writer.write_all(&data).await?;
        writer.shutdown().await
    };
    let mut echoed = Vec::new();
    let (written, read) = tokio::join!(write, reader.read_to_end(&mut echoed));
    written?;
    read?;
    if echoed != data {
        return Err(format!("{} bytes came back, and not the {LENGTH} that were sent", echoed.len()).into());
    }
    Ok(reader.unsplit(writer).subflows())
}

/// Echoes the kernel's connection; answers the number of bytes.
async fn as_server(engine: &Engine) -> io::Result<u64> {
    let (mut reader, mut writer) = tokio::io::split(engine.accept().await);
    let echoed = tokio::io::copy(&mut reader, &mut writer).await?;
    writer.shutdown().await?;
    Ok(echoed)
}

/// A namespace whose kernel has its addresses on a TUN device that leads to the engine, and takes part in joins.
fn place() -> Result<(Namespace, Tun), Box<dyn Error>> {
    let namespace = Namespace::new("kernel")?;
    let tun = namespace.run(|| Tun::with_offload("engine"))?;
    namespace.command("ip", &["link", "set", "engine", "up"])?;
    for ip in KERNEL {
        namespace.command("ip", &["address", "add", &format!("{ip}/24"), "dev", "engine"])?;
    }
    namespace.command("ip", &["mptcp", "limits", "set", "subflows", "2", "add_addr_accepted", "2"])?;
    Ok((namespace, tun))
}

fn listen() -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(MPTCP))?;
    socket.bind(&SocketAddr::from((KERNEL[0], PORT)).into())?;
    socket.listen(1)?;
    Ok(socket.into())
}

/// The kernel's end of [`as_client`].
fn echo(mut stream: &TcpStream) -> io::Result<()> {
    io::copy(&mut { stream }, &mut stream)?;
    stream.shutdown(Shutdown::Write)
}

/// The kernel's end of [`as_server`].
fn request() -> io::Result<()> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(MPTCP))?;
    socket.connect(&SocketAddr::from((ENGINE[0], PORT)).into())?;
    let stream = TcpStream::from(socket);
    let data = pattern::whole(0, LENGTH);
    let mut echoed = Vec::new();
    thread::scope(|scope| {
        let write = scope.spawn(|| {
            (&stream).write_all(&data)?;
            stream.shutdown(Shutdown::Write)
        });
        (&stream).read_to_end(&mut echoed)?;
        write.join().map_err(|_| io::Error::other("the writer panicked"))?
    })?;
    if echoed == data { Ok(()) } else { Err(io::Error::other("the engine echoed something else")) }
}
