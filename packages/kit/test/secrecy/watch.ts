import { pino, symbols } from 'pino';
import { afterAll, vi } from 'vitest';
import type * as Key from '../../src/contrib/apikeys/key.ts';
import type * as Fernet from '../../src/contrib/webhooks/signing/fernet.ts';
import { inspectBeforeRemoval } from '../../src/testing/before-removal.ts';
import { findKey, findWebhookSecret } from './find-secrets.ts';
import { scanOpen } from './scan-database.ts';
import { watchChildren } from './watch-children.ts';
import { watchMemoryDatabases } from './watch-memory-databases.ts';

// Runs before every test file. Whatever the file's apps log, whatever the programs it starts log or complain of, and whatever its databases
// hold when they are dropped or, in memory, closed is searched for raw API keys, for the secret parts of every key made meanwhile, and for
// webhook signing secrets; one of them found fails the file.

const known = vi.hoisted(() => ({ keys: new Set<string>(), sealed: new Set<string>() }));
const leaks: string[] = [];
const PRINTED_KEY = /\b[a-z]{2,8}_[0-9A-Za-z]{12}_([0-9A-Za-z]{43})[0-9A-Za-z]{6}\b/g;

vi.mock('../../src/contrib/apikeys/key.ts', async (original) => {
  const real = await original<typeof Key>();
  const formatKey: typeof Key.formatKey = (tag, parts) => {
    known.keys.add(parts.secret);
    return real.formatKey(tag, parts);
  };
  return { ...real, formatKey };
});

vi.mock('../../src/contrib/webhooks/signing/fernet.ts', async (original) => {
  const real = await original<typeof Fernet>();
  const encrypt: typeof Fernet.encrypt = (key, message, ...rest) => {
    if (typeof message === 'string') known.sealed.add(message);
    return real.encrypt(key, message, ...rest);
  };
  return { ...real, encrypt };
});

/** Every logger of the process, whoever made it, writes through this one method. */
const shared = Object.getPrototypeOf(Object.getPrototypeOf(pino({ enabled: false }))) as Record<symbol, (...values: unknown[]) => string>;
const writeLine = shared[symbols.asJsonSym];
if (writeLine === undefined) throw new Error('pino makes its lines elsewhere now: no log would be searched.');
shared[symbols.asJsonSym] = function searched(...values) {
  const line = writeLine.apply(this, values);
  search('the log line', line);
  return line;
};

function search(what: string, line: string): void {
  const found = findKey(line, known) ?? findWebhookSecret(line);
  if (found === null) return;
  const shown = line
    .trim()
    .slice(0, 300)
    .replaceAll(/[0-9A-Za-z+/=]{30,}/g, '…');
  leaks.push(`${what} ${shown} holds ${found.kind}, ${found.shown}`);
}

// Standard output belongs to what a program says to its user: `kit apikey create` prints a key there, which is then known. Log records on it
// start like this.
watchChildren((from, line) => {
  if (from === 'stderr') return search('what a program wrote to standard error,', line);
  if (line.startsWith('{"level":')) return search('the log line of a program', line);
  for (const [, secret] of line.matchAll(PRINTED_KEY)) known.keys.add(secret ?? '');
});

watchMemoryDatabases((database) => {
  for (const { where, kind, shown } of scanOpen(database, known)) leaks.push(`${where} (sqlite, in memory) holds ${kind}, ${shown}`);
});

inspectBeforeRemoval(async (place) => {
  const { scanDatabase } = await import('./scan-database.ts');
  for (const { where, kind, shown } of await scanDatabase(place, known)) leaks.push(`${where} (${place.dialect}) holds ${kind}, ${shown}`);
});

afterAll(() => {
  const found = leaks.splice(0);
  if (found.length > 0) throw new Error(`secrets were written down:\n${[...new Set(found)].slice(0, 20).join('\n')}`);
});
