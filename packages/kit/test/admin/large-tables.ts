import type { Database } from '../../src/db/engine/db.ts';
import { sealEntries } from '../../src/contrib/audit/chain/seal.ts';

/** How many rows of each, spread evenly over the time before `until`. */
export interface Fill {
  readonly rows: number;
  /** How many of them are there already. */
  readonly after?: number;
  readonly until: Date;
  readonly spanMs: number;
}

/** Rows made by the database itself. `columns` are SQL over r.n, r.key, r.at and the template row t. */
async function fill(
  db: Database,
  { rows, after = 0, until, spanMs }: Fill,
  table: string,
  columns: Readonly<Record<string, string>>,
): Promise<void> {
  const from = until.getTime() - spanMs;
  const step = spanMs / rows;
  const names = Object.keys(columns).map((name) => `"${name}"`);
  const values = Object.values(columns);
  const ms = `cast(${from} + cast(n as bigint) * ${step} as bigint)`;
  const series =
    db.dialect === 'postgres'
      ? `(select n, cast(lpad(to_hex(ms >> 16), 8, '0') || '-' || lpad(to_hex(ms & 65535), 4, '0') || '-7000-8000-' || lpad(to_hex(n), 12, '0') as uuid) as key,
           to_timestamp(ms / 1000.0) as at from (select n, ${ms} as ms from generate_series(${after + 1}, ${rows}) n) s) r`
      : `(with recursive c(n) as (select ${after + 1} union all select n + 1 from c where n < ${rows})
           select n, printf('%08x-%04x-7000-8000-%012x', ms >> 16, ms & 65535, n) as key, strftime('%Y-%m-%dT%H:%M:%fZ', ms / 1000.0, 'unixepoch') as at
           from (select n, ${ms.replaceAll('bigint', 'integer')} as ms from c) s) r`;
  await withoutIndexes(db, table, () =>
    db.execute(
      `insert into ${table} (${names.join(', ')}) select ${values.join(', ')} from ${series} cross join (select * from ${table} limit 1) t`,
    ),
  );
}

/** Indexes are built once, after the rows: one row at a time, ten tables of a million rows took most of an hour. */
export async function withoutIndexes(db: Database, table: string, work: () => Promise<unknown>): Promise<void> {
  const indexes = await db.query<{ name: string; sql: string }>(
    db.dialect === 'postgres'
      ? `select indexname as name, indexdef as sql from pg_indexes where schemaname = current_schema() and tablename = $1
           and not exists (select 1 from pg_constraint c where c.conindid = format('%I.%I', schemaname, indexname)::regclass)`
      : `select name, sql from sqlite_master where type = 'index' and tbl_name = $1 and sql is not null`,
    [table],
  );
  for (const { name } of indexes) await db.execute(`drop index "${name}"`);
  await work();
  for (const { sql } of indexes) await db.execute(sql);
}

const text = (value: string): string => `'${value}'`;
const numbered = (prefix: string): string => `${text(prefix)} || cast(n as text)`;
/** Every n-th row is one thing, the others another. */
const every = (n: number, one: string, other: string): string => `case when n % ${n} = 0 then ${one} else ${other} end`;

/** Needs one API key as a template. */
export async function fillKeys(db: Database, size: Fill): Promise<void> {
  await fill(db, size, 'api_keys', {
    id: 'r.key',
    owner_id: 't.owner_id',
    name: numbered('bulk key '),
    prefix: db.dialect === 'postgres' ? `lpad(to_hex(r.n), 12, 'z')` : `printf('z%011x', r.n)`,
    digest: 't.digest',
    scopes: 't.scopes',
    created_at: 'r.at',
    last_used_at: every(3, 'r.at', 'null'),
    revoked_at: every(10, 'r.at', 'null'),
  });
}

/** Needs one user as a template. */
export async function fillUsers(db: Database, size: Fill): Promise<void> {
  const columns = {
    id: 'r.key',
    username: numbered('bulk-user-'),
    is_active: 't.is_active',
    is_staff: every(100, 't.is_active', 't.is_superuser'),
  };
  await fill(db, size, 'users', { ...columns, is_superuser: 't.is_superuser', created_at: 'r.at', updated_at: 'r.at' });
}

/** Needs one endpoint as a template; all events go to it. */
export async function fillWebhooks(db: Database, size: Fill): Promise<void> {
  await fill(db, size, 'webhook_events', {
    id: 'r.key',
    type: every(50, text('order.refunded'), text('order.paid')),
    data: text('{"order":1}'),
    timestamp: 'r.at',
    audience: text('owner'),
    owner_id: 't.owner_id',
    tenant_key: text(''),
    request_id: numbered('request-'),
  });
  await fill(db, size, 'webhook_deliveries', {
    id: 'r.key',
    event_id: 'r.key',
    endpoint_id: 't.endpoint_id',
    event_type: every(50, text('order.refunded'), text('order.paid')),
    status: every(500, text('failed'), text('succeeded')),
    attempts: '1',
    last_status_code: every(500, '500', '200'),
    last_error: every(500, text('The receiver returned 500.'), 'null'),
    failure_reason: every(500, text('http_status'), 'null'),
    created_at: 'r.at',
  });
  await fill(db, size, 'webhook_attempts', {
    delivery_id: 'r.key',
    id: 'r.key',
    started_at: 'r.at',
    duration_ms: '(n % 300)',
    status_code: every(500, '500', '200'),
    failure_reason: every(500, text('http_status'), 'null'),
    worker: text('worker-1'),
  });
}

/** Needs one entry as a template. The chain is not continued: these tables are only read. */
export async function fillAudit(db: Database, size: Fill): Promise<void> {
  await sealEntries(db, { wait: true });
  await fill(db, size, 'audit_entries', {
    id: 'r.key',
    seq: '1000 + n',
    at: 'r.at',
    actor_id: 't.actor_id',
    actor_name: 't.actor_name',
    action: every(100, text('bulk.rare'), text('bulk.changed')),
    target_type: text('bulk'),
    target_id: 'cast(n as text)',
    request_id: numbered('request-'),
    content_hash: 't.content_hash',
  });
}

/** Needs one job as a template. Nearly all have ended. */
export async function fillJobs(db: Database, size: Fill): Promise<void> {
  await fill(db, size, 'jobs', {
    id: 'r.key',
    name: 't.name',
    version: 't.version',
    queue: every(2, text('mail'), 't.queue'),
    status: every(500, text('failed'), every(5_003, text('queued'), text('succeeded'))),
    is_ready: 't.is_ready',
    error_code: every(500, every(1_000, text('timed_out'), text('job_failed')), 'null'),
    input: 't.input',
    progress: every(3, 'null', '100'),
    attempts: '(n % 3)',
    attempts_max: 't.attempts_max',
    request_id: numbered('request-'),
    unique_key: every(100, numbered('task:'), 'null'),
    run_at: 'r.at',
    created_at: 'r.at',
    started_at: 'r.at',
    finished_at: 'r.at',
  });
}

/** Needs one finished request as a template. */
export async function fillRequests(db: Database, size: Fill): Promise<void> {
  await fill(db, size, 'request_log', {
    id: 'r.key',
    finished_at: 'r.at',
    duration_ms: '(n % 300)',
    method: text('GET'),
    route: every(50, text('/v1/orders/:id'), text('/v1/orders')),
    path: text('/v1/orders'),
    status: every(500, '500', '200'),
    failed: `(n % 500 = 0)`,
    aborted: 't.aborted',
    owner_id: every(1_000, 't.owner_id', numbered('bulk-')),
    tenant_key: text(''),
    request_id: numbered('request-'),
    deprecated: 't.deprecated',
    via: 't.via',
  });
}

/** Needs one upload as a template. */
export async function fillUploads(db: Database, size: Fill): Promise<void> {
  await fill(db, size, 'uploads', {
    id: 'r.key',
    owner_id: 't.owner_id',
    tenant_key: 't.tenant_key',
    state: every(500, text('rejected'), text('complete')),
    filename: numbered('bulk file '),
    content_type: every(2, text('image/png'), 't.content_type'),
    size: 'n',
    pending_key: numbered('bulk-'),
    created_at: 'r.at',
    expires_at: 'r.at',
    complete_by: 'r.at',
    scan_attempts: '0',
  });
}

/** Needs one grant as a template. */
export async function fillGrants(db: Database, size: Fill): Promise<void> {
  await fill(db, size, 'grants', {
    id: 'r.key',
    subject: every(1_000, 't.subject', numbered('user:bulk-')),
    object_type: 't.object_type',
    object_id: 'cast(n as text)',
    tenant_key: 't.tenant_key',
    actions: 't.actions',
    granted_by: every(3, text('bulk'), 'null'),
    created_at: 'r.at',
    expires_at: every(4, 'r.at', 'null'),
  });
}

/** As it is after a while in production. */
export async function settle(db: Database): Promise<void> {
  await db.execute('analyze');
}
