import type { Db } from '../../db/db.ts';
import { json } from '../../db/json-parameter.ts';
import { contentHash, type EntryContent, linkHash } from './chain.ts';

/** An entry in its place in the chain. */
export interface StoredEntry extends EntryContent {
  readonly seq: bigint;
  readonly content_hash: string;
  readonly previous_hash: string;
  readonly hash: string;
}

/** Where the chain ends, and where it starts after pruning. */
export interface ChainState {
  readonly length: bigint;
  readonly hash: string;
  readonly pruned_through: bigint;
  readonly pruned_hash: string;
}

const CONTENT = [
  'id',
  'at',
  'actor_id',
  'actor_name',
  'actor_scheme',
  'credential_id',
  'action',
  'target_type',
  'target_id',
  'before',
  'after',
  'metadata',
  'request_id',
];
const COLUMNS = [...CONTENT, 'seq', 'content_hash', 'previous_hash', 'hash'].map((name) => `"${name}"`).join(', ');

/** Rows per statement: SQLite takes 32,766 parameters at most, and every count of rows is a statement text of its own. */
const ROWS_MAX = 500;

/**
 * Appends entries with one statement per 500. Links them at once on SQLite, whose transactions follow one another; on PostgreSQL the commit
 * does (see migrations).
 */
export async function appendEntries(tx: Db, contents: readonly EntryContent[]): Promise<void> {
  const chain = tx.dialect === 'sqlite' ? await readChain(tx) : null;
  let [seq, hash] = [chain?.length ?? null, chain?.hash ?? null];
  for (let start = 0; start < contents.length; start += ROWS_MAX) {
    const some = contents.slice(start, start + ROWS_MAX);
    const values: unknown[] = [];
    for (const content of some) {
      const digest = contentHash(content);
      const previous = hash;
      seq = seq === null ? null : seq + 1n;
      hash = previous === null ? null : linkHash(previous, digest);
      values.push(...contentValues(content), seq, digest, previous, hash);
    }
    await tx.query(insertText(some.length), values);
  }
  if (chain !== null) await tx.query('update audit_chain set length = $1, hash = $2 where id = 1', [seq, hash]);
}

function contentValues(content: EntryContent): unknown[] {
  const { before, after, metadata } = content;
  return [
    content.id,
    content.at,
    content.actor_id,
    content.actor_name,
    content.actor_scheme,
    content.credential_id,
    content.action,
    content.target_type,
    content.target_id,
    ...[before, after, metadata].map((value) => (value === null ? null : json(value))),
    content.request_id,
  ];
}

const insertTexts = new Map<number, string>();

function insertText(rows: number): string {
  let text = insertTexts.get(rows);
  if (text === undefined) {
    const width = CONTENT.length + 4;
    const row = (index: number) => `(${Array.from({ length: width }, (_, column) => `$${index * width + column + 1}`).join(', ')})`;
    text = `insert into audit_entries (${COLUMNS}) values ${Array.from({ length: rows }, (_, index) => row(index)).join(', ')}`;
    insertTexts.set(rows, text);
  }
  return text;
}

export async function readChain(db: Db, options: { readonly hold?: boolean } = {}): Promise<ChainState> {
  const lock = options.hold === true && db.dialect === 'postgres' ? ' for update' : '';
  const [chain] = await db.query<ChainState>(`select length, hash, pruned_through, pruned_hash from audit_chain where id = 1${lock}`);
  if (chain === undefined) throw new Error('The audit chain has no start: run `kit migrate`.');
  return chain;
}

/** Entries after `seq`, in the order of the chain. */
export function readEntries(db: Db, after: bigint, through: bigint, limit: number): Promise<StoredEntry[]> {
  return db.query<StoredEntry>(`select ${COLUMNS} from audit_entries where seq > $1 and seq <= $2 order by seq limit $3`, [
    after,
    through,
    limit,
  ]);
}

/**
 * Entries in no place of the chain, or in one before its start or after its end. Inside a transaction that has just written some, those
 * are among them (PostgreSQL).
 */
export async function countOutside(db: Db, { pruned_through, length }: ChainState): Promise<number> {
  const [row] = await db.query<{ count: number | bigint }>(
    'select count(*) as count from audit_entries where seq is null or seq <= $1 or seq > $2',
    [pruned_through, length],
  );
  return Number(row?.count ?? 0);
}

export async function findEntry(db: Db, by: 'id' | 'seq', value: string | bigint): Promise<StoredEntry | null> {
  const [entry] = await db.query<StoredEntry>(`select ${COLUMNS} from audit_entries where ${by} = $1 and seq is not null`, [value]);
  return entry ?? null;
}

/** Of the entries that are in the chain: one that was put in beyond its ends has nothing to say. */
export async function latestOfAction(db: Db, action: string, { pruned_through, length }: ChainState): Promise<StoredEntry | null> {
  const [entry] = await db.query<StoredEntry>(
    `select ${COLUMNS} from audit_entries where action = $1 and seq > $2 and seq <= $3 order by seq desc limit 1`,
    [action, pruned_through, length],
  );
  return entry ?? null;
}

/** What was done to one thing, newest first. */
export function newestEntriesOf(
  db: Db,
  { target_type, target_id }: Pick<StoredEntry, 'target_type' | 'target_id'>,
  limit: number,
): Promise<StoredEntry[]> {
  return db.query<StoredEntry>(
    `select ${COLUMNS} from audit_entries where target_type = $1 and target_id = $2 and seq is not null order by seq desc limit $3`,
    [target_type, target_id, limit],
  );
}

/** The last place in the chain before which everything is older than `at`. Places follow commits, so times may be a little out of order. */
export async function lastOlderThan(db: Db, at: Date): Promise<bigint> {
  const [row] = await db.query<{ seq: bigint | null }>(
    'select seq from audit_entries where at >= $1 and seq is not null order by seq limit 1',
    [at],
  );
  return row?.seq === undefined || row.seq === null ? (await readChain(db)).length : row.seq - 1n;
}

export async function removeThrough(tx: Db, seq: bigint, hash: string): Promise<number> {
  const { count } = await tx.execute('delete from audit_entries where seq <= $1', [seq]);
  await tx.query('update audit_chain set pruned_through = $1, pruned_hash = $2 where id = 1', [seq, hash]);
  return count;
}

export interface EntryFilter {
  readonly actor_id?: string | undefined;
  readonly credential_id?: string | undefined;
  readonly action?: string | undefined;
  readonly target_type?: string | undefined;
  readonly target_id?: string | undefined;
  readonly request_id?: string | undefined;
  readonly since?: Date | undefined;
  readonly until?: Date | undefined;
}

const EQUAL = ['actor_id', 'credential_id', 'action', 'target_type', 'target_id', 'request_id'] as const;

/** Newest first. */
export async function listEntries(
  db: Db,
  filter: EntryFilter,
  page: { readonly limit: number; readonly offset: number },
): Promise<{ readonly entries: readonly StoredEntry[]; readonly count: number }> {
  const parameters: unknown[] = [];
  const parameter = (value: unknown) => `$${parameters.push(value)}`;
  const conditions = ['seq is not null'];
  const { since, until } = filter;
  // By this list, not by the filter's members: their order, and so the number of different statements, is the caller's.
  for (const name of EQUAL) if (filter[name] !== undefined) conditions.push(`${name} = ${parameter(filter[name])}`);
  if (since !== undefined) conditions.push(`at >= ${parameter(since)}`);
  if (until !== undefined) conditions.push(`at < ${parameter(until)}`);
  const where = `where ${conditions.join(' and ')}`;
  const [row] = await db.query<{ count: number | bigint }>(`select count(*) as count from audit_entries ${where}`, parameters);
  const paging = `limit ${parameter(page.limit)} offset ${parameter(page.offset)}`;
  const entries = await db.query<StoredEntry>(`select ${COLUMNS} from audit_entries ${where} order by seq desc ${paging}`, parameters);
  return { entries, count: Number(row?.count ?? 0) };
}
