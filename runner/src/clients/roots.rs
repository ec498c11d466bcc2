//! The root certificates of AWS endpoints. The runner brings them because many images have none.

use pem::Pem;
use webpki_root_certs::TLS_SERVER_ROOT_CERTS;

/// Names of Amazon Trust Services' roots (<https://www.amazontrust.com/repository/>), as in the certificates.
const NAMES: [&str; 5] = [
    "Amazon Root CA 1",
    "Amazon Root CA 2",
    "Amazon Root CA 3",
    "Amazon Root CA 4",
    "Starfield Services Root Certificate Authority - G2",
];

/// Amazon's certificates among the roots that Mozilla trusts, in PEM.
pub(super) fn amazon_roots() -> String {
    let is_amazons =
        |der: &[u8]| NAMES.iter().any(|name| der.windows(name.len()).any(|window| window == name.as_bytes()));
    let found = TLS_SERVER_ROOT_CERTS.iter().filter(|certificate| is_amazons(certificate));
    found.map(|certificate| pem::encode(&Pem::new("CERTIFICATE", certificate.to_vec()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_root_is_there_once() {
        let roots = pem::parse_many(amazon_roots()).unwrap_or_default();
        assert_eq!(roots.len(), NAMES.len());
        for name in NAMES {
            let has_name = |root: &&Pem| root.contents().windows(name.len()).any(|window| window == name.as_bytes());
            assert_eq!(roots.iter().filter(has_name).count(), 1, "{name}");
        }
    }
}
