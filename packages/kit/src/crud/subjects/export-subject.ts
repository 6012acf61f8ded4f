import type { App } from '../../app/declare/module.ts';
import type { Subject } from '../../db/subjects/subject.ts';
import { type ExportedRows, subjectRows } from '../../db/subjects/subject-rows.ts';
import { type WrittenEntry, zip, type ZipEntry } from '../../work/zip.ts';
import { subjectPlans } from './subject-plans.ts';

export interface ExportOptions {
  readonly signal?: AbortSignal;
  readonly onProgress?: (rows: number) => void;
  /** Before each table: how many are done, of how many. */
  readonly onTable?: (done: number, tables: number) => void;
}

/** What an export contains, as its `manifest.json` says. */
export interface ExportManifest {
  readonly format: 1;
  readonly kind: Subject['kind'];
  readonly id: string;
  readonly created_at: string;
  readonly tables: readonly { readonly table: string; readonly rows: number; readonly file: string; readonly sha256: string }[];
  readonly files: readonly { readonly file: string; readonly bytes: number; readonly sha256: string }[];
  /** Tables of the app whose rows belong to nobody. */
  readonly tables_without: readonly string[];
}

/**
 * Every row and every file of a person or tenant, as a ZIP archive: a file of JSON Lines for each table, the files, and a manifest with counts and checksums. Secrets,
 * digests and one-time values are left out.
 */
export async function* exportSubject(
  app: App,
  subject: Subject,
  { signal, onProgress = () => {}, onTable = () => {} }: ExportOptions = {},
): AsyncGenerator<Uint8Array> {
  const written: WrittenEntry[] = [];
  yield* zip(
    entriesOf(app, subject, written, { onProgress, onTable, ...(signal === undefined ? {} : { signal }) }),
    (entry) => void written.push(entry),
  );
}

async function* entriesOf(app: App, subject: Subject, written: readonly WrittenEntry[], options: ExportOptions): AsyncGenerator<ZipEntry> {
  const plans = subjectPlans(app, subject.kind);
  const rows = new Map<string, { table: string; rows: number }>();
  const files: string[] = [];
  const count = plans.reduce((sum, { plan }) => sum + plan.tables.length, 0);
  for (const { using, plan } of plans) {
    const database = app.databases[using];
    if (database === undefined) continue;
    const place = using === 'default' ? '' : `${using}/`;
    const tables = plan.tables.toReversed();
    for (const table of tables) {
      const file = `${place}${table.model.name}.jsonl`;
      options.onTable?.(rows.size, count);
      const counted = { table: table.model.name, rows: 0 };
      rows.set(file, counted);
      const stored: ExportedRows['stored'][number][] = [];
      yield {
        name: file,
        content: lines(subjectRows(database, { ...plan, tables: [table] }, subject.id), (batch) => {
          options.signal?.throwIfAborted();
          counted.rows += batch.rows.length;
          options.onProgress?.(batch.rows.length);
          if (app.modules.some((module) => module.filesOfRow !== undefined && module.models?.includes(table.model) === true))
            stored.push(...batch.stored);
        }),
      };
      for (const row of stored)
        for (const module of app.modules)
          for (const file of (await module.filesOfRow?.(app, table.model, row)) ?? []) {
            const safe = `files/${place}${file.name
              .replaceAll('\\', '/')
              .split('/')
              .filter((part) => part !== '' && part !== '.' && part !== '..')
              .join('/')}`;
            files.push(safe);
            yield { name: safe, content: await file.open() };
          }
    }
  }
  // What another library has about the user.
  for (const { table, rows: own } of (subject.kind === 'person' && (await app.users?.exportUser?.(app.db, subject.id))) || []) {
    const file = `login/${table}.jsonl`;
    rows.set(file, { table, rows: own.length });
    options.onProgress?.(own.length);
    yield { name: file, content: text(own.map((row) => `${JSON.stringify(row)}\n`).join('')) };
  }
  const found = new Map(written.map((entry) => [entry.name, entry]));
  const manifest: ExportManifest = {
    format: 1,
    kind: subject.kind,
    id: subject.id,
    created_at: app.clock.now().toISOString(),
    tables: [...rows].map(([file, counted]) => ({ table: counted.table, rows: counted.rows, file, sha256: found.get(file)?.sha256 ?? '' })),
    files: files.map((file) => ({ file, bytes: found.get(file)?.bytes ?? 0, sha256: found.get(file)?.sha256 ?? '' })),
    tables_without: plans.flatMap(({ without }) => without),
  };
  yield { name: 'manifest.json', content: text(`${JSON.stringify(manifest, null, 2)}\n`) };
}

async function* lines(batches: AsyncIterable<ExportedRows>, onBatch: (batch: ExportedRows) => void): AsyncGenerator<Uint8Array> {
  for await (const batch of batches) {
    onBatch(batch);
    yield Buffer.from(batch.rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  }
}

async function* text(content: string): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(Buffer.from(content));
}
