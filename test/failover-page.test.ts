import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { read } from './docs/pages.ts';
import { root } from './architecture/module-graph.ts';
import { checkDescriptions } from '../packages/kit/src/app/check/checks.ts';
import { serverWarnings } from '../packages/kit/src/app/check/server-warnings.ts';
import type { ServerFacts } from '../packages/kit/src/db/engine/postgres/server-facts.ts';

// A person reads this page at night, and searches logs for its words.

const page = read('docs/guide/backup-and-failover.md');
const sources = globSync('packages/kit/src/**/*.ts', { cwd: root })
  .filter((path) => !path.endsWith('.test.ts'))
  .map((path) => readFileSync(join(root, path), 'utf8'));

const primary: ServerFacts = {
  version: '18.1',
  isStandby: false,
  isReadOnly: false,
  replicaLagMs: 42_000,
  replicas: 1,
  pooler: 'none',
  statementMsMax: 1,
  connectionsMax: 97,
};
const own = { poolMax: 10, keepAliveMs: 10_000 };
/** Sentences that are made of parts. */
const warnings = [primary, { ...primary, isStandby: true, isReadOnly: true }].flatMap((facts) =>
  serverWarnings('default', facts, own).map(({ message }) => message),
);
const everything = [...sources, ...warnings].join('\n');

/** What is quoted as code in the tables that begin with these cells. */
function quotedIn(...headers: readonly string[]): string[] {
  const tables = page.split(/\n\n/).filter((block) => headers.some((header) => block.startsWith(`| ${header} |`)));
  expect(tables).toHaveLength(headers.length);
  return tables.flatMap((table) => [...table.matchAll(/`([^`]+)`/g)].map(([, quoted = '']) => quoted));
}

const NIGHT = ['`kit doctor --database` prints', 'you see'] as const;

test('every sentence that the page quotes is one that the product prints', () => {
  const sentences = quotedIn(...NIGHT).filter((text) => text.includes(' ') && !/^(?:kit |DATABASE_|select |idle in )/.test(text));
  // Names, numbers and what varies are not part of it.
  const printed = sentences
    .flatMap((text) => text.split(/…|W\d+|\d+(?: ms| s)?|"default"|fault/))
    .map((part) => part.replace(/^[\s,:.]+|[\s,:.]+$/g, ''));
  const words = printed.filter((part) => part.includes(' ')).flatMap((part) => part.split(', '));
  expect(words.length).toBeGreaterThan(10);
  expect(words.filter((part) => part.includes(' ') && !everything.includes(part))).toEqual([]);
});

test('every check and error code that the page names exists', () => {
  const named = quotedIn(...NIGHT).flatMap((text) => /^[WE]\d+/.exec(text)?.[0] ?? []);
  expect(named.filter((id) => !(id in checkDescriptions))).toEqual([]);
  const errors = read('docs/reference/errors.md');
  const codes = quotedIn('you see').filter((text) => /^(?!pg_)[a-z]+_[a-z_]+$/.test(text));
  expect(codes.length).toBeGreaterThan(6);
  expect(codes.filter((code) => !errors.includes(`\`${code}\``))).toEqual([]);
});

test('the times are those of the product', () => {
  const constant = (path: string, name: string): number => {
    const text = readFileSync(join(root, 'packages/kit/src', path), 'utf8');
    return Number(new RegExp(`const ${name} = ([\\d_]+);`).exec(text)?.[1]?.replaceAll('_', ''));
  };
  const silence = constant('db/open/open-engine.ts', 'SILENCE_MS_MAX');
  expect(page).toContain(
    `${silence / 1000} s (\`silenceMsMax\`), or ${(silence * constant('db/engine/postgres/silence-watch.ts', 'GIVE_UP_ROUNDS')) / 1000} s if no new`,
  );
  expect(page).toContain(`notifications after ${constant('db/engine/postgres/listener.ts', 'RECONNECT_MS_MAX') / 1000} s at most`);
  expect(page).toContain(`pauses of at most ${constant('work/work-loop.ts', 'BACKOFF_MS_MAX') / 1000} s`);
  expect(page).toContain(
    `about ${constant('http/idempotency/release-when-reachable.ts', 'PAUSE_MS_MAX') / 1000} s; ${constant('http/idempotency/record-store.ts', 'LEASE_MS') / 1000} s for a killed process`,
  );
  expect(page).toContain(`has answered for ${constant('db/open/open-engine.ts', 'STUCK_MS') / 1000} s`);
  const lease =
    constant('contrib/webhooks/options.ts', 'LEASE_MARGIN_MS') + constant('contrib/webhooks/network/transport.ts', 'DEFAULT_TIMEOUT_MS');
  expect(page).toContain(`${lease / 1000} s for webhooks`);
});
