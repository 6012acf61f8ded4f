import { createHash, generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto';
import { isIP } from 'node:net';

/** A certificate with its private key, made at run time: no key material lives in the repository. */
export interface Certificate {
  /** PEM of this certificate alone. */
  readonly cert: string;
  readonly privateKey: KeyObject;
  /** PEM of the key, PKCS#8. */
  readonly key: string;
  readonly name: string;
  readonly keyId: Buffer;
}

export interface CertificateRequest {
  readonly name: string;
  /** Absent: self-signed. */
  readonly issuer?: Certificate;
  readonly authority?: boolean;
  /** DNS names and addresses a server certificate is for. */
  readonly hosts?: readonly string[];
  readonly notBefore?: Date;
  readonly notAfter?: Date;
  /** `weak-rsa` has 512 bits, which TLS libraries refuse. */
  readonly keyType?: 'ec' | 'rsa' | 'weak-rsa';
}

const DAY_MS = 86_400_000;

/** Writes an X.509 v3 certificate (RFC 5280) with what `node:crypto` offers; Node can read certificates but not make them. */
export function createCertificate(request: CertificateRequest): Certificate {
  const { keyType = 'ec' } = request;
  const { publicKey, privateKey } =
    keyType === 'ec'
      ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
      : generateKeyPairSync('rsa', { modulusLength: keyType === 'rsa' ? 2048 : 512 });
  const publicKeyInfo = publicKey.export({ type: 'spki', format: 'der' });
  const keyId = createHash('sha1').update(publicKeyInfo).digest();
  const signer = request.issuer?.privateKey ?? privateKey;
  const algorithm = sequence(signer.asymmetricKeyType === 'rsa' ? [oid('1.2.840.113549.1.1.11'), der(0x05)] : [oid('1.2.840.10045.4.3.2')]);
  const notBefore = request.notBefore ?? new Date(Date.now() - DAY_MS);
  const notAfter = request.notAfter ?? new Date(Date.now() + DAY_MS);
  const body = sequence([
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.concat([Buffer.from([0x01]), randomBytes(15)])),
    algorithm,
    distinguishedName(request.issuer?.name ?? request.name),
    sequence([time(notBefore), time(notAfter)]),
    distinguishedName(request.name),
    publicKeyInfo,
    der(0xa3, sequence(extensions(request, keyId, request.issuer?.keyId ?? keyId))),
  ]);
  const signature = sign('sha256', body, signer);
  const certificate = sequence([body, algorithm, der(0x03, Buffer.concat([Buffer.from([0]), signature]))]);
  const base64 = certificate.toString('base64').replaceAll(/.{64}/g, '$&\n').trimEnd();
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${base64}\n-----END CERTIFICATE-----\n`,
    privateKey,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    name: request.name,
    keyId,
  };
}

function extensions({ authority = false, hosts = [] }: CertificateRequest, keyId: Buffer, issuerKeyId: Buffer): Buffer[] {
  const critical = der(0x01, Buffer.from([0xff]));
  const list = [
    sequence([oid('2.5.29.19'), critical, der(0x04, sequence(authority ? [critical] : []))]),
    sequence([oid('2.5.29.14'), der(0x04, der(0x04, keyId))]),
    sequence([oid('2.5.29.35'), der(0x04, sequence([der(0x80, issuerKeyId)]))]),
  ];
  if (hosts.length > 0) {
    const names = hosts.map((host) =>
      isIP(host) === 4 ? der(0x87, Buffer.from(host.split('.').map(Number))) : der(0x82, Buffer.from(host)),
    );
    list.push(sequence([oid('2.5.29.17'), der(0x04, sequence(names))]));
  }
  return list;
}

function der(tag: number, content: Buffer = Buffer.alloc(0)): Buffer {
  const { length } = content;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

const sequence = (parts: readonly Buffer[]): Buffer => der(0x30, Buffer.concat(parts));

const distinguishedName = (name: string): Buffer => sequence([der(0x31, sequence([oid('2.5.4.3'), der(0x0c, Buffer.from(name))]))]);

const time = (date: Date): Buffer => der(0x18, Buffer.from(date.toISOString().replaceAll(/[-:T]|\.\d+/g, '')));

function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  const bytes = [first * 40 + second];
  for (const arc of rest) {
    const groups = [arc & 0x7f];
    for (let high = Math.floor(arc / 128); high > 0; high = Math.floor(high / 128)) groups.unshift((high & 0x7f) | 0x80);
    bytes.push(...groups);
  }
  return der(0x06, Buffer.from(bytes));
}
