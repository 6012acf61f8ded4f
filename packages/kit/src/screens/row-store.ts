import type { AdminContext, AdminFile } from '../app/admin/declaration.ts';
import type { AdminImportResult } from '../app/admin/import-result.ts';
import type { AdminField } from '../app/admin/shapes.ts';
import type { RowState } from '../crud/policy/row-scope.ts';
import type { AdminAccess } from '../crud/staff/admin-access.ts';
import { inputSchema, patchSchema } from '../db/declare/model-schema.ts';
import type { Columns } from '../db/declare/rows.ts';
import { databaseNamed } from '../db/open/named-database.ts';
import { isKitError } from '../errors/kit-error.ts';
import { writeWithFiles } from './files/attach-files.ts';
import { importFile } from './files/import-file.ts';
import { adminErrors } from './errors.ts';
import type { Plan } from './screen-plan.ts';
import { checked, isDeleted } from './screen-rows.ts';
import type { ScreenForms, ScreenRow } from './screen-words.ts';
import { accessOf } from './staff-access.ts';

/** How the forms of a list change rows: by the write pipeline of the resource. */
export class RowStore {
  readonly #plan: Plan;
  readonly #creation: ReturnType<typeof inputSchema>;
  readonly #edit: ReturnType<typeof patchSchema>;

  constructor(plan: Plan) {
    this.#plan = plan;
    const { columns } = plan.model;
    // The owner and the tenant are read-only for clients of the API; here the form gives them.
    this.#creation = inputSchema(Object.fromEntries(plan.creatable.map(({ name }) => [name, settable(columns, name)])) as Columns);
    this.#edit = patchSchema(Object.fromEntries(plan.writable.map(({ name }) => [name, settable(columns, name)])) as Columns);
  }

  access(context: AdminContext): Promise<AdminAccess> {
    return accessOf(this.#plan.resource, context, this.#plan.words);
  }

  /** The row with this id, whole; undefined where this staff member does not see it. */
  async find(context: AdminContext, id: string): Promise<ScreenRow | undefined> {
    return unlessMissing(async () => (await this.access(context)).find(id, this.#rows));
  }

  /** `once` collects what the resource gives once. */
  async create(context: AdminContext, fields: ScreenRow, once?: Map<string, string | null>): Promise<ScreenRow> {
    const { forms } = this.#plan.words;
    if (forms !== undefined) {
      const input = await forms.input(fields, null, context);
      return (await this.access(context)).create(input, { sent: Object.keys(input), once });
    }
    const { columns } = this.#plan.model;
    // A form may leave a column with a default empty, whose null it does not take.
    const given = Object.entries(fields).filter(([name, value]) => value !== null || columns[name]?.settings.nullable === true);
    const values = checked(this.#creation['~standard'].validate(Object.fromEntries(given))) as ScreenRow;
    const access = await this.access(context);
    const sent = this.#sent(fields);
    return this.#withFiles(context, fields, (transaction) => access.create(values, { sent, once, ...transaction }));
  }

  /** `version`: of the row when its form was made. */
  async update(context: AdminContext, id: string, fields: ScreenRow, version: number | null): Promise<ScreenRow> {
    const { forms } = this.#plan.words;
    if (forms !== undefined) {
      const access = await this.access(context);
      const input = await forms.input(fields, await access.find(id), context);
      return access.update(id, input, { sent: Object.keys(input) });
    }
    const values = checked(this.#edit['~standard'].validate({ ...fields })) as ScreenRow;
    const expected = version === null || this.#plan.resource.options.version === undefined ? {} : { version };
    const access = await this.access(context);
    const write = { sent: this.#sent(fields), ...expected };
    return this.#withFiles(context, fields, (transaction) => access.update(id, values, { ...write, ...transaction }));
  }

  /** Asks the rules of the resource about the fields of a form that its kinds accept. Throws a 422. `id`: null for a new record. */
  async validate(context: AdminContext, forms: ScreenForms, fields: ScreenRow, id: string | null): Promise<void> {
    const access = await this.access(context);
    const before = id === null ? null : await access.find(id);
    await access.validate(await forms.input(fields, before, context), before);
  }

  /** Returns the row as it was. */
  async remove(context: AdminContext, id: string): Promise<ScreenRow> {
    const access = await this.access(context);
    const before = await access.find(id, this.#rows);
    if (isDeleted(this.#plan, before)) throw adminErrors.not_removable();
    await this.#unlessDone(
      () => access.destroy(id),
      context,
      id,
      (row) => isDeleted(this.#plan, row),
      adminErrors.not_removable,
    );
    return before;
  }

  async restore(context: AdminContext, id: string): Promise<void> {
    const access = await this.access(context);
    await this.#unlessDone(
      () => access.restore(id),
      context,
      id,
      (row) => !isDeleted(this.#plan, row),
      adminErrors.not_restorable,
    );
  }

  /** `fields`: of the form of a new record. */
  async importRows(context: AdminContext, fields: readonly AdminField[], file: AdminFile): Promise<AdminImportResult> {
    const access = await this.access(context);
    return importFile({ plan: this.#plan, context, access, fields, schema: this.#creation }, file);
  }

  get #rows(): RowState {
    return this.#plan.softDeletes ? 'any' : 'live';
  }

  /** A row that another request has deleted or restored in the meantime is not missing. */
  async #unlessDone(
    work: () => Promise<unknown>,
    context: AdminContext,
    id: string,
    isDone: (row: ScreenRow) => boolean,
    reason: () => Error,
  ): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!isKitError(error) || error.status !== 404 || !this.#plan.softDeletes) throw error;
      const row = await this.find(context, id);
      throw row !== undefined && isDone(row) ? reason() : error;
    }
  }

  #withFiles(context: AdminContext, fields: ScreenRow, write: Parameters<typeof writeWithFiles>[4]): Promise<ScreenRow> {
    const db = databaseNamed(context.databases, this.#plan.using, `screen("${this.#plan.resource.name}")`);
    return writeWithFiles(db, this.#plan, context, fields, write);
  }

  /** What the right to write is asked for: not the owner and the tenant, which the site gives. */
  #sent(fields: ScreenRow): string[] {
    const { writable, creatable, given } = this.#plan;
    const names = new Set([...writable, ...creatable].map(({ name }) => name));
    return [...names].filter((name) => name in fields && !given.has(name));
  }
}

/** Undefined in place of a 404. */
export async function unlessMissing<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (isKitError(error) && error.status === 404) return undefined;
    throw error;
  }
}

function settable(columns: Columns, name: string): Columns[string] {
  const { settings } = columns[name] as Columns[string];
  return { settings: { ...settings, readOnly: false } } as Columns[string];
}
