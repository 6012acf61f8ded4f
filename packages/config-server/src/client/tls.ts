import { X509Certificate } from 'node:crypto';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import { RemoteSourceError } from './errors.ts';

/** PEM text, or the file that holds it. Files are read again for every connection, so renewed certificates need no restart. */
export interface TlsOptions {
  /** Authority the server's certificate must chain to, instead of the system's. */
  ca?: string | Buffer;
  /** The file with `ca`. */
  caFile?: string;
  /** Client certificate, leaf first. Needs its key. */
  cert?: string | Buffer;
  /** The file with `cert`. */
  certFile?: string;
  /** The private key of the client certificate. */
  key?: string | Buffer;
  /** The file with `key`. */
  keyFile?: string;
}

export interface TlsMaterial {
  readonly ca?: Pem;
  readonly cert?: Pem;
  readonly key?: Pem;
}

type Pem = { readonly text: string } | { readonly file: string };
type PemName = 'ca' | 'cert' | 'key';

const PEM_NAMES: readonly PemName[] = ['ca', 'cert', 'key'];
const KNOWN = PEM_NAMES.flatMap((name) => [name, `${name}File`]);

export function parseTlsOptions(options: TlsOptions | undefined, faults: string[]): TlsMaterial {
  if (options === undefined) return {};
  if (typeof options !== 'object' || options === null) {
    faults.push('tls must be an object');
    return {};
  }
  for (const name of Object.keys(options)) {
    if (!KNOWN.includes(name)) faults.push(`unknown option tls.${name.slice(0, 40)}, known are ${KNOWN.join(', ')}`);
  }
  const material: { ca?: Pem; cert?: Pem; key?: Pem } = {};
  for (const name of PEM_NAMES) {
    const pem = parsePem(name, options[name], options[`${name}File`], faults);
    if (pem !== undefined) material[name] = pem;
  }
  if ((material.cert === undefined) !== (material.key === undefined)) faults.push('tls needs a client certificate and its key together');
  checkText(material, faults);
  return Object.freeze(material);
}

function parsePem(name: PemName, text: unknown, file: unknown, faults: string[]): Pem | undefined {
  if (text !== undefined && file !== undefined) {
    faults.push(`tls.${name} and tls.${name}File are both given, keep one`);
    return undefined;
  }
  if (file !== undefined) {
    if (typeof file === 'string' && file !== '') return { file };
    faults.push(`tls.${name}File must be a path`);
  }
  if (text !== undefined) {
    const pem = Buffer.isBuffer(text) ? text.toString('utf8') : text;
    if (typeof pem === 'string' && pem.includes('-----BEGIN ')) return { text: pem };
    faults.push(`tls.${name} must be PEM text; for a path use tls.${name}File`);
  }
  return undefined;
}

type PemText = { ca?: string; cert?: string; key?: string };

/** PEM text that OpenSSL cannot read is the caller's mistake, and is reported at once rather than at the first refresh. */
function checkText(material: TlsMaterial, faults: string[]): void {
  const text: PemText = {};
  for (const name of PEM_NAMES) {
    const pem = material[name];
    if (pem !== undefined && 'text' in pem) text[name] = pem.text;
  }
  // A certificate can only be checked together with its key; when one is a file, the first connection does it.
  if (text.cert === undefined || text.key === undefined) {
    delete text.cert;
    delete text.key;
  }
  const unusable = unusablePem(text);
  if (unusable.length > 0) faults.push(`${unusable.map((name) => `tls.${name}`).join(' and ')} ${REMEDY}`);
}

const REMEDY = 'cannot be used: check that the PEM is complete, not encrypted, and that certificate and key match';

/** OpenSSL skips authorities it cannot read, so they are parsed one by one; a certificate and key are checked against each other. */
function unusablePem(text: PemText): readonly PemName[] {
  try {
    const authorities = text.ca?.match(/-----BEGIN [^-]+-----[^-]*-----END [^-]+-----/g) ?? [];
    if (text.ca !== undefined && authorities.length === 0) return ['ca'];
    for (const authority of authorities) void new X509Certificate(authority);
  } catch {
    return ['ca'];
  }
  try {
    createSecureContext(text);
    return [];
  } catch {
    return ['cert', 'key'];
  }
}

/** The material as text, files read now. */
export async function readTlsMaterial(material: TlsMaterial): Promise<PemText> {
  const read: PemText = {};
  for (const name of PEM_NAMES) {
    const pem = material[name];
    if (pem !== undefined) read[name] = 'text' in pem ? pem.text : await readPemFile(name, pem.file);
  }
  const unusable = unusablePem(read);
  if (unusable.length > 0) {
    throw new RemoteSourceError('tls', `${unusable.map((name) => describePem(name, material[name])).join(' and ')} ${REMEDY}`);
  }
  return read;
}

/** A path is not secret, PEM text may be. */
function describePem(name: PemName, pem: Pem | undefined): string {
  return pem !== undefined && 'file' in pem ? `tls.${name}File ${pem.file}` : `tls.${name}`;
}

async function readPemFile(name: PemName, file: string): Promise<string> {
  try {
    // Without O_NONBLOCK a named pipe in the file's place would block the exchange beyond every deadline.
    const handle = await open(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    try {
      if ((await handle.stat()).isFIFO()) throw Object.assign(new Error('a pipe'), { code: 'a pipe' });
      return await handle.readFile('utf8');
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw new RemoteSourceError('tls', `tls.${name}File ${file} cannot be read: ${(error as NodeJS.ErrnoException).code ?? 'unknown'}`);
  }
}
