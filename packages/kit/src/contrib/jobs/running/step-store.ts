// SQL of recorded steps.
import type { Db } from '../../../db/engine/db.ts';
import type { Held } from './result-store.ts';

export interface StoredStep {
  readonly name: string;
  readonly result: string | null;
}

export async function stepsOf(db: Db, jobId: string): Promise<StoredStep[]> {
  return db.query<StoredStep>('select name, result from job_steps where job_id = $1', [jobId]);
}

// The job's row is held until the transaction ends: a cancel or another worker comes before the step, or after it, never in between.
const FENCE = `select $1, $3, $4, $5, $6 from jobs where id = $1 and claim_token = $2 and status = 'running'`;
const INSERT = 'insert into job_steps (job_id, name, result, attempt, finished_at)';
const INSERT_POSTGRES = `with held as (
  select id from jobs where id = $1 and claim_token = $2 and status = 'running' for share
)
${INSERT} select id, cast($3 as text), cast($4 as text), cast($5 as integer), cast($6 as timestamptz) from held returning name`;

export interface NewStep extends StoredStep {
  readonly attempt: number;
  readonly finishedAt: Date;
}

/** Records a step with one fenced statement. False: the claim is no longer ours. */
export async function insertStep(db: Db, { id, token }: Held, { name, result, attempt, finishedAt }: NewStep): Promise<boolean> {
  const parameters = [id, token, name, result, attempt, finishedAt];
  const text = db.dialect === 'postgres' ? INSERT_POSTGRES : `${INSERT} ${FENCE} returning name`;
  return (await db.query(text, parameters)).length === 1;
}

export async function findStep(db: Db, jobId: string, name: string): Promise<StoredStep | undefined> {
  const [row] = await db.query<StoredStep>('select name, result from job_steps where job_id = $1 and name = $2', [jobId, name]);
  return row;
}
