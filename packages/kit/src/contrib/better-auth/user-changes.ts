import { tenantOwner } from '../../app/tenants/tenant-owner.ts';
import { moduleState } from '../../app/assemble/module-state.ts';
import type { App } from '../../app/declare/module.ts';
import type { AuditEntry } from '../../auth/request/audit-sink.ts';
import type { Db } from '../../db/engine/db.ts';
import { eraseDue } from '../../crud/subjects/erase-due.ts';
import { CONFLICT_RETRIES } from '../../db/engine/conflict-retries.ts';
import { requestErasure } from '../../db/subjects/erasure-state.ts';
import { jsonSchema } from '../../http/declare/json-schema.ts';
import { job } from '../jobs/declare/job.ts';
import {
  deletedOrganizations,
  deleteImpersonations,
  deleteSessions,
  findMemberships,
  takeMemberChanges,
  takeUserChanges,
} from './store.ts';

/** The module at run time. */
export interface BetterAuthState {
  readonly app: App;
  readonly log: App['log'];
  readonly registry: App['registry'];
  readonly users: NonNullable<App['users']>;
}

export const betterAuthState = moduleState<BetterAuthState>({
  name: 'better-auth logins',
  setUp: 'add betterAuth(auth) to the modules of createApp',
});

type Actor = Exclude<AuditEntry['actor'], undefined>;

/** After an organization is deleted, so long until its rows are erased. */
const GRACE_MS = 30 * 24 * 3_600_000;
const ERASURES = 100;

/** Changes that one transaction passes on. */
const BATCH = 100;

/**
 * Notifies the other modules of banned, unbanned, promoted, deprovisioned and deleted users, and ends the sessions of those who are out, and the sessions
 * in which they act as somebody else, in the transaction that takes the changes off the list: a crash leaves them on it.
 */
async function passOnUsers(db: Db, by: Actor): Promise<void> {
  const { registry, users } = betterAuthState.of(db);
  await inBatches(() =>
    db.transaction(async (tx) => {
      const ids = await takeUserChanges(tx, BATCH);
      await deleteImpersonations(tx, ids);
      for (const id of ids) {
        const user = await users.findById(tx, id);
        // Also one that a login stored while the user was being deactivated: it would be good again after the reactivation.
        if (user !== null && !user.is_active) await deleteSessions(tx, id);
        const action = user === null ? 'user.deleted' : user.is_active ? 'user.changed' : 'user.deactivated';
        const after = user === null ? null : { is_active: user.is_active, is_staff: user.is_staff };
        await registry.audit?.record(tx, [{ actor: by, action, target_type: 'user', target_id: id, after }]);
        for (const listener of registry.userChanges) await listener(tx, id, { by, requestId: null });
      }
      return ids.length;
    }, CONFLICT_RETRIES),
  );
}

/** Notifies the other modules of users who have left organizations, likewise. Whoever is a member again has not left. */
async function passOnMembers(db: Db, by: Actor): Promise<void> {
  const { registry } = betterAuthState.of(db);
  await inBatches(() =>
    db.transaction(async (tx) => {
      const left = await takeMemberChanges(tx, BATCH);
      const members = await findMemberships(tx, left);
      for (const [index, former] of left.entries())
        if (members[index] === null) for (const listener of registry.memberChanges) await listener(tx, former, { by, requestId: null });
      for (const tenant of await deletedOrganizations(tx, new Set(left.map((former) => former.tenant)))) {
        for (const listener of registry.memberChanges) await listener(tx, { userId: tenantOwner(tenant), tenant }, { by, requestId: null });
        // Its rows in the tables of the application and of the modules; until then a legal hold can keep them.
        const dueAt = new Date(tx.clock.now().getTime() + GRACE_MS);
        await requestErasure(tx, { kind: 'tenant', id: tenant }, { dueAt, by: typeof by === 'string' ? by : 'better-auth' });
      }
      return left.length;
    }, CONFLICT_RETRIES),
  );
}

/** Takes as many as there are, so many at a time: each batch is a transaction. */
async function inBatches(takeBatch: () => Promise<number>): Promise<void> {
  while ((await takeBatch()) === BATCH);
}

/** Passes on what the triggers have written down. */
export async function passOnChanges(db: Db, by: Actor = 'better-auth'): Promise<void> {
  await passOnUsers(db, by);
  await passOnMembers(db, by);
}

/** Passes on what a crash, or a program without the app, has left on the list, and erases deleted organizations. */
export const passOnJob = job('better_auth.user_changes', {
  input: jsonSchema<object>({ type: 'object' }),
  schedule: { cron: '*/5 * * * *', input: {} },
  async run({ db }) {
    await passOnChanges(db);
    await eraseDue(betterAuthState.of(db).app, 'tenant', ERASURES);
  },
});
