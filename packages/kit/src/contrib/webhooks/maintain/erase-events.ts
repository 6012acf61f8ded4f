import { exceptHeld, heldSubjects } from '../../../app/data/legal-holds.ts';
import type { Db } from '../../../db/engine/db.ts';
import { webhookEvents } from '../models.ts';

/** Removes the events about records, with their deliveries and attempts: they contain what the records contained, also where they were for somebody else. */
export async function eraseEventsOf(tx: Db, { type, ids }: { readonly type: string; readonly ids: readonly string[] }): Promise<void> {
  const keys = ids.map((id) => `${type}:${id}`);
  const values: unknown[] = [tx.dialect === 'postgres' ? keys : JSON.stringify(keys)];
  const condition =
    tx.dialect === 'postgres' ? 'ordering_key = any(cast($1 as text[]))' : 'ordering_key in (select value from json_each($1))';
  const kept = exceptHeld(await heldSubjects(tx), webhookEvents, 'webhook_events', values);
  await tx.query(`delete from webhook_events where ${condition}${kept}`, values);
}
