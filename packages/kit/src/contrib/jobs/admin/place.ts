import type { AdminContext } from '../../../app/admin/declaration.ts';
import type { AdminState } from '../../../app/admin/shapes.ts';
import type { Db } from '../../../db/engine/db.ts';
import { databaseNamed } from '../../../db/open/named-database.ts';
import type { JobCatalog } from '../declare/job-catalog.ts';
import type { Job } from '../rows/store.ts';

/** Which database a list is about, and how its resource is told from that of another. */
export interface AdminPlace {
  readonly database: string;
  readonly suffix: string;
  readonly label: string;
  readonly catalog: () => JobCatalog;
}

export function databaseOf({ database }: AdminPlace, { databases }: Pick<AdminContext, 'databases'>): Db {
  return databaseNamed(databases, database, 'jobs({ databases })');
}

const TONES = { queued: 'neutral', running: 'info', succeeded: 'good', failed: 'bad', cancelled: 'warning' } as const;

export function jobState({ status, error_message: message }: Pick<Job, 'status' | 'error_message'>): AdminState {
  return { value: status, tone: TONES[status], ...(message === null ? {} : { hint: message }) };
}
