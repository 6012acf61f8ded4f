import type { Db } from '../../../db/engine/db.ts';
import { tenantsIn } from '../declare/tenants.ts';
import { tenantErrors } from '../errors.ts';
import type { TenantRow } from '../rows/store.ts';

/** One more seat, or 409 `seats_taken`. The tenant is locked: of several at once, each counts the ones before. */
export async function requireSeat(tx: Db, tenant: TenantRow, taken: number): Promise<void> {
  const seats = await seatsOf(tx, tenant);
  if (seats !== null && taken >= seats)
    throw tenantErrors.seats_taken({ detail: `The tenant has ${seats} seats, and none is free.`, extensions: { seats_max: seats } });
}

/** The number of seats; null: no limit. */
export async function seatsOf(db: Db, { id, slug, name }: TenantRow): Promise<number | null> {
  const { seatsMax } = tenantsIn(db).settings;
  const seats: unknown = typeof seatsMax === 'function' ? await seatsMax({ id, slug, name }, db) : seatsMax;
  if (seats === null || (typeof seats === 'number' && Number.isSafeInteger(seats) && seats >= 0)) return seats;
  throw new TypeError('tenants({ seatsMax }) must return an integer, or null for no limit.');
}
