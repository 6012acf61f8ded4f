import { expect, test } from 'vitest';
import { scaled } from '../../../../test/provision/scale.ts';
import { AdminApp, type Browser } from '../../test/admin/admin-app.ts';
import { fillAudit, fillKeys, fillUsers, fillWebhooks, settle } from '../../test/admin/large-tables.ts';
import type { Module } from '../app/index.ts';
import { apiKeys, createApiKey } from '../contrib/apikeys/index.ts';
import { createEndpoint, publish, webhooks } from '../contrib/webhooks/index.ts';
import type { Database } from '../db/db.ts';
import { createTable, migration, model, t } from '../db/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { modelResource } from './model-resource.ts';

const DAY_MS = 86_400_000;
/** More than a search looks at, and many times what a count goes to. */
const ROWS = scaled(60_000, 1_000_000);
/** What one statement may read: the rows that a search looks at, or twice a count that stops at 10,000. */
const READ_MAX = 52_000;

const columns = { id: t.uuidv7().pk(), name: t.text(80), state: t.enum(['open', 'done']), created_at: t.timestamp() };
const tasks = model('tasks', columns, { indexes: [{ columns: ['state', 'id'] }] });
const office: Module = {
  name: 'office',
  models: [tasks],
  migrations: [migration('0001_initial', [createTable('tasks', columns, { indexes: [{ columns: ['state', 'id'] }] })])],
  admin: { resources: [modelResource(tasks)] },
};

const LARGE = ['api_keys', 'users', 'webhook_events', 'webhook_deliveries', 'webhook_attempts', 'audit_entries', 'tasks'];

const pages = [
  'resources/api-keys',
  'resources/api-keys?filter.state=expired',
  'resources/api-keys?search=nothing-like-this',
  'resources/api-keys?search=bulk%20key%207',
  'resources/api-keys?sort=name',
  'resources/users',
  'resources/users?sort=username',
  'resources/users?search=nothing-like-this',
  'resources/users?search=bulk-user-17',
  'resources/deliveries',
  'resources/deliveries?filter.status=failed',
  'resources/deliveries?filter.status=pending',
  'resources/deliveries?filter.event_type=order.refunded',
  'resources/events',
  'resources/events?filter.audience=none',
  'resources/events?filter.type=order.refunded',
  'resources/events?search=nothing-like-this',
  'resources/endpoints',
  'resources/endpoints?search=example',
  'resources/audit-log',
  'resources/audit-log?filter.action=bulk.rare',
  'resources/tasks',
  'resources/tasks?filter.state=done',
  'resources/tasks?sort=-name',
  'resources/tasks?search=nothing-like-this',
  'overview?range=24h',
  'overview?range=30d',
];

const clock = fakeClock();

describeDatabases(
  'statements of the admin site',
  (database) => {
    test(`lists, search and overview on ${ROWS} rows read no table from end to end`, { timeout: 3_600_000 }, async () => {
      const { db } = database;
      const site = await new AdminApp(db, [apiKeys(), webhooks(), office], { clock }).ready();
      try {
        await prepare(db, site);
        const staff = await site.browser();
        const faults: string[] = [];
        for (const page of pages) {
          const statements = await statementsOf(db, site, staff, page);
          const { next } = statements.body as { readonly next?: string | null };
          const following =
            typeof next === 'string' ? await statementsOf(db, site, staff, `${page}${page.includes('?') ? '&' : '?'}cursor=${next}`) : null;
          for (const statement of [...statements.sent, ...(following?.sent ?? [])])
            for (const fault of await faultsOf(db, statement)) faults.push(`${page}: ${fault}`);
        }
        expect([...new Set(faults)]).toEqual([]);
      } finally {
        await site.close();
      }
    });
  },
  { database: { clock } },
);

interface Statement {
  readonly text: string;
  readonly parameters: readonly unknown[];
}

/** What a request asks the database, with its values. */
async function statementsOf(db: Database, site: AdminApp, staff: Browser, path: string): Promise<{ sent: Statement[]; body: unknown }> {
  const sent: Statement[] = [];
  const query = db.query.bind(db);
  db.query = (text, parameters, options) => {
    sent.push({ text, parameters: parameters ?? [] });
    return query(text, parameters, options) as never;
  };
  // What is kept of the overview must be counted again.
  clock.advance(60_000);
  try {
    const { status, body } = await site.get(staff, path);
    if (status !== 200) throw new Error(`${path} answered ${status}`);
    return { sent: sent.filter(({ text }) => /^\s*(?:select|with)\b/i.test(text)), body };
  } finally {
    db.query = query;
  }
}

/** Large tables that a statement reads too much of. */
async function faultsOf(db: Database, { text, parameters }: Statement): Promise<string[]> {
  if (!LARGE.some((table) => text.includes(table))) return [];
  return db.dialect === 'postgres' ? postgresFaults(db, text, parameters) : sqliteFaults(db, text, parameters);
}

interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Rows Removed by Index Recheck'?: number;
  readonly Plans?: readonly PlanNode[];
}

/** PostgreSQL says what was read: a scan that a limit ends early is none of the whole table. */
async function postgresFaults(db: Database, text: string, parameters: readonly unknown[]): Promise<string[]> {
  const [row] = await db.query<{ 'QUERY PLAN': readonly { readonly Plan: PlanNode }[] }>(
    `explain (analyze, timing off, format json) ${text}`,
    parameters,
    { replanned: true },
  );
  const faults: string[] = [];
  const walk = (node: PlanNode): void => {
    const read =
      (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0)) * node['Actual Loops'];
    const table = node['Relation Name'];
    // Where half of the table is allowed, reading all of it may be cheaper than by its index: of a million rows it is not.
    const max = /"id" >= \$\d/.test(text) ? 2 * READ_MAX : READ_MAX;
    if (table !== undefined && LARGE.includes(table) && read > max)
      faults.push(`${node['Node Type']} reads ${read} rows of ${table}: ${text.replaceAll(/\s+/g, ' ').slice(0, 300)}`);
    node.Plans?.forEach(walk);
  };
  row?.['QUERY PLAN'].forEach(({ Plan }) => walk(Plan));
  return faults;
}

/**
 * SQLite says how it reads: what walks a table must be ended by a limit and leave nothing out on the way there, or walk a partial index,
 * which has only the rows that are looked for.
 */
async function sqliteFaults(db: Database, text: string, parameters: readonly unknown[]): Promise<string[]> {
  const plan = await db.query<{ detail: string }>(`explain query plan ${text}`, parameters);
  const partial = (await db.query<{ name: string }>(`select name from sqlite_master where type = 'index' and sql like '% where %'`)).map(
    ({ name }) => name,
  );
  const names = new Set<string | undefined>(LARGE);
  for (const table of LARGE) for (const match of text.matchAll(new RegExp(`${table}"? (?:as )?([a-z]\\w*)`, 'g'))) names.add(match[1]);
  const isEnded = /\blimit\b/i.test(text) && !/\bwhere\b/i.test(text.replace(/\) newest\s+where/i, ''));
  return plan
    .map(({ detail }) => detail)
    .filter((detail) => detail.startsWith('SCAN ') && names.has(detail.split(' ')[1]))
    .filter((detail) => !isEnded && !/\b1 = 0\b/.test(text) && !partial.some((name) => detail.endsWith(` ${name}`)))
    .map((detail) => `${detail}: ${text.replaceAll(/\s+/g, ' ').slice(0, 300)}`);
}

/** One row of each, for the others to be made from; then all of them. */
async function prepare(db: Database, site: AdminApp): Promise<void> {
  const user = await site.newUser();
  await createApiKey(db, { user, name: 'template', scopes: ['orders:read'] });
  await db.transaction(async (tx) => {
    await createEndpoint(tx, { owner: user.id, url: 'https://example.com/hook', events: ['*'] });
    await publish(tx, 'order.paid', {}, { owner: user.id });
  });
  await db.execute(
    `insert into webhook_attempts (delivery_id, id, started_at, duration_ms, worker) select id, id, created_at, 5, 'worker-1' from webhook_deliveries`,
  );
  clock.advance(40 * DAY_MS);
  const size = { rows: ROWS, after: 0, until: clock.now(), spanMs: 29 * DAY_MS };
  for (const fill of [fillKeys, fillUsers, fillWebhooks, fillAudit]) await fill(db, size);
  await db.execute(
    `insert into tasks (id, name, state, created_at) select id, username, case when is_staff then 'done' else 'open' end, created_at from users`,
  );
  await settle(db);
}
