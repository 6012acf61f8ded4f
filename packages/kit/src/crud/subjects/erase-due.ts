import type { App } from '../../app/declare/module.ts';
import { dueErasures, noteFailure } from '../../db/subjects/erasure-state.ts';
import type { SubjectKind } from '../../db/subjects/subject.ts';
import { eraseSubject } from './erase-subject.ts';

/** Erases the people, or the tenants, whose time has come. One that fails is tried again later, and the others are erased. Returns how many are gone. */
export async function eraseDue(app: App, kind: SubjectKind, limit: number, signal?: AbortSignal): Promise<number> {
  let erased = 0;
  for (const { id } of await dueErasures(app.db, kind, limit)) {
    if (signal?.aborted === true) break;
    try {
      if ((await eraseSubject(app, id, signal === undefined ? {} : { signal })) === 'finished') erased += 1;
    } catch (error) {
      app.log.error({ err: error, erasure: id, kind }, 'an erasure failed; it is tried again');
      await noteFailure(app.db, id, error);
    }
  }
  return erased;
}
