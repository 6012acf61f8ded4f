import { constants, createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto';
import type { TlsOptions } from 'node:tls';

export interface PemFile {
  readonly path: string;
  readonly text: string;
}

/**
 * A resumed session presents no certificate: one that expired since would go on for the life of the session. Without tickets, and without a
 * session cache, which Node does not have, every handshake is a whole one.
 */
const NO_RESUMPTION = constants.SSL_OP_NO_TICKET;

/** Checked certificate, key and client authority. Private fields, so that printing a configuration cannot show key bytes. */
export class TlsMaterial {
  readonly requiresClientCertificate: boolean;
  readonly #certificatePath: string;
  readonly #certificate: string;
  readonly #key: string;
  readonly #clientCa: string | undefined;

  constructor(certificate: PemFile, key: PemFile, clientCa: PemFile | undefined) {
    this.#certificatePath = certificate.path;
    this.#certificate = certificate.text;
    this.#key = key.text;
    this.#clientCa = clientCa?.text;
    this.requiresClientCertificate = clientCa !== undefined;
  }

  /** Versions and cipher suites are the library's defaults. With an authority, a peer without a certificate from it gets no connection. */
  get options(): TlsOptions {
    return {
      cert: this.#certificate,
      key: this.#key,
      ALPNProtocols: ['http/1.1'],
      ...(this.#clientCa === undefined
        ? {}
        : { ca: this.#clientCa, requestCert: true, rejectUnauthorized: true, secureOptions: NO_RESUMPTION }),
    };
  }

  /** A sentence when callers will refuse the certificate because of its dates. It is served anyway: there may be no other. */
  warning(now: number): string | undefined {
    const { validFrom, validTo } = parseCertificates(this.#certificate)![0]!;
    const expired = now > Date.parse(validTo);
    if (!expired && now >= Date.parse(validFrom)) return undefined;
    const when = new Date(expired ? validTo : validFrom).toISOString();
    return `the certificate of server.tls.certificate ${expired ? 'expired at' : 'is not valid before'} ${when} (${this.#certificatePath}); callers that verify it will not connect`;
  }

  equals(other: TlsMaterial): boolean {
    return this.#certificate === other.#certificate && this.#key === other.#key && this.#clientCa === other.#clientCa;
  }
}

const CERTIFICATE_BLOCK = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Every certificate of a PEM file, in order; undefined when there is none or one of them is not a certificate. */
export function parseCertificates(pem: string): X509Certificate[] | undefined {
  const blocks = pem.match(CERTIFICATE_BLOCK);
  if (blocks === null) return undefined;
  try {
    return blocks.map((block) => new X509Certificate(block));
  } catch {
    return undefined;
  }
}

export type KeyReading = { readonly key: KeyObject } | { readonly problem: string };

/** A private key as PKCS#8, PKCS#1 or SEC1. The sentence of a failed reading holds no part of the file. */
export function parsePrivateKey(pem: string): KeyReading {
  if (/BEGIN ENCRYPTED PRIVATE KEY|Proc-Type:\s*4,ENCRYPTED/.test(pem)) {
    return { problem: 'is encrypted; the server cannot ask for a passphrase, so store the key unencrypted with mode 0400' };
  }
  try {
    return { key: createPrivateKey(pem) };
  } catch {
    return { problem: 'is not a private key in PEM form (PKCS#8, PKCS#1 or SEC1)' };
  }
}
