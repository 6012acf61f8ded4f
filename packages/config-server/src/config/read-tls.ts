import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { createSecureContext } from 'node:tls';
import { readRegularFile } from '../file-access.ts';
import { parseCertificates, parsePrivateKey, TlsMaterial, type PemFile } from '../tls/tls-material.ts';
import type { TableReader } from './table-reader.ts';

export interface TlsRead {
  readonly tls: TlsMaterial | undefined;
  readonly files: readonly string[];
}

export interface TlsPlatform {
  /** Whether this Node was built with TLS. */
  readonly tls: boolean;
  /** Whether file modes mean something here. */
  readonly modes: boolean;
}

const HINTS = { crl: 'revocation is not checked by this server; remove the key and use short-lived certificates instead' };

/** The `[server.tls]` table. A problem names the file and holds a sentence; nothing of a file's content is ever quoted. */
export function readTls(server: TableReader, folder: string, platform: TlsPlatform): TlsRead {
  const reader = server.table('tls');
  if (reader === undefined) return { tls: undefined, files: [] };
  if (!platform.tls) reader.problem('', 'this Node.js was built without TLS; use another build or remove the table');
  const files: string[] = [];
  const certificate = readPem(reader, 'certificate', folder, files, true);
  const key = readPem(reader, 'key', folder, files, true);
  const clientCa = readPem(reader, 'client_ca', folder, files, false);
  reader.finish(HINTS);
  if (platform.modes && key !== undefined) checkMode(reader, key.path);
  const pairMatches = checkPair(reader, certificate, key);
  const anchored = clientCa === undefined || checkAuthority(reader, clientCa);
  if (!pairMatches || !anchored || !platform.tls) return { tls: undefined, files };
  const tls = new TlsMaterial(certificate!, key!, clientCa);
  return { tls: isUsable(reader, tls, certificate!, key!) ? tls : undefined, files };
}

function readPem(reader: TableReader, key: string, folder: string, files: string[], required: boolean): PemFile | undefined {
  const listed = required ? reader.requiredString(key) : reader.string(key);
  if (listed === undefined) return undefined;
  // Quoted as a path that does not exist, a private key written here would be printed.
  if (/[\r\n]|-----BEGIN/.test(listed)) {
    reader.problem(key, 'must be the path of a PEM file, not its content');
    return undefined;
  }
  const path = resolve(folder, listed);
  files.push(path);
  try {
    return { path, text: readRegularFile(path).toString() };
  } catch (error) {
    reader.problem(key, `${path} cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown error'})`);
    return undefined;
  }
}

function checkMode(reader: TableReader, path: string): void {
  const mode = statSync(path).mode & 0o777;
  if ((mode & 0o077) === 0) return;
  reader.problem(
    'key',
    `${path} is readable by others than its owner (mode ${mode.toString(8).padStart(4, '0')}); restrict it with: chmod 0400 ${path}`,
  );
}

function checkPair(reader: TableReader, certificate: PemFile | undefined, key: PemFile | undefined): boolean {
  const chain = certificate === undefined ? undefined : parseCertificates(certificate.text);
  if (certificate !== undefined && chain === undefined)
    reader.problem('certificate', `${certificate.path} does not hold PEM certificates, leaf first`);
  const reading = key === undefined ? undefined : parsePrivateKey(key.text);
  if (key !== undefined && reading !== undefined && 'problem' in reading) reader.problem('key', `${key.path} ${reading.problem}`);
  if (chain === undefined || reading === undefined || 'problem' in reading) return false;
  if (chain[0]!.checkPrivateKey(reading.key)) return true;
  reader.problem(
    'key',
    `${key!.path} does not belong to the first certificate of ${certificate!.path}; list the leaf first and use its key`,
  );
  return false;
}

/** A chain ends in a root. With intermediate certificates alone every caller would be refused, so the start is refused instead. */
function checkAuthority(reader: TableReader, { path, text }: PemFile): boolean {
  const authorities = parseCertificates(text);
  if (authorities?.some((authority) => authority.checkIssued(authority))) return true;
  reader.problem(
    'client_ca',
    authorities === undefined
      ? `${path} does not hold PEM certificates`
      : `${path} holds no root certificate; add the root that the others chain to`,
  );
  return false;
}

/** The TLS library decides in the end: a key that it finds too weak, for example, fails here and not at the first connection. */
function isUsable(reader: TableReader, tls: TlsMaterial, certificate: PemFile, key: PemFile): boolean {
  try {
    createSecureContext(tls.options);
    return true;
  } catch {
    reader.problem('certificate', `the TLS library refuses ${certificate.path} with ${key.path}`);
    return false;
  }
}
