#!/bin/sh
# Makes the secrets that compose.yaml mounts, each once; a file that is there is kept.
# The containers run as user 1000, so the files are readable by others of this host; the folder is not.
set -eu
umask 077
cd "$(dirname "$0")"
mkdir -p secrets
cd secrets
random() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }
make() { [ -s "$1" ] || { printf '%s\n' "$2" > "$1" && chmod 644 "$1" && echo "made secrets/$1"; }; }
make postgres_password "$(random)"
make database_url "postgres://orders:$(cat postgres_password)@postgres:5432/orders"
make api_key_pepper "$(random)"
make config_token "$(random)"
# A Fernet key: 32 random bytes in URL-safe base64.
make webhook_secret_keys "$(head -c 32 /dev/urandom | base64 | tr '+/' '-_')"
make account_secret_keys "$(head -c 32 /dev/urandom | base64 | tr '+/' '-_')"
