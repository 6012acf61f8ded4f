import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startPostgresServer, type PostgresServer } from '../../../../../../test/provision/postgres-server.ts';
import { migrateWebhooks } from '../../../../test/webhooks/outbox.ts';
import { openDatabase, type Database } from '../../../db/index.ts';
import { prune } from '../delivery/prune.ts';
import { setAudience } from '../delivery/maintenance-store.ts';
import { unbindWebhooks, useWebhooks } from '../webhooks.ts';
import { publish } from './publish.ts';

const GUIDE = readFileSync(join(import.meta.dirname, '../../../../../../docs/guide/webhooks-brokers.md'), 'utf8');

/** The statement of the guide, as it is printed there. */
const publication = /```sql\n(create publication[\s\S]*?)```/.exec(GUIDE)?.[1] ?? '';
/** The column that the guide gives for a setting of Debezium's outbox router. */
const columnOf = (setting: string): string => new RegExp(`\`transforms\\.outbox\\.${setting}\` \\| \`(\\w+)\``).exec(GUIDE)?.[1] ?? '';

type Change = { readonly kind: string; readonly row: Readonly<Record<string, string | null>> };

/** The messages of pgoutput, version 1: the names of the columns come before the first row. */
function decode(messages: readonly Buffer[]): Change[] {
  const columns = new Map<number, string[]>();
  const changes: Change[] = [];
  for (const message of messages) {
    let at = 1;
    const text = (): string => {
      const end = message.indexOf(0, at);
      const value = message.toString('utf8', at, end);
      at = end + 1;
      return value;
    };
    const number = (bytes: 1 | 2 | 4): number => message.readUIntBE((at += bytes) - bytes, bytes);
    const kind = String.fromCharCode(message[0] ?? 0);
    if (kind === 'R') {
      const relation = number(4);
      text();
      text();
      number(1);
      columns.set(
        relation,
        Array.from({ length: number(2) }, () => {
          number(1);
          const name = text();
          number(4);
          number(4);
          return name;
        }),
      );
    } else if (kind === 'I') {
      const names = columns.get(number(4)) ?? [];
      number(1);
      const count = number(2);
      const row: Record<string, string | null> = {};
      for (const name of names.slice(0, count)) {
        const form = String.fromCharCode(number(1));
        row[name] = form === 't' ? message.toString('utf8', at + 4, (at += 4 + message.readUInt32BE(at))) : null;
      }
      changes.push({ kind, row });
      // Begin, commit and the types of columns are no changes.
    } else if (!'BCY'.includes(kind)) changes.push({ kind, row: {} });
  }
  return changes;
}

let server: PostgresServer;
let db: Database;

beforeAll(async () => {
  server = await startPostgresServer({ settings: ['wal_level=logical'] });
  db = await openDatabase(server.url);
  await migrateWebhooks(db);
  useWebhooks(db);
});
afterAll(async () => {
  if (db !== undefined) {
    unbindWebhooks(db);
    await db.close();
  }
  await server?.stop();
});

test('a publication of the outbox has each committed event once, in order, with the columns that an outbox router reads', async () => {
  await db.query(publication);
  await db.query(`select pg_create_logical_replication_slot('kit_test', 'pgoutput')`);
  const first = await db.transaction((tx) => publish(tx, 'order.paid', { total: 12, name: 'ü' }, { owner: 'ada', orderingKey: 'order:1' }));
  await db
    .transaction(async (tx) => {
      await publish(tx, 'order.lost', {}, { owner: 'ada' });
      throw new Error('rolled back');
    })
    .catch(() => undefined);
  const second = await db.transaction((tx) => publish(tx, 'order.shipped', { total: 12 }, { tenantKey: 'acme' }));
  // Neither an audience that is assigned later nor a prune is an event.
  await db.query('update webhook_events set audience = null where id = $1', [second.id]);
  await db.transaction((tx) => setAudience(tx, second.id, { kind: 'broadcast' }, new Date()));
  expect(await prune(db, new Date(Date.now() + 1000), 10)).toBe(2);
  const rows = await db.query<{ data: Buffer }>(
    `select data from pg_logical_slot_get_binary_changes('kit_test', null, null, 'proto_version', '1', 'publication_names', 'kit_events')`,
  );
  await db.query(`select pg_drop_replication_slot('kit_test')`);
  const changes = decode(rows.map(({ data }) => Buffer.from(data)));
  const [id, key, payload, route] = ['table.field.event.id', 'table.field.event.key', 'table.field.event.payload', 'route.by.field'].map(
    columnOf,
  );
  expect(changes.map(({ kind, row }) => [kind, row[id ?? ''], row[key ?? ''], row[route ?? ''], row[payload ?? '']])).toEqual([
    ['I', first.id, 'order:1', 'order.paid', '{"total":12,"name":"ü"}'],
    ['I', second.id, null, 'order.shipped', '{"total":12}'],
  ]);
});
