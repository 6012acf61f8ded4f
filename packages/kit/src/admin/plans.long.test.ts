import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AdminApp, Browser } from '../../test/admin/admin-app.ts';
import { everyListApp, fillEveryList, LARGE_TABLES } from '../../test/admin/every-list.ts';
import type { AdminPage, AdminResourceShape } from '../app/admin/shapes.ts';
import type { Database } from '../db/engine/db.ts';
import { describeDatabases } from '../testing/databases.ts';
import { fakeClock } from '../testing/fake-clock.ts';

/** More than a list looks at without an index, and many times what a count goes to. */
const ROWS = 1_000_000;
/** What one statement may read: the rows that a search looks at, or twice a count that stops at 10,000. */
const READ_MAX = 51_000;

const pages = [
  'resources/api-keys',
  'resources/api-keys?filter.state=expired',
  'resources/api-keys?search=nothing-like-this',
  'resources/api-keys?search=bulk%20key%207',
  'resources/api-keys?filter.state=active',
  'resources/api-keys?filter.state=owner_inactive',
  'resources/api-keys?filter.state=revoked',
  'resources/api-keys?filter.used_since=2030-01-01T00:00:00Z',
  'resources/api-keys?filter.used_before=2000-01-01T00:00:00Z',
  'resources/api-keys?filter.revoked_since=2030-01-01T00:00:00Z',
  'resources/api-keys?filter.expires_before=2000-01-01T00:00:00Z',
  'resources/users',
  'resources/users?filter.staff=yes',
  'resources/users?filter.active=no',
  'resources/users?search=nothing-like-this',
  'resources/users?search=bulk-user-17',
  'resources/users?search=nothing-like-this&sort=username',
  'resources/users?search=bulk&sort=-username',
  'resources/deliveries',
  'resources/deliveries?filter.status=failed',
  'resources/deliveries?filter.status=pending',
  'resources/deliveries?filter.event_type=order.refunded',
  'resources/deliveries?filter.status=succeeded',
  'resources/deliveries?filter.reason=timeout',
  'resources/deliveries?filter.record=task:100',
  'resources/deliveries?filter.request_id=request-17,request-4711',
  'resources/events',
  'resources/events?filter.audience=none',
  'resources/events?filter.type=order.refunded',
  'resources/events?filter.request_id=request-17,request-4711',
  'resources/events?search=nothing-like-this',
  'resources/endpoints',
  'resources/endpoints?search=example',
  'resources/endpoints?filter.state=active',
  'resources/audit-log',
  'resources/audit-log?filter.action=bulk.rare',
  'resources/audit-log?filter.actor=nobody',
  'resources/audit-log?filter.target_id=17',
  'resources/audit-log?filter.until=2000-01-01T00:00:00Z',
  'resources/jobs',
  'resources/jobs?filter.status=queued',
  'resources/jobs?filter.status=running',
  'resources/jobs?filter.status=cancelled',
  'resources/jobs?filter.status=failed',
  'resources/jobs?filter.due=waiting',
  'resources/jobs?filter.name=other',
  'resources/jobs?filter.owner=nobody',
  'resources/jobs?filter.record=task:100',
  'resources/jobs?filter.request_id=request-17,request-4711',
  'resources/jobs?filter.status=failed&filter.name=nothing&filter.code=timed_out',
  'resources/job-failures',
  'resources/job-failures/nothing:timed_out',
  'resources/job-schedules',
  'resources/uploads',
  'resources/uploads?filter.state=complete',
  'resources/uploads?filter.state=rejected',
  'resources/uploads?search=nothing-like-this',
  'resources/grants',
  'resources/grants?filter.subject=user:bulk-17',
  'resources/grants?filter.user=bulk-17',
  'resources/grants?filter.object=17',
  'resources/tasks',
  'resources/tasks?filter.state=done',
  'resources/tasks?filter.flag=yes',
  'resources/tasks?filter.created_at.from=2000-01-01T00:00:00Z',
  'resources/tasks?filter.created_at.from=2000-01-01T00:00:00Z&sort=name',
  'resources/tasks?filter.created_at.to=2000-01-01T00:00:00Z',
  'resources/tasks?filter.price.from=1&filter.price.to=2',
  'resources/tasks?filter.due.empty=yes',
  'resources/tasks?filter.name.contains=nothing-like-this',
  'resources/tasks?filter.state.not=open',
  'resources/tasks?filter.state.in=open,done',
  'resources/tasks?search=nothing-like-this',
  'resources/tasks?search=bulk',
  'resources/tasks?search=bulk+17',
  'resources/tasks?search=bulk&sort=-name',
  'resources/tasks?search=nothing-like-this&sort=name',
  'session',
  'state',
  'overview?range=24h',
  'overview?range=30d',
];

/** Tables whose oldest row is the template that the others were made from, and their lists. */
const OLDEST = [
  ['users', 'users'],
  ['tasks', 'tasks'],
  ['api_keys', 'api-keys'],
  ['webhook_endpoints', 'endpoints'],
  ['webhook_events', 'events'],
  ['jobs', 'jobs'],
  ['uploads', 'uploads'],
] as const;

const clock = fakeClock();

describeDatabases(
  'statements of the admin site',
  (database) => {
    let site: AdminApp;
    let staff: Browser;
    beforeAll(async () => {
      site = await everyListApp(database.db, clock);
      await fillEveryList(database.db, site, clock, ROWS);
      staff = await site.browser();
    }, 3_600_000);
    afterAll(() => site.close());

    const faultsOfPages = async (paths: readonly string[]): Promise<readonly string[]> => {
      const faults = new Set<string>();
      for (const path of paths) {
        const first = await statementsOf(database.db, site, staff, path);
        const { next } = first.body as { readonly next?: string | null };
        const following = typeof next === 'string' ? `${path}${path.includes('?') ? '&' : '?'}cursor=${next}` : null;
        const second = following === null ? [] : (await statementsOf(database.db, site, staff, following)).sent;
        for (const statement of [...first.sent, ...second])
          for (const fault of await faultsOf(database.db, statement)) faults.add(`${path}: ${fault}`);
      }
      return [...faults];
    };

    test(`lists, filters, search and overview on ${ROWS} rows read no table from end to end`, { timeout: 3_600_000 }, async () => {
      expect(await faultsOfPages(pages)).toEqual([]);
    });

    test(`no order that a heading offers reads a table of ${ROWS} rows from end to end`, { timeout: 3_600_000 }, async () => {
      const { resources } = (await site.get(staff, 'session')).body.site as { readonly resources: readonly AdminResourceShape[] };
      const sorted = resources.flatMap(({ name, columns }) =>
        columns
          .filter(({ sortable }) => sortable === true)
          .flatMap(({ name: column }) => [column, `-${column}`])
          .map((sort) => `resources/${name}?sort=${sort}`),
      );
      expect(sorted.length).toBeGreaterThan(40);
      expect(await faultsOfPages(sorted)).toEqual([]);
    });

    test(`no section of a record's page reads a table of ${ROWS} rows from end to end`, { timeout: 3_600_000 }, async () => {
      const { resources } = (await site.get(staff, 'session')).body.site as { readonly resources: readonly AdminResourceShape[] };
      const paths: string[] = [];
      for (const { name } of resources) {
        // The oldest record belongs to the template user, who owns nearly everything; the newest to a user who owns nothing.
        const newest = (await site.get(staff, `resources/${name}?limit=1`)).body as AdminPage;
        paths.push(...newest.items.map(({ id }) => `resources/${name}/${encodeURIComponent(id)}`));
      }
      for (const [table, list] of OLDEST)
        for (const { id } of await database.db.query<{ id: string }>(`select id from ${table} order by id limit 1`))
          paths.push(`resources/${list}/${id}`);
      expect(paths.length).toBeGreaterThanOrEqual(resources.length - 2 + OLDEST.length);
      expect(await faultsOfPages(paths)).toEqual([]);
    });

    test('a file has every row that the filter leaves, also where the page shows the newest only', { timeout: 3_600_000 }, async () => {
      const page = (await site.get(staff, 'resources/tasks?filter.flag=yes&sort=name')).body as AdminPage;
      const [row] = await database.db.query<{ n: number | bigint }>('select count(*) as n from tasks where flag');
      const file = await site.get(staff, 'lists/tasks/export?filter.flag=yes&sort=name');
      expect(page.searched).toBe(50_000);
      expect(page.count).toBeLessThan(Number(row?.n));
      // The first line has the names of the columns.
      expect(file.text.trim().split('\n').length - 1).toBe(Number(row?.n));
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
  if (!LARGE_TABLES.some((table) => text.includes(table))) return [];
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

/** PostgreSQL says what was read: a scan that a limit ends early does not read the whole table. */
async function postgresFaults(db: Database, text: string, parameters: readonly unknown[]): Promise<string[]> {
  const [row] = await db.transaction(async (tx) => {
    return tx.query<{ 'QUERY PLAN': readonly { readonly Plan: PlanNode }[] }>(
      `explain (analyze, timing off, format json) ${text}`,
      parameters,
      {
        replanned: true,
      },
    );
  });
  const faults: string[] = [];
  const walk = (node: PlanNode): void => {
    const read =
      (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0)) * node['Actual Loops'];
    const table = node['Relation Name'];
    // Where half of the table is allowed, reading all of it may be cheaper than by its index: of a million rows it is not.
    const max = /"(?:id|seq|created_at)" >= \$\d/.test(text) ? 2 * READ_MAX : READ_MAX;
    if (table !== undefined && LARGE_TABLES.includes(table) && read > max)
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
  const plan = await db.query<PlanStep>(`explain query plan ${text}`, parameters);
  const partial = (await db.query<{ name: string }>(`select name from sqlite_master where type = 'index' and sql like '% where %'`)).map(
    ({ name }) => name,
  );
  const names = new Set<string | undefined>(LARGE_TABLES);
  for (const table of LARGE_TABLES)
    for (const match of text.matchAll(new RegExp(`${table}"? (?:as )?([a-z]\\w*)`, 'g'))) names.add(match[1]);
  const isEnded = /\blimit\b/i.test(text) && !/\bwhere\b/i.test(withoutShownValues(text).replace(/\) newest\s+where/i, ''));
  return plan
    .filter(({ detail }) => detail.startsWith('SCAN ') && names.has(detail.split(' ')[1]))
    .filter((step) => !(isEnded && !isOfShownValue(step, plan)) && !/\b1 = 0\b/.test(text))
    .filter(({ detail }) => !partial.some((name) => detail.endsWith(` ${name}`)))
    .map(({ detail }) => `${detail}: ${text.replaceAll(/\s+/g, ' ').slice(0, 300)}`);
}

interface PlanStep {
  readonly id: number;
  readonly parent: number;
  readonly detail: string;
}

/** The statement without queries among the values that it shows: their conditions leave out no row of the list. */
function withoutShownValues(text: string): string {
  let depth = 0;
  for (const { 0: found, index } of text.matchAll(/[()]|\bfrom\b/gi)) {
    if (found === '(') depth += 1;
    else if (found === ')') depth -= 1;
    else if (depth === 0) return text.slice(index);
  }
  return text;
}

/** Whether the step is part of a query among the shown values, which runs for every row: the limit of the list does not end it. */
function isOfShownValue({ parent }: PlanStep, plan: readonly PlanStep[]): boolean {
  const above = plan.find(({ id }) => id === parent);
  return above !== undefined && (/SCALAR SUBQUERY/.test(above.detail) || isOfShownValue(above, plan));
}
