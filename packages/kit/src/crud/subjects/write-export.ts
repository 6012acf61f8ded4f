import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import type { App } from '../../app/declare/module.ts';
import { unwritable } from '../../work/file-fault.ts';
import type { Subject } from '../../db/subjects/subject.ts';
import { exportSubject } from './export-subject.ts';

/** Writes the archive of a person or tenant, with an audit entry. Returns the number of rows. */
export async function writeExport(app: App, subject: Subject, to: string, program: string): Promise<number> {
  let rows = 0;
  // Whoever finds the file finds all of it.
  const part = `${to}.part`;
  try {
    await pipeline(exportSubject(app, subject, { onProgress: (more) => void (rows += more) }), createWriteStream(part, { mode: 0o600 }));
    await rename(part, to);
  } catch (error) {
    await rm(part, { force: true });
    if (!(error instanceof Error) || !('syscall' in error)) throw error;
    throw Object.assign(new Error(unwritable(to, error), { cause: error }), { code: 'file_not_written' });
  }
  const { kind, id } = subject;
  const entry = { actor: program, action: `${kind}.exported`, target_type: kind, target_id: id, tenant: kind === 'tenant' ? id : null };
  await app.registry.audit?.record(app.db, [entry]);
  return rows;
}
