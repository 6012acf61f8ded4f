import { undone } from '../../db/engine/undone.ts';
import type { Readable } from 'node:stream';
import { setImmediate as yieldLoop } from 'node:timers/promises';
import type { Db } from '../../db/engine/db.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { isKitError } from '../../errors/kit-error.ts';
import { absentValue } from '../input/absent-value.ts';
import type { Asked, Intent, RowIntent } from '../write/intent.ts';
import { type CrudRequest, forAction } from '../policy/crud-request.ts';
import type { FileFormat } from '../options/file-options.ts';
import { noteItems } from '../policy/note-items.ts';
import type { StoredColumn } from '../policy/policy.ts';
import type { Item } from '../declare/item.ts';
import { requiredPolicies, Views } from '../policy/make-view.ts';
import { ruleFaults } from '../write/row-rules.ts';
import { checkReferences, referencesOf, type SentRow } from '../write/steps.ts';
import {
  type ImportTarget,
  type RowImportOptions,
  type ImportItem,
  type ImportKeys,
  BATCH_ROWS,
  BATCH_ROWS_POSTGRES,
  isSameValue,
  unwritable,
} from './import-item.ts';
import { RowReader } from './import-reader.ts';

/** What the address and the permission say of every row of a file. */
export interface FixedIntent extends Pick<Intent, 'fixed'> {
  readonly asked?: Pick<Asked, 'authorize'>;
}

export interface ImportResult {
  readonly created: number;
  readonly updated: number;
  readonly dry_run: boolean;
  /** Columns of the file that are known and not taken from clients. */
  readonly ignored: readonly string[];
}

export interface ImportMode {
  readonly isDryRun: boolean;
  /** Rows with the same value of `by` are changed. */
  readonly isUpsert: boolean;
}

interface ReadFile {
  readonly items: readonly ImportItem[];
  readonly keys: ImportKeys | undefined;
  readonly reader: RowReader;
}

/**
 * All rows of a file or none. The first phase reads and checks every row without a transaction; the second writes them in one, through the
 * pipeline of every other write, and lets other requests run between its batches.
 */
export class RowImport {
  readonly #access: ImportTarget;
  readonly #options: RowImportOptions;

  constructor(target: ImportTarget, options: RowImportOptions) {
    this.#access = target;
    this.#options = options;
  }

  async run(
    request: CrudRequest,
    body: Readable,
    format: FileFormat,
    { isDryRun, isUpsert }: ImportMode,
    fixed: FixedIntent = {},
  ): Promise<ImportResult> {
    const { policy } = this.#access;
    const db = policy.database(request);
    await policy.rows.visible(request);
    const view = await new Views(policy, requiredPolicies(policy)).of(request);
    const reader = new RowReader(this.#access, view, request, this.#options);
    let items: readonly ImportItem[];
    try {
      items = await reader.read(body, format);
    } finally {
      body.destroy();
    }
    const keys = isUpsert ? reader.keys(items, this.#by) : undefined;
    if (keys === undefined) for (const item of items) this.#refuseChanged(item, undefined, request.clock.now());
    await this.#judge(db, request, { items, keys, reader }, fixed);
    reader.finish();
    noteItems(request, items.length);
    await this.#checkReferences(db, request, items, keys, fixed);
    const write = () => this.#write(db, request, { items, keys, reader }, fixed, isDryRun);
    // Of two upserts of a new value at once one makes the row. The other could not see it yet: now it can, and changes it.
    const written = await write().catch((error: unknown) => {
      if (keys === undefined || !isKitError(error, 'conflict')) throw error;
      return write();
    });
    return { ...written, dry_run: isDryRun, ignored: reader.ignored };
  }

  get #by(): StoredColumn {
    return this.#access.policy.findColumn(this.#options.by as string) as StoredColumn;
  }

  /** The rules of the resource about every row, before any is written: they are asked again when it is. */
  async #judge(db: Db, request: CrudRequest, { items, keys, reader }: ReadFile, fixed: FixedIntent): Promise<void> {
    const { policy } = this.#access;
    if (policy.options.validate === undefined) return;
    const rows = await this.#withBefore(db, request, items, keys, fixed);
    for (const { location, code, message } of await ruleFaults(policy, db, request, rows)) reader.refuse(location, code, message);
  }

  /** Each row of the file with the row that it changes. */
  async #withBefore(
    db: Db,
    request: CrudRequest,
    items: readonly ImportItem[],
    keys: ImportKeys | undefined,
    fixed: FixedIntent,
  ): Promise<(SentRow & { readonly before: Item | null })[]> {
    const rows: (SentRow & { readonly before: Item | null })[] = [];
    for (let start = 0; start < items.length; start += BATCH_ROWS_POSTGRES) {
      const batch = items.slice(start, start + BATCH_ROWS_POSTGRES);
      const existing = keys === undefined ? undefined : await this.#existing(db, request, batch, keys, fixed);
      for (const item of batch)
        rows.push({
          values: item.values,
          at: item.at,
          before: keys === undefined ? null : (existing?.get(this.#keyText(keys, item)) ?? null),
        });
    }
    return rows;
  }

  async #checkReferences(
    db: Db,
    request: CrudRequest,
    items: readonly ImportItem[],
    keys: ImportKeys | undefined,
    fixed: FixedIntent,
  ): Promise<void> {
    const { policy } = this.#access;
    let checks = await referencesOf(policy, request, items);
    if (checks.length > 0 && keys !== undefined) {
      // A reference that a row has already is not asked again: the caller may see the row and not what it refers to.
      checks = await referencesOf(policy, request, await this.#withBefore(db, request, items, keys, fixed));
    }
    try {
      await checkReferences(db, checks);
    } catch (error) {
      if (!isKitError(error) || error.errors === undefined) throw error;
      throw coreErrors.validation_error({ errors: error.errors.slice(0, this.#access.list.limits.importErrors) });
    }
  }

  async #write(
    db: Db,
    request: CrudRequest,
    { items, keys, reader }: ReadFile,
    given: FixedIntent,
    isDryRun: boolean,
  ): Promise<Pick<ImportResult, 'created' | 'updated'>> {
    const now = request.clock.now();
    const { pipeline } = this.#access;
    let created = 0;
    let updated = 0;
    const write = (target: Db): Promise<void> =>
      pipeline.together(target, async (tx, changes) => {
        [created, updated] = [0, 0];
        const intent = { ...given, via: 'import' as const, changes };
        const size = tx.dialect === 'postgres' ? BATCH_ROWS_POSTGRES : BATCH_ROWS;
        for (let start = 0; start < items.length; start += size) {
          const batch = items.slice(start, start + size);
          const existing = keys === undefined ? new Map<string, Item>() : await this.#existing(tx, request, batch, keys, given);
          const found = (item: ImportItem) => (keys === undefined ? undefined : existing.get(this.#keyText(keys, item)));
          const fresh = batch.filter((item) => found(item) === undefined);
          const known: RowIntent[] = [];
          for (const item of batch) {
            const row = found(item);
            if (row === undefined) continue;
            const { key } = this.#access.policy;
            this.#refuseChanged(item, row, now);
            this.#refuseOtherKey(item, row);
            const written = await reader.withoutUnchanged(item, row);
            known.push({ ...written, at: item.at, key: { column: key, value: row[key.name] } });
          }
          if (keys !== undefined) for (const item of fresh) this.#refuseChanged(item, undefined, now);
          if (fresh.length > 0) created += (await pipeline.run(tx, request, { ...intent, verb: 'create', rows: fresh })).length;
          if (known.length > 0) updated += (await pipeline.run(tx, request, { ...intent, verb: 'update', rows: known })).length;
          // Statements on SQLite run on this thread: others get their turn between batches.
          await yieldLoop();
        }
        await this.#options.requireAdmitted?.(tx);
      });
    await (isDryRun ? undone(db, write) : write(db));
    return { created, updated };
  }

  /** 403 where a row would get another value of a column that the caller may not write. Without a row: another one than a new row gets. */
  #refuseChanged({ kept }: ImportItem, row: Item | undefined, now: Date): void {
    const { policy } = this.#access;
    const changed = Object.keys(kept).filter((name) => {
      const column = policy.findColumn(name) as StoredColumn;
      return !isSameValue(column, row === undefined ? absentValue(column.settings, now) : row[name], kept[name]);
    });
    if (changed.length > 0) throw unwritable(changed);
  }

  /** 422 where the file has another key for the row: keys never change, and the values of two rows must not be mixed. */
  #refuseOtherKey({ values, at }: ImportItem, row: Item): void {
    const { policy } = this.#access;
    const other = policy.model.primaryKey.filter(
      (name) => values[name] !== undefined && !isSameValue(policy.findColumn(name) as StoredColumn, row[name], values[name]),
    );
    if (other.length === 0) return;
    throw coreErrors.validation_error({
      errors: other.map((name) => ({ location: [...at, name], code: 'invalid', message: 'The key of a row cannot be changed.' })),
    });
  }

  #keyText(keys: ImportKeys, item: ImportItem): string {
    return String(this.#by.encode(keys.get(item)));
  }

  /** Rows of the batch that are there already, among those the caller sees. */
  async #existing(
    tx: Db,
    request: CrudRequest,
    batch: readonly ImportItem[],
    keys: ImportKeys,
    { fixed }: FixedIntent,
  ): Promise<Map<string, Item>> {
    const { policy, pipeline } = this.#access;
    const column = this.#by;
    const scope = await policy.rows.forWrite(forAction(request, 'update'));
    const values = batch.map((item) => keys.get(item));
    const rows = await pipeline.lockRows(tx, scope, column, values, fixed);
    return new Map(rows.map((row) => [String(column.encode(row[column.name])), row]));
  }
}
