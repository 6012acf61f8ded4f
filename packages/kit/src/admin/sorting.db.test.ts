import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AdminApp, Browser } from '../../test/admin/admin-app.ts';
import { everyListApp, fillEveryList } from '../../test/admin/every-list.ts';
import type { AdminPage, AdminResourceShape, AdminRow } from '../app/admin/shapes.ts';
import { describeDatabases } from '../testing/databases.ts';
import { fakeClock } from '../testing/fake-clock.ts';

const clock = fakeClock();

describeDatabases(
  'the order of lists',
  (database) => {
    let site: AdminApp;
    let staff: Browser;
    let resources: readonly AdminResourceShape[];
    beforeAll(async () => {
      site = await everyListApp(database.db, clock);
      await fillEveryList(database.db, site, clock, 6);
      staff = await site.browser({ is_staff: true, is_superuser: true });
      resources = (await site.get(staff, 'session')).body.site.resources;
    });
    afterAll(() => site.close());

    const wholeList = async (name: string, sort: string): Promise<readonly AdminRow[]> => {
      const rows: AdminRow[] = [];
      for (let cursor = ''; ;) {
        const { status, body } = await site.get(staff, `resources/${name}?limit=3&sort=${sort}${cursor}`);
        expect([name, sort, status]).toEqual([name, sort, 200]);
        const page = body as AdminPage;
        rows.push(...page.items);
        if (page.next === null) return rows;
        cursor = `&cursor=${page.next}`;
      }
    };

    test('every column of every list can be sorted, or its heading says why not', () => {
      const silent = resources.flatMap(({ name, columns }) =>
        columns.filter(({ sortable, sortNote }) => sortable !== true && sortNote === undefined).map((column) => `${name}.${column.name}`),
      );
      expect(silent).toEqual([]);
      const lists = resources.map(({ name }) => name);
      expect(lists).toEqual(expect.arrayContaining(['api-keys', 'users', 'groups', 'endpoints', 'deliveries', 'events', 'audit-log']));
      expect(lists).toEqual(expect.arrayContaining(['jobs', 'uploads', 'grants', 'tasks']));
    });

    test('no list, column, filter, field or action is labelled as a variable or a misspelled abbreviation', () => {
      const labels = resources.flatMap(({ label, singular, columns, filters, creation, actions }) => [
        label,
        singular,
        ...[...columns, ...filters, ...('refused' in creation ? [] : creation.fields)].map((each) => each.label),
        ...filters.flatMap(({ choices = [] }) => choices.map((choice) => choice.label)),
        ...actions.flatMap(({ label: words, fields = [] }) => [JSON.stringify(words), ...fields.map((field) => field.label)]),
      ]);
      expect(labels.filter((label) => /_|\b(?:Api|Csrf|Http|Ip|Json|Tls|Url|Uuid)\b/.test(label))).toEqual([]);
      expect(labels.length).toBeGreaterThan(100);
    });

    test('a heading says that of a large list the newest are sorted, unless an index has them all in order', () => {
      const note = (list: string, column: string) =>
        resources.find(({ name }) => name === list)?.columns.find(({ name }) => name === column)?.sortNote;
      expect(note('api-keys', 'name')).toBe('Has no index: of more than 50,000 records, the newest 50,000 are sorted.');
      expect(note('api-keys', 'state')).toBe('Cannot be sorted: it is computed from other columns.');
      expect(note('api-keys', 'scopes')).toBe('Cannot be sorted: each value is a list or a structure.');
      for (const [list, column] of [
        ['api-keys', 'prefix'],
        ['users', 'username'],
        ['endpoints', 'tenant_key'],
        ['audit-log', 'action'],
        ['uploads', 'state'],
        ['tasks', 'state'],
      ] as const)
        expect([list, column, note(list, column)]).toEqual([list, column, undefined]);
      for (const [list, column] of [
        ['tasks', 'due'],
        ['events', 'type'],
      ] as const)
        expect([list, note(list, column)]).toEqual([list, expect.stringContaining('the newest 50,000')]);
    });

    test('pages of an order have every record once, values in order, and the other way round the same reversed', async () => {
      for (const { name, columns } of resources)
        for (const { name: column, sortable } of columns) {
          if (sortable !== true) continue;
          // Reading the list of audit entries adds none; the first request of the session did.
          const [up, down] = [await wholeList(name, column), await wholeList(name, `-${column}`)];
          const ids = (rows: readonly AdminRow[]) => rows.map(({ id }) => id).toSorted();
          expect([name, column, new Set(ids(up)).size]).toEqual([name, column, up.length]);
          expect([name, column, ids(down)]).toEqual([name, column, ids(up)]);
          const values = (rows: readonly AdminRow[]) =>
            rows.map(({ values: { [column]: value } }) => JSON.stringify(value ?? null)).filter((value) => value !== 'null');
          const shown = HIDDEN.has(`${name}.${column}`) ? () => [] : values;
          expect([name, column, shown(down)]).toEqual([name, column, shown(up).toReversed()]);
        }
    });
  },
  { database: { clock } },
);

/** Sorted by something that the cell does not show alone. */
const HIDDEN: ReadonlySet<string> = new Set(['jobs.attempts', 'grants.object']);
