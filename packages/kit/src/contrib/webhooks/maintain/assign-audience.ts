import type { Db } from '../../../db/engine/db.ts';
import type { Audience } from '../publishing/audience.ts';
import { setAudience } from '../delivery/maintenance-store.ts';
import { WAKE_CHANNEL } from '../publishing/publish-store.ts';
import { webhooksOf } from '../webhooks.ts';

/** Assigns an audience to an event without one; its deliveries become due. False: there is no such event, or it has an audience. */
export async function assignAudience(tx: Db, eventId: string, audience: Audience): Promise<boolean> {
  const { clock, database } = webhooksOf(tx);
  const assigned = await setAudience(tx, eventId, audience, clock.now());
  if (assigned) await database.notify(tx, WAKE_CHANNEL);
  return assigned;
}
