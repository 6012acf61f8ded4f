import { moduleState } from '../../../app/assemble/module-state.ts';
import type { Registry } from '../../../app/declare/registry.ts';
import type { Clock } from '../../../db/clock.ts';
import type { Db } from '../../../db/engine/db.ts';
import type { DbLog } from '../../../db/log.ts';
import type { KeyPlace } from '../declare/object-key.ts';
import type { Scan } from '../declare/scanner.ts';
import type { UploadStore } from '../declare/upload-store.ts';

/** Everything the verbs need to know about the uploads of one database, besides the database. */
export interface UploadsInUse {
  readonly store: UploadStore;
  readonly scan: Scan | null;
  readonly place: KeyPlace;
  readonly clock: Clock;
  readonly log: DbLog;
  readonly registry: Registry;
  readonly urlKeys: readonly string[];
  readonly downloadSeconds: number;
  /** Longest time between creation and completion that a mounted controller grants: nothing younger is an orphan. */
  readonly longestLifeSeconds: () => number;
  /** Null without the jobs module: then this process does the work itself, at once or with the next clean-up. */
  readonly jobs: () => UploadJobs | null;
}

/** Stores work for later in the caller's transaction. */
export interface UploadJobs {
  scan(tx: Db, uploadId: string): Promise<unknown>;
  /** Not before a time; null: at once. */
  remove(tx: Db, removalIds: readonly string[], dueAt: Date | null): Promise<unknown>;
}

export const uploadsInUse = moduleState<UploadsInUse>({ name: 'Uploads', setUp: 'add uploads({ store }) to the modules of createApp' });

export function uploadsOf(db: Db): UploadsInUse {
  return uploadsInUse.of(db);
}
