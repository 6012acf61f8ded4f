import { CLIENT_ERROR_CODES, type RemoteErrorKind } from '../client/errors.ts';
import type { FailureKind } from '../document/load-failure.ts';

interface Explanation {
  readonly meaning: string;
  readonly remedy: string;
  /** What is printed or sent, with a place that is made up. */
  readonly example: string;
}

/** `last_failure.kind` of `/status`, `failure.kind` of `/check`, and the log line of a load that failed. */
export const FAILURES: Readonly<Record<FailureKind, Explanation>> = {
  io: {
    meaning: 'A file of the section cannot be read, or changes while it is read.',
    remedy: 'Give the user of the server the right to read it; replace files by a rename instead of writing into them.',
    example: 'file /etc/app/billing.toml: the file cannot be read (EACCES)',
  },
  missing: {
    meaning: 'A file that the section lists, or the table that the section serves, does not exist.',
    remedy: 'Create it, correct `files`, or list the file as { path = "…", optional = true }.',
    example: 'file /etc/app/billing.toml: the file does not exist; create it, or list it as { path = "…", optional = true }',
  },
  parse: {
    meaning: 'A file is not valid TOML, YAML or JSON, or has something that a JSON document cannot carry.',
    remedy: 'Correct the line that the message names. Large integers are written as strings.',
    example: 'file /etc/app/billing.yaml: the file is not valid YAML (line 3, column 9)',
  },
  env: {
    meaning: 'An environment variable with the prefix of the section has no place in the document.',
    remedy: 'Correct its name, or the table that it reaches into; the names are in the guide, "Environment prefixes".',
    example: 'env BILLING__DB__POOL__SIZE: reaches below db.pool, which is not a table',
  },
  schema: {
    meaning: 'The document was built, and does not match the schema of its section; or the schema itself is unusable.',
    remedy: 'Correct the values at the key paths that the message lists, or the schema. Values are never printed.',
    example: 'schema /etc/app/billing.schema.json: the document does not match its schema: db.port (type)',
  },
  git: {
    meaning: 'The branch or commit cannot be read from the repository, or its signature is not trusted.',
    remedy: 'Fetch the branch completely; sign the commit with a key of git.allowed_signers or git.gnupg_home.',
    example: 'git refs/heads/main: commit 5f2c… has no good signature of a trusted key; sign it, or add its key',
  },
  decrypt: {
    meaning: 'An encrypted value or document cannot be opened with the identities of the server, or was changed or moved.',
    remedy: 'Add the identity to server.secrets.identities, or encrypt the value again for one of them with config-secrets.',
    example:
      'file /etc/app/billing.yaml: key db.password does not decrypt with any identity; add the identity, or rekey the file for one of them',
  },
  reference: {
    meaning: 'A value refers to a file (ref+file://) that cannot be used.',
    remedy: 'Put the file below a folder of server.secrets.mounts, as text in UTF-8 that the server can read.',
    example: 'file /etc/app/billing.toml: key db.password refers to /run/secrets/db, which does not exist',
  },
};

/** `code` of a response; the body has nothing that depends on the request. */
export const PROBLEMS: Readonly<Record<string, Explanation>> = {
  malformed: {
    meaning: 'What arrived is not a request of HTTP/1.0 or HTTP/1.1, or has two Host headers or an invalid one.',
    remedy: 'Look at what the client, or the proxy between, sends.',
    example: 'HTTP 400',
  },
  unauthenticated: {
    meaning: 'The request has no token, one that is not configured, or two Authorization headers.',
    remedy: 'Send `Authorization: Bearer <token>` with the token of a [[server.clients]] table.',
    example: 'HTTP 401, WWW-Authenticate: Bearer',
  },
  'not-found': {
    meaning: 'The section does not exist, or this token has no grant for it: the response is the same, byte for byte.',
    remedy: 'Compare `applications` of the client in server.toml with the path; the audit log says which of the two it was.',
    example: 'HTTP 404',
  },
  'method-not-allowed': {
    meaning: 'Every path takes GET and HEAD only: configuration is changed in its files.',
    remedy: 'Send GET.',
    example: 'HTTP 405, Allow: GET, HEAD',
  },
  'request-timeout': {
    meaning: 'The headers of the request were not complete within 15 seconds.',
    remedy: 'Look for a client that keeps connections open without sending.',
    example: 'HTTP 408',
  },
  'uri-too-long': { meaning: 'The URL has more than 8 KiB.', remedy: 'Ask for a shorter key path.', example: 'HTTP 414' },
  'headers-too-large': { meaning: 'The headers have more than 16 KiB.', remedy: 'Send fewer; cookies are not read.', example: 'HTTP 431' },
  internal: {
    meaning: 'A defect of the server.',
    remedy: 'Report it with the line of the log; it has no value in it.',
    example: 'HTTP 500',
  },
  unavailable: {
    meaning: 'As many streams are open as max_stream_connections allows.',
    remedy: 'Wait for the time in Retry-After; raise the limit, or run another instance.',
    example: 'HTTP 503, Retry-After: 5',
  },
};

const REACTIONS: Readonly<Record<RemoteErrorKind, string>> = {
  auth: 'Do not repeat the request: correct the token, or the application and profile.',
  remote: 'Try again later; the last good document stays in use.',
  cache: 'Check the folder of cacheFile: it must be writable by this user, and on a disk with room.',
  misuse: 'Correct the calling code.',
  mismatch: 'Correct the document or the schema; the last document that matched stays in use.',
};

/** Every place in which a code can be met, with what it means there; undefined for an unknown code. */
export function explain(code: string): string | undefined {
  const parts: string[] = [];
  const failure = Object.hasOwn(FAILURES, code) ? FAILURES[code as FailureKind] : undefined;
  if (failure !== undefined) parts.push(paragraph(`${code}: a document does not load`, failure));
  const problem = Object.hasOwn(PROBLEMS, code) ? PROBLEMS[code] : undefined;
  if (problem !== undefined) parts.push(paragraph(`${code}: a response of the server`, problem));
  const ofClient = Object.hasOwn(CLIENT_ERROR_CODES, code) ? CLIENT_ERROR_CODES[code as keyof typeof CLIENT_ERROR_CODES] : undefined;
  if (ofClient !== undefined) {
    const meaning = `${ofClient.meaning.charAt(0).toUpperCase()}${ofClient.meaning.slice(1)}.`;
    const example = `RemoteSourceError { code: '${code}', kind: '${ofClient.kind}' }`;
    parts.push(paragraph(`${code}: an error of the client`, { meaning, remedy: REACTIONS[ofClient.kind], example }));
  }
  return parts.length === 0 ? undefined : parts.join('\n');
}

/** For a code that is not known: all of them, by the place where they are met. */
export function knownCodes(): string {
  const list = (codes: object): string => Object.keys(codes).join(', ');
  return `a document does not load: ${list(FAILURES)}\nresponses of the server: ${list(PROBLEMS)}\nerrors of the client: ${list(CLIENT_ERROR_CODES)}\n`;
}

function paragraph(title: string, { meaning, remedy, example }: Explanation): string {
  return `${title}\n  ${meaning}\n  What to do: ${remedy}\n  Example: ${example}\n`;
}
