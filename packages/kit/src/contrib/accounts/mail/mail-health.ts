import type { Database } from '../../../db/engine/db.ts';
import { sendLink } from './send-link.ts';

/** Bounded: a backlog of other jobs is not searched to its end. The partial indexes of jobs have both kinds. */
const LOOKED_AT_MAX = 10_000;
const FAILED = `select count(*) as count from (select name from jobs where status = 'failed' limit ${LOOKED_AT_MAX}) f where name = $1`;
const RETRIED = `select count(*) as count from (
  select name, attempts from jobs where status = 'queued' and not is_ready and serial_key is null limit ${LOOKED_AT_MAX}
) q where name = $1 and attempts > 0`;

/** A warning: people wait for their links, and everything else works. */
export async function mailHealth(db: Database | undefined): Promise<unknown> {
  if (db === undefined) return undefined;
  const [failed, retried] = [await count(db, FAILED), await count(db, RETRIED)];
  if (failed === 0 && retried === 0) return undefined;
  const parts = [
    ...(retried === 0 ? [] : [`${retried} could not be sent yet and will be tried again`]),
    ...(failed === 0
      ? []
      : [`${failed} failed permanently: correct the cause, then run \`kit jobs retry --failed --name ${sendLink.name}\``]),
  ];
  return { warning: `Mails of accounts: ${parts.join('; ')}.` };
}

async function count(db: Database, sql: string): Promise<number> {
  const [row] = await db.query<{ count: number | bigint }>(sql, [sendLink.name]);
  return Number(row?.count ?? 0);
}
