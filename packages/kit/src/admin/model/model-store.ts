import { STAFF } from '../../crud/declare/resource.ts';
import { ruleResult } from '../../auth/rights/rule-result.ts';
import { CONFLICT_RETRIES } from '../../db/engine/conflict-retries.ts';
import { databaseNamed } from '../../db/open/named-database.ts';
import type { AdminContext, AdminFile } from '../../app/admin/declaration.ts';
import type { App } from '../../app/declare/module.ts';
import type { Db } from '../../db/engine/db.ts';
import { compileWhere } from '../../db/sql/where/compile-where.ts';
import { find, insert, remove, update } from '../../db/rows/repository.ts';
import { uuidv7 } from '../../db/values/uuidv7.ts';
import type { AdminImportResult } from '../../app/admin/shapes.ts';
import { attachFiles } from './attach-files.ts';
import { adminErrors } from '../errors.ts';
import { DELETED, type Plan, type Row } from './model-plan.ts';
import { checked, isDeleted, keyOf, outputOf, type RowView } from './model-rows.ts';

/** How a list reaches its rows. */
export interface RowStore {
  view(context: AdminContext): Promise<RowView>;
  find(context: AdminContext, id: string): Promise<Row | undefined>;
  create(context: AdminContext, fields: Row): Promise<Row>;
  /** `version`: what the form was made from. */
  update(context: AdminContext, id: string, fields: Row, version: number | null): Promise<Row>;
  /** Returns the row as it was. */
  remove(context: AdminContext, id: string): Promise<Row>;
  /** Of a table that soft-deletes. */
  restore(context: AdminContext, id: string): Promise<void>;
  /** Only of a resource: its pipeline writes files. */
  importRows?(context: AdminContext, file: AdminFile): Promise<AdminImportResult>;
}

function everything({ model }: Plan, { app, clock, principal }: AdminContext): RowView {
  return {
    columns: null,
    condition: () => Promise.resolve(true),
    async search(backend, text, dialect, parameters) {
      await using services = (app as App).services.scope();
      const caller = { user: principal.user, principal, tenant: null, action: 'list', audience: STAFF, now: clock.now(), services };
      const where = ruleResult(
        'search',
        `search "${backend.name}" of modelResource(${model.name})`,
        await backend.where(text, { caller, model, dialect }),
      );
      const compiled = compileWhere(model, where);
      return compiled.constant ?? compiled.append(dialect, 't', parameters);
    },
  };
}

export function databaseOf({ using, model }: Plan, { databases }: AdminContext): Db {
  return databaseNamed(databases, using, `modelResource("${model.name}")`);
}

/** A table that no resource declares: staff see every row, and a change is a statement and its audit entry. */
export function modelStore(plan: Plan): RowStore {
  const { model } = plan;
  const record = (context: AdminContext, tx: Db, change: string, id: string, before: object | null, after: object | null) =>
    context.audit?.record(tx, [
      {
        actor: context.principal,
        action: `${model.name}.${change}`,
        target_type: model.name,
        target_id: id,
        before,
        after,
        request_id: context.requestId,
      },
    ]);
  return {
    view: (context) => Promise.resolve(everything(plan, context)),
    find: async (context, id) => await find(databaseOf(plan, context), model, plan.key(id)),
    create(context, fields) {
      const values = checked(model.input['~standard'].validate({ ...fields }));
      return databaseOf(plan, context).transaction(async (tx) => {
        const made: Row = await insert(tx, model, values as never);
        await attachFiles(tx, plan, context, fields, made);
        await record(context, tx, 'created', keyOf(plan, made), null, outputOf(model, made));
        return made;
      }, CONFLICT_RETRIES);
    },
    update(context, id, fields) {
      const values = checked(model.patch['~standard'].validate({ ...fields }));
      return databaseOf(plan, context).transaction(async (tx) => {
        const before = await lockedRow(tx, plan, id);
        if (isDeleted(plan, before)) throw adminErrors.not_editable();
        const after: Row | undefined = await update(tx, model, plan.key(id), values as never);
        if (after === undefined) throw adminErrors.record_not_found();
        await attachFiles(tx, plan, context, fields, after);
        await record(context, tx, 'updated', keyOf(plan, before), outputOf(model, before), outputOf(model, after));
        return after;
      }, CONFLICT_RETRIES);
    },
    remove(context, id) {
      const { clock } = context;
      return databaseOf(plan, context).transaction(async (tx) => {
        const before = await lockedRow(tx, plan, id);
        if (isDeleted(plan, before)) throw adminErrors.not_removable();
        if (plan.softDeletes) await update(tx, model, plan.key(id), { [DELETED]: clock.now(), deletion_id: uuidv7(clock) } as never);
        else await remove(tx, model, plan.key(id));
        await record(context, tx, 'deleted', keyOf(plan, before), outputOf(model, before), null);
        return before;
      }, CONFLICT_RETRIES);
    },
    restore(context, id) {
      return databaseOf(plan, context).transaction(async (tx) => {
        const before = await lockedRow(tx, plan, id);
        if (!isDeleted(plan, before)) throw adminErrors.not_restorable();
        const after: Row | undefined = await update(tx, model, plan.key(id), { [DELETED]: null, deletion_id: null } as never);
        await record(context, tx, 'restored', keyOf(plan, before), null, outputOf(model, after ?? before));
      }, CONFLICT_RETRIES);
    },
  };
}

/** The row as it stays until the transaction ends, so that its audit entry shows this change only. SQLite has one writer. */
async function lockedRow(tx: Db, { model, key }: Plan, id: string): Promise<Row> {
  const found = await find(tx, model, key(id), { lock: true });
  if (found === undefined) throw adminErrors.record_not_found();
  return found;
}
