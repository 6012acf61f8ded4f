import type { Db } from '../../../db/engine/db.ts';
import { sendStatement } from '../../../db/engine/handle.ts';
import type { Subject } from '../../../db/subjects/subject.ts';
import { json } from '../../../db/values/json-parameter.ts';
import { contentHash, ERASABLE, type EntryContent } from './chain.ts';

/** An entry as it is recorded. */
export interface InboxEntry extends EntryContent {
  readonly content_hash: string;
}

/** An entry in its place in the chain. */
export interface StoredEntry extends InboxEntry {
  readonly seq: bigint;
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
  'tenant_id',
  'salt',
  'values_hash',
  'content_hash',
];
const listed = (names: readonly string[], prefix = '') => names.map((name) => `${prefix}"${name}"`).join(', ');
const COLUMNS = listed([...CONTENT, 'seq', 'previous_hash', 'hash']);

/** Rows per statement: SQLite takes 32,766 parameters at most, and every number of rows is a statement text of its own. */
const ROWS_MAX = 500;

/**
 * Writes entries to the inbox, with one statement per 500. Their answer is not waited for: the entry goes out with the next statement or with the
 * commit, and when it cannot be written they fail.
 */
export async function addToInbox(tx: Db, contents: readonly EntryContent[]): Promise<void> {
  for (let start = 0; start < contents.length; start += ROWS_MAX) {
    const some = contents.slice(start, start + ROWS_MAX);
    await sendStatement(tx, insertText(some.length), some.flatMap(inboxValues));
  }
}

function inboxValues(content: EntryContent): unknown[] {
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
    before === null ? null : json(before),
    after === null ? null : json(after),
    metadata === null ? null : json(metadata),
    content.request_id,
    content.tenant_id,
    content.salt,
    content.values_hash,
    contentHash(content),
  ];
}

function insertText(rows: number): string {
  const width = CONTENT.length;
  const row = (index: number) => `(${Array.from({ length: width }, (_, column) => `$${index * width + column + 1}`).join(', ')})`;
  return `insert into audit_inbox (${listed(CONTENT)}) values ${Array.from({ length: rows }, (_, index) => row(index)).join(', ')}`;
}

const CHAIN = 'select length, hash, pruned_through, pruned_hash from audit_chain where id = 1';

export async function readChain(db: Db): Promise<ChainState> {
  return requireChain((await db.query<ChainState>(CHAIN))[0]);
}

/** The chain, locked until the transaction ends. On SQLite a transaction that writes has it anyway. */
export async function lockChain(tx: Db): Promise<ChainState> {
  if (tx.dialect === 'sqlite') return readChain(tx);
  return requireChain((await tx.query<ChainState>(`${CHAIN} for update`))[0]);
}

/** The same without waiting: null while another transaction has it. */
export async function tryLockChain(tx: Db): Promise<ChainState | null> {
  if (tx.dialect === 'sqlite') return readChain(tx);
  return (await tx.query<ChainState>(`${CHAIN} for update skip locked`))[0] ?? null;
}

function requireChain(chain: ChainState | undefined): ChainState {
  if (chain === undefined) throw new Error('The audit chain has no start: run `npx kit migrate`.');
  return chain;
}

const INBOX_HEAD = 'select id, content_hash from audit_inbox order by id limit $1';
// As one row: the driver takes as long for a row as JSON.parse for twenty.
const INBOX_HEAD_POSTGRES = `select json_agg(id) as ids, json_agg(content_hash) as hashes from (${INBOX_HEAD}) head`;
// SQLite has one writer: rows lie in the order of their commits.
const INBOX_HEAD_SQLITE = 'select rowid as place, id, content_hash from audit_inbox order by rowid limit $1';

/** An entry of the inbox that is next to be sealed. */
export interface InboxHead extends Pick<InboxEntry, 'id' | 'content_hash'> {
  /** Where SQLite has it; null on PostgreSQL. */
  readonly place: number | null;
}

/** The oldest entries of the inbox: on PostgreSQL by the order of their ids. */
export async function inboxEntries(tx: Db, limit: number): Promise<InboxHead[]> {
  if (tx.dialect === 'sqlite') {
    const rows = await tx.query<{ place: number | bigint } & Omit<InboxHead, 'place'>>(INBOX_HEAD_SQLITE, [limit]);
    return rows.map(({ place, id, content_hash }) => ({ place: Number(place), id, content_hash }));
  }
  const [head] = await tx.query<{ ids: string[] | null; hashes: string[] | null }>(INBOX_HEAD_POSTGRES, [limit]);
  return (head?.ids ?? []).map((id, index) => ({ place: null, id, content_hash: head?.hashes?.[index] ?? '' }));
}

/** What waits for the sealer. */
export interface Unsealed {
  readonly count: number;
  readonly oldest: Date | null;
}

export async function unsealed(db: Db): Promise<Unsealed> {
  const [row] = await db.query<{ count: number | bigint }>('select count(*) as count from audit_inbox');
  const [first] = await db.query<{ at: Date }>('select at from audit_inbox order by id limit 1');
  return { count: Number(row?.count ?? 0), oldest: first?.at ?? null };
}

/** Entries of the inbox after an id, and whether the chain has an entry with the same id. */
export function readInbox(db: Db, after: string, limit: number): Promise<(InboxEntry & { readonly sealed: 0 | 1 })[]> {
  return db.query(
    `select ${listed(CONTENT, 'i.')}, case when e.id is null then 0 else 1 end as sealed from audit_inbox i left join audit_entries e on e.id = i.id
     where i.id > $1 order by i.id limit $2`,
    [after, limit],
  );
}

/** An entry of the inbox and the hash of its place in the chain. */
export interface Placement extends Pick<InboxHead, 'id' | 'place'> {
  readonly hash: string;
}

// In the order of the chain: an index that grows at its end is the cheapest to insert into.
const MOVE_POSTGRES = `with placed as (
  select id, hash, cast($3 as bigint) + n as seq, coalesce(lag(hash) over (order by n), cast($4 as text)) as previous_hash
  from unnest(cast($1 as uuid[]), cast($2 as text[])) with ordinality as listed (id, hash, n)
), moved as (
  delete from audit_inbox i using placed p where i.id = p.id returning i.*, p.seq, p.previous_hash, p.hash
)
insert into audit_entries (${COLUMNS}) select ${COLUMNS} from moved order by seq`;

// Rows that lie side by side, with the hashes of their links one after another in $1, the previous one first: half the time of a list in JSON. As
// bytes, because SQLite counts the characters of a text from its start.
const HASH_LENGTH = 64;
const hashAt = (offset: number): string => `cast(substr($1, ${HASH_LENGTH} * (i.rowid - $2 + ${offset}) + 1, ${HASH_LENGTH}) as text)`;
const COPY_SQLITE = `insert into audit_entries (${COLUMNS})
select ${listed(CONTENT, 'i.')}, cast($4 as integer) + i.rowid - $2 + 1, ${hashAt(0)}, ${hashAt(1)}
from audit_inbox i where i.rowid between $2 and $3 order by i.rowid`;
const REST_SQLITE = 'select 1 as one from audit_inbox where rowid > $1 limit 1';
const DELETE_SQLITE = 'delete from audit_inbox where rowid <= $1';
// Without a condition SQLite gives the pages back at once: 0.3 instead of 5 µs a row.
const EMPTY_SQLITE = 'delete from audit_inbox';

/** Moves entries from the inbox to the end of a chain that the caller has locked. */
export async function moveToChain(tx: Db, chain: ChainState, placements: readonly Placement[]): Promise<void> {
  const count = tx.dialect === 'postgres' ? await moveOnPostgres(tx, chain, placements) : await moveOnSqlite(tx, chain, placements);
  if (count !== placements.length) throw new Error('Entries left the audit inbox while they were sealed.');
  const end = placements.at(-1)?.hash ?? chain.hash;
  await tx.query('update audit_chain set length = $1, hash = $2 where id = 1', [chain.length + BigInt(count), end]);
}

async function moveOnPostgres(tx: Db, { length, hash: end }: ChainState, placements: readonly Placement[]): Promise<number> {
  // Arrays as text: ids and hashes hold neither quotes nor commas.
  const array = (values: readonly string[]) => `{${values.join(',')}}`;
  const [ids, hashes] = [array(placements.map(({ id }) => id)), array(placements.map(({ hash }) => hash))];
  return (await tx.execute(MOVE_POSTGRES, [ids, hashes, length, end])).count;
}

async function moveOnSqlite(tx: Db, { length, hash: end }: ChainState, placements: readonly Placement[]): Promise<number> {
  let count = 0;
  let previous = end;
  for (const run of sideBySide(placements)) {
    const hashes = Buffer.from(previous + run.map(({ hash }) => hash).join(''), 'latin1');
    const parameters = [hashes, run[0]?.place, run.at(-1)?.place, length + BigInt(count)];
    count += (await tx.execute(COPY_SQLITE, parameters)).count;
    previous = run.at(-1)?.hash ?? previous;
  }
  const last = placements.at(-1)?.place;
  const [rest] = await tx.query(REST_SQLITE, [last]);
  if (rest === undefined) await tx.execute(EMPTY_SQLITE);
  else await tx.execute(DELETE_SQLITE, [last]);
  return count;
}

/** Split where a row is missing between two: someone removed it, or a release before this one sealed it. */
function sideBySide(placements: readonly Placement[]): Placement[][] {
  const runs: Placement[][] = [];
  let next: number | undefined;
  for (const placement of placements) {
    const place = placement.place ?? 0;
    if (place === next) runs.at(-1)?.push(placement);
    else runs.push([placement]);
    next = place + 1;
  }
  return runs;
}

/** Entries after `seq`, in the order of the chain. */
export function readEntries(db: Db, after: bigint, through: bigint, limit: number): Promise<StoredEntry[]> {
  return db.query<StoredEntry>(`select ${COLUMNS} from audit_entries where seq > $1 and seq <= $2 order by seq limit $3`, [
    after,
    through,
    limit,
  ]);
}

/** Entries in no place of the chain, or in one before its start or after its end. */
export async function countOutside(db: Db, { pruned_through, length }: ChainState): Promise<number> {
  const [row] = await db.query<{ count: number | bigint }>(
    'select count(*) as count from audit_entries where seq is null or seq <= $1 or seq > $2',
    [pruned_through, length],
  );
  return Number(row?.count ?? 0);
}

export async function findEntry(db: Db, seq: bigint): Promise<StoredEntry | null> {
  const [entry] = await db.query<StoredEntry>(`select ${COLUMNS} from audit_entries where seq = $1`, [seq]);
  return entry ?? null;
}

/** In no order. */
export function findEntries(db: Db, ids: readonly string[]): Promise<StoredEntry[]> {
  const places = ids.map((_, index) => `$${index + 1}`).join(', ');
  return ids.length === 0
    ? Promise.resolve([])
    : db.query<StoredEntry>(`select ${COLUMNS} from audit_entries where id in (${places})`, ids, { replanned: true });
}

/** Of the entries in the chain: one that was inserted beyond its ends does not count. */
export async function latestOfAction(db: Db, action: string, { pruned_through, length }: ChainState): Promise<StoredEntry | null> {
  const [entry] = await db.query<StoredEntry>(
    `select ${COLUMNS} from audit_entries where action = $1 and seq > $2 and seq <= $3 order by seq desc limit 1`,
    [action, pruned_through, length],
  );
  return entry ?? null;
}

/** What was done to one object, newest first. */
export function newestEntriesOf(
  db: Db,
  { target_type, target_id }: Pick<StoredEntry, 'target_type' | 'target_id'>,
  limit: number,
): Promise<StoredEntry[]> {
  return db.query<StoredEntry>(
    `select ${COLUMNS} from audit_entries where target_type = $1 and target_id = $2 order by seq desc limit $3`,
    [target_type, target_id, limit],
  );
}

/** Entries of these requests, at most `limit` of them. In the order of the index of request ids, so that it is read and never the chain from its end. */
export async function entriesOfRequests(db: Db, requests: readonly string[], limit: number): Promise<StoredEntry[]> {
  if (requests.length === 0) return [];
  const ids = requests.map((_, index) => `$${index + 2}`).join(', ');
  return db.query<StoredEntry>(`select ${COLUMNS} from audit_entries where request_id in (${ids}) order by request_id limit $1`, [
    limit,
    ...requests,
  ]);
}

/** The last place in the chain up to which everything is older than `at`. Entries are sealed after the commit, so times may be a little out of order. */
export async function lastOlderThan(db: Db, at: Date): Promise<bigint> {
  const [row] = await db.query<{ seq: bigint | null }>('select seq from audit_entries where at >= $1 order by seq limit 1', [at]);
  return row?.seq === undefined || row.seq === null ? (await readChain(db)).length : row.seq - 1n;
}

/** The first place of an entry about these people and tenants, or of what they did. */
export async function firstEntryOf(db: Db, subjects: readonly Subject[], through: bigint): Promise<bigint | null> {
  const parameters: unknown[] = [through];
  const terms = subjects.map(({ kind, id }) => {
    const given = `$${parameters.push(id)}`;
    const [column, type] = kind === 'tenant' ? ['tenant_id', 'tenant'] : ['actor_id', 'user'];
    return `${column} = ${given} or (target_type in ('${kind}', '${type}') and target_id = ${given})`;
  });
  const [found] = await db.query<{ seq: bigint }>(
    `select seq from audit_entries where seq <= $1 and (${terms.join(' or ')}) order by seq limit 1`,
    parameters,
  );
  return found?.seq ?? null;
}

export async function removeThrough(tx: Db, seq: bigint, hash: string): Promise<number> {
  const { count } = await tx.execute('delete from audit_entries where seq <= $1', [seq]);
  await tx.query('update audit_chain set pruned_through = $1, pruned_hash = $2 where id = 1', [seq, hash]);
  return count;
}

const PAGE = 200;

/** A condition and its parameters. */
export interface EntryCondition {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** Entries of the chain with an action, in its order. */
export async function* entriesOfAction(db: Db, action: string, { pruned_through, length }: ChainState): AsyncGenerator<StoredEntry, void> {
  for (let after = pruned_through; ;) {
    const page = await db.query<StoredEntry>(
      `select ${COLUMNS} from audit_entries where action = $1 and seq > $2 and seq <= $3 order by seq limit ${PAGE}`,
      [action, after, length],
    );
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return;
    after = last.seq;
  }
}

/** Places of entries, ascending. */
export async function placesToErase(tx: Db, { text, values }: EntryCondition, limit: number): Promise<bigint[]> {
  const rows = await tx.query<{ seq: bigint | number }>(`select seq from audit_entries where ${text} order by seq limit ${limit}`, values, {
    replanned: true,
  });
  return rows.map(({ seq }) => BigInt(seq));
}

export async function blankEntries(tx: Db, places: readonly bigint[]): Promise<void> {
  const blank = [...ERASABLE, 'salt'].map((name) => `"${name}" = null`).join(', ');
  const listed = places.map((_, index) => `$${index + 1}`).join(', ');
  await tx.execute(`update audit_entries set ${blank} where seq in (${listed})`, places);
}

export async function countEntries(db: Db, { text, values }: EntryCondition): Promise<number> {
  const [row] = await db.query<{ count: number | bigint }>(`select count(*) as count from audit_entries where ${text}`, values, {
    replanned: true,
  });
  return Number(row?.count ?? 0);
}
