import { pino, symbols } from 'pino';
import { inspectBeforeRemoval } from '../../src/testing/before-removal.ts';
import { findKey, findWebhookSecret, type KnownSecrets } from './find-secrets.ts';
import { scanDatabase, scanOpen } from './scan-database.ts';
import { watchChildren } from './watch-children.ts';
import { watchMemoryDatabases } from './watch-memory-databases.ts';

type MutableSecrets = KnownSecrets & { readonly keys: Set<string> };

const PRINTED_KEY = /\b[a-z]{2,8}_[0-9A-Za-z]{12}_([0-9A-Za-z]{43})[0-9A-Za-z]{6}\b/g;
const leaks = new Set<string>();
let watched = false;

/** Searches what is logged, printed by started programs or stored in databases from now on; once per process. */
export function watchProcess(known: MutableSecrets): void {
  if (watched) return;
  watched = true;
  watchLogs(known);
  // Standard output belongs to what a program says to its user: `kit apikey create` prints a key there, which is then known. Log records on
  // it start like this.
  watchChildren((from, line) => {
    if (from === 'stderr') return search('what a program wrote to standard error,', line, known);
    if (line.startsWith('{"level":')) return search('the log line of a program', line, known);
    for (const [, secret] of line.matchAll(PRINTED_KEY)) known.keys.add(secret ?? '');
  });
  watchMemoryDatabases((database) => {
    for (const { where, kind, shown } of scanOpen(database, known)) leaks.add(`${where} (sqlite, in memory) holds ${kind}, ${shown}`);
  });
  inspectBeforeRemoval(async (place) => {
    for (const { where, kind, shown } of await scanDatabase(place, known)) leaks.add(`${where} (${place.dialect}) holds ${kind}, ${shown}`);
  });
}

/** What was found since the last call. */
export function takeLeaks(): string[] {
  const found = [...leaks];
  leaks.clear();
  return found;
}

/** Every logger of the process writes through this one method. */
function watchLogs(known: KnownSecrets): void {
  const shared = Object.getPrototypeOf(Object.getPrototypeOf(pino({ enabled: false }))) as Record<symbol, (...values: unknown[]) => string>;
  const writeLine = shared[symbols.asJsonSym];
  if (writeLine === undefined) throw new Error('pino makes its lines elsewhere now: no log would be searched.');
  shared[symbols.asJsonSym] = function searched(...values) {
    const line = writeLine.apply(this, values);
    search('the log line', line, known);
    return line;
  };
}

function search(what: string, line: string, known: KnownSecrets): void {
  const found = findKey(line, known) ?? findWebhookSecret(line);
  if (found === null) return;
  const shown = line
    .trim()
    .slice(0, 300)
    .replaceAll(/[0-9A-Za-z+/=]{30,}/g, '…');
  leaks.add(`${what} ${shown} holds ${found.kind}, ${found.shown}`);
}
