//! HTTPS as AWS serves it: TLS 1.3 with a certificate chain of a root and a leaf, made for one run.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::serve::Listener;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::server::TlsStream;

/// Files of the system's trusted roots, on Debian and on Amazon Linux.
const SYSTEM_ROOTS: [&str; 2] = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

/// A certificate, and a file with the roots by which it is trusted.
#[derive(Debug)]
pub struct Identity {
    acceptor_config: Arc<ServerConfig>,
    /// The system's roots and the test's own: a function reads as many as it would on Lambda.
    pub roots: PathBuf,
}

impl Identity {
    /// Makes a certificate for `hosts` (addresses, or names that may have a wildcard), and its file of roots in
    /// `folder`.
    ///
    /// # Panics
    /// Panics if a host is no name, or the folder cannot be written.
    pub fn make(folder: &Path, hosts: &[&str]) -> Self {
        let (root, leaf, key) = certificates(hosts).expect("the hosts are names or addresses");
        let system = SYSTEM_ROOTS.iter().find_map(|path| fs::read_to_string(path).ok()).unwrap_or_default();
        let roots = folder.join("roots.pem");
        fs::write(&roots, format!("{system}\n{root}")).expect("the folder is writable");
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key that was just made");
        // rustls has ring from the SDKs' HTTP client. The workspace has no other crypto library (deny.toml).
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&TLS13])
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(vec![leaf], key));
        Self { acceptor_config: Arc::new(config.expect("key and certificate fit")), roots }
    }
}

/// A root as PEM, a leaf that it has signed, and the leaf's key.
fn certificates(hosts: &[&str]) -> Result<(String, CertificateDer<'static>, KeyPair), rcgen::Error> {
    // OpenSSL takes a leaf for self-signed if its name is that of its issuer.
    let mut root = named("spotsweep test root", Vec::new())?;
    root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = CertifiedIssuer::self_signed(root, KeyPair::generate()?)?;
    let key = KeyPair::generate()?;
    let leaf =
        named("spotsweep test", hosts.iter().map(|host| (*host).to_owned()).collect())?.signed_by(&key, &root)?;
    Ok((root.pem(), leaf.der().clone(), key))
}

fn named(name: &str, hosts: Vec<String>) -> Result<CertificateParams, rcgen::Error> {
    let mut parameters = CertificateParams::new(hosts)?;
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, name);
    Ok(parameters)
}

/// Accepts connections whose handshake is done. Any number of handshakes run at the same time.
#[derive(Debug)]
pub struct TlsListener {
    address: SocketAddr,
    ready: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    accepting: JoinHandle<()>,
}

impl TlsListener {
    /// Serves TLS on a bound port.
    ///
    /// # Errors
    /// Fails if the port has no address.
    pub fn over(listener: TcpListener, identity: &Identity) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let acceptor = TlsAcceptor::from(Arc::clone(&identity.acceptor_config));
        let (sender, ready) = mpsc::channel(16);
        let accepting = tokio::spawn(async move {
            // The loop ends with this handle. An error of one accept concerns that connection, and its caller sees it.
            while let Ok((stream, peer)) = listener.accept().await {
                let (acceptor, sender) = (acceptor.clone(), sender.clone());
                tokio::spawn(async move {
                    let _ = stream.set_nodelay(true);
                    if let Ok(stream) = acceptor.accept(stream).await {
                        let _ = sender.send((stream, peer)).await;
                    }
                });
            }
        });
        Ok(Self { address, ready, accepting })
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.ready.recv().await {
            Some(connection) => connection,
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

impl Drop for TlsListener {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}
