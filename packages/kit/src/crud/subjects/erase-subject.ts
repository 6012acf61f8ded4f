import type { App } from '../../app/declare/module.ts';
import { quoteName as q } from '../../db/declare/names.ts';
import type { Db } from '../../db/engine/db.ts';
import { announceTableWrite } from '../../db/rows/table-writes.ts';
import { type BeforeErase, keyText } from '../../db/subjects/erase-rows.ts';
import { type Erasure, findErasure, type StepDone } from '../../db/subjects/erasure-state.ts';
import { type ErasureOutcome, runErasure } from '../../db/subjects/run-erasure.ts';
import type { Subject } from '../../db/subjects/subject.ts';
import { removeRecordsOf } from '../../http/idempotency/records-of-subject.ts';
import { heldTables } from './held-tables.ts';
import { declaredScopes, subjectPlans } from './subject-plans.ts';
import { tellErased } from './tell-erased.ts';

export interface EraseOptions {
  readonly signal?: AbortSignal;
  readonly onProgress?: (done: StepDone) => void;
}

/**
 * Begins or continues an erasure whose time has come: rows in batches, files, audit entries, idempotency records, and at last the user. Killed at any moment it is
 * continued by the next call; several processes may call it at once.
 */
export async function eraseSubject(app: App, id: string, options: EraseOptions = {}): Promise<ErasureOutcome> {
  const erasure = await findErasure(app.db, id);
  if (erasure === undefined) throw new Error(`There is no erasure with the id ${id}.`);
  const subject: Subject = { kind: erasure.kind, id: erasure.subject_id };
  const plans = subjectPlans(app, subject.kind);
  const faults = plans.flatMap(({ plan }) => plan.faults);
  if (faults.length > 0) throw new Error(`A ${subject.kind} cannot be erased: ${faults.join('; ')}.`);
  return runErasure(id, {
    ...options,
    database: app.db,
    planned: plans.flatMap(({ using, plan }) =>
      app.databases[using] === undefined ? [] : [{ database: app.databases[using], plan, tables: heldTables(app, using) }],
    ),
    beforeErase: beforeErase(app, subject, erasure),
    afterErase: tellErased(app),
    beforeFinish: async () => {
      await removeRecordsOf(app.db, subject);
      const records = subject.kind === 'person' ? { type: 'user', ids: [subject.id] } : { type: 'tenant', ids: [subject.id] };
      const whose = subject.kind === 'person' ? { actorId: subject.id } : { tenant: subject.id };
      await app.registry.audit?.erase?.(app.db, {
        target_type: subject.kind,
        target_id: subject.id,
        ...whose,
        records,
        by: erasure.requested_by,
      });
    },
    onFinish: async (tx, finished) => {
      if (subject.kind === 'person') await removeUser(app, tx, subject.id, finished);
      await app.registry.audit?.record(tx, [
        {
          actor: finished.requested_by,
          action: `${subject.kind}.erased`,
          target_type: subject.kind,
          target_id: subject.id,
          metadata: { erasure: finished.id, counts: finished.counts },
        },
      ]);
    },
  });
}

/** What belongs to rows and is not in their table: files, as their module says, and events and audit entries about them. */
function beforeErase(app: App, subject: Subject, erasure: Erasure): BeforeErase {
  const types = Map.groupBy(declaredScopes(app), ({ model }) => model.name);
  return async (tx, model, rows, erasing) => {
    if (erasing === 'unlink') return;
    for (const module of app.modules) await module.beforeErase?.(tx, model, rows, erasing);
    const ids = rows.map((row) => keyText(model, row));
    for (const type of new Set((types.get(model.name) ?? []).map(({ name }) => name))) {
      await app.registry.events?.erase?.(tx, { type, ids });
      if (tx.database !== app.db) continue;
      const { kind: target_type, id: target_id } = subject;
      await app.registry.audit?.erase?.(tx, { target_type, target_id, records: { type, ids }, by: erasure.requested_by });
    }
  };
}

/** The user's own row, where no model of the app has it, and what other modules do when a user is deleted. */
async function removeUser(app: App, tx: Db, id: string, { requested_by: by }: Erasure): Promise<void> {
  if (app.users !== null) {
    const { table } = app.users;
    const name = table.name.split('.').map(q).join('.');
    if (app.users.removeUser === undefined) await tx.query(`delete from ${name} where cast(${q(table.id)} as text) = $1`, [id]);
    else await app.users.removeUser(tx, id);
    await announceTableWrite(tx, table.name);
  }
  for (const tell of app.registry.userChanges) await tell(tx, id, { by, requestId: null });
}
