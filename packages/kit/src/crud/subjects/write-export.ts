import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import type { CommandContext } from '../../app/declare/command.ts';
import type { App } from '../../app/declare/module.ts';
import { unwritable } from '../../work/file-fault.ts';
import type { Subject } from '../../db/subjects/subject.ts';
import { exportSubject } from './export-subject.ts';

export interface ExportTarget {
  readonly to: string;
  /** Who audit entries say has done it: `kit person`. */
  readonly program: string;
  readonly context: Pick<CommandContext<App>, 'json' | 'progress'>;
}

/** Writes the archive of a person or tenant, with an audit entry. Returns the number of rows. */
export async function writeExport(app: App, subject: Subject, { to, program, context }: ExportTarget): Promise<number> {
  let rows = 0;
  const bar = tableBar(context);
  // Whoever finds the file finds all of it.
  const part = `${to}.part`;
  try {
    await pipeline(
      exportSubject(app, subject, { onTable: bar.show, onProgress: (more) => void (rows += more) }),
      createWriteStream(part, { mode: 0o600 }),
    );
    bar.complete();
    await rename(part, to);
  } catch (error) {
    await rm(part, { force: true });
    if (!(error instanceof Error) || !('syscall' in error)) throw error;
    throw Object.assign(new Error(unwritable(to, error), { cause: error }), { code: 'file_not_written' });
  } finally {
    bar.end();
  }
  const { kind, id } = subject;
  const entry = { actor: program, action: `${kind}.exported`, target_type: kind, target_id: id, tenant: kind === 'tenant' ? id : null };
  await app.registry.audit?.record(app.db, [entry]);
  return rows;
}

/** How many tables are written. */
function tableBar({ json, progress }: ExportTarget['context']) {
  let bar: ReturnType<ExportTarget['context']['progress']> | undefined;
  let [shown, all] = [0, 0];
  const show = (done: number, tables: number): void => {
    if (json) return;
    bar ??= progress('Tables', tables);
    bar.advance(done - shown);
    [shown, all] = [done, tables];
  };
  return { show, complete: (): void => show(all, all), end: (): void => bar?.end() };
}
