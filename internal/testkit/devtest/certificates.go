package devtest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Certificates are the paths of PEM files: an authority of the test's own, and what it signed.
type Certificates struct {
	// CA is the certificate of the authority.
	CA string
	// ServerCert and ServerKey are those of a server on localhost, 127.0.0.1.
	ServerCert, ServerKey string
	// ClientCert and ClientKey are those of a client whose common name was asked for.
	ClientCert, ClientKey string
	// Dir has all files. Everybody may enter it, and only its owner read the keys.
	Dir string
}

// certificatesLast is longer than any test.
const certificatesLast = 24 * time.Hour

// NewCertificates makes an authority, and certificates for a server here and for a client.
func NewCertificates(t testing.TB, client string) Certificates {
	t.Helper()
	dir := Dir(t) // a server of another user reads it
	in := func(name string) string { return filepath.Join(dir, name) }
	c := Certificates{
		CA: in("ca.pem"), ServerCert: in("server.pem"), ServerKey: in("server.key"), ClientCert: in("client.pem"), ClientKey: in("client.key"), Dir: dir,
	}
	ca := issue(t, nil, &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority of a test"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, c.CA, in("ca.key"))
	issue(t, ca, &x509.Certificate{
		Subject: pkix.Name{CommonName: "server"}, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, c.ServerCert, c.ServerKey)
	issue(t, ca, &x509.Certificate{
		Subject: pkix.Name{CommonName: client}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, c.ClientCert, c.ClientKey)
	return c
}

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// issue writes a certificate that by has signed, or its own key if by is nil.
func issue(t testing.TB, by *authority, cert *x509.Certificate, certFile, keyFile string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("devtest: certificates: %v", err)
	}
	cert.SerialNumber = big.NewInt(time.Now().UnixNano())
	cert.NotBefore, cert.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(certificatesLast)
	if by == nil {
		by = &authority{cert, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, by.cert, key.Public(), by.key)
	if err == nil {
		err = os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644)
	}
	var secret []byte
	if err == nil {
		secret, err = x509.MarshalPKCS8PrivateKey(key)
	}
	if err == nil {
		err = os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600)
	}
	if err != nil {
		t.Fatalf("devtest: certificates: %v", err)
	}
	return &authority{cert, key}
}
