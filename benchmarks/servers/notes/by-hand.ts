// The creates of recorded.ts written by hand, with bare Fastify and node:sqlite: the same rows in the same tables and indexes, in one transaction, by
// prepared statements. It does less: no owner, nothing masked, no members sorted before an entry is hashed, and no entry is sealed.
// node by-hand.ts <database>, of which recorded.ts has made the tables.
import { hash } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import Fastify from 'fastify';
import { uuidv7 } from '../../../packages/kit/src/db/values/uuidv7.ts';
import { serving } from '../../harness/server-process.ts';

const [address = ''] = process.argv.slice(2);
const database = new DatabaseSync(address.slice('sqlite:'.length), { timeout: 0 });
database.exec('pragma journal_mode = wal; pragma wal_autocheckpoint = 4000; pragma synchronous = normal; pragma foreign_keys = on');

const NOTE_COLUMNS = ['id', 'owner_id', 'title', 'body', 'created_at', 'updated_at'];
const ENTRY_COLUMNS = 'id, at, actor_id, actor_name, actor_scheme, action, target_type, target_id, after, request_id, content_hash'.split(
  ', ',
);
const EVENT_COLUMNS = 'id, type, data, timestamp, audience, owner_id, ordering_key'.split(', ');
const insert = (table: string, columns: readonly string[]) =>
  database.prepare(`insert into ${table} (${columns.join(', ')}) values (${columns.map(() => '?').join(', ')})`);
const [plain, note] = [insert('plain_notes', NOTE_COLUMNS), insert('notes', NOTE_COLUMNS)];
const [entry, event] = [insert('audit_inbox', ENTRY_COLUMNS), insert('webhook_events', EVENT_COLUMNS)];
const subscribed = database.prepare(
  `select endpoint_id from webhook_subscriptions where pattern in (?, ?, ?) and tenant_key = '' and owner_id = ? limit 1`,
);
const [begin, commit] = [database.prepare('begin immediate'), database.prepare('commit')];

const OWNER = uuidv7();

interface Body {
  readonly title: string;
  readonly body: string;
}

function noteOf({ title, body }: Body) {
  const now = new Date().toISOString();
  return { id: uuidv7(), owner_id: OWNER, title, body, created_at: now, updated_at: now };
}

type Note = ReturnType<typeof noteOf>;
const valuesOf = (row: Note) => [row.id, row.owner_id, row.title, row.body, row.created_at, row.updated_at];

function record(row: Note, requestId: string): void {
  const [id, at, type] = [uuidv7(), row.created_at, 'note.created'];
  const who = [OWNER, 'ada', 'session'];
  const what = [type, 'note', row.id];
  const digest = hash('sha256', JSON.stringify([id, at, ...who, ...what, row, requestId]));
  entry.run(id, at, ...who, ...what, JSON.stringify(row), requestId, digest);
  const data = JSON.stringify({ id: row.id, changed: NOTE_COLUMNS, object: row });
  event.run(uuidv7(), type, data, at, 'owner', OWNER, `note:${row.id}`);
  if (subscribed.get(type, 'note.*', '*', OWNER) !== undefined) throw new Error('There are no subscriptions in this benchmark.');
}

const app = Fastify();
const text = (maxLength: number) => ({ type: 'string', maxLength });
const properties = { title: text(80), body: text(400) };
const schema = { body: { type: 'object', properties, required: Object.keys(properties), additionalProperties: false } };

app.post('/v1/plain', { schema }, (request, reply) => {
  const row = noteOf(request.body as Body);
  plain.run(...valuesOf(row));
  void reply.code(201).send(row);
});

app.post('/v1/recorded', { schema }, (request, reply) => {
  const row = noteOf(request.body as Body);
  begin.run();
  try {
    note.run(...valuesOf(row));
    record(row, uuidv7());
    commit.run();
  } catch (error) {
    database.exec('rollback');
    throw error;
  }
  void reply.code(201).send(row);
});

await app.listen({ port: 0, host: '127.0.0.1' });
serving((app.server.address() as AddressInfo).port);
