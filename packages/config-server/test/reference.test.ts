import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FAILURES } from '../src/cli/explain.ts';
import { CLIENT_ERROR_CODES } from '../src/client/index.ts';
import { formatEntry } from '../src/audit/json-lines.ts';
import * as problems from '../src/http/problem.ts';
import { renderMetrics } from '../src/http/metrics.ts';

const root = join(import.meta.dirname, '..');
const docs = join(root, '..', '..', 'docs');
const page = readFileSync(join(docs, 'reference', 'config-server.md'), 'utf8');
const missing = (wanted: readonly string[]): string[] => wanted.filter((text) => !page.includes(text));

test('every kind of failure is on the page', () => {
  expect(missing(Object.keys(FAILURES).map((kind) => `| \`${kind}\` | `))).toEqual([]);
});

test('every key of server.toml is on the page, and the page names no other', () => {
  const asked = new Set<string>();
  for (const file of globSync('src/config/*.ts', { cwd: root }).filter((name) => !name.endsWith('.test.ts'))) {
    const source = readFileSync(join(root, file), 'utf8');
    const calls =
      /\.(?:string|requiredString|boolean|integer|value|table|tables|has)\('(\w+)'|readP(?:em|aths)\(reader, '(\w+)'|readExisting\(reader, '(\w+)'|readSegment\(reader, '(\w+)'|readBind\(server, '(\w+)'/g;
    for (const [, ...names] of source.matchAll(calls)) asked.add(names.find((name) => name !== undefined) ?? '');
    for (const [, list] of source.matchAll(/TOKEN_KEYS = \[([^\]]+)\]/g))
      for (const [, name] of (list ?? '').matchAll(/'(\w+)'/g)) asked.add(name ?? '');
  }
  const tables = page.slice(page.indexOf('## server.toml'), page.indexOf('### Live edits'));
  const listed = [...tables.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name ?? '');
  const named = new Set(['server', 'sections', 'clients', 'tls', 'git', 'secrets']);
  expect([...asked].filter((name) => !named.has(name)).sort()).toEqual([...new Set(listed)].sort());
  for (const name of ['sections', 'clients']) expect(tables).toContain(`[[server.${name}]]`);
  for (const name of ['server.tls', 'server.secrets', 'git']) expect(tables).toContain(`[${name}]`);
});

test('every problem, metric, audit field and error code of the client is on the page', () => {
  const codes = Object.values(problems).map((problem) => JSON.parse(problem.body.toString()) as { status: number; code: string });
  expect(missing(codes.map(({ status, code }) => `| ${status} | \`${code}\` |`))).toEqual([]);
  const families = [...renderMetrics([]).matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name, type]) => `| \`${name}\` | ${type} |`);
  expect(families).toHaveLength(6);
  expect(missing(families)).toEqual([]);
  const entry = {
    time: '',
    caller: null,
    application: null,
    profile: null,
    endpoint: 'none',
    outcome: 'served',
    generation: null,
    trace_id: '',
  } as const;
  expect(missing(Object.keys(JSON.parse(formatEntry(entry)) as object).map((field) => `\`${field}\``))).toEqual([]);
  const kinds = Map.groupBy(Object.entries(CLIENT_ERROR_CODES), ([, { kind }]) => kind);
  const rows = [...kinds].map(([kind, codes]) => `| \`${kind}\` | ${codes.map(([code]) => `\`${code}\``).join(', ')} |`);
  expect(missing(rows)).toEqual([]);
});

test('every test file the security page points to exists', () => {
  const security = readFileSync(join(docs, 'reference', 'config-server-security.md'), 'utf8');
  const named = new Set([...security.matchAll(/`((?:src|test)\/[\w./-]+\.test\.ts)`/g)].map(([, file]) => file ?? ''));
  expect(named.size).toBeGreaterThan(10);
  expect([...named].filter((file) => globSync(file, { cwd: root }).length === 0)).toEqual([]);
});
