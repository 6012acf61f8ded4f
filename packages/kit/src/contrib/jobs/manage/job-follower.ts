import type { Database } from '../../../db/engine/db.ts';
import { JOB_COLUMNS, type Job } from '../rows/store.ts';

/** How often the followed jobs are read, all of them together. */
const LOOK_EVERY_MS = 250;

type Watched = Pick<Job, 'id' | 'status' | 'attempts' | 'progress' | 'progress_message' | 'finished_at'>;

/** Distinguishes one state of a job from another. */
export function stateOf({ status, attempts, progress, progress_message: message, finished_at: at }: Omit<Watched, 'id'>): string {
  return `${status}.${attempts}.${progress ?? ''}.${at?.getTime() ?? ''}.${encodeURIComponent(message ?? '').slice(0, 100)}`;
}

interface Follower {
  readonly jobId: string;
  /** The state that it has seen. */
  readonly seen: string;
  readonly settle: (next: Job | null | Promise<never>) => void;
}

/** Reads the jobs that clients follow: one statement for all of them, however many streams there are. */
export class JobFollower {
  readonly #database: Database;
  readonly #followers = new Set<Follower>();
  #timer: NodeJS.Timeout | undefined;
  #isLooking = false;

  constructor(database: Database) {
    this.#database = database;
  }

  /** The job when its state is no longer the one that was seen; null when the job is gone, or the signal is aborted. */
  async next(jobId: string, seen: string, signal: AbortSignal): Promise<Job | null> {
    if (signal.aborted) return null;
    const { promise, resolve } = Promise.withResolvers<Job | null>();
    const follower: Follower = { jobId, seen, settle: resolve };
    const stop = (): void => resolve(null);
    signal.addEventListener('abort', stop, { once: true });
    this.#followers.add(follower);
    this.#timer ??= setInterval(() => void this.#look(), LOOK_EVERY_MS);
    try {
      return await promise;
    } finally {
      signal.removeEventListener('abort', stop);
      this.#followers.delete(follower);
      if (this.#followers.size === 0) {
        clearInterval(this.#timer);
        this.#timer = undefined;
      }
    }
  }

  /** One look at a time: a slow database must not collect them. */
  async #look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      await this.#tellChanged();
    } catch (error) {
      // Every stream ends with the error; clients reconnect.
      for (const { settle } of this.#followers) settle(Promise.reject(error));
    } finally {
      this.#isLooking = false;
    }
  }

  async #tellChanged(): Promise<void> {
    const followers = [...this.#followers];
    const watched = await this.#read<Watched>('id, status, attempts, progress, progress_message, finished_at', idsOf(followers));
    const changed = followers.filter(({ jobId, seen }) => {
      const job = watched.get(jobId);
      return job === undefined || stateOf(job) !== seen;
    });
    if (changed.length === 0) return;
    const jobs = await this.#read<Job>(JOB_COLUMNS, idsOf(changed));
    for (const { jobId, settle } of changed) settle(jobs.get(jobId) ?? null);
  }

  async #read<Row extends { readonly id: string }>(columns: string, ids: readonly string[]): Promise<ReadonlyMap<string, Row>> {
    const [condition, list] =
      this.#database.dialect === 'postgres'
        ? ['= any(cast($1 as uuid[]))', ids]
        : ['in (select value from json_each($1))', JSON.stringify(ids)];
    const rows = await this.#database.query<Row>(`select ${columns} from jobs where id ${condition}`, [list]);
    return new Map(rows.map((row) => [row.id, row]));
  }
}

function idsOf(followers: readonly Follower[]): string[] {
  return [...new Set(followers.map(({ jobId }) => jobId))];
}

const followers = new WeakMap<Database, JobFollower>();

export function followerOf(database: Database): JobFollower {
  const known = followers.get(database) ?? new JobFollower(database);
  followers.set(database, known);
  return known;
}
