import type { Db } from '../../../db/engine/db.ts';
import { countUpTo } from '../../../db/rows/count-rows.ts';
import type { Cursors } from '../../../db/sql/keyset/cursor.ts';
import { cutPage, neighborsOf } from '../../../db/sql/keyset/keyset.ts';
import { coreErrors } from '../../../errors/core-errors.ts';
import type { Page } from '../../../http/declare/page.ts';
import type { JobQueryFields } from '../schemas.ts';
import { JOB_COLUMNS, type Job, type JobScope } from './store.ts';

const LIMIT = 20;
const COUNT_MAX = 10_000;

/** One page of jobs, newest first; of one owner, or of everybody where `scope` is null. */
export async function listJobs(db: Db, cursors: Cursors, scope: JobScope | null, query: JobQueryFields): Promise<Page<Job>> {
  const { limit = LIMIT, cursor, status, name, queue } = query;
  const conditions: string[] = [];
  const parameters: unknown[] = [];
  const add = (sql: string, value: unknown): void => void conditions.push(`${sql} $${parameters.push(value)}`);
  // The second half is what the index `jobs_of_owner` asks for.
  if (scope !== null) conditions.push(`owner_id = $${parameters.push(scope.owner)} and owner_id <> ''`);
  if (scope !== null && scope.tenantKey !== null) add('tenant_key =', scope.tenantKey);
  if (status !== undefined) add('status =', status);
  if (name !== undefined) add('name =', name);
  if (queue !== undefined) add('queue =', queue);
  const binding = JSON.stringify(['jobs', scope, status, name, queue]);
  const from = cursor === undefined ? undefined : cursors.read(cursor, binding);
  if (cursor !== undefined && from === undefined)
    throw coreErrors.validation_error({
      errors: [
        {
          location: ['query', 'cursor'],
          code: 'invalid_cursor',
          message: 'The cursor does not belong to this list. Send the request again without it.',
        },
      ],
    });
  const where = (terms: readonly string[]): string => (terms.length === 0 ? '' : ` where ${terms.join(' and ')}`);
  const count = from === undefined ? await countUpTo(db, { from: `from jobs${where(conditions)}`, parameters }, COUNT_MAX) : from.count;
  const backwards = from?.backwards ?? false;
  if (from !== undefined) add(`id ${backwards ? '>' : '<'}${from.inclusive === true ? '=' : ''}`, from.position[0]);
  const found = await db.query<Job>(
    `select ${JOB_COLUMNS} from jobs${where(conditions)} order by id ${backwards ? 'asc' : 'desc'} limit ${limit + 1}`,
    parameters,
    { replanned: true },
  );
  const { rows: items, hasMore } = cutPage(found, limit, backwards);
  const positionOf = (job: Job | undefined) => (job === undefined ? undefined : [job.id]);
  const neighbors = neighborsOf({ from, first: positionOf(items[0]), last: positionOf(items.at(-1)), hasMore });
  return { items, count, ...cursors.writeAround(neighbors, count, binding) };
}
