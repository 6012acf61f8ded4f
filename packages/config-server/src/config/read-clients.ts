import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import { readRegularFile } from '../file-access.ts';
import { isList, type TableReader } from './table-reader.ts';

/** A caller: its name for the audit log, the digests of its tokens, and what it may read. The tokens themselves are not kept. */
export interface Client {
  readonly name: string;
  readonly digests: readonly Buffer[];
  readonly applications: ReadonlySet<string>;
}

export interface ClientsRead {
  readonly clients: readonly Client[];
  readonly files: readonly string[];
}

const TOKEN_CHARACTERS_MIN = 32;
const TOKEN_KEYS = ['token', 'token_sha256', 'token_file'] as const;

export function digestToken(token: string | Buffer): Buffer {
  return createHash('sha256').update(token).digest();
}

export function readClients(server: TableReader, served: ReadonlySet<string>, folder: string): ClientsRead {
  const readers = server.tables('clients');
  if (readers.length === 0 && isList(server.value('clients')))
    server.problem('clients', 'no client is configured; add at least one [[server.clients]] table');
  const clients: Client[] = [];
  const files: string[] = [];
  const names = new Set<string>();
  const owners = new Map<string, string>();
  for (const reader of readers) {
    const client = readClient(reader, served, folder, files);
    if (client.name !== '' && names.has(client.name)) reader.problem('name', 'another client has the same name');
    names.add(client.name);
    for (const digest of client.digests) {
      const hex = digest.toString('hex');
      const owner = owners.get(hex);
      if (owner !== undefined && owner !== reader.name)
        reader.problem('token', `is the same token as that of ${owner}; give each client its own`);
      owners.set(hex, owner ?? reader.name);
    }
    clients.push(client);
  }
  return { clients, files };
}

function readClient(reader: TableReader, served: ReadonlySet<string>, folder: string, files: string[]): Client {
  const name = reader.requiredString('name') ?? '';
  if (/\p{Cc}/u.test(name)) reader.problem('name', 'cannot hold control characters');
  const rotation = reader.tables('tokens');
  const digests = readTokens(reader, folder, files, rotation.length > 0);
  for (const entry of rotation) {
    digests.push(...readTokens(entry, folder, files, false));
    entry.finish();
  }
  const applications = readGrants(reader, served);
  reader.finish();
  const distinct = new Map(digests.map((digest) => [digest.toString('hex'), digest]));
  return { name, digests: [...distinct.values()], applications };
}

function readGrants(reader: TableReader, served: ReadonlySet<string>): ReadonlySet<string> {
  const value = reader.value('applications');
  if (!Array.isArray(value) || !value.every((item) => typeof item === 'string')) {
    reader.problem('applications', 'must be an array of application names; an empty array grants nothing');
    return new Set();
  }
  for (const [index, application] of value.entries()) {
    // Where nothing is served at all, that is the mistake to tell of, not every grant as well.
    if (served.size > 0 && !served.has(application)) {
      reader.problem(`applications[${index}]`, 'grants an application that no section serves; add the section or remove the grant');
    }
  }
  return new Set(value);
}

function readTokens(reader: TableReader, folder: string, files: string[], optional: boolean): Buffer[] {
  const present = TOKEN_KEYS.filter((key) => reader.has(key));
  if (present.length === 0 && optional) return [];
  if (present.length !== 1) {
    reader.problem('', 'needs exactly one of token, token_sha256, token_file');
    return [];
  }
  const [key] = present as [(typeof TOKEN_KEYS)[number]];
  const text = reader.string(key);
  if (text === undefined) return [];
  const digest =
    key === 'token'
      ? digestOf(reader, key, text)
      : key === 'token_sha256'
        ? parseDigest(reader, text)
        : readTokenFile(reader, text, folder, files);
  return digest === undefined ? [] : [digest];
}

function digestOf(reader: TableReader, key: string, token: string): Buffer | undefined {
  if (Array.from(token).length < TOKEN_CHARACTERS_MIN) {
    reader.problem(key, `is shorter than ${TOKEN_CHARACTERS_MIN} characters; make one with: openssl rand -base64 32`);
    return undefined;
  }
  if (/\p{Cc}/u.test(token) || token.trim() !== token) {
    reader.problem(key, 'holds control characters or surrounding white space, so no request could present it');
    return undefined;
  }
  return digestToken(token);
}

function parseDigest(reader: TableReader, text: string): Buffer | undefined {
  if (/^[0-9a-f]{64}$/.test(text)) return Buffer.from(text, 'hex');
  reader.problem('token_sha256', 'must be the SHA-256 digest of the token as 64 lower-case hex digits');
  return undefined;
}

function readTokenFile(reader: TableReader, listed: string, folder: string, files: string[]): Buffer | undefined {
  const path = resolve(folder, listed);
  files.push(path);
  let bytes: Buffer;
  try {
    bytes = readRegularFile(path);
  } catch (error) {
    reader.problem('token_file', `${listed} cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown error'})`);
    return undefined;
  }
  // Every byte that is no UTF-8 would be replaced by the same one, and anybody could guess a token made of those.
  if (!isUtf8(bytes)) {
    reader.problem('token_file', `${listed} is not text in UTF-8; make a token with: openssl rand -base64 32`);
    return undefined;
  }
  return digestOf(reader, 'token_file', bytes.toString().replace(/\r?\n$/, ''));
}
