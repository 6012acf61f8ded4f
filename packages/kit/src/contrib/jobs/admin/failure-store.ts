// SQL of groups of failed jobs. Every statement reads `jobs_failed_by_error` only.
import type { Db } from '../../../db/engine/db.ts';
import { countUpTo } from '../../../db/rows/count-rows.ts';
import { JOB_COLUMNS, type Job } from '../rows/store.ts';

/** A larger group is shown as "at least". */
export const COUNTED_MAX = 10_000;
/** Jobs times errors: more groups than this are not read by people. */
export const GROUPS_MAX = 200;

export interface FailureGroup {
  readonly name: string;
  readonly code: string;
}

const NEXT = (column: string): string =>
  `(select ${column} from jobs where status = 'failed' and (name, error_code) > (g.name, g.error_code) order by name, error_code limit 1)`;

/** Skips from one group to the next: a million failed jobs of one group cost one step. */
export async function failureGroups(db: Db): Promise<FailureGroup[]> {
  return db.query<FailureGroup & object>(
    `with recursive g(name, error_code) as (
       select * from (select name, error_code from jobs where status = 'failed' order by name, error_code limit 1) first_group
       union all
       select ${NEXT('name')}, ${NEXT('error_code')} from g where g.name is not null
     )
     select name, error_code as code from g where name is not null limit ${GROUPS_MAX}`,
  );
}

const OF_GROUP = `from jobs where status = 'failed' and name = $1 and error_code = $2`;

/** Jobs of a group, by when they were started. */
export function failedOf(db: Db, { name, code }: FailureGroup, order: 'newest' | 'oldest', limit: number): Promise<Job[]> {
  const direction = order === 'newest' ? 'desc' : 'asc';
  return db.query<Job>(`select ${JOB_COLUMNS} ${OF_GROUP} order by id ${direction} limit ${limit}`, [name, code], { replanned: true });
}

/** Null: more than {@link COUNTED_MAX}. */
export function countGroup(db: Db, { name, code }: FailureGroup): Promise<number | null> {
  return countUpTo(db, { from: OF_GROUP, parameters: [name, code] }, COUNTED_MAX);
}
