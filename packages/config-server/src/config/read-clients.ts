import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import { readRegularFile } from '../file-access.ts';
import { parseGrant } from './grant.ts';
import type { NamedSections } from './read-sections.ts';
import { isList, type TableReader } from './table-reader.ts';

/** A caller: its name for the audit log, the digests of its tokens, and its grants. The tokens themselves are not kept. */
export interface Client {
  /** The name in audit entries. */
  readonly name: string;
  /** SHA-256 digests of the tokens. */
  readonly digests: readonly Buffer[];
  /** As in server.toml: `billing` grants every profile, `billing/production` that one. */
  readonly applications: ReadonlySet<string>;
  /** Whether the client may read the history of its sections. Absent: no. */
  readonly operator?: boolean;
}

export interface ClientsRead {
  readonly clients: readonly Client[];
  readonly files: readonly string[];
}

/** A token's digest and the key of server.toml that gave it, such as `server.clients[0].tokens[1].token_file`. */
interface ReadToken {
  readonly digest: Buffer;
  readonly reader: TableReader;
  readonly key: string;
}

interface ReadClient {
  readonly client: Client;
  readonly tokens: readonly ReadToken[];
}

const TOKEN_CHARACTERS_MIN = 32;
const TOKEN_KEYS = ['token', 'token_sha256', 'token_file'] as const;

export function digestToken(token: string | Buffer): Buffer {
  return createHash('sha256').update(token).digest();
}

export function readClients(server: TableReader, named: NamedSections, folder: string): ClientsRead {
  const readers = server.tables('clients');
  if (readers.length === 0 && isList(server.value('clients')))
    server.problem('clients', 'no client is configured; add at least one [[server.clients]] table');
  const clients: Client[] = [];
  const files: string[] = [];
  const firstTables = new Map<string, string>();
  const owners = new Map<string, TokenOwner>();
  for (const reader of readers) {
    const { client, tokens } = readClient(reader, named, folder, files);
    const first = firstTables.get(client.name);
    if (first === undefined) firstTables.set(client.name, reader.name);
    else if (client.name !== '') reader.problem('name', `another client has the same name, ${first}; give each client its own`);
    checkTokenOwners(reader.name, client.name, tokens, owners);
    clients.push(client);
  }
  return { clients, files };
}

interface TokenOwner {
  readonly table: string;
  readonly description: string;
}

/** Two clients with one token could not be told apart. Both are named; the token is not. */
function checkTokenOwners(table: string, name: string, tokens: readonly ReadToken[], owners: Map<string, TokenOwner>): void {
  for (const { digest, reader, key } of tokens) {
    const hex = digest.toString('hex');
    const owner = owners.get(hex);
    if (owner === undefined) owners.set(hex, { table, description: `${clientSubject(name)} (${reader.keyOf(key)})` });
    else if (owner.table !== table) reader.problem(key, `is the same token as that of ${owner.description}; give each client its own`);
  }
}

function clientSubject(name: string): string {
  return name === '' ? 'a client without a name' : `client ${JSON.stringify(name)}`;
}

function readClient(reader: TableReader, named: NamedSections, folder: string, files: string[]): ReadClient {
  const name = reader.requiredString('name') ?? '';
  if (name !== '') reader.describes(clientSubject(name));
  if (/\p{Cc}/u.test(name)) reader.problem('name', 'cannot hold control characters');
  const rotation = reader.tables('tokens');
  const tokens = readTokens(reader, folder, files, rotation.length > 0);
  for (const entry of rotation) {
    tokens.push(...readTokens(entry, folder, files, false));
    entry.finish();
  }
  const applications = readGrants(reader, named);
  const operator = reader.boolean('operator', false);
  reader.finish();
  const distinct = new Map(tokens.map(({ digest }) => [digest.toString('hex'), digest]));
  return { client: { name, digests: [...distinct.values()], applications, ...(operator ? { operator } : {}) }, tokens };
}

function readGrants(reader: TableReader, named: NamedSections): ReadonlySet<string> {
  const value = reader.value('applications');
  if (!Array.isArray(value) || !value.every((item) => typeof item === 'string')) {
    reader.problem('applications', 'must be an array of "application" or "application/profile"; an empty array grants nothing');
    return new Set();
  }
  for (const [index, entry] of value.entries()) checkGrant(reader, `applications[${index}]`, entry, named);
  return new Set(value);
}

function checkGrant(reader: TableReader, key: string, entry: string, named: NamedSections): void {
  // Without any section, that is the one problem to report.
  if (named.size === 0) return;
  const grant = parseGrant(entry);
  // Text of another shape is not quoted: it could be a token in the wrong place.
  if (grant === undefined) return reader.problem(key, 'must be "application", or "application/profile" to grant one profile only');
  const { application, profile } = grant;
  const profiles = named.get(application);
  if (profiles === undefined) {
    return reader.problem(key, `grants ${application}, an application that no section serves; add the section or remove the grant`);
  }
  if (profile !== undefined && !profiles.has(profile)) {
    reader.problem(key, `grants ${entry}, a profile that no section serves; add the section or remove the grant`);
  }
}

function readTokens(reader: TableReader, folder: string, files: string[], optional: boolean): ReadToken[] {
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
  return digest === undefined ? [] : [{ digest, reader, key }];
}

/** `file` is where the token was read from, if from a file. */
function digestOf(reader: TableReader, key: string, token: string, file?: string): Buffer | undefined {
  const where = file === undefined ? '' : `the token in ${file} `;
  if (Array.from(token).length < TOKEN_CHARACTERS_MIN) {
    reader.problem(key, `${where}is shorter than ${TOKEN_CHARACTERS_MIN} characters; make one with: openssl rand -base64 32`);
    return undefined;
  }
  if (/\p{Cc}/u.test(token) || token.trim() !== token) {
    reader.problem(key, `${where}holds control characters or surrounding whitespace, so no request could present it`);
    return undefined;
  }
  return digestToken(token);
}

function parseDigest(reader: TableReader, text: string): Buffer | undefined {
  if (/^[0-9a-f]{64}$/.test(text)) return Buffer.from(text, 'hex');
  reader.problem('token_sha256', 'must be the SHA-256 digest of the token as 64 lowercase hex digits');
  return undefined;
}

function readTokenFile(reader: TableReader, listed: string, folder: string, files: string[]): Buffer | undefined {
  const path = resolve(folder, listed);
  files.push(path);
  let bytes: Buffer;
  try {
    bytes = readRegularFile(path);
  } catch (error) {
    const file = couldBeToken(listed) ? 'the token file (its name is not shown because it may be a token)' : listed;
    reader.problem('token_file', `${file} cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown error'})`);
    return undefined;
  }
  // Decoding replaces every byte that is not UTF-8 by the same character, and a token made of those could be guessed.
  if (!isUtf8(bytes)) {
    reader.problem('token_file', `${listed} is not text in UTF-8; make a token with: openssl rand -base64 32`);
    return undefined;
  }
  return digestOf(reader, 'token_file', bytes.toString().replace(/\r?\n$/, ''), listed);
}

/** Whether text given as a path may be a token that was meant for `token`: long, and not like a path, or like Base64. */
function couldBeToken(text: string): boolean {
  return text.length >= TOKEN_CHARACTERS_MIN && (text.endsWith('=') || !/^[./~]|\.\w{1,8}$/.test(text));
}
