import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Database } from '../../../db/engine/db.ts';
import { firstIdFrom } from '../publishing/event-id.ts';
import {
  countSecrets,
  FIRST_ID,
  findReplayable,
  readSecrets,
  replaceStored,
  requeueFinished,
  type ReplayFilter,
} from '../delivery/maintenance-store.ts';
import { WAKE_CHANNEL } from '../publishing/publish-store.ts';
import { formatOlderSecrets, parseOlderSecrets } from '../endpoints/older-secrets.ts';
import { SecretUnavailable, type SecretBox } from '../../../db/sealing/secret-box.ts';
import { BATCH } from '../delivery/prune.ts';
import { webhooksOf } from '../webhooks.ts';

/** Sends finished deliveries again. Goes from id to id, so what a worker finishes meanwhile is not sent twice. */
export async function replay(db: Database, filter: ReplayFilter, { dryRun = false } = {}): Promise<number> {
  const { clock } = webhooksOf(db);
  let [count, after] = [0, firstIdFrom(filter.since)];
  for (;;) {
    const ids = await findReplayable(db, filter, after, BATCH);
    const last = ids.at(-1);
    if (last === undefined) return count;
    count += dryRun
      ? ids.length
      : await db.transaction(async (tx) => {
          const requeued = await requeueFinished(tx, ids, clock.now());
          await db.notify(tx, WAKE_CHANNEL);
          return requeued;
        }, CONFLICT_RETRIES);
    after = last;
  }
}

const SECRET_COLUMNS = ['secret', 'previous_secret', 'older_secrets', 'headers'] as const;

function resealEach(secrets: SecretBox, stored: string): string | null {
  const before = parseOlderSecrets(stored);
  const after = before.map(({ secret, until }) => ({ secret: secrets.reseal(secret) ?? secret, until }));
  return after.every(({ secret }, index) => secret === before[index]?.secret) ? null : formatOlderSecrets(after);
}

export interface Resealed {
  readonly encrypted: number;
  readonly unchanged: number;
  /** Endpoints whose secret no configured key decrypts. */
  readonly unavailable: readonly string[];
}

/** Seals every stored secret with the first key. Repeatable and resumable: what it seals already is passed over. */
export async function encryptSecrets(
  db: Database,
  onProgress: (total: number) => { advance(count?: number): void; end(): void },
): Promise<Resealed> {
  const { secrets } = webhooksOf(db);
  const progress = onProgress(await countSecrets(db));
  const unavailable = new Set<string>();
  let [encrypted, unchanged, after] = [0, 0, FIRST_ID];
  for (let batch = await readSecrets(db, after, BATCH); batch.length > 0; batch = await readSecrets(db, after, BATCH)) {
    for (const { id, ...stored } of batch) {
      for (const column of SECRET_COLUMNS) {
        const from = stored[column];
        if (from === null) continue;
        try {
          const to = column === 'older_secrets' ? resealEach(secrets, from) : secrets.reseal(from);
          if (to === null) unchanged++;
          else if (await replaceStored(db, id, column, from, to)) encrypted++;
        } catch (error) {
          if (!(error instanceof SecretUnavailable)) throw error;
          unavailable.add(id);
        }
      }
      after = id;
    }
    progress.advance(batch.length);
  }
  progress.end();
  return { encrypted, unchanged, unavailable: [...unavailable] };
}
