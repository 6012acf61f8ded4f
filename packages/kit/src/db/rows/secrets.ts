import { randomBytes } from 'node:crypto';
import type { Database } from '../engine/db.ts';
import { requireArguments } from '../../options/read-options.ts';
import { queryable } from '../../options/value-rule.ts';

const SECRET_BYTES = 32;
const INSTALLATION = 'installation_id';

/** Read once per process and database: a secret never changes. */
const known = new WeakMap<Database, Map<string, Promise<Uint8Array>>>();

/**
 * A secret of this installation, by name: made when it is first asked for and the same ever after, in every process. Ask outside of
 * transactions, at start-up best: on SQLite a new one cannot be stored while a transaction of this process is open.
 */
export function getOrCreateSecret(database: Database, name: string): Promise<Uint8Array> {
  requireArguments('getOrCreateSecret()', { database }, { database: queryable });
  const secrets = known.get(database) ?? new Map<string, Promise<Uint8Array>>();
  known.set(database, secrets);
  let secret = secrets.get(name);
  if (secret === undefined) {
    secret = readOrCreate(database, name, SECRET_BYTES);
    secrets.set(name, secret);
    // A database that was away may be back the next time.
    secret.catch(() => secrets.delete(name));
  }
  return secret;
}

/** Tells this installation from others; not a secret. */
export async function installationId(database: Database): Promise<string> {
  const hex = Buffer.from(await getOrCreateSecret(database, INSTALLATION)).toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

async function readOrCreate(database: Database, name: string, length: number): Promise<Uint8Array> {
  const found = await read(database, name);
  if (found !== undefined) return found;
  // Of several at once the first stores its value; the others wait for it, store nothing and read it.
  await database.query(`insert into kit_secrets (name, value, created_at) values ($1, $2, $3) on conflict (name) do nothing`, [
    name,
    randomBytes(length),
    database.clock.now(),
  ]);
  const stored = await read(database, name);
  if (stored === undefined) throw new Error(`The secret "${name}" was removed from kit_secrets while it was made.`);
  return stored;
}

async function read(database: Database, name: string): Promise<Uint8Array | undefined> {
  const [row] = await database.query<{ value: Uint8Array }>('select value from kit_secrets where name = $1', [name]);
  return row?.value;
}
