#!/bin/sh
# Makes a certificate authority, a server certificate for 127.0.0.1 and localhost, and a client certificate, all valid for 30 days.
# For trying things out: a real authority keeps its key elsewhere.
set -eu
umask 077
cd "$(dirname "$0")"
mkdir -p certificates
cd certificates

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj "/CN=example authority" \
  -addext "basicConstraints=critical,CA:TRUE" -addext "keyUsage=critical,keyCertSign,cRLSign" -keyout ca.key -out ca.pem 2>/dev/null

issue() {
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" -keyout "$1.key" -out "$1.csr" 2>/dev/null
  printf '%s\n' "basicConstraints=CA:FALSE" "extendedKeyUsage=$2" "$3" > "$1.ext"
  openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -extfile "$1.ext" -out "$1.pem" 2>/dev/null
  rm "$1.csr" "$1.ext"
}

issue server serverAuth "subjectAltName=IP:127.0.0.1,DNS:localhost"
issue client clientAuth "subjectAltName=DNS:client"
echo "certificates: $(ls | tr '\n' ' ')"
